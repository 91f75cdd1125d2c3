#!/usr/bin/env bash
# Proves the prover: a server that acknowledges before it commits must be seen to lose messages by the kill loop.
#
#   tests/crash/control.sh [ROUNDS]
#
# Everything happens in a copy of the committed and staged or changed tracked files; the tree itself is not touched.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
rounds=${1:-20}

scratch=$(mktemp -d)
tree=$scratch/tree
# shellcheck disable=SC2317  # called by the trap
cleanup() {
  git -C "$root" worktree remove --force "$tree" 2>/dev/null || true
  rm -rf "$scratch"
  git -C "$root" worktree prune
}
trap cleanup EXIT

# A commit of what is being worked on, if it differs from the last one; it stands on no branch.
state=$(git stash create)
git worktree add --quiet --detach "$tree" "${state:-HEAD}"
git -C "$tree" apply "$root/tests/crash/acknowledge_before_commit.patch"

# Objects of other copies can be used again, wherever this copy lies.
export CCACHE_BASEDIR=$tree CCACHE_NOHASHDIR=1
echo "building the server with the fault"
if ! { cmake -S "$tree" -B "$tree/build/release" --preset release -DBELFRY_TESTS=OFF \
  && ninja -C "$tree/build/release" -j2 belfry; } >"$scratch/log" 2>&1; then
  tail -n 40 "$scratch/log"
  exit 1
fi
python3 "$root/tests/crash/kill_loop.py" --binary "$tree/build/release/belfry" --rounds "$rounds" --expect-loss

#!/usr/bin/env bash
# Proves the prover: a server that acknowledges before it commits must be seen to lose messages by the kill loop.
#
#   tests/crash/control.sh [ROUNDS]
#
# Everything happens in a copy; the tree itself is not touched.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
rounds=${1:-20}
. tests/scratch_tree.sh

git -C "$tree" apply "$root/tests/crash/acknowledge_before_commit.patch"

echo "building the server with the fault"
if ! { cmake -S "$tree" -B "$tree/build/release" --preset release -DBELFRY_TESTS=OFF \
  && ninja -C "$tree/build/release" -j2 belfry; } >"$scratch/log" 2>&1; then
  tail -n 40 "$scratch/log"
  exit 1
fi
python3 "$root/tests/crash/kill_loop.py" --binary "$tree/build/release/belfry" --rounds "$rounds" --expect-loss

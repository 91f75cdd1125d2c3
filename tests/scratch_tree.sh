# Makes a copy of the committed and staged or changed tracked files in $tree, for work that must not touch the tree itself.
# Gone when the script that sources this ends. $scratch is a folder for its logs, $root the tree that was copied.
# shellcheck shell=bash disable=SC2034
root=$(git rev-parse --show-toplevel)
scratch=$(mktemp -d)
tree=$scratch/tree
# shellcheck disable=SC2317  # called by the trap
remove_scratch_tree() {
  git -C "$root" worktree remove --force "$tree" 2>/dev/null || true
  rm -rf "$scratch"
  git -C "$root" worktree prune
}
trap remove_scratch_tree EXIT

# A commit of what is being worked on, if it differs from the last one; it stands on no branch.
git -C "$root" worktree add --quiet --detach "$tree" "$(git -C "$root" stash create | grep . || echo HEAD)"

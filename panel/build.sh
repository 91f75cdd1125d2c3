#!/usr/bin/env bash
# Builds the panel into a folder: index.html, panel.js, panel.css, and each of them compressed.
#   panel/build.sh build/release/panel/dist
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"

# Two builds may run at once: one after the other. The packages are fetched again when the lock file changes.
exec {lock}>.build-lock
flock "$lock"
if [[ ! -f node_modules/.package-lock.json || package-lock.json -nt node_modules/.package-lock.json ]]; then
  npm ci --no-audit --no-fund --loglevel=error >&2
  touch node_modules/.package-lock.json
fi
node build.mjs >&2
for file in index.html panel.js panel.css; do
  cp "dist/$file" "$out/$file"
  gzip -9nc "$out/$file" >"$out/$file.gz"
done

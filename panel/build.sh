#!/usr/bin/env bash
# Builds the panel into a folder: index.html, panel.js, panel.css, and each of them compressed.
#   panel/build.sh build/release/panel/dist
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=../cmake/packages.sh
. ../cmake/packages.sh

need_npm_packages "$PWD"
# Two builds may run at once: one after the other.
exec {lock}>.build-lock
flock "$lock"
node build.mjs >&2
for file in index.html panel.js panel.css; do
  cp "dist/$file" "$out/$file"
  gzip -9nc "$out/$file" >"$out/$file.gz"
done

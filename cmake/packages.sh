# The Debian packages that Belfry needs, and how to get them. Sourced by ./run, ./test and .ci/run.
# docs/dependencies.md says what each is for.
# shellcheck shell=bash disable=SC2034

build_packages=(
  clang-19 lld-19 libclang-rt-19-dev libstdc++-12-dev cmake ninja-build ccache
  libboost1.81-dev libsqlite3-dev libssl-dev libfmt-dev libcli11-dev libtomlplusplus-dev libabsl-dev libre2-dev libedit-dev tzdata
  nodejs npm
  git ca-certificates
  python3 curl
)
test_packages=(
  libgtest-dev librapidcheck-dev clang-tidy-19 clang-format-19 strace openssl chromium fonts-noto-cjk systemd binutils
  libtest-json-schema-acceptance-perl
)

say() { printf 'belfry: %s\n' "$*" >&2; }

# Those of the named packages that are not installed, one a line. A command of that name from elsewhere will do, too.
missing_packages() {
  local name status
  local -A installed=()
  while read -r name status; do
    if [[ $status == installed ]]; then installed[$name]=1; fi
  done < <(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for name in "$@"; do
    if [[ -z ${installed[$name]:-} ]] && ! command -v "$name" >/dev/null; then printf '%s\n' "$name"; fi
  done
}

# Installs what is missing of the named packages, or prints the one line that does and fails.
need_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "this is not a Debian system: going on without checking for packages"
    return 0
  fi
  local -a missing as_root
  mapfile -t missing < <(missing_packages "$@")
  if (( ${#missing[@]} == 0 )); then return 0; fi

  if (( EUID == 0 )); then
    as_root=(env)
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]]; }; then
    as_root=(sudo env)
  else
    say "these packages are missing; to install them, type as root:"
    printf 'apt-get update && apt-get install --no-install-recommends -y %s\n' "${missing[*]}" >&2
    return 1
  fi
  say "installing ${missing[*]}"
  "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -q update >&2 &&
    "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -q install --no-install-recommends -y "${missing[@]}" >&2
}

# Fetches what a folder's lock file names, once and again when that changes. Whoever comes meanwhile waits.
need_npm_packages() {
  local folder=$1 lock
  exec {lock}>"$folder/.build-lock"
  flock "$lock"
  if [[ ! -f $folder/node_modules/.package-lock.json ||
        $folder/package-lock.json -nt $folder/node_modules/.package-lock.json ]]; then
    npm --prefix "$folder" ci --no-audit --no-fund --loglevel=error >&2
    touch "$folder/node_modules/.package-lock.json"
  fi
  exec {lock}>&-
}

# Builds targets in a build folder. Says how far it is, shows what went wrong, and is silent if there is nothing to do.
#   build_with_ninja build/release belfry
build_with_ninja() {
  local folder=$1
  shift
  ninja -C "$folder" "$@" 2>&1 | show_progress "$folder" >&2
}

show_progress() {
  local folder=$1 line on_terminal=0 started=0
  if [[ -t 2 ]]; then on_terminal=1; fi
  while IFS= read -r line; do
    case $line in
      'ninja: Entering directory'* | 'ninja: no work to do.' | *'Re-checking globbed directories'*) ;;
      '['*/*'] '*)
        if (( ! started )); then
          say "building $folder; the first time takes some minutes"
          started=1
        fi
        if (( on_terminal )); then printf '\r\033[K%s' "${line%% *}"; fi
        if [[ $line == *'] FAILED: '* ]]; then printf '\n%s\n' "$line"; fi
        ;;
      *)
        if (( on_terminal && started )); then printf '\r\033[K'; fi
        printf '%s\n' "$line"
        ;;
    esac
  done
  if (( on_terminal && started )); then printf '\r\033[K'; fi
}

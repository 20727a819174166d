#!/usr/bin/env bash
# tests/systems/run.sh [bookworm] [trixie]   both commands and the install lines as a newcomer meets them: in a bare Debian 12
# (bookworm) and 13 (trixie), each made in a folder, with a clone of what is committed. Both without arguments.
#   POSENC_SYSTEMS   where the systems are made (default: build/systems). They stay, to look into; `--drop` removes them.
#   POSENC_SYSTEM_STEPS   run, test, install, files (default: all); `files` uses what ./release left in build/release-files
# Needs root, mmdebstrap and 8 GB; takes about fifteen minutes for each on two cores.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
root=$(dirname -- "$(dirname -- "$here")")
bare=$root/packaging/tests/bare.sh
systems=${POSENC_SYSTEMS:-$root/build/systems}
steps=${POSENC_SYSTEM_STEPS:-run test install files}
newcomer=/var/newcomer  # a home of its own inside
passed=0 failed=0 skipped=0

fail() {
  echo "systems: $*" >&2
  exit 2
}
[[ $(id -u) == 0 ]] || fail "only root can make a bare Debian: run it with sudo"
if [[ ${1:-} == --drop ]]; then
  ! grep -qF " $systems/" /proc/mounts || fail "something is still mounted below $systems"
  rm -rf "$systems"
  exit
fi
suites=("$@")
((${#suites[@]})) || suites=(bookworm trixie)
for suite in "${suites[@]}"; do
  [[ $suite == bookworm || $suite == trixie ]] || fail "expected bookworm or trixie, got $suite"
done
# bare.sh needs it.
command -v mmdebstrap >/dev/null || { command -v apt-get >/dev/null && apt-get install -y -qq mmdebstrap >/dev/null; } ||
  fail "mmdebstrap is needed (Debian's package mmdebstrap)"
[[ -z $(git -C "$root" status --porcelain) ]] || echo "systems: uncommitted changes are not tested: what runs is HEAD" >&2

# make_system SUITE FOLDER: with a clone of what is committed, and with this machine's way to the network.
make_system() {
  local folder=$2
  "$bare" make "$1" "$folder" git || return
  mkdir -p "$folder$newcomer"
  [[ ! -f $HOME/.npmrc ]] || cp "$HOME/.npmrc" "$folder$newcomer/"
  [[ ! -f /etc/npmrc ]] || cp /etc/npmrc "$folder/etc/"
  cp /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/ca-certificates.crt"
  git clone -q "$root" "$folder$newcomer/posenc"
}

# inside FOLDER COMMAND…: in the clone, as a newcomer's shell would.
inside() {
  local folder=$1
  shift
  "$bare" run "$folder" env HOME=$newcomer bash -c 'cd ~/posenc && exec "$@"' -- "$@" </dev/null
}

# refuses_offline FOLDER: without a network, ./run says so in one line and stops.
refuses_offline() {
  local said
  if said=$(unshare --net "$bare" run "$1" env HOME=$newcomer bash -c 'cd ~/posenc && exec ./run list' </dev/null 2>&1); then
    echo "it went on without a network: $said"
    return 1
  fi
  echo "$said"
  [[ $said == "posenc: apt-get could not reach Debian's archive"* && $said != *$'\n'* ]]
}

# leave_out NAME REASON
leave_out() {
  skipped=$((skipped + 1))
  printf '%-28s          skipped: %s\n' "$1" "$2"
}

# step NAME LOG COMMAND…: one line with its time; the log's end where it fails.
step() {
  local name=$1 log=$2 began=$EPOCHSECONDS
  shift 2
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
    printf '%-28s %4d s   ok   %s\n' "$name" $((EPOCHSECONDS - began)) "$(tail -n 1 "$log" | cut -c1-80)"
    return
  fi
  failed=$((failed + 1))
  printf '%-28s %4d s   FAILED\n' "$name" $((EPOCHSECONDS - began))
  tail -n 40 "$log"
  return 1
}

mkdir -p "$systems"
for suite in "${suites[@]}"; do
  folder=$systems/$suite logs=$systems/$suite-logs
  mkdir -p "$logs"
  step "$suite: bare system" "$logs/make.log" make_system "$suite" "$folder" || continue
  if [[ " $steps " == *" run "* ]]; then
    step "$suite: no network" "$logs/offline.log" refuses_offline "$folder" || true
    step "$suite: ./run list" "$logs/run.log" inside "$folder" ./run list || true
  fi
  if [[ " $steps " == *" install "* ]]; then
    step "$suite: install lines" "$logs/install.log" inside "$folder" tests/systems/install_lines.sh || true
  fi
  if [[ " $steps " == *" files "* ]]; then
    wheel=$(compgen -G "$root/build/release-files/*_$(uname -m).whl" | sed -n 1p || true)
    if [[ -n $wheel ]]; then
      step "$suite: wheel" "$logs/wheel.log" "$root/packaging/tests/wheel.sh" "$wheel" "$suite" || true
    else
      leave_out "$suite: wheel" "build/release-files has none for this machine"
    fi
    if compgen -G "$root/build/release-files/*~deb*.deb" >/dev/null; then
      step "$suite: Debian packages" "$logs/deb.log" "$root/packaging/tests/deb.sh" "$root/build/release-files" "$suite" || true
    else
      leave_out "$suite: Debian packages" "build/release-files has none"
    fi
  fi
  if [[ " $steps " == *" test "* ]]; then
    step "$suite: ./test quick" "$logs/test.log" inside "$folder" ./test quick || true
    grep -E 'skipped: ' "$logs/test.log" | sed 's/^ */    /' || true
  fi
done
also=""
((skipped == 0)) || also=", $skipped skipped"
echo "$passed passed, $failed failed$also"
((failed == 0 && passed > 0))

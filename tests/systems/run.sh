#!/usr/bin/env bash
# tests/systems/run.sh [bookworm] [trixie]   both commands and the install lines as a newcomer meets them: in a bare Debian 12
# (bookworm) and 13 (trixie), each made in a folder, with a clone of what is committed. Both without arguments.
#   POSENC_SYSTEMS   where the systems are made (default: build/systems). They stay, to look into; `--drop` removes them.
#   POSENC_SYSTEM_STEPS   run, test, install, files (default: all); `files` uses what ./release left in build/release-files
# Needs root, mmdebstrap and 8 GB; takes about fifteen minutes for each on two cores.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
root=$(dirname -- "$(dirname -- "$here")")
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
command -v mmdebstrap >/dev/null || { command -v apt-get >/dev/null && apt-get install -y -qq mmdebstrap >/dev/null; } ||
  fail "mmdebstrap is needed (Debian's package mmdebstrap)"
[[ -z $(git -C "$root" status --porcelain) ]] || echo "systems: uncommitted changes are not tested: what runs is HEAD" >&2

# make_system SUITE FOLDER: from the archive that this machine uses, where it is a Debian; and with this machine's way to
# the network.
make_system() {
  local suite=$1 folder=$2 sources name=""
  sources=$(mktemp --suffix=.sources)
  name=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  local -a archive=()
  if [[ $name == bookworm || $name == trixie ]] && compgen -G '/etc/apt/sources.list.d/*.sources' >/dev/null; then
    cat /etc/apt/sources.list.d/debian*.sources | sed "s/$name/$suite/g" >"$sources"
    chmod 644 "$sources"
    archive=("$sources")
  fi
  rm -rf "$folder"
  mkdir -p "$(dirname "$folder")"
  mmdebstrap --mode=root --variant=minbase --include=git,ca-certificates "$suite" "$folder" "${archive[@]}" || return
  rm -f "$sources"
  mkdir -p "$folder$newcomer"
  cp /etc/resolv.conf /etc/hosts "$folder/etc/"
  [[ ! -f $HOME/.npmrc ]] || cp "$HOME/.npmrc" "$folder$newcomer/"
  [[ ! -f /etc/npmrc ]] || cp /etc/npmrc "$folder/etc/"
  cp /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/ca-certificates.crt"
}

# inside FOLDER COMMAND…: in the clone, as a newcomer's shell would.
inside() {
  local folder=$1
  shift
  chroot "$folder" /usr/bin/env -i HOME=$newcomer PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
    bash -c 'cd ~/posenc && exec "$@"' -- "$@" </dev/null
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

mounted=()
unmount_all() {
  local folder
  for folder in "${mounted[@]}"; do umount -l "$folder/dev" "$folder/proc" 2>/dev/null || true; done
  mounted=()
}
trap unmount_all EXIT

mkdir -p "$systems"
for suite in "${suites[@]}"; do
  folder=$systems/$suite logs=$systems/$suite-logs
  mkdir -p "$logs"
  step "$suite: bare system" "$logs/make.log" make_system "$suite" "$folder" || continue
  mount -t proc proc "$folder/proc"
  mount --rbind /dev "$folder/dev"
  mounted+=("$folder")
  git clone -q "$root" "$folder$newcomer/posenc"
  if [[ " $steps " == *" run "* ]]; then
    step "$suite: ./run list" "$logs/run.log" inside "$folder" ./run list || true
  fi
  if [[ " $steps " == *" install "* ]]; then
    step "$suite: install lines" "$logs/install.log" inside "$folder" tests/systems/install_lines.sh || true
  fi
  if [[ " $steps " == *" files "* ]]; then
    if compgen -G "$root/build/release-files/*.whl" >/dev/null; then
      mkdir -p "$folder$newcomer/files"
      cp "$root"/build/release-files/* "$folder$newcomer/files/"
      step "$suite: files of ./release" "$logs/files.log" inside "$folder" tests/systems/release_files.sh "$newcomer/files" || true
    else
      skipped=$((skipped + 1))
      echo "$suite: files of ./release    skipped: build/release-files has no wheel"
    fi
  fi
  if [[ " $steps " == *" test "* ]]; then
    step "$suite: ./test quick" "$logs/test.log" inside "$folder" ./test quick || true
    grep -E 'skipped: ' "$logs/test.log" | sed 's/^ */    /' || true
  fi
  unmount_all
done
also=""
((skipped == 0)) || also=", $skipped skipped"
echo "$passed passed, $failed failed$also"
((failed == 0 && passed > 0))

#!/usr/bin/env bash
# A bare Debian in a folder, to try packages in.
#   bare.sh make SUITE FOLDER [PACKAGE…]   builds it: bullseye (Debian 11), bookworm (12), trixie (13), with the packages
#   bare.sh run FOLDER COMMAND…            runs a command there as root, with nothing of this machine's environment
#   bare.sh drop FOLDER                    removes it
# Needs root and mmdebstrap.
set -euo pipefail
fail() {
  echo "bare: $*" >&2
  exit 1
}
(($# >= 2)) || { sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
((EUID == 0)) || fail "root is needed to make a bare Debian: run this as root or through sudo"
verb=$1
shift
case $verb in
  make)
    (($# >= 2)) || fail "expected a suite and a folder"
    suite=$1 folder=$2
    shift 2
    [[ $suite =~ ^(bullseye|bookworm|trixie)$ ]] || fail "unknown release $suite; choose from bullseye, bookworm, trixie"
    command -v mmdebstrap >/dev/null || fail "mmdebstrap is missing (Debian's package mmdebstrap)"
    [[ ! -e $folder || -e $folder/etc/debian_version ]] || fail "$folder exists and is no Debian"
    rm -rf --one-file-system "$folder"
    log=$(mktemp) list=$(mktemp --suffix=.sources)
    trap 'rm -f "$log" "$list"' EXIT
    # This machine's mirror where it runs Debian; else that of mmdebstrap.
    codename=$(. /etc/os-release && [[ $ID == debian ]] && echo "${VERSION_CODENAME:-}") || codename=""
    sources=()
    if [[ -n $codename && -e /etc/apt/sources.list.d/debian.sources ]]; then
      if [[ $suite == bullseye ]]; then  # the first entry, which is the release itself: updates of an old one may be gone
        awk '/^$/ && seen { exit } /^Types:/ { seen = 1 } { print }' /etc/apt/sources.list.d/debian.sources |
          sed -E "s/^Suites:.*/Suites: $suite/" >"$list"
      else
        sed "s/$codename/$suite/g" /etc/apt/sources.list.d/debian.sources >"$list"
      fi
      chmod 644 "$list"
      sources=("$list")
    fi
    packages=(ca-certificates "$@")
    if ! mmdebstrap --mode=root --variant=minbase --include="$(IFS=,; echo "${packages[*]}")" \
      --aptopt='Acquire::Check-Valid-Until "false"' "$suite" "$folder" "${sources[@]}" </dev/null >"$log" 2>&1; then
      tail -n 5 "$log" >&2
      rm -rf --one-file-system "$folder"
      fail "no bare $suite: is there a network, and does its mirror have $suite?"
    fi
    cp /etc/resolv.conf /etc/hosts "$folder/etc/"
    ;;
  run)
    folder=$1
    shift
    [[ -e $folder/etc/debian_version ]] || fail "there is no Debian in $folder; bare.sh make makes one"
    mount -t proc proc "$folder/proc"
    mount --rbind /dev "$folder/dev"
    mount --make-rslave "$folder/dev"
    trap 'umount -l "$folder/dev" "$folder/proc"' EXIT
    chroot "$folder" /usr/bin/env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive "$@"
    ;;
  drop)
    [[ -e $1/etc/debian_version ]] || fail "there is no Debian in $1"
    ! grep -q " $(readlink -f "$1")/" /proc/mounts || fail "$1 has something mounted"
    rm -rf --one-file-system "$1"
    ;;
  *) fail "unknown command $verb; choose from make, run, drop" ;;
esac

#!/usr/bin/env bash
# build.sh OUT [SUITE…]   makes the Debian packages of a release in the folder OUT: posenc, libposenc-c0, libposenc-dev and
# python3-posenc, for Debian 12 (bookworm) and 13 (trixie) or those that are named. Each is built on the release it is for, a bare
# one in a folder, by dpkg-buildpackage, and checked by lintian. Needs root or sudo.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
root=$(cd "$here/../.." && pwd)
source "$root/cmake/setup.sh"
say() { printf 'deb: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}
(($# >= 1)) || { sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
declare -A number=([bookworm]=12 [trixie]=13)
out=$1
shift
suites=("$@")
((${#suites[@]})) || suites=(bookworm trixie)
for suite in "${suites[@]}"; do [[ -n ${number[$suite]:-} ]] || fail "unknown release $suite; choose from bookworm, trixie"; done
command -v apt-get >/dev/null || fail "apt-get is missing: Debian packages are made on Debian or Ubuntu"
if ((EUID != 0)); then
  sudo -n true 2>/dev/null || fail "root is needed to make a bare Debian: run this as root, or where sudo asks for no password"
  exec sudo --preserve-env=SOURCE_DATE_EPOCH,POSENC_RELEASE_WORK,POSENC_JOBS,DEBFULLNAME,DEBEMAIL "${BASH_SOURCE[0]}" "$out" "${suites[@]}"
fi
mkdir -p "$out" 2>/dev/null && [[ -w $out ]] || fail "the folder $out cannot be written"
out=$(cd "$out" && pwd)
work=${POSENC_RELEASE_WORK:-$root/build/release-work}
mkdir -p "$work"
work=$(cd "$work" && pwd)
jobs=${POSENC_JOBS:-$(nproc)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
version=$(sed -nE 's/^#define POSENC_VERSION "([0-9.]+)"$/\1/p' "$root/include/posenc/version.h")
maintainer="${DEBFULLNAME:-posenc maintainers} <${DEBEMAIL:-maintainers@posenc.invalid}>"
umask 022

# needs: the packages to build with, from debian/control.
needs() { sed -nE '/^Build-Depends:/,/^[A-Z]/{s/^ ([a-z0-9.+-]+).*/\1/p}' "$here/debian/control" | sed 's/^debhelper-compat$/debhelper/; s/^dh-sequence-python3$/dh-python/'; }

# packages SUITE
packages() {
  local suite=$1 system=$work/deb-$1 tree=/build/posenc-$version log=$work/deb-$1.log
  say "$suite: a bare Debian ${number[$suite]} with what the build needs"
  mapfile -t names < <(needs)
  "$root/packaging/tests/bare.sh" make "$suite" "$system" build-essential lintian "${names[@]}"
  mkdir -p "$system$tree"
  (cd "$root" && tar -c --exclude=./build --exclude=./.git .) | tar -x -C "$system$tree"
  cp -r "$here/debian" "$system$tree/debian"
  sed -i "s/^Maintainer: .*/Maintainer: $maintainer/" "$system$tree/debian/control"
  cat >"$system$tree/debian/changelog" <<TEXT
posenc ($version-1~deb${number[$suite]}) $suite; urgency=medium

  * posenc $version: CHANGELOG.md says what changed.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
TEXT
  cp -r "$work/ptx" "$system/build/ptx"
  say "$suite: dpkg-buildpackage, which takes some minutes"
  if ! "$root/packaging/tests/bare.sh" run "$system" env DEB_BUILD_OPTIONS="parallel=$jobs noautodbgsym" POSENC_PTX_FROM=/build/ptx \
    bash -c "cd $tree && dpkg-buildpackage -b -us -uc" </dev/null >"$log" 2>&1; then
    grep -E 'error|FAILED' "$log" | sed -n '1,5p' >&2 || true
    fail "$suite: dpkg-buildpackage failed; the whole log is $log"
  fi
  # Of the warnings, those that concern a package in Debian's own archive are expected: no bug number, no address.
  if ! "$root/packaging/tests/bare.sh" run "$system" bash -c "cd /build && lintian --fail-on error --allow-root *.changes" \
    </dev/null >"$work/lintian-$suite.log" 2>&1; then
    grep '^E:' "$work/lintian-$suite.log" >&2 || true
    fail "$suite: lintian found errors; all it says is in $work/lintian-$suite.log"
  fi
  mv "$system"/build/*.deb "$out/"
  "$root/packaging/tests/bare.sh" drop "$system"
}

set_up mmdebstrap=mmdebstrap || fail "mmdebstrap, which makes bare systems, is not installed"
say "kernels for GPUs"
"$root/packaging/kernels.sh" "$work"
for suite in "${suites[@]}"; do packages "$suite"; done

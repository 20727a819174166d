#!/usr/bin/env bash
# sysroot.sh ARCHITECTURE FOLDER PACKAGE…   unpacks Debian's packages of another architecture (amd64, arm64), with all that they
# depend on, into FOLDER: what a cross compiler needs to link and an emulator to run. Nothing is installed on this machine,
# and no root is needed. Packages are those of this machine's release. Does nothing where FOLDER already has them.
set -euo pipefail
(($# >= 3)) || { sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
architecture=$1 folder=$2
shift 2
wanted="$architecture $*"
[[ ! -e $folder/.packages || $(<"$folder/.packages") != "$wanted" ]] || exit 0
for tool in apt-get dpkg-deb; do
  command -v "$tool" >/dev/null || { echo "sysroot: $tool is missing: packages of $architecture need Debian or Ubuntu" >&2; exit 1; }
done
rm -rf "$folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
mkdir -p "$state"/{lists/partial,archives/partial}
: >"$state/status"  # nothing is installed there yet, so every dependency is fetched
apt=(apt-get -qq -o "Dir::State=$state" -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status"
  -o "Dir::Cache=$state" -o "Dir::Cache::archives=$state/archives" -o "APT::Architecture=$architecture"
  -o "APT::Architectures=$architecture" -o "APT::Sandbox::User=root" -o Debug::NoLocking=1)
if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends --download-only "$@"; } \
  </dev/null >"$state/log" 2>&1; then
  cat "$state/log" >&2
  rm -rf "$folder"
  echo "sysroot: apt-get could not fetch for $architecture: $*" >&2
  exit 1
fi
# Before Debian 13 /lib is a folder in some packages and a link to usr/lib in a real system.
mkdir -p "$folder"/usr/{bin,sbin,lib,lib64}
for part in bin sbin lib lib64; do ln -s "usr/$part" "$folder/$part"; done
# tar follows these links with --keep-directory-symlink, which dpkg-deb -x does not.
for package in "$state"/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink --no-same-owner -C "$folder"
done
# Links to /… would lead out of the folder; relative ones also let it be moved.
while IFS= read -r -d '' link; do
  target=$(readlink "$link")
  ln -sfnr "$folder$target" "$link"
done < <(find "$folder"/usr/lib* -type l -lname '/*' -print0)
echo "$wanted" >"$folder/.packages"

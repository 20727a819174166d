#!/usr/bin/env bash
# deb.sh FOLDER SUITE   installs the Debian packages of FOLDER that are for SUITE (bookworm, trixie) into a bare Debian, uses each, and
# removes them, as docs/guide/install.md has it: the program computes, a project is built with find_package and with pkg-config, Python rotates, and nothing is left.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
root=$(cd "$here/../.." && pwd)
fail() {
  echo "deb test: $*" >&2
  exit 1
}
(($# == 2)) || { sed -n '2,3s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
declare -A number=([bookworm]=12 [trixie]=13)
files=$1 suite=$2
[[ -n ${number[$suite]:-} ]] || fail "unknown release $suite; choose from bookworm, trixie"
compgen -G "$files/posenc_*~deb${number[$suite]}_$(dpkg --print-architecture).deb" >/dev/null || fail "$files has no packages for $suite and this machine"
folder=$(mktemp -d)/$suite
"$here/bare.sh" make "$suite" "$folder"
trap '"$here/bare.sh" drop "$folder"' EXIT
mkdir -p "$folder/opt/try"
cp "$files"/*"~deb${number[$suite]}_$(dpkg --print-architecture).deb" "$folder/opt/try/"
cp -r "$root/examples" "$folder/opt/try/"
cat >"$folder/opt/try/in.sh" <<'SCRIPT'
set -eu
cd /opt/try
version=$1
expected='0 The  0.000  1.000  0.000  1.000
1 cat  0.841  0.540  0.010  1.000
2 sat  0.909 -0.416  0.020  1.000'
fail() { echo "deb test: $*" >&2; exit 1; }
installed() { apt-get install -y -q --no-install-recommends "$@" >/tmp/log 2>&1 || { tail -n 5 /tmp/log; fail "apt-get install $*"; }; }
apt-get update -q >/dev/null 2>&1 || fail "apt-get update"

echo "--- posenc"
installed ./posenc_*.deb
posenc --version | grep -F "$version" || fail "posenc --version"
got=$(posenc table sinusoidal --width 4 --positions 0:3)
echo "$got"
[[ $got == *0.841* ]] || fail "posenc table"
for file in /usr/share/man/man1/posenc.1.gz /usr/share/bash-completion/completions/posenc /usr/share/zsh/vendor-completions/_posenc \
  /usr/share/fish/vendor_completions.d/posenc.fish; do
  grep -q "^$file\$" /var/lib/dpkg/info/posenc.list || fail "$file is not in the package"
done

echo "--- libposenc-dev"
installed g++ cmake make pkg-config
installed ./libposenc-c0_*.deb ./libposenc-dev_*.deb
cmake -S examples/cmake_project -B /tmp/consumer >/tmp/log 2>&1 && cmake --build /tmp/consumer >>/tmp/log 2>&1 || { cat /tmp/log; fail "find_package"; }
[ "$(/tmp/consumer/positions)" = "$expected" ] || fail "find_package: $(/tmp/consumer/positions)"
g++ -std=c++20 examples/cmake_project/main.cpp -o /tmp/positions $(pkg-config --cflags --libs posenc) || fail "pkg-config"
[ "$(/tmp/positions)" = "$expected" ] || fail "pkg-config: $(/tmp/positions)"
[ "$(pkg-config --modversion posenc)" = "$version" ] || fail "pkg-config --modversion"
cat >/tmp/c.c <<'CODE'
#include <posenc/posenc_c.h>
#include <stdio.h>
int main(void) { printf("%d\n", posenc_abi() == POSENC_C_ABI); return 0; }
CODE
gcc /tmp/c.c -o /tmp/c $(pkg-config --cflags --libs posenc_c) || fail "pkg-config posenc_c"
[ "$(/tmp/c)" = 1 ] || fail "libposenc_c"

echo "--- python3-posenc"
installed ./python3-posenc_*.deb
code="import array, posenc
x = memoryview(array.array('f', [1, 0] * 3)).cast('B').cast('f', (3, 2))
posenc.rotate(x, posenc.prepare(posenc.Rope(dims=2)))
print(posenc.__version__, round(x[1, 0], 4))"
[ "$(cd /tmp && python3 -c "$code")" = "$version 0.5403" ] || fail "python: $(cd /tmp && python3 -c "$code")"

echo "--- removed"
packages="posenc libposenc-c0 libposenc-dev python3-posenc"
for package in $packages; do dpkg -L $package; done | sort -u >/tmp/files
apt-get purge -y -q $packages >/tmp/log 2>&1 || { tail -n 5 /tmp/log; fail "apt-get purge"; }
while read -r file; do [ -d "$file" ] || [ ! -e "$file" ] || fail "left behind: $file"; done </tmp/files
[ ! -e /usr/lib/python3/dist-packages/posenc ] || fail "left behind: the package's folder"
[ ! -e /usr/include/posenc ] || fail "left behind: the headers"
SCRIPT
version=$(sed -nE 's/^#define POSENC_VERSION "([0-9.]+)"$/\1/p' "$root/include/posenc/version.h")
"$here/bare.sh" run "$folder" bash /opt/try/in.sh "$version" || fail "$suite: the packages do not work"
echo "deb test: $suite: ok"

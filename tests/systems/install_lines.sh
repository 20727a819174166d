#!/usr/bin/env bash
# install_lines.sh   runs README's lines from source to an installed program, as written, then uses what they
# installed: the program, the library by CMake and by pkg-config, the C API. Run in a clone in a system of its own: it
# installs below ~/.local.
set -euo pipefail
root=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")")
cd "$root"
fail() {
  echo "install_lines: $*" >&2
  exit 1
}
# The block of ```sh that has the line of cmake --install.
mapfile -t lines < <(awk '/^```sh/ {block = ""; inside = 1; next} /^```/ {if (inside && block ~ /cmake --install/) printf "%s", block; inside = 0} inside {block = block $0 "\n"}' README.md)
((${#lines[@]} >= 2)) || fail "README.md has no block with cmake --install"
for line in "${lines[@]}"; do
  echo "+ $line"
  bash -euo pipefail -c "$line" </dev/null
done
prefix=$HOME/.local
version=$(sed -nE 's/^#define POSENC_VERSION "(.*)"/\1/p' include/posenc/version.h)
"$prefix/bin/posenc" --version | grep -F "$version" || fail "posenc --version does not say $version"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "--- find_package"
cmake -S examples/cmake_project -B "$work/project" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" || { cat "$work/log"; fail "find_package"; }
cmake --build "$work/project" >>"$work/log" || { cat "$work/log"; fail "find_package"; }
"$work/project/positions"
echo "--- pkg-config"
library=$(find "$prefix" -name posenc.pc)
export PKG_CONFIG_PATH=${library%/*}
# Without -r, read understands the backslash that pkg-config writes before a space in a path.
read -a flags < <(pkg-config --cflags --libs posenc)
c++ -std=c++20 examples/cmake_project/main.cpp -o "$work/by_pkg_config" "${flags[@]}"
cmp <("$work/by_pkg_config") <("$work/project/positions") || fail "pkg-config and find_package give programs that differ"
read -a flags < <(pkg-config --cflags --libs posenc_c)
for example in examples/c/*.c; do
  cc -std=c11 "$example" -o "$work/c" "${flags[@]}" -lm
  LD_LIBRARY_PATH=$(pkg-config --variable=libdir posenc_c) "$work/c" >/dev/null || fail "$example"
done
echo "install_lines: ok, posenc $version"

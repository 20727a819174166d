#!/usr/bin/env bash
# fetch_test.sh compile|run SOURCE WORK
# The CMake lines of docs/guide/embedding.md, from a local clone of this tree: `compile` configures the project and compiles its own
# source, `run` builds all of it and runs it.
set -euo pipefail
kind=$1 source=$2 work=$3
page=$source/docs/guide/embedding.md
fail() {
  echo "packaging.fetch-$kind: $*" >&2
  exit 1
}

rm -rf "$work"
mkdir -p "$work/project" "$work/clone"
# A repository of the tree as it is now, with the tag that the page names.
if git -C "$source" rev-parse --git-dir >"$work/log" 2>&1; then
  git -C "$source" ls-files -z --cached --others --exclude-standard |
    (cd "$source" && xargs -0 -I{} sh -c 'test ! -f "$1" || printf "%s\0" "$1"' sh {}) |
    tar -C "$source" --null -cf - -T - | tar -C "$work/clone" -xf -
else # an unpacked release
  tar -C "$source" --exclude=./build -cf - . | tar -C "$work/clone" -xf -
fi
version=$(sed -nE 's/^#define POSENC_VERSION "(.*)"/\1/p' "$source/include/posenc/version.h")
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@localhost GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@localhost
{
  git -C "$work/clone" init -q && git -C "$work/clone" add -A && git -C "$work/clone" commit -qm all &&
    git -C "$work/clone" tag "v$version"
} >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "no repository"; }

# The first block of CMake is the CMakeLists.txt, the first of C++ the main.cpp.
block() { awk -v open="\`\`\`$1" '$1 == open && !done { inside = 1; next } $0 == "```" { if (inside) done = 1; inside = 0 } inside' "$page"; }
block cmake >"$work/project/CMakeLists.txt"
block cpp >"$work/project/main.cpp"
grep -q "GIT_TAG v$version\$" "$work/project/CMakeLists.txt" || fail "docs/guide/embedding.md does not have GIT_TAG v$version"
sed -i "s|GIT_REPOSITORY .*|GIT_REPOSITORY file://$work/clone|" "$work/project/CMakeLists.txt"

cmake -S "$work/project" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DFETCHCONTENT_TRY_FIND_PACKAGE_MODE=NEVER \
  -DPOSENC_CUDA=OFF >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "CMake"; }
[[ -f $work/build/_deps/posenc-src/include/posenc/posenc.h ]] || fail "nothing was fetched"
grep -q posenc_cli "$work/build/build.ninja" && fail "the program came along"
if [[ $kind == compile ]]; then
  cmake --build "$work/build" --target CMakeFiles/my_engine.dir/main.cpp.o >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "main.cpp"; }
else
  cmake --build "$work/build" --target my_engine >"$work/log" 2>&1 || { tail -n 50 "$work/log" >&2; fail "the build"; }
  got=$("$work/build/my_engine")
  [[ $got == "0.8415 0.5403" ]] || fail "my_engine printed $got"
fi
echo "packaging.fetch-$kind: ok"

#!/usr/bin/env bash
# install_test.sh static|shared SOURCE BUILD
# Installs posenc into a fresh prefix, moves the prefix, and builds and runs the example project against it: once
# with find_package, once with pkg-config.
set -euo pipefail
kind=$1 source=$2 build=$3
work=$build/install-test-$kind
prefix=$work/prefix
expected='0 The  0.000  1.000  0.000  1.000
1 cat  0.841  0.540  0.010  1.000
2 sat  0.909 -0.416  0.020  1.000'

fail() {
  echo "install.$kind: $*" >&2
  exit 1
}

rm -rf "$work/first" "$prefix" "$work/consumer"
mkdir -p "$work"
# `./run` builds the program alone, and an install builds what is missing: one such file is removed.
rm -f "$build/shell/posenc.fish"
cmake --install "$build" --prefix "$work/first" >"$work/install.log"
if [[ $(id -u) != 0 ]]; then  # root may write anywhere
  mkdir -p "$work/closed" && chmod 555 "$work/closed"
  if said=$(cmake --install "$build" --prefix "$work/closed/posenc" 2>&1); then fail "installed where nobody may write"; fi
  grep -F "no permission to write to $work/closed" <<<"$said" >/dev/null || fail "a closed prefix: $said"
fi
mv "$work/first" "$prefix"

echo "--- what was installed"
version=$(sed -nE 's/^#define POSENC_VERSION "(.*)"/\1/p' "$work/prefix/include/posenc/version.h")
library=$(find "$prefix" -name 'libposenc.*' -print -quit)
[[ -n $library ]] || fail "no library"
libdir=$(dirname "$library")
for file in "$prefix/include/posenc/posenc.h" "$prefix/bin/posenc" "$libdir/pkgconfig/posenc.pc" \
  "$libdir/cmake/posenc/posencConfig.cmake" "$libdir/cmake/posenc/posencConfigVersion.cmake" \
  "$prefix/share/man/man1/posenc.1" "$prefix/share/bash-completion/completions/posenc" \
  "$prefix/share/zsh/site-functions/_posenc" "$prefix/share/fish/vendor_completions.d/posenc.fish"; do
  [[ -f $file ]] || fail "missing: $file"
done
[[ $(ls "$prefix/bin") == posenc ]] || fail "something beside the program in bin/: $(ls "$prefix/bin")"
[[ -z $(find "$prefix/include" -type f ! -name '*.h') ]] || fail "something beside headers in include/"
(cd "$source/include" && find posenc -name '*.h') | while read -r header; do
  [[ -f $prefix/include/$header ]] || fail "header not installed: $header"
done
if grep -rnF -e "$source" -e "$work/first" "$libdir/cmake" "$libdir/pkgconfig"; then
  fail "the package names folders of the machine it was built on"
fi

if [[ $kind == shared ]]; then
  echo "--- what the library shows"
  objdump -p "$library" | grep -F "SONAME" | grep -F ".so.${version%.*}" || fail "the SONAME has no major and minor version"
  strangers=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -vE '^(_ZNK?6posenc|_ZT[ISVHW]N6posenc|posenc_|__odr_asan|___asan)' || true)
  [[ -z $strangers ]] || fail "names of others are shown: $(head -n 3 <<<"$strangers")"
fi

if [[ $kind == static ]]; then
  echo "--- what a shared library of it shows"
  read -a needed < <(PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --static --libs posenc | sed 's/-lposenc *//')
  "${CXX:-c++}" -shared -o "$work/libposenc.so" -Wl,--whole-archive "$library" -Wl,--no-whole-archive \
    -Wl,--version-script="$source/cmake/posenc.map" "${needed[@]}"
  nm -D --defined-only "$work/libposenc.so" | awk '{print $3}' | sort -u >"$work/shown"
  nm --defined-only -g "$library" | awk '$2 ~ /[TDBRW]/ {print $3}' | grep -E '^_ZNK?6posenc' | sort -u >"$work/names"
  rooms='(6attend|6models|7kernels|7schemes|8numerics|9diagnosis|10properties)'
  strangers=$(grep -vE '^(_ZNK?6posenc|_ZT[ISV]N6posenc5ErrorE|posenc_)' "$work/shown" || true)
  [[ -z $strangers ]] || fail "names of others are shown: $(head -n 3 <<<"$strangers")"
  inner=$(grep -E "^_ZNK?6posenc$rooms" "$work/shown" || true)
  [[ -z $inner ]] || fail "names of rooms are shown: $(head -n 3 <<<"$inner")"
  hidden=$(comm -23 "$work/names" "$work/shown" | grep -vE "^_ZNK?6posenc$rooms" || true)
  [[ -z $hidden ]] || fail "public names are hidden: $(head -n 3 <<<"$hidden" | c++filt)"
  echo "$(wc -l <"$work/shown") names, of $(wc -l <"$work/names")"
fi

echo "--- the program"
version=$(sed -nE 's/^#define POSENC_VERSION "(.*)"/\1/p' "$prefix/include/posenc/version.h")
"$prefix/bin/posenc" --version | grep -F "$version" || fail "posenc --version does not say $version"

echo "--- find_package"
cmake -S "$source/examples/cmake_project" -B "$work/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$prefix"
cmake --build "$work/consumer"
got=$("$work/consumer/positions")
[[ $got == "$expected" ]] || fail "find_package: the program printed"$'\n'"$got"

echo "--- pkg-config"
export PKG_CONFIG_PATH=$libdir/pkgconfig
[[ $(pkg-config --modversion posenc) == "$version" ]] || fail "pkg-config gives another version"
# No --static: plain --libs must link whichever library there is.
static=()
# Without -r, read understands the backslash that pkg-config writes before a space in a path.
read -a flags < <(pkg-config --cflags --libs "${static[@]}" posenc)
"${CXX:-c++}" -std=c++20 ${CXXFLAGS:-} "$source/examples/cmake_project/main.cpp" -o "$work/consumer/with_pkg_config" "${flags[@]}"
got=$(LD_LIBRARY_PATH=$libdir "$work/consumer/with_pkg_config")
[[ $got == "$expected" ]] || fail "pkg-config: the program printed"$'\n'"$got"

if [[ $kind == static ]]; then
  # block PAGE LANGUAGE N: the N-th block of a guide in that language.
  block() {
    awk -v open="\`\`\`$2" -v wanted="$3" '$1 == open && !inside { inside = 1; ++seen; next } $0 == "```" { inside = 0 }
      inside && seen == wanted' "$source/docs/guide/$1"
  }
  echo "--- the CMake lines of the guides"
  for guide in "engines.md 1" "embedding.md 3"; do
    read -r page number <<<"$guide"
    mkdir -p "$work/consumer/$page"
    { echo $'cmake_minimum_required(VERSION 3.25)\nproject(guide LANGUAGES CXX)'; block "$page" cmake "$number"; } |
      sed -E "s|^target_link_libraries\((\w+) |add_executable(\1 $source/examples/cmake_project/main.cpp)\n&|" >"$work/consumer/$page/CMakeLists.txt"
    grep -q '^find_package(posenc' "$work/consumer/$page/CMakeLists.txt" || fail "$page: no find_package"
    cmake -S "$work/consumer/$page" -B "$work/consumer/$page/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" ||
      { cat "$work/log" >&2; fail "$page: CMake"; }
  done

  echo "--- c.md: the first program, by its own lines"
  mkdir -p "$work/consumer/c"
  block c.md c 1 >"$work/consumer/c/program.c"
  (cd "$work/consumer/c" && eval "$(block c.md sh 1)" && LD_LIBRARY_PATH=$libdir ./program) || fail "c.md: the first program"
  { printf 'cmake_minimum_required(VERSION 3.25)\nproject(guide LANGUAGES C)\n'; block c.md cmake 1; } |
    sed -E 's|^target_link_libraries\((\w+) |add_executable(\1 program.c)\n&|' >"$work/consumer/c/CMakeLists.txt"
  cmake -S "$work/consumer/c" -B "$work/consumer/c/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" &&
    cmake --build "$work/consumer/c/build" >>"$work/log" && "$work/consumer/c/build/program" ||
    { cat "$work/log" >&2; fail "c.md: find_package"; }

  if command -v mpicxx mpirun >/dev/null; then
    echo "--- scaling.md: a ring"
    ln -s "$source/examples" "$work/consumer/examples"
    (cd "$work/consumer" && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
      PRTE_MCA_rmaps_default_mapping_policy=slot:oversubscribe LD_LIBRARY_PATH=$libdir &&
      eval "$(block scaling.md sh 2)") >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "scaling.md: the ring"; }
  fi
fi

echo "--- lessons"
# A library of its own: the other has none of it.
lessons=$(find "$libdir" -name 'libposenc_lessons.*' -print -quit)
for pair in "$library 0" "$lessons 1"; do
  read -r file wanted <<<"$pair"
  count=$(nm -C $([[ $kind == static ]] || echo -D) --defined-only "$file" 2>/dev/null | grep -c ' posenc::content_files()' || true)
  ((count == wanted)) || fail "$file defines content_files() $count times"
done
mkdir -p "$work/consumer/lessons"
cat >"$work/consumer/lessons/main.cpp" <<'END'
#include <posenc/lessons.h>
#include <cstdio>
int main() { std::printf("%s\n", posenc::content_files().empty() ? "nothing" : "lessons"); }
END
cat >"$work/consumer/lessons/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(reader LANGUAGES CXX)
find_package(posenc 0.1 REQUIRED)
add_executable(reader main.cpp)
target_link_libraries(reader PRIVATE posenc::lessons)
END
cmake -S "$work/consumer/lessons" -B "$work/consumer/lessons/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$work/lessons.log" &&
  cmake --build "$work/consumer/lessons/build" >>"$work/lessons.log" || { cat "$work/lessons.log"; fail "posenc::lessons"; }
[[ $("$work/consumer/lessons/build/reader") == lessons ]] || fail "posenc::lessons has no content"
read -a flags < <(pkg-config --cflags --libs "${static[@]}" posenc_lessons)
"${CXX:-c++}" -std=c++20 ${CXXFLAGS:-} "$work/consumer/lessons/main.cpp" -o "$work/consumer/lessons/reader" "${flags[@]}"
[[ $(LD_LIBRARY_PATH=$libdir "$work/consumer/lessons/reader") == lessons ]] || fail "pkg-config posenc_lessons"

echo "--- what posenc.h includes"
# What engines include everywhere stays light (docs/decisions/0025).
read_by=$("${CXX:-c++}" -std=c++20 ${CXXFLAGS:-} -M -I"$prefix/include" -include posenc/posenc.h -x c++ /dev/null)
for heavy in /algorithm /functional /memory /map posenc/npy.h posenc/json.h posenc/gguf.h posenc/figures.h posenc/diagnosis.h \
  posenc/story.h posenc/cuda.h; do
  ! grep -qE "$heavy( |\$)" <<<"$read_by" || fail "posenc.h includes $heavy"
done

echo "--- an older C++"
if said=$("${CXX:-c++}" -std=c++17 ${CXXFLAGS:-} -fsyntax-only -I"$prefix/include" -include posenc/posenc.h -x c++ /dev/null 2>&1); then
  fail "the headers compile as C++17"
fi
grep -F "posenc needs C++20" <<<"$said" >/dev/null || fail "C++17 is refused without a reason: $(head -n 3 <<<"$said")"
echo "install.$kind: ok"

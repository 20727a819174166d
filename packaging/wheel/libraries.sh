#!/usr/bin/env bash
# libraries.sh MACHINE WORK PREFIX   builds zlib, fmt, Highway and oneTBB as static libraries for MACHINE (x86_64, aarch64) into
# PREFIX, from the source packages of this Debian; WORK keeps the sources. Does nothing where PREFIX has them already. Debian's own
# packages have no static library of three of them, and the shared ones need a newer glibc than wheels may.
set -euo pipefail
(($# == 3)) || { sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
machine=$1 work=$2 prefix=$3
packages=(zlib fmtlib highway onetbb)
jobs=${POSENC_JOBS:-$(nproc)}
[[ ! -e $prefix/.complete ]] || exit 0

fail() {
  echo "libraries: $*" >&2
  exit 1
}

# Sources are read through apt, which checks Debian's signatures, with lists of its own: nothing of this machine is changed.
fetch() {
  local state=$work/apt sources
  for tool in apt-get dpkg-source; do
    command -v "$tool" >/dev/null || fail "$tool is missing: wheels are made on Debian, from its source packages"
  done
  rm -rf "$work/sources" "$state"
  mkdir -p "$work/sources" "$state"/{lists/partial,archives/partial,parts}
  : >"$state/status"
  shopt -s nullglob
  for sources in /etc/apt/sources.list.d/*.sources; do
    sed 's/^Types:.*/Types: deb-src/' "$sources" >"$state/parts/$(basename "$sources")"
  done
  for sources in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [[ ! -e $sources ]] || sed -n 's/^deb /deb-src /p' "$sources" >"$state/parts/$(basename "$sources" .list).list"
  done
  local -a apt=(apt-get -qq -o "Dir::State=$state" -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status"
    -o "Dir::Cache=$state" -o "Dir::Cache::archives=$state/archives" -o Dir::Etc::sourcelist=/dev/null
    -o "Dir::Etc::sourceparts=$state/parts" -o APT::Sandbox::User=root -o Debug::NoLocking=1)
  if ! { "${apt[@]}" update && cd "$work/sources" && "${apt[@]}" source "${packages[@]}"; } </dev/null >"$work/fetch.log" 2>&1; then
    cat "$work/fetch.log" >&2
    rm -rf "$work/sources"
    fail "no source packages (${packages[*]}): is there a network?"
  fi
  touch "$work/sources/.complete"
}
[[ -e $work/sources/.complete ]] || (fetch)

compiler=$machine-linux-gnu
flags="-O2 -fPIC -ffile-prefix-map=$work=."
rm -rf "$prefix" "$work/$machine"
mkdir -p "$prefix" "$work/$machine"
log=$work/$machine/log

# cmake_library NAME OPTION…
cmake_library() {
  local name=$1 source
  shift
  source=$(compgen -G "$work/sources/$name-*/CMakeLists.txt") || fail "the source package of $name has no CMakeLists.txt"
  cmake -S "$(dirname "$source")" -B "$work/$machine/$name" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_INSTALL_PREFIX=$prefix" \
    -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_C_COMPILER="$compiler-gcc" -DCMAKE_CXX_COMPILER="$compiler-g++" \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$machine" -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" \
    -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF "$@" &&
    cmake --build "$work/$machine/$name" --parallel "$jobs" && cmake --install "$work/$machine/$name"
}
zlib_library() {
  cp -r "$work"/sources/zlib-* "$work/$machine/zlib" && cd "$work/$machine/zlib" &&
    CHOST=$compiler CC=$compiler-gcc AR=$compiler-ar RANLIB=$compiler-ranlib CFLAGS=$flags ./configure --static --prefix="$prefix" &&
    make -j "$jobs" libz.a && make install
}
{
  (zlib_library) &&
    cmake_library fmtlib -DFMT_TEST=OFF -DFMT_DOC=OFF &&
    cmake_library highway -DHWY_ENABLE_TESTS=OFF -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_CONTRIB=OFF -DHWY_SYSTEM_GTEST=ON &&
    cmake_library onetbb -DTBB_TEST=OFF -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF -DTBBMALLOC_PROXY_BUILD=OFF \
      -DTBB_DISABLE_HWLOC_AUTOMATIC_SEARCH=ON
} </dev/null >"$log" 2>&1 || {
  tail -n 30 "$log" >&2
  fail "a library could not be built for $machine; the whole log is $log"
}
rm -rf "${work:?}/$machine/"{zlib,fmtlib,highway,onetbb}
touch "$prefix/.complete"

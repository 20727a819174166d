#!/usr/bin/env bash
# Builds table_bytes in many ways and compares the published tables on each:
#   g++ and clang, -O0 and -O3; clang with Highway's emulated target; arm64 with SVE and x86-64 with SSSE3, SSE4 and
#   AVX2 under qemu (Debian's qemu-user and cross compiler, installed if missing: run as root once).
#   every_machine.sh [native|emulated|arm64-sve|x86-64]…      all of them without arguments
# An hour of emulation is not needed: the whole takes about fifteen minutes on two cores.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/every-machine
mkdir -p "$work"
machine=$(uname -m)

mapfile -t sources < <(find "$root"/src/{numerics,schemes,kernels} -name '*.cpp' -not -path '*/cuda/*' | sort)
sources+=("$here/table_bytes.cpp" "$root"/src/forms/*.cpp)
flags=(-std=c++20 -DPOSENC_CPU_BACKEND=1 -DFMT_HEADER_ONLY -ffp-contract=off -I"$root/include" -I"$root/src")

# compile OUTPUT COMPILER FLAG…: each source is an object first, so that two cores help.
compile() {
  local output=$1 compiler=$2 objects=$1.objects
  shift 2
  rm -rf "$objects"  # what a source that is gone left there would be linked, too
  mkdir -p "$objects"
  printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -I{} sh -c \
    'source=$1 objects=$2; shift 2; exec "$@" -c "$source" -o "$objects/$(echo "$source" | cksum | cut -d" " -f1).o"' \
    sh {} "$objects" "$compiler" "${flags[@]}" "$@"
  "$compiler" "$objects"/*.o "${link[@]}" -o "$output"
}

need() {  # need COMMAND PACKAGE…
  command -v "$1" >/dev/null && return
  apt-get install -y -qq --no-install-recommends "${@:2}" >/dev/null
}

native() {
  link=(-lhwy -ltbb -lpthread)
  for compiler in g++ clang++-14; do
    for level in -O0 -O3; do
      echo "== $machine, $compiler $level"
      compile "$work/native-$compiler$level" "$compiler" "$level"
      "$here/check_tables.sh" "$work/native-$compiler$level"
    done
  done
}

emulated() {
  link=(-lhwy -ltbb -lpthread)
  echo "== $machine, clang++-14, Highway's emulated vectors"
  compile "$work/emulated" clang++-14 -O2 -DHWY_COMPILE_ONLY_EMU128
  "$here/check_tables.sh" "$work/emulated"
}

arm64_sve() {
  [[ $machine == aarch64 ]] || { echo "== arm64 with SVE: only from an arm64 machine"; return; }
  need qemu-aarch64 qemu-user
  link=(-lhwy -ltbb -lpthread)
  echo "== arm64 with SVE, under qemu"
  compile "$work/sve" g++ -O2 -DHWY_COMPILE_ALL_ATTAINABLE
  "$here/check_tables.sh" "$work/sve" qemu-aarch64 -cpu max,sve128=on,sve256=on
}

# The few libraries come as amd64 packages, unpacked beside the build; nothing of the system is changed.
x86_64() {
  need qemu-x86_64 qemu-user
  need x86_64-linux-gnu-g++ g++-x86-64-linux-gnu
  local debs=$work/x86-64-packages libraries=$work/x86-64-root
  if [[ ! -d $libraries ]]; then
    mkdir -p "$debs/lists/partial" "$debs/cache/archives/partial"
    local apt=(apt-get -qq -o Dir::State::lists="$debs/lists" -o Dir::Cache="$debs/cache" -o APT::Sandbox::User=root
               -o APT::Architectures::="$(dpkg --print-architecture)" -o APT::Architectures::=amd64)
    "${apt[@]}" update
    (cd "$debs" && "${apt[@]}" download libhwy1:amd64 libtbb12:amd64 libtbbmalloc2:amd64)
    for deb in "$debs"/*.deb; do dpkg-deb -x "$deb" "$libraries"; done
  fi
  local lib=$libraries/usr/lib/x86_64-linux-gnu include=$work/x86-64-include
  # Headers are the same on every machine, but the system's own folder holds those of its C library, too.
  mkdir -p "$include"
  for name in hwy oneapi tbb fmt; do ln -sfn "/usr/include/$name" "$include/$name"; done
  link=(-L"$lib" -l:libhwy.so.1 -l:libtbb.so.12 -lpthread)
  echo "== x86-64, under qemu"
  compile "$work/x86-64" x86_64-linux-gnu-g++ -O2 -isystem "$include" -DHWY_COMPILE_ALL_ATTAINABLE
  "$here/check_tables.sh" "$work/x86-64" \
    qemu-x86_64 -cpu max -L /usr/x86_64-linux-gnu -E LD_LIBRARY_PATH="$lib:/usr/x86_64-linux-gnu/lib"
}

for part in "${@:-native emulated arm64-sve x86-64}"; do
  for one in $part; do
    case $one in
      native | emulated) "$one" ;;
      arm64-sve) arm64_sve ;;
      x86-64) x86_64 ;;
      *) echo "every_machine: unknown part '$one'" >&2; exit 2 ;;
    esac
  done
done
echo "every_machine: all tables have the published bytes"

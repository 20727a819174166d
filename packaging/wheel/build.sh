#!/usr/bin/env bash
# build.sh OUT [MACHINE…]   makes the Python wheels of a release in the folder OUT, for x86_64 and aarch64 or those that are named:
# this machine's with its compiler, the other by the cross compiler. One file serves Python 3.9 and later on every Linux with glibc
# 2.28 or later (manylinux_2_28); the kernels for GPUs are inside. What takes long is kept in POSENC_RELEASE_WORK: the kernels,
# which are the same for both, and the static libraries.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
root=$(cd "$here/../.." && pwd)
glibc=2.28
source "$root/cmake/setup.sh"
say() { printf 'wheel: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}
(($# >= 1)) || { sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
mkdir -p "$1" 2>/dev/null && [[ -w $1 ]] || fail "the folder $1 cannot be written"
out=$(cd "$1" && pwd)
shift
native=$(uname -m)
native=${native/arm64/aarch64}
case $native in
  aarch64) other=x86_64 ;;
  x86_64) other=aarch64 ;;
  *) fail "wheels are made on x86_64 and aarch64, and this is $native" ;;
esac
machines=("$@")
((${#machines[@]})) || machines=("$native" "$other")
for machine in "${machines[@]}"; do
  [[ $machine == "$native" || $machine == "$other" ]] || fail "expected x86_64 or aarch64, got $machine"
done
work=${POSENC_RELEASE_WORK:-$root/build/release-work}
mkdir -p "$work"
work=$(cd "$work" && pwd)
jobs=${POSENC_JOBS:-$(nproc)}
python=/usr/bin/python3
[[ -x $python ]] || python=python3
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)} PYTHONHASHSEED=0 LC_ALL=C.UTF-8
umask 022

# quietly LOG COMMAND…
quietly() {
  local log=$1
  shift
  if ! "$@" </dev/null >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    fail "failed: $1 $2 …; the whole log is $log"
  fi
}

# wheel MACHINE
wheel() {
  local machine=$1 prefix=$work/libraries-$1 build=$work/wheel-$1 stubs=$work/glibc-$1 tools=$1-linux-gnu log=$work/wheel-$1.log
  local libc include cross=()
  command -v "$tools-g++" >/dev/null || fail "$tools-g++ is missing (Debian's package g++-${machine/_/-}-linux-gnu)"
  say "$machine: libraries"
  "$here/libraries.sh" "$machine" "$work/libraries" "$prefix"
  libc=$(dirname "$("$tools-gcc" -print-file-name=libc.so.6)")
  quietly "$log" "$python" "$here/old_glibc.py" "$libc" "$glibc" "$stubs" "$tools-gcc"
  quietly "$log" "$tools-gcc" -O2 -fPIC -c "$here/newer.c" -o "$stubs/newer.o"
  rm -f "$stubs/libnewer.a"
  quietly "$log" "$tools-ar" rcsD "$stubs/libnewer.a" "$stubs/newer.o"

  include=$("$python" -c "import sysconfig; print(sysconfig.get_path('include'))")
  if [[ $machine != "$native" ]]; then
    local architecture=${machine/x86_64/amd64} sysroot=$work/sysroot-$machine
    architecture=${architecture/aarch64/arm64}
    "$root/cmake/sysroot.sh" "$architecture" "$sysroot" libpython3-dev
    include="$include;$sysroot/usr/include"  # pyconfig.h is the other machine's
    cross=(-DCMAKE_SYSTEM_NAME=Linux "-DCMAKE_SYSTEM_PROCESSOR=$machine" "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-$machine-static;-L;/usr/$tools"
      "-DPOSENC_PYTHON_INCLUDE=$include")
    command -v "qemu-$machine-static" >/dev/null || fail "qemu-$machine-static is missing (Debian's package qemu-user-static)"
  fi
  local map="-ffile-prefix-map=$root=. -ffile-prefix-map=$build=build -ffile-prefix-map=$work=work"
  # Static: of the shared C++ library an older Linux has an older version. Nothing of it is shown (src/c_api/posenc_c.map).
  local link="-L$stubs -static-libstdc++ -Wl,--as-needed"
  say "$machine: posenc, which takes some minutes"
  rm -rf "$build"
  export PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig
  quietly "$log" cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release "${cross[@]}" \
    -DCMAKE_CXX_COMPILER="$tools-g++" -DCMAKE_C_COMPILER="$tools-gcc" -DCMAKE_CXX_FLAGS="$map" -DCMAKE_C_FLAGS="$map" \
    -DCMAKE_SHARED_LINKER_FLAGS="$link -Wl,-z,defs" -DCMAKE_MODULE_LINKER_FLAGS="$link" \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON '-DCMAKE_INSTALL_RPATH=$ORIGIN/libs' \
    -DCMAKE_PREFIX_PATH="$prefix" -DZLIB_ROOT="$prefix" -DZLIB_USE_STATIC_LIBS=ON -DPOSENC_ROOM_UNITS=1 \
    -DPOSENC_BUILD_CLI=OFF -DPOSENC_LESSONS=OFF -DPOSENC_CUDA=ON -DPOSENC_PTX_FROM="$work/ptx"
  quietly "$log" env "LD_LIBRARY_PATH=$build" cmake --build "$build" --parallel "$jobs" --target posenc_python
  unset PKG_CONFIG_LIBDIR
  if [[ $machine == "$native" ]]; then  # what the library says of its schemes is the same for both
    quietly "$log" env "LD_LIBRARY_PATH=$build" cmake --build "$build" --target posenc_python_package
    cp "$build"/python/posenc/{schemes,keywords}.py "$work/"
  fi
  [[ -e $work/schemes.py && -e $work/keywords.py ]] ||
    fail "schemes.py and keywords.py are made by the wheel of $native; make that one first"

  local package=$build/package/posenc
  mkdir -p "$package/libs"
  cp "$root"/python/posenc/{*.py,*.pyi,py.typed} "$work"/{schemes,keywords}.py "$build/python/posenc/_posenc.abi3.so" "$package/"
  mkdir -p "$package/lab"
  cp "$root"/python/posenc/lab/*.py "$root/content/lab/claims.json" "$package/lab/"
  cp "$build/libposenc_c.so.0" "$package/libs/"
  "$tools-strip" --strip-unneeded "$package/_posenc.abi3.so" "$package/libs/libposenc_c.so.0"
  quietly "$log" "$python" "$here/check.py" "$package" "$machine" "$glibc"
  rm -rf "$build/tree" "$build/wheels"
  mkdir -p "$build/tree"
  cp -r "$root"/{python,include,LICENSE} "$build/tree/"
  (cd "$build/tree/python" && POSENC_PACKAGE=$package POSENC_WHEEL_PLATFORM=manylinux_${glibc/./_}_$machine \
    quietly "$log" "$python" setup.py -q bdist_wheel -d "$build/wheels")
  mv "$build"/wheels/posenc-*.whl "$out/"
  say "$machine: $(cd "$out" && ls posenc-*"$machine".whl)"
}

set_up "${build_needs[@]}" "${python_needs[@]}" "${wheel_needs[@]}" objdump=binutils dpkg-source=dpkg-dev make=make \
  x86_64-linux-gnu-g++=g++-x86-64-linux-gnu aarch64-linux-gnu-g++=g++-aarch64-linux-gnu "qemu-$other-static=qemu-user-static" ||
  fail "what wheels are made with is not installed (packages in the lines above)"
say "kernels for GPUs"
"$root/packaging/kernels.sh" "$work"
for machine in "${machines[@]}"; do wheel "$machine"; done

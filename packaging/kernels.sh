#!/usr/bin/env bash
# kernels.sh WORK   compiles the kernels for NVIDIA's GPUs into WORK/ptx, by clang++-22. They are text, the same for every machine, so
# wheels and Debian packages of both architectures take them from there. Does nothing where they are those of these sources.
set -euo pipefail
root=$(cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd)
fail() {
  echo "kernels: $*" >&2
  exit 1
}
(($# == 1)) || { sed -n '2,3s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
source "$root/cmake/setup.sh"
set_up "${build_needs[@]}" clang++-22=clang-22
mkdir -p "$1"
work=$(cd "$1" && pwd)
exec 8>"$work/ptx.lock"
flock 8
key=$( (cd "$root" && find src include cmake -type f | LC_ALL=C sort | xargs sha256sum && clang++-22 --version) | sha256sum)
[[ ! -e $work/ptx/key || $(<"$work/ptx/key") != "$key" ]] || exit 0
build=$work/ptx-build
rm -rf "$work/ptx" "$build"
if ! cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPOSENC_CUDA=ON -DPOSENC_BUILD_CLI=OFF -DPOSENC_LESSONS=OFF \
  -DPOSENC_BUILD_PYTHON=OFF -DPOSENC_CPU_BACKEND=OFF </dev/null >"$work/ptx.log" 2>&1; then
  tail -n 20 "$work/ptx.log" >&2
  fail "CMake failed; the whole log is $work/ptx.log"
fi
mapfile -t targets < <(ninja -C "$build" -t targets all | sed -nE 's/^(ptx\/[^:]*\.ptx): .*/\1/p')
((${#targets[@]})) || fail "CMake made no rule for a kernel"
if ! ninja -C "$build" -j "${POSENC_JOBS:-$(nproc)}" "${targets[@]}" </dev/null >"$work/ptx.log" 2>&1; then
  tail -n 20 "$work/ptx.log" >&2
  fail "a kernel could not be compiled; the whole log is $work/ptx.log"
fi
echo "$key" >"$build/ptx/key"
rm -f "$build"/ptx/*.{d,cpp,new}
mv "$build/ptx" "$work/ptx"
rm -rf "$build"

#!/usr/bin/env bash
# cross_wheel.sh WHEEL [FOLDER]   checks a wheel for the other architecture: its tag and symbols, and that Python of that architecture,
# under qemu, imports it and passes the tests of values, refusals and caches. FOLDER keeps that Python and its numpy.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
root=$(cd "$here/../.." && pwd)
fail() {
  echo "cross wheel test: $*" >&2
  exit 1
}
(($# == 1 || $# == 2)) || { sed -n '2,3s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
wheel=$1
[[ ${wheel##*/} =~ ^posenc-[0-9.]+-cp39-abi3-manylinux_2_([0-9]+)_(x86_64|aarch64)\.whl$ ]] || fail "expected a wheel of a release, got $wheel"
glibc=2.${BASH_REMATCH[1]} machine=${BASH_REMATCH[2]}
architecture=${machine/x86_64/amd64}
architecture=${architecture/aarch64/arm64}
emulator=qemu-$machine-static
command -v "$emulator" >/dev/null || fail "$emulator is missing (Debian's package qemu-user-static)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
system=${2:-$work/system}
python3 -m zipfile -e "$wheel" "$work/contents"
python3 -B "$root/packaging/wheel/check.py" "$work/contents/posenc" "$machine" "$glibc"
"$root/cmake/sysroot.sh" "$architecture" "$system" python3 python3-numpy
system=$(cd "$system" && pwd)
libraries=$system/usr/lib/$machine-linux-gnu
interpreter=$(readlink -f "$system/usr/bin/python3")
# blas and lapack are found through links that an installation would make. numpy 1.24's tanh with AVX2 and FMA is wrong under qemu 7.2
# (tanh(3) = -1058), so what the tests expect is computed without.
python=("$emulator" -L "$system" -E "LD_LIBRARY_PATH=$libraries:$libraries/blas:$libraries/lapack" -E "PYTHONHOME=$system/usr"
  -E "PYTHONPATH=$work/contents:$system/usr/lib/python3/dist-packages" -E "POSENC_ROOT=$root" -E LD_BIND_NOW=1
  -E "NPY_DISABLE_CPU_FEATURES=FMA3 AVX2" "$interpreter" -B)
cd "$work"
"${python[@]}" -c 'import platform, numpy, posenc; print(platform.machine(), "Python", platform.python_version(), "numpy", numpy.__version__, "posenc", posenc.__version__, posenc.backends())'
for test in values_test refusals_test cache_test; do
  "${python[@]}" "$root/python/tests/$test.py" >"$work/log" 2>&1 || {
    tail -n 40 "$work/log"
    fail "$test"
  }
  echo "$test: $(grep -E '^Ran ' "$work/log")"
done
echo "cross wheel test: $machine: ok"

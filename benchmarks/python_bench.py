"""What a call from Python costs above the C call, beside ctypes and torch's own formula.

    ./run python benchmarks/python_bench.py

Each figure is the least of several runs, in microseconds of this thread; rotate is one token of 40 heads, 128 features.
"""

import ctypes
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import posenc
from posenc import _posenc


def microseconds(call, count=2000, runs=15):
    best = float("inf")
    for _ in range(runs):
        began = time.thread_time_ns()
        for _ in range(count):
            call()
        best = min(best, (time.thread_time_ns() - began) / count / 1000)
    return best


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("dtype", ctypes.c_uint8 * 4),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


class QueryKey(ctypes.Structure):
    _fields_ = [("q", ctypes.POINTER(Tensor)), ("k", ctypes.POINTER(Tensor))]


LOOP = """
#include <time.h>
#include "posenc/posenc_c.h"
double loop(const posenc_form* form, const posenc_tensor* x, int count) {
  struct timespec before, after;
  const posenc_query_key both = {x, 0};
  posenc_positions from = POSENC_INIT(posenc_positions);
  from.first = 7;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  for (int i = 0; i < count; ++i) posenc_rotate(form, both, both, &from, 0);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  return 1e6 * (double)(after.tv_sec - before.tv_sec) + 1e-3 * (double)(after.tv_nsec - before.tv_nsec);
}
"""


def from_c(x):
    """(microseconds of the call in a loop of C, the same call by ctypes)."""
    mapped = Path("/proc/self/maps").read_text().split()
    path = next(path for path in mapped if "libposenc_c.so" in path)
    library = ctypes.PyDLL(path)
    form = ctypes.c_void_p()
    if library.posenc_prepare(b'{"scheme": "rope", "dims": 128}', None, ctypes.byref(form)):
        sys.exit("posenc_prepare failed")

    def tensor():
        shape = (ctypes.c_int64 * x.ndim)(*x.shape)
        return Tensor(x.ctypes.data, (1, 0), x.ndim, (2, 32, 1, 0), shape, None, 0)

    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "loop.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", path, "-I", Path(__file__).parents[1] / "include", "-o", made],
                       input=LOOP, text=True, check=True)
        loop = ctypes.CDLL(str(made)).loop
    loop.restype = ctypes.c_double
    ready = tensor()
    count = max(3, int(1e7 / x.size))
    plain = min(loop(form, ctypes.byref(ready), count) / count for _ in range(25))
    library.posenc_rotate.argtypes = [ctypes.c_void_p, QueryKey, QueryKey, ctypes.c_void_p, ctypes.c_void_p]

    def anew():
        one = tensor()
        pair = QueryKey(ctypes.pointer(one), None)
        library.posenc_rotate(form, pair, pair, None, None)

    return plain, anew


def main():
    posenc.set_threads(1)
    x = np.random.default_rng(0).standard_normal((40, 1, 128)).astype(np.float32)
    form = posenc.prepare(posenc.Rope(dims=128))
    plain, anew = from_c(x)
    rows = [("the C call alone", plain), ("posenc.rotate, numpy", microseconds(lambda: posenc.rotate(x, form, first=7))),
            ("_posenc.rotate, numpy", microseconds(lambda: _posenc.rotate(form._handle, x, x, None, None, 7, 1, "bhsd", 0))),
            ("by ctypes, numpy", microseconds(anew))]
    if "--numpy" not in sys.argv:
        try:
            import torch
        except ImportError:
            print("torch is not installed")
        else:
            torch.set_num_threads(1)
            t, graded = torch.from_numpy(x.copy()), torch.from_numpy(x.copy()).requires_grad_()
            rows.append((f"posenc.rotate, torch {torch.__version__}", microseconds(lambda: posenc.rotate(t, form, first=7))))
            from posenc import torch as differentiable

            rows.append(("posenc.torch.rotate, no grad", microseconds(lambda: differentiable.rotate(t, form, first=7), 500)))
            rows.append(("posenc.torch.rotate, grad", microseconds(lambda: differentiable.rotate(graded, form, first=7), 500)))
            cos, sin = torch.randn(1, 128), torch.randn(1, 128)
            formula = lambda: t * cos + torch.cat((-t[..., 64:], t[..., :64]), -1) * sin  # noqa: E731
            rows.append(("torch's formula, tables ready", microseconds(formula, 500)))
    print(f"{'':34}      us   above C")
    for name, value in rows:
        print(f"{name:34} {value:7.2f}   {value - plain:7.2f}")
    large = np.random.default_rng(0).standard_normal((32, 2048, 128)).astype(np.float32)
    print(f"rotate 32 x 2048 x 128: C {from_c(large)[0] / 1000:.2f} ms, "
          f"Python {microseconds(lambda: posenc.rotate(large, form), 3, 25) / 1000:.2f} ms")


if __name__ == "__main__":
    main()

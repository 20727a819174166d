"""What a call from Python costs above the C call, beside ctypes and torch's own formula; what importing posenc costs; and
rotate and attention of usual sizes from C and from Python, by turns.

    ./run python benchmarks/python_bench.py [--numpy]

Each figure is the least of several runs, in microseconds of this thread; the short rotate is one token of 40 heads, 128
features. The loops in C call libposenc_c, which adds some 0.1 us to the call of C++.
"""

import ctypes
import resource
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
static double since(struct timespec before) {
  struct timespec after;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  return 1e6 * (double)(after.tv_sec - before.tv_sec) + 1e-3 * (double)(after.tv_nsec - before.tv_nsec);
}
double loop(const posenc_form* form, const posenc_tensor* x, int count) {
  struct timespec before;
  const posenc_query_key both = {x, 0};
  posenc_positions from = POSENC_INIT(posenc_positions);
  from.first = 7;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  for (int i = 0; i < count; ++i) posenc_rotate(form, both, both, &from, 0);
  return since(before);
}
double loop_attention(const posenc_form* form, const posenc_tensor* out, const posenc_tensor* x, int count) {
  struct timespec before;
  posenc_attention_options options = POSENC_INIT(posenc_attention_options);
  options.position = form;
  options.causal = 1;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  for (int i = 0; i < count; ++i) posenc_attention(out, x, x, x, &options, 0);
  return since(before);
}
"""


def tensor_of(x):
    return Tensor(x.ctypes.data, (1, 0), x.ndim, (2, 32, 1, 0), (ctypes.c_int64 * x.ndim)(*x.shape), None, 0)


class FromC:
    """The library that Python has loaded, called in loops of C and by ctypes."""

    def __init__(self):
        path = next(path for path in Path("/proc/self/maps").read_text().split() if "libposenc_c.so" in path)
        self.library = ctypes.PyDLL(path)
        self.form = ctypes.c_void_p()
        if self.library.posenc_prepare(b'{"scheme": "rope", "dims": 128}', None, ctypes.byref(self.form)):
            sys.exit("posenc_prepare failed")
        self.library.posenc_rotate.argtypes = [ctypes.c_void_p, QueryKey, QueryKey, ctypes.c_void_p, ctypes.c_void_p]
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "loop.so"
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", path, "-I", Path(__file__).parents[1] / "include", "-o", made],
                           input=LOOP, text=True, check=True)
            self.loops = ctypes.CDLL(str(made))
        self.loops.loop.restype = self.loops.loop_attention.restype = ctypes.c_double

    def rotate(self, x, count):
        return self.loops.loop(self.form, ctypes.byref(tensor_of(x)), count) / count

    def attention(self, out, x):
        return self.loops.loop_attention(self.form, ctypes.byref(tensor_of(out)), ctypes.byref(tensor_of(x)), 1)

    def by_ctypes(self, x):
        one = tensor_of(x)
        pair = QueryKey(ctypes.pointer(one), None)
        self.library.posenc_rotate(self.form, pair, pair, None, None)


def once(call):
    began = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - began) / 1000


def by_turns(one, other, runs):
    """The least of each; one after the other, so that both meet the machine in the same state."""
    pairs = [(one(), other()) for _ in range(runs)]
    return min(a for a, _ in pairs), min(b for _, b in pairs)


def importing():
    """Milliseconds of processor time that `import posenc` adds to starting the interpreter."""
    def started(code):
        best = float("inf")
        for _ in range(9):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", code], check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return 1000 * best

    return started("import posenc") - started("pass")


def main():
    posenc.set_threads(1)
    x = np.random.default_rng(0).standard_normal((40, 1, 128)).astype(np.float32)
    form = posenc.prepare(posenc.Rope(dims=128))
    c = FromC()
    plain = min(c.rotate(x, 2000) for _ in range(25))
    rows = [("the C call alone", plain), ("posenc.rotate, numpy", microseconds(lambda: posenc.rotate(x, form, first=7))),
            ("_posenc.rotate, numpy", microseconds(lambda: _posenc.rotate(form._handle, x, x, None, None, 7, 1, "bhsd", 0))),
            ("by ctypes, numpy", microseconds(lambda: c.by_ctypes(x)))]
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
    print("at size, one thread                       C        Python   Python / C")
    pair = by_turns(lambda: c.rotate(large, 1), lambda: once(lambda: posenc.rotate(large, form, first=7)), 15)
    print(f"rotate 32 x 2048 x 128            {pair[0] / 1000:7.2f} ms   {pair[1] / 1000:7.2f} ms   {pair[1] / pair[0]:.3f}")
    q, out = large[:4, :1024].copy(), np.empty((4, 1024, 128), np.float32)
    pair = by_turns(lambda: c.attention(out, q), lambda: once(lambda: posenc.attention(q, q, q, form, causal=True, out=out)), 15)
    print(f"attention, rope, 4 x 1024 x 128   {pair[0] / 1000:7.2f} ms   {pair[1] / 1000:7.2f} ms   {pair[1] / pair[0]:.3f}")
    print(f"import posenc: {importing():.1f} ms")


if __name__ == "__main__":
    main()

"""In place means in place: no copies, no leaks, and arrays stay whose they are."""

import gc
import os
import re
import resource
import sys
import tracemalloc
import unittest
from pathlib import Path

if os.environ.get("POSENC_SANITIZE"):
    print("not with a sanitizer: a sanitizer keeps memory of its own")
    sys.exit(77)

import numpy as np
import posenc

ROPE = posenc.prepare(posenc.Rope(dims=8))


class InPlace(unittest.TestCase):
    def test_pointers(self):
        x = np.ones((4, 8), "f")
        before = x.ctypes.data
        self.assertIs(posenc.rotate(x, ROPE), x)
        self.assertEqual(x.ctypes.data, before)
        self.assertIs(posenc.add(x, posenc.prepare(posenc.Sinusoidal(width=8))), x)

    def test_no_copy_of_a_large_array(self):
        """1 GB where there is room for it twice, else 128 MB: a copy would need as much again."""
        available = int(re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())[1])  # in KiB
        x = np.ones((256 if available > 3 << 20 else 32, 1 << 13, 128), "f")
        form = posenc.prepare(posenc.Rope(dims=128))
        posenc.rotate(x[:, :16], form)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        posenc.rotate(x, form)
        posenc.rotate(x[:, ::2], form)  # strided
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.assertLess(grown, 32 << 10)  # in KiB

    def test_reference_counts(self):
        x, ids, out = np.ones((4, 8), "f"), np.arange(4), np.ones((4, 8), "f")
        q = np.ones((1, 4, 8), "f")
        counted = (x, ids, out, q, ROPE)
        bad = np.ones((4, 6), "f")
        gc.collect()
        before = [sys.getrefcount(one) for one in counted]
        for _ in range(1000):
            posenc.rotate(x, ROPE, ids=ids)
            posenc.rotate(x, ROPE, out=out)
            posenc.attention(q, q, q, ROPE, causal=True, key_lengths=None)
            for call in (lambda: posenc.rotate(bad, ROPE), lambda: posenc.rotate(x, ROPE, out=bad, ids=ids), lambda: posenc.rotate(x, ROPE, ids=x)):
                try:
                    call()
                except (ValueError, NotImplementedError):
                    pass
        gc.collect()
        self.assertEqual([sys.getrefcount(one) for one in counted], before)

    def test_hundred_thousand_calls_leak_nothing(self):
        x, ids = np.ones((2, 8), "f"), np.arange(2, dtype=np.int32)

        def some(count):
            for _ in range(count):
                posenc.rotate(x, ROPE, ids=ids)

        some(1000)
        gc.collect()
        tracemalloc.start()
        before_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before = tracemalloc.get_traced_memory()[0]
        some(100_000)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        self.assertLess(grown, 20_000)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_rss, 8 << 10)

    def test_forms_are_freed(self):
        tables = [np.ones((32, 8), "f") for _ in range(4)]
        forms = [posenc.prepare(posenc.T5(), weights=table) for table in tables]
        self.assertEqual(posenc.bias(forms[0], 1, 1).shape, (8, 1, 1))
        count = sys.getrefcount(tables[0])
        del forms
        gc.collect()
        self.assertLess(sys.getrefcount(tables[0]), count)


if __name__ == "__main__":
    unittest.main()

"""Threads, forks, the end of the interpreter, an interpreter without numpy."""

import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy as np
import posenc

LARGE = posenc.prepare(posenc.Rope(dims=128))


def python(code, *flags):
    return subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, timeout=120)


class Processes(unittest.TestCase):
    def test_other_threads_go_on(self):
        """While one thread rotates, another counts: the GIL is released."""
        x = np.ones((64, 1024, 128), "f")
        counted, stop = [0], threading.Event()

        def count():
            while not stop.is_set():
                counted[0] += 1
                time.sleep(0)  # gives the GIL back; the other thread takes it when it wants it

        sys.setswitchinterval(1000)  # without a release in rotate, the other thread would never get its turn
        try:
            other = threading.Thread(target=count)
            other.start()
            with posenc.use(threads=1):
                before = counted[0]
                for _ in range(5):
                    posenc.rotate(x, LARGE)
                after = counted[0]
        finally:
            sys.setswitchinterval(0.005)
            stop.set()
            other.join()
        self.assertGreater(after, before)

    def test_threads_share_a_form_and_keep_their_errors(self):
        wanted = posenc.rotate(np.ones((4, 128), "f"), LARGE)
        problems = []

        def work(width):
            for _ in range(300):
                if not (posenc.rotate(np.ones((4, 128), "f"), LARGE) == wanted).all():
                    problems.append("a wrong result")
                try:
                    posenc.rotate(np.ones((4, width), "f"), LARGE)
                except posenc.Error as error:
                    if str(width) not in str(error):
                        problems.append(str(error))

        workers = [threading.Thread(target=work, args=(width,)) for width in (14, 26, 38, 50)]
        for one in workers:
            one.start()
        for one in workers:
            one.join()
        self.assertEqual(problems, [])

    def test_fork(self):
        """A child of a process whose threads have started computes too."""
        x = np.ones((32, 512, 128), "f")
        posenc.rotate(x, LARGE)
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            y = np.ones((32, 512, 128), "f")
            posenc.rotate(y, LARGE)
            os._exit(0 if (x == y).all() else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_the_end(self):
        """Forms, with weights and without, that live until the interpreter is gone."""
        code = ("import posenc, sys, array\n"
                "t = memoryview(array.array('f', [0] * 256)).cast('B').cast('f', (32, 8))\n"
                "sys.form = posenc.prepare(posenc.T5(), weights=t)\n"
                "sys.modules['kept'] = posenc.prepare('rope')\n"
                "class C:\n  def __del__(self): self.form.adjoint()\n"
                "c = C(); c.form = posenc.prepare('rope'); sys.c = c\n")
        for flags in ((), ("-X", "dev", "-W", "error")):
            result = python(code, *flags)
            self.assertEqual((result.returncode, result.stderr), (0, ""), flags)

    def test_without_numpy(self):
        code = ("import sys; sys.modules['numpy'] = None\n"
                "import posenc, array\n"
                "x = memoryview(array.array('f', [1, 0] * 3)).cast('B').cast('f', (3, 2))\n"
                "posenc.rotate(x, posenc.prepare(posenc.Rope(dims=2)))\n"
                "print(round(x[1, 0], 4), posenc.packed_positions([2, 1]).tolist())\n"
                "try: posenc.tabulate(posenc.prepare('sinusoidal'), count=2)\n"
                "except ImportError as error: print(error)\n")
        result = python(code)
        self.assertEqual(result.stdout.splitlines(), ["0.5403 [0, 1, 0]",
                         "posenc makes new arrays with numpy, which is not installed; pass out="], result.stderr)

    def test_strict_interpreter(self):
        """No warning, no resource left open: -X dev -W error."""
        code = "import posenc, numpy as np; posenc.rotate(np.ones((4, 8), 'f'), posenc.prepare(posenc.Rope(dims=8))); posenc.scheme('t5')"
        result = python(code, "-X", "dev", "-W", "error")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_import_brings_little(self):
        """What is slow to import is loaded when it is asked for."""
        result = python("import sys; before = set(sys.modules); import posenc; "
                        "print(sorted({'numpy', 'torch', 'dataclasses', 'inspect'} & (set(sys.modules) - before)))")
        self.assertEqual(result.stdout.strip(), "[]", result.stderr)


if __name__ == "__main__":
    unittest.main()

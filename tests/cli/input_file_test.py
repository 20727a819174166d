"""Files that are not what they should be: one line that names the file and the place."""

import os
import struct
import unittest

from program import ProgramTest, npy

GOOD = npy("f32", [2, 4], range(8))


class BadInput(ProgramTest):
    def bad(self, data, says):
        file = self.write("x.npy", data)
        self.refused("apply", "sinusoidal", file, "-o", self.path("y.npy"), says="x.npy: ")
        self.refused("apply", "sinusoidal", file, "-o", self.path("y.npy"), says=says)

    def with_header(self, text):
        header = text.encode()
        header += b" " * (-(len(header) + 11) % 64) + b"\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + GOOD[-32:]

    def test_no_npy_at_all(self):
        self.bad(b"", says="byte 0")
        self.bad(b"\x93NUM", says="byte 0")
        self.bad(b"hello, world" * 20, says="byte 0")
        self.bad(b"PK\x03\x04" + bytes(100), says="byte 0")

    def test_version(self):
        for version in (0, 4, 9):
            self.bad(GOOD[:6] + bytes([version]) + GOOD[7:], says="byte 6")

    def test_truncated_at_every_byte(self):
        # a few of them through the program; the reader itself has a test for each
        for length in (7, 9, 10, 60, 127, 128, len(GOOD) - 1):
            self.bad(GOOD[:length], says="byte ")

    def test_trailing_bytes(self):
        self.bad(GOOD + b"\0", says="byte 160")

    def test_shapes(self):
        for shape in ("(-2, 4)", "(2.0, 4)", "(True, 4)", "(99999999999999999999, 4)", "(1099511627776, 1099511627776)"):
            self.bad(self.with_header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"), says="byte ")

    def test_types(self):
        for descr in ("|O", "<U9", "<c8", "[('a', '<f4')]"):
            text = descr if descr.startswith("[") else f"'{descr}'"
            self.bad(self.with_header(f"{{'descr': {text}, 'fortran_order': False, 'shape': (2, 4), }}"), says="byte ")

    def test_code_is_never_run(self):
        call = f"__import__('os').mkdir({self.path('made')!r})"
        self.bad(self.with_header(f"{{'descr': {call}, 'fortran_order': False, 'shape': (2, 4), }}"), says="byte ")

    def test_a_header_that_promises_too_much(self):
        self.bad(b"\x93NUMPY\x02\x00" + struct.pack("<I", 0xFFFFFFF0) + bytes(200), says="byte 8")
        sizes = "{'descr': '<f4', 'fortran_order': False, 'shape': (1073741824, 1024), }"
        self.bad(self.with_header(sizes), says="truncated")

    def test_what_is_no_file(self):
        fifo = self.path("fifo.npy")
        os.mkfifo(fifo)
        out = self.path("y.npy")
        self.refused("apply", "sinusoidal", fifo, "-o", out, says="fifo.npy is not a regular file", timeout=10)
        self.refused("apply", "sinusoidal", "/dev/zero", "-o", out, says="/dev/zero is not a regular file", timeout=10)
        self.refused("apply", "sinusoidal", self.folder, "-o", out, says="is a directory")
        self.refused("table", "learned", "--table", fifo, "--positions", 0, says="regular file", timeout=10)
        self.refused("table", "sinusoidal", "--positions", "@" + fifo, says="regular file", timeout=10)

    def test_unusual_but_good(self):
        text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 4L), }"
        file = self.write("x.npy", self.with_header(text))
        outcome = self.succeeds("apply", "sinusoidal", file, "-o", self.path("y.npy"))
        self.assertIn("posenc: note: ", outcome.err)


if __name__ == "__main__":
    unittest.main()

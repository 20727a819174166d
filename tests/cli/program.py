"""Runs the posenc program and looks at what it did. Standard library only."""

import json
import math
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

POSENC = os.environ["POSENC"]
# sanitizers change memory and time, so limits of those do not apply
SANITIZED = bool(os.environ.get("POSENC_SANITIZE"))
# looking for leaks takes seconds at the end of each of hundreds of runs
os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0")

CODES = {"f32": ("<f4", "f"), "f64": ("<f8", "d"), "f16": ("<f2", "e"), "i64": ("<i8", "q"), "bf16": ("<V2", "H")}
SAFETENSORS_CODES = {"F32": ("f", 4), "F64": ("d", 8), "F16": ("e", 2), "I64": ("q", 8), "BF16": ("H", 2), "I32": ("i", 4)}


class Outcome:
    """What a run left: its exit status, its output as bytes, its messages as text."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def text(self):
        return self.out.decode()


def run(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("timeout", 120)
    done = subprocess.run([POSENC, *map(str, arguments)], stderr=subprocess.PIPE, check=False, **options)
    return Outcome(done.returncode, done.stdout, done.stderr.decode())


def flat(values):
    return [x for value in values for x in flat(value)] if isinstance(values, (list, tuple, range)) else [values]


def npy(dtype, shape, values):
    """The bytes of a .npy file."""
    descr, code = CODES[dtype]
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    values = flat(values)
    data = struct.pack(f"<{len(values)}{code}", *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def parse_npy(data):
    """(dtype, shape, flat values) of the bytes of a .npy file that posenc wrote."""
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    (length,) = struct.unpack("<H", data[8:10])
    header = data[10 : 10 + length].decode()
    assert (10 + length) % 64 == 0 and header.endswith("\n")
    match = re.fullmatch(
        r"\{'descr': '(?P<descr>[^']+)', 'fortran_order': False, 'shape': \((?P<shape>[^)]*)\), \} *\n", header
    )
    assert match, header
    shape = tuple(int(extent) for extent in match["shape"].split(",") if extent.strip())
    dtype = next(name for name, (descr, _) in CODES.items() if descr == match["descr"])
    data = data[10 + length :]
    return dtype, shape, list(struct.unpack(f"<{math.prod(shape)}{CODES[dtype][1]}", data))


def safetensors(tensors, **metadata):
    """tensors: name -> (dtype, shape, flat values)."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, values) in tensors.items():
        begin = len(data)
        data += struct.pack(f"<{len(values)}{SAFETENSORS_CODES[dtype][0]}", *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def parse_safetensors(data):
    """(name, dtype, shape, flat values) of a file with one tensor, as posenc writes it."""
    (length,) = struct.unpack("<Q", data[:8])
    assert length % 8 == 0
    ((name, info),) = json.loads(data[8 : 8 + length]).items()
    code, size = SAFETENSORS_CODES[info["dtype"]]
    data = data[8 + length :]
    assert info["data_offsets"] == [0, len(data)]
    return name, info["dtype"], info["shape"], list(struct.unpack(f"<{len(data) // size}{code}", data))


def as_f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def sinusoidal(position, width, base=10000.0):
    """One row of the paper's table, by Python's own sine: right to the last bit of f32 at small positions."""
    angles = [position * base ** (-2 * pair / width) for pair in range(width // 2)]
    return [as_f32(wave(angle)) for angle in angles for wave in (math.sin, math.cos)]


class ProgramTest(unittest.TestCase):
    """A test with a folder of its own, which must hold nothing but what the test expects."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="posenc-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def files(self):
        return sorted(os.listdir(self.folder))

    def succeeds(self, *arguments, **options):
        outcome = run(*arguments, **options)
        self.assertEqual(outcome.code, 0, outcome.err)
        return outcome

    def refused(self, *arguments, code=2, says, **options):
        """Fails with this exit status and exactly one line, and leaves the folder as it was."""
        before = self.files()
        outcome = run(*arguments, **options)
        self.assertEqual(outcome.code, code, outcome.err)
        self.assertRegex(outcome.err, r"\Aposenc: error: [^\n]+\n\Z")
        self.assertIn(says, outcome.err)
        self.assertFalse(outcome.out, "nothing may be printed beside the error")
        self.assertEqual(self.files(), before, "nothing may be left behind")
        return outcome

"""Any file at all: success, or one clear line and exit status 2, within a second and 256 MiB, and nothing left behind.

One table for each format: what is wrong, the bytes, and what the line must say. None stands for a file that is unusual
but right. Then the beginnings of all inputs that fuzzing starts from, and files that are noise.
"""

import glob
import json
import os
import random
import re
import struct
import subprocess
import time
import unittest
import zlib

from program import POSENC, SANITIZED, ProgramTest, npy, safetensors

HERE = os.path.dirname(os.path.abspath(__file__))
MOST_SECONDS, MOST_MEBIBYTES = 1.0, 256


# ---------------------------------------------------------------------------------------------------------------- npy

def npy_raw(header, data=b"", version=(1, 0), length=None, magic=b"\x93NUMPY"):
    header = header if isinstance(header, bytes) else header.encode()
    size = len(header) if length is None else length
    return magic + bytes(version) + (struct.pack("<H", size) if version[0] == 1 else struct.pack("<I", size)) + header + data


def npy_head(descr="'<f4'", order="False", shape="(1, 2)", rest=""):
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, {rest}}}"
    return text + " " * (-(len(text) + 11) % 64) + "\n"


EIGHT = struct.pack("<2f", 1, 2)
GOOD_NPY = npy("f32", [1, 2], [1, 2])
NPY = [
    ("empty", b"", "the file is empty"),
    ("5 bytes", GOOD_NPY[:5], "byte 0"),
    ("wrong magic", b"\x93NUMPX" + GOOD_NPY[6:], "byte 0"),
    ("version 0", npy_raw(npy_head(), EIGHT, (0, 0)), "version 0.0"),
    ("version 4", npy_raw(npy_head(), EIGHT, (4, 0)), "version 4.0"),
    ("version 9", npy_raw(npy_head(), EIGHT, (9, 0)), "version 9.0"),
    ("minor version", npy_raw(npy_head(), EIGHT, (1, 1)), "version 1.1"),
    ("header past the end", npy_raw(npy_head(), length=60000), "header"),
    ("header of 4 GB", npy_raw(npy_head(), version=(2, 0), length=0xFFFFFFF0), "header"),
    ("header over 10,000", npy_raw(npy_head() + " " * 10000, EIGHT), "header"),
    ("no newline", npy_raw(npy_head().rstrip(), EIGHT), None),
    ("missing key", npy_raw("{'descr': '<f4', 'shape': (1, 2), }\n", EIGHT), "fortran_order"),
    ("extra key", npy_raw(npy_head(rest="'more': 1"), EIGHT), "more"),
    ("duplicate key", npy_raw(npy_head(rest="'descr': '<f4'"), EIGHT), "descr"),
    ("a call", npy_raw(npy_head(descr="__import__('os')"), EIGHT), "byte"),
    ("3000 brackets", npy_raw(npy_head(shape="(" * 3000)), "byte"),
    ("negative extent", npy_raw(npy_head(shape="(-1, 2)"), EIGHT), "-1"),
    ("float extent", npy_raw(npy_head(shape="(1.0, 2)"), EIGHT), "byte"),
    ("bool extent", npy_raw(npy_head(shape="(True, 2)"), EIGHT), "byte"),
    ("long integer", npy_raw(npy_head(shape="(1L, 2L)"), EIGHT), None),
    ("20 digits", npy_raw(npy_head(shape="(99999999999999999999, 2)"), EIGHT), "byte"),
    ("product wraps", npy_raw(npy_head(shape="(1099511627776, 1099511627776)"), EIGHT), "shape"),
    ("zero times 2^63", npy_raw(npy_head(shape="(0, 9223372036854775808)")), "byte"),
    ("9 axes", npy_raw(npy_head(shape="(1, 1, 1, 1, 1, 1, 1, 1, 2)"), EIGHT), "at most 8 dimensions"),
    ("scalar", npy_raw(npy_head(shape="()"), EIGHT[:4]), "has shape []"),
    ("object", npy_raw(npy_head(descr="'|O'"), EIGHT), "pickled objects are never loaded"),
    ("structured", npy_raw(npy_head(descr="[('a', '<f4')]"), EIGHT), "byte"),
    ("text", npy_raw(npy_head(descr="'<U9'"), EIGHT), "<U9"),
    ("big endian", npy_raw(npy_head(descr="'>f4'"), struct.pack(">2f", 1, 2)), None),
    ("void", npy_raw(npy_head(descr="'|V2'"), EIGHT[:4]), "say bf16"),
    ("half", npy_raw(npy_head(descr="'<f2'"), EIGHT[:4]), None),
    ("double", npy_raw(npy_head(descr="'<f8'"), EIGHT * 2), None),
    ("integers", npy_raw(npy_head(descr="'<i4'"), EIGHT), "contains integers"),
    ("fortran order", npy_raw(npy_head(order="True"), EIGHT), None),
    ("truncated", GOOD_NPY[:-1], "byte"),
    ("trailing", GOOD_NPY + b"\0", "1 byte"),
]


# ---------------------------------------------------------------------------------------------------------------- npz

def zipped(members, **faults):
    """members: (name, data); faults change fields of the last member."""
    body, directory = b"", b""
    for index, (name, data) in enumerate(members):
        change = faults if index == len(members) - 1 else {}
        name = name if isinstance(name, bytes) else name.encode()
        method = change.get("method", 0)
        packed = change.get("packed", data)
        size = change.get("size", len(data))
        crc = change.get("crc", zlib.crc32(data))
        flags = change.get("flags", 0)
        offset = len(body)
        local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, flags, change.get("local_method", method), 0, 0, crc,
                            len(packed), size, len(name), 0)
        body += local + name + packed
        extra = change.get("extra", b"")
        directory += struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, flags, method, 0, 0, crc,
                                 change.get("packed_size", len(packed)), change.get("central_size", size), len(name),
                                 len(extra), 0, 0, 0, 0, offset) + name + extra
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, len(members) & 0xFFFF, len(members) & 0xFFFF, len(directory),
                      len(body), 0)
    return body + directory + end


def deflated(data, declared=None):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(data) + packer.flush()
    return zipped([("x.npy", data)], method=8, packed=packed, size=len(data) if declared is None else declared,
                  crc=zlib.crc32(data))


GOOD_NPZ = zipped([("x.npy", GOOD_NPY)])
ZEROS = npy("f32", [1000, 1000], []) + b"\0" * 4000000
NPZ = [
    ("not a zip", b"PK but not one", "byte"),
    ("truncated", GOOD_NPZ[:-5], "byte"),
    ("two end records", GOOD_NPZ + GOOD_NPZ[-22:], "byte"),
    ("local and central differ", zipped([("x.npy", GOOD_NPY)], local_method=8), "byte"),
    ("zip64 of 2^63", zipped([("x.npy", GOOD_NPY)], packed_size=0xFFFFFFFF, central_size=0xFFFFFFFF,
                             extra=struct.pack("<HHQQ", 1, 16, 1 << 63, 1 << 63)), "byte"),
    ("encrypted", zipped([("x.npy", GOOD_NPY)], flags=1), "encrypted"),
    ("method 12", zipped([("x.npy", GOOD_NPY)], method=12), "12"),
    ("wrong checksum", zipped([("x.npy", GOOD_NPY)], crc=1), "CRC"),
    ("declared 10 bytes", deflated(ZEROS, declared=10), "byte"),
    ("bomb that says more than it has", deflated(GOOD_NPY, declared=1 << 30), "byte"),
    ("name goes up", zipped([("../x.npy", GOOD_NPY)]), ".."),
    ("absolute name", zipped([("/x.npy", GOOD_NPY)]), "/x.npy"),
    ("name with a zero", zipped([(b"x\0.npy", GOOD_NPY)]), "byte"),
    ("two of one name", zipped([("x.npy", GOOD_NPY), ("x.npy", GOOD_NPY)]), "x"),
    ("70,000 entries, 16 bits", zipped([(f"{i}.npy", b"") for i in range(70000)]), "byte"),
    ("member that is no array", zipped([("x.txt", b"hello")]), "x"),
]


# -------------------------------------------------------------------------------------------------------- safetensors

def st_raw(header, data=b"", size=None):
    header = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(header) if size is None else size) + header + data


def st_entry(dtype='"F32"', shape="[1,2]", offsets="[0,8]", name="x", rest=""):
    return f'{{"{name}":{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}{rest}}}}}'


def st_two(one, other, data=bytes(16)):
    text = ",".join(f'"{name}":{{"dtype":"F32","shape":[1,2],"data_offsets":[{begin},{end}]}}'
                    for name, (begin, end) in (("x", one), ("y", other)))
    return st_raw("{" + text + "}", data)


SAFETENSORS = [
    ("nothing", b"", "byte"),
    ("7 bytes", b"\1" * 7, "byte"),
    ("header past the end", st_raw("{}", size=100), "byte"),
    ("header of 2^63", st_raw("{}", size=1 << 63), "byte"),
    ("header over 100 MB", st_raw("{}", size=100_000_001), "byte"),
    ("header is a list", st_raw("[]"), "byte"),
    ("not UTF-8", st_raw(b'{"\xff":1}'), "byte"),
    ("more after the header", st_raw(st_entry() + "x", EIGHT), "byte"),
    ("depth", st_raw("[" * 100000), "byte"),
    ("tensor twice", st_raw(st_entry()[:-1] + "," + st_entry()[1:], EIGHT), "x"),
    ("key twice", st_raw(st_entry(rest=',"dtype":"F32"'), EIGHT), "dtype"),
    ("metadata of numbers", st_raw('{"__metadata__":{"a":1}}'), "__metadata__"),
    ("no dtype", st_raw('{"x":{"shape":[1,2],"data_offsets":[0,8]}}', EIGHT), "dtype"),
    ("no shape", st_raw('{"x":{"dtype":"F32","data_offsets":[0,8]}}', EIGHT), "shape"),
    ("no offsets", st_raw('{"x":{"dtype":"F32","shape":[1,2]}}', EIGHT), "data_offsets"),
    ("unknown dtype", st_raw(st_entry(dtype='"F33"'), EIGHT), "F33"),
    ("eight bits", st_raw(st_entry(dtype='"F8_E4M3"'), bytes(2)).replace(b"[0,8]", b"[0,2]"), "multiply it by its scale"),
    ("eight bits, wider", st_raw(st_entry(dtype='"F8_E5M2"'), bytes(2)).replace(b"[0,8]", b"[0,2]"), "F8_E5M2"),
    ("shape of -1", st_raw(st_entry(shape="[-1,2]"), EIGHT), "an extent"),
    ("shape of 1.5", st_raw(st_entry(shape="[1.5,2]"), EIGHT), "an extent"),
    ("shape of 1e3", st_raw(st_entry(shape="[1e3,2]"), EIGHT), "an extent"),
    ("shape of 2^64", st_raw(st_entry(shape="[18446744073709551616]"), EIGHT), "byte"),
    ("product wraps", st_raw(st_entry(shape="[4194305,4194305,211106198978564]"), EIGHT), "shape"),
    ("one offset", st_raw(st_entry(offsets="[0]"), EIGHT), "data_offsets"),
    ("three offsets", st_raw(st_entry(offsets="[0,8,8]"), EIGHT), "data_offsets"),
    ("negative offset", st_raw(st_entry(offsets="[-8,0]"), EIGHT), "data_offsets"),
    ("reversed offsets", st_raw(st_entry(offsets="[8,0]"), EIGHT), "data_offsets"),
    ("offsets past the end", st_raw(st_entry(offsets="[0,16]"), EIGHT), "byte"),
    ("hole", st_two((0, 8), (12, 20), bytes(20)), "byte"),
    ("overlap", st_two((0, 8), (4, 12), bytes(12)), "byte"),
    ("not in order", st_two((8, 16), (0, 8)), None),
    ("bytes of nobody", st_raw(st_entry(), EIGHT + b"\0"), "byte"),
    ("size is not shape", st_raw(st_entry(shape="[1,3]"), EIGHT), "shape"),
    ("no elements", st_raw(st_entry(shape="[0,2]", offsets="[0,0]")), None),
    ("part of a byte", st_raw(st_entry(dtype='"F4"', shape="[1,1]", offsets="[0,1]"), b"\0"), "byte"),
]


# --------------------------------------------------------------------------------------------------------------- GGUF

def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(value)) + value


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


U32, F32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
ARCHITECTURE = entry("general.architecture", STRING, text("llama"))
DIMS = entry("llama.rope.dimension_count", U32, struct.pack("<I", 8))


def gguf(*entries, tensors=(), data=b"", version=3, counts=None, magic=b"GGUF"):
    counted = counts or (len(tensors), len(entries))
    head = magic + struct.pack("<IQQ", version, *counted) + b"".join(entries) + b"".join(tensors)
    return head + (b"\0" * (-len(head) % 32) + data if tensors else b"")


def tensor(name="rope_freqs.weight", extents=(4,), kind=0, offset=0, axes=None):
    return text(name) + struct.pack("<I", len(extents) if axes is None else axes) + struct.pack(
        f"<{len(extents)}Q", *(extent % (1 << 64) for extent in extents)) + struct.pack("<IQ", kind, offset)


def rope_entry(key, kind, value):
    return gguf(ARCHITECTURE, entry("llama." + key, kind, value), *([] if key == "rope.dimension_count" else [DIMS]))


FOUR = struct.pack("<4f", 1, 1, 1, 1)
GOOD_GGUF = gguf(ARCHITECTURE, DIMS, tensors=(tensor(),), data=FOUR)
GGUF = [
    ("bad magic", b"GGUX" + GOOD_GGUF[4:], "byte 0"),
    ("big endian", b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "byte 4"),
    ("version 1", gguf(ARCHITECTURE, DIMS, version=1), "version 1"),
    ("version 2", gguf(ARCHITECTURE, DIMS, version=2), None),
    ("version 4", gguf(ARCHITECTURE, DIMS, version=4), "version 4"),
    ("2^63 tensors", gguf(counts=(1 << 63, 0)), "byte"),
    ("-1 entries", gguf(counts=(0, (1 << 64) - 1)), "byte"),
    ("key of 2^63", gguf(struct.pack("<Q", 1 << 63), counts=(0, 1)), "byte"),
    ("text past the end", gguf(text("a") + struct.pack("<IQ", STRING, 1000), counts=(0, 1)), "byte"),
    ("array of 2^62", gguf(entry("a", ARRAY, struct.pack("<IQ", U32, 1 << 62))), "byte"),
    ("array of arrays", gguf(entry("a", ARRAY, struct.pack("<IQ", ARRAY, 1))), "byte"),
    ("value type 13", gguf(entry("a", 13, b"")), "13"),
    ("value type 2^31", gguf(entry("a", 1 << 31, b"")), "byte"),
    ("bool of 7", gguf(entry("a", BOOL, b"\7")), "byte"),
    ("empty key", gguf(entry("", U32, bytes(4))), "byte"),
    ("key not ASCII", gguf(entry("é", U32, bytes(4))), "byte"),
    ("key of 64 KiB", gguf(entry("a" * 65536, U32, bytes(4))), "byte"),
    ("key twice", gguf(ARCHITECTURE, ARCHITECTURE), "general.architecture"),
    ("alignment 0", gguf(entry("general.alignment", U32, struct.pack("<I", 0))), "alignment"),
    ("alignment 3", gguf(entry("general.alignment", U32, struct.pack("<I", 3))), "alignment"),
    ("alignment 2^31", gguf(entry("general.alignment", U32, struct.pack("<I", 1 << 31))), "alignment"),
    ("alignment is a text", gguf(entry("general.alignment", STRING, text("32"))), "alignment"),
    ("no axes", gguf(ARCHITECTURE, DIMS, tensors=(tensor(extents=()),)), "byte"),
    ("5 axes", gguf(ARCHITECTURE, DIMS, tensors=(tensor(extents=(1,) * 5),)), "byte"),
    ("2^32 - 1 axes", gguf(ARCHITECTURE, DIMS, tensors=(tensor(axes=(1 << 32) - 1),)), "byte"),
    ("extent 0", gguf(ARCHITECTURE, DIMS, tensors=(tensor(extents=(0,)),)), "byte"),
    ("extent -1", gguf(ARCHITECTURE, DIMS, tensors=(tensor(extents=(-1,)),)), "byte"),
    ("product wraps", gguf(ARCHITECTURE, DIMS, tensors=(tensor(extents=((1 << 42) + 1, 1 << 22)),)), "byte"),
    ("part of a block", gguf(ARCHITECTURE, DIMS, tensors=(tensor(extents=(5,), kind=2),), data=bytes(64)), "byte"),
    ("unknown type of tensor", gguf(ARCHITECTURE, DIMS, tensors=(tensor(kind=99),), data=FOUR), "99"),
    ("type -1", gguf(ARCHITECTURE, DIMS, tensors=(tensor(kind=(1 << 32) - 1),), data=FOUR), "byte"),
    ("offset not aligned", gguf(ARCHITECTURE, DIMS, tensors=(tensor(offset=4),), data=bytes(64)), "byte"),
    ("offset past the end", gguf(ARCHITECTURE, DIMS, tensors=(tensor(offset=1 << 20),), data=FOUR), "byte"),
    ("overlap", gguf(ARCHITECTURE, DIMS, tensors=(tensor(), tensor("b")), data=FOUR), "byte"),
    ("offset wraps", gguf(ARCHITECTURE, DIMS, tensors=(tensor(offset=(1 << 64) - 32),), data=FOUR), "byte"),
    ("tensor twice", gguf(ARCHITECTURE, DIMS, tensors=(tensor(), tensor(offset=32)), data=bytes(64)), "rope_freqs"),
    ("long name", gguf(ARCHITECTURE, DIMS, tensors=(tensor("a" * 65),), data=FOUR), "byte"),
    ("freq_base NaN", rope_entry("rope.freq_base", F32, struct.pack("<f", float("nan"))), "freq_base"),
    ("freq_base 0", rope_entry("rope.freq_base", F32, struct.pack("<f", 0)), "freq_base"),
    ("freq_base -1", rope_entry("rope.freq_base", F32, struct.pack("<f", -1)), "freq_base"),
    ("freq_base infinite", rope_entry("rope.freq_base", F32, struct.pack("<f", float("inf"))), "freq_base"),
    ("dimension_count 0", rope_entry("rope.dimension_count", U32, struct.pack("<I", 0)), "dimension_count"),
    ("dimension_count odd", rope_entry("rope.dimension_count", U32, struct.pack("<I", 7)), "dim"),
    ("dimension_count 2^32 - 1", rope_entry("rope.dimension_count", U32, struct.pack("<I", (1 << 32) - 1)), "dim"),
    ("context_length 2^63", rope_entry("context_length", 10, struct.pack("<Q", 1 << 63)), "context_length"),
]


# ------------------------------------------------------------------------------------------------------------- config

def config(**keys):
    return json.dumps({"model_type": "llama", "head_dim": 8, "max_position_embeddings": 64, **keys}).encode()


def scaling(**keys):
    return config(rope_scaling=keys)


CONFIG = [
    ("empty", b"", "the text is empty"),
    ("a list", b"[]", "must be an object"),
    ("UTF-16", config().decode().encode("utf-16"), "line 1"),
    ("byte order mark", b"\xef\xbb\xbf" + config(), "line 1"),
    ("comments", config()[:-1] + b" /* no */ }", "line 1"),
    ("Infinity and NaN", config(time_step_limit=[0.0, float("inf"), float("nan")]), None),
    ("a million brackets", b"[" * 1_000_000, "line 1"),
    ("rope_theta twice", config(rope_theta=1)[:-1] + b',\n"rope_theta":2}', "rope_theta"),
    ("rope_theta 0", config(rope_theta=0), "rope_theta"),
    ("rope_theta -1", config(rope_theta=-1), "rope_theta"),
    ("rope_theta NaN", config(rope_theta=float("nan")), "rope_theta"),
    ("rope_theta is a text", config(rope_theta="10000"), "rope_theta"),
    ("rope_theta 1e400", config()[:-1] + b',"rope_theta":1e400}', "line 1"),
    ("head_dim 0", config(head_dim=0), "head_dim"),
    ("head_dim odd", config(head_dim=7), "head_dim"),
    ("head_dim missing", config(head_dim=None), None),  # the class of the family has a default
    # 33 rotary dimensions: named, and not computed
    ("hidden_size over heads", config(head_dim=None, hidden_size=100, num_attention_heads=3), None),
    ("rope_scaling null", config(rope_scaling=None), None),
    ("rope_scaling is a text", config(rope_scaling="yarn"), "rope_scaling"),
    ("unknown scaling", scaling(type="hyperbolic"), "is unknown"),
    ("no factor", scaling(type="linear"), "factor is missing"),
    ("factor 0", scaling(type="linear", factor=0), "factor"),
    ("long_factor too short", scaling(type="longrope", short_factor=[1] * 4, long_factor=[1] * 3), "long_factor"),
    ("type against rope_type", scaling(type="linear", rope_type="yarn", factor=2), None),  # a warning
    ("partial_rotary_factor 1.7", config(partial_rotary_factor=1.7), "partial_rotary_factor"),
    ("max_position_embeddings 2^63", config(max_position_embeddings=1 << 63), "line 1"),
    ("unknown model", config(model_type="lama"), "did you mean 'llama'?"),
    ("a billion layers", config(num_hidden_layers=10**9), "num_hidden_layers"),
]


class Outcome:
    def __init__(self, arguments, folder):
        begin = time.monotonic()
        with open(os.path.join(folder, "..", os.path.basename(folder) + ".err"), "w+b") as err:
            process = subprocess.Popen([POSENC, *map(str, arguments)], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds = time.monotonic() - begin
            self.code, self.mebibytes = process.returncode, usage.ru_maxrss / 1024
            err.seek(0)
            self.err = err.read().decode()
        os.unlink(err.name)


class BadInput(ProgramTest):
    def look_at(self, arguments, says=None, codes=(0, 1, 2)):
        before = self.files()
        outcome = Outcome(arguments, self.folder)
        self.assertIn(outcome.code, codes, outcome.err)
        if not SANITIZED:
            self.assertLess(outcome.seconds, MOST_SECONDS)
            self.assertLess(outcome.mebibytes, MOST_MEBIBYTES)
        if outcome.code == 2:
            self.assertRegex(outcome.err, r"\A(posenc: note: [^\n]+\n)*posenc: error: [^\n]+\n\Z")
            self.assertEqual(self.files(), before, "nothing may be left behind")
            if says is not None:
                self.assertIn(says, outcome.err)
        return outcome

    def look_at_table(self, table, name, arguments):
        path = self.path(name)
        for what, data, says in table:
            with self.subTest(what):
                self.write(name, data)
                self.look_at([word.replace("FILE", path) for word in arguments], says,
                             codes=(0,) if says is None else (2,))
                if os.path.exists(self.path("y.npy")):
                    os.unlink(self.path("y.npy"))

    def apply(self, name):
        return ["apply", "none", "FILE" + name, "-o", self.path("y.npy"), "--quiet"]

    def test_npy(self):
        self.assertGreaterEqual(len(NPY), 28)
        self.look_at_table(NPY, "x.npy", self.apply(""))

    def test_npz(self):
        self.assertGreaterEqual(len(NPZ), 14)
        self.look_at_table(NPZ, "x.npz", self.apply(":x"))

    def test_a_bomb_is_read_no_further_than_it_says(self):
        # a thousand times its size, but honest: it is what it says
        path = self.write("x.npz", deflated(ZEROS))
        self.look_at(["apply", "none", path + ":x", "-o", self.path("y.npy"), "--quiet"], codes=(0,))

    def test_safetensors(self):
        self.assertGreaterEqual(len(SAFETENSORS), 26)
        self.look_at_table(SAFETENSORS, "x.safetensors", self.apply(":x"))

    def test_gguf(self):
        self.assertGreaterEqual(len(GGUF), 30)
        self.look_at_table(GGUF, "x.gguf", ["inspect", "FILE"])

    def test_gguf_cut_after_every_byte(self):
        # in the program itself here and there; tests/formats and the replay of the corpus cut after each
        for length in list(range(0, 32)) + list(range(32, len(GOOD_GGUF) - 1, 7)):
            with self.subTest(length):
                self.look_at(["inspect", self.write("x.gguf", GOOD_GGUF[:length])], "x.gguf", codes=(2,))
        self.look_at(["inspect", self.write("x.gguf", GOOD_GGUF)], codes=(0,))

    def test_config(self):
        self.assertGreaterEqual(len(CONFIG), 20)
        self.look_at_table(CONFIG, "config.json", ["inspect", "FILE"])
        self.look_at_table([one for one in CONFIG if one[2]], "config.json", ["compare", "--model", "FILE"])

    def test_requests(self):
        x = self.write("x.npy", npy("f32", [2, 4], [1] * 8))
        y = self.path("y.npy")
        exists = self.write("exists.npy", b"mine")
        os.mkfifo(self.path("pipe"))
        table = [
            (["table", "sinusoidal", "--positions", "0:1e12"], "1e12"),
            (["table", "sinusoidal", "--width", "1024", "--positions", "0:1073741824", "-o", y], "bytes"),
            (["table", "sinusoidal", "--width", "7", "--positions", "0:4"], "width"),
            (["table", "sinusoidal", "--width", "0", "--positions", "0:4"], "width"),
            (["table", "sinusoidal", "--width", "2147483648", "--positions", "0:4"], "width"),
            (["table", "rope", "--dims", "7", "--positions", "0:4"], "dims"),
            (["table", "sinusoidal", "--positions", "9007199254740993"], "is not a position"),
            (["table", "sinusoidal", "--positions", "-9007199254740992"], "53 bits"),
            (["table", "sinusoidal", "--positions", "1.5.2"], "1.5.2"),
            (["table", "sinusoidal", "--positions", "1/0"], "1/0"),
            (["table", "sinusodial", "--positions", "0"], "did you mean 'sinusoidal'?"),
            (["apply", "none", x, "-o", x], "is also the input"),
            (["apply", "none", x, "-o", self.folder], ".npy"),
            (["apply", "none", x, "-o", exists], "exists"),
            (["apply", "none", self.path("pipe"), "-o", y], "is not a regular file"),
            (["inspect", self.path("pipe")], "is not a regular file"),
            (["compare", "--model", x], "line 1"),
            (["diagnose", "--before", x], "--after is missing"),
        ]
        for arguments, says in table:
            with self.subTest(" ".join(arguments[:4])):
                self.look_at(arguments, says, codes=(2,))
        # a full disk and a closed pipe are told by faults_test and output_file_test
        self.look_at(["apply", "none", x, "-o", os.path.join(self.folder, "no", "y.npy")], codes=(3,))
        self.assertEqual(self.read("exists.npy"), b"mine")

    def test_everything_that_fuzzing_begins_with(self):
        looked = 0
        endings = {"npy": "", "npz": ":x", "safetensors": ":x"}
        for path in sorted(glob.glob(os.path.join(HERE, "..", "fuzz", "corpus", "*", "*"))):
            kind = os.path.basename(os.path.dirname(path))
            with open(path, "rb") as file:
                data = file.read()
            for cut in (len(data), len(data) // 2):
                with self.subTest(path=path, cut=cut):
                    ending = kind if kind in endings or kind == "gguf" else "json"
                    copy = self.write(f"f.{ending}", data[:cut])
                    if kind in endings:
                        self.look_at(["apply", "none", copy + endings[kind], "-o", self.path("y.npy"), "--force"])
                    else:
                        self.look_at(["inspect", copy])
                    looked += 1
        self.assertGreaterEqual(looked, 70)

    def test_noise(self):
        noise = random.Random(5)
        for size in (1, 100, 100_000, 3_000_000):
            data = noise.randbytes(size)
            for name in ("f.npy", "f.npz", "f.safetensors", "f.gguf", "config.json"):
                path = self.write(name, data)
                with self.subTest(name=name, size=size):
                    verb = ["inspect", path] if name in ("f.gguf", "config.json") else [
                        "apply", "none", path, "-o", self.path("y.npy")]
                    self.look_at(verb, re.escape(name).replace("\\", ""), codes=(2,))


if __name__ == "__main__":
    unittest.main()

"""Arrays inside other files: x.npz:name and x.safetensors:name in, .safetensors out."""

import io
import json
import os
import resource
import struct
import unittest
import zipfile

from program import SANITIZED, ProgramTest, as_f32, npy, parse_npy, parse_safetensors, run, safetensors, sinusoidal


def npz(members, compression=zipfile.ZIP_STORED, zip64=True):
    """An archive as numpy.savez writes it: ZIP64 asked for in the header of each member."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in members.items():
            with archive.open(name + ".npy", "w", force_zip64=zip64) as member:
                member.write(data)
    return out.getvalue()


X = [i / 8 for i in range(12)]
SUM = [as_f32(value + p) for value, p in zip(X, sinusoidal(0, 4) + sinusoidal(1, 4) + sinusoidal(2, 4))]


class In(ProgramTest):
    def apply(self, x, *more, scheme="sinusoidal"):
        return parse_npy(self.succeeds("apply", scheme, x, "-o", "-", *more).out)

    def test_npz(self):
        members = {"x": npy("f32", [3, 4], X), "ids": npy("i64", [3], [2, 1, 0])}
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            for zip64 in (False, True):
                file = self.write("x.npz", npz(members, compression, zip64))
                self.assertEqual(self.apply(file + ":x"), ("f32", (3, 4), SUM))
                turned = self.apply(file + ":x", "--positions", f"@{file}:ids")[2]
                self.assertEqual(turned[:4], [as_f32(x + p) for x, p in zip(X, sinusoidal(2, 4))])

    def test_npz_into_a_pipe(self):
        class Pipe(io.RawIOBase):  # cannot seek, so the sizes come after the data
            data = b""

            def writable(self):
                return True

            def write(self, more):
                self.data += bytes(more)
                return len(more)

        pipe = Pipe()
        with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", npy("f32", [3, 4], X))
        self.assertEqual(self.apply(self.write("x.npz", pipe.data))[2], SUM)

    def test_safetensors(self):
        tensors = {"layer.x": ("F32", [3, 4], X), "ids": ("I64", [3], [2, 1, 0]), "small": ("I32", [1], [1])}
        file = self.write("x.safetensors", safetensors(tensors, format="pt"))
        self.assertEqual(self.apply(file + ":layer.x"), ("f32", (3, 4), SUM))
        turned = self.apply(file + ":layer.x", "--positions", f"@{file}:ids")[2]
        self.assertEqual(turned[:4], [as_f32(x + p) for x, p in zip(X, sinusoidal(2, 4))])

    def test_bf16_needs_no_word_where_the_file_says_it(self):
        file = self.write("x.safetensors", safetensors({"x": ("BF16", [1, 2], [0x4000, 0x4000])}))
        self.assertEqual(self.apply(file), ("bf16", (1, 2), [0x4000, 0x4040]))

    def test_one_array_needs_no_name(self):
        self.assertEqual(self.apply(self.write("x.npz", npz({"arr_0": npy("f32", [3, 4], X)})))[2], SUM)
        self.assertEqual(self.apply(self.write("x.safetensors", safetensors({"x": ("F32", [3, 4], X)})))[2], SUM)

    def test_a_learned_table(self):
        tensors = {"wpe.weight": ("F32", [4, 2], list(range(8))), "wte.weight": ("F32", [1, 2], [9, 9])}
        table = self.write("model.safetensors", safetensors(tensors))
        file = self.write("x.npz", npz({"x": npy("f32", [3, 2], [0.5] * 6)}))
        y = self.apply(file, "--table", table + ":wpe.weight", "--offset", 1, scheme="learned")[2]
        self.assertEqual(y, [2.5, 3.5, 4.5, 5.5, 6.5, 7.5])

    def test_members_that_are_not_in_order(self):
        turned = [X[row * 4 + column] for column in range(4) for row in range(3)]
        data = npy("f32", [3, 4], turned).replace(b"False", b"True ")
        file = self.write("x.npz", npz({"x": data}, zipfile.ZIP_DEFLATED))
        self.assertEqual(self.apply(file)[2], SUM)

    def test_many_pieces_are_one_result(self):
        # 24 MB: more than two pieces
        data = npy("f32", [6000, 1000], []) + b"\0" * 24000000
        file = self.write("x.npz", npz({"x": data}, zipfile.ZIP_DEFLATED))
        self.assertLess(os.path.getsize(file), 100000)
        out = self.succeeds("apply", "sinusoidal", file, "-o", "-").out[128:]
        for token in (0, 2097, 5999):
            self.assertEqual(list(struct.unpack_from("<1000f", out, token * 4000)), sinusoidal(token, 1000))

    def test_names_with_colons(self):
        file = self.write("a:b.npz", npz({"c:d": npy("f32", [3, 4], X)}))
        self.assertEqual(self.apply(file + ":c:d")[2], SUM)
        self.assertEqual(self.apply(self.write("0:8.npy", npy("f32", [3, 4], X)))[2], SUM)


class Refused(ProgramTest):
    def no(self, x, says, code=2):
        self.refused("apply", "sinusoidal", x, "-o", self.path("y.npy"), says=says, code=code)

    def test_names(self):
        one = npy("f32", [3, 4], X)
        files = {
            "x.npz": npz({"query": one, "key": one}),
            "x.safetensors": safetensors({"query": ("F32", [3, 4], X), "key": ("F32", [3, 4], X)}),
        }
        for name, data in files.items():
            file = self.write(name, data)
            self.no(file, says=f"{name} contains 2 arrays; name one, e.g. {file}:query (choose from: query, key)")
            self.no(file + ":quary", says=f"{name} contains no array 'quary' (did you mean 'query'?)")
            self.no(file + ":zzzzzz", says=f"{name} contains no array 'zzzzzz' (choose from: query, key)")
            self.no(file + ":", says="contains no array ''")
        many = self.write("m.npz", npz({f"a{i}": one for i in range(20)}))
        self.no(many, says="(choose from: a0, a1, a2, a3, a4, a5, a6, a7 and 12 more)")
        self.no(self.write("e.npz", npz({})), says="e.npz contains no arrays")
        self.no(self.write("e.safetensors", safetensors({})), says="e.safetensors contains no arrays")
        self.no(self.path("none.npz") + ":x", says="none.npz: No such file", code=3)

    def test_types(self):
        file = self.write("x.safetensors", safetensors({"x": ("I32", [1, 2], [1, 2])}))
        self.no(file, says='x.safetensors: tensor "x" has type I32; posenc reads F32, F64, F16, BF16 and I64')
        self.no(self.write("i.safetensors", safetensors({"x": ("I64", [1, 2], [1, 2])})), says="contains integers")
        self.no(self.write("x.npz", npz({"x": npy("bf16", [1, 2], [0, 0])})),
                says="x.npz: member \"x\": byte 20: dtype '<V2' is two bytes of unknown meaning")

    def test_damage(self):
        good = npz({"x": npy("f32", [3, 4], X)}, zip64=False)
        self.no(self.write("t.npz", good[:-1]), says="t.npz: byte 283: the archive has no end record")
        damaged = bytearray(good)
        damaged[200] ^= 1
        self.no(self.write("c.npz", bytes(damaged)), says='c.npz: byte 211: member "x": the data has CRC')
        self.no(self.write("n.npz", npy("f32", [3, 4], X)), says="n.npz: byte 0: not a .npz file (it is .npy)")
        good = safetensors({"x": ("F32", [3, 4], X)})
        self.no(self.write("t.safetensors", good[:-1]), says='byte 9: tensor "x": data_offsets end at 48 but')
        self.no(self.write("l.safetensors", good + b"x"), says="1 bytes follow the last tensor")
        self.no(self.write("n.safetensors", npy("f32", [3, 4], X)), says="is it a .safetensors file?")

    def test_what_is_no_file(self):
        for name in ("fifo.npz", "fifo.safetensors"):
            os.mkfifo(self.path(name))
            self.no(self.path(name) + ":x", says=f"{name} is not a regular file")

    def test_the_input_as_output(self):
        file = self.write("x.safetensors", safetensors({"x": ("F32", [3, 4], X)}))
        self.refused("apply", "sinusoidal", file + ":x", "-o", file, says="is also the input")


class Out(ProgramTest):
    def test_apply(self):
        file = self.write("x.npy", npy("f32", [3, 4], X))
        out = self.path("y.safetensors")
        outcome = self.succeeds("apply", "sinusoidal", file, "-o", out)
        self.assertEqual(outcome.err, f"posenc: wrote {out}: [3, 4] f32\n")
        self.assertEqual(parse_safetensors(self.read("y.safetensors")), ("out", "F32", [3, 4], SUM))
        again = self.succeeds("apply", "none", out + ":out", "-o", "-").out
        self.assertEqual(parse_npy(again)[2], SUM)

    def test_table(self):
        small = ("table", "sinusoidal", "--width", 4, "--positions", "0:3")
        for dtype in ("f32", "f64", "f16", "bf16"):
            self.succeeds(*small, "--dtype", dtype, "-o", self.path("a.safetensors"), "--force", "--quiet")
            name, found, shape, values = parse_safetensors(self.read("a.safetensors"))
            self.assertEqual((name, found, shape), ("table", dtype.upper(), [3, 4]))
            self.assertEqual(values, parse_npy(self.succeeds(*small, "--dtype", dtype, "-o", "-").out)[2])
            piped = self.succeeds(*small, "--dtype", dtype, "-o", "-", "--format", "safetensors").out
            self.assertEqual(piped, self.read("a.safetensors"))


@unittest.skipIf(SANITIZED, "sanitizers need memory of their own")
class Memory(ProgramTest):
    def test_large_members_take_little_memory(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_DATA, (128 << 20, 128 << 20))

        head = npy("f32", [64, 1024, 1024], [])
        with zipfile.ZipFile(self.path("x.npz"), "w", zipfile.ZIP_DEFLATED) as archive:
            with archive.open("x.npy", "w", force_zip64=True) as member:
                member.write(head)
                for i in range(64):  # 256 MiB of little numbers
                    member.write(bytes((i * 7 + j * j) % 251 for j in range(4096)) * 1024)
        text = json.dumps({"x": {"dtype": "F32", "shape": [65536, 1024], "data_offsets": [0, 1 << 28]}}).encode()
        file = self.write("x.safetensors", struct.pack("<Q", len(text)) + text)
        os.truncate(file, 8 + len(text) + (1 << 28))
        for x in (self.path("x.npz"), file):
            with open(os.devnull, "wb") as nowhere:
                outcome = run("apply", "none", x, "-o", "-", "--threads", 1, stdout=nowhere, preexec_fn=limited)
            self.assertEqual((outcome.code, outcome.err), (0, ""))


if __name__ == "__main__":
    unittest.main()

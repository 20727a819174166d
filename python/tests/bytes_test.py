"""Every scheme, verb and type gives the bytes that the program writes: from numpy, memoryview and, where it is there, torch."""

import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import posenc
from posenc import _posenc

PROGRAM = os.environ.get("POSENC")
if PROGRAM is None:
    print("no program to compare with")
    sys.exit(77)
HAS_TORCH = importlib.util.find_spec("torch") is not None and not os.environ.get("POSENC_SANITIZE")
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.uint16}
RNG = np.random.default_rng(3)
# Fields whose defaults are large, empty or searched for a model; every other scheme has its defaults.
FIELDS = {
    "fire": {"hidden_weights": [0.5, -1.0], "hidden_biases": [0.25, 0.5], "output_weights": [0.5, 1.0, -0.5, 0.25], "output_biases": [0.0, 1.0]},
    "kerple": {"amplitudes": [1.0, 0.5], "rates": [0.5, 0.25]},
    "learned": {"rows": 16, "width": 8},
    "log-cpb": {"heads": 2, "hidden_weights": [0.5, -1.0, 0.25, 1.0], "hidden_biases": [0.1, 0.2], "output_weights": [0.5, 1.0, -0.5, 0.25]},
    "fope": {"heads": 3, "dims": 8}, "rope-mixed": {"heads": 3, "dims": 8},
    "rope": {"dims": 8}, "shift": {"width": 8}, "sinusoidal": {"width": 8}, "steps": {"width": 8},
}
# Each of these must be compared. A scheme that is new is, if its defaults can be prepared.
KNOWN = {"none", "sinusoidal", "learned", "rope", "alibi", "t5", "kerple", "fire", "sandwich", "swin", "log-cpb", "steps", "shift",
         "rope-mixed", "fope"}
# What a table of vectors is for: attention alone has the queries that they meet.
VECTORS = {"shaw", "deberta", "transformer-xl", "relative-logits", "forget-gate", "cope", "decomposed"}


def program(*arguments):
    # what is preloaded for the interpreter (a sanitizer's run-time) is inside the program already
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([PROGRAM, *map(str, arguments), "--quiet", "--force"], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise AssertionError(f"posenc {' '.join(map(str, arguments))}: {done.stderr}")


def made(name):
    """The scheme, and the shape of its trained table: () where it has none."""
    scheme = posenc.scheme({"scheme": name, **FIELDS.get(name, {})})
    if name == "swin":
        return scheme, (math.prod(2 * extent - 1 for extent in scheme.window), scheme.heads)
    if name in ("rope-mixed", "fope"):  # a table is optional
        return scheme, ()
    return scheme, tuple(getattr(scheme, axis) for axis in type(scheme).trained_table)


LISTED = {entry["name"]: entry for entry in json.loads(_posenc.schemes())["schemes"]}


def random_bits(shape, dtype):
    values = RNG.standard_normal(shape)
    if dtype == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(TYPES[dtype])


def ordered(array):
    """16-bit floats as integers, neighbours one apart."""
    bits = array.view(np.int16).astype(np.int32)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


def ways(x, dtype):
    """The same numbers as other arrays: (what, array, how to read the result)."""
    yield "numpy", x.copy(), np.asarray
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)[..., ::2]
    wide[...] = x
    yield "every second feature", wide, np.ascontiguousarray
    if dtype in ("f32", "f64"):  # Python's memoryview has no 16-bit floats
        view = memoryview(bytearray(x.tobytes())).cast({"f32": "f", "f64": "d"}[dtype], x.shape)
        yield "memoryview", view, np.asarray
    if HAS_TORCH:
        import torch

        tensor = torch.from_numpy((x.view(np.int16) if dtype == "bf16" else x).copy())
        tensor = tensor.view(torch.bfloat16) if dtype == "bf16" else tensor
        back = lambda one: (one.contiguous().view(torch.int16) if dtype == "bf16" else one.contiguous()).numpy()  # noqa: E731
        yield "torch", tensor.clone(), back  # the caller writes into what it is given
        strided = torch.empty(*x.shape[:-1], 2 * x.shape[-1], dtype=tensor.dtype)[..., ::2]
        strided.copy_(tensor)
        yield "torch, every second feature", strided, back


class EveryScheme(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return Path(self.folder.name) / name

    def saved(self, name, array):
        np.save(self.path(name), array.view("V2") if array.dtype == np.uint16 else array)
        return self.path(name)

    def read(self, name, dtype):
        return np.load(self.path(name)).view(TYPES[dtype])

    def same(self, found, wanted, what):
        self.assertEqual((found.shape, found.tobytes()), (wanted.shape, wanted.tobytes()), what)

    def form_of(self, name):
        """(form, words for the program) of a scheme, or None for vectors by distance."""
        scheme, shape = made(name)
        if not shape:
            return scheme, posenc.prepare(scheme, length=16), []
        table = RNG.standard_normal(shape).astype("f")
        return scheme, posenc.prepare(scheme, weights=table), ["--table", self.saved("table.npy", table)]

    def test_every_scheme_has_a_verb(self):
        counted = {}
        for name in set(LISTED) - VECTORS:
            with self.subTest(name):
                try:
                    scheme, form, table = self.form_of(name)
                except (posenc.Error, AttributeError) as error:
                    self.assertNotIn(name, KNOWN, error)
                    print(f"{name}: not compared: {error}")
                    continue
                check = {"addition": self.addition, "rotation": self.rotation, "bias": self.bias, "nothing": self.nothing}[form.kind]
                counted[name] = check(scheme, form, table)
        self.assertLessEqual(KNOWN, set(counted))
        for name in ("sinusoidal", "rope", "alibi", "t5", "learned"):
            self.assertGreaterEqual(counted.get(name, 0), 8, name)

    def addition(self, scheme, form, table):
        count = 0
        many = tuple(range(3, 8)) if form.axes == 1 else None
        if many is None:
            return self.on_a_grid(scheme, form, table)
        for dtype in TYPES:
            program("table", scheme.to_json(), *table, "--positions", "3:8", "--dtype", dtype, "-o", self.path("t.npy"))
            self.same(posenc.tabulate(form, first=3, count=5, dtype=dtype), self.read("t.npy", dtype), f"{scheme.name} {dtype} table")
            x = random_bits((2, 5, form.width), dtype)
            program("apply", scheme.to_json(), self.saved("x.npy", x), *table, "--positions", "3:8", "--axes", "bsd", "--dtype", dtype,
                    "-o", self.path("y.npy"))
            wanted = self.read("y.npy", dtype)
            for what, array, back in ways(x, dtype):
                self.same(back(posenc.add(array, form, first=3, dtype=dtype)), wanted, f"{scheme.name} {dtype} {what}")
                count += 1
        return count

    def on_a_grid(self, scheme, form, table):
        extents = (2, 3, 2)[:form.axes]
        grid = ",".join(map(str, extents))
        program("table", scheme.to_json(), *table, "--grid", grid, "-o", self.path("t.npy"))
        made = posenc.tabulate(form.head(0) if form.kind == "rotation" and form.heads else form, ids=posenc.grid_positions(extents))
        made = np.stack(made) if isinstance(made, tuple) else made  # cosines and sines of a rotation
        self.same(made, self.read("t.npy", "f32"), scheme.name)
        return 1

    def rotation(self, scheme, form, table):
        count = 0
        if form.axes > 1:
            return self.on_a_grid(scheme, form, table)
        for dtype in TYPES:
            features = getattr(scheme, "dims", 8)
            x = random_bits((2, 3, 5, features), dtype)
            program("apply", scheme.to_json(), self.saved("x.npy", x), *table, "--positions", "39000:39005", "--axes", "bhsd", "--dtype", dtype,
                    "-o", self.path("y.npy"))
            wanted = self.read("y.npy", dtype)
            for what, array, back in ways(x, dtype):
                self.same(back(posenc.rotate(array, form, first=39000, dtype=dtype)), wanted, f"{scheme.name} {dtype} {what}")
                count += 1
            self.attended(scheme, form, table, dtype, features)
        return count

    def bias(self, scheme, form, table):
        count = 0
        if form.axes > 1:
            extents = tuple(getattr(scheme, "window", ()) or (2,) * form.axes)
            grid = posenc.grid_positions(extents)
            program("table", scheme.to_json(), *table, "--grid", ",".join(map(str, extents)), "-o", self.path("b.npy"))
            self.same(posenc.bias(form, grid, grid), self.read("b.npy", "f32"), scheme.name)
            return 1
        for dtype in TYPES:
            program("table", scheme.to_json(), *table, "--queries", "2:6", "--keys", "0:7", "--dtype", dtype, "-o", self.path("b.npy"))
            made = posenc.bias(posenc.prepare(scheme, length=7) if not table else form, range(2, 6), range(7), dtype=dtype)
            self.same(made, self.read("b.npy", dtype), f"{scheme.name} {dtype}")
            count += 1
            if dtype != "f64" or not table:
                count += self.attended(scheme, form, table, dtype, 8)
        return count

    def nothing(self, scheme, form, table):
        return self.attended(scheme, form, table, "f32", 8)

    def attended(self, scheme, form, table, dtype, features):
        heads = form.heads or 2
        q, k, v = (random_bits((heads, 6, features), dtype) for _ in range(3))
        names = [word for name, x in zip("qkv", (q, k, v)) for word in (f"--{name}", self.saved(f"{name}.npy", x))]
        program("attend", scheme.to_json(), *names, *table, "--causal", "--axes", "hsd", "--dtype", dtype, "-o", self.path("o.npy"))
        wanted = self.read("o.npy", dtype)
        count = 0
        form = form if table else posenc.prepare(scheme, length=6)
        for (what, one, back), (_, other, _), (_, third, _) in zip(*(ways(x, dtype) for x in (q, k, v))):
            got = np.asarray(back(posenc.attention(one, other, third, form, causal=True, dtype=dtype)))
            if dtype in ("bf16", "f16") and "second feature" in what:
                # Features that are apart are widened, others multiplied by the matrix unit: sums in another order.
                self.assertLessEqual(np.abs(ordered(got) - ordered(wanted)).max(), 1, f"{scheme.name} {dtype} {what}")
            else:
                self.same(got, wanted, f"{scheme.name} {dtype} {what}")
            count += 1
        return count


class Goldens(unittest.TestCase):
    """Arrays that transformers 5.17 and other implementations made (tests/oracle/data/goldens/README.md)."""

    FOLDER = Path(os.environ.get("POSENC_ROOT", Path(__file__).parents[2])) / "tests/oracle/data/goldens"

    def load(self, name):
        return np.load(self.FOLDER / f"{name}.npy")

    def test_rotations(self):
        entries, data = json.loads((self.FOLDER / "rope.json").read_text()), self.load("rope")
        seen = 0
        for entry in entries:
            tensors = {name: data[one["offset"]:one["offset"] + int(np.prod(one["shape"]))].reshape(one["shape"])
                       for name, one in entry["tensors"].items() if "offset" in one}
            if entry["axes"] != "batch,heads,seq,dim" or not {"q", "q_rot", "cos"} <= set(tensors) or np.ndim(entry["positions"]) != 1:
                continue
            form = posenc.prepare(posenc.scheme(entry["scheme"]), length=entry["length"], numerics="hf-f32")
            pairs, halves = form.pairs, "halves" if form.layout == "halves" else None
            if halves is None or tensors["q"].shape[-1] != 2 * pairs:
                continue
            # torch's float32 power is 1 ulp off in some frequencies, which far positions multiply.
            angle = np.abs(np.multiply.outer(entry["positions"], form.frequencies))
            cosines, sines = tensors["cos"][0, :, :pairs], tensors["sin"][0, :, :pairs]
            for made, wanted in zip(posenc.tabulate(form, ids=entry["positions"]), (cosines, sines)):
                self.assertTrue((np.abs(made - wanted) <= form.magnitude * (3e-7 + 1.3e-7 * angle)).all(), entry["name"])
            by_table = posenc.prepare_table(np.ascontiguousarray(cosines, "f"), np.ascontiguousarray(sines, "f"))
            made = posenc.rotate(tensors["q"].astype("f"), by_table)
            bound = 4e-7 * float(np.abs(tensors["q_rot"]).max())
            self.assertLess(float(np.abs(made - tensors["q_rot"]).max()), bound, entry["name"])
            seen += 1
        self.assertGreaterEqual(seen, 5)

    def test_biases(self):
        for kind in ("bidirectional", "causal"):
            table, wanted = self.load(f"t5-bias-{kind}-table"), self.load(f"t5-bias-{kind}-bias")
            scheme = posenc.T5(heads=table.shape[1], buckets=table.shape[0], bidirectional=kind == "bidirectional")
            wanted = wanted.reshape(-1, *wanted.shape[-2:])
            made = posenc.bias(posenc.prepare(scheme, weights=table.astype("f")), *wanted.shape[-2:])
            if kind == "causal":  # what the mask removes is not compared
                made, wanted = np.tril(made), np.tril(wanted)
            self.assertTrue(np.array_equal(made, wanted.astype("f")), kind)

    def test_tables(self):
        wanted = self.load("sinusoid-marian-table")
        form = posenc.prepare(posenc.Sinusoidal(width=wanted.shape[-1], layout="sin-cos"))
        made = posenc.tabulate(form, count=len(wanted))
        self.assertLess(float(np.abs(made - wanted).max()), 1e-6)


if __name__ == "__main__":
    unittest.main()

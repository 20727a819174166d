"""Schemes, forms, models and verdicts as values."""

import ast
import copy
import dataclasses
import inspect
import json
import pathlib
import pickle
import pydoc
import re
import unittest

import numpy as np
import posenc
from posenc import _posenc

LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
         "max_position_embeddings": 128, "rope_theta": 10000.0}
GEMMA2 = {"model_type": "gemma2", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
          "num_hidden_layers": 4, "sliding_window": 32, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 50.0,
          "max_position_embeddings": 128}


class Names(unittest.TestCase):
    def test_what_is_loaded_later_is_listed(self):
        later = {name for names in posenc._LATER.values() for name in names}
        self.assertLessEqual(later, set(posenc._NAMES))
        for name in posenc._NAMES:
            self.assertIsNotNone(getattr(posenc, name))


class Schemes(unittest.TestCase):
    def test_every_scheme_is_there_with_its_fields(self):
        listed = json.loads(_posenc.schemes())
        self.assertGreaterEqual(len(listed["schemes"]), 14)
        for entry in listed["schemes"]:
            made = posenc.scheme(entry["name"])
            self.assertEqual((type(made).name, type(made).family), (entry["name"], entry["family"]))
            self.assertEqual([one.name for one in dataclasses.fields(made)], [one["name"] for one in entry["fields"]])
            self.assertIn(type(made).__name__, posenc.__all__)
            self.assertEqual(made, type(made)())  # the defaults are the library's
            self.assertEqual(json.loads(_posenc.scheme_json(made.to_json())), json.loads(_posenc.scheme_json(entry["name"])))
        for entry in listed["scalings"]:
            self.assertIn("".join(word.title() for word in entry["name"].split("-")).replace("None", "No") + "Scaling", posenc.__all__)

    def test_there_and_back(self):
        rope = posenc.Rope(dims=64, sections=(8, 12, 12), scaling=posenc.LongropeScaling(short_factors=(1.0,) * 32, long_factors=(2.0,) * 32))
        self.assertEqual(posenc.scheme(rope.to_json()), rope)
        self.assertEqual(pickle.loads(pickle.dumps(rope)), rope)
        self.assertEqual(hash(copy.deepcopy(rope)), hash(rope))
        self.assertEqual(dataclasses.replace(rope, dims=32).dims, 32)
        self.assertEqual(json.loads(dataclasses.replace(rope, dims=32).to_json())["dims"], 32)
        with self.assertRaises(dataclasses.FrozenInstanceError):
            rope.dims = 3
        with self.assertRaises(TypeError):
            posenc.Rope(64)

    def test_text(self):
        self.assertEqual(repr(posenc.LinearScaling(factor=2.0)), "LinearScaling(factor=2.0)")
        self.assertIn("<table>", posenc.Rope()._repr_html_())


class Forms(unittest.TestCase):
    def test_facts(self):
        form = posenc.prepare(posenc.Rope(dims=8, scaling=posenc.YarnScaling(factor=4)))
        self.assertEqual((form.kind, form.pairs, form.axes, form.layout, form.heads, form.width), ("rotation", 4, 1, "halves", None, None))
        self.assertAlmostEqual(form.magnitude, 1.1386294361)
        self.assertEqual(form.frequencies[0], 1.0)
        self.assertEqual(posenc.prepare("alibi").heads, 8)
        self.assertEqual(posenc.prepare(posenc.Sinusoidal(width=6)).width, 6)
        self.assertIn("magnitude 1.13", repr(form))
        self.assertIn("radians", form._repr_html_())

    def test_cache(self):
        self.assertIs(posenc.prepare(posenc.Rope(dims=8)), posenc.prepare(posenc.Rope(dims=8)))
        self.assertIsNot(posenc.prepare(posenc.Rope(dims=8)), posenc.prepare(posenc.Rope(dims=8), numerics="hf-f32"))

    def test_pickle(self):
        form = posenc.prepare(posenc.Rope(dims=8), numerics="hf-f32")
        self.assertEqual(pickle.loads(pickle.dumps(form)).frequencies, form.frequencies)
        with self.assertRaisesRegex(TypeError, "cannot be pickled"):
            pickle.dumps(posenc.prepare(posenc.T5(), weights=np.zeros((32, 8), "f")))

    def test_derived(self):
        form = posenc.prepare(posenc.Rope(dims=4))
        x = np.ones((3, 4), "f")
        for back in (form.adjoint(), form.inverse()):
            self.assertLess(np.abs(posenc.rotate(posenc.rotate(x.copy(), form), back) - 1).max(), 1e-6)
        self.assertEqual(form.for_keys().frequencies, form.frequencies)

    def test_weights_are_read_in_place_and_kept_alive(self):
        table = np.zeros((4, 2), "f")
        form = posenc.prepare(posenc.Learned(rows=4, width=2), weights=table)
        table[1] = 7
        self.assertEqual(posenc.add(np.zeros((1, 2), "f"), form, first=1).tolist(), [[7, 7]])
        other = form.bind(np.full((4, 2), 9, "f"))  # nobody else has this table
        junk = [np.zeros((4, 2), "f") for _ in range(100)]
        self.assertEqual(posenc.add(np.zeros((1, 2), "f"), other, first=1).tolist(), [[9, 9]])
        del junk
        held = bytearray(32)
        form = posenc.prepare(posenc.Learned(rows=4, width=2), weights=memoryview(held).cast("f", (4, 2)))
        with self.assertRaises(BufferError):
            held.extend(b"more")
        del form
        held.extend(b"more")

    def test_own_table(self):
        angles = np.arange(4.0)[:, None] * np.array([1.0, 0.1])
        form = posenc.prepare_table(np.cos(angles), np.sin(angles), layout="interleaved")
        wanted = posenc.rotate(np.ones((4, 4)), posenc.prepare(posenc.Rope(dims=4, base=100.0, layout="interleaved")))
        self.assertLess(np.abs(posenc.rotate(np.ones((4, 4)), form) - wanted).max(), 1e-12)


class Models(unittest.TestCase):
    def test_layers(self):
        model = posenc.read_model(LLAMA)
        self.assertEqual(model.layer(1).scheme, posenc.Rope(dims=16))
        self.assertEqual((model.trained_length, model.layer().causal, model.layer().softcap), (128, True, None))
        with self.assertRaisesRegex(posenc.Error, "no layer 2"):
            model.layer(2)
        gemma = posenc.read_model(json.dumps(GEMMA2))
        windows = [gemma.layer(i).window for i in range(4)]
        self.assertEqual(sorted(set(windows), key=str), [32, None])
        self.assertEqual(gemma.layer(0).softcap, 50.0)
        self.assertIn("layers", repr(gemma))
        self.assertIn("<table>", gemma._repr_html_())

    def test_sources(self):
        with self.assertRaises(FileNotFoundError):
            posenc.read_model("no/such/config.json")
        with self.assertRaisesRegex(posenc.Error, "did you mean 'llama'"):
            posenc.read_model({"model_type": "lama"})
        with self.assertRaisesRegex(TypeError, "int"):
            posenc.read_model(3)

    def test_an_unknown_model_type(self):
        """With the keys of RoPE it is an assumption, and says so; without them an error. The docstring says the same."""
        unknown = {**LLAMA, "model_type": "not_yet_known"}
        self.assertTrue(posenc.read_model(unknown).data["is_assumed"])
        self.assertFalse(posenc.read_model(LLAMA).data["is_assumed"])
        with self.assertRaisesRegex(posenc.Error, "not_yet_known.* is unknown"):
            posenc.read_model({"model_type": "not_yet_known"})
        self.assertIn('data["is_assumed"]', posenc.read_model.__doc__)

    def test_engines(self):
        found = posenc.compare_engines(LLAMA, engines=("hf", "vllm"), length=64)
        self.assertTrue(found)
        self.assertEqual(found.length, 64)
        yarn = {**LLAMA, "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}}
        self.assertFalse(posenc.compare_engines(yarn, engines=("hf", "llama.cpp"), length=512))

    def test_check_both_ways(self):
        x = np.random.default_rng(1).standard_normal((4, 16, 16)).astype("f")
        right = posenc.rotate(x.copy(), posenc.prepare(posenc.Rope(dims=16)), first=3)
        self.assertTrue(posenc.check(x, right, model=LLAMA, first=3))
        wrong = posenc.check(x, right, model=LLAMA)
        self.assertFalse(wrong)
        self.assertEqual(wrong.verdict, "differs")
        self.assertIn("expected", repr(wrong))
        self.assertIn("<table>", wrong._repr_html_())
        tiny = posenc.check(x[:, :1], right[:, :1], posenc.Rope(dims=16), tolerance=100.0, first=3)
        self.assertEqual(tiny.verdict, "inconclusive")
        nothing = posenc.check(x[:, :1], x[:, :1], posenc.Rope(dims=16))  # position 0 shows nothing
        self.assertFalse(nothing)
        self.assertIn("inconclusive: this token cannot tell rope from none", repr(nothing))
        self.assertIn("reason", nothing._repr_html_())
        self.assertEqual(nothing.deciding[0], {"tokens": 1, "first_positions": [1]})
        dynamic = posenc.Rope(dims=16, scaling=posenc.DynamicScaling(factor=2, original_length=32))
        long = posenc.rotate(x.copy(), posenc.prepare(dynamic, length=64))
        self.assertTrue(posenc.check(x, long, dynamic, length=64))
        self.assertFalse(posenc.check(x, long, dynamic))
        swapped = np.ascontiguousarray(x.transpose(1, 0, 2)), np.ascontiguousarray(right.transpose(1, 0, 2))
        self.assertTrue(posenc.check(*swapped, posenc.Rope(dims=16), first=3, order="shd"))

    def test_diagnose(self):
        x = np.random.default_rng(1).standard_normal((16, 16)).astype("f")
        made = posenc.rotate(x.copy(), posenc.prepare(posenc.Rope(dims=16, base=5e5, layout="interleaved")))
        found = posenc.diagnose(x, made)
        self.assertEqual((found.verdict, found.best["layout"]), ("sure", "interleaved"))
        self.assertAlmostEqual(found.best["base"], 5e5)
        self.assertEqual(posenc.diagnose(x, x).verdict, "unchanged")
        self.assertEqual(pickle.loads(pickle.dumps(found)).verdict, "sure")


class Documentation(unittest.TestCase):
    def test_every_public_function_says_what_it_does(self):
        for name in posenc.__all__:
            if name in ("plot", "watch", "Plot", "WatchReport"):
                continue
            self.assertTrue((getattr(posenc, name).__doc__ or "").strip(), name)
        for name in ("rotate", "attention", "add", "tabulate"):
            for word in ("Error:", "Raises:"):
                self.assertIn(word, getattr(posenc, name).__doc__, name)
        shown = pydoc.plain(pydoc.render_doc(posenc.rotate))
        for word in ("Error:", "Range:", "Raises:"):
            self.assertIn(word, shown)

    def test_names_of_the_extension_are_those_of_its_stub(self):
        stub = (pathlib.Path(posenc.__file__).parent / "_posenc.pyi").read_text("utf-8")
        declared = set(re.findall(r"^def (\w+)\(", stub, re.MULTILINE))
        self.assertEqual(declared, {name for name, value in vars(_posenc).items() if inspect.isbuiltin(value)})

    def test_signatures_are_those_of_the_stub(self):
        stub = ast.parse((pathlib.Path(posenc.__file__).parent / "_posenc.pyi").read_text("utf-8"))
        for function in (one for one in stub.body if isinstance(one, ast.FunctionDef)):
            declared = [one.arg for one in function.args.posonlyargs]
            self.assertEqual(len(function.args.args) + len(function.args.kwonlyargs), 0, function.name)
            found = inspect.signature(getattr(_posenc, function.name))
            self.assertEqual(list(found.parameters), declared, function.name)
            with self.assertRaisesRegex(TypeError, f"{len(declared)} arguments are needed, {len(declared) + 1} were given"):
                getattr(_posenc, function.name)(*range(len(declared) + 1))

    def test_everything_listed_is_there(self):
        for name in posenc.__all__:
            getattr(posenc, name)
        with self.assertRaises(AttributeError):
            posenc.no_such_name


if __name__ == "__main__":
    unittest.main()

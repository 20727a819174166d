"""posenc.lab with torch, on the CPU: its preset smoke, resuming, that the ways to compute attention agree, and its data."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

import needs_torch  # noqa: F401  (first)

import torch
import posenc
from posenc.lab import checkpoint, data, pool
from posenc.lab.__main__ import generated
from posenc.lab.attend import Attention, explicit, forget_bias, kerple_bias, rotated, tables
from posenc.lab.jobs import PRESETS, RECIPE, Job, Position, Shape, Variant
from posenc.lab.model import Model, Pieces
from posenc.lab.train import Machine, attention_maps, begin, optimiser_of, run_job, train_step

SHAPE = Shape(layers=2, heads=2, width=32)
SMALL = Job("small", 1, shape=SHAPE, length=64, batch=4, steps=3, warmup=1, evaluated=512, position=Position(trained=64), variants=(Variant("none", (64,)),))


def lab(*arguments):
    return subprocess.run([sys.executable, "-B", "-m", "posenc.lab", *map(str, arguments)], capture_output=True, text=True)


def silent(text):
    pass


class Smoke(unittest.TestCase):
    def test_every_kind_of_job_and_resuming(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder)
            first = lab("--preset", "smoke", "--out", out, "--only", "rope", "--seeds", 1)
            self.assertEqual(first.returncode, 0, first.stdout + first.stderr)
            before = (out / "results.jsonl").read_text("utf-8")
            self.assertEqual(before.count("\n"), 1)
            with open(out / "results.jsonl", "a", encoding="utf-8") as file:
                file.write('{"name": "rope-2", "sco\n')  # what a run that was killed may leave
                older = {**json.loads(before), "name": "none-1", "run": "none", "recipe": 0}
                file.write(json.dumps(older) + "\n")
            second = lab("--preset", "smoke", "--out", out)
            self.assertEqual(second.returncode, 0, second.stdout + second.stderr)
            after = (out / "results.jsonl").read_text("utf-8")
            self.assertTrue(after.startswith(before))  # what was there is not trained again
            results = pool.finished(out)
            self.assertEqual(set(results), {job.name for job in PRESETS["smoke"]()}, second.stdout)
            self.assertEqual({result["recipe"] for result in results.values()}, {RECIPE})  # what was of another one is trained again
            for result in results.values():
                self.assertEqual(result["failures"], [], result["name"])
                self.assertFalse([way for way in result["attention"] if "refused" in way], result["name"])
            self.assertTrue(json.loads((out / "state.json").read_text("utf-8"))["complete"])
            self.assertIn("## ", (out / "report.md").read_text("utf-8"))
            third = lab("--preset", "smoke", "--out", out, "--report")
            self.assertEqual((third.returncode, (out / "results.jsonl").read_text("utf-8")), (0, after))

    def test_the_time_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            made = lab("--preset", "smoke", "--out", folder, "--minutes", 0)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertFalse((Path(folder) / "results.jsonl").exists())

    def test_speed(self):
        with tempfile.TemporaryDirectory() as folder:
            made = lab("--preset", "smoke", "--speed", "--out", folder)
            self.assertEqual(made.returncode, 0, made.stderr)
            rows = json.loads((Path(folder) / "speed.json").read_text("utf-8"))
            self.assertEqual({(row["position"], "posenc" in row["attention"]) for row in rows},
                             {("none", True), ("none", False), ("rope", True), ("rope", False), ("alibi", True), ("t5", True), ("sinusoidal", True)})

    def test_refusals(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("no run is called", lab("--out", folder, "--only", "nothing").stderr)
            self.assertIn("--text", lab("--out", folder).stderr)
            self.assertIn("--out", lab("--preset", "smoke").stderr)


class Maps(unittest.TestCase):
    def test_rows_are_shares_and_a_causal_window_sees_nothing_later(self):
        machine = Machine(generated(), "cpu")
        for kind in ("rope", "alibi", "t5", "none", "forget"):
            job = replace(SMALL, position=Position(kind=kind))
            kept = attention_maps(job, machine, begin(job, machine, None), 64, cells=8)
            self.assertEqual((len(kept), {len(one) for one in kept}), (job.shape.layers, {36}))
            for triangle in kept:
                for row in range(8):
                    start = row * (row + 1) // 2
                    self.assertAlmostEqual(sum(triangle[start:start + row + 1]), 1000, delta=8)

    def test_a_steep_bias_is_seen(self):
        machine = Machine(generated(), "cpu")
        job = replace(SMALL, position=Position(kind="t5", gain=8.0))
        weights = begin(job, machine, None)
        with torch.no_grad():
            weights["t5"][1:] = -2.0  # times the gain: all but the token itself is out of sight
        (first, *_) = attention_maps(job, machine, weights, 64, cells=8)
        self.assertGreater(first[-1], 990)
        job = replace(job, position=Position(kind="t5"))
        (first, *_) = attention_maps(job, machine, weights, 64, cells=8)
        self.assertLess(first[-1], 900)


class Training(unittest.TestCase):
    def test_the_same_bits_again(self):
        machine = Machine(generated(), "cpu")
        one, other = (run_job(SMALL, machine, None, silent) for _ in range(2))
        self.assertEqual((one["curve"], one["scores"]), (other["curve"], other["scores"]))
        self.assertNotEqual(one["curve"], run_job(replace(SMALL, seed=2), machine, None, silent)["curve"])

    def test_it_learns(self):
        machine = Machine(generated(), "cpu")
        made = run_job(replace(SMALL, steps=60, warmup=5, learning_rate=3e-3), machine, None, silent)
        self.assertLess(made["scores"][0]["nll"], 2.9)  # 5.5 = ln 256 at the start

    def test_a_failing_job_is_tried_without_kernels(self):
        machine = Machine(generated(), "cpu")
        original = Attention._kernel

        def broken(self, q, *rest):
            if self.kernels:
                raise IndexError("broken")
            return original(self, q, *rest)

        Attention._kernel = broken
        try:
            made = pool.attempt(SMALL, machine, Path("."), silent, None)
        finally:
            Attention._kernel = original
        self.assertEqual(made["failures"], ["IndexError: broken"])
        self.assertIn("scores in memory", " ".join(made["attention"]) + " scores in memory" * hasattr(torch.nn.functional, "scaled_dot_product_attention"))

    def test_a_child_begins_with_its_parent(self):
        machine = Machine(generated(), "cpu")
        with tempfile.TemporaryDirectory() as folder:
            parent = replace(SMALL, run="parent", keep=True)
            child = replace(SMALL, run="child", parent="parent", steps=1, learning_rate=0.0)
            made = run_job(child, machine, Path(folder), silent, parent)  # trains the parent, which has no checkpoint yet
            self.assertEqual(made["scores"], run_job(parent, machine, Path(folder), silent)["scores"])
            weights = checkpoint.read(Path(folder) / "parent-1.safetensors")
            self.assertEqual(tuple(weights["0.qkv"].shape), (96, 32))
            if "POSENC" in os.environ:
                shown = subprocess.run([os.environ["POSENC"], "inspect", Path(folder) / "parent-1.safetensors"], capture_output=True, text=True)
                self.assertEqual(shown.returncode, 0, shown.stderr)
                self.assertIn("rope", shown.stdout)


def philox(counter, key):
    """Philox4x32-10, as in lab/philox.h."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(second >> 32) ^ counter[1] ^ key[0], second & 0xFFFFFFFF, (first >> 32) ^ counter[3] ^ key[1], first & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def our_name(name):
    """Of a parameter of the C++ lab: layer.0.qkv.weight is 0.qkv here."""
    return {"token.table": "embed", "position.table": "t5"}.get(name, name.replace("layer.", "").replace(".weight", ""))


@unittest.skipUnless("POSENC" in os.environ, "no program")
class TwoEngines(unittest.TestCase):
    """The C++ lab and this one, from the same weights with the same batches."""

    SIZE, BATCH, STEPS = 32, 8, 20

    def trained(self, folder, scheme, steps):
        out = Path(folder) / f"{scheme}-{steps}"
        made = subprocess.run([os.environ["POSENC"], "lab", "train", "--scheme", scheme, "--steps", str(steps), "--size", str(self.SIZE), "--batch", str(self.BATCH),
                               "--width", "32", "--heads", "2", "--layers", "2", "--seed", "7", "--text", str(Path(folder) / "text"), "--threads", "1", "--quiet", "-o", str(out)],
                              capture_output=True, text=True, env={**os.environ, "POSENC_LAB_TEXT": ""})
        self.assertEqual(made.returncode, 0, made.stderr)
        found = checkpoint.read(next(out.glob("*/checkpoint.safetensors")))
        return {our_name(name): value.t().contiguous() if name.endswith((".qkv.weight", ".out.weight", ".up.weight", ".down.weight")) else value
                for name, value in found.items() if not name.startswith(("adamw.", "metrics"))}

    def batches(self, text):
        alphabet = {byte: i for i, byte in enumerate(sorted(set(text)))}
        symbols = torch.tensor([alphabet[byte] for byte in text])
        for step in range(self.STEPS):
            starts = [philox((0, index, step, 1), (7, 0))[0] * (len(text) * 9 // 10 - self.SIZE - 1) >> 32 for index in range(self.BATCH)]
            windows = torch.stack([symbols[start:start + self.SIZE + 1] for start in starts])
            yield windows[:, :-1], windows[:, 1:]

    def test_twenty_steps_agree(self):
        text = generated()[:60_000]
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "text").write_bytes(text)
            for scheme in ("rope", "alibi", "none"):
                with self.subTest(scheme):
                    weights = {name: value.requires_grad_() for name, value in self.trained(folder, scheme, 0).items()}
                    begun = {name: value.detach().clone() for name, value in weights.items()}
                    wanted = self.trained(folder, scheme, self.STEPS)
                    job = replace(SMALL, position=Position(kind=scheme), shape=replace(SHAPE, scaled=False), steps=self.STEPS, learning_rate=3e-3, warmup=self.STEPS // 4)
                    model, attention = Model(weights, job.shape, Pieces(False), torch.float32), Attention(job.position, job.shape, weights)
                    optimiser = optimiser_of(weights, False)
                    for step, (tokens, targets) in enumerate(self.batches(text)):
                        train_step(job, step, model, attention, optimiser, tokens, targets)
                    self.assertEqual(set(weights), set(wanted))
                    for name, value in wanted.items():
                        moved = (value - begun[name]).norm()
                        apart = (value - weights[name].detach()).norm()
                        self.assertGreater(moved.item(), 1e-3, name)
                        self.assertLess((apart / moved).item(), 1e-3, name)


class Ways(unittest.TestCase):
    """posenc's kernels, and torch's operations where those are not used, give the same."""

    def setUp(self):
        torch.manual_seed(1)
        self.q, self.k, self.v = (torch.randn(2, 24, 2, 16) for _ in range(3))

    def both(self, position, weights=None, causal=True, layer=0):
        made = []
        for kernels in (True, False):
            attention = Attention(position, SHAPE, weights or {}, causal)
            attention.kernels = kernels
            with torch.no_grad():
                made.append(attention(layer, self.q, self.k, self.v))
        self.assertIn("posenc", Attention(position, SHAPE, weights or {}, causal).used | {"posenc"})
        self.assertLess((made[0] - made[1]).abs().max().item(), 3e-6)
        return made[0]

    def test_they_agree(self):
        table = torch.randn(32, 2)
        plain = self.both(Position(kind="none"))
        seen = [plain]
        for position, weights in ((Position(), None), (Position(kind="alibi"), None), (Position(kind="t5"), {"t5": table}), (Position(scaling="yarn", factor=4.0, trained=8), None),
                                  (Position(proportion=0.5), None), (Position(nope_every=2, window=5), None), (Position(arithmetic="f32"), None)):
            made = self.both(position, weights)
            if position.arithmetic == "exact":
                self.assertTrue(all((made - other).abs().max() > 1e-3 for other in seen), position)
                seen.append(made)
        self.assertTrue(torch.equal(self.both(Position(nope_every=2, window=5), layer=1), plain))  # that layer has no position
        self.both(Position(kind="none"), causal=False)

    def test_tables_of_the_arithmetics(self):
        ids = torch.arange(1_000_000, 1_000_008)
        exact, single, rounded, coarse = (tables(Position(arithmetic=name), 16, ids, self.q)[0].double() for name in ("exact", "f32", "f32-bf16", "bf16"))
        true = torch.cos(ids.double()[:, None] * 1e4 ** (-torch.arange(8).double() / 8))
        self.assertLess((exact - true).abs().max(), 1e-7)
        self.assertGreater((single - true).abs().max(), 1e-3)  # the angle of the fastest pair is off by up to 0.03
        self.assertLess((rounded - single).abs().max(), 4e-3)
        self.assertTrue((coarse[0] == coarse[-1]).all())  # bf16 has one value for all of these positions

    def test_a_rotation_elsewhere(self):
        attention = Attention(Position(), SHAPE, {})
        here, there = (attention(0, self.q, self.k, self.v, first=first) for first in (0, 5_000_000))
        self.assertLess((here - there).abs().max().item(), 1e-5)
        ids = torch.arange(24) + 7
        self.assertLess((attention(0, self.q, self.k, self.v, ids=ids) - here).abs().max().item(), 1e-5)
        self.assertGreater((attention(0, self.q, self.k, self.v, ids=2 * ids) - here).abs().max().item(), 1e-3)

    def test_biases_are_posencs(self):
        parameters = torch.tensor([[0.5, 1.5], [0.2, 2.0]])
        form = posenc.prepare(posenc.Kerple(amplitudes=(0.5, 1.5), rates=(0.2, 2.0)), length=9)
        lower = torch.ones(9, 9).tril()
        wanted = posenc.bias(form, 9, 9, like=torch.empty(0)) * lower
        self.assertLess((kerple_bias(parameters, 9) * lower - wanted).abs().max().item(), 1e-5)
        logits = torch.randn(1, 24, 2)
        gates = torch.nn.functional.logsigmoid(logits).transpose(1, 2).contiguous()
        wanted = posenc.attention(*(one[:1].contiguous() for one in (self.q, self.k, self.v)), posenc.prepare(posenc.ForgetGate()), causal=True, log_gates=gates, order="bshd")
        made = explicit(self.q[:1], self.k[:1], self.v[:1], forget_bias(logits), True)
        self.assertLess((made - wanted).abs().max().item(), 1e-5)

    def test_temperature_begins_past_the_trained_length(self):
        hot, plain = (Attention(Position(kind="none", trained=12, temperature=on), SHAPE, {})(0, self.q, self.k, self.v) for on in (True, False))
        self.assertTrue(torch.equal(hot[:, :12], plain[:, :12]))
        self.assertGreater((hot[:, 12:] - plain[:, 12:]).abs().max().item(), 1e-3)


class Data(unittest.TestCase):
    def setUp(self):
        self.text = data.Text(generated(), "cpu")

    def test_all_schemes_see_the_same_bytes(self):
        job = Job("a", 3, length=256, batch=16, steps=2)
        one, other, third = (replace(job, position=Position(kind="alibi")), replace(job, run="b"), replace(job, seed=4))
        batches = [self.text.training(each)(1) for each in (one, other, third)]
        self.assertTrue(torch.equal(batches[0][0], batches[1][0]))
        self.assertFalse(torch.equal(batches[0][0], batches[2][0]))
        tokens, targets = batches[0]
        self.assertTrue(torch.equal(tokens[:, 1:], targets[:, :-1]))

    def test_pass_keys(self):
        windows, keys = self.text.keyed(256, 4)
        for window, key in zip(windows, keys):
            shown = bytes(window.tolist())
            digits = bytes(48 + digit for digit in key.tolist())
            self.assertEqual(shown.count(b"pass key is " + digits), 2)
            self.assertTrue(shown.endswith(digits + b".\n"))
        self.assertIn(b"pass key", bytes(windows[0, :20].tolist()))  # the first is at the beginning, the last near the end
        first = self.text.training(Job("a", 3, length=256, batch=16, steps=2))
        for row, mentions in ((1, 210 // data.SLOT), (0, 1)):  # 257 bytes less the question; every other row has one mention
            trained = bytes(first(0)[0][row].tolist())
            self.assertIn(b"What is the pass key?", trained)
            self.assertEqual(trained.count(trained[-6:-1]), mentions + 1)
        self.assertNotIn(b"pass key", bytes(first(0)[0][15].tolist()))

    def test_validation_is_not_trained(self):
        starts = self.text.training(Job("a", 1, length=64, batch=64, steps=50)).starts
        self.assertLess(int(starts.max()) + 65, self.text.validation)
        self.assertEqual(bytes(self.text.windows(64, 640)[0].tolist()), generated()[self.text.validation:self.text.validation + 65])

    def test_masks(self):
        tokens, targets = data.masked(self.text.windows(64, 6400)[:, :-1], torch.Generator().manual_seed(1))
        hidden = targets != -100
        self.assertTrue((tokens[hidden] == 0).all() and 0.1 < hidden.float().mean() < 0.2)

    def test_strings_to_copy(self):
        for task, kinds in (("copy", 5), ("repeat", 1)):
            tokens, targets = data.Copies(Job("c", 1, task=task), "cpu").questions(5, 2)
            row = tokens[0].tolist() + [int(targets[0, -1])]
            self.assertEqual((row[0], row[6], row[12]), (data.BEGIN, data.SEPARATOR, data.END))
            self.assertEqual(row[1:6], row[7:12])
            self.assertLessEqual(len(set(row[1:6])), kinds)
            self.assertEqual(targets[0].tolist(), [-100] * 6 + row[7:13])
        job = Job("c", 1, task="copy", size=4, length=16, batch=8, random_positions=40)
        ids = data.Copies(job, "cpu").ids(3).tolist()
        self.assertEqual((len(set(ids)), sorted(ids)), (16, ids))
        self.assertLess(max(ids), 40)

    def test_halves_rotate(self):
        x = torch.zeros(1, 1, 1, 2)
        x[..., 0] = 1
        made = rotated(x, torch.tensor([[0.6]]), torch.tensor([[0.8]]))
        self.assertEqual([round(one, 4) for one in made.flatten().tolist()], [0.6, 0.8])


if __name__ == "__main__":
    unittest.main()

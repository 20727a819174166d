"""posenc diagnose and check: which convention made one tensor from another."""

import json
import math
import os
import random
import struct
import unittest

from program import ProgramTest, npy, parse_npy, run

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle", "data")
HEADS, TOKENS, FEATURES = 2, 16, 32


def rotated(x, base=10000.0, halves=True, first=0, sign=1):
    """x[heads][tokens][features], turned by Python's own sine."""
    out = []
    for head in x:
        rows = []
        for token, row in enumerate(head):
            new = list(row)
            for pair in range(FEATURES // 2):
                a, b = (pair, pair + FEATURES // 2) if halves else (2 * pair, 2 * pair + 1)
                angle = sign * (token + first) * base ** (-2 * pair / FEATURES)
                new[a] = row[a] * math.cos(angle) - row[b] * math.sin(angle)
                new[b] = row[b] * math.cos(angle) + row[a] * math.sin(angle)
            rows.append(new)
        out.append(rows)
    return out


class TwoTensors(ProgramTest):
    def setUp(self):
        super().setUp()
        seeded = random.Random(5)
        self.x = [[[seeded.gauss(0, 1) for _ in range(FEATURES)] for _ in range(TOKENS)] for _ in range(HEADS)]
        self.before = self.save("q.npy", self.x)

    def save(self, name, x):
        return self.write(name, npy("f32", [HEADS, TOKENS, FEATURES], x))


class Diagnose(TwoTensors):
    def diagnose(self, after, *flags):
        return json.loads(self.succeeds("diagnose", "--before", self.before, "--after", after, "--json", *flags).out)

    def test_json(self):
        found = self.diagnose(self.save("r.npy", rotated(self.x, base=500000.0, first=3)))
        self.assertEqual(list(found)[:3], ["verdict", "best", "others"])
        self.assertEqual(found["verdict"], "sure")
        best = found["best"]
        self.assertEqual((best["scheme"], best["layout"], best["sign"], best["dims"], best["first_dim"], best["base"],
                          best["scaling"], best["magnitude"], best["first_position"]),
                         ("rope", "halves", 1, 32, 0, 500000.0, {"type": "none"}, 1.0, 3))
        self.assertLess(best["residual"], 1e-6)

    def test_text(self):
        after = self.save("r.npy", rotated(self.x, halves=False, sign=-1))
        text = self.succeeds("diagnose", "--before", self.before, "--after", after, "--positions", "0:16").text
        for words in ("exact match: one convention reproduces every value", "interleaved", "clockwise", "as given", "relative residual"):
            self.assertIn(words, text)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 100)
            self.assertEqual(line, line.rstrip())

    def test_heads_after_the_sequence(self):
        swapped = [[self.x[h][s] for h in range(HEADS)] for s in range(TOKENS)]
        turned = rotated(self.x)
        after = [[turned[h][s] for h in range(HEADS)] for s in range(TOKENS)]
        a = self.write("a.npy", npy("f32", [TOKENS, HEADS, FEATURES], swapped))
        b = self.write("b.npy", npy("f32", [TOKENS, HEADS, FEATURES], after))
        found = json.loads(self.succeeds("diagnose", "--before", a, "--after", b, "--axes", "shd", "--json").out)
        self.assertEqual(found["best"]["layout"], "halves")

    def test_nothing_fits(self):
        seeded = random.Random(6)
        noise = [[[seeded.gauss(0, 1) for _ in range(FEATURES)] for _ in range(TOKENS)] for _ in range(HEADS)]
        outcome = run("diagnose", "--before", self.before, "--after", self.save("n.npy", noise))
        self.assertEqual(outcome.code, 1)
        self.assertIn("not a rotation", outcome.text)

    def test_changes_that_are_no_position(self):
        """bf16 files, as uint16: once any small change was sure to be sinusoids of magnitude 0.0003."""
        def bf16(v):
            bits = struct.unpack("<I", struct.pack("<f", v))[0]
            return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16

        changes = {"factor": lambda v: 1.01 * v, "shift": lambda v: v + 0.01, "int8": lambda v: round(v * 32) / 32,
                   "f16": lambda v: struct.unpack("<e", struct.pack("<e", v))[0]}
        for name, change in changes.items():
            after = [[[change(v) for v in row] for row in head] for head in self.x]
            for dtype in ("f32", "bf16"):
                if (name, dtype) == ("f16", "bf16"):
                    continue  # rounding to f16 changes nothing in bf16
                make = (lambda x: [[[bf16(v) for v in row] for row in head] for head in x]) if dtype == "bf16" else list
                shape = [HEADS, TOKENS, FEATURES]
                a = self.write("a.npy", npy(dtype, shape, make(self.x)))
                b = self.write("b.npy", npy(dtype, shape, make(after)))
                outcome = run("diagnose", "--before", a, "--after", b, "--json", "--dtype", dtype)
                found = json.loads(outcome.out)
                self.assertEqual((outcome.code, found["verdict"], found["best"]), (1, "no-position", None), name + dtype)
        text = run("diagnose", "--before", self.before, "--after",
                   self.save("s.npy", [[[1.01 * v for v in row] for row in head] for head in self.x])).text
        self.assertIn("no position: the change does not depend on position", text)
        self.assertIn("every value is multiplied by 1.01", text)

    def test_uint16_is_bf16(self):
        bits = lambda x: [[[struct.unpack("<I", struct.pack("<f", v))[0] >> 16 for v in row] for row in head] for head in x]
        files = []
        for name, x in (("a.npy", self.x), ("b.npy", rotated(self.x, base=500000.0))):
            data = npy("bf16", [HEADS, TOKENS, FEATURES], bits(x))
            files.append(self.write(name, data.replace(b"'<V2'", b"'<u2'")))
        for flags in ([], ["--dtype", "bf16"]):
            outcome = self.succeeds("diagnose", "--before", files[0], "--after", files[1], "--json", *flags)
            best = json.loads(outcome.out)["best"]
            self.assertEqual((best["scheme"], best["layout"]), ("rope", "halves"))
            self.assertEqual("uint16 is read as the bits of bf16" in outcome.err, not flags)
        self.refused("diagnose", "--before", files[0], "--after", files[1], "--dtype", "f16", says="contains integers")

    def test_bugs_are_named(self):
        twice = self.diagnose(self.save("t.npy", rotated(rotated(self.x))))
        self.assertEqual((twice["best"]["position_factor"], twice["best"]["base"]), (2.0, 10000.0))
        self.assertIn("applied twice", " ".join(twice["remarks"]))
        off = self.diagnose(self.save("o.npy", rotated(self.x, first=-5)), "--positions", "0:16")
        self.assertEqual(off["best"]["first_position"], -5)
        reversed_rows = rotated(self.x, first=-15, sign=-1)
        found = self.diagnose(self.save("v.npy", reversed_rows))
        self.assertEqual((found["best"]["reversed"], found["best"]["sign"]), (True, 1))
        for document in (twice, off, found):
            self.assertNotIn("no scheme", " ".join(document["remarks"]))

    def test_along_heads(self):
        """[heads, sequence] for [sequence, heads]: positions count heads."""
        seeded = random.Random(8)
        x = [[[seeded.gauss(0, 1) for _ in range(FEATURES)] for _ in range(TOKENS)] for _ in range(6)]
        swapped = rotated([[x[h][s] for h in range(6)] for s in range(TOKENS)])
        y = [[swapped[s][h] for s in range(TOKENS)] for h in range(6)]
        a = self.write("a.npy", npy("f32", [6, TOKENS, FEATURES], x))
        b = self.write("b.npy", npy("f32", [6, TOKENS, FEATURES], y))
        found = json.loads(self.succeeds("diagnose", "--before", a, "--after", b, "--json").out)
        self.assertEqual((found["best"]["along_heads"], found["best"]["layout"]), (True, "halves"))
        text = self.succeeds("diagnose", "--before", a, "--after", b).text
        self.assertIn("along the axis before the sequence", text)

    def test_biases(self):
        seeded = random.Random(9)
        x = [[[seeded.gauss(0, 1) for _ in range(20)] for _ in range(20)] for _ in range(8)]
        y = [[[v - 2 ** -(h + 1) * (m - n) if n <= m else -math.inf for n, v in enumerate(row)]
              for m, row in enumerate(head)] for h, head in enumerate(x)]
        a = self.write("a.npy", npy("f32", [8, 20, 20], x))
        b = self.write("b.npy", npy("f32", [8, 20, 20], y))
        found = json.loads(self.succeeds("diagnose", "--before", a, "--after", b, "--json").out)
        self.assertEqual((found["verdict"], found["best"]["scheme"], found["best"]["heads"], found["best"]["max_bias"]),
                         ("sure", "alibi", 8, 8.0))

    def test_refused(self):
        self.refused("diagnose", says="--before is missing")
        self.refused("diagnose", "--before", self.before, says="--after is missing")
        other = self.write("o.npy", npy("f32", [4, 4], range(16)))
        self.refused("diagnose", "--before", self.before, "--after", other, says="is [2, 16, 32], but")
        self.refused("diagnose", "--before", self.before, "--after", self.before, "--positions", "0:4",
                     says="4 positions are given")
        self.refused("diagnose", "--before", self.before, "--after", self.before, "--axes", "dsh", says="'dsh'")


class Check(TwoTensors):
    def check(self, after, *flags, code):
        outcome = run("check", *flags, "--before", self.before, "--after", after)
        self.assertEqual(outcome.code, code, outcome.err + outcome.text)
        return outcome

    def test_agrees(self):
        after = self.save("r.npy", rotated(self.x))
        self.assertIn("agrees: largest difference", self.check(after, "rope", code=0).text)
        document = json.loads(self.check(after, "rope", "--json", code=0).out)
        self.assertEqual(list(document)[:4], ["agrees", "max_abs_error", "first_difference", "diagnosis"])
        self.assertEqual((document["agrees"], document["first_difference"]), (True, None))

    def test_a_model(self):
        config = self.write("config.json", json.dumps({"model_type": "llama", "head_dim": FEATURES}).encode())
        self.check(self.save("r.npy", rotated(self.x)), "--model", config, code=0)
        text = self.check(self.save("i.npy", rotated(self.x, halves=False)), "--model", config, code=1).text
        self.assertIn("differs: at [0, 1, 0]", text)
        self.assertIn("pairs: expected halves, got interleaved.", text)
        self.assertIn("posenc convert --to halves", text.replace("\n    ", " "))

    def test_what_to_change(self):
        cases = ((dict(first=1), "Positions are off by 1. Count from 0"),
                 (dict(sign=-1), "direction: expected counter-clockwise, got clockwise. Negate the sine"),
                 (dict(base=500000.0), "base: expected 10000, got 500000"))
        for change, words in cases:
            document = json.loads(self.check(self.save("r.npy", rotated(self.x, **change)), "rope", "--json", code=1).out)
            self.assertFalse(document["agrees"])
            self.assertEqual(list(document["first_difference"]), ["index", "expected", "got"])
            self.assertTrue(any(words in line for line in document["advice"]), document["advice"])

    def save_bf16(self, name, x):
        """Rounded to nearest, as uint16 would be read."""
        def bits(v):
            word = struct.unpack("<I", struct.pack("<f", v))[0]
            return (word + 0x7FFF + (word >> 16 & 1)) >> 16
        return self.write(name, npy("bf16", [HEADS, TOKENS, FEATURES], [[[bits(v) for v in row] for row in head] for head in x]))

    def test_what_16_tokens_cannot_show(self):
        """A port without llama3's scaling: 16 tokens of bf16 cannot tell, float32 can."""
        config = self.write("config.json", json.dumps({
            "model_type": "llama", "head_dim": FEATURES, "rope_theta": 500000.0, "rope_scaling": {
                "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192}}).encode())
        unscaled = rotated(self.x, base=500000.0)
        narrow = self.save_bf16("b.npy", self.x), self.save_bf16("a.npy", unscaled)
        outcome = run("check", "--model", config, *narrow, "--dtype", "bf16")
        self.assertEqual(outcome.code, 1)
        text = " ".join(outcome.text.split())
        self.assertIn("inconclusive: these 16 tokens cannot tell llama3 scaling from none", text)
        self.assertIn("16 tokens from position", text)
        self.assertIn("or these in float32", text)
        self.assertIn("excluded: no rope", text)
        document = json.loads(run("check", "--model", config, *narrow, "--dtype", "bf16", "--json").out)
        self.assertEqual((document["agrees"], document["verdict"], document["float32_decides"]), (False, "inconclusive", True))
        self.assertIn("no llama3 scaling", [one["what"] for one in document["unseen"]])
        self.assertEqual(document["deciding"][0]["tokens"], 16)
        text = self.check(self.save("r.npy", unscaled), "--model", config, code=1).text
        self.assertIn("differs", text)
        self.assertIn("scaling: expected llama3, got none", text)

    def test_position_zero_alone(self):
        one = self.write("one.npy", npy("f32", [1, 1, FEATURES], self.x[0][0]))
        outcome = run("check", "rope", one, one)
        self.assertEqual(outcome.code, 1)
        self.assertIn("inconclusive: this token cannot tell rope from none", outcome.text)

    def test_the_length_of_the_sequence(self):
        """The first tokens of a sequence of 4,096 under dynamic scaling."""
        config = self.write("config.json", json.dumps({
            "model_type": "llama", "head_dim": FEATURES, "max_position_embeddings": 1024,
            "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}).encode())
        base = 10000.0 * (2 * 4096 / 1024 - 1) ** (FEATURES / (FEATURES - 2))
        after = self.save("r.npy", rotated(self.x, base=base))
        self.check(after, "--model", config, "--length", "4096", code=0)
        self.assertIn("differs", self.check(after, "--model", config, code=1).text)
        self.refused("check", "--model", config, "--length", "8", self.before, after, says="does not reach the last position")

    def test_features_at_other_places(self):
        """Read as interleaved pairs and written in place, where halves are expected: the scores are the same."""
        after = self.save("r.npy", rotated(self.x, halves=False))
        outcome = self.check(after, "rope", "--layout", "interleaved-to-halves", code=0)
        self.assertIn("agrees up to a permutation of q and k", outcome.text)
        document = json.loads(self.check(after, "rope", "--layout", "interleaved-to-halves", "--json", code=0).out)
        self.assertEqual((document["agrees"], document["verdict"]), (True, "agrees-up-to-permutation"))
        self.check(after, "rope", code=1)

    def test_heads(self):
        after = rotated(self.x)
        after[1] = self.x[1]
        text = self.check(self.save("r.npy", after), "rope", code=1).text
        self.assertIn("head 1 differs, the other one agrees", text)
        self.assertIn("head 1: Nothing was applied", text)

    def test_parts(self):
        config = self.write("config.json", json.dumps({"model_type": "qwen2_vl"}).encode())
        self.refused("check", "--model", config, "--part", "ears", self.before, self.before, says="'ears' is not one of vision")
        self.refused("check", "rope", "--part", "vision", self.before, self.before, says="--part needs --model")

    def test_refused(self):
        self.refused("check", "--before", self.before, "--after", self.before, says="the scheme is missing")
        self.refused("check", "rope", "--after", self.before, says="--before is missing")


class Goldens(ProgramTest):
    """Queries that transformers turned agree with its own configs, in old keys and new."""

    def test_every_config(self):
        with open(os.path.join(DATA, "goldens", "rope.npy"), "rb") as file:
            values = parse_npy(file.read())[2]
        with open(os.path.join(DATA, "goldens", "rope.json"), encoding="utf-8") as file:
            cases = {case["name"]: case for case in json.load(file)}
        with open(os.path.join(DATA, "configs", "goldens.json"), encoding="utf-8") as file:
            configs = json.load(file)
        checked = 0
        for one in configs:
            case = cases[one["name"]]
            if not isinstance(case.get("positions"), list):
                continue  # several axes
            name = "q" if "q" in case["tensors"] else "x"
            files = []
            for tensor in (name, name + "_rot"):
                info = case["tensors"][tensor]
                end = info["offset"] + math.prod(info["shape"])
                files.append(self.write(tensor + ".npy", npy("f32", info["shape"], values[info["offset"]:end])))
            flags = ["--axes", "bshd"] if case["axes"] == "batch,seq,heads,dim" else []
            flags += ["--layer-type", one["layer_type"]] if one["layer_type"] else []
            for form in ("config", "before"):
                config = self.write("config.json", json.dumps(one[form]).encode())
                outcome = run("check", "--model", config, "--before", files[0], "--after", files[1], "--positions",
                              ",".join(map(str, case["positions"])), *flags)
                # within the trained length, dynamic scaling does nothing
                within = one["name"] == "dynamic-2-within"
                self.assertEqual(outcome.code, 1 if within else 0, one["name"] + " " + form + outcome.text + outcome.err)
                self.assertIn("cannot tell dynamic scaling from none" if within else "agrees", " ".join(outcome.text.split()))
                checked += 1
        self.assertEqual(checked, 30)


if __name__ == "__main__":
    unittest.main()

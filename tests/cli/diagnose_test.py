"""posenc diagnose and check: which convention made one tensor from another."""

import json
import math
import os
import random
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
        for words in ("one convention explains every number", "interleaved", "clockwise", "as given"):
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

    def test_refused(self):
        self.refused("diagnose", says="--before is missing")
        self.refused("diagnose", "--before", self.before, says="--after is missing")
        other = self.write("o.npy", npy("f32", [4, 4], range(16)))
        self.refused("diagnose", "--before", self.before, "--after", other, says="is [2, 16, 32], but")
        self.refused("diagnose", "--before", self.before, "--after", self.before, "--positions", "0:4",
                     says="there are 4 positions")
        self.refused("diagnose", "--before", self.before, "--after", self.before, "--axes", "dsh", says="'dsh'")


class Check(TwoTensors):
    def check(self, after, *flags, code):
        outcome = run("check", *flags, "--before", self.before, "--after", after)
        self.assertEqual(outcome.code, code, outcome.err + outcome.text)
        return outcome

    def test_agrees(self):
        after = self.save("r.npy", rotated(self.x))
        self.assertIn("agrees: the largest difference is", self.check(after, "rope", code=0).text)
        document = json.loads(self.check(after, "rope", "--json", code=0).out)
        self.assertEqual(list(document)[:4], ["agrees", "max_abs_error", "first_difference", "diagnosis"])
        self.assertEqual((document["agrees"], document["first_difference"]), (True, None))

    def test_a_model(self):
        config = self.write("config.json", json.dumps({"model_type": "llama", "head_dim": FEATURES}).encode())
        self.check(self.save("r.npy", rotated(self.x)), "--model", config, code=0)
        text = self.check(self.save("i.npy", rotated(self.x, halves=False)), "--model", config, code=1).text
        self.assertIn("differs: at [0, 1, 0]", text)
        self.assertIn("pairs are interleaved; this model rotates halves.", text)
        self.assertIn("posenc convert --to halves", text.replace("\n    ", " "))

    def test_what_to_change(self):
        cases = ((dict(first=1), "positions are off by 1. Count from 0"),
                 (dict(sign=-1), "pairs turn clockwise; this model turns them the other way"),
                 (dict(base=500000.0), "the base is 500000; this model has 10000"))
        for change, words in cases:
            document = json.loads(self.check(self.save("r.npy", rotated(self.x, **change)), "rope", "--json", code=1).out)
            self.assertFalse(document["agrees"])
            self.assertEqual(list(document["first_difference"]), ["index", "expected", "got"])
            self.assertTrue(any(words in line for line in document["advice"]), document["advice"])

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
                self.assertEqual(outcome.code, 0, one["name"] + " " + form + outcome.text + outcome.err)
                checked += 1
        self.assertEqual(checked, 30)


if __name__ == "__main__":
    unittest.main()

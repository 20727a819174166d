"""Every number in questions and cards, as the program shows it, computed a second time by Python."""

import json
import pathlib
import re
import unittest

from oracle_formulas import Oracle
from program import ProgramTest

CONTENT = pathlib.Path(__file__).parents[2] / "content"
# float32 frequencies may differ in their last bit from one pow() to the next
ROUGH = {"float32_error": 0.1}


class Content(ProgramTest):
    def setUp(self):
        super().setUp()
        self.oracle = Oracle(json.loads((CONTENT / "schemes.json").read_text("utf-8")))
        listed = json.loads(self.succeeds("practice", "--list", "--json").out)
        self.shown = {entry["id"]: entry for entry in listed["questions"] + listed["cards"]}
        self.written = [entry for kind in ("questions", "cards") for path in sorted((CONTENT / kind).glob("*.json"))
                        for entry in json.loads(path.read_text("utf-8"))[kind]]
        self.numbers = 0

    def agrees(self, template, shown, where):
        """The text around the numbers is the same, and each number is what the formula gives, to its last digit."""
        number = r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?"
        pieces = self.oracle.parts(template)
        pattern = "".join(re.escape(before) + (f"({number})" if value is not None else "")
                          for before, value, _ in pieces)
        match = re.fullmatch(pattern, shown)
        self.assertTrue(match, f"{where}: {shown!r} is not of the form {template!r}")
        for text, (_, value, form) in zip(match.groups(), pieces):
            self.numbers += 1
            if any(name in template for name in ROUGH) and form.startswith("g"):
                self.assertAlmostEqual(float(text), value, delta=0.1 * abs(value), msg=where)
                continue
            if form.startswith("g"):
                unit = 10 ** (int(f"{value:e}".split("e")[1]) - int(form[1:]) + 1)
            else:
                unit = 10 ** -int(form or 0)
                self.assertEqual(len(text.partition(".")[2]), int(form or 0), where)
            # half a unit, and what two ways of computing may differ by
            self.assertAlmostEqual(float(text), value, delta=0.5 * unit * (1 + 1e-6) + 1e-9, msg=where)

    def test_every_number(self):
        self.assertEqual(set(self.shown), {entry["id"] for entry in self.written})
        for entry in self.written:
            shown = self.shown[entry["id"]]
            for name in ("prompt", "answer", "hint", "front", "back"):
                if name in entry:
                    self.agrees(entry[name], shown[name], f"{entry['id']}: {name}")
            for choice, seen in zip(entry.get("choices", []), shown.get("choices", [])):
                self.agrees(choice["text"], seen["text"], entry["id"])
                if "because" in choice:
                    self.agrees(choice["because"], seen["because"], entry["id"])
        self.assertGreater(self.numbers, 100)
        print(f"{self.numbers} numbers in {len(self.written)} questions and cards")

    def test_claims_behind_the_sentences(self):
        """Sentences that say more than a number: the claims behind them."""
        f = self.oracle.functions()
        self.assertGreater(f["dot"](8, 6), f["dot"](8, 1), "not monotone")
        self.assertEqual(max(f["dot"](8, k) for k in range(200)), f["dot"](8, 0))
        self.assertGreater(f["dot"](8, 6283), 3.98, "it comes back close to its maximum: it does not simply fall")
        self.assertLess(f["reversal_gap"]("none", False), 1e-12)
        self.assertLess(f["reversal_gap"]("alibi-1", False), 1e-12, "a mirror image keeps distances")
        for noticed in (("none", True), ("alibi-1", True), ("rope-4", False)):
            self.assertGreater(f["reversal_gap"](*noticed), 0.001)
        self.assertLess(4096 * f["frequency"](128, 63), 2 * f["pi"], "short of a full circle")
        self.assertAlmostEqual(f["slowdown"]("ntk-4", 0), 1)
        self.assertAlmostEqual(f["slowdown"]("ntk-4", 63), 4)
        self.assertAlmostEqual(f["slowdown"]("yarn-4", 10), 1)
        self.assertAlmostEqual(f["slowdown"]("yarn-4", 60), 4)
        self.assertTrue(1 < f["slowdown"]("yarn-4", 35) < 4, "on the ramp")
        self.assertAlmostEqual(f["slowdown"]("llama-3.1", 20), 1)
        self.assertTrue(1 < f["slowdown"]("llama-3.1", 32) < 8)
        self.assertAlmostEqual(f["slowdown"]("llama-3.1", 50), 8)
        self.assertGreater(f["bias"]("sandwich-12", 0, 31, 0), f["bias"]("sandwich-12", 0, 29, 0), "oscillates on the way")
        self.assertEqual(f["bias"]("fire", 0, 400, 300), f["bias"]("fire", 0, 200, 100), "one denominator up to the threshold")
        self.assertLess(f["wavelength"](64, 15), 512, "FoPE keeps this wave")
        self.assertGreater(f["wavelength"](64, 16), 512, "and leaves this one out")
        self.assertLess(f["fade"]("xpos-64", 0, 512), f["fade"]("xpos-64", 31, 512), "fast pairs soonest")


if __name__ == "__main__":
    unittest.main()

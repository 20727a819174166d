"""posenc prove: every scheme against every property, with numbers that Python can make again."""

import json
import math
import unittest

from program import ProgramTest, npy, run

CARDS = {card["scheme"]: card for card in json.loads(run("list", "--json").out)}
PROPERTIES = ["unique", "bounded", "consistent", "any-length", "linear-shift", "dot-by-distance", "monotone", "relative",
              "sees-order", "sees-order-causal", "resolvable", "varied", "smooth"]


def sum_of_cosines(distance, width):
    return sum(math.cos(distance * 10000 ** (-2 * i / width)) for i in range(width // 2))


class Json(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.outcome = run("prove", "--json")
        cls.document = json.loads(cls.outcome.out)

    def findings(self, scheme):
        (one,) = [one for one in self.document["schemes"] if one["scheme"]["scheme"] == scheme]
        return {finding["property"]: finding for finding in one["findings"]}

    def test_covers_every_scheme_and_property(self):
        self.assertEqual((self.outcome.code, self.outcome.err), (0, ""))
        self.assertEqual([one["scheme"]["scheme"] for one in self.document["schemes"]], list(CARDS))
        self.assertGreaterEqual(len(CARDS), 14)
        self.assertTrue(self.document["as_claimed"])
        for one in self.document["schemes"]:
            self.assertEqual([finding["property"] for finding in one["findings"]], PROPERTIES)
            for finding in one["findings"]:
                self.assertTrue(finding["as_claimed"])
                self.assertTrue(finding["meaning"].endswith("."), finding["meaning"])
                self.assertEqual("measured" in finding, finding["outcome"] != "does-not-apply")

    def test_verdicts_follow_from_the_numbers(self):
        holds = {"at-most": lambda a, b: a <= b, "at-least": lambda a, b: a >= b, "above": lambda a, b: a > b}
        for one in self.document["schemes"]:
            for finding in one["findings"]:
                if finding["outcome"] == "does-not-apply":
                    continue
                verdict = holds[finding["comparison"]](finding["measured"], finding["bound"])
                self.assertEqual(finding["outcome"], "holds" if verdict else "fails")

    def test_order_is_lost_without_position_and_found_by_all_else(self):
        for scheme, card in CARDS.items():
            found = self.findings(scheme)
            self.assertEqual(found["sees-order"]["outcome"], "fails" if card["family"] == "nothing" else "holds", scheme)
            self.assertEqual(found["sees-order-causal"]["outcome"], "holds", scheme)
        self.assertLess(self.findings("none")["sees-order"]["measured"], 1e-5)
        self.assertGreater(self.findings("none")["sees-order-causal"]["measured"], 1e-2)

    def test_who_is_relative(self):
        relative = {"none", "rope", "alibi", "t5", "kerple", "sandwich", "shaw", "deberta", "swin", "log-cpb", "temperature",
                    "patch-rope", "transformer-xl", "relative-logits", "decomposed", "rope-mixed"}
        for scheme in relative | {"sinusoidal", "learned", "resized", "fire", "steps", "shift", "forget-gate", "cope", "fope"}:
            outcome = self.findings(scheme)["relative"]["outcome"]
            self.assertEqual(outcome, "holds" if scheme in relative else "fails", scheme)

    def test_the_bad_ideas_fail_and_how(self):
        steps, shift = self.findings("steps"), self.findings("shift")
        self.assertEqual(steps["resolvable"]["outcome"], "fails")
        self.assertAlmostEqual(steps["resolvable"]["details"]["step"], 0.0001 * math.sqrt(64), places=12)
        for found in (steps, shift):
            self.assertEqual(found["varied"]["outcome"], "fails")
            self.assertEqual(found["bounded"]["outcome"], "fails")
            self.assertEqual(found["dot-by-distance"]["outcome"], "fails")

    def test_learned_ends(self):
        found = self.findings("learned")["any-length"]
        self.assertEqual((found["outcome"], found["claim"], found["measured"]), ("fails", "fails", 512))

    def test_trained_numbers_are_said_to_be_random(self):
        random = {one["scheme"]["scheme"] for one in self.document["schemes"] if one["random_weights"]}
        self.assertLessEqual({"learned", "t5", "fire", "shaw", "deberta", "swin", "log-cpb", "resized", "transformer-xl",
                              "relative-logits", "cope", "decomposed", "rope-mixed", "fope"}, random)
        self.assertFalse(random & {"none", "sinusoidal", "rope", "alibi", "kerple", "sandwich", "steps", "shift"})
        self.assertLessEqual({name for name, card in CARDS.items() if card["trained_table"]}, random)


class Sentences(ProgramTest):
    def test_counterexample_and_matrix(self):
        text = self.succeeds("prove", "sinusoidal", "--width", 8).text
        self.assertIn("distance 6 gives 3.784, distance 1 only", text)
        self.assertEqual(f"{sum_of_cosines(6, 8):.3f} {sum_of_cosines(1, 8):.3f}", "3.784 3.535")
        matrix = text.split("The matrix that moves by one position")[1].splitlines()[1:9]
        for row, line in enumerate(matrix):
            for column, cell in enumerate(line.split()):
                frequency = 10000 ** (-2 * (row // 2) / 8)
                expected = 0.0
                if row == column:
                    expected = math.cos(frequency)
                elif row // 2 == column // 2:
                    expected = math.sin(frequency) if row < column else -math.sin(frequency)
                self.assertAlmostEqual(float(cell), expected, delta=0.00051)

    def test_several_schemes(self):
        text = self.succeeds("prove", "rope", "alibi").text
        self.assertRegex(text, r"(?m)^rope$")
        self.assertRegex(text, r"(?m)^alibi$")
        self.assertNotIn("kerple", text)
        self.assertIn("By construction", text)

    def test_in_json_as_well(self):
        text = self.succeeds("prove", '{"scheme":"sinusoidal","width":16}', "--json").text
        (one,) = json.loads(text)["schemes"]
        self.assertEqual(one["scheme"]["width"], 16)
        self.assertEqual([n["numerics"] for n in one["numerics"]], ["exact", "hf-f32", "ggml-f32"])

    def test_exact_against_float32_far_out(self):
        (one,) = json.loads(self.succeeds("prove", "rope", "--length", 10_000_000, "--json").out)["schemes"]
        exact, hf, ggml = one["numerics"]
        self.assertEqual(exact["outcome"], "holds")
        self.assertLess(exact["measured"], 1e-14)
        for usual in (hf, ggml):
            self.assertEqual(usual["outcome"], "fails")
            self.assertGreater(usual["measured"], 0.01)
        self.assertEqual({n["length"] for n in one["numerics"]}, {10_000_000})
        text = self.succeeds("prove", "rope", "--length", 10_000_000).text
        self.assertIn("Angles up to position 9999999", text)

    def test_a_table_of_ones_own(self):
        self.write("wpe.npy", npy("f32", [40, 4], [0.5] * 160))
        outcome = run("prove", "learned", "--table", self.path("wpe.npy"))
        text = outcome.text
        self.assertEqual(outcome.code, 1, "a table whose rows are all the same leaves attention permutation-equivariant")
        self.assertIn("! expected to hold", text)
        self.assertIn("Positions 0 and 1 have the same row", text)
        self.assertNotIn("drawn at random", text)
        self.assertIn("Supports 40 positions", text)

    def test_seed(self):
        one, two, other = (self.succeeds("prove", "learned", "--json", "--seed", seed).out for seed in (1, 1, 2))
        self.assertEqual(one, two)
        self.assertNotEqual(one, other)


class Status(ProgramTest):
    def test_one_where_a_claim_fails(self):
        outcome = run("prove", "sinusoidal", "--scale", "1e-60")
        self.assertEqual(outcome.code, 1)
        self.assertIn("! expected to hold", outcome.text)
        outcome = run("prove", "rope", "--scaling", "linear:factor=1e30", "--json")
        self.assertEqual(outcome.code, 1)
        self.assertFalse(json.loads(outcome.out)["as_claimed"])

    def test_zero_where_nothing_is_claimed(self):
        text = self.succeeds("prove", "rope", "--scaling", "dynamic:factor=2").text
        self.assertIn("cached keys become invalid", text)


class Table(ProgramTest):
    def test_fits_and_has_every_cell(self):
        text = self.succeeds("prove").text
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        self.assertNotIn("\x1b", text)
        for scheme in CARDS:
            lines = [line for line in text.splitlines() if line.split() and line.split()[0].rstrip("*") == scheme]
            self.assertGreaterEqual(sum(line.count("✓") + line.count("✗") + line.count("·") for line in lines),
                                    len(PROPERTIES), scheme)
        self.assertNotIn("✗!", text)


class Refused(ProgramTest):
    def test_words_and_numbers(self):
        self.refused("prove", "rop", says="did you mean 'rope'?")
        self.refused("prove", "rope", "alibbi", says="did you mean 'alibi'?")
        self.refused("prove", "rope", "alibi", "--base", 100, says="fields can be set only for a single scheme")
        self.refused("prove", "sinusoidal", "--dims", 8, says="unknown option --dims")
        self.refused("prove", "--frob", says="unknown option --frob")
        self.refused("prove", "--length", 1, says="--length: 1 is not from 2 to")
        self.refused("prove", "--length", 2**53 + 1, says="--length")
        self.refused("prove", "--length", "ten", says="--length")
        self.refused("prove", "--seed", "x", says="--seed")
        self.refused("prove", "rope", "--dims", 7, says="dims")
        self.refused("prove", "learned", "--rows", 10**12, says="too large to draw")
        self.refused("prove", "learned", "--table", self.path("none.npy"), says="none.npy", code=3)
        self.refused("prove", '{"scheme":"rope","dimms":8}', says="dimms")


if __name__ == "__main__":
    unittest.main()

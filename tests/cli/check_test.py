"""posenc check on biases and trained tables: scores before and after, and every verdict both ways."""

import json
import math
import random
import struct
import unittest

from program import ProgramTest, as_f32, npy, run

HEADS, QUERIES, KEYS = 8, 12, 12


def slopes(heads, max_bias=8):
    """ALiBi's slopes as the paper has them, for a power of two of heads."""
    return [2 ** (-max_bias * (h + 1) / heads) for h in range(heads)]


def alibi(h, m, n, heads=HEADS):
    return -slopes(heads)[h] * abs(n - m)


class Scores(ProgramTest):
    """before: random scores [heads, queries, keys]; after: those and a bias."""

    def setUp(self):
        super().setUp()
        seeded = random.Random(11)
        self.x = [[[as_f32(seeded.gauss(0, 2)) for _ in range(KEYS)] for _ in range(QUERIES)] for _ in range(HEADS)]
        self.before = self.save("x.npy", self.x)

    def save(self, name, x, dtype="f32"):
        return self.write(name, npy(dtype, [len(x), len(x[0]), len(x[0][0])], x))

    def with_bias(self, bias, x=None):
        x = x or self.x
        return [[[value + bias(h, m, n) for n, value in enumerate(row)] for m, row in enumerate(head)]
                for h, head in enumerate(x)]

    def check(self, after, *flags, code, before=None):
        outcome = run("check", *flags, "--before", before or self.before, "--after", after)
        self.assertEqual(outcome.code, code, outcome.err + outcome.text)
        return outcome


class Alibi(Scores):
    def test_nothing_applied_differs(self):
        text = self.check(self.before, "alibi", "--heads", "8", code=1).text
        self.assertIn("differs", text)
        self.assertIn("expected", text)

    def test_right_agrees(self):
        after = self.save("y.npy", self.with_bias(alibi))
        self.assertTrue(self.check(after, "alibi", "--heads", "8", code=0).text.startswith("agrees"))
        # the number of heads follows from the file
        self.check(after, "alibi", code=0)

    def test_wrong_slopes_differ(self):
        document = json.loads(self.check(self.save("y.npy", self.with_bias(lambda h, m, n: alibi(h, m, n, 16))),
                                         "alibi", "--json", code=1).out)
        self.assertFalse(document["agrees"])
        self.assertEqual(document["first_difference"]["index"], [0, 0, 1])
        self.assertAlmostEqual(document["first_difference"]["expected"], self.x[0][0][1] - 0.5, places=5)

    def test_a_batch(self):
        both = [self.x, [[[2 * v for v in row] for row in head] for head in self.x]]
        before = self.write("b.npy", npy("f32", [2, HEADS, QUERIES, KEYS], both))
        right = [self.with_bias(alibi, x) for x in both]
        self.check(self.write("c.npy", npy("f32", [2, HEADS, QUERIES, KEYS], right)), "alibi", before=before, code=0)
        right[1][3][4][5] += 0.01
        document = json.loads(self.check(self.write("c.npy", npy("f32", [2, HEADS, QUERIES, KEYS], right)), "alibi",
                                         "--json", before=before, code=1).out)
        self.assertEqual(document["first_difference"]["index"], [1, 3, 4, 5])

    def test_one_query_of_many_keys(self):
        """Where queries are fewer than keys they are the last."""
        x = [[row[-1]] for row in self.x]
        y = [[[v + alibi(h, KEYS - 1, n) for n, v in enumerate(head[0])]] for h, head in enumerate(x)]
        before, after = self.save("d.npy", x), self.save("e.npy", y)
        self.check(after, "alibi", before=before, code=0)
        self.check(after, "alibi", "--positions", "3", before=before, code=1)
        y = [[[v + alibi(h, 3, n) for n, v in enumerate(head[0])]] for h, head in enumerate(x)]
        self.check(self.save("e.npy", y), "alibi", "--positions", "3", before=before, code=0)
        self.check(self.save("e.npy", y), "alibi", "--positions", "4", "--keys", "1:13", before=before, code=0)

    def test_bloom_and_mpt_differ_by_a_constant(self):
        """slope·n and slope·(n − last): the softmax cannot tell them from −slope·(m − n)."""
        for shift in (0, KEYS - 1):
            after = self.save("y.npy", self.with_bias(lambda h, m, n, s=shift: slopes(HEADS)[h] * (n - s)))
            outcome = self.check(after, "alibi", "--causal", code=0)
            self.assertIn("up to a constant per query", outcome.text)
            # without a mask the later keys differ, and the way out is named
            self.assertIn("--causal", self.check(after, "alibi", code=1).text)
        wrong = self.save("y.npy", self.with_bias(lambda h, m, n: 1.001 * slopes(HEADS)[h] * n))
        self.check(wrong, "alibi", "--causal", code=1)

    def test_masks(self):
        inf = float("inf")
        causal = self.with_bias(lambda h, m, n: alibi(h, m, n) if n <= m else -inf)
        self.assertIn("masked", self.check(self.save("y.npy", causal), "alibi", code=0).text)
        causal[2][7][3] += 0.1
        self.check(self.save("y.npy", causal), "alibi", code=1)
        # a mask hides nothing at or before the query
        causal = self.with_bias(lambda h, m, n: alibi(h, m, n) if n < m else -inf)
        self.check(self.save("y.npy", causal), "alibi", code=1)
        everything = [[[-inf] * KEYS for _ in range(QUERIES)] for _ in range(HEADS)]
        masked = self.save("m.npy", everything)
        self.refused("check", "alibi", "--before", masked, "--after", masked, says="every score is masked")

    def test_a_bias_too_small_to_see(self):
        """bf16 scores of 1000 hide a bias of 0.5: neither verdict would be true."""
        bits = lambda v: struct.unpack("<I", struct.pack("<f", v))[0] >> 16
        x = [[[bits(1000.0)] * 2 for _ in range(2)] for _ in range(HEADS)]
        before = self.write("h.npy", npy("bf16", [HEADS, 2, 2], x))
        outcome = self.check(before, "alibi", "--dtype", "bf16", before=before, code=1)
        self.assertIn("inconclusive", outcome.text)

    def test_models(self):
        bloom = self.write("bloom.json", json.dumps({"model_type": "bloom", "n_head": HEADS, "hidden_size": 64}).encode())
        mpt = self.write("mpt.json", json.dumps({"model_type": "mpt", "n_heads": HEADS, "d_model": 64,
                                                 "attn_config": {"alibi": True}}).encode())
        after = self.save("y.npy", self.with_bias(alibi))
        for config in (bloom, mpt):
            self.check(self.before, "--model", config, code=1)
            self.check(after, "--model", config, code=0)

    def test_refused(self):
        self.refused("check", "alibi", "--heads", "4", "--before", self.before, "--after", self.before, says="heads")
        self.refused("check", "alibi", "--axes", "bhsd", "--before", self.before, "--after", self.before, says="--axes")
        self.refused("check", "rope", "--causal", "--before", self.before, "--after", self.before, says="not a bias")
        self.refused("check", "shaw", "--before", self.before, "--after", self.before, says="shaw")


class OtherBiases(Scores):
    def test_sandwich(self):
        def sandwich(h, m, n):
            return HEADS / (8 * (h + 1)) * sum(math.cos((n - m) * 10000 ** (-2 * i / 32)) for i in range(16))

        after = self.save("y.npy", self.with_bias(sandwich))
        self.check(after, "sandwich", "--dims", "32", code=0)
        self.check(self.before, "sandwich", "--dims", "32", code=1)
        self.check(after, "sandwich", "--dims", "64", code=1)

    def test_t5(self):
        table = [[as_f32(math.sin(3 * bucket + h)) for h in range(HEADS)] for bucket in range(32)]
        path = self.write("t5.npy", npy("f32", [32, HEADS], table))

        def bucket(delta):  # an encoder's: 8 buckets for 0 ... 7, and 8 up to distance 128
            far = min(15, 8 + int(8 * math.log(max(abs(delta), 1) / 8) / math.log(16)))
            return (16 if delta > 0 else 0) + (abs(delta) if abs(delta) < 8 else far)

        after = self.save("y.npy", self.with_bias(lambda h, m, n: table[bucket(n - m)][h]))
        # the buckets for neighbouring distances part at 90
        text = " ".join(self.check(after, "t5", "--table", path, code=1).text.split())
        self.assertIn("inconclusive: these 12 keys cannot tell max_distance 128 from 256, max_distance 128 from 129 or "
                      "max_distance 128 from 127; 91 keys would", text)
        for tokens, code in (90, 1), (91, 0):
            more = [[[as_f32(math.sin(h + 5 * m + 7 * n)) for n in range(tokens)] for m in range(tokens)] for h in range(HEADS)]
            self.check(self.save("n.npy", self.with_bias(lambda h, m, n: table[bucket(n - m)][h], more)), "t5", "--table", path,
                       before=self.save("m.npy", more), code=code)
        self.check(self.before, "t5", "--table", path, code=1)
        self.check(after, "t5", "--table", path, "--bidirectional", "false", code=1)
        self.refused("check", "t5", "--before", self.before, "--after", after, says="table is missing")


class Tables(ProgramTest):
    def test_learned(self):
        seeded = random.Random(3)
        make = lambda *shape: [[as_f32(seeded.gauss(0, 1)) for _ in range(shape[1])] for _ in range(shape[0])]
        x, table = make(6, 8), make(10, 8)
        path = self.write("wpe.npy", npy("f32", [10, 8], table))
        before = self.write("x.npy", npy("f32", [6, 8], x))
        after = {offset: self.write(f"y{offset}.npy", npy("f32", [6, 8], [
            [a + b for a, b in zip(row, table[s + offset])] for s, row in enumerate(x)])) for offset in (0, 2)}
        for offset in (0, 2):
            for flag in (0, 2):
                outcome = run("check", "learned", "--table", path, "--offset", flag, "--before", before, "--after",
                              after[offset])
                self.assertEqual(outcome.code, 0 if offset == flag else 1, outcome.err + outcome.text)
        # RoBERTa's first token is at position 2
        config = self.write("config.json", json.dumps({
            "model_type": "roberta", "max_position_embeddings": 10, "hidden_size": 8, "pad_token_id": 1,
            "num_attention_heads": 2}).encode())
        for offset in (0, 2):
            outcome = run("check", "--model", config, "--table", path, "--before", before, "--after", after[offset])
            self.assertEqual(outcome.code, 0 if offset == 2 else 1, outcome.err + outcome.text)


class Inconclusive(ProgramTest):
    def test_small_additions_to_large_vectors(self):
        """Sinusoids of size 1 on vectors of size 1e7 in f32: whether they were added cannot be seen."""
        x = [[1e7] * 8 for _ in range(6)]
        before = self.write("x.npy", npy("f32", [6, 8], x))
        outcome = run("check", "sinusoidal", "--before", before, "--after", before)
        self.assertEqual(outcome.code, 1, outcome.text)
        self.assertIn("inconclusive", outcome.text)

    def test_one_large_element_hides_no_other(self):
        """A tolerance is that of the element's own vector."""
        x = [[1.0] * 8 for _ in range(6)]
        x[0][0] = 1e7
        before = self.write("x.npy", npy("f32", [6, 8], x))
        outcome = run("check", "sinusoidal", "--before", before, "--after", before)
        self.assertEqual(outcome.code, 1, outcome.text)
        self.assertIn("differs", outcome.text)


if __name__ == "__main__":
    unittest.main()

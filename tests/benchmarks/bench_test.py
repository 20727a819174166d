"""The benchmark: its figures as JSON, its help, and what it rejects."""

import json
import unittest

from program import SANITIZED, ProgramTest


class Words(ProgramTest):
    def test_help(self):
        text = self.succeeds("--help").text
        self.assertTrue(text.startswith("./run bench: "))
        for part in ("Usage: ./run bench [table] [add]", "--repeats", "--all", "--json", "--threads", "--backend", "--help",
                     "  ./run bench rotate --threads 2 --json\n"):
            self.assertIn(part, text)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_what_it_does_not_take(self):
        self.refused("spin", says="bench: 'spin' is not one of table, add, rotate")
        self.refused("--repeats", 0, says="--repeats")
        self.refused("--fast", says="bench: unknown option --fast")
        self.refused("--backend", "nobody", says="--backend: 'nobody' is unknown (one of cpu, reference")


@unittest.skipIf(SANITIZED, "half a gigabyte, byte by byte")
class Figures(ProgramTest):
    def test_json(self):
        outcome = self.succeeds("add", "--threads", 1, "--repeats", 1, "--json")
        self.assertEqual(outcome.err, "")
        document = json.loads(outcome.out)
        self.assertEqual(list(document["machine"]), ["cores", "simd_target", "backend"])
        self.assertEqual(len(document["results"]), 6)
        keys = ["job", "shape", "dtype", "threads", "seconds", "gb_per_s", "limit", "limit_loop", "limit_gb_per_s",
                "ratio"]
        for result in document["results"]:
            self.assertEqual(list(result), keys)
            self.assertEqual(result["limit"], "in-place")
            self.assertGreater(result["seconds"], 0)

    def test_rotations(self):
        outcome = self.succeeds("rotate", "--threads", 1, "--repeats", 1, "--json")
        results = json.loads(outcome.out)["results"]
        whole, chunk = [1, 4096, 32, 128], [1, 32, 32, 128]
        self.assertEqual([result["shape"] for result in results],
                         4 * [whole] + 4 * [whole, whole, chunk, chunk] + [[1, 4096, 32, 64]] + 8 * [[1, 4096, 8, 128]] +
                         2 * [[64, 1, 32, 128]])
        self.assertEqual([result["dtype"] for result in results],
                         4 * ["f32"] + 8 * ["bf16"] + 8 * ["f16"] +
                         ["bf16", "f32", "f32", "bf16", "bf16", "f16", "f16", "bf16", "f16", "f32", "f32"])
        for result in results:
            self.assertGreater(result["ratio"], 0)
            is_beside = result["job"].endswith("made inside") or result["job"].startswith("shift")
            self.assertEqual("of_ready" in result, is_beside and result["dtype"] == "f32")
            self.assertEqual("prefill_gb_per_s" in result, result["job"].startswith("decode"))

    def test_prepare_has_its_bars(self):
        outcome = self.succeeds("prepare", "--repeats", 1, "--json")
        bars = {result["scheme"]: result.get("bar_seconds") for result in json.loads(outcome.out)["results"]}
        self.assertEqual(bars, {"rope, 128 dims": 60e-6, "rope, hf-f32": 300e-6, "rope, llama3": None,
                                "alibi, 112 heads": 300e-6, "t5, 8 heads": None, "t5, bind a table": 1e-6})


if __name__ == "__main__":
    unittest.main()

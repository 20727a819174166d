"""posenc.lab without torch: statistics with known answers, every verdict, the claims against the jobs that are trained, the report."""

import contextlib
import io
import json
import math
import re
import tempfile
import unittest
import xml.etree.ElementTree as xml
from dataclasses import replace
from pathlib import Path

from posenc.lab import judge, report, text
from posenc.lab.__main__ import main as lab_main
from posenc.lab.jobs import PRESETS, Job, Position
from posenc.lab.lines import Line, chart, maps
from posenc.lab.pool import finished

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def numbers(words):
    return [float(one) for one in NUMBER.findall(words)]


def claim(side="at most", threshold=0.0, **more):
    return {"id": "c", "claim": "c.", "source": "s", "published": "p", "measure": "m", "side": side, "threshold": threshold, "unit": "nats",
            "terms": [[1, "a/none@512:nll"], [-1, "b/none@512:nll"]], **more}


def results(a, b=None, **more):
    """One score for each value of run a, by seed, and of run b."""
    b = b or [0.0] * len(a)
    found = {}
    for run, values in (("a", a), ("b", b)):
        for seed, value in enumerate(values, start=1):
            found[f"{run}-{seed}"] = {"run": run, "seed": seed, "scores": [{"variant": "none", "length": 512, "first": 0, "nll": value, **more}]}
    return found


class Statistics(unittest.TestCase):
    def test_students_interval(self):
        found = judge.estimate([1.0, 2.0, 3.0, 4.0, 5.0])
        self.assertAlmostEqual(found.mean, 3.0)
        self.assertAlmostEqual(found.high - 3.0, 2.776 * math.sqrt(2.5) / math.sqrt(5), places=6)  # t of 4 degrees · s / √n
        self.assertEqual((found.kind, found.n), ("95% interval", 5))

    def test_few_values_are_a_range(self):
        found = judge.estimate([3.0, 1.0])
        self.assertEqual((found.low, found.high, found.kind), (1.0, 3.0, "range of 2 seeds"))

    def test_it_is_paired(self):
        """Seeds differ far more than schemes: only differences by seed can show it."""
        seeds = [1.0, 2.0, 3.0, 4.0, 5.0]
        verdict = judge.judge(claim(threshold=-0.05), results([s - 0.1 for s in seeds], seeds))
        self.assertEqual(verdict.answer, "reproduced")
        self.assertLess(verdict.estimate.high - verdict.estimate.low, 1e-6)


class Verdicts(unittest.TestCase):
    def answer(self, values, **more):
        return judge.judge(claim(**more), results(values)).answer

    def test_each_occurs(self):
        below, above, across = [-1.0, -1.1, -0.9, -1.0, -1.05], [1.0, 1.1, 0.9, 1.0, 1.05], [-1.0, 1.0, -0.9, 0.8, 0.1]
        self.assertEqual(self.answer(below), "reproduced")
        self.assertEqual(self.answer(above), "refuted")
        self.assertEqual(self.answer(across), "undecided")
        self.assertEqual(self.answer(above, side="at least"), "reproduced")
        self.assertEqual(self.answer(below, side="at least"), "refuted")
        self.assertEqual(judge.judge(claim(), {}).answer, "not testable here")

    def test_within(self):
        tight = [0.001, -0.001, 0.0, 0.0005, 0.0]
        self.assertEqual(self.answer(tight, side="within", threshold=0.01), "reproduced")
        self.assertEqual(self.answer([one + 0.1 for one in tight], side="within", threshold=0.01), "refuted")
        self.assertEqual(self.answer([one - 0.1 for one in tight], side="within", threshold=0.01), "refuted")
        self.assertEqual(self.answer([one + 0.01 for one in tight], side="within", threshold=0.01), "undecided")

    def test_few_seeds_decide_only_what_is_clear(self):
        self.assertEqual(self.answer([-1.0, -1.1]), "reproduced")
        self.assertEqual(self.answer([1.0, 1.1]), "refuted")
        self.assertEqual(self.answer([-0.05, -1.0]), "undecided")  # all on one side, but nearer to it than to each other
        self.assertEqual(self.answer([-1.0]), "undecided")

    def test_a_ratio(self):
        growth = [math.log(2.0)] * 5
        self.assertEqual(self.answer(growth, side="at least", threshold=1.9, exp=True), "reproduced")
        self.assertEqual(self.answer(growth, side="at least", threshold=2.1, exp=True), "refuted")
        verdict = judge.judge(claim(side="at least", threshold=1.5, exp=True, paper_effect=4.0), results(growth))
        self.assertAlmostEqual(verdict.share, 0.5)  # ln 2 / ln 4
        self.assertIsNone(judge.judge(claim(side="at least", threshold=0.9, exp=True, paper_effect=1.01), results(growth)).share)

    def test_what_a_claim_needs(self):
        needed = claim(needs=[["a/none@512:passkey", 0.5]])
        self.assertEqual(judge.judge(needed, results([-1.0] * 5, passkey=0.9)).answer, "reproduced")
        verdict = judge.judge(needed, results([-1.0] * 5, passkey=0.1))
        self.assertEqual(verdict.answer, "not testable here")
        self.assertIn("below the 0.5", verdict.reason)

    def test_a_loss_that_is_not_finite_is_not_measured(self):
        self.assertEqual(self.answer([float("nan")] * 5), "not testable here")

    def test_chance(self):
        verdicts = [judge.judge(claim(), results([-1.0] * 5))] * 40 + [judge.judge(claim(), {})]
        self.assertAlmostEqual(judge.by_chance(verdicts), 1.0)


class Claims(unittest.TestCase):
    def test_every_reference_is_measured_by_the_preset(self):
        claims, digest = judge.read_claims()
        self.assertEqual(len(digest), 64)
        measured = {}
        for job in PRESETS["gpu"]():
            for variant in job.variants:
                for length in variant.lengths:
                    measured.setdefault(job.run, set()).update({(variant.name, length, variant.first, "nll"), (variant.name, length, variant.first, "last_quarter")})
                    if variant.passkey:
                        measured[job.run].add((variant.name, length, variant.first, "passkey"))
            for size in job.sizes:
                measured.setdefault(job.run, set()).add(("none", size, 0, "exact"))
        ids = [one["id"] for one in claims]
        self.assertEqual(len(ids), len(set(ids)))
        for one in claims:
            with self.subTest(one["id"]):
                self.assertIn(one["read"], ("transcription", "summary", "not read", "own"))
                self.assertTrue(one["paper_effect"] is None or one["read"] in ("transcription", "summary"))
                judge.holds(one, 0.0)
                self.assertTrue(one["terms"] or one["why_not"])
                for reference in [term[1] for term in one["terms"]] + [need[0] for need in one.get("needs", ())]:
                    found = judge.REFERENCE.fullmatch(reference)
                    self.assertIsNotNone(found, reference)
                    key = (found["variant"], int(found["length"]), int(found["first"] or 0), found["field"])
                    self.assertIn(key, measured.get(found["run"], ()), reference)

    def test_the_paper_fulfils_its_own_rule(self):
        """Where a number was read, it lies on the claim's side of the threshold."""
        for one in judge.read_claims()[0]:
            if one["paper_effect"] is not None:
                self.assertTrue(judge.holds(one, one["paper_effect"]), one["id"])

    def test_a_bad_reference(self):
        with self.assertRaisesRegex(ValueError, "not a reference"):
            judge.value_at({}, "rope/512:nll", 1)

    def test_five_seeds_of_everything(self):
        jobs = PRESETS["gpu"]()
        self.assertEqual(len({job.name for job in jobs}), len(jobs))
        for run in {job.run for job in jobs}:
            self.assertEqual(sorted(job.seed for job in jobs if job.run == run), [1, 2, 3, 4, 5])


class Report(unittest.TestCase):
    def test_it_is_written_from_results(self):
        made = {}
        for run in ("rope", "alibi"):
            for seed in range(1, 6):
                scores = [{"variant": "none", "length": length, "first": 0, "nll": 1.0 + 0.1 * seed + (length / 512 - 1) * (run == "rope"), "last_quarter": 1.0,
                           "by_position": [1.0] * 15 + [1.1], "passkey": 0.5} for length in (512, 2048, 4096)]
                made[f"{run}-{seed}"] = {"run": run, "seed": seed, "scores": scores, "seconds_in_all": 1.0, "parameters": 10, "device": "cpu", "torch": "2",
                                         "job": {"task": "text", "parent": "", "length": 512},
                                         "attention": ["posenc"], "tokens_per_second": 5, "preset": "gpu", "claims_sha256": "ab", "text_sha256": "cd"}
        verdicts = judge.judge_all(judge.read_claims()[0], made)
        answers = {one.claim["id"]: one.answer for one in verdicts}
        self.assertEqual(answers["rope-breaks"], "reproduced")
        self.assertEqual(answers["alibi-extrapolates"], "reproduced")
        self.assertEqual(answers["t5-far"], "not testable here")
        with tempfile.TemporaryDirectory() as folder:
            report.write(Path(folder), made, verdicts)
            text_made = (Path(folder) / "report.md").read_text("utf-8")
            self.assertIn("## Reproduced", text_made)
            self.assertIn("95% interval (n = 5)", text_made)
            summary = json.loads((Path(folder) / "summary.json").read_text("utf-8"))
            self.assertEqual(len(summary["verdicts"]), len(verdicts))
            self.assertEqual(summary["format"], "posenc-lab-summary-1")  # as of `posenc lab`; tests/explorer/lab_test.mjs reads one
            shown = {(one["task"], one["scheme"]): one["by_size"] for one in summary["results"]}
            self.assertEqual(set(shown), {("text", "rope"), ("text", "alibi"), ("RoPE varied", "rope"), ("pass keys", "rope"), ("pass keys", "alibi")})
            self.assertAlmostEqual(shown["text", "alibi"][2]["mean"], math.exp(1.3))
            self.assertAlmostEqual(shown["text", "alibi"][2]["most"], math.exp(1.5))
            for picture in ("perplexity-by-length.svg", "loss-by-position.svg", "passkey.svg"):
                xml.parse(Path(folder) / picture)

    def test_a_chart_of_one_point(self):
        with tempfile.TemporaryDirectory() as folder:
            for points in ([(512, 2.0)], [(512, 2.0), (1024, float("nan"))], [(512, float("nan"))]):
                xml.parse(Path(folder) / chart(Path(folder) / "one.svg", "a & b", "x", "y", [Line("<l>", points)], log_x=True, log_y=True))


    def test_maps_of_attention(self):
        with tempfile.TemporaryDirectory() as folder:
            triangle = [1000, 1000, 0, 250, 250, 500]
            path = Path(folder) / maps(Path(folder) / "maps.svg", "a & b", ["layer 1"], [("<rope>", [triangle])], 0.5)
            shades = {one.get("opacity"): one.get("d") for one in xml.parse(path).iter("{http://www.w3.org/2000/svg}path") if one.get("opacity")}
        # the darkest of each row, and half of it in the last one
        self.assertEqual(shades, {"1.0": "M0 0h1v1h-1zM0 1h1v1h-1zM2 2h1v1h-1z", "0.5": "M0 2h1v1h-1zM1 2h1v1h-1z"})


class OfWhichJob(unittest.TestCase):
    def test_a_result_is_of_the_job_that_it_records(self):
        job = Job("t5", 1, position=Position(kind="t5"))
        told = json.loads(json.dumps(job.to_json()))
        self.assertTrue(job.is_of({"job": told}))
        del told["maps"], told["position"]["gain"]  # as files have it that were written before there were any
        self.assertTrue(job.is_of({"job": told}))
        self.assertFalse(replace(job, position=Position(kind="t5", gain=2.0)).is_of({"job": told}))
        self.assertFalse(replace(job, maps=(64,)).is_of({"job": told}))


class Broken(unittest.TestCase):
    def test_lines_that_are_no_results(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "results.jsonl").write_text('3\n"x"\n{}\n{"name": "rope-1"}\n{"name": "rope-1", "job": 4}\n{"name": "rope-1", "job": {}}\n{"na\n', "utf-8")
            self.assertEqual(set(finished(Path(folder))), {"rope-1"})
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                self.assertEqual(lab_main(["--out", folder, "--report"]), 0)
        self.assertIn("no results of this preset yet", said.getvalue())


class Committed(unittest.TestCase):
    """The run in docs/lab/gpu: its report follows from its results."""

    FOLDER = Path(__file__).resolve().parents[2] / "docs" / "lab" / "gpu"

    def test_the_report_is_that_of_the_results(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "results.jsonl").write_bytes((self.FOLDER / "results.jsonl").read_bytes())
            self.assertEqual(lab_main(["--out", folder, "--report"]), 0)
            made = {path.name: path.read_text("utf-8") for path in Path(folder).iterdir()}
        kept = {path.name: path.read_text("utf-8") for path in self.FOLDER.iterdir()}
        self.assertEqual(set(made), set(kept))
        for name, words in kept.items():  # a logarithm's last bit is the machine's
            self.assertEqual(NUMBER.sub("#", made[name]), NUMBER.sub("#", words), name)
            for one, other in zip(numbers(made[name]), numbers(words)):
                self.assertTrue(math.isclose(one, other, rel_tol=2e-3, abs_tol=0.101 if name.endswith(".svg") else 1.01e-4), f"{name}: {one} and {other}")

    def test_the_claims_were_fixed_before_it(self):
        digest = judge.read_claims()[1]
        self.assertEqual({one["claims_sha256"] for one in finished(self.FOLDER).values()}, {digest})


class Texts(unittest.TestCase):
    def test_html_becomes_plain(self):
        page = b"<html><head><title>t</title></head><body><script>x()</script><p>One &amp; two.</p>\n\n\n\n<p>Three</p></body></html>"
        self.assertEqual(text.plain("a/b.html", page), "One & two.\n\nThree\n")

    def test_pieces_end_with_a_line(self):
        document = b"".join(b"line %d\n" % i for i in range(20_000))
        parts = text.pieces(document)
        self.assertGreater(len(parts), 1)
        self.assertEqual(b"".join(parts), document)
        self.assertTrue(all(len(part) <= text.PIECE_BYTES and part.endswith(b"\n") for part in parts))
        self.assertEqual(text.pieces(b"x" * 200_000), [b"x" * 200_000])

    def test_order_follows_from_contents(self):
        self.assertEqual(text.joined([b"one", b"two", b"one"]), text.joined([b"two", b"one"]))

    def test_a_wrong_hash_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "t.txt"
            path.write_bytes(b"abc")
            self.assertEqual(text.read(path)[0], b"abc")
            path.with_suffix(".json").write_text('{"bytes": 3, "sha256": "0"}', "utf-8")
            with self.assertRaisesRegex(SystemExit, "size or hash"):
                text.read(path)


if __name__ == "__main__":
    unittest.main()

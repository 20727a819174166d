"""posenc table: the numbers, in every format."""

import json
import math
import os
import unittest

from program import ProgramTest, as_f32, parse_npy, run, sinusoidal

SMALL = ("table", "sinusoidal", "--width", 4, "--positions", "0:4")


def rows_of(text):
    return [line.split() for line in text.splitlines()]


class Shown(ProgramTest):
    def test_the_table_of_the_first_four_positions(self):
        outcome = self.succeeds(*SMALL, "--digits", 3)
        self.assertEqual(
            rows_of(outcome.text),
            [
                ["position", "0", "1", "2", "3"],
                ["0", "0.000", "1.000", "0.000", "1.000"],
                ["1", "0.841", "0.540", "0.010", "1.000"],
                ["2", "0.909", "-0.416", "0.020", "1.000"],
                ["3", "0.141", "-0.990", "0.030", "1.000"],
            ],
        )
        self.assertEqual(outcome.err, "")

    def test_columns_are_aligned(self):
        lines = self.succeeds(*SMALL, "--digits", 5).text.splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1)

    def test_digits(self):
        self.assertIn("0.84147096", self.succeeds(*SMALL, "--digits", 8).text)
        self.assertIn(["1", "1", "1", "0", "1"], rows_of(self.succeeds(*SMALL, "--digits", 0).text))

    def test_a_zero_has_no_sign(self):
        text = self.succeeds("table", "steps", "--width", 1, "--step", "-0.0001", "--positions", "0:4").text
        self.assertEqual(text.count(" 0.000\n"), 4)
        self.assertNotIn("-0.000", text)

    def test_long_tables_leave_out_the_middle(self):
        lines = self.succeeds("table", "sinusoidal", "--width", 2, "--positions", "0:1000000000").text.splitlines()
        self.assertEqual(len(lines), 18)
        self.assertEqual(lines[13].strip(), "…")
        self.assertEqual([line.split()[0] for line in lines[-2:]], ["999999998", "999999999"])

    def test_wide_tables_leave_out_the_middle_and_fit(self):
        lines = self.succeeds("table", "sinusoidal", "--width", 512, "--positions", "0:4").text.splitlines()
        self.assertTrue(all(len(line) <= 100 for line in lines))
        self.assertTrue(all("…" in line for line in lines))
        self.assertEqual(lines[0].split()[-1], "511")
        self.assertEqual(lines[0].split()[1], "0")

    def test_points_of_a_grid(self):
        rows = rows_of(self.succeeds("table", "sinusoidal", "--width", 8, "--axes", 2, "--grid", "2,3").text)
        self.assertEqual([row[0] for row in rows[1:]], ["0,0", "0,1", "0,2", "1,0", "1,1", "1,2"])
        self.assertEqual(rows[6][1:3], ["0.841", "0.540"])  # height 1
        self.assertEqual(rows[6][5:7], ["0.909", "-0.416"])  # width 2


class Fractions(ProgramTest):
    def test_negative_and_fractional_positions(self):
        """sin and cos of p, p from -1 in steps of a half; the label is the fraction."""
        text = self.succeeds("table", "sinusoidal", "--width", 2, "--positions", "-1:1:1/2", "--digits", 6).text
        rows = [line.split() for line in text.splitlines()[-4:]]
        self.assertEqual([row[0] for row in rows], ["-1", "-1/2", "0", "1/2"])
        for row, p in zip(rows, (-1, -0.5, 0, 0.5)):
            self.assertAlmostEqual(float(row[1]), math.sin(p), places=5)
            self.assertAlmostEqual(float(row[2]), math.cos(p), places=5)

    def test_one_denominator(self):
        made = json.loads(self.succeeds("table", "rope", "--dims", 2, "--positions", "1/3,-0.25,2", "--json").text)
        self.assertEqual(made["positions"], ["1/3", "-1/4", 2])
        csv = self.succeeds("table", "sinusoidal", "--width", 2, "--positions", "999.5", "-o", "-", "--format", "csv").text
        self.assertTrue(csv.splitlines()[-1].startswith("1999/2,"), csv)

    def test_refusals(self):
        self.refused("table", "learned", "--rows", 4, "--width", 2, "--positions", "1/2", says="")
        self.refused("table", "sinusoidal", "--positions", "1/0", says="denominator of 0")
        self.refused("table", "sinusoidal", "--positions", "1/2/3", says="is not a position")
        self.refused("table", "sinusoidal", "--positions", "-1:1:0/2", says="must be positive")
        self.refused("table", "sinusoidal", "--positions", "1:-1", says="")
        self.refused("table", "rope", "--positions", "1/2", "--numerics", "hf-f32", says="whole positions")
        self.refused("table", "steps", "--positions", "1/2", says="takes no denominators")


class Files(ProgramTest):
    def test_npy(self):
        out = self.path("pe.npy")
        outcome = self.succeeds("table", "sinusoidal", "--width", 8, "--positions", "0:5", "-o", out)
        self.assertEqual(outcome.out, b"")
        self.assertEqual(outcome.err, f"posenc: wrote {out}: [5, 8] f32\n")
        dtype, shape, values = parse_npy(self.read("pe.npy"))
        self.assertEqual((dtype, shape), ("f32", (5, 8)))
        self.assertEqual(values, [x for position in range(5) for x in sinusoidal(position, 8)])
        self.assertEqual(self.files(), ["pe.npy"])

    def test_quiet(self):
        self.assertEqual(self.succeeds(*SMALL, "-o", self.path("a.npy"), "--quiet").err, "")

    def test_every_type(self):
        for dtype in ("f32", "f64", "f16", "bf16"):
            self.succeeds(*SMALL, "--dtype", dtype, "-o", self.path(dtype + ".npy"))
            found, shape, values = parse_npy(self.read(dtype + ".npy"))
            self.assertEqual((found, shape), (dtype, (4, 4)))
            if dtype == "bf16":
                self.assertEqual(values[:2], [0, 0x3F80])
            else:
                self.assertAlmostEqual(values[4], 0.8414709848078965, places={"f16": 3, "f32": 7, "f64": 15}[dtype])

    def test_standard_output_has_the_bytes_of_the_file(self):
        for kind in ("npy", "csv", "json"):
            self.succeeds(*SMALL, "-o", self.path("a." + kind))
            piped = self.succeeds(*SMALL, "-o", "-", "--format", kind)
            self.assertEqual(piped.out, self.read("a." + kind))
            self.assertEqual(piped.err, "")
        self.assertEqual(self.succeeds(*SMALL, "-o", "-").out, self.read("a.npy"))

    def test_csv(self):
        lines = self.succeeds(*SMALL, "-o", "-", "--format", "csv").text.splitlines()
        self.assertEqual(lines[0], "position,0,1,2,3")
        cells = [float(cell) for cell in lines[2].split(",")]
        self.assertEqual([as_f32(cell) for cell in cells], [1.0, *sinusoidal(1, 4)])

    def test_json(self):
        document = json.loads(self.succeeds(*SMALL, "--json").out)
        self.assertEqual(list(document), ["scheme", "positions", "shape", "dtype", "values"])
        self.assertEqual(document["scheme"]["scheme"], "sinusoidal")
        self.assertEqual(document["scheme"]["width"], 4)
        self.assertEqual(document["positions"], [0, 1, 2, 3])
        self.assertEqual(document["shape"], [4, 4])
        self.assertEqual(document["dtype"], "f32")
        for position, row in enumerate(document["values"]):
            self.assertEqual([as_f32(value) for value in row], sinusoidal(position, 4))

    def test_json_of_a_grid_has_one_list_of_positions_for_each_axis(self):
        outcome = self.succeeds("table", "sinusoidal", "--width", 8, "--axes", 2, "--grid", "2,2", "--json")
        self.assertEqual(json.loads(outcome.out)["positions"], [[0, 0, 1, 1], [0, 1, 0, 1]])

    def test_many_blocks_are_one_table(self):
        whole = self.succeeds("table", "sinusoidal", "--width", 64, "--positions", "0:70001", "-o", "-").out
        _, shape, values = parse_npy(whole)
        self.assertEqual(shape, (70001, 64))
        for first in (0, 32767, 32768, 65536, 70000):
            one = parse_npy(self.succeeds("table", "sinusoidal", "--width", 64, "--positions", first, "-o", "-").out)[2]
            self.assertEqual(values[first * 64 : first * 64 + 64], one, first)


class SameBytes(ProgramTest):
    def bytes_with(self, *more):
        arguments = ("table", "sinusoidal", "--width", 48, "--positions", "1000000:1000700", "-o", "-")
        return self.succeeds(*arguments, *more).out

    def test_threads_do_not_matter(self):
        self.assertEqual(self.bytes_with("--threads", 1), self.bytes_with("--threads", 2))

    def test_backends_do_not_matter(self):
        for dtype in ("f32", "f64", "f16", "bf16"):
            reference = self.bytes_with("--dtype", dtype, "--backend", "reference")
            self.assertEqual(reference, self.bytes_with("--dtype", dtype, "--backend", "cpu"), dtype)

    def test_numerics_do(self):
        self.assertEqual(self.bytes_with(), self.bytes_with("--numerics", "exact"))
        self.assertNotEqual(self.bytes_with(), self.bytes_with("--numerics", "hf-f32"))


class Refused(ProgramTest):
    def test_odd_width(self):
        self.refused("table", "sinusoidal", "--width", 7, "--positions", "0:4", says="width")

    def test_width_zero(self):
        self.refused("table", "sinusoidal", "--width", 0, "--positions", "0:4", says="width")

    def test_a_width_past_all_reason(self):
        self.refused("table", "sinusoidal", "--width", 2**31, "--positions", 0, says="width")

    def test_width_that_is_no_integer(self):
        for text in ("1.5", "0x10", "", " 4", "4e3", "99999999999999999999"):
            self.refused("table", "sinusoidal", "--width", text, "--positions", "0:4", says="--width")

    def test_unknown_scheme_with_a_suggestion(self):
        self.refused("table", "sinusodial", "--width", 4, says="did you mean 'sinusoidal'?")

    def test_unknown_choice(self):
        self.refused(*SMALL, "--layout", "halves", says="one of interleaved, sin-cos, cos-sin")

    def test_unknown_flag_with_a_suggestion(self):
        self.refused(*SMALL, "--digit", 3, says="did you mean --digits?")

    def test_flag_given_twice_or_without_value(self):
        self.refused(*SMALL, "--width", 8, says="--width was given more than once")
        self.refused(*SMALL, "--digits", says="--digits needs a value")

    def test_other_words(self):
        self.refused(*SMALL, "learned", says="unexpected argument 'learned'")
        self.refused("table", says="the scheme is missing")
        self.refused("table", "sinusoidal", says="--positions 0:8")
        self.refused(*SMALL, "--digits", "many", says="--digits")
        self.refused(*SMALL, "--digits", 61, says="0 to 60")
        self.refused(*SMALL, "--dtype", "f8", says="f32, f64, f16, bf16")
        self.refused(*SMALL, "--dtype", "i64", says="f32, f64, f16, bf16")
        self.refused(*SMALL, "--numerics", "wrong", says="wrong")
        self.refused(*SMALL, "--threads", 0, says="--threads")
        self.refused(*SMALL, "--threads", 2000, says="--threads")
        self.refused(*SMALL, "--backend", "abacus", says="abacus")
        self.refused(*SMALL, "--max-bytes", "12 parsecs", says="--max-bytes")

    def test_outputs_that_contradict_each_other(self):
        self.refused(*SMALL, "--json", "-o", self.path("x.npy"), says="--json")
        self.refused(*SMALL, "--format", "csv", says="--format")
        self.refused(*SMALL, "-o", self.path("x.csv"), "--format", "npy", says="--format")

    def test_unknown_extension(self):
        self.refused(*SMALL, "-o", self.path("x.png"), says=".npy, .safetensors, .csv or .json, not .png")
        self.refused(*SMALL, "-o", self.path("x"), says=".npy, .safetensors, .csv or .json")

    def test_nothing_has_no_table(self):
        self.refused("table", "none", "--positions", "0:4", says="no table")

    def test_text_from_outside_stays_on_one_line(self):
        outcome = self.refused("table", "sin\nus\x1b[31m", says="sin\\nus\\x1b[31m")
        self.assertNotIn("\x1b", outcome.err)


class Environment(ProgramTest):
    def test_backend_and_threads_from_the_environment(self):
        env = dict(os.environ, POSENC_BACKEND="reference", POSENC_THREADS="1")
        self.assertEqual(run(*SMALL, "-o", "-", env=env).out, run(*SMALL, "-o", "-").out)
        self.refused(*SMALL, env=dict(os.environ, POSENC_BACKEND="abacus"), says="POSENC_BACKEND")
        self.refused(*SMALL, "-o", "-", env=dict(os.environ, POSENC_THREADS="many"), says="POSENC_THREADS")


if __name__ == "__main__":
    unittest.main()

"""Figures: their numbers by plain Python, as drawn in a terminal, and what is refused."""

import cmath
import json
import math
import os
import pty
import re
import struct
import unittest

from program import POSENC, SANITIZED, ProgramTest, npy, run

KINDS = ("waves", "heatmap", "fingerprint", "phasors", "rotation", "dots", "similarity", "decay", "bias", "scaling", "error")


def frequencies(width, base=10000.0):
    return [base ** (-2 * i / width) for i in range(width // 2)]


class Plot(ProgramTest):
    def figure(self, *arguments):
        return json.loads(self.succeeds("plot", *arguments, "--json").out)


class Numbers(Plot):
    """--json against Python's own mathematics."""

    def close(self, got, expected, by=1e-12):
        self.assertEqual(len(got), len(expected))
        for a, b in zip(got, expected):
            self.assertAlmostEqual(a, b, delta=by)

    def test_temperatures_grids_and_ids(self):
        self.assertIn("Queries are scaled", self.succeeds("plot", "query-factor").text)
        self.assertIn("factor on the query", self.succeeds("plot", "query-factor", "temperature", "--rule", "log", "--floor", 64).text)
        text = self.succeeds("plot", "grid", "resized", "--trained-grid", "8,8", "--new-grid", "12,20").text
        self.assertIn("feature 0, resized", text)
        self.assertIn("An example instead of a trained table.", text)
        self.assertIn("pair 0", self.succeeds("plot", "grid", "patch-rope", "--patches", "6,9").text)
        self.assertIn("pair 0", self.succeeds("plot", "grid", "rope-mixed", "--heads", 4, "--dims", 16).text)
        self.assertIn("fope", self.succeeds("plot", "decay", "fope", "rope", "--zoom", "0:512").text)
        self.assertIn("pair 0", self.succeeds("plot", "waves", "fope", "--dims", 16, "--zoom", "0:64").text)
        self.assertIn("pair 0", self.succeeds("plot", "grid", "rope", "--dims", 128, "--sections", "8,28,28",
                                                      "--section-order", "restarting").text)
        text = self.succeeds("plot", "ids", "--spec", "text:5 image:8x12 text:3").text
        self.assertIn("The first token that the model writes is at 14 on all axes.", text)
        self.refused("plot", "ids", "--spec", "banana:3", says="banana")
        self.refused("plot", "waves", "--spec", "text:3", says="--spec works with ids, not with waves")

    def test_a_network_of_the_offset(self):
        text = self.succeeds("plot", "bias", "log-cpb", "--heads", 1, "--window", 9, "--hidden-weights", "1,-1",
                             "--hidden-biases", "0,0", "--output-weights", "1,-1", "--zoom", "0:9").text
        self.assertIn("What is added to the score", text)
        self.assertIn("head 0", text)

    def test_waves(self):
        figure = self.figure("waves", "sinusoidal", "--width", 8, "--zoom", "0:50")
        self.assertEqual(figure["kind"], "waves")
        self.assertEqual(len(figure["panels"]), 4)
        wavelengths = ("6.28", "62.8", "628", "6,283")
        for panel, frequency, wavelength in zip(figure["panels"], frequencies(8), wavelengths):
            line, dots = panel["series"]
            self.assertTrue(line["name"].endswith("λ " + wavelength), line["name"])
            self.assertEqual(line["x"][0], 0)
            self.assertEqual(line["x"][-1], 49)
            self.close(line["y"], [math.sin(x * frequency) for x in line["x"]])
            self.assertEqual(dots["x"], list(range(50)))
            self.close(dots["y"], [math.sin(x * frequency) for x in range(50)])
            self.assertEqual(panel["envelopes"], [])

    def test_chosen_features(self):
        figure = self.figure("waves", "--features", "1,3", "--zoom", "1000000:1000010")
        for panel, feature in zip(figure["panels"], (1, 3)):
            frequency = frequencies(16)[feature // 2]
            line = panel["series"][0]
            self.close(line["y"], [math.cos(x * frequency) for x in line["x"]], 1e-9)

    def test_fast_waves_are_areas(self):
        figure = self.figure("waves", "sinusoidal", "--width", 16, "--zoom", "0:1000000")
        for panel, frequency in zip(figure["panels"], frequencies(16)):
            wavelength, step = 2 * math.pi / frequency, 1000000 / 2400
            is_area = wavelength < 16 * step
            self.assertEqual(bool(panel["envelopes"]), is_area)
            self.assertEqual(bool(panel["series"]), not is_area)
            for area in panel["envelopes"]:
                for low, high in zip(area["low"], area["high"]):
                    self.assertTrue(-1 <= low < -0.95 and 0.95 < high <= 1, (low, high))
        self.assertIn("Shaded", figure["note"])

    def test_rope_waves_turn_as_asked(self):
        figure = self.figure("waves", "rope", "--dims", 4, "--sign", -1, "--zoom", "0:9", "--features", "0,2")
        cosine, sine = (panel["series"][0] for panel in figure["panels"])
        self.close(cosine["y"], [math.cos(x) for x in cosine["x"]])
        self.close(sine["y"], [-math.sin(x) for x in sine["x"]])

    def test_float32_angles_have_no_wave_between_positions(self):
        figure = self.figure("waves", "--zoom", "16777217:16777227", "--numerics", "hf-f32", "--features", "0")
        line = figure["panels"][0]["series"][0]
        self.assertEqual(line["x"], list(range(16777217, 16777227)))
        # float32 has no odd number there, and rounds to even
        rounded = [struct.unpack("f", struct.pack("f", x))[0] for x in line["x"]]
        self.close(line["y"], [math.sin(x) for x in rounded])

    def test_heatmap(self):
        figure = self.figure("heatmap", "sinusoidal", "--width", 8, "--zoom", "3:13")
        map_ = figure["panels"][0]["heat_map"]
        self.assertEqual(map_["rows"], list(range(3, 13)))
        self.assertEqual(map_["columns"], list(range(8)))
        for position, row in zip(range(3, 13), map_["values"]):
            angles = [position * f for f in frequencies(8)]
            self.close(row, [wave(a) for a in angles for wave in (math.sin, math.cos)])

    def test_heatmap_leaves_out_what_would_alias(self):
        figure = self.figure("heatmap", "sinusoidal", "--width", 16, "--zoom", "0:100000")
        map_ = figure["panels"][0]["heat_map"]
        self.assertEqual(len(map_["rows"]), 512)
        step = 100000 / 512
        for column in range(16):
            values = [row[column] for row in map_["values"]]
            is_fast = 2 * math.pi / frequencies(16)[column // 2] < 2 * step
            self.assertEqual(values.count(None), 512 if is_fast else 0)
        self.assertIn("Grey", figure["note"])

    def test_fingerprint(self):
        bars, digits, neighbours, counter = self.figure("fingerprint", "--at", 1000003)["panels"]
        expected = [wave(1000003 * f) for f in frequencies(32) for wave in (math.sin, math.cos)]
        self.close(bars["series"][0]["y"], expected, 1e-9)
        # read from left to right, the bars are the number as it is written
        self.assertEqual(digits["series"][0]["x"], sorted(digits["series"][0]["x"]))
        text = "".join(str(int(bit)) for bit in digits["series"][0]["y"])
        self.assertEqual(int(text, 2), 1000003)
        self.assertEqual(neighbours["heat_map"]["rows"], counter["heat_map"]["rows"])
        for position, row in zip(counter["heat_map"]["rows"], counter["heat_map"]["values"]):
            self.assertEqual(int("".join(str(int(bit)) for bit in row), 2), position)
        self.close(neighbours["heat_map"]["values"][8], expected, 1e-9)

    def test_phasors(self):
        figure = self.figure("phasors", "rope", "--dims", 8, "--base", 100, "--at", 7, "--shift", 5)
        (panel,) = figure["panels"]
        hands = {series["name"]: series for series in panel["series"]}
        for name, position in (("position 7", 7), ("position 12", 12)):
            hand = hands[name]
            for i, frequency in enumerate(frequencies(8, 100.0)):
                self.assertAlmostEqual(hand["x"][3 * i + 1] - hand["x"][3 * i], math.cos(position * frequency))
                self.assertAlmostEqual(hand["y"][3 * i + 1] - hand["y"][3 * i], math.sin(position * frequency))
        # the angle between the hands of a pair is drawn, and said where it is too small to be seen
        arc, tip = hands["angle between them"], hands["position 7"]
        self.assertEqual(sum(value is None for value in arc["y"]), 4)
        self.assertAlmostEqual(math.atan2(arc["y"][16] - tip["y"][0], arc["x"][16] - tip["x"][0]), math.remainder(7, 2 * math.pi))
        self.assertEqual(figure["note"], "In 5 positions pair 0 rotates by 5 radians, pair 3 by 0.158.")
        self.assertTrue(self.figure("phasors", "sinusoidal", "--width", 16, "--shift", -3)["note"].endswith("pair 7 by 0.000949, which is too little to see."))
        alone = self.figure("phasors", "rope", "--dims", 8, "--shift", 0)
        self.assertNotIn("angle between them", [series["name"] for series in alone["panels"][0]["series"]])

    def test_hands_of_query_and_key(self):
        figure = self.figure("phasors", "rope", "--dims", 8, "--base", 100, "--at", 7, "--key", 12)
        (panel,) = figure["panels"]
        hands = {series["name"]: series for series in panel["series"]}
        cosines = [math.cos(-5 * f) for f in frequencies(8, 100.0)]
        for name, position in (("query at position 7", 7), ("key at position 12", 12)):
            for i, frequency in enumerate(frequencies(8, 100.0)):
                self.assertAlmostEqual(hands[name]["x"][3 * i + 1] - hands[name]["x"][3 * i], math.cos(position * frequency))
        self.assertAlmostEqual(float(re.search(r"hands, ([\d.e+-]*\d);", figure["note"])[1]), sum(cosines) / 4, delta=1e-6)
        self.assertIn("depends only on the distance −5", figure["note"])
        # the arc leads from one hand to the other, and bends the shorter way
        arc = hands["angle between them"]
        centre = hands["query at position 7"]["x"][0], hands["query at position 7"]["y"][0]
        angles = [math.atan2(y - centre[1], x - centre[0]) for x, y in zip(arc["x"][:17], arc["y"][:17])]
        self.assertAlmostEqual(angles[0], math.remainder(12, 2 * math.pi))
        self.assertAlmostEqual(angles[-1], math.remainder(7, 2 * math.pi))
        steps = [abs(math.remainder(b - a, 2 * math.pi)) for a, b in zip(angles, angles[1:])]
        self.close(steps, [abs(math.remainder(5, 2 * math.pi)) / 16] * 16)
        # the same distance elsewhere has the same score
        self.assertEqual(figure["note"], self.figure("phasors", "rope", "--dims", 8, "--base", 100, "--at", 1007, "--key", 1012)["note"])
        self.refused("plot", "phasors", "sinusoidal", "--key", 3, says="key works with rotations of queries and keys")
        self.refused("plot", "phasors", "rope", "--key", 3, "--shift", 2, says="give a shift or a key, not both")
        self.refused("plot", "waves", "--key", 3, says="--key works with phasors")

    def test_logarithmic_axes_and_heads_of_decay(self):
        alike, added = self.figure("decay", "rope", "--dims", 8, "alibi", "--heads", 8, "--zoom", "0:65", "--log-x", "--log-y", "--head", 2)["panels"]
        self.assertEqual((alike["x"]["scale"], alike["y"]["scale"], alike["x"]["least"]), ("log", "log", 1))
        (rope,), (alibi,) = alike["series"], added["series"]
        self.assertEqual(rope["x"], list(range(1, 65)))
        self.close(rope["y"], [abs(sum(math.cos(x * f) for f in frequencies(8))) / 4 for x in rope["x"]])
        self.assertEqual(alibi["name"], "alibi, head 2")
        self.close(alibi["y"], [x * 2.0 ** -3 for x in alibi["x"]])
        # thinned evenly in the logarithm: near distances stay single
        (far,) = self.figure("decay", "rope", "--dims", 8, "--zoom", "0:100001", "--log-x")["panels"]
        x = (far["series"] or far["envelopes"])[0]["x"]
        self.assertEqual(x[:20], list(range(1, 21)))
        self.assertLess(len(x), 2401)
        (line,) = self.figure("bias", "alibi", "--lines", "--zoom", "0:16", "--head", 5)["panels"][0]["series"]
        self.close(line["y"], [-abs(x) * 2.0 ** -6 for x in line["x"]])
        self.refused("plot", "bias", "alibi", "--heads", 4, "--head", 4, says="alibi: there is no head 4; it has 4, from 0 on")
        self.refused("plot", "waves", "--log-x", says="--log-x works with decay")

    def test_upper_bound_of_decay(self):
        (panel,) = self.figure("decay", "rope", "--dims", 8, "--zoom", "3:65", "--bound")["panels"]
        score, bound = panel["series"]
        self.assertEqual((score["name"], bound["name"]), ("rope", "rope, upper bound"))
        for distance, value in zip(bound["x"], bound["y"]):
            sums = [abs(sum(cmath.exp(1j * distance * f) for f in frequencies(8)[:count])) for count in range(1, 5)]
            self.assertAlmostEqual(value, sum(sums) / 10, places=12)
        # of a scaling with a magnitude, 1 at distance 0 as well
        scaled = self.figure("decay", "rope", "--scaling", "yarn:factor=8,original_length=4096", "alibi", "--bound")
        self.assertAlmostEqual(scaled["panels"][0]["series"][1]["y"][0], 1, places=12)
        self.refused("plot", "decay", "alibi", "--bound", says="decay: only rotations have this upper bound")
        # without positions nothing falls, and a bound needs a rotation
        (panel,) = self.figure("decay", "none", "--zoom", "0:9")["panels"]
        self.assertEqual(panel["series"][0]["y"], [1] * 9)
        self.refused("plot", "decay", "none", "--bound", says="decay: only rotations have this upper bound")
        self.refused("plot", "decay", "rope", "--xpos", "true", "--bound", says="xpos")
        self.refused("plot", "waves", "--bound", says="--bound works with decay")

    def test_a_scaling_beside_the_usual_ones(self):
        figure = self.figure("scaling", "rope", "--dims", 8, "--scaling", "linear:factor=3", "--compare", "--trained", 100, "--factor", 3)
        waves, slowed, ratios = figure["panels"]
        self.assertEqual([series["name"] for series in slowed["series"]],
                         ["given: linear", "linear", "ntk", "dynamic, factor 2", "yarn", "llama3"])
        self.assertEqual([series["name"] for series in ratios["series"]], ["linear", "ntk", "dynamic, factor 2", "yarn", "llama3"])
        for ratio, series in zip(ratios["series"], slowed["series"][1:]):
            self.close(ratio["y"], [3 * y for y in series["y"]])
        self.close(ratios["series"][0]["y"], [1] * 4)
        self.refused("plot", "scaling", "rope", "--compare", says="a comparison needs exactly one scheme")
        self.refused("plot", "decay", "--compare", says="--compare works with scaling")

    def test_rotation(self):
        def cells(*flags):
            (panel,) = self.figure("rotation", *flags)["panels"]
            return panel["heat_map"]["values"]

        def same(got, expected):
            for row, wanted in zip(got, expected, strict=True):
                self.close(row, wanted, 1e-14)

        cos, sin = math.cos, math.sin
        # interleaved pairs (2i, 2i + 1) of sines and cosines: w = 1, 0.1
        same(cells("sinusoidal", "--width", 4, "--base", 100, "--shift", 3),
                          [[cos(3), sin(3), 0, 0], [-sin(3), cos(3), 0, 0],
                           [0, 0, cos(0.3), sin(0.3)], [0, 0, -sin(0.3), cos(0.3)]])
        # rope rotates (i, i + d/2)
        halves = [[cos(3), 0, -sin(3), 0], [0, cos(0.3), 0, -sin(0.3)], [sin(3), 0, cos(3), 0], [0, sin(0.3), 0, cos(0.3)]]
        same(cells("rope", "--dims", 4, "--base", 100, "--shift", 3), halves)
        same(cells("rope", "--dims", 4, "--base", 100, "--at", 5, "--shift", "-3"),
                          [list(column) for column in zip(*halves)])
        # it is the same at every position, and it moves each of them
        at = [self.figure("rotation", "sinusoidal", "--width", 64, "--at", m, "--shift", 9) for m in (0, 1000003)]
        self.assertEqual(at[0]["panels"][0]["heat_map"], at[1]["panels"][0]["heat_map"])
        for figure in at:
            self.assertLess(float(re.search(r"at most ([\d.e+-]*\d)", figure["note"])[1]), 1e-15)

    def test_rounded_and_random_vectors(self):
        def spread(*flags):
            return float(re.search(r"at most ([\d.e+-]*\d)", self.figure("dots", *flags)["note"])[1])

        exact = spread("sinusoidal", "--width", 8)
        self.assertLess(exact, 1e-14)
        self.assertTrue(1e-9 < spread("sinusoidal", "--width", 8, "--dtype", "f32") < 1e-6)
        self.assertTrue(1e-5 < spread("sinusoidal", "--width", 8, "--dtype", "f16") < 1e-2)
        self.assertGreater(spread("sinusoidal", "--width", 8, "--dtype", "bf16"),
                           spread("sinusoidal", "--width", 8, "--dtype", "f16"))
        self.assertTrue(1e-5 < spread("rope", "--dims", 8, "--dtype", "f16") < 1e-2)
        learned = self.figure("dots", "learned", "--width", 8)
        self.assertIn("random numbers instead of trained ones", learned["note"])
        self.assertGreater(spread("learned", "--width", 8), 0.5)
        self.assertEqual(self.figure("similarity", "learned", "--rows", 20, "--width", 8)["panels"][0]["y"]["most"], 19.5)

    def test_similarity(self):
        (panel,) = self.figure("similarity", "sinusoidal", "--width", 8, "--zoom", "3:13")["panels"]
        map_ = panel["heat_map"]
        self.assertEqual((map_["rows"], map_["columns"]), (list(range(3, 13)), list(range(3, 13))))
        for m, row in zip(range(3, 13), map_["values"]):
            self.close(row, [sum(math.cos(f * (m - n)) for f in frequencies(8)) / 4 for n in range(3, 13)])
        far = self.figure("similarity", "rope", "--dims", 4, "--zoom", "0:2000")
        self.assertIn("512 of 2000 positions", far["note"])
        self.refused("plot", "similarity", "alibi", says="alibi has no position vectors")

    def test_dots_are_flat(self):
        (panel,) = self.figure("dots", "sinusoidal", "--width", 8, "--zoom", "0:15")["panels"]
        lines = {series["name"]: series for series in panel["series"] if series["name"]}
        self.assertEqual(list(lines), [f"distance {d}" for d in (1, 3, 5, 7, 9, 11, 13)])
        for name, series in lines.items():
            distance = int(name.split()[1])
            self.assertEqual(series["x"], list(range(15 - distance)))
            self.close(series["y"], [sum(math.cos(distance * f) for f in frequencies(8))] * (15 - distance))

    def test_dots_hold_each_line_once(self):
        (panel,) = self.figure("dots", "sinusoidal", "--width", 8, "--zoom", "0:15")["panels"]
        names = [series["name"] for series in panel["series"]]
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual(names, [f"distance {d}" for d in range(1, 15, 2)])

    def test_dots_say_which_distances_are_drawn(self):
        for count, said in ((16, "Every odd distance with two pairs or more is drawn."), (17, "7 of the 8 odd distances with two pairs or more are drawn.")):
            figure = self.figure("dots", "sinusoidal", "--width", 8, "--zoom", f"0:{count}")
            self.assertTrue(figure["note"].endswith(said), figure["note"])
            self.assertEqual(len([series for series in figure["panels"][0]["series"] if series["name"]]), 7)

    def test_dots_that_are_not(self):
        (panel,) = self.figure("dots", "shift", "--width", 8)["panels"]
        self.assertGreater(max(panel["series"][1]["y"]) - min(panel["series"][1]["y"]), 0.01)
        (panel,) = self.figure("dots", "--zoom", "90000000:90000020", "--numerics", "hf-f32")["panels"]
        self.assertGreater(max(panel["series"][1]["y"]) - min(panel["series"][1]["y"]), 0.01)

    def test_decay(self):
        figure = self.figure("decay", "rope", "--dims", 64, "--base", 500000, "alibi", "--heads", 8, "--zoom", "0:40",
                             "kerple", "--rates", "0.5", "t5")
        alike, added, buckets = figure["panels"]
        (rope,) = alike["series"]
        self.assertEqual(rope["name"], "rope")
        self.assertEqual(rope["x"], list(range(40)))
        rates = frequencies(64, 500000.0)
        self.close(rope["y"], [sum(math.cos(d * f) for f in rates) / 32 for d in range(40)])
        biases = {series["name"]: series["y"] for series in added["series"]}
        self.assertEqual(list(biases), ["alibi, head 0", "alibi, head 4", "alibi, head 7", "kerple"])
        for head in (0, 4, 7):
            self.close(biases[f"alibi, head {head}"], [-d * 2.0 ** -(head + 1) for d in range(40)])
        self.close(biases["kerple"], [-math.log(1 + 0.5 * d) for d in range(40)])
        self.assertEqual(buckets["series"][0]["y"][:9], [0, 1, 2, 3, 4, 5, 6, 7, 8])

    def test_decay_of_many_distances(self):
        figure = self.figure("decay", "rope", "alibi", "--heads", 1, "--zoom", "0:100000")
        self.assertTrue(figure["panels"][0]["envelopes"])
        (line,) = figure["panels"][1]["series"]
        self.close(line["y"], [-x * 2.0 ** -8 for x in line["x"]], 1e-9)

    def test_two_of_one_name_are_told_apart(self):
        figure = self.figure("decay", "rope", '{"scheme":"rope","base":500000}')
        names = [series["name"] for series in figure["panels"][0]["series"]]
        self.assertEqual(names, ["rope base 10000", "rope base 500000"])

    def test_bias(self):
        figure = self.figure("bias", "alibi", "--heads", 2, "--zoom", "4:10")
        for head, panel in enumerate(figure["panels"]):
            slope = 2.0 ** (-4 * (head + 1))
            for i, row in enumerate(panel["heat_map"]["values"]):
                self.close(row, [-slope * abs(i - j) for j in range(6)])
        (panel,) = self.figure("bias", "alibi", "--heads", 2, "--zoom", "0:6", "--lines")["panels"]
        self.assertEqual(panel["series"][0]["x"], list(range(-5, 6)))
        self.close(panel["series"][0]["y"], [-abs(d) / 16 for d in range(-5, 6)])

    def test_bias_of_a_table(self):
        self.write("t5.npy", npy("f32", (8, 2), [float(i) for i in range(16)]))
        arguments = ("bias", "t5", "--bidirectional", "false", "--max-distance", 16, "--zoom", "0:4")
        figure = self.figure(*arguments, "--table", self.path("t5.npy"))
        self.assertEqual(len(figure["panels"]), 2)
        self.assertEqual([row[0] for row in figure["panels"][1]["heat_map"]["values"]], [1, 3, 5, 7])
        (buckets,) = self.figure(*arguments, "--buckets", 8)["panels"]
        self.assertEqual([row[0] for row in buckets["heat_map"]["values"]], [0, 1, 2, 3])

    def test_scaling(self):
        figure = self.figure("scaling", "rope", "--dims", 64, "--base", 10000, "--trained", 2048, "--factor", 4)
        turns, slowed = figure["panels"]
        rates = frequencies(64)
        self.close([a / b for a, b in zip(turns["series"][0]["y"], (2 * math.pi / f for f in rates))], [1] * 32)
        ratios = {series["name"]: series["y"] for series in slowed["series"]}
        self.close(ratios["linear"], [0.25] * 32)
        larger = 10000 * 4 ** (64 / 62)
        self.close(ratios["ntk"], [n / f for n, f in zip(frequencies(64, larger), rates)])
        dynamic = 10000 * (2 * 4 - 1) ** (64 / 62)
        self.close(ratios["dynamic, factor 2"], [n / f for n, f in zip(frequencies(64, dynamic), rates)])
        low, high = (64 * math.log(2048 / (2 * math.pi * turns)) / (2 * math.log(10000)) for turns in (32, 1))
        low, high = math.floor(low), math.ceil(high)
        ramp = [min(max((i - low) / (high - low), 0), 1) for i in range(32)]
        self.close(ratios["yarn"], [r / 4 + 1 - r for r in ramp])

        def llama3(f):
            wavelength = 2 * math.pi / f
            t = min(max((2048 / wavelength - 1) / 3, 0), 1)
            return (1 - t) / 4 + t

        self.close(ratios["llama3"], [llama3(f) for f in rates])
        first = next(i for i, f in enumerate(rates) if 2 * math.pi / f > 2048)
        self.assertEqual(turns["bands"][0]["from"], first - 0.5)
        self.assertEqual(turns["rules"][0]["at"], 2048)

    def test_scaling_that_is_given(self):
        figure = self.figure("scaling", "rope", "--scaling", "yarn:factor=4,original_length=32768", "rope", "--scaling",
                             "linear:factor=2")
        self.assertEqual([series["name"] for series in figure["panels"][1]["series"]], ["yarn", "linear"])
        self.assertEqual(figure["panels"][0]["rules"][0]["at"], 32768)

    def test_error(self):
        (panel,) = self.figure("error", "--zoom", "1:10000000")["panels"]
        worst = {series["name"]: dict(zip(series["x"], series["y"])) for series in panel["series"]}

        def between(name, least, most):
            return [y for x, y in worst[name].items() if least <= x < most]

        for errors in (worst["exact, in float32"].values(), between("bf16 positions", 1, 150)):
            self.assertLess(max(errors), 6.1e-8, "one rounding of a sine and a cosine")
        self.assertGreater(min(between("bf16 positions", 300, 1e7)), 0.9)
        self.assertLess(max(worst["exact, in bf16"].values()), 2.0 ** -8)
        self.assertLess(max(worst["exact, in float16"].values()), 2.0 ** -11)
        self.assertGreater(max(worst["exact, in float16"].values()), 2.0 ** -13)
        for name in ("hf-f32: float32 angle", "ggml-f32: float32 angle"):
            self.assertLess(max(between(name, 1, 1e3)), 5e-4)
            self.assertGreater(max(between(name, 1e5, 1e6)), 1e-3)
            self.assertGreater(max(between(name, 1e6, 1e7)), 0.1)
        self.assertEqual(panel["x"]["scale"], "log")

    def test_learned_tables(self):
        values = [math.sin(i * i) for i in range(40)]
        self.write("wpe.npy", npy("f32", (10, 4), values))
        figure = self.figure("waves", "learned", "--table", self.path("wpe.npy"), "--zoom", "0:10")
        self.close(figure["panels"][1]["series"][0]["y"], values[1::4], 1e-7)
        self.refused("plot", "waves", "learned", "--table", self.path("wpe.npy"), "--zoom", "0:11", says="10 rows")


class Terminal(Plot):
    def test_every_kind_fits_in_eighty_columns_without_colour(self):
        for kind in KINDS:
            text = self.succeeds("plot", kind).text
            self.assertNotIn("\x1b", text)
            for line in text.splitlines():
                self.assertLessEqual(len(line), 80, line)
                self.assertEqual(line, line.rstrip())
            self.assertRegex(text, "[\u2801-\u28ff░▒▓█]", kind)
            self.assertGreater(len(text.splitlines()), 15)

    def test_names_stand_on_lines_where_there_is_no_colour(self):
        text = self.succeeds("plot", "decay").text
        for name in ("a sinusoidal", "b rope"):
            self.assertIn(name, text)
        self.assertRegex(text, r"[\u2800-\u28ff]a[\u2800-\u28ff]")

    def test_areas_look_like_areas(self):
        lines = self.succeeds("plot", "waves", "--zoom", "0:1000000").text.splitlines()
        self.assertIn("▒" * 30, lines[3])
        self.assertNotIn("▒", self.succeeds("plot", "waves").text)

    def in_terminal(self, *arguments, **variables):
        pid, master = pty.fork()
        if pid == 0:
            os.execve(POSENC, [POSENC, "plot", *arguments], {**os.environ, "TERM": "xterm", **variables})
        data = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            data += piece
        os.close(master)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        return data.decode()

    def test_colour_on_a_terminal(self):
        self.assertIn("\x1b[38;5;", self.in_terminal("waves", COLORTERM=""))
        self.assertIn("\x1b[38;2;0;114;178m", self.in_terminal("waves", COLORTERM="truecolor"))
        map_ = self.in_terminal("heatmap", "--features", "0,1", "--zoom", "0:2", COLORTERM="truecolor")
        self.assertIn("\x1b[48;2;", map_)
        self.assertIn("▀", map_)
        plain = self.in_terminal("waves", NO_COLOR="1")
        self.assertNotIn("\x1b", plain)


class Refusals(Plot):
    def test_flags(self):
        for says, *arguments in (
            ("the kind is missing",),
            ("the kind is missing", "rope"),
            ("did you mean 'waves'?", "wavs"),
            ("unknown kind 'zzz'", "zzz"),
            ("shows one scheme, not 2", "waves", "rope", "sinusoidal"),
            ("at most 6 schemes", "decay", *["rope"] * 7),
            ("--at works with fingerprint and phasors and rotation, not with waves", "waves", "--at", "3"),
            ("--dtype works with dots and similarity, not with waves", "waves", "--dtype", "f16"),
            ("goes beyond the valid positions", "rotation", "--at", "3", "--shift", "-4"),
            ("no rotation moves its vectors", "rotation", "steps"),
            ("shows at most 128 features, not 130", "rotation", "sinusoidal", "--width", "130"),
            ("lengths change", "rotation", "rope", "--scaling", "xpos"),
            ("gives a position no numbers", "rotation", "alibi"),
            ("--lines works with bias", "dots", "--lines"),
            ("--zoom works with", "scaling", "--zoom", "0:3"),
            ("not of the form A:B", "waves", "--zoom", "5"),
            ("has no positions", "waves", "--zoom", "5:5"),
            ("has no positions", "waves", "--zoom", "9:5"),
            ("is not a position", "waves", "--zoom=-1:5"),
            ("is not an integer", "waves", "--zoom", "0:1e3"),
            ("is not a position", "waves", "--zoom", "0:9007199254740993"),
            ("is too large", "waves", "--zoom", "0:99999999999999999999"),
            ("at least two positions", "waves", "--zoom", "5:6"),
            ("is more than 1048576", "decay", "--zoom", "0:2000000"),
            ("too many for this figure", "dots", "sinusoidal", "--width", "4096", "--zoom", "0:1000000"),
            ("a range that at least doubles", "error", "--zoom", "1000:1010"),
            ("is not from 0 to 9007199254740991", "fingerprint", "--at", "9007199254740992"),
            ("goes beyond the valid positions", "phasors", "--at", "3", "--shift", "-4"),
            ("is not from 0 to 15", "waves", "--features", "16"),
            ("is not from 0 to 15", "waves", "--features=-1"),
            ("must be a list", "waves", "--features", "1,"),
            ("is not an integer", "waves", "--features", "1,,2"),
            ("at most 16", "waves", "--features", ",".join(str(i % 16) for i in range(17))),
            ("is not from 1 to 1000000", "scaling", "--factor", "0.5"),
            ("--factor", "scaling", "--factor", "nan"),
            ("is not from 1 to 1099511627776", "scaling", "--trained", "0"),
            ("works with rope, not with alibi", "scaling", "alibi"),
            ("same dims and base", "scaling", "rope", "--base", "100", "--scaling", "ntk:factor=2", "rope", "--scaling",
             "ntk:factor=4"),
            ("gives a position no numbers", "waves", "alibi"),
            ("has no position vectors", "dots", "none"),
            ("adds nothing to the scores", "bias", "rope"),
            ("several axes", "bias", "decomposed"),
            ("several axes", "heatmap", "sinusoidal", "--axes", "2"),
            ("several axes", "waves", "rope", "--sections", "16,24,24"),
            ("lengths change", "waves", "rope", "--scaling", "xpos"),
            ("has no rotating pairs", "phasors", "steps"),
            ("the trained table is missing", "waves", "learned"),
            ("unknown option --base", "decay", "rope", "alibi", "--base", "5"),
            ("unknown option --hads", "decay", "rope", "alibi", "--hads", "5"),
            ("unexpected argument 'x.svg'", "waves", "rope", "x.svg"),
            ("--heads", "decay", "rope", "alibi", "--heads", "x"),
            ("dims must be even", "waves", "rope", "--dims", "7"),
            ("not one of svg, png, pdf", "waves", "-o", "-", "--format", "gif"),
            ("--format works only with -o -", "waves", "--format", "svg"),
            ("must end in .svg, .png or .pdf", "waves", "-o", "x.gif"),
            ("must end in .svg, .png or .pdf", "waves", "-o", "svg"),
            ("cannot be combined with -o", "waves", "--json", "-o", "x.svg"),
            ("--size works only with -o", "waves", "--size", "300x300"),
            ("not of the form WxH", "waves", "--size", "300", "-o", "x.svg"),
            ("is not from 160 to 8000", "waves", "--size", "300x9000", "-o", "x.svg"),
            ("is not from 160 to 8000", "waves", "--size", "1x300", "-o", "x.svg"),
            ("remove --numerics", "error", "--numerics", "hf-f32"),
            ("No such file or directory", "waves", "-o", "no/x.svg"),
        ):
            code = 3 if says.startswith("No such") else 2
            self.refused("plot", *arguments, says=says, code=code, cwd=self.folder)

    def test_extremes(self):
        for arguments in (
            ("waves", "--zoom", f"0:{2 ** 53}"),
            ("waves", "--zoom", f"{2 ** 53 - 2}:{2 ** 53}"),
            ("heatmap", "--zoom", f"0:{2 ** 53}"),
            ("heatmap", "sinusoidal", "--width", 2, "--zoom", "5:6"),
            ("heatmap", "sinusoidal", "--width", 1, "--odd", "zero", "--zoom", "0:2"),
            ("fingerprint", "--at", 2 ** 53 - 1),
            ("fingerprint", "--at", 0),
            ("phasors", "sinusoidal", "--width", 2),
            ("phasors", "sinusoidal", "--width", 512),
            ("dots", "--zoom", "0:3"),
            ("decay", "steps"),
            ("bias", "alibi", "--heads", 1, "--zoom", "0:2"),
            ("bias", "alibi", "--heads", 40),
            ("scaling", "rope", "--dims", 4),
            ("scaling", "rope", "--scaling", "proportional"),
            ("error", "sinusoidal", "--width", 2, "--zoom", f"1:{2 ** 53}"),
        ):
            self.succeeds("plot", *arguments)
            self.figure(*arguments)
            if not SANITIZED:
                self.succeeds("plot", *arguments, "-o", self.path("x.svg"), "--force")

    def test_nobody_reads(self):
        read, write = os.pipe()
        os.close(read)
        outcome = run("plot", "waves", stdout=write)
        os.close(write)
        self.assertEqual((outcome.code, outcome.err), (141, ""))


if __name__ == "__main__":
    unittest.main()

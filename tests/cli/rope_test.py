"""Rotary position from the command line, against rotations by Python's own cosine and sine."""

import json
import math
import pathlib
import re
import struct
import unittest

from program import ProgramTest, as_f32, flat, npy, parse_npy

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "rope.md"


def frequencies(dims, base=10000.0):
    return [base ** (-2 * pair / dims) for pair in range(dims // 2)]


def cosines(position, dims, base=10000.0):
    return [as_f32(math.cos(position * w)) for w in frequencies(dims, base)]


def sines(position, dims, base=10000.0):
    return [as_f32(math.sin(position * w)) for w in frequencies(dims, base)]


def rotated(head, position, layout="halves", dims=None, first=0, sign=1, radians=None, magnitude=1.0):
    """One head, in double: (a, b) → magnitude · (a cos − b sin, b cos + a sin)."""
    dims = dims or len(head)
    out = list(head)
    for pair, w in enumerate(radians or frequencies(dims)):
        one, other = (pair, pair + dims // 2) if layout == "halves" else (2 * pair, 2 * pair + 1)
        a, b = head[first + one], head[first + other]
        c, s = math.cos(position * w), sign * math.sin(position * w)
        out[first + one], out[first + other] = magnitude * (a * c - b * s), magnitude * (b * c + a * s)
    return out


def counting(*shape):
    """Small distinct numbers, exact in every type."""
    return [((i * 37) % 61 - 30) / 8 for i in range(math.prod(shape))]


def heads(values, features):
    return [values[i : i + features] for i in range(0, len(values), features)]


class Table(ProgramTest):
    SMALL = ("table", "rope", "--dims", 8, "--positions", "0:4")

    def test_to_read(self):
        lines = self.succeeds(*self.SMALL).text.splitlines()
        self.assertIn("radians per position", lines[0])
        rows = [line.split() for line in lines]
        self.assertEqual(rows[2], ["pair", "0", "1", "2", "3"])
        self.assertEqual(rows[3], ["frequency", "1", "0.1", "0.01", "0.001"])
        self.assertEqual(rows[4], ["wavelength", "6.28", "62.8", "628", "6283"])
        self.assertEqual(rows[6], ["cosine", "0", "1", "2", "3"])
        self.assertEqual(rows[12], ["sine", "0", "1", "2", "3"])
        for position in range(4):
            self.assertEqual(rows[7 + position], [str(position), *(f"{x:.3f}" for x in cosines(position, 8))])
            self.assertEqual(rows[13 + position], [str(position), *(f"{x:.3f}" for x in sines(position, 8))])
        self.assertEqual(len({len(line) for line in lines[2:] if line}), 1, "aligned")

    def test_long_and_wide_tables_leave_out_the_middle(self):
        lines = self.succeeds("table", "rope", "--positions", "0:100000000").text.splitlines()
        self.assertEqual(len(lines), 43)
        self.assertTrue(all(len(line) <= 100 for line in lines))
        self.assertEqual([line.strip() for line in lines].count("…"), 2)
        self.assertEqual(lines[2].split()[-1], "63")
        self.assertEqual(lines[-1].split()[0], "99999999")

    def test_axes_are_shown(self):
        rows = [
            line.split()
            for line in self.succeeds(
                "table", "rope", "--dims", 8, "--sections", "1,1,2", "--grid", "1,2,2"
            ).text.splitlines()
        ]
        self.assertIn(["axis", "0", "1", "2", "2"], rows)
        self.assertIn("0,1,0", [row[0] for row in rows if row])

    def test_magnitude_and_softmax_factor_are_told(self):
        text = self.succeeds(*self.SMALL, "--scaling", "yarn:factor=40,mscale=1,mscale_all_dim=0.5").text
        self.assertIn(f"magnitude, {(0.1 * math.log(40) + 1) / (0.05 * math.log(40) + 1):.6g}", text)
        self.assertIn(f"softmax factor, {(0.05 * math.log(40) + 1) ** 2:.6g}", text)
        self.assertNotIn("magnitude", self.succeeds(*self.SMALL).text)

    def test_npy_is_cosines_then_sines(self):
        outcome = self.succeeds(*self.SMALL, "-o", self.path("t.npy"))
        self.assertEqual(outcome.err, f"posenc: wrote {self.path('t.npy')}: [2, 4, 4] f32\n")
        dtype, shape, values = parse_npy(self.read("t.npy"))
        self.assertEqual((dtype, shape), ("f32", (2, 4, 4)))
        self.assertEqual(values[:16], flat([cosines(p, 8) for p in range(4)]))
        self.assertEqual(values[16:], flat([sines(p, 8) for p in range(4)]))

    def test_every_type(self):
        for dtype, places in (("f64", 15), ("f16", 3), ("bf16", None)):
            self.succeeds(*self.SMALL, "--dtype", dtype, "-o", self.path(dtype + ".npy"))
            found, shape, values = parse_npy(self.read(dtype + ".npy"))
            self.assertEqual((found, shape), (dtype, (2, 4, 4)))
            if places:
                self.assertAlmostEqual(values[20], math.sin(1), places=places)
            else:
                self.assertEqual(values[:2], [0x3F80, 0x3F80])

    def test_csv(self):
        lines = self.succeeds(*self.SMALL, "-o", "-", "--format", "csv").text.splitlines()
        self.assertEqual(lines[0], "position,c0,c1,c2,c3,s0,s1,s2,s3")
        self.assertEqual([as_f32(float(x)) for x in lines[4].split(",")], [3.0, *cosines(3, 8), *sines(3, 8)])

    def test_json(self):
        document = json.loads(self.succeeds(*self.SMALL, "--json").out)
        self.assertEqual(
            list(document),
            ["scheme", "positions", "frequencies", "magnitude", "softmax_factor", "cosines", "sines"],
        )
        self.assertEqual(document["scheme"]["scheme"], "rope")
        self.assertEqual(document["scheme"]["scaling"], {"type": "none"})
        self.assertEqual(document["positions"], [0, 1, 2, 3])
        self.assertEqual((document["magnitude"], document["softmax_factor"]), (1.0, 1.0))
        for one, other in zip(document["frequencies"], frequencies(8)):
            self.assertAlmostEqual(one, other, places=15)
        self.assertEqual([as_f32(x) for x in document["cosines"][3]], cosines(3, 8))
        self.assertEqual([as_f32(x) for x in document["sines"][3]], sines(3, 8))
        self.succeeds(*self.SMALL, "-o", self.path("t.json"))
        self.assertEqual(json.loads(self.read("t.json")), document)

    def test_many_blocks_are_one_table(self):
        for kind in ("npy", "json"):
            small = ("table", "rope", "--dims", 64, "--positions")
            whole = self.succeeds(*small, "0:70001", "-o", "-", "--format", kind).out
            if kind == "npy":
                _, shape, values = parse_npy(whole)
                self.assertEqual(shape, (2, 70001, 32))
                halves = [heads(values[: 70001 * 32], 32), heads(values[70001 * 32 :], 32)]
            else:
                document = json.loads(whole)
                halves = [document["cosines"], document["sines"]]
            for position in (0, 16383, 16384, 32767, 32768, 70000):
                one = parse_npy(self.succeeds(*small, position, "-o", "-").out)[2]
                self.assertEqual([as_f32(x) for x in halves[0][position]], one[:32], (kind, position))
                self.assertEqual([as_f32(x) for x in halves[1][position]], one[32:], (kind, position))

    def test_backends_and_threads_do_not_matter(self):
        for more in ((), ("--scaling", "yarn:factor=4"), ("--numerics", "hf-f32"), ("--numerics", "ggml-f32")):
            def table(*engine):
                return self.succeeds("table", "rope", "--positions", "1000:1200", "-o", "-", *more, *engine).out
            reference = table("--backend", "reference")
            self.assertEqual(table("--threads", 1), reference)
            self.assertEqual(table("--threads", 2), reference)

    def test_hugging_face_angles(self):
        table = ("table", "rope", "--dims", 8, "--positions", 1000003, "--json", "--numerics")
        document = json.loads(self.succeeds(*table, "hf-f32").out)
        inverse = [as_f32(1 / as_f32(10000 ** (i / 4))) for i in range(4)]
        self.assertEqual(document["frequencies"], inverse)
        self.assertEqual(
            [as_f32(x) for x in document["cosines"][0]],
            [as_f32(math.cos(as_f32(as_f32(1000003) * w))) for w in inverse],
        )
        self.assertNotEqual(json.loads(self.succeeds(*table, "exact").out)["cosines"], document["cosines"])

    def test_sign(self):
        out = parse_npy(self.succeeds(*self.SMALL, "--sign", -1, "-o", "-").out)[2]
        self.assertEqual([-x for x in out[16:]], flat([sines(p, 8) for p in range(4)]))

    def test_size_is_refused_before_any_work(self):
        self.refused(
            "table", "rope", "--positions", "0:1099511627776", "-o", self.path("t.npy"),
            says="table of 2 x 1099511627776 x 64 float32 needs 512 TiB; limit is 64 GiB (--max-bytes)",
        )
        self.refused(*self.SMALL, "--max-bytes", 127, says="needs 128 bytes")
        self.succeeds(*self.SMALL, "--max-bytes", 128)


class Scaling(ProgramTest):
    def table(self, *more, dims=16, positions="0:40:7"):
        return self.succeeds("table", "rope", "--dims", dims, "--positions", positions, "-o", "-", *more).out

    def radians(self, scaling, *more, dims=16):
        out = self.succeeds("table", "rope", "--dims", dims, "--positions", 0, "--json", "--scaling", scaling, *more).out
        return json.loads(out)["frequencies"]

    def near(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            self.assertAlmostEqual(one / other, 1, places=13)

    def test_flag_and_json_are_the_same(self):
        for short, long in (
            ("linear:factor=4", '{"type":"linear","factor":4}'),
            ("yarn:factor=4,original_length=32768,truncate=false",
             '{"type":"yarn","factor":4.0,"original_length":32768,"truncate":false}'),
            ("llama3", '{"type":"llama3"}'),
        ):
            whole = f'{{"scheme":"rope","dims":16,"scaling":{long}}}'
            one = self.table("--scaling", short)
            self.assertEqual(self.table("--scaling", long), one)
            self.assertEqual(self.succeeds("table", whole, "--positions", "0:40:7", "-o", "-").out, one)
            self.assertNotEqual(self.table(), one)

    def test_linear_and_ntk(self):
        self.near(self.radians("linear:factor=4"), [w / 4 for w in frequencies(16)])
        self.near(self.radians("ntk:factor=4"), frequencies(16, 10000 * 4 ** (16 / 14)))
        self.near(self.radians("alpha:alpha=1000"), frequencies(16, 10000 * 1000 ** (16 / 14)))

    def test_llama3(self):
        expected = []
        for w in frequencies(16, 500000.0):
            turns = 8192 * w / (2 * math.pi)
            smooth = min(max((turns - 1) / (4 - 1), 0), 1)
            expected.append(w * (smooth + (1 - smooth) / 8))
        self.near(self.radians("llama3:factor=8", "--base", 500000), expected)

    def test_a_list_of_factors(self):
        scaling = "longrope:factor=2,original_length=8,short_factors=1/1/1/1,long_factors=1/2/3/4"
        short = self.radians(scaling, "--length", 8, dims=8)
        self.near(short, frequencies(8))
        long = self.radians(scaling, "--length", 9, dims=8)
        self.near(long, [w / f for w, f in zip(frequencies(8), (1, 2, 3, 4))])

    def test_length(self):
        dynamic = ("--scaling", "dynamic:factor=2,original_length=1024")
        self.assertEqual(self.table(*dynamic, "--length", 1024), self.table())
        stretch = 2 * 4096 / 1024 - 1
        self.near(self.radians(dynamic[1], "--length", 4096), frequencies(16, 10000 * stretch ** (16 / 14)))
        for verb in (("table", "rope", "--positions", "0:4"),
                     ("apply", "rope", self.write("x.npy", npy("f32", [4, 8], counting(4, 8))), "-o", self.path("y.npy"))):
            self.refused(*verb, *dynamic, says="scaling dynamic depends on the length of the sequence (--length N)")
            self.refused(*verb, *dynamic, "--length", 0, says="--length: 0 must be at least 1")
            self.refused(*verb, *dynamic, "--length", "long", says="--length: 'long' is not an integer")

    def test_every_scaling_is_listed_with_its_fields(self):
        cards = json.loads(self.succeeds("list", "--scalings", "--json").out)
        text = self.succeeds("list", "--scalings").text
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        help_text = " ".join(self.succeeds("table", "rope", "--help").text.split())
        self.assertIn("one of " + ", ".join(card["scaling"] for card in cards), help_text)
        self.assertIn("posenc list --scalings", help_text)
        for card in cards:
            self.assertRegex(text, rf"(?m)^{card['scaling']} +\S")
            given = {field["field"]: field["default"] for field in card["fields"]}
            scaling = json.dumps({"type": card["scaling"], **given})
            if card["scaling"] != "longrope":  # which has no lists by default
                self.table("--scaling", scaling, "--length", 5)
            for field in card["fields"]:
                # a long help goes on in the next line
                self.assertRegex(" ".join(text.split()), rf" {field['field']} \S+ {re.escape(field['help'])}")
        self.assertEqual([card["scaling"] for card in cards if card["needs_length"]], ["dynamic", "longrope"])

    def test_the_guide_has_every_scaling_with_its_fields(self):
        cards = json.loads(self.succeeds("list", "--scalings", "--json").out)
        rows = re.findall(r"(?m)^\| `([a-z0-9-]+)` \| ([^|]*)\|[^|]+\|$", GUIDE.read_text("utf-8").split("## Scalings")[1])
        expected = [(card["scaling"], [field["field"] for field in card["fields"]]) for card in cards]
        self.assertEqual([(name, re.findall("`([^`]+)`", fields)) for name, fields in rows][: len(cards)], expected)


class Apply(ProgramTest):
    def apply(self, file, *more):
        self.succeeds("apply", "rope", file, "-o", self.path("y.npy"), "--quiet", "--force", *more)
        return parse_npy(self.read("y.npy"))

    def close(self, found, expected, places=5):
        found, expected = flat(found), flat(expected)
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            self.assertAlmostEqual(one, other, places=places)

    def test_one_sequence_in_both_layouts(self):
        x = counting(5, 8)
        file = self.write("x.npy", npy("f32", [5, 8], x))
        for layout in ("halves", "interleaved"):
            dtype, shape, y = self.apply(file, "--layout", layout, "--positions", "3:8")
            self.assertEqual((dtype, shape), ("f32", (5, 8)))
            self.close(y, [rotated(h, 3 + i, layout) for i, h in enumerate(heads(x, 8))])

    def test_every_order_of_axes(self):
        batch, count, length, features = 2, 3, 4, 8
        x = counting(batch, count, length, features)
        expected = {
            (b, h, s): rotated(heads(x, features)[(b * count + h) * length + s], s)
            for b in range(batch) for h in range(count) for s in range(length)
        }
        every = {"b": range(batch), "h": range(count), "s": range(length)}

        def arranged(letters, source):
            keys = [{}]
            for letter in letters:
                keys = [{**key, letter: i} for key in keys for i in every[letter]]
            return [source[key.get("b", 0), key.get("h", 0), key["s"]] for key in keys]

        plain = {key: heads(x, features)[(key[0] * count + key[1]) * length + key[2]] for key in expected}
        sizes = {"b": batch, "h": count, "s": length}
        for letters in ("bhs", "bsh", "hs", "sh", "bs", "s"):
            shape = [*(sizes[letter] for letter in letters), features]
            file = self.write("x.npy", npy("f32", shape, arranged(letters, plain)))
            y = self.apply(file, "--axes", letters + "d")[2]
            self.close(y, arranged(letters, expected))

    def test_partial_and_last_features(self):
        x = counting(3, 12)
        file = self.write("x.npy", npy("f32", [3, 12], x))
        self.close(self.apply(file, "--dims", 8)[2], [rotated(h, p, dims=8) for p, h in enumerate(heads(x, 12))])
        last = [rotated(h, p, dims=4, first=8, layout="interleaved") for p, h in enumerate(heads(x, 12))]
        self.close(self.apply(file, "--dims", 4, "--first-dim", -4, "--layout", "interleaved")[2], last)
        self.close(self.apply(file, "--first_dim", -4, "--layout", "interleaved")[2], last)

    def test_backward_after_forward_keeps_the_magnitude_and_inverse_undoes(self):
        x = counting(6, 16)
        file = self.write("x.npy", npy("f32", [6, 16], x))
        yarn = ("--scaling", "yarn:factor=8,original_length=64", "--positions", "5:11")
        square = (0.1 * math.log(8) + 1) ** 2
        y = self.write("turned.npy", npy("f32", [6, 16], self.apply(file, *yarn)[2]))
        self.close(self.apply(y, *yarn, "--backward")[2], [square * value for value in x])
        self.close(self.apply(y, *yarn, "--inverse")[2], x)
        self.refused("apply", "rope", y, "-o", self.path("z.npy"), "--backward", "--inverse", says="cannot be combined")

    def test_the_adjoint_identity(self):
        x, d = counting(4, 8), counting(4, 8)[::-1]
        more = ("--layout", "interleaved-to-halves", "--positions", "9:13")
        forward = self.apply(self.write("x.npy", npy("f64", [4, 8], x)), *more)[2]
        back = self.apply(self.write("d.npy", npy("f64", [4, 8], d)), *more, "--backward")[2]
        self.assertAlmostEqual(sum(map(float.__mul__, forward, d)), sum(map(float.__mul__, x, back)), places=10)

    def test_keys_of_xpos(self):
        x = counting(4, 8)
        file = self.write("x.npy", npy("f64", [4, 8], x))
        xpos = ("--scaling", "xpos:scale_base=16", "--positions", "1:5")
        q, k = self.apply(file, *xpos)[2], self.apply(file, *xpos, "--keys")[2]
        plain = self.apply(file, "--positions", "1:5")[2]
        for one, other, neither in zip(q, k, plain):
            self.assertAlmostEqual(one * other, neither * neither, places=5)
        self.assertNotEqual(q, k)

    def test_every_type(self):
        x = counting(3, 8)
        expected = [rotated(h, p) for p, h in enumerate(heads(x, 8))]
        for dtype, places in (("f64", 13), ("f32", 5), ("f16", 2)):
            found, _, y = self.apply(self.write("x.npy", npy(dtype, [3, 8], x)))
            self.assertEqual(found, dtype)
            self.close(y, expected, places)
        file = self.write("b.npy", npy("bf16", [1, 2], [0x3F80, 0x4000]))  # 1, 2
        found, _, y = self.apply(file, "--dtype", "bf16", "--positions", 1)
        self.assertEqual(found, "bf16")
        self.close([struct.unpack("f", struct.pack("I", bits << 16))[0] for bits in y], rotated([1, 2], 1), 1)

    def test_precision(self):
        file = self.write("x.npy", npy("f32", [64, 8], counting(64, 8)))
        plain = self.apply(file)[2]
        self.assertEqual(self.apply(file, "--table-type", "f32", "--arithmetic", "f32")[2], plain)
        self.assertNotEqual(self.apply(file, "--table-type", "bf16")[2], plain)
        self.assertNotEqual(self.apply(file, "--arithmetic", "bf16")[2], plain)
        self.refused("apply", "rope", file, "-o", self.path("z.npy"), "--table-type", "f8", says="--table-type: 'f8'")

    def test_ids_of_each_sequence(self):
        shape, ids = [2, 3, 4, 8], [[0, 1, 2, 3], [9, 9, 0, 100]]
        x = counting(*shape)
        file = self.write("x.npy", npy("f32", shape, x))
        y = self.apply(file, "--axes", "bhsd", "--positions", "@" + self.write("ids.npy", npy("i64", [2, 4], ids)))[2]
        self.close(y, [rotated(h, ids[i // 12][i % 4]) for i, h in enumerate(heads(x, 8))])
        shape, ids = [2, 4, 3, 8], flat(ids)
        file = self.write("x.npy", npy("f32", shape, x))
        y = self.apply(file, "--axes", "bshd", "--positions", ",".join(map(str, ids)))[2]
        self.close(y, [rotated(h, ids[i // 3]) for i, h in enumerate(heads(x, 8))])

    def test_axes_of_positions(self):
        ids = [[0, 1, 2], [5, 5, 5], [7, 8, 9]]
        x = counting(3, 8)
        file = self.write("x.npy", npy("f32", [3, 8], x))
        ids_file = self.write("ids.npy", npy("i64", [3, 3], ids))
        y = self.apply(file, "--sections", "1,1,2", "--positions", "@" + ids_file)[2]
        angles = [[ids[axis][s] * w for axis, w in zip((0, 1, 2, 2), frequencies(8))] for s in range(3)]
        self.close(y, [rotated(h, 1, radians=angles[s]) for s, h in enumerate(heads(x, 8))])
        # two sequences, each with its own
        x = counting(2, 3, 8)
        file = self.write("x.npy", npy("f32", [2, 3, 8], x))
        both = self.write("both.npy", npy("i64", [3, 6], [row + [i + 20 for i in row] for row in ids]))
        y = self.apply(file, "--axes", "bsd", "--sections", "1,1,2", "--positions", "@" + both)[2]
        angles += [[(ids[axis][s] + 20) * w for axis, w in zip((0, 1, 2, 2), frequencies(8))] for s in range(3)]
        self.close(y, [rotated(h, 1, radians=angles[s]) for s, h in enumerate(heads(x, 8))])
        self.refused(
            "apply", "rope", file, "-o", self.path("z.npy"), "--axes", "bsd", "--sections", "1,1,2",
            says="needs positions with 3 axes",
        )

    def test_many_pieces_are_one_result(self):
        # 24 MB and more: long sequences, many heads, own positions
        features = 64
        ones = struct.pack("<64f", *[1.0] * 64)
        for axes, shape in (("sd", [100000, 64]), ("bhsd", [4, 5, 5000, 64]), ("bshd", [4, 5000, 5, 64])):
            tokens = math.prod(shape[:-1])
            head = npy("f32", shape, [])
            file = self.write("x.npy", head + ones * tokens)
            self.succeeds("apply", "rope", file, "-o", self.path("y.npy"), "--axes", axes, "--force", "--quiet")
            data = self.read("y.npy")[len(head) :]
            self.assertEqual(len(data), tokens * features * 4)
            for token in (0, 1, 32767, 32768, 32769, tokens - 1):
                position = {"sd": token, "bhsd": token % 5000, "bshd": token // 5 % 5000}[axes]
                row = struct.unpack_from("<64f", data, token * features * 4)
                self.close(row, rotated([1.0] * 64, position), 4)

    def test_long_sequences_with_their_own_positions(self):
        # pieces end within a sequence and within a batch
        ones = struct.pack("<64f", *[1.0] * 64)
        ids = [[(7 * i + 1000 * b) % 4096 for i in range(20000)] for b in range(2)]
        ids_file = self.write("ids.npy", npy("i64", [2, 20000], ids))
        for axes, shape in (("bhsd", [2, 2, 20000, 64]), ("bshd", [2, 20000, 2, 64])):
            head = npy("f32", shape, [])
            file = self.write("x.npy", head + ones * 80000)
            self.succeeds("apply", "rope", file, "-o", self.path("y.npy"), "--axes", axes, "--force", "--quiet",
                          "--positions", "@" + ids_file)
            data = self.read("y.npy")[len(head) :]
            for token in (0, 19999, 20000, 32767, 32768, 39999, 40000, 79999):
                b, s = token // 40000, token % 20000 if axes == "bhsd" else token // 2 % 20000
                self.close(struct.unpack_from("<64f", data, token * 256), rotated([1.0] * 64, ids[b][s]), 4)

    def test_nothing_to_turn(self):
        self.assertEqual(self.apply(self.write("x.npy", npy("f32", [2, 3, 0, 8], [])), "--axes", "bhsd")[2], [])
        self.assertEqual(self.apply(self.write("x.npy", npy("f32", [0, 3, 2, 8], [])), "--axes", "bshd")[2], [])

    def test_to_standard_output_and_in_place(self):
        file = self.write("x.npy", npy("f32", [5, 8], counting(5, 8)))
        self.apply(file)
        self.assertEqual(self.succeeds("apply", "rope", file, "-o", "-").out, self.read("y.npy"))
        self.succeeds("apply", "rope", file, "-o", file, "--force")
        self.assertEqual(self.read("x.npy"), self.read("y.npy"))

    def test_backends_do_not_matter(self):
        file = self.write("x.npy", npy("f32", [2, 3, 5, 8], counting(2, 3, 5, 8)))
        for more in (("--numerics", "exact"), ("--numerics", "hf-f32"), ("--layout", "interleaved")):
            one = self.apply(file, "--axes", "bshd", *more, "--backend", "reference")
            self.assertEqual(self.apply(file, "--axes", "bshd", *more, "--backend", "cpu", "--threads", 1), one)


class Refused(ProgramTest):
    def test_fields(self):
        table = ("table", "rope", "--positions", "0:4")
        self.refused(*table, "--dims", 7, says="rope: dims must be even but is 7")
        self.refused(*table, "--dims", 0, says="dims")
        self.refused(*table, "--dims", 8, "--sections", "1,2", says="sections must sum to 4 pairs (dims/2) but sum to 3")
        self.refused(*table, "--sections", "1,two", says="--sections")
        self.refused(*table, "--layout", "halfs", says="one of halves, interleaved")
        self.refused(*table, "--section-order", "random", says="--section-order: 'random' is not one of chunked")
        self.refused(*table, "--base", 1, says="base must be above 1")

    def test_scalings(self):
        table = ("table", "rope", "--positions", "0:4", "--scaling")
        self.refused(*table, "yran:factor=4", says="--scaling: 'yran' is not one of none, linear")
        self.refused(*table, "yran:factor=4", says="(did you mean 'yarn'?)")
        self.refused(*table, "yarn:fctor=4", says="did you mean 'factor'?")
        self.refused(*table, "yarn:factor", says="not of the form name=value")
        self.refused(*table, "yarn:factor=four", says="--scaling")
        self.refused(*table, "linear:factor=0", says="factor of scaling linear must be above 0")
        self.refused(*table, '{"type":"ntkk"}', says="did you mean 'ntk'?")

    def test_axes(self):
        out = ("-o", self.path("y.npy"))
        file = self.write("x.npy", npy("f32", [2, 3, 4, 8], counting(2, 3, 4, 8)))
        self.refused("apply", "rope", file, *out, says="name its axes with --axes bhsd or bshd")
        self.refused("apply", "rope", file, *out, "--axes", "shd", says="has shape [2, 3, 4, 8], but --axes shd needs 3")
        self.refused("apply", "rope", file, *out, "--axes", "dshb", says="'dshb' is not one of bhsd, bshd")
        file = self.write("three.npy", npy("f32", [3, 4, 8], counting(3, 4, 8)))
        self.refused("apply", "rope", file, *out, says="--axes hsd, shd or bsd")
        file = self.write("one.npy", npy("f32", [8], counting(8)))
        self.refused("apply", "rope", file, *out, says="2 to 4 axes")
        file = self.write("whole.npy", npy("i64", [4, 8], range(32)))
        self.refused("apply", "rope", file, *out, says="contains integers")

    def test_heads_and_positions(self):
        out = ("-o", self.path("y.npy"))
        file = self.write("x.npy", npy("f32", [4, 8], counting(4, 8)))
        self.refused("apply", "rope", file, *out, "--dims", 16, says="a head has 8 features, which cannot hold 16")
        self.refused("apply", "rope", file, *out, "--dims", 8, "--first-dim", 2, says="cannot hold 8 rotary dimensions from feature 2")
        self.refused("apply", "rope", file, *out, "--positions", "0:5", says="4 tokens per sequence, but 5 positions are given")
        odd = self.write("odd.npy", npy("f32", [4, 7], counting(4, 7)))
        self.refused("apply", "rope", odd, *out, says="dims must be even but is 7")

    def test_growth_past_all_range(self):
        file = self.write("x.npy", npy("f32", [2, 8], counting(2, 8)))
        far = ("--scaling", "xpos:scale_base=1", "--positions", "0,100000")
        self.refused("apply", "rope", file, "-o", "-", *far, says="too far from the centre")
        self.refused("table", "rope", "-o", "-", *far, says="too far from the centre")

    def test_flags_of_rotations_for_additions(self):
        file = self.write("x.npy", npy("f32", [4, 8], counting(4, 8)))
        for flag in (["--backward"], ["--inverse"], ["--keys"], ["--table-type", "f32"], ["--arithmetic", "f32"]):
            self.refused("apply", "sinusoidal", file, "-o", self.path("y.npy"), *flag,
                         says=f"{flag[0]}: applies only to rotations, and sinusoidal is not one")
        self.refused("apply", "sinusoidal", file, "-o", self.path("y.npy"), "--axes", "bhsd", says="addition has no heads")


if __name__ == "__main__":
    unittest.main()

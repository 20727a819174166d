"""posenc apply: x += p, from file to file."""

import struct
import unittest

from program import ProgramTest, as_f32, flat, npy, parse_npy, sinusoidal


def counting(*shape):
    """Small distinct numbers, exact in every type."""
    size = 1
    for extent in shape:
        size *= extent
    return [(i % 61) / 8 for i in range(size)]


class Apply(ProgramTest):
    def apply(self, x, *more, scheme="sinusoidal"):
        self.succeeds("apply", scheme, x, "-o", self.path("y.npy"), "--quiet", *more)
        return parse_npy(self.read("y.npy"))

    def expect(self, x, rows):
        return [as_f32(value + p) for value, p in zip(x, flat(rows))]

    def test_a_sequence(self):
        x = counting(5, 4)
        dtype, shape, y = self.apply(self.write("x.npy", npy("f32", [5, 4], x)))
        self.assertEqual((dtype, shape), ("f32", (5, 4)))
        self.assertEqual(y, self.expect(x, [sinusoidal(p, 4) for p in range(5)]))

    def test_a_batch_has_the_same_positions_in_each_sequence(self):
        x = counting(3, 5, 4)
        file = self.write("x.npy", npy("f32", [3, 5, 4], x))
        y = self.apply(file, "--positions", "7:12", "--axes", "bsd")[2]
        self.assertEqual(y, self.expect(x, 3 * [sinusoidal(p, 4) for p in range(7, 12)]))

    def test_ids_for_each_sequence(self):
        x = counting(2, 3, 4)
        file = self.write("x.npy", npy("f32", [2, 3, 4], x))
        ids = [[0, 1, 2], [9, 9, 0]]
        expected = self.expect(x, [sinusoidal(p, 4) for p in flat(ids)])
        self.assertEqual(self.apply(file, "--positions", "@" + self.write("ids.npy", npy("i64", [2, 3], ids)))[2], expected)

    def test_steps_between_positions(self):
        x = counting(4, 2)
        y = self.apply(self.write("x.npy", npy("f32", [4, 2], x)), "--positions", "0:12:3")[2]
        self.assertEqual(y, self.expect(x, [sinusoidal(p, 2) for p in (0, 3, 6, 9)]))

    def test_a_grid_and_its_own_axes(self):
        x = counting(2, 6, 8)
        file = self.write("x.npy", npy("f32", [2, 6, 8], x))
        y = self.apply(file, "--axes", 2, "--axes", "bsd", "--grid", "2,3")[2]
        points = [sinusoidal(h, 4) + sinusoidal(w, 4) for h in range(2) for w in range(3)]
        self.assertEqual(y, self.expect(x, 2 * points))

    def test_many_pieces_are_one_result(self):
        # 24 MB: more than two pieces, in one long sequence and in many short ones
        width = 1000
        for shape in ([6000, width], [60, 100, width]):
            zeros = b"\0" * 24000000
            header = npy("f32", shape, [])
            file = self.write("x.npy", header + zeros)
            self.succeeds("apply", "sinusoidal", file, "-o", self.path("y.npy"), "--force", "--quiet")
            data = self.read("y.npy")[len(header) :]
            self.assertEqual(len(data), len(zeros))
            length = shape[-2]
            for token in (0, 1, 2096, 2097, 2098, 5999):
                row = struct.unpack_from(f"<{width}f", data, token * width * 4)
                self.assertEqual(list(row), sinusoidal(token % length, width), (shape, token))

    def test_every_type_keeps_its_own(self):
        x = counting(3, 4)
        for dtype, places in (("f64", 14), ("f32", 6), ("f16", 2)):
            found, _, y = self.apply(self.write("x.npy", npy(dtype, [3, 4], x)), "--force")
            self.assertEqual(found, dtype)
            for value, expected in zip(y, self.expect(x, [sinusoidal(p, 4) for p in range(3)])):
                self.assertAlmostEqual(value, expected, places=places if dtype != "f64" else 6)

    def test_bf16_must_be_said(self):
        file = self.write("x.npy", npy("bf16", [1, 2], [0x4000, 0x4000]))  # 2, 2
        self.refused("apply", "sinusoidal", file, "-o", self.path("y.npy"), says="bf16")
        found, _, y = self.apply(file, "--dtype", "bf16")
        self.assertEqual((found, y), ("bf16", [0x4000, 0x4040]))  # 2 + sin 0, 2 + cos 0

    def test_nothing_changes_nothing(self):
        x = counting(3, 4)
        file = self.write("x.npy", npy("f32", [3, 4], x))
        self.assertEqual(self.apply(file, scheme="none")[2], x)

    def test_no_tokens(self):
        self.assertEqual(self.apply(self.write("x.npy", npy("f32", [2, 0, 4], [])))[1:], ((2, 0, 4), []))

    def test_fortran_order_and_big_endian(self):
        x = counting(3, 4)
        plain = self.apply(self.write("x.npy", npy("f32", [3, 4], x)))[2]
        turned = [x[row * 4 + column] for column in range(4) for row in range(3)]
        data = npy("f32", [3, 4], turned).replace(b"False", b"True ")
        self.assertEqual(self.apply(self.write("f.npy", data), "--force")[2], plain)
        data = npy("f32", [3, 4], [])[:128].replace(b"<f4", b">f4") + struct.pack(">12f", *x)
        self.assertEqual(self.apply(self.write("b.npy", data), "--force")[2], plain)

    def test_to_standard_output(self):
        file = self.write("x.npy", npy("f32", [5, 4], counting(5, 4)))
        self.apply(file)
        self.assertEqual(self.succeeds("apply", "sinusoidal", file, "-o", "-").out, self.read("y.npy"))

    def test_learned(self):
        table = self.write("wpe.npy", npy("f32", [4, 2], range(8)))
        file = self.write("x.npy", npy("f32", [3, 2], [0.5] * 6))
        y = self.apply(file, "--table", table, "--offset", 1, scheme="learned")[2]
        self.assertEqual(y, [2.5, 3.5, 4.5, 5.5, 6.5, 7.5])

    def test_in_place_with_force(self):
        x = counting(5, 4)
        file = self.write("x.npy", npy("f32", [5, 4], x))
        self.succeeds("apply", "sinusoidal", file, "-o", file, "--force")
        self.assertEqual(parse_npy(self.read("x.npy"))[2], self.expect(x, [sinusoidal(p, 4) for p in range(5)]))
        self.assertEqual(self.files(), ["x.npy"])


class Refused(ProgramTest):
    def setUp(self):
        super().setUp()
        self.x = self.write("x.npy", npy("f32", [5, 4], counting(5, 4)))
        self.y = self.path("y.npy")

    def test_the_input_as_output(self):
        self.refused("apply", "sinusoidal", self.x, "-o", self.x, says="is also the input")

    def test_missing_parts(self):
        self.refused("apply", says="the scheme is missing")
        self.refused("apply", "sinusoidal", says="the input is missing")
        self.refused("apply", "sinusoidal", self.x, says="the output is missing")
        self.refused("apply", "sinusoidal", self.path("no.npy"), "-o", self.y, code=3, says="No such file")
        self.refused("apply", "sinusodial", self.x, "-o", self.y, says="did you mean 'sinusoidal'?")
        self.refused("apply", "sinusoidal", self.x, "more.npy", "-o", self.y, says="unexpected argument 'more.npy'")

    def test_positions_that_do_not_fit(self):
        self.refused("apply", "sinusoidal", self.x, "-o", self.y, "--positions", "0:4", says="4 positions")
        self.refused("apply", "sinusoidal", self.x, "-o", self.y, "--positions", "-1", says="-1 is not a position")
        self.refused("apply", "sinusoidal", self.x, "-o", self.y, "--axes", 2, says="--grid")

    def test_axes_that_do_not_fit(self):
        self.refused("apply", "sinusoidal", self.x, "-o", self.y, "--axes", "bsd", says="[5, 4]")
        self.refused("apply", "sinusoidal", self.x, "-o", self.y, "--axes", "bhsd", says="sd or bsd")
        self.refused("apply", "learned", self.x, "-o", self.y, "--axes", "q", says="sd or bsd")
        vector = self.write("v.npy", npy("f32", [4], [1, 2, 3, 4]))
        self.refused("apply", "sinusoidal", vector, "-o", self.y, says="[batch, sequence, width]")

    def test_types_that_do_not_fit(self):
        whole = self.write("i.npy", npy("i64", [1, 2], [1, 2]))
        self.refused("apply", "sinusoidal", whole, "-o", self.y, says="contains integers")
        self.refused("apply", "sinusoidal", self.x, "-o", self.y, "--dtype", "f64", says="contains f32")

    def test_widths_that_do_not_fit(self):
        self.refused("apply", "sinusoidal", self.x, "-o", self.y, "--width", 8, says="has width 4, but --width says 8")
        table = self.write("w.npy", npy("f32", [9, 3], range(27)))
        self.refused("apply", "learned", self.x, "-o", self.y, "--table", table, says="has width 4")
        odd = self.write("odd.npy", npy("f32", [2, 3], range(6)))
        self.refused("apply", "sinusoidal", odd, "-o", self.y, says="width")

    def test_learned_past_the_last_row(self):
        table = self.write("w.npy", npy("f32", [4, 4], range(16)))
        self.refused("apply", "learned", self.x, "-o", self.y, "--table", table, says="position 4")

    def test_other_formats(self):
        self.refused("apply", "sinusoidal", self.x, "-o", self.path("y.csv"), says=".npy")


if __name__ == "__main__":
    unittest.main()

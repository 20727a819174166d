"""posenc convert: rows of query and key weights between pair layouts."""

import json
import unittest

from program import ProgramTest, npy, parse_npy, parse_safetensors, safetensors


class Convert(ProgramTest):
    def convert(self, file, *flags, out="out.npy"):
        self.succeeds("convert", file, "-o", self.path(out), "--quiet", "--force", *flags)
        return parse_npy(self.read(out))[2]

    def test_a_bias(self):
        bias = self.write("b.npy", npy("f32", [12], range(12)))
        halves = [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]
        self.assertEqual(self.convert(bias, "--to", "halves", "--heads", 2), halves)
        back = self.convert(self.write("h.npy", npy("f32", [12], halves)), "--to", "interleaved", "--heads", 2)
        self.assertEqual(back, list(range(12)))

    def test_a_weight(self):
        weight = self.write("w.npy", npy("f32", [4, 2], range(8)))
        self.assertEqual(self.convert(weight, "--to", "halves", "--heads", 1), [0, 1, 4, 5, 2, 3, 6, 7])

    def test_part_of_a_head(self):
        bias = self.write("b.npy", npy("f32", [12], range(12)))
        self.assertEqual(self.convert(bias, "--to", "halves", "--heads", 2, "--rotary-dims", 4),
                         [0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11])
        self.assertEqual(self.convert(bias, "--to", "halves", "--heads", 2, "--rotary-dims", 4, "--first-dim", -4),
                         [0, 1, 2, 4, 3, 5, 6, 7, 8, 10, 9, 11])

    def test_there_and_back_in_every_type(self):
        for dtype in ("f64", "f16"):
            values = [x / 8 for x in range(64)]
            file = self.write("w.npy", npy(dtype, [16, 4], values))
            self.convert(file, "--to", "halves", "--heads", 2)
            self.assertEqual(self.convert(self.path("out.npy"), "--to", "interleaved", "--heads", 2, out="back.npy"),
                             values)
        bits = list(range(0x3F80, 0x3F90))
        file = self.write("w.npy", npy("bf16", [8, 2], bits))
        self.convert(file, "--to", "halves", "--heads", 1, "--dtype", "bf16")
        self.assertEqual(self.convert(self.path("out.npy"), "--to", "interleaved", "--heads", 1, "--dtype", "bf16",
                                      out="back.npy"), bits)

    def test_safetensors_keep_the_name(self):
        file = self.write("m.safetensors", safetensors({"wq": ("F32", [4], [0, 1, 2, 3])}))
        outcome = self.succeeds("convert", file + ":wq", "-o", self.path("o.safetensors"), "--to", "halves", "--heads", 1,
                                "--json")
        self.assertEqual(parse_safetensors(self.read("o.safetensors")), ("wq", "F32", [4], [0, 2, 1, 3]))
        document = json.loads(outcome.out)
        self.assertEqual((document["layout"], document["features"]), ("halves", 4))
        self.assertLess(document["max_score_difference"], 1e-12)

    def test_refused(self):
        file = self.write("b.npy", npy("f32", [12], range(12)))
        out = ("-o", self.path("o.npy"))
        self.refused("convert", says="the input is missing")
        self.refused("convert", file, "--to", "halves", "--heads", 2, says="the output is missing")
        self.refused("convert", file, *out, "--heads", 2, says="--to is missing")
        self.refused("convert", file, *out, "--to", "halves", says="--heads is missing")
        self.refused("convert", file, *out, "--to", "neox", "--heads", 2, says="'neox' is not one of")
        self.refused("convert", file, *out, "--to", "halves", "--heads", 5, says="cannot be divided among 5 heads")
        self.refused("convert", file, *out, "--to", "halves", "--heads", 4, says="must be even")
        self.refused("convert", file, *out, "--to", "halves", "--heads", 2, "--rotary-dims", 8, says="at most 6")
        self.refused("convert", file, "-o", file, "--to", "halves", "--heads", 2, says="is also the input")
        nan = self.write("nan.npy", npy("f32", [4], [1, 2, 3, float("nan")]))
        self.refused("convert", nan, *out, "--to", "halves", "--heads", 1, says="not finite")


if __name__ == "__main__":
    unittest.main()

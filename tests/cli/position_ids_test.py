"""posenc positions: ids from masks, packed sequences and grids."""

import json
import unittest

from program import ProgramTest, npy, parse_npy, run


class Positions(ProgramTest):
    def test_packed(self):
        self.assertEqual(self.succeeds("positions", "--lengths", "5,3,0,2").text, "0,1,2,3,4,0,1,2,0,1\n")

    def test_grid(self):
        self.assertEqual(self.succeeds("positions", "--grid", "2,1,3").text, "0,0,0,1,1,1\n0,0,0,0,0,0\n0,1,2,0,1,2\n")
        self.assertEqual(self.succeeds("positions", "--grid", "1,2", "--first", 7).text, "7,7\n7,8\n")

    def test_mask(self):
        mask = self.write("mask.npy", npy("i64", [2, 4], [[0, 0, 1, 1], [1, 1, 1, 0]]))
        self.assertEqual(self.succeeds("positions", "--mask", mask).text, "1,1,0,1\n0,1,2,1\n")
        self.assertEqual(self.succeeds("positions", "--mask", mask, "--padding", 0).text, "0,0,0,1\n0,1,2,0\n")
        self.assertEqual(self.succeeds("positions", "--mask", mask, "--rule", "roberta").text, "1,1,2,3\n2,3,4,1\n")

    def test_ids_are_checked_against_a_mask(self):
        mask = self.write("mask.npy", npy("i64", [2, 4], [[0, 0, 1, 1], [1, 1, 1, 1]]))
        right = self.write("right.npy", npy("i64", [2, 4], [[9, 9, 0, 1], [0, 1, 2, 3]]))
        self.assertEqual(self.succeeds("positions", "--check", right, "--mask", mask).text, "agrees: 6 tokens\n")
        counted = self.write("counted.npy", npy("i64", [2, 4], [[0, 1, 2, 3], [0, 1, 2, 3]]))
        outcome = run("positions", "--check", counted, "--mask", mask)
        self.assertEqual((outcome.code, outcome.text),
                         (1, "differs: 2 of 6 tokens\n  first: row 0, token 2: expected 0, got 2\n"
                             "  padding was counted: the ids are those of columns, not of tokens\n"))
        outcome = run("positions", "--check", counted, "--mask", mask, "--json")
        self.assertEqual(json.loads(outcome.out)["first"], {"row": 0, "token": 2, "expected": 0, "got": 2})
        other = self.write("other.npy", npy("i64", [4], [0, 1, 2, 3]))
        self.refused("positions", "--check", other, "--mask", mask, says="but the mask [2, 4]")
        self.refused("positions", "--check", right, says="needs either --mask or --cu-seqlens")

    def test_ids_are_checked_against_packed_sequences(self):
        ids = self.write("ids.npy", npy("i64", [5], [0, 1, 2, 0, 1]))
        self.assertEqual(self.succeeds("positions", "--check", ids, "--cu-seqlens", "0,3,5").text, "agrees: 5 tokens\n")
        ends = self.write("ends.npy", npy("i64", [3], [0, 2, 5]))
        self.assertEqual(run("positions", "--check", ids, "--cu-seqlens", ends).code,
                         run("positions", "--check", ids, "--cu-seqlens", "@" + ends).code)
        outcome = run("positions", "--check", ids, "--cu-seqlens", "@" + ends)
        self.assertEqual(outcome.code, 1)
        self.assertIn("positions do not restart at token 2, where a sequence starts", outcome.text)
        self.assertIn("not tested: there is one sequence",
                      run("positions", "--check", self.write("a.npy", npy("i64", [2], [0, 1])), "--cu-seqlens", "0,2").text)
        self.refused("positions", "--check", ids, "--cu-seqlens", "0,3", says="the last boundary is 3, but there are 5")
        self.refused("positions", "--lengths", 3, "--cu-seqlens", "0,3", says="works only with --check")

    def test_centred_grids_and_random_positions(self):
        self.assertEqual(self.succeeds("positions", "--grid", "2,3", "--centred").text, "-1,-1,-1,1,1,1\n-2,0,2,-2,0,2\n")
        self.refused("positions", "--lengths", 3, "--centred", says="--centred works only with --grid")
        ids = [int(one) for one in self.succeeds("positions", "--random", "40,500", "--seed", 7).text.split(",")]
        self.assertEqual((len(ids), ids), (40, sorted(set(ids))))
        self.assertLess(ids[-1], 500)
        self.refused("positions", "--random", "40", says="--random")
        self.refused("positions", "--random", "5,4", says="5 positions cannot differ below 4")

    def test_mixed_input(self):
        """A prompt of Qwen2.5-VL: what get_rope_index of transformers 5.16 returns for it."""
        prompt = "text:5 image:4x6 text:3 video:3x4x4@1 text:4"
        time = "0,1,2,3,4,5,5,5,5,5,5,8,9,10,11,11,11,11,13,13,13,13,15,15,15,15,13,14,15,16\n"
        height = "0,1,2,3,4,5,5,5,6,6,6,8,9,10,11,11,12,12,11,11,12,12,11,11,12,12,13,14,15,16\n"
        width = "0,1,2,3,4,5,6,7,5,6,7,8,9,10,11,12,11,12,11,12,11,12,11,12,11,12,13,14,15,16\n"
        self.assertEqual(self.succeeds("positions", "--family", "qwen2.5-vl", "--spec", prompt).text,
                         time + height + width)
        # the class's rate instead of the checkpoints'
        text = self.succeeds("positions", "--family", "qwen2.5-vl", "--rate", 4, "--spec", prompt).text
        self.assertEqual(text.splitlines()[0].split(",")[14:26], ["11"] * 4 + ["15"] * 4 + ["19"] * 4)
        self.refused("positions", "--family", "qwen2-vl", "--spec", prompt, says="qwen2-vl counts frames")
        self.refused("positions", "--rate", 4, "--spec", "text:1", says="--rate: qwen2-vl counts frames")
        self.refused("positions", "--spec", "image:3x4", says="must be multiples of merge")
        self.refused("positions", "--spec", "text:99999999999", says="--spec")
        self.refused("positions", "--spec", "text:1", "--grid", "1,2", says="exactly one of")

    def test_a_spec_that_is_no_list_of_pieces(self):
        """The message names the pieces; it speaks of no scheme and not of the library's own names."""
        for spec in ('{"x":1}', '{"scheme":"rope"}', "nofile.json", "text", "image"):
            outcome = self.refused("positions", "--spec", spec, says=f"--spec: '{spec}' ")
            self.assertNotIn("mrope", outcome.err)
            self.assertNotIn("JSON", outcome.err)
        for spec in ('{"x":1}', "nofile.json"):
            self.refused("positions", "--spec", spec, says="must be text:N, image:RxC, video:TxRxC or audio:N")
        self.refused("positions", "--spec", " ", says="give pieces, e.g. text:5 image:16x24")

    def test_files_and_json(self):
        self.succeeds("positions", "--grid", "2,3", "-o", self.path("ids.npy"), "--quiet")
        self.assertEqual(parse_npy(self.read("ids.npy")), ("i64", (2, 6), [0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2]))
        document = json.loads(self.succeeds("positions", "--lengths", "2,1", "--json").out)
        self.assertEqual(document, {"shape": [3], "positions": [0, 1, 0]})
        # what it writes, others read
        self.succeeds("positions", "--lengths", "3", "-o", self.path("p.npy"), "--quiet")
        self.succeeds("table", "sinusoidal", "--width", 2, "--positions", "@" + self.path("p.npy"))

    def test_refused(self):
        self.refused("positions", says="one of --mask, --lengths, --grid, --spec and --random")
        self.refused("positions", "--lengths", "1", "--grid", "1,1", says="one of --mask")
        self.refused("positions", "--lengths", "3,-1", says="-1 is negative")
        self.refused("positions", "--lengths", "3,x", says="'x' is not an integer")
        self.refused("positions", "--grid", "99999,99999,99999", says="more than")
        self.refused("positions", "--grid", "1,1,1,1", says="one to three extents")
        mask = self.write("mask.npy", npy("i64", [2], [0, 2]))
        self.refused("positions", "--mask", mask, says="only 0 and 1, but contains 2")
        self.refused("positions", "--mask", self.write("f.npy", npy("f32", [2], [0, 1])), says="a mask must contain integers")
        self.refused("positions", "--lengths", "3", "-o", self.path("x.csv"), says=".npy or .safetensors")


if __name__ == "__main__":
    unittest.main()

"""posenc positions: ids from masks, packed sequences and grids."""

import json
import unittest

from program import ProgramTest, npy, parse_npy


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

    def test_files_and_json(self):
        self.succeeds("positions", "--grid", "2,3", "-o", self.path("ids.npy"), "--quiet")
        self.assertEqual(parse_npy(self.read("ids.npy")), ("i64", (2, 6), [0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2]))
        document = json.loads(self.succeeds("positions", "--lengths", "2,1", "--json").out)
        self.assertEqual(document, {"shape": [3], "positions": [0, 1, 0]})
        # what it writes, others read
        self.succeeds("positions", "--lengths", "3", "-o", self.path("p.npy"), "--quiet")
        self.succeeds("table", "sinusoidal", "--width", 2, "--positions", "@" + self.path("p.npy"))

    def test_refused(self):
        self.refused("positions", says="one of --mask, --lengths and --grid")
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

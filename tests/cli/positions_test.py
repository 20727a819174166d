"""The grammar of positions."""

import json
import unittest

from program import ProgramTest, npy

LAST = 2**53 - 1


class Positions(ProgramTest):
    def positions(self, text, *more):
        outcome = self.succeeds("table", "sinusoidal", "--width", 8, "--positions", text, "--json", *more)
        return json.loads(outcome.out)["positions"]

    def test_one(self):
        self.assertEqual(self.positions("8"), [8])

    def test_range(self):
        self.assertEqual(self.positions("0:8"), list(range(8)))

    def test_range_with_a_step(self):
        self.assertEqual(self.positions("0:4096:64"), list(range(0, 4096, 64)))
        self.assertEqual(self.positions("1:8:3"), [1, 4, 7])
        self.assertEqual(self.positions("0:10:100"), [0])

    def test_list(self):
        self.assertEqual(self.positions("0,1,5,131071"), [0, 1, 5, 131071])
        self.assertEqual(self.positions("5,5,0"), [5, 5, 0])

    def test_the_last_position(self):
        self.assertEqual(self.positions(str(LAST)), [LAST])
        self.assertEqual(self.positions(f"{LAST - 1}:{LAST + 1}"), [LAST - 1, LAST])

    def test_file(self):
        ids = self.write("ids.npy", npy("i64", [3], [7, 0, LAST]))
        self.assertEqual(self.positions("@" + ids), [7, 0, LAST])

    def test_file_with_axes(self):
        ids = self.write("ids.npy", npy("i64", [2, 3], [[0, 0, 1], [5, 6, 7]]))
        self.assertEqual(self.positions("@" + ids, "--axes", 2), [[0, 0, 1], [5, 6, 7]])

    def test_grid_is_its_points_row_by_row(self):
        outcome = self.succeeds("table", "sinusoidal", "--width", 12, "--axes", 3, "--grid", "1,2,3", "--json")
        expected = [[0] * 6, [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]]
        self.assertEqual(json.loads(outcome.out)["positions"], expected)

    def no(self, text, says, code=2):
        self.refused("table", "sinusoidal", "--width", 4, "--positions", text, says=says, code=code)

    def test_outside(self):
        self.no(str(2**53), says="9007199254740992 is not a position")
        self.no("9" * 40, says="is not a position")
        self.no(str(-2**53), says="more than 53 bits")
        self.no(f"0:{2**53 + 1}", says="is not a position")

    def test_negative_and_fractional(self):
        for text in ("-1", "0,-1", "1.5", "-3:4"):
            self.succeeds("table", "sinusoidal", "--width", 4, "--positions", text)
        self.no("1.7.2", says="'1.7.2' is not a position")

    def test_no_integer(self):
        for text in ("2^53", "1e3", "one", "0x10", "+1", " 1", "1,,2", "1,", "", "1 2"):
            self.no(text, says="--positions")

    def test_no_range(self):
        self.no("5:5", says="is empty")
        self.no("8:0", says="ends before it starts")
        self.no("0:8:0", says="at least 1")
        self.no("0:8:-1", says="at least 1")
        for text in ("0:", ":8", ":", "0:8:", "0:1:2:3"):
            self.no(text, says="from:to")

    def test_bad_files(self):
        self.no("@" + self.path("missing.npy"), says="missing.npy: No such file", code=3)
        self.no("@" + self.write("f.npy", npy("f32", [2], [0, 1])), says="positions must be int64")
        self.no("@" + self.write("d.npy", npy("i64", [1, 1, 1], [0])), says="[n] or [axes, n]")
        self.succeeds("table", "sinusoidal", "--positions", "@" + self.write("n.npy", npy("i64", [2], [0, -1])))
        self.no("@" + self.write("p.npy", npy("i64", [1], [2**53])), says="is not a position")
        self.no("@" + self.write("e.npy", npy("i64", [0], [])), says="no positions")
        self.no("@" + self.write("z.npy", npy("i64", [0, 4], [])), says="no positions")
        self.no("@" + self.write("t.npy", b"0,1,2\n"), says="t.npy: byte 0")
        self.no("@" + self.folder, says="is a directory")

    def test_axes_that_do_not_fit(self):
        self.refused("table", "sinusoidal", "--axes", 2, "--positions", "0:4", says="--grid")
        self.refused("table", "sinusoidal", "--grid", "2,2", says="axes")
        self.refused("table", "sinusoidal", "--axes", 2, "--grid", "2,2", "--positions", "0:4", says="cannot be combined")
        for text in ("0,2", "-1,2", "1.5,2", "2,", "4294967296,4294967296", "2000,2000,2000"):
            self.refused("table", "sinusoidal", "--axes", 2, "--grid", text, says="--grid")


if __name__ == "__main__":
    unittest.main()

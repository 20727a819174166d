"""How a scheme is named: flags, JSON, and learned tables."""

import json
import unittest

from program import ProgramTest, npy, parse_npy


class FromJson(ProgramTest):
    def test_is_the_same_as_flags(self):
        flags = self.succeeds("table", "sinusoidal", "--width", 4, "--layout", "sin-cos", "--positions", "0:4", "--json")
        text = '{"scheme":"sinusoidal","width":4,"layout":"sin-cos"}'
        self.assertEqual(self.succeeds("table", text, "--positions", "0:4", "--json").out, flags.out)
        # and in any place
        self.assertEqual(self.succeeds("table", "--positions", "0:4", "--json", text).out, flags.out)

    def test_what_is_printed_can_be_given_back(self):
        first = self.succeeds("table", "shift", "--width", 3, "--seed", 9, "--positions", "0:4", "--json").out
        scheme = json.dumps(json.loads(first)["scheme"])
        self.assertEqual(self.succeeds("table", scheme, "--positions", "0:4", "--json").out, first)

    def test_flags_change_it(self):
        outcome = self.succeeds("table", '{"scheme":"sinusoidal","width":4}', "--width", 6, "--positions", 0, "--json")
        self.assertEqual(json.loads(outcome.out)["shape"], [1, 6])

    def test_bad(self):
        for text, says in (
            ('{"scheme":"sinusodial"}', "sinusoidal"),
            ('{"scheme":"sinusoidal","widht":4}', "widht"),
            ('{"scheme":"sinusoidal","width":"4"}', "width"),
            ('{"scheme":"sinusoidal","width":4.5}', "width"),
            ('{"scheme":"sinusoidal","width":4,"width":8}', "width"),
            ('{"scheme"}', "scheme in JSON"),
            ("{}", "scheme"),
        ):
            self.refused("table", text, "--positions", "0:4", says=says)


class Learned(ProgramTest):
    def setUp(self):
        super().setUp()
        self.rows = [[10.0 * row + column for column in range(3)] for row in range(5)]
        self.table = self.write("wpe.npy", npy("f32", [5, 3], self.rows))

    def learned(self, *more):
        return ("table", "learned", "--table", self.table, *more)

    def test_rows_and_width_follow_from_the_file(self):
        document = json.loads(self.succeeds(*self.learned("--positions", "0,4", "--json")).out)
        self.assertEqual(document["values"], [self.rows[0], self.rows[4]])
        self.assertEqual((document["scheme"]["rows"], document["scheme"]["width"]), (5, 3))

    def test_offset(self):
        document = json.loads(self.succeeds(*self.learned("--offset", 2, "--positions", "0:3", "--json")).out)
        self.assertEqual(document["values"], self.rows[2:])

    def test_other_types(self):
        for dtype in ("f64", "f16"):
            table = self.write("w.npy", npy(dtype, [5, 3], self.rows))
            outcome = self.succeeds("table", "learned", "--table", table, "--positions", "1:3", "-o", "-")
            self.assertEqual(parse_npy(outcome.out)[2], self.rows[1] + self.rows[2])

    def test_past_the_last_row(self):
        self.refused(*self.learned("--positions", "0:6"), says="position 5")
        self.refused(*self.learned("--positions", "0:6", "-o", self.path("t.npy")), says="position 5")
        self.refused(*self.learned("--positions", "4", "--offset", 1), says="position 4")

    def test_contradictions(self):
        self.refused(*self.learned("--width", 4, "--positions", 0), says="has width 3, but --width says 4")
        self.refused(*self.learned("--rows", 6, "--positions", 0), says="has rows 5, but --rows says 6")
        self.succeeds(*self.learned("--rows", 5, "--width", 3, "--positions", 0))
        text = '{"scheme":"learned","rows":6}'
        self.refused("table", text, "--table", self.table, "--positions", 0, says="has rows 5")

    def test_no_table(self):
        self.refused("table", "learned", "--positions", 0, says="--table")

    def test_bad_tables(self):
        vector = self.write("v.npy", npy("f32", [3], [1, 2, 3]))
        self.refused("table", "learned", "--table", vector, "--positions", 0, says="[rows, width]")
        whole = self.write("i.npy", npy("i64", [1, 1], [1]))
        self.refused("table", "learned", "--table", whole, "--positions", 0, says="contains integers")
        self.refused("table", "learned", "--table", self.path("none.npy"), "--positions", 0, code=3, says="No such file")


if __name__ == "__main__":
    unittest.main()

"""posenc table of biases: [heads, queries, keys], in every format."""

import json
import struct
import unittest

from program import ProgramTest, npy, parse_npy

ALIBI = ("table", "alibi", "--heads", 2, "--queries", "1:3", "--keys", "0:4")
VALUES = [-0.0625, 0, -0.0625, -0.125, -0.125, -0.0625, 0, -0.0625]
VALUES += [value / 16 for value in VALUES]


class Written(ProgramTest):
    def test_npy(self):
        self.assertEqual(parse_npy(self.succeeds(*ALIBI, "-o", "-").out), ("f32", (2, 2, 4), VALUES))
        self.assertEqual(parse_npy(self.succeeds(*ALIBI, "--dtype", "f64", "-o", "-").out), ("f64", (2, 2, 4), VALUES))

    def test_a_file(self):
        outcome = self.succeeds(*ALIBI, "-o", self.path("b.npy"))
        self.assertTrue(outcome.err.endswith("b.npy: [2, 2, 4] f32\n"), outcome.err)
        self.assertEqual(parse_npy(self.read("b.npy")), ("f32", (2, 2, 4), VALUES))

    def test_safetensors(self):
        data = self.succeeds(*ALIBI, "-o", "-", "--format", "safetensors").out
        (length,) = struct.unpack("<Q", data[:8])
        head = json.loads(data[8 : 8 + length])
        self.assertEqual(head["table"]["shape"], [2, 2, 4])
        self.assertEqual(list(struct.unpack("<16f", data[8 + length :])), VALUES)

    def test_json(self):
        document = json.loads(self.succeeds(*ALIBI, "--json").out)
        self.assertEqual(list(document), ["scheme", "queries", "keys", "shape", "dtype", "values"])
        self.assertEqual((document["queries"], document["keys"]), ([1, 2], [0, 1, 2, 3]))
        self.assertEqual(document["shape"], [2, 2, 4])
        flat = [value for head in document["values"] for row in head for value in row]
        self.assertEqual(flat, VALUES)
        self.assertEqual(document["scheme"]["scheme"], "alibi")

    def test_csv(self):
        lines = self.succeeds(*ALIBI, "-o", "-", "--format", "csv").text.splitlines()
        self.assertEqual(lines[0], "head,query,0,1,2,3")
        self.assertEqual(lines[1], "0,1,-0.0625,0,-0.0625,-0.125")
        self.assertEqual(len(lines), 5)
        self.assertEqual([line.split(",")[:2] for line in lines[1:]], [["0", "1"], ["0", "2"], ["1", "1"], ["1", "2"]])

    def test_text_has_a_grid_for_each_head(self):
        lines = self.succeeds(*ALIBI).text.splitlines()
        self.assertEqual(lines[0], "head 0")
        self.assertEqual(lines[1].split(), ["query", "0", "1", "2", "3"])
        self.assertEqual(lines[2].split(), ["1", "-0.062", "0.000", "-0.062", "-0.125"])
        self.assertIn("head 1", lines)

    def test_many_heads_leave_out_the_middle(self):
        text = self.succeeds("table", "alibi", "--heads", 40, "--queries", "0:2").text
        self.assertEqual([line for line in text.splitlines() if line.startswith(("head", "…"))],
                         ["head 0", "head 1", "head 2", "head 3", "…", "head 38", "head 39"])

    def test_keys_are_the_queries_where_not_given(self):
        self.assertEqual(parse_npy(self.succeeds("table", "alibi", "--queries", "0:5", "-o", "-").out)[1], (8, 5, 5))

    def test_pieces_are_the_whole(self):
        whole = parse_npy(self.succeeds("table", "alibi", "--heads", 1, "--queries", "0:3", "--keys", "0:300000",
                                        "-o", "-").out)[2]
        self.assertEqual(whole[600000:600004], [-0.0078125, -0.00390625, 0, -0.00390625])


class Schemes(ProgramTest):
    def test_t5_reads_a_table(self):
        table = [[10 * bucket + head for head in range(2)] for bucket in range(8)]
        path = self.write("t.npy", npy("f32", (8, 2), table))
        values = parse_npy(self.succeeds("table", "t5", "--table", path, "--max-distance", 20, "--queries", 5, "--keys",
                                         "4:8", "-o", "-").out)
        self.assertEqual(values, ("f32", (2, 1, 4), [10, 0, 50, 60, 11, 1, 51, 61]))
        causal = self.succeeds("table", "t5", "--table", path, "--bidirectional", "false", "--queries", 5, "--keys",
                               "4:8", "-o", "-")
        self.assertEqual(parse_npy(causal.out)[2][:4], [10, 0, 0, 0])
        self.refused("table", "t5", "--table", path, "--heads", 3, "--queries", 0, says="has heads 2, but --heads says 3")

    def test_swin_takes_a_grid(self):
        path = self.write("t.npy", npy("f32", (9, 1), list(range(9))))
        outcome = self.succeeds("table", "swin", "--window", "2,2", "--table", path, "--grid", "2,2", "-o", "-")
        self.assertEqual(parse_npy(outcome.out), ("f32", (1, 4, 4), [4, 3, 1, 0, 5, 4, 2, 1, 7, 6, 4, 3, 8, 7, 5, 4]))

    def test_lengths_follow_from_the_positions(self):
        for scheme in ("kerple", "sandwich"):
            outcome = self.succeeds("table", scheme, "--queries", "1000000000:1000000003", "--json")
            self.assertEqual(json.loads(outcome.out)["queries"][0], 1000000000)

    def test_flags_of_lists(self):
        outcome = self.succeeds("table", "kerple", "--kernel", "power", "--amplitudes", "1,0.5", "--rates", "1,2",
                                "--queries", "0", "--keys", "0:4", "-o", "-")
        self.assertEqual(parse_npy(outcome.out)[2], [0, -1, -2, -3, 0, -0.5, -2, -4.5])


class Refused(ProgramTest):
    def test_what_is_wrong(self):
        for arguments, says in (
            (("alibi", "--positions", "0:4"), "alibi is a bias and takes --queries and --keys, not --positions"),
            (("alibi",), "alibi: the queries are missing, e.g. --queries 0:8"),
            (("sinusoidal", "--queries", "0:4"), "sinusoidal: takes --positions; only biases take --queries and --keys"),
            (("alibi", "--queries", "4:1"), "--queries: 4:1 ends before it starts"),
            (("alibi", "--queries", "0:4", "--keys", "x"), "--keys: "),
            (("alibi", "--heads", 0, "--queries", "0:4"), "alibi: heads must be between 1 and 65536 but is 0"),
            (("alibi", "--round-bf16", "maybe", "--queries", "0:4"), "--round-bf16: 'maybe' is not true or false"),
            (("t5", "--queries", "0:4"), "t5: the trained table is missing (--table FILE.npy)"),
            (("shaw", "--queries", "0:4"), "shaw has no table: its vectors multiply q and k inside attention"),
            (("fire", "--queries", "0:4"), "fire: the trained network is missing"),
            (("kerple", "--rates", "nan", "--queries", "0:4"), "--rates: "),
            (("alibi", "--grid", "2,2"), "alibi: needs positions with 1 axes, got 2"),
            (("alibi", "--queries", "0:1000000", "-o", "b.npy"), "needs 29.1 TiB; limit is 64 GiB (--max-bytes)"),
        ):
            self.refused("table", *arguments, says=says)

    def test_tokens_are_not_scores(self):
        path = self.write("x.npy", npy("f32", (2, 4), [0] * 8))
        self.refused("apply", "alibi", path, "-o", self.path("y.npy"),
                     says="alibi: adds to the scores of attention, not to tokens (posenc attend alibi --q … applies it)")


if __name__ == "__main__":
    unittest.main()

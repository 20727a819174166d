"""Names that people type: those of Hugging Face and of the papers, paths by position, standard input, near misses."""

import json
import random
import unittest

from program import ProgramTest, npy, run


class Names(ProgramTest):
    def vectors(self, name="x.npy"):
        draw = random.Random(1)
        return self.write(name, npy("f32", (8, 32), [draw.gauss(0, 1) for _ in range(8 * 32)]))

    def with_input(self, path, *arguments):
        with open(path, "rb") as file:
            return run(*arguments, stdin=file)

    def test_schemes_in_any_case(self):
        expected = self.succeeds("table", "rope", "--dims", "4", "--positions", "0:3").out
        for name in ("RoPE", "ROPE", "rotary", "Rotary"):
            self.assertEqual(self.succeeds("table", name, "--dims", "4", "--positions", "0:3").out, expected)
        self.assertEqual(self.succeeds("table", "--positions", "0:3", "RoPE", "--dims", "4").out, expected)
        self.succeeds("table", "ALiBi", "--heads", "2", "--queries", "0:3", "--keys", "0:3")

    def test_fields_by_other_names(self):
        expected = self.succeeds("table", "rope", "--dims", "4", "--base", "500", "--positions", "0:3").out
        for theta in ("--theta", "--rope-theta", "--rope_theta"):
            for dims in ("--head-dim", "--rotary-dim", "--head_dim"):
                self.assertEqual(self.succeeds("table", "rope", dims, "4", theta, "500", "--positions", "0:3").out,
                                 expected)
        expected = self.succeeds("table", "sinusoidal", "--width", "4", "--positions", "0:3").out
        self.assertEqual(self.succeeds("table", "sinusoidal", "--d-model", "4", "--positions", "0:3").out, expected)
        self.assertIn("also --theta, --rope-theta", self.succeeds("table", "rope", "--help").text)

    def test_scaling_as_config_has_it(self):
        ours = self.succeeds("table", "rope", "--dims", "8", "--positions", "0:3", "--scaling",
                             "yarn:factor=4,original_length=32768").out
        for scaling in ('{"rope_type":"yarn","factor":4,"original_max_position_embeddings":32768}',
                        "yarn:factor=4,original_max_position_embeddings=32768"):
            self.assertEqual(self.succeeds("table", "rope", "--dims", "8", "--positions", "0:3", "--scaling",
                                           scaling).out, ours)

    def test_near_misses(self):
        self.refused("table", "rpoe", says="did you mean 'rope'?")
        outcome = self.refused("table", "vit", says="unknown scheme 'vit'")
        self.assertNotIn("did you mean", outcome.err)
        self.refused("table", "rope", "--thetta", "4", says="did you mean --theta?")
        self.refused("table", "rope", "--widget", "4", says="--help lists the options")

    def test_paths_by_position(self):
        x = self.vectors()
        y = self.path("y.npy")
        self.succeeds("apply", "rope", x, "-o", y, "--axes", "sd", "--theta", "1000")
        self.assertIn("agrees", self.succeeds("check", "rope", x, y, "--theta", "1000").text)
        self.assertEqual(run("check", "rope", x, x, "--theta", "1000").code, 1)
        self.assertIn("exact match", self.succeeds("diagnose", x, y).text)
        self.assertIn("agrees", self.succeeds("check", "rope", "--before", x, y, "--theta", "1000").text)
        self.refused("diagnose", x, y, y, says="unexpected argument")
        self.refused("diagnose", x, says="--after is missing")
        self.refused("check", "rpoe", x, y, says="did you mean 'rope'?")
        config = self.write("config.json", json.dumps({"model_type": "llama", "head_dim": 64}).encode())
        self.assertIn("engines agree", self.succeeds("compare", config, "--length", "100").text)
        self.refused("compare", config, "--model", config, says="given twice")

    def test_standard_input(self):
        x = self.vectors()
        y, z = self.path("y.npy"), self.path("z.npy")
        self.succeeds("apply", "rope", x, "-o", y, "--axes", "sd")
        self.assertEqual(self.with_input(x, "apply", "rope", "-", "-o", z, "--axes", "sd", "--quiet").code, 0)
        with open(y, "rb") as one, open(z, "rb") as other:
            self.assertEqual(one.read(), other.read())
        self.assertIn("agrees", self.with_input(x, "check", "rope", "-", y).text)
        config = self.write("c.json", json.dumps({"model_type": "llama", "head_dim": 64}).encode())
        self.assertIn("scheme       rope", self.with_input(config, "inspect", "-").text)
        ids = self.write("ids.npy", npy("i64", (3,), [0, 1, 2]))
        self.assertEqual(self.with_input(ids, "table", "rope", "--dims", "4", "--positions", "@-").out,
                         self.succeeds("table", "rope", "--dims", "4", "--positions", "0,1,2").out)
        outcome = self.with_input(x, "check", "rope", "-", "-")
        self.assertEqual(outcome.code, 2)
        self.assertIn("standard input can be read only once", outcome.err)

    def test_answers_with_the_fix(self):
        self.refused("table", "rope", "--positions", "0-4", says="a range is written 0:4")
        self.refused("inspect", "meta-llama/Llama-3.1-8B", code=3, says="save the model's config.json")
        self.refused("inspect", "gpt2", code=3, says="gpt2 is a model_type")
        self.refused("inspect", self.path("none/config.json"), code=3, says="No such file")
        x = self.vectors()
        self.refused("apply", "alibi", x, "-o", self.path("y.npy"), says="posenc attend alibi")
        self.refused("apply", "rope", x, "-o", self.path("none/y.npy"), "--axes", "sd", code=3, says="there is no folder")

    def test_thousands(self):
        expected = self.succeeds("table", "rope", "--dims", "4", "--base", "500000", "--positions", "131072:131073").out
        for base, positions in (("500,000", "131,072:131,073"), ("500_000", "131_072:131_073"),
                                ("500'000", "131072:131'073")):
            self.assertEqual(self.succeeds("table", "rope", "--dims", "4", "--base", base, "--positions",
                                           positions).out, expected)
        self.refused("table", "rope", "--base", "50,00", says="is not a number")
        self.refused("table", "rope", "--base", ",500", says="is not a number")

    def test_no_name_of_a_function(self):
        self.refused("table", "sinusoidal", "--backend", "nobody", says="--backend: 'nobody' is unknown (one of cpu, reference")


if __name__ == "__main__":
    unittest.main()

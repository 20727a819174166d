"""posenc compare: where engines differ for a model, how much, and where that can be read."""

import json
import math
import unittest

from program import ProgramTest, run

LLAMA = {"model_type": "llama", "head_dim": 64, "num_hidden_layers": 2, "max_position_embeddings": 2048}
YARN = {**LLAMA, "model_type": "qwen3", "max_position_embeddings": 131072,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768,
                         "attention_factor": 1.0}}
DYNAMIC = {**LLAMA, "rope_scaling": {"type": "dynamic", "factor": 2.0}}


class Compare(ProgramTest):
    def config(self, config):
        return self.write("config.json", json.dumps(config).encode())

    def document(self, config, *more, code):
        outcome = run("compare", "--model", self.config(config), "--json", *more)
        self.assertEqual(outcome.code, code, outcome.err)
        self.assertEqual(outcome.err, "")
        return json.loads(outcome.out)

    def topic(self, document, name):
        (topic,) = [one for one in document["topics"] if one["topic"] == name]
        return topic, {one["engine"]: one for one in topic["engines"]}

    def test_engines_that_agree(self):
        document = self.document(LLAMA, code=0)
        self.assertTrue(document["agrees"])
        self.assertEqual(document["length"], 2048)
        _, engines = self.topic(document, "angle-precision")
        self.assertEqual(list(engines), ["hf", "vllm", "llama.cpp", "ctranslate2"])
        self.assertEqual((engines["hf"]["wave"], engines["ctranslate2"]["wave"]), (0.0, 0.0))
        text = self.succeeds("compare", "--model", self.folder).text
        self.assertIn("engines agree within bfloat16 rounding", text)

    def test_engines_that_differ(self):
        document = self.document(YARN, "--length", "1000", code=1)
        self.assertFalse(document["agrees"])
        topic, engines = self.topic(document, "yarn-magnitude")
        self.assertTrue(topic["differs"])
        self.assertEqual(topic["layers"], "0-1")
        self.assertAlmostEqual(engines["vllm"]["score"], (0.1 * math.log(4) + 1) ** 2 - 1, places=9)
        self.assertEqual((engines["ctranslate2"]["able"], engines["ctranslate2"]["score"]), (False, None))
        for one in engines.values():
            self.assertTrue(one["source"].startswith("https://github.com/"))

    def test_the_first_engine_is_the_measure(self):
        for order, zero in (("hf,vllm", "hf"), ("vllm,hf", "vllm")):
            _, engines = self.topic(self.document(DYNAMIC, "--as", order, "--length", "3000", code=1), "dynamic-ntk")
            self.assertEqual(list(engines), order.split(","))
            self.assertEqual(engines[zero]["angle"], 0)
        document = self.document(DYNAMIC, "--as", "hf,vllm", "--length", "2048", code=0)
        self.assertTrue(document["agrees"])

    def test_exit_code_prints_what_differs_alone(self):
        config = self.config({**YARN})
        outcome = run("compare", config, "--as", "hf,vllm", "--length", "1000", "--exit-code")
        self.assertEqual((outcome.code, outcome.err), (1, ""))
        (line,) = outcome.text.splitlines()
        self.assertTrue(line.startswith("yarn-magnitude in layers 0-1: hf: attention_factor"), line)
        self.assertIn("; vllm (score 0.296): 0.1 ln(factor) + 1", line)
        outcome = run("compare", self.config(LLAMA), "--as", "hf,vllm", "--exit-code")
        self.assertEqual((outcome.code, outcome.text), (0, ""))
        newer = self.config({"model_type": "qwen3_5_text", "num_hidden_layers": 4})
        outcome = run("compare", newer, "--as", "hf,hf4", "--exit-code")
        self.assertEqual((outcome.code, outcome.text), (1, "hf4 does not support this model\nnothing was compared\n"))
        self.refused("compare", config, "--exit-code", "--json", says="cannot be combined")

    def test_transformers_4_reads_other_keys(self):
        moved = {**LLAMA, "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}
        _, engines = self.topic(self.document(moved, "--as", "hf,hf4,sglang,vllm", code=1), "rope-parameters")
        self.assertEqual([name for name, one in engines.items() if one["differs"]], ["hf4"])
        self.assertEqual(engines["hf4"]["version"], "transformers 4.57.6 (753d6110)")
        self.document({**LLAMA, "rope_theta": 500000.0}, "--as", "hf,hf4,sglang", code=0)

    def test_tolerance(self):
        self.document(LLAMA, "--tolerance", "0", code=1)
        self.document(YARN, "--tolerance", "10", code=0)

    def test_text_fits(self):
        for config, code in ((LLAMA, 0), (YARN, 1), (DYNAMIC, 1)):
            outcome = run("compare", "--model", self.config(config), "--length", "100000")
            self.assertEqual(outcome.code, 1)
            for line in outcome.text.splitlines():
                self.assertEqual(line, line.rstrip())
                if "https://" not in line:
                    self.assertLessEqual(len(line), 100, line)
            self.assertIn("engines differ", outcome.text)

    def test_biases_have_no_angle(self):
        config = {"model_type": "bloom", "n_head": 6, "hidden_size": 48, "n_layer": 1}
        document = self.document(config, "--as", "hf,vllm,mlx", "--length", "2000", code=1)
        _, engines = self.topic(document, "alibi-slopes")
        self.assertIsNone(engines["mlx"]["angle"])
        self.assertEqual((engines["vllm"]["score"], engines["mlx"]["score"]), (0, 0))
        _, engines = self.topic(document, "alibi-position")
        self.assertGreater(engines["vllm"]["score"], 1)

    def test_since(self):
        text = self.succeeds("compare", "--since", "2026-01-01").text
        self.assertRegex(text, "2026-05-19  vllm  Dynamic NTK")
        self.assertIn("no known change since 2099", self.succeeds("compare", "--since", "2099").text)
        changes = json.loads(self.succeeds("compare", "--since", "2026", "--json").out)["changes"]
        self.assertEqual(changes[0]["date"], "2026-05-19")
        self.refused("compare", "--since", "soon", says="the day must look like 2026-05-19")

    def test_nothing_to_compare_is_no_agreement(self):
        mamba = {"model_type": "mamba", "hidden_size": 8}
        outcome = run("compare", "--model", self.config(mamba))
        self.assertEqual((outcome.code, outcome.err), (1, ""))
        self.assertIn("nothing to compare: these engines have no known differences", outcome.text)
        self.assertNotIn("agree", outcome.text)
        document = self.document(mamba, code=1)
        self.assertEqual((document["compared"], document["agrees"]), (0, None))
        # an engine that refuses the model is not compared with
        document = self.document(YARN, "--as", "hf,ctranslate2", code=1)
        self.assertEqual((document["compared"], document["agrees"]), (0, None))
        outcome = run("compare", "--model", self.config(YARN), "--as", "hf,ctranslate2")
        self.assertIn("nothing was compared", outcome.text)
        self.assertIn("ctranslate2 does not support this model", outcome.text)

    def test_refused(self):
        path = self.config(LLAMA)
        self.refused("compare", says="the model is missing")
        self.refused("compare", "--model", path, "--as", "hf,vlm", says="unknown engine 'vlm'")
        self.refused("compare", "--model", path, "--as", "hf", says="at least two engines")
        self.refused("compare", "--model", path, "--as", "hf,hf", says="named twice")
        self.refused("compare", "--model", path, "--as", ",", says="unknown engine ''")
        self.refused("compare", "--model", path, "--length", "0", says="--length: 0 must be at least 1")
        self.refused("compare", "--model", path, "--length", "1e6", says="--length")
        self.refused("compare", "--model", path, "--length", str(2**41), says="2^40")
        self.refused("compare", "--model", path, "--tolerance", "-1", says="--tolerance")
        self.refused("compare", "--model", path, "--tolerance", "nan", says="--tolerance")
        self.refused("compare", "--model", self.path("none"), code=3, says="No such file")
        self.refused("compare", path, path, says="unexpected argument")
        self.refused("compare", "--model", self.config({"model_type": "lama"}), says="did you mean 'llama'?")


if __name__ == "__main__":
    unittest.main()

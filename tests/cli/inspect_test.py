"""posenc inspect: what a model's files say of position."""

import json
import os
import struct
import unittest

from program import ProgramTest

LLAMA31 = {
    "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
    "max_position_embeddings": 131072, "rope_theta": 500000.0,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192},
}
GEMMA3 = {
    "model_type": "gemma3_text", "head_dim": 256, "num_hidden_layers": 6, "max_position_embeddings": 32768,
    "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "sliding_window": 512, "sliding_window_pattern": 6,
}


def gguf(**entries):
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries))
    for key, value in entries.items():
        name = key.replace("__", ".").encode()
        data += struct.pack("<Q", len(name)) + name
        if isinstance(value, str):
            data += struct.pack("<IQ", 8, len(value)) + value.encode()
        elif isinstance(value, float):
            data += struct.pack("<If", 6, value)
        else:
            data += struct.pack("<II", 4, value)
    return data


class Inspect(ProgramTest):
    def config(self, config, name="config.json"):
        return self.write(name, json.dumps(config).encode())

    def test_text_at_a_glance(self):
        text = self.succeeds("inspect", self.config(LLAMA31)).text
        for words in ("llama  trained on 8,192 positions, extended to 131,072", "layers 0-31",
                      "halves: features i and i + 64", "base         500,000",
                      "llama3, factor 8, low_freq_factor 1, high_freq_factor 4, original_length 8192",
                      "pairs exceed the trained length 8,192"):
            self.assertIn(words, text)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 100)
            self.assertEqual(line, line.rstrip())

    def test_json(self):
        path = self.config(LLAMA31)
        document = json.loads(self.succeeds("inspect", path, "--json").out)
        self.assertEqual(list(document)[:6],
                         ["source", "model_type", "layers", "parts", "trained_length", "usable_length"])
        self.assertEqual(document["source"], path)
        self.assertEqual((document["trained_length"], document["usable_length"]), (8192, 131072))
        (layers,) = document["layers"]
        self.assertEqual(list(layers)[:5], ["layers", "layer_type", "scheme", "frequencies", "softmax_factor"])
        self.assertEqual((layers["layers"], layers["layer_type"], layers["softmax_factor"]), ("0-31", None, 1.0))
        scheme = layers["scheme"]
        self.assertEqual((scheme["scheme"], scheme["dims"], scheme["base"], scheme["layout"], scheme["sign"],
                          scheme["first_dim"], scheme["magnitude"]), ("rope", 128, 500000.0, "halves", 1, 0, 1.0))
        self.assertEqual(scheme["scaling"]["type"], "llama3")
        self.assertEqual(len(layers["frequencies"]), 64)
        self.assertEqual(layers["frequencies"][0], 1.0)
        self.assertAlmostEqual(layers["frequencies"][63], 500000.0 ** (-126 / 128) / 8, delta=1e-12)

    def test_a_folder_and_layers_that_differ(self):
        self.config(GEMMA3)
        text = self.succeeds("inspect", self.folder).text
        self.assertIn("layers 0-4  sliding_attention", text)
        self.assertIn("layers 5  full_attention", text)

    def test_gguf(self):
        path = self.write("m.gguf", gguf(general__architecture="llama", llama__block_count=2,
                                         llama__rope__dimension_count=64, llama__rope__freq_base=10000.0))
        (layers,) = json.loads(self.succeeds("inspect", path, "--json").out)["layers"]
        self.assertEqual(layers["scheme"]["layout"], "interleaved")

    def test_a_scheme_that_is_named(self):
        path = self.config({"model_type": "levit"})
        text = self.succeeds("inspect", path).text
        self.assertRegex(text, "offset-bias, not computed\\n  formula  ")

    def test_schemes_that_are_no_rotation(self):
        bloom = self.config({"model_type": "bloom", "n_layer": 2, "n_head": 12, "hidden_size": 48})
        self.assertRegex(self.succeeds("inspect", bloom).text, "scheme +alibi, heads 12, max_bias 8, scale 1, round_bf16 false\n")
        t5 = self.config({"model_type": "t5", "num_layers": 1, "num_heads": 4})
        self.assertRegex(self.succeeds("inspect", t5).text, "scheme +t5, heads 4, buckets 32, max_distance 128, bidirectional true\n")

    def test_coordinates_of_an_image(self):
        text = self.succeeds("inspect", self.config({"model_type": "detr"})).text
        self.assertIn("coordinates  0 to 1 on 2 axes; 1 is a turn of the first wave", text)
        self.assertNotIn("do not rotate", text)
        (layers, *_) = json.loads(self.succeeds("inspect", self.config({"model_type": "detr"}), "--json").out)["layers"]
        self.assertEqual((layers["scheme"]["turns"], layers["frequencies"]), (True, []))

    def test_parts_windows_and_masks(self):
        path = self.config({"model_type": "gemma3"})
        text = self.succeeds("inspect", path).text
        for words in ("Part vision  siglip_vision_model", "window       4,096 keys", "mask         bidirectional",
                      "mask         causal", "scale        0.0625"):
            self.assertIn(words, text)
        document = json.loads(self.succeeds("inspect", path, "--json").out)
        (vision,) = document["parts"]
        self.assertEqual((vision["part"], vision["layers"][0]["causal"]), ("vision", False))
        self.assertEqual([one["window"] for one in document["layers"]], [4096, None])

    def test_an_engine(self):
        path = self.config({**LLAMA31, "rope_scaling": {"type": "dynamic", "factor": 2.0}})
        text = self.succeeds("inspect", path, "--engine", "vllm").text
        self.assertRegex(text, "In vllm\\n  - Dynamic NTK: which length")
        engine = json.loads(self.succeeds("inspect", path, "--engine", "vllm", "--json").out)["engine"]
        self.assertEqual((engine["engine"], engine["topics"][0]["topic"]), ("vllm", "dynamic-ntk"))
        self.assertIn("In mlx\n  - Dynamic NTK", self.succeeds("inspect", path, "--engine", "mlx").text)
        learned = self.config({"model_type": "gpt2"}, "learned.json")
        self.assertIn("no known difference", self.succeeds("inspect", learned, "--engine", "mlx").text)
        outcome = self.refused("inspect", path, "--engine", "vlm", says="unknown engine 'vlm'")
        self.assertNotIn("compare", outcome.err)

    def test_an_unknown_family_is_assumed_and_says_so(self):
        config = {"model_type": "frobnicator", "hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
                  "rope_theta": 50000.0, "max_position_embeddings": 2048}
        text = self.succeeds("inspect", self.config(config)).text
        self.assertIn("frobnicator  2,048 positions  (assumed: see below)", text)
        self.assertIn('Assumed\n  - model_type "frobnicator" is unknown', text)
        document = json.loads(self.succeeds("inspect", self.config(config), "--json").out)
        self.assertTrue(document["is_assumed"])
        self.assertEqual(document["layers"][0]["scheme"]["dims"], 64)
        known = json.loads(self.succeeds("inspect", self.config({**config, "model_type": "llama"}), "--json").out)
        self.assertFalse(known["is_assumed"])
        # nothing to go by
        for missing in ("rope_theta", "num_attention_heads", "hidden_size"):
            less = {key: value for key, value in config.items() if key != missing}
            self.refused("inspect", self.config(less), says='model_type "frobnicator" is unknown')
        for against in ({"alibi": True}, {"position_embedding_type": "absolute"}):
            self.refused("inspect", self.config({**config, **against}), says='model_type "frobnicator" is unknown')

    def test_a_folder_with_weights(self):
        self.config({"model_type": "gpt2", "n_layer": 1})
        header = json.dumps({"transformer.wpe.weight": {"dtype": "F32", "shape": [4, 8], "data_offsets": [0, 128]},
                             "transformer.wte.weight": {"dtype": "F32", "shape": [1], "data_offsets": [128, 132]}})
        header = header.encode().ljust(-(-len(header) // 8) * 8)
        self.write("model-1.safetensors", len(header).to_bytes(8, "little") + header + bytes(132))
        self.write("model.safetensors.index.json", json.dumps({"weight_map": {
            "transformer.wpe.weight": "model-1.safetensors", "transformer.wte.weight": "model-1.safetensors"}}).encode())
        document = json.loads(self.succeeds("inspect", self.folder, "--json").out)
        self.assertEqual(document["tables"], [{"name": "transformer.wpe.weight", "file": "model-1.safetensors",
                                               "shape": [4, 8]}])
        self.assertIn("transformer.wpe.weight is 4 x 8 but the config says 1024 x 768", document["warnings"])
        self.assertIn("Tables\n  - transformer.wpe.weight, 4 x 8 (model-1.safetensors)",
                      self.succeeds("inspect", self.folder).text)
        self.write("model.safetensors.index.json", b"{}")
        self.refused("inspect", self.folder, says="weight_map is missing")

    def test_warnings_and_assumptions(self):
        path = self.config({**LLAMA31, "rope_scaling": None, "rope_theta": None, "model_type": "qwen3",
                            "rope_parameters": {"rope_type": "default", "type": "default"}})
        text = self.succeeds("inspect", path).text
        self.assertIn("Warnings\n  - rope_parameters: type is the older name of rope_type", text)
        self.assertRegex(text, r"Assumed\n(  - .*\n)*  - rope_theta = 10000 \(the family's default; not given\)")

    def test_a_name_instead_of_a_path(self):
        for name, advice in (
                ("vit", """vit is a model_type; to see its defaults: echo '{"model_type":"vit"}' | posenc inspect -"""),
                ("meta-llama/Llama-3-8B", "models are not downloaded; save the model's config.json and give its path"),
                ("no-such-folder/", "give a config.json, a folder that contains one, or a .gguf file"),
                ("no-such-folder", "give a config.json, a folder that contains one, or a .gguf file")):
            self.refused("inspect", name, code=3, says=f"{name}: No such file or directory; {advice}")
        self.write("b.gguf", b"")
        self.write("a.gguf", b"")
        self.refused("inspect", self.folder, code=3, says="the folder has a.gguf: give that file")

    def test_refused(self):
        self.refused("inspect", says="the model is missing")
        self.refused("inspect", self.path("none.json"), code=3, says="No such file")
        self.refused("inspect", self.folder, code=3, says="config.json: No such file")
        self.refused("inspect", self.folder, code=3, says="give a config.json, a folder that contains one, or a .gguf file")
        self.refused("inspect", self.config({"model_type": "lama"}),
                     says="config.json: model_type \"lama\" is unknown (did you mean 'llama'?)")
        self.refused("inspect", self.config({"model_type": "llama", "head_dim": 64, "rope_scaling": {"type": "x"}}),
                     says="config.json: rope_scaling: type \"x\" is unknown")
        self.refused("inspect", self.write("bad.json", b"{"), says="bad.json: line 1")
        self.refused("inspect", self.write("empty.json", b""), says="empty.json: line 1, column 1: the text is empty")
        self.refused("inspect", self.write("bad.gguf", b"GGUX"), says="bad.gguf: byte 0")
        self.refused("inspect", self.config(LLAMA31), "more", says="unexpected argument 'more'")
        os.mkfifo(self.path("pipe"))
        self.refused("inspect", self.path("pipe"), says="is not a regular file")


if __name__ == "__main__":
    unittest.main()

"""posenc apply --model: what transformers makes of queries and keys for sixteen rotary models, from their configs alone.

The goldens were made by transformers 5.17 in float32 (tests/oracle/data/goldens). With --numerics hf-f32 the program
repeats its arithmetic, but for two things: torch takes powers in float32, which may leave a frequency 1 ulp off, and its
sines and cosines are 1 ulp off here and there. So an element may differ by

    3e-5 + position * (1 ulp of the pair's frequency) * magnitude * (length of the pair before)

where the first term holds all rounding (vectors are of size 1) and the second is what that angle makes of it.
"""

import json
import math
import os
import struct
import unittest

from program import ProgramTest, npy, parse_npy, run

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle", "data")


def ulp32(value):
    return math.ldexp(1.0, math.frexp(value)[1] - 24)


def load(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        return json.load(file)


def golden_numbers():
    with open(os.path.join(DATA, "goldens", "rope.npy"), "rb") as file:
        return parse_npy(file.read())[2]


class GoldenModels(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.goldens = {one["name"]: one for one in load("goldens/rope.json")}
        cls.numbers = golden_numbers()

    def tensor(self, golden, name):
        entry = golden["tensors"][name]
        begin = entry["offset"]
        return entry["shape"], self.numbers[begin:begin + math.prod(entry["shape"])]

    def positions_of(self, golden):
        """(flag, positions by axis)."""
        if golden["positions"] is not None:
            return ",".join(map(str, golden["positions"])), [golden["positions"]]
        entry = golden["tensors"]["positions_thw"]
        axes, count = entry["shape"]
        ids = [entry["values"][axis * count:(axis + 1) * count] for axis in range(axes)]
        return "@" + self.write("ids.npy", npy("i64", [axes, count], entry["values"])), ids

    def run_on(self, model, golden, name, layer_type, *more, before=None):
        shape, values = self.tensor(golden, before or name)
        source = self.write("in.npy", npy("f32", shape, values))
        flag, _ = self.positions_of(golden)
        axes = "bhsd" if golden["axes"] == "batch,heads,seq,dim" else "bshd"
        length = ["--length", golden["length"]] if golden["length"] else []
        layers = ["--layer-type", layer_type] if layer_type else []
        self.succeeds("apply", "--model", model, source, "-o", self.path("out.npy"), "--force", "--quiet",
                      "--positions", flag, "--axes", axes, "--numerics", "hf-f32", *length, *layers, *more)
        return parse_npy(self.read("out.npy"))[2]

    def worst(self, golden, frequencies, name, got):
        """The largest difference, and the largest in units of what is allowed."""
        shape, before = self.tensor(golden, name)
        _, want = self.tensor(golden, name + "_rot")
        self.assertEqual(len(got), len(want))
        features = shape[3]
        inner = 1 if golden["axes"] == "batch,heads,seq,dim" else shape[2]
        tokens = shape[2] if inner == 1 else shape[1]
        scheme = golden["scheme"]
        dims, halves = scheme["dims"], scheme.get("layout", "halves") == "halves"
        sections = scheme.get("sections") or [dims // 2]
        axis_of = [axis for axis, size in enumerate(sections) for _ in range(size)]
        _, ids = self.positions_of(golden)
        largest, share = 0.0, 0.0
        for i, (one, other) in enumerate(zip(got, want)):
            difference = abs(one - other)
            largest = max(largest, difference)
            feature, token = i % features, i // features // inner % tokens
            if feature >= dims:
                self.assertEqual(one, other)
                continue
            pair = feature % (dims // 2) if halves else feature // 2
            partner = i - feature + ((feature + dims // 2) % dims if halves else feature ^ 1)
            position = ids[axis_of[pair]][token]
            size = golden["magnitude"] * math.hypot(before[i], before[partner])
            room = 3e-5 + position * ulp32(frequencies[pair]) * size
            share = max(share, difference / room)
        return largest, share

    def test_every_config_in_new_keys_and_old(self):
        cases = load("configs/goldens.json")
        self.assertEqual(len(cases), 16)
        for case in cases:
            golden = self.goldens[case["name"]]
            for form in ("config", "before"):
                with self.subTest(name=case["name"], form=form):
                    model = self.write("config.json", json.dumps(case[form]).encode())
                    layers = json.loads(self.succeeds("inspect", model, "--json").out)["layers"]
                    (chosen,) = [one for one in layers if one["layer_type"] == case["layer_type"]]
                    frequencies = chosen["frequencies"]
                    if "inv_freq" in golden["tensors"]:
                        frequencies = self.tensor(golden, "inv_freq")[1]
                    for name in ("q", "k", "x"):
                        if name not in golden["tensors"]:
                            continue
                        got = self.run_on(model, golden, name, case["layer_type"])
                        largest, share = self.worst(golden, frequencies, name, got)
                        self.assertLessEqual(share, 1.0, f"{name}: differs by {largest}")

    def test_backward_carries_it_back(self):
        # the adjoint of a rotation with magnitude s, after it, is s squared times what was there
        for name in ("llama31-llama3", "yarn-qwen25", "gptj-interleaved-64"):
            golden = self.goldens[name]
            (case,) = [one for one in load("configs/goldens.json") if one["name"] == name]
            model = self.write("config.json", json.dumps(case["config"]).encode())
            first = "q" if "q" in golden["tensors"] else "x"
            got = self.run_on(model, golden, first, None, "--backward", before=first + "_rot")
            shape, before = self.tensor(golden, first)
            _, ids = self.positions_of(golden)
            for i, (one, other) in enumerate(zip(got, before)):
                square = golden["magnitude"] ** 2 if i % shape[3] < golden["scheme"]["dims"] else 1.0
                self.assertLessEqual(abs(one - square * other), 3e-5 + max(ids[0]) * 1.3e-7, (name, i))

    def test_check_agrees_with_every_one(self):
        agreed = 0
        for case in load("configs/goldens.json"):
            golden = self.goldens[case["name"]]
            model = self.write("config.json", json.dumps(case["config"]).encode())
            name = "q" if "q" in golden["tensors"] else "x"
            files = {}
            for which in (name, name + "_rot"):
                shape, values = self.tensor(golden, which)
                files[which] = self.write(which + ".npy", npy("f32", shape, values))
            flag, _ = self.positions_of(golden)
            axes = "bhsd" if golden["axes"] == "batch,heads,seq,dim" else "bshd"
            layers = ["--layer-type", case["layer_type"]] if case["layer_type"] else []
            outcome = run("check", "--model", model, "--before", files[name], "--after", files[name + "_rot"],
                          "--positions", flag, "--axes", axes, *layers, "--json")
            document = json.loads(outcome.out)
            # within the trained length, dynamic scaling does nothing
            within = case["name"] == "dynamic-2-within"
            self.assertEqual((outcome.code, document["verdict"]), (1, "inconclusive") if within else (0, "agrees"),
                             f"{case['name']}: {document['reason']}")
            agreed += 0 if within else 1
        self.assertEqual(agreed, 15)


GEMMA3 = {
    "model_type": "gemma3_text", "head_dim": 8, "num_hidden_layers": 6, "max_position_embeddings": 32768,
    "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "sliding_window": 512, "sliding_window_pattern": 6,
}
LLAMA = {"model_type": "llama", "head_dim": 8, "num_hidden_layers": 2, "rope_theta": 10000.0}


class ModelsElsewhere(ProgramTest):
    def setUp(self):
        super().setUp()
        self.x = [math.sin(i) for i in range(4 * 8)]
        self.file = self.write("x.npy", npy("f32", [4, 8], self.x))

    def config(self, config, name="config.json"):
        return self.write(name, json.dumps(config).encode())

    def out(self, *arguments):
        self.succeeds(*arguments, "-o", self.path("y.npy"), "--force", "--quiet")
        return parse_npy(self.read("y.npy"))[2]

    def test_layers_that_differ(self):
        model = self.config(GEMMA3)
        refused = self.refused("apply", "--model", model, self.file, "-o", self.path("y.npy"),
                               says="choose with --layer-type")
        self.assertIn("sliding_attention (layers 0-4), full_attention (layers 5)", refused.err)
        self.refused("apply", "--model", model, self.file, "-o", self.path("y.npy"), "--layer-type", "full",
                     says="'full' is not one of sliding_attention")
        local = self.out("apply", "--model", model, self.file, "--layer-type", "sliding_attention")
        self.assertEqual(local, self.out("apply", "rope", self.file, "--base", "10000"))
        self.assertEqual(local, self.out("apply", "--model", self.folder, self.file, "--layer-type", "3"))
        wide = self.out("apply", "--model", model, self.file, "--layer-type", "full_attention")
        self.assertEqual(wide, self.out("apply", "rope", self.file, "--base", "1000000"))

    def test_gguf(self):
        def text(value):
            return struct.pack("<Q", len(value)) + value.encode()
        entries = [text("general.architecture") + struct.pack("<I", 8) + text("llama"),
                   text("llama.rope.dimension_count") + struct.pack("<II", 4, 8),
                   text("llama.rope.freq_base") + struct.pack("<If", 6, 500000.0)]
        model = self.write("m.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(entries))
        want = self.out("apply", "rope", self.file, "--base", "500000", "--layout", "interleaved")
        self.assertEqual(self.out("apply", "--model", model, self.file), want)

    def test_lengths_must_be_said_where_they_matter(self):
        model = self.config({**LLAMA, "max_position_embeddings": 4,
                             "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}})
        self.refused("apply", "--model", model, self.file, "-o", self.path("y.npy"), says="--length")
        far = self.out("apply", "--model", model, self.file, "--length", "32")
        self.assertEqual(far, self.out("apply", "rope", self.file, "--length", "32", "--scaling",
                                       "dynamic:factor=2,original_length=4"))
        self.assertNotEqual(far, self.out("apply", "--model", model, self.file, "--length", "4"))

    def test_added_vectors_begin_where_the_model_begins(self):
        model = self.config({"model_type": "m2m_100", "d_model": 8, "encoder_layers": 1, "max_position_embeddings": 64})
        want = self.out("apply", "sinusoidal", self.file, "--positions", "2:6", "--layout", "sin-cos",
                        "--spacing", "inclusive")
        self.assertEqual(self.out("apply", "--model", model, self.file, "--layer-type", "encoder"), want)

    def test_a_learned_table_is_asked_for(self):
        model = self.config({"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_positions": 16})
        self.refused("apply", "--model", model, self.file, "-o", self.path("y.npy"), says="--table")
        table = self.write("wpe.npy", npy("f32", [16, 8], range(128)))
        got = self.out("apply", "--model", model, self.file, "--table", table)
        self.assertEqual(got, self.out("apply", "learned", self.file, "--table", table))
        short = self.write("short.npy", npy("f32", [9, 8], range(72)))
        self.refused("apply", "--model", model, self.file, "-o", self.path("z.npy"), "--table", short,
                     says="has rows 9, but " + model + " says 16")

    def test_notes_say_what_else_a_model_does(self):
        model = self.config({**LLAMA, "model_type": "llama4_text", "num_hidden_layers": 4})
        told = self.succeeds("apply", "--model", model, self.file, "-o", self.path("y.npy"), "--layer-type",
                             "full_attention")
        self.assertIn("queries of these layers are multiplied by 1 + 0.1 ln(", told.err)
        self.assertEqual(parse_npy(self.read("y.npy"))[2], [struct.unpack("f", struct.pack("f", v))[0] for v in self.x])

    def test_refused(self):
        model = self.config(LLAMA)
        y = self.path("y.npy")
        self.refused("apply", "rope", "--model", model, self.file, "-o", y, says="cannot be combined")
        self.refused("apply", "--model", self.path("no.json"), self.file, "-o", y, code=3, says="No such file")
        self.refused("apply", "--model", model, says="the input is missing")
        self.refused("apply", "--model", model, self.file, says="the output is missing")
        narrow = self.write("n.npy", npy("f32", [4, 6], self.x[:24]))
        self.refused("apply", "--model", model, narrow, "-o", y, says="a head has 6 features, which cannot hold 8")
        bloom = self.config({"model_type": "bloom", "n_head": 2, "hidden_size": 16}, "bloom.json")
        self.refused("apply", "--model", bloom, self.file, "-o", y, "--quiet", says="adds to the scores of attention")
        self.refused("attend", "--model", bloom, "--q", self.file, "--k", self.file, "--v", self.file, "-o", y, "--quiet",
                     says="has heads 1, but " + bloom + " says 2")


class AttendModels(ProgramTest):
    def setUp(self):
        super().setUp()
        self.files = []
        for i, name in enumerate("qkv"):
            values = [math.sin(1.7 * j + i) for j in range(2 * 5 * 8)]
            self.files += ["--" + name, self.write(name + ".npy", npy("f32", [2, 5, 8], values))]

    def out(self, *arguments):
        self.succeeds("attend", *arguments, *self.files, "-o", self.path("y.npy"), "--force", "--quiet", "--causal")
        return parse_npy(self.read("y.npy"))[2]

    def config(self, config):
        return self.write("config.json", json.dumps(config).encode())

    def test_rope(self):
        self.assertEqual(self.out("--model", self.config(LLAMA)), self.out("rope", "--base", "10000"))

    def test_length_decides(self):
        model = self.config({**LLAMA, "max_position_embeddings": 8,
                             "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}})
        scheme = ["rope", "--scaling", "dynamic:factor=2,original_length=8"]
        self.assertEqual(self.out("--model", model), self.out(*scheme))
        self.assertEqual(self.out("--model", model, "--length", "64"), self.out(*scheme, "--length", "64"))
        self.assertNotEqual(self.out("--model", model, "--length", "64"), self.out(*scheme))

    def test_the_softmax_factor_is_the_familys(self):
        # both have YaRN's second factor; DeepSeek alone multiplies the softmax's scale by it
        yarn = {"rope_type": "yarn", "factor": 40.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                "original_max_position_embeddings": 64}
        factor = (0.1 * math.log(40.0) + 1) ** 2
        scheme = ["rope", "--scaling", "yarn:factor=40,original_length=64"]
        llama = self.out("--model", self.config({**LLAMA, "rope_scaling": yarn}))
        unit = ["rope", "--scaling", "yarn:factor=40,original_length=64,attention_factor=1"]
        self.assertEqual(llama, self.out(*unit))
        deepseek = self.config({"model_type": "deepseek_v2", "qk_rope_head_dim": 8, "qk_nope_head_dim": 0,
                                "num_hidden_layers": 1, "rope_scaling": yarn, "rope_theta": 10000.0})
        want = self.out(*unit, "--layout", "interleaved", "--scale", repr(factor / math.sqrt(8)))
        for one, other in zip(self.out("--model", deepseek), want):
            self.assertAlmostEqual(one, other, places=6)

    def test_t5_does_not_divide_by_the_root(self):
        model = self.config({"model_type": "t5", "num_heads": 2, "d_model": 16, "num_layers": 1})
        table = self.write("t5.npy", npy("f32", [32, 2], [0.1 * (i % 7) for i in range(64)]))
        self.assertEqual(self.out("--model", model, "--layer-type", "encoder", "--table", table),
                         self.out("t5", "--table", table, "--scale", "1"))


if __name__ == "__main__":
    unittest.main()

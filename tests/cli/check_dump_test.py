"""posenc check --dump: every layer that a hook in a running model wrote."""

import json
import math
import random
import unittest

from program import ProgramTest, as_f32, npy, run, safetensors

TOKENS, DIMS, HEADS, KEY_HEADS = 16, 16, 4, 2
CONFIG = {"model_type": "llama", "hidden_size": HEADS * DIMS, "num_attention_heads": HEADS,
          "num_key_value_heads": KEY_HEADS, "num_hidden_layers": 4, "max_position_embeddings": 4096, "rope_theta": 10000.0}


def rotated(x, positions, base=10000.0, interleaved=False, to_halves=False):
    """x[head][token][feature], each pair turned by its angle, in plain Python."""
    half, result = DIMS // 2, []
    for head in x:
        rows = []
        for row, position in zip(head, positions):
            out = list(row)
            for i in range(half):
                a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
                angle = position * base ** (-2 * i / DIMS)
                c, s = math.cos(angle), math.sin(angle)
                to_a, to_b = (i, i + half) if to_halves else (a, b)
                out[to_a], out[to_b] = as_f32(row[a] * c - row[b] * s), as_f32(row[b] * c + row[a] * s)
            rows.append(out)
        result.append(rows)
    return result


class Dump(ProgramTest):
    def setUp(self):
        super().setUp()
        seeded = random.Random(5)
        self.vectors = {kind: [[[as_f32(seeded.gauss(0, 1)) for _ in range(DIMS)] for _ in range(TOKENS)]
                               for _ in range(heads)] for kind, heads in (("q", HEADS), ("k", KEY_HEADS))}
        self.config = self.write("config.json", json.dumps(CONFIG).encode())
        self.positions = list(range(TOKENS))

    def shape(self, kind):
        return [len(self.vectors[kind]), TOKENS, DIMS]

    def tensors(self, layer, **change):
        """The four tensors of a layer; change: what this layer does with each kind."""
        found = {}
        for kind, x in self.vectors.items():
            found[f"layers.{layer}.{kind}.before"] = (self.shape(kind), x)
            found[f"layers.{layer}.{kind}.after"] = (self.shape(kind), rotated(x, self.positions, **change.get(kind, {})))
        return found

    def file(self, tensors, name="dump.safetensors", **more):
        flat = {tensor: ("F32", shape, [v for h in values for row in h for v in row])
                for tensor, (shape, values) in tensors.items()}
        return self.write(name, safetensors({**flat, **more}))

    def check(self, dump, *flags, code, config=None):
        outcome = run("check", "--model", config or self.config, "--dump", dump, *flags)
        self.assertEqual(outcome.code, code, outcome.err + outcome.text)
        return outcome

    def test_every_layer_agrees(self):
        tensors = {}
        for layer in range(4):
            tensors |= self.tensors(layer)
        text = self.check(self.file(tensors), code=0).text
        self.assertTrue(text.startswith(f"4 of 4 layers rotate as {self.config} says\n"), text)
        self.assertIn("layers 0-3\n  queries agree\n  keys agree\n  largest difference", text)
        self.assertNotIn("not in the dump", text)

    def test_names_the_layers_that_differ(self):
        tensors = self.tensors(0) | self.tensors(1, k={"base": 500000.0}) | self.tensors(2) | self.tensors(
            3, k={"base": 500000.0})
        outcome = self.check(self.file(tensors), code=1)
        self.assertTrue(outcome.text.startswith("2 of 4 layers rotate"), outcome.text)
        self.assertIn("layers 0,2\n  queries agree\n  keys agree\n", outcome.text)
        self.assertIn("layers 1,3\n  queries agree\n  keys differ\n  - base: expected 10000, got 500000", outcome.text)
        document = json.loads(self.check(self.file(tensors), "--json", code=1).text)
        self.assertEqual([(one["layer"], one["tensor"]) for one in document["layers"] if not one["agrees"]],
                         [(1, "k"), (3, "k")])
        self.assertFalse(document["agrees"])
        self.assertEqual(document["layers"][3]["check"]["verdict"], "differs")

    def test_files_in_a_folder(self):
        for name, (shape, values) in self.tensors(2).items():
            self.write(f"{name}.npy", npy("f32", shape, values))
        self.write("notes.npy", npy("f32", [1], [0.0]))
        outcome = self.check(self.folder, code=0)
        self.assertIn("layer 2\n", outcome.text)
        self.assertIn("not in the dump: layers 0-1,3", outcome.text)
        self.assertIn("notes.npy is not read", outcome.err)

    def test_positions_of_the_dump(self):
        self.positions = [5000 + 3 * i for i in range(TOKENS)]
        tensors = self.tensors(0)
        self.check(self.file(tensors), code=1)
        with_positions = self.file(tensors, positions=("I64", [TOKENS], self.positions))
        self.check(with_positions, code=0)
        self.assertIn("Positions are off by", self.check(with_positions, "--positions", f"0:{TOKENS}", code=1).text)

    def test_inconclusive_is_no_agreement(self):
        self.positions = [0] * TOKENS
        text = self.check(self.file(self.tensors(0)), "--positions", ",".join("0" * TOKENS), code=1).text
        self.assertTrue(text.startswith("0 of 1 layer rotate"), text)
        self.assertIn("queries inconclusive: these 16 tokens cannot tell rope from none", text)

    # DeepSeek's code writes interleaved pairs to halves; engines that rotate in place do the same to q and k
    def test_permutations_must_be_alike(self):
        config = self.write("other.json", json.dumps({
            "model_type": "deepseek_v3", "hidden_size": 64, "num_attention_heads": HEADS, "num_key_value_heads": HEADS,
            "num_hidden_layers": 1, "qk_nope_head_dim": 8, "qk_rope_head_dim": DIMS, "v_head_dim": 8, "kv_lora_rank": 8,
            "q_lora_rank": None, "rope_theta": 10000.0, "rope_interleave": True,
            "max_position_embeddings": 4096}).encode())
        self.vectors["k"] = self.vectors["k"][:1]
        permuted, plain = {"interleaved": True}, {"interleaved": True, "to_halves": True}
        self.check(self.file(self.tensors(0, q=plain, k=plain)), config=config, code=0)
        both = self.check(self.file(self.tensors(0, q=permuted, k=permuted)), config=config, code=0)
        self.assertIn("queries agree up to a permutation of q and k", both.text)
        one = self.check(self.file(self.tensors(0, q=permuted, k=plain)), config=config, code=1)
        self.assertIn("features of queries and keys are in different orders, so scores differ", one.text)

    def test_layers_without_position_must_not_rotate(self):
        config = self.write("nope.json", json.dumps({**CONFIG, "model_type": "smollm3",
                                                        "no_rope_layers": [1, 0, 1, 1]}).encode())
        tensors = self.tensors(0) | self.tensors(1)
        self.assertIn("layer 1\n  queries differ", self.check(self.file(tensors), config=config, code=1).text)
        for kind in ("q", "k"):
            tensors[f"layers.1.{kind}.after"] = tensors[f"layers.1.{kind}.before"]
        self.check(self.file(tensors), config=config, code=0)

    def test_refusals(self):
        def fails(words, dump, *flags):
            self.refused("check", "--model", self.config, "--dump", dump, *flags, says=words)

        tensors = self.tensors(0)
        fails("contains no layers.N.q.before", self.folder)
        fails("is neither a folder nor a .safetensors file", self.config)
        fails("the model has layers 0-3", self.file(self.tensors(4)))
        fails("--dump needs no BEFORE and AFTER", self.file(tensors), "x.npy", "y.npy")
        fails("is there twice", self.folder_with_both(tensors))
        del tensors["layers.0.k.after"]
        fails("layers.0.k.after is missing", self.file(tensors))
        self.refused("check", "rope", "--dump", self.folder, says="--dump needs --model")
        alibi = self.write("bloom.json", json.dumps({"model_type": "bloom", "n_layer": 1, "n_head": HEADS,
                                                     "hidden_size": HEADS * DIMS}).encode())
        text = self.check(self.file(self.tensors(0)), config=alibi, code=1).text
        self.assertIn("queries: not compared: alibi does not rotate queries and keys", text)

    def folder_with_both(self, tensors):
        self.file(tensors, name="both.safetensors")
        name, (shape, values) = next(iter(tensors.items()))
        self.write(f"{name}.npy", npy("f32", shape, values))
        return self.folder


if __name__ == "__main__":
    unittest.main()

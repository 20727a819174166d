"""posenc.watch on tiny random models: one that is right, and six with a bug each. What port.md and python.md show is what it prints."""

import os
import re
import unittest
from pathlib import Path

import needs_torch  # noqa: F401  (first)

import torch
import posenc
from torch import nn

ROOT = Path(os.environ.get("POSENC_ROOT", Path(__file__).parents[2]))
CONFIG = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3,
          "max_position_embeddings": 8192, "rope_theta": 500000.0, "vocab_size": 50,
          "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                           "original_max_position_embeddings": 64}}
BUG = ""  # which bug the model below has


def rotate_half(x):
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def apply_rotary_pos_emb(q, k, cos, sin):
    def rotated(x):
        if BUG == "interleaved":
            pairs = x.reshape(*x.shape[:-1], -1, 2)
            c, s = cos[..., :8], sin[..., :8]
            return torch.stack((pairs[..., 0] * c - pairs[..., 1] * s, pairs[..., 1] * c + pairs[..., 0] * s), -1).reshape(x.shape)
        return x * cos + rotate_half(x) * sin

    return rotated(q), k.clone() if BUG == "keys are not rotated" else rotated(k)


class Attention(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer_idx = layer
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = nn.Linear(64, 64), nn.Linear(64, 32), nn.Linear(64, 32), nn.Linear(64, 64)

    def forward(self, x, cos, sin):
        q, k, v = (p(x).view(*x.shape[:2], -1, 16).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        if BUG == "one layer clockwise" and self.layer_idx == 1:
            sin = -sin
        q, k = apply_rotary_pos_emb(q, k, cos, sin)
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        out = (q @ k.transpose(-1, -2) / 4).softmax(-1) @ v
        return self.o_proj(out.transpose(1, 2).reshape(x.shape))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.embed = nn.Embedding(50, 64)
        self.layers = nn.ModuleList(Attention(i) for i in range(3))

    def forward(self, tokens):
        frequencies = torch.tensor(posenc.prepare(posenc.read_model(CONFIG).layer().scheme).frequencies)
        if BUG == "no scaling":
            frequencies = torch.tensor(posenc.prepare(posenc.Rope(dims=16, base=5e5)).frequencies)
        if BUG == "another base":
            frequencies = torch.tensor(posenc.prepare(posenc.Rope(dims=16)).frequencies)
        positions = torch.arange(tokens.shape[1]) + (1 if BUG == "positions from 1" else 0)
        angle = positions[:, None].double() * frequencies
        cos, sin = (torch.cat((one, one), -1).float() for one in (angle.cos(), angle.sin()))
        x = self.embed(tokens)
        for layer in self.layers:
            x = x + layer(x, cos, sin)
        return x


def watched(bug, **options):
    global BUG
    BUG = bug
    try:
        return posenc.watch(Llama(), **{"config": CONFIG, **options})
    finally:
        BUG = ""


class Watch(unittest.TestCase):
    def test_a_model_that_is_right(self):
        report = watched("")
        self.assertTrue(report, repr(report))
        self.assertEqual([layer.layer for layer in report.layers], [0, 1, 2])
        self.assertEqual(repr(report), "llama: all 3 layers rotate as the config says")

    def test_six_bugs(self):
        for bug, text in (("interleaved", "interleaved"), ("another base", "base"), ("no scaling", "scaling"), ("positions from 1", "position"),
                          ("one layer clockwise", "sign|clockwise"), ("keys are not rotated", "keys: differs")):
            with self.subTest(bug):
                report = watched(bug)
                self.assertFalse(report)
                self.assertRegex(repr(report), text)
                wrong = [layer.layer for layer in report.layers if not layer.agrees]
                self.assertEqual(wrong, [1] if bug == "one layer clockwise" else [0, 1, 2])
                self.assertIn("differs", report._repr_html_())
        self.assertTrue(watched("keys are not rotated").layers[0].q.agrees)  # the queries are right there

    def test_what_the_guides_show(self):
        printed = repr(watched("one layer clockwise"))
        for page in ("port.md", "python.md"):
            text = (ROOT / "docs/guide" / page).read_text("utf-8")
            shown = re.search(r"^>>> posenc\.watch\(model\)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL).group(1)
            pattern = "".join(r"(?:.*\n)*" if line == "…\n" else ".*".join(map(re.escape, line.split("…")))
                              for line in shown.splitlines(keepends=True))
            self.assertRegex(printed + "\n", f"^{pattern}", page)

    def test_positions_that_are_given(self):
        self.assertTrue(watched("positions from 1", positions=range(1, 17)))

    def test_text_in_a_model_with_three_coordinates(self):
        """M-RoPE rotates text as RoPE does; the base is the one that this config has."""
        text = {**CONFIG, "rope_scaling": {"rope_type": "default", "mrope_section": [2, 3, 3]}, "model_type": "qwen2_vl", "rope_theta": 10000.0}
        self.assertTrue(watched("another base", config=text))
        self.assertFalse(watched("another base", config={**text, "rope_theta": 500000.0}))

    def test_the_model_is_left_as_it_was(self):
        function, model = apply_rotary_pos_emb, Llama()
        model.train()
        posenc.watch(model, torch.randint(0, 50, (2, 20)), config=CONFIG)
        self.assertIs(apply_rotary_pos_emb, function)
        self.assertTrue(model.training)
        self.assertEqual(sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()), 0)

    def test_models_without_a_rotation(self):
        with self.assertRaisesRegex(TypeError, "rotation="):
            posenc.watch(nn.Linear(4, 4), torch.zeros(1, 4), config=CONFIG)
        with self.assertRaises(TypeError):
            posenc.watch(nn.Linear(4, 4), torch.zeros(1, 4))


if __name__ == "__main__":
    unittest.main()

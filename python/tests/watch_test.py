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
ENGINE = "products"  # how it computes attention


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
        self.hidden = None
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = nn.Linear(64, 64), nn.Linear(64, 32), nn.Linear(64, 32), nn.Linear(64, 64)

    def forward(self, x, cos, sin):
        q, k, v = (p(x).view(*x.shape[:2], -1, 16).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        if BUG == "one layer clockwise" and self.layer_idx == 1:
            sin = -sin
        q, k = apply_rotary_pos_emb(q, k, cos, sin)
        if BUG == "keys are normalised afterwards":
            k = k / k.norm(dim=-1, keepdim=True)
        if BUG == "queries are scaled twice":
            q = q / 4
        if BUG == "queries are negated":
            q = -q
        if BUG == "scaled before the product":  # no bug: openai_privacy_filter does it
            q, k = q / 2, k / 2
        tokens = torch.arange(x.shape[1])
        distance = tokens[:, None] - tokens
        hidden = distance < 0 if BUG != "no mask" else distance < -99
        if BUG == "a window of 5":
            hidden = hidden | (distance >= 5)
        if self.hidden is not None:
            hidden = hidden | self.hidden
        factor = {"scale": 3, "scaled before the product": 1}.get(BUG, 4)
        if ENGINE == "sdpa":
            k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
            out = nn.functional.scaled_dot_product_attention(q * (4 / factor), k, v, ~hidden)
        else:
            k, v = (y.repeat(1, 2, 1, 1) if BUG == "heads are tiled" else y.repeat_interleave(2, 1) for y in (k, v))
            product = torch.einsum("bhid,bhjd->bhij", q, k) if ENGINE == "einsum" else q @ k.transpose(-1, -2)
            scores = product / factor
            if BUG == "softcap":
                scores = 30 * (scores / 30).tanh()
            out = scores.masked_fill(hidden, -float("inf")).softmax(-1) @ v
        return self.o_proj(out.transpose(1, 2).reshape(x.shape))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.embed = nn.Embedding(50, 64)
        nn.init.normal_(self.embed.weight, std=6.0)  # so that scores are large
        self.layers = nn.ModuleList(Attention(i) for i in range(3))

    def forward(self, tokens, attention_mask=None, position_ids=None):
        hidden = None
        if attention_mask is not None:
            hidden = ~attention_mask.bool()[:, None, None]
            hidden = hidden & ~torch.eye(tokens.shape[1], dtype=torch.bool)  # padding sees itself, so that nothing is NaN
        if position_ids is not None:
            sequence = (position_ids == 0).cumsum(-1)
            hidden = sequence[:, None, :, None] != sequence[:, None, None]
        frequencies = torch.tensor(posenc.prepare(posenc.read_model(CONFIG).layer().scheme).frequencies)
        if BUG == "no scaling":
            frequencies = torch.tensor(posenc.prepare(posenc.Rope(dims=16, base=5e5)).frequencies)
        if BUG == "another base":
            frequencies = torch.tensor(posenc.prepare(posenc.Rope(dims=16)).frequencies)
        positions = torch.arange(tokens.shape[1]) + (1 if BUG == "positions from 1" else 0)
        if position_ids is not None and BUG != "ignores ids":
            positions = position_ids[0]
        angle = positions[:, None].double() * frequencies
        cos, sin = (torch.cat((one, one), -1).float() for one in (angle.cos(), angle.sin()))
        x = self.embed(tokens)
        for layer in self.layers:
            layer.hidden = hidden if BUG != "ignores masks" else None
            x = x + layer(x, cos, sin)
        return x


def watched(bug, *tokens, **options):
    global BUG
    BUG = bug
    try:
        return posenc.watch(Llama(), *tokens, **{"config": CONFIG, **options})
    finally:
        BUG = ""


class Watch(unittest.TestCase):
    def test_a_model_that_is_right(self):
        report = watched("")
        self.assertTrue(report, repr(report))
        self.assertEqual([layer.layer for layer in report.layers], [0, 1, 2])
        self.assertEqual(repr(report), "llama: all 3 layers rotate and attend as the config says")
        self.assertEqual(report.layers[1].attention.seen, ("causal mask", "scale", "groups of heads"))
        self.assertIn("1 | layers.1 | rotation, causal mask, scale, groups of heads | - | -", report.table())

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
        mistral = {**CONFIG, "model_type": "mistral", "rope_scaling": None, "sliding_window": 4096}
        shown = ((r"posenc\.watch\(model\)", ("port.md", "python.md"), repr(watched("one layer clockwise"))),
                 (r"print\(posenc\.watch\(model\)\.table\(\)\)", ("python.md",), watched("no scaling", config=mistral).table()))
        for command, pages, printed in shown:
            for page in pages:
                text = (ROOT / "docs/guide" / page).read_text("utf-8")
                block = re.search(rf"^>>> {command}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL).group(1)
                pattern = "".join(r"(?:.*\n)*" if line == "…\n" else ".*".join(map(re.escape, line.split("…")))
                                  for line in block.splitlines(keepends=True))
                self.assertRegex(printed + "\n", f"^{pattern}", page)

    def test_bugs_of_attention(self):
        """Everything between the rotation and the output, whoever computes it."""
        global ENGINE
        bugs = (("no mask", "mask: expected causal, got none"), ("a window of 5", "window: expected none, got one of 5"),
                ("scale", r"scale: expected 0.25, got 0.3333"), ("softcap", "softcap: expected none, got 30"),
                ("heads are tiled", "repeated as a whole"), ("keys are normalised afterwards", "keys: expected as they were rotated"),
                ("queries are scaled twice", "scale: expected 0.25, got 0.0625"), ("queries are negated", "queries: multiplied by -1 after the rotation"))
        try:
            for ENGINE in ("products", "einsum", *(("sdpa",) if hasattr(nn.functional, "scaled_dot_product_attention") else ())):
                self.assertTrue(watched(""), ENGINE)
                self.assertTrue(watched("scaled before the product"), ENGINE)
                for bug, text in bugs:
                    if ENGINE == "sdpa" and bug in ("softcap", "heads are tiled"):
                        continue  # not in this function
                    with self.subTest(bug, engine=ENGINE):
                        report = watched(bug)
                        self.assertFalse(report)
                        self.assertRegex(repr(report), text)
        finally:
            ENGINE = "products"

    def test_what_could_not_be_seen(self):
        """Sixteen tokens do not show a window of 4096; nineteen show one of 18."""
        config = {**CONFIG, "model_type": "mistral", "rope_scaling": None}
        few = watched("no scaling", config={**config, "sliding_window": 4096})
        self.assertTrue(few, repr(few))
        self.assertIn("window 4096 (4,097 tokens would)", few.layers[0].unseen())
        self.assertFalse(few.is_conclusive)
        for count, is_shown in ((18, False), (19, True)):
            report = watched("no scaling", torch.arange(count)[None], config={**config, "sliding_window": 18})
            self.assertEqual(bool(report), not is_shown)
        self.assertIn("window: expected 18, got none", repr(report))

    def test_padding_and_packing(self):
        """Masks and ids are arguments of forward: a model that does not heed them differs."""
        tokens = torch.randint(0, 50, (2, 16), generator=torch.Generator().manual_seed(1))
        mask = torch.ones(2, 16, dtype=torch.long)
        mask[1, :5] = 0
        for heeded in (True, False):
            report = watched("" if heeded else "ignores masks", tokens, attention_mask=mask)
            self.assertEqual(bool(report), heeded, repr(report))
            self.assertIn("padding", report.layers[0].attention.seen if heeded else repr(report))
        ids = torch.tensor([[*range(7), *range(9)]])
        for heeded in (True, False):
            report = watched("" if heeded else "ignores masks", tokens[:1], position_ids=ids)
            self.assertEqual(bool(report), heeded, repr(report))
            self.assertIn("packed sequences" if heeded else "attend to other sequences", report.layers[0].attention.seen if heeded else repr(report))
        self.assertRegex(repr(watched("ignores ids", tokens[:1], position_ids=ids)), "expected position_ids, got consecutive")

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

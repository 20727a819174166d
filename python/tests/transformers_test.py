"""posenc inside tiny random models of transformers: logits against transformers' own, with padding and a cache."""

import os
import sys
import unittest

if os.environ.get("POSENC_SANITIZE"):
    print("not with a sanitizer: torch is not built for it")
    sys.exit(77)
try:
    import torch
    import transformers
except ImportError:
    print("transformers is not installed")
    sys.exit(77)
import posenc
import posenc.transformers

SMALL = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 4, "intermediate_size": 64, "vocab_size": 60,
         "max_position_embeddings": 256, "pad_token_id": 0, "attn_implementation": "eager"}
MODELS = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
                                                                      "high_freq_factor": 4.0, "original_max_position_embeddings": 64}}),
    "mistral": ("MistralConfig", "MistralForCausalLM", {"sliding_window": 6, "head_dim": 16}),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", {"head_dim": 16}),
    "gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM", {"head_dim": 16, "sliding_window": 6, "query_pre_attn_scalar": 16}),
    "glm": ("GlmConfig", "GlmForCausalLM", {"head_dim": 16, "partial_rotary_factor": 0.5}),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM", {}),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 6}),  # softcap
    "gpt_oss": ("GptOssConfig", "GptOssForCausalLM", {"head_dim": 16, "num_local_experts": 2, "num_experts_per_tok": 1,
                                                      "sliding_window": 6}),  # sinks
}


def made(name, **more):
    config, kind, options = MODELS[name]
    torch.manual_seed(0)
    return getattr(transformers, kind)(getattr(transformers, config)(**{**SMALL, **options, **more})).eval()


def logits(model, tokens, **options):
    with torch.no_grad():
        return model(tokens, **options).logits


class Use(unittest.TestCase):
    def test_logits(self):
        tokens = torch.randint(1, 60, (2, 20), generator=torch.Generator().manual_seed(1))
        mask = torch.ones(2, 20, dtype=torch.long)
        mask[1, :5] = 0  # padding on the left
        for name in MODELS:
            with self.subTest(name):
                model = made(name)
                wanted, padded = logits(model, tokens), logits(model, tokens, attention_mask=mask)
                posenc.transformers.use(model)
                self.assertEqual(model.config._attn_implementation, "posenc")
                self.assertLess((logits(model, tokens) - wanted).abs().max().item(), 2e-4)
                ours = logits(model, tokens, attention_mask=mask)
                self.assertLess((ours - padded)[mask.bool()].abs().max().item(), 2e-4)
                self.assertGreater((ours - wanted)[1, 5:].abs().max().item(), 1e-3)  # the mask does something

    def test_decoding(self):
        tokens = torch.randint(1, 60, (1, 9), generator=torch.Generator().manual_seed(2))
        for name in ("llama", "mistral"):
            with self.subTest(name):
                model = made(name)
                options = {"max_new_tokens": 8, "do_sample": False, "min_new_tokens": 8}
                wanted = model.generate(tokens, **options)
                posenc.transformers.use(model)
                self.assertEqual(model.generate(tokens, **options).tolist(), wanted.tolist())

    def test_rotary_alone(self):
        model = made("llama")
        theirs = model.model.rotary_emb
        posenc.transformers.use(model, attention=False)
        ids = torch.tensor([[1_000_003]])
        exact = model.model.rotary_emb(torch.zeros(1, dtype=torch.float64), ids)[0]
        angle = ids.double()[..., None] * torch.tensor(posenc.prepare(posenc.read_model(model.config).layer().scheme).frequencies, dtype=torch.float64)
        self.assertLess((exact[..., :8] - angle.cos()).abs().max().item(), 1e-9)
        self.assertGreater((theirs(torch.zeros(1), ids)[0][..., :8] - angle.cos()).abs().max().item(), 1e-4)  # float32 angles, far out
        repeated = posenc.transformers.use(made("llama"), attention=False, rotary="hf-f32").model.rotary_emb
        self.assertLess((repeated(torch.zeros(1), ids)[0] - theirs(torch.zeros(1), ids)[0]).abs().max().item(), 2e-7)

    def test_packed_sequences(self):
        tokens = torch.randint(1, 60, (1, 12), generator=torch.Generator().manual_seed(3))
        ids = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6]])
        model = made("llama")
        wanted = logits(model, tokens, position_ids=ids)
        self.assertLess((logits(posenc.transformers.use(model), tokens, position_ids=ids) - wanted).abs().max().item(), 2e-4)

    def test_what_cannot_be_done_raises(self):
        model = posenc.transformers.use(made("llama", attention_dropout=0.5)).train()
        with self.assertRaisesRegex(NotImplementedError, "dropout"):
            model(torch.randint(1, 60, (1, 8)))

    def test_gradients(self):
        model = posenc.transformers.use(made("llama"))
        model(torch.randint(1, 60, (1, 8)), labels=torch.randint(1, 60, (1, 8))).loss.backward()
        self.assertGreater(model.model.layers[0].self_attn.q_proj.weight.grad.abs().max().item(), 0)


class Watch(unittest.TestCase):
    def test_models_that_are_right(self):
        for name in MODELS:
            with self.subTest(name):
                report = posenc.watch(made(name))
                self.assertTrue(report, repr(report))
                self.assertEqual(len(report.layers), 4)

    def test_a_wrong_base(self):
        model = made("llama")
        model.model.rotary_emb.inv_freq *= 0.9
        report = posenc.watch(model)
        self.assertFalse(report)
        self.assertIn("4 of 4 layers", repr(report))


if __name__ == "__main__":
    unittest.main()

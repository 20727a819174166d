"""posenc inside tiny random models of transformers: logits against transformers' own, with padding and a cache."""

import os
import sys
import unittest
import unittest.mock

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
    "deepseek_v3": ("DeepseekV3Config", "DeepseekV3ForCausalLM",  # values narrower than keys; rotated features cut out
                    {"num_key_value_heads": 4, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
                     "v_head_dim": 12, "first_k_dense_replace": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1,
                     "topk_group": 1,
                     "rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 64,
                                         "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}}),
}
MROPE = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}


def made(name, **more):
    config, kind, options = MODELS[name]
    torch.manual_seed(0)
    return getattr(transformers, kind)(getattr(transformers, config)(**{**SMALL, **options, **more})).eval()


def logits(model, tokens, **options):
    with torch.no_grad():
        return model(tokens, **options).logits


def qwen2_vl():
    """Text alone: three coordinates a token, which the caller may give."""
    text = {key: value for key, value in SMALL.items() if key != "attn_implementation"}
    vision = {"depth": 1, "embed_dim": 32, "num_heads": 2, "hidden_size": 64, "mlp_ratio": 1}
    config = transformers.Qwen2VLConfig(text_config={**text, "rope_parameters": MROPE}, vision_config=vision, attn_implementation="eager")
    torch.manual_seed(0)
    return transformers.Qwen2VLForConditionalGeneration(config).eval()


def t5():
    config = transformers.T5Config(d_model=64, d_kv=16, d_ff=64, num_layers=2, num_decoder_layers=2, num_heads=4, vocab_size=60,
                                   relative_attention_num_buckets=8, relative_attention_max_distance=16, pad_token_id=0, decoder_start_token_id=0,
                                   attn_implementation="eager")
    torch.manual_seed(0)
    model = transformers.T5ForConditionalGeneration(config).eval()
    for name, table in model.named_parameters():
        if "relative_attention_bias" in name:
            torch.nn.init.normal_(table)
    return model


def calls():
    """Counts the calls of posenc's attention."""
    return unittest.mock.patch.object(posenc.torch, "attention", wraps=posenc.torch.attention)


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
                with calls() as counted:
                    self.assertLess((logits(model, tokens) - wanted).abs().max().item(), 2e-4)
                self.assertEqual(counted.call_count, 4)
                ours = logits(model, tokens, attention_mask=mask)
                self.assertLess((ours - padded)[mask.bool()].abs().max().item(), 2e-4)
                self.assertGreater((ours - wanted)[1, 5:].abs().max().item(), 1e-3)  # the mask does something

    def test_decoding(self):
        tokens = torch.randint(1, 60, (1, 9), generator=torch.Generator().manual_seed(2))
        for name in ("llama", "mistral", "gemma3", "deepseek_v3"):
            with self.subTest(name):
                model = made(name)
                options = {"max_new_tokens": 8, "do_sample": False, "min_new_tokens": 8}
                wanted = model.generate(tokens, **options)
                posenc.transformers.use(model)
                self.assertEqual(model.generate(tokens, **options).tolist(), wanted.tolist())

    def test_three_coordinates(self):
        """Qwen2-VL: positions of an image's patches differ by axis."""
        tokens = torch.randint(1, 60, (1, 12), generator=torch.Generator().manual_seed(4))
        ids = torch.tensor([[0, 1, 2, 2, 2, 2, 2, 2, 5, 6, 7, 8], [0, 1, 2, 2, 2, 3, 3, 3, 5, 6, 7, 8], [0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 7, 8]])[:, None]
        model = qwen2_vl()
        text, mixed = logits(model, tokens), logits(model, tokens, position_ids=ids)
        self.assertGreater((text - mixed).abs().max().item(), 1e-3)
        options = {"max_new_tokens": 6, "do_sample": False, "min_new_tokens": 6}
        wanted = model.generate(tokens, **options)
        posenc.transformers.use(model)
        self.assertIsInstance(model.model.language_model.rotary_emb, posenc.torch.RotaryEmbedding)
        self.assertLess((logits(model, tokens) - text).abs().max().item(), 2e-4)
        self.assertLess((logits(model, tokens, position_ids=ids) - mixed).abs().max().item(), 2e-4)
        self.assertEqual(model.generate(tokens, **options).tolist(), wanted.tolist())

    def test_both_halves_of_t5(self):
        generator = torch.Generator().manual_seed(5)
        tokens, answer = torch.randint(1, 60, (2, 10), generator=generator), torch.randint(1, 60, (2, 7), generator=generator)
        mask = torch.ones(2, 10, dtype=torch.long)
        mask[1, 6:] = 0
        model = t5()
        wanted = [logits(model, tokens, decoder_input_ids=answer, attention_mask=one) for one in (None, mask)]
        options = {"max_new_tokens": 6, "do_sample": False, "min_new_tokens": 6}
        said = model.generate(tokens, **options)
        posenc.transformers.use(model)
        with calls() as counted:
            self.assertLess((logits(model, tokens, decoder_input_ids=answer) - wanted[0]).abs().max().item(), 2e-4)
        self.assertEqual(counted.call_count, 6)  # the encoder, the decoder, and what looks from one at the other
        self.assertLess((logits(model, tokens, decoder_input_ids=answer, attention_mask=mask) - wanted[1]).abs().max().item(), 2e-4)
        self.assertGreater((wanted[0] - wanted[1])[1].abs().max().item(), 1e-3)
        self.assertEqual(model.generate(tokens, **options).tolist(), said.tolist())
        with self.assertRaisesRegex(NotImplementedError, "a mask has no gradient"):
            model(tokens, decoder_input_ids=answer)  # the bias learns

    def test_a_model_with_attention_of_its_own(self):
        config = transformers.BloomConfig(hidden_size=64, n_head=4, n_layer=2, vocab_size=60)
        model = transformers.BloomForCausalLM(config).eval()
        tokens = torch.randint(1, 60, (1, 8))
        before = logits(model, tokens)
        with self.assertRaisesRegex(NotImplementedError, "Bloom.* computes attention itself"):
            posenc.transformers.use(model)
        self.assertTrue(torch.equal(logits(model, tokens), before))
        # What it computes is posenc's ALiBi: q·k/√d + slope · position, which softmax cannot tell from a bias by distance.
        inner = model.transformer.h[0].self_attention
        x = model.transformer.word_embeddings_layernorm(model.transformer.word_embeddings(tokens))
        x = model.transformer.h[0].input_layernorm(x)
        with torch.no_grad():
            q, k, v = inner._reshape(inner.query_key_value(x))
            mask = torch.full((8, 8), -1e30).triu(1)[None, None]
            alibi = transformers.models.bloom.modeling_bloom.build_alibi_tensor(torch.ones(1, 8), 4, torch.float32)
            theirs = inner(x, torch.zeros_like(x), alibi, mask)[0]
            ours = posenc.attention(q, k, v, posenc.prepare(posenc.Alibi(heads=4)), causal=True)
            self.assertLess((inner.dense(ours.transpose(1, 2).reshape(x.shape)) - theirs).abs().max().item(), 1e-5)

    def test_it_checks_itself(self):
        """An attention that computes something else is refused, with its layer; the model is left as it was."""
        tokens = torch.randint(1, 60, (1, 8))
        theirs = posenc.transformers.attention_forward
        for wrong_layer in (0, 2):
            model = made("llama")
            before, rotary = logits(model, tokens), model.model.rotary_emb

            def wrong(module, *arguments, **options):
                out, weights = theirs(module, *arguments, **options)
                return (out * 1.01 if module.layer_idx == wrong_layer else out), weights

            with unittest.mock.patch.object(posenc.transformers, "attention_forward", wrong):
                with self.assertRaisesRegex(NotImplementedError, rf"layers\.{wrong_layer}\.self_attn differs by 0\.01"):
                    posenc.transformers.use(model)
                self.assertIs(model.model.rotary_emb, rotary)
                self.assertEqual(model.config._attn_implementation, "eager")
                self.assertTrue(torch.equal(logits(model, tokens), before))
                posenc.transformers.use(model, check=False)
                self.assertGreater((logits(model, tokens) - before).abs().max().item(), 1e-4)

    def test_inputs_that_are_no_tokens(self):
        config = transformers.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=8, patch_size=4,
                                        attn_implementation="eager")
        model = transformers.ViTModel(config).eval()
        with self.assertRaisesRegex(NotImplementedError, "takes pixel_values; pass inputs="):
            posenc.transformers.use(model, rotary=None)
        image = torch.randn(1, 3, 8, 8)
        before = model(image).last_hidden_state
        posenc.transformers.use(model, rotary=None, inputs={"pixel_values": image})
        self.assertLess((model(image).last_hidden_state - before).abs().max().item(), 1e-4)

    def test_a_module_that_does_not_say_that_it_is_causal(self):
        """BigBird-Pegasus's decoder has is_causal False, and a causal mask: its logits were silently others."""
        config = transformers.BigBirdPegasusConfig(d_model=32, decoder_layers=2, encoder_layers=2, decoder_attention_heads=4, encoder_attention_heads=4,
                                                   decoder_ffn_dim=32, encoder_ffn_dim=32, vocab_size=60, max_position_embeddings=64,
                                                   attention_type="original_full", attn_implementation="eager")
        torch.manual_seed(0)
        model = transformers.BigBirdPegasusForCausalLM(config).eval()
        tokens = torch.randint(1, 60, (2, 12))
        before = logits(model, tokens)
        posenc.transformers.use(model, rotary=None)
        self.assertLess((logits(model, tokens) - before).abs().max().item(), 1e-4)

    def test_rotations_of_their_own(self):
        """nanochat turns clockwise by the same cosines and sines; Qwen3.5 has three coordinates though its config does not say so."""
        small = {key: value for key, value in SMALL.items() if key != "attn_implementation"}
        nanochat = transformers.NanoChatConfig(**small, attn_implementation="eager")
        qwen = transformers.Qwen3_5TextConfig(**small, head_dim=16, layer_types=["full_attention"] * 4, attn_implementation="eager")
        tokens = torch.randint(1, 60, (1, 8))
        for kind, config in (("NanoChatForCausalLM", nanochat), ("Qwen3_5ForCausalLM", qwen)):
            with self.subTest(kind):
                torch.manual_seed(0)
                model = getattr(transformers, kind)(config).eval()
                before = logits(model, tokens)
                posenc.transformers.use(model)
                self.assertLess((logits(model, tokens) - before).abs().max().item(), 2e-4)

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

    def test_three_coordinates(self):
        report = posenc.watch(qwen2_vl(), torch.randint(1, 60, (1, 9)))
        self.assertTrue(report, repr(report))

    def test_six_bugs(self):
        """Each is planted into a model of transformers, and the report names it."""
        def base(model):
            model.model.rotary_emb.inv_freq *= 0.9

        def no_scaling(model):
            model.model.rotary_emb.inv_freq = torch.tensor(posenc.prepare(posenc.Rope(dims=16, base=5e5)).frequencies, dtype=torch.float32)

        def from_one(model):
            forward = model.model.rotary_emb.forward
            model.model.rotary_emb.forward = lambda x, position_ids: forward(x, position_ids + 1)

        theirs = transformers.models.llama.modeling_llama.apply_rotary_pos_emb

        def interleaved(x):
            return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)

        def rotated(x, cos, sin):
            cos, sin = (one[..., :8].repeat_interleave(2, -1)[:, None] for one in (cos, sin))
            return x * cos + interleaved(x) * sin

        bugs = {
            "base": (base, None, "base|frequenc|scaling"),
            "no scaling": (no_scaling, None, "scaling"),
            "sign": (None, lambda q, k, cos, sin, **_: theirs(q, k, cos, -sin), "sign|clockwise"),
            "interleaved": (None, lambda q, k, cos, sin, **_: (rotated(q, cos, sin), rotated(k, cos, sin)), "interleaved"),
            "keys": (None, lambda q, k, cos, sin, **_: (theirs(q, k, cos, sin)[0], k.clone()), "keys: differs"),
            "positions": (from_one, None, "position"),
        }
        for name, (change, function, text) in bugs.items():
            with self.subTest(name):
                model = made("llama")
                if change is not None:
                    change(model)
                with unittest.mock.patch.object(transformers.models.llama.modeling_llama, "apply_rotary_pos_emb", function or theirs):
                    report = posenc.watch(model)
                self.assertFalse(report)
                self.assertIn("4 of 4 layers", repr(report))
                self.assertRegex(repr(report), text)

    def test_frequencies_of_phimoe(self):
        """It computes them anew in every forward, by a function of its own."""
        config = transformers.PhimoeConfig(**{**SMALL, "num_local_experts": 2, "num_experts_per_tok": 1}, sliding_window=None)
        torch.manual_seed(0)
        model = transformers.PhimoeForCausalLM(config).eval()
        self.assertTrue(posenc.watch(model), repr(posenc.watch(model)))
        forward = model.model.rotary_emb.forward
        model.model.rotary_emb.forward = lambda x, *arguments, **options: forward(x, *(0.9 * one for one in arguments), **{
            name: 0.9 * one if name == "position_ids" else one for name, one in options.items()})
        self.assertFalse(posenc.watch(model))

    def test_what_the_attention_does(self):
        """Faults between the rotation and the output, each in one layer."""
        theirs = transformers.models.gemma2.modeling_gemma2.eager_attention_forward
        bugs = {"scale": ({"scaling": 0.3}, "scale: expected 0.25, got 0.3"), "softcap": ({"softcap": None}, "softcap: expected 50, got none|scale"),
                "mask": ({"attention_mask": None}, "mask: expected causal, got none")}
        torch.manual_seed(0)
        model = made("gemma2")
        for layer in model.model.layers:
            for one in (layer.self_attn.q_proj, layer.self_attn.k_proj):
                torch.nn.init.normal_(one.weight, std=1.0)
        for name, (change, text) in bugs.items():
            def wrong(module, q, k, v, attention_mask, change=change, **options):
                options = {**options, "attention_mask": attention_mask, **(change if module.layer_idx == 1 else {})}
                return theirs(module, q, k, v, **options)

            with self.subTest(name), unittest.mock.patch.object(transformers.models.gemma2.modeling_gemma2, "eager_attention_forward", wrong):
                report = posenc.watch(model)
                self.assertEqual([layer.layer for layer in report.layers if not layer.agrees], [1], repr(report))
                self.assertRegex(repr(report), text)

    def test_a_wrong_base(self):
        model = made("llama")
        model.model.rotary_emb.inv_freq *= 0.9
        report = posenc.watch(model)
        self.assertFalse(report)
        self.assertIn("4 of 4 layers", repr(report))


if __name__ == "__main__":
    unittest.main()

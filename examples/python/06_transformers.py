"""A model of transformers with posenc inside, and a look at whether its rotations are what its config says."""

import posenc
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=2, intermediate_size=64, vocab_size=50)
model = LlamaForCausalLM(config).eval()
tokens = torch.randint(0, 50, (1, 12))
with torch.no_grad():
    theirs = model(tokens).logits
    posenc.transformers.use(model)
    ours = model(tokens).logits
print("the logits differ by less than 1e-5:", bool((ours - theirs).abs().max() < 1e-5))
print(posenc.watch(model))
# prints:
# the logits differ by less than 1e-5: True
# llama: all 2 layers rotate and attend as the config says

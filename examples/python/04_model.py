"""From a config to the right rotation; and the bug in an implementation, by name."""

import numpy as np
import posenc

config = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "max_position_embeddings": 8192,
          "rope_theta": 500000.0}
model = posenc.read_model(config)  # or the path of a config.json, of a folder, of a .gguf file
print(model)

before = np.random.default_rng(0).standard_normal((4, 16, 16)).astype(np.float32)  # queries: [heads, sequence, features]
mine = posenc.rotate(before.copy(), posenc.prepare(posenc.Rope(dims=16, base=500000.0, layout="interleaved")))  # a bug
result = posenc.check(before, mine, model=model)
print(result.verdict)
print(result.diagnosis["best"]["layout"], "was applied, and", model.layer(0).scheme.layout, "is right")
# prints:
# llama, 8192 positions
#   layers 0-1: rope (dims 16, base 500000.0, layout halves, sign 1, first_dim 0, magnitude 1.0)
# differs
# interleaved was applied, and halves is right

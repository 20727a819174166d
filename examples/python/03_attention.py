"""Attention with position inside: ALiBi, RoPE, and a step of decoding with a cache of rotated keys."""

import numpy as np
import posenc

rng = np.random.default_rng(0)
q, k, v = rng.standard_normal((3, 2, 6, 8)).astype(np.float32)  # [heads, sequence, features]
weights = np.empty((2, 6, 6), np.float32)
posenc.attention(q, k, v, posenc.prepare(posenc.Alibi(heads=2)), causal=True, weights=weights)
print("query 2 of head 0 looks at", np.round(weights[0, 2], 3))

rope = posenc.prepare(posenc.Rope(dims=8))
whole = posenc.attention(q, k, v, rope, causal=True)
cache = posenc.rotate(k.copy(), rope)  # keys are rotated once, when they come
step = posenc.attention(q[:, 5:], cache, v, rope, causal=True, keys_are_rotated=True)
print("the last step differs from the whole by less than 1e-6:", bool(np.abs(step - whole[:, 5:]).max() < 1e-6))
# prints:
# query 2 of head 0 looks at [0.195 0.488 0.317 0.    0.    0.   ]
# the last step differs from the whole by less than 1e-6: True

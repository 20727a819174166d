"""A decoder with a paged KV cache and continuous batching: three sequences share one pool of pages; each step takes chunks
of prompts and single tokens of those that decode, packed one after another. Everything that attention does is the layer's."""

import numpy as np
import posenc

HEADS, KEY_HEADS, FEATURES, PAGE, PAGES = 4, 2, 32, 16, 12
config = {"model_type": "mistral", "hidden_size": 128, "num_hidden_layers": 1, "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS,
          "head_dim": FEATURES, "sliding_window": 24, "rope_theta": 10000.0, "max_position_embeddings": 4096}
layer = posenc.layer(config, 0)
print(layer.form.kind, {name: value for name, value in layer.options.items() if value})

# [tokens, heads, features]: the projections of a model would make these.
rng = np.random.default_rng(0)
lengths, prompts = [40, 17, 52], [25, 9, 40]
q, k, v = ([rng.standard_normal((n, heads, FEATURES)).astype(np.float32) for n in lengths] for heads in (HEADS, KEY_HEADS, KEY_HEADS))

# One layer's pools, [pages, page size, heads, features] as vLLM's; and who owns which page.
k_cache, v_cache = np.zeros((2, PAGES, PAGE, KEY_HEADS, FEATURES), np.float32)
free, pages, done = list(range(PAGES)), [[] for _ in lengths], [0] * len(lengths)
outs, steps = [[] for _ in lengths], 0


def run(counts):
    """The next tokens of each sequence: keys and values into their slots, then attention over the pages, all in one call."""
    news = [slice(first, first + count) for first, count in zip(done, counts)]
    for s, new in enumerate(news):
        while len(pages[s]) * PAGE < new.stop:
            pages[s].append(free.pop())
        done[s] = new.stop
    slots = np.concatenate([posenc.slots_of(pages[s], PAGE, new.start, counts[s]) for s, new in enumerate(news)])
    ids = np.concatenate([np.arange(new.start, new.stop) for new in news])
    packed_q, packed_k, packed_v = (np.concatenate([x[s][new] for s, new in enumerate(news)]) for x in (q, k, v))
    posenc.rotate_into(k_cache, slots, packed_k, layer.form, ids=ids, order="thd")
    posenc.copy_into(v_cache, slots, packed_v, order="thd")
    out = posenc.attention(packed_q, k_cache, v_cache, layer.form, packed=counts, key_lengths=done, block_table=pages,
                           keys_are_rotated=True, order="thd", **layer.options)
    for s, part in enumerate(np.split(out, np.cumsum(counts)[:-1])):
        outs[s].append(part)


while any(now < n for now, n in zip(done, lengths)):  # a chunk of a prompt of at most 16 tokens, or the next token
    run([min(max(prompt - now, 1), 16, n - now) for now, prompt, n in zip(done, prompts, lengths)])
    steps += 1

# What the steps must give: each whole sequence at once.
worst = max(np.abs(np.concatenate(outs[s]) - posenc.attention(q[s], k[s], v[s], layer.form, order="thd", **layer.options)).max()
            for s in range(3))
print(f"3 sequences in {steps} steps: largest difference {'below' if worst < 1e-5 else 'NOT below'} 1e-5")

# Decoding alone, as many queries each: a plan reads lengths and pages as they are at each call, and allocates nothing.
table = np.full((3, 4), -1, np.int32)
for s, row in enumerate(pages):
    table[s, :len(row)] = row
ends = np.array(done)
last, out = np.stack([x[-1] for x in q])[:, :, None], np.empty((3, HEADS, 1, FEATURES), np.float32)
plan = posenc.plan_attention(last, k_cache, v_cache, layer.form, key_lengths=ends, block_table=table, cache_order="bshd",
                             keys_are_rotated=True, **layer.options)
plan(last, k_cache, v_cache, out=out)
same = all(np.abs(out[s, :, 0] - np.concatenate(outs[s])[-1]).max() < 1e-6 for s in range(3))
print("a plan gives the same:", same)
# prints:
# rotation {'causal': True, 'window': 24}
# 3 sequences in 17 steps: largest difference below 1e-5
# a plan gives the same: True

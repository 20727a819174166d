#!/usr/bin/env python3
"""The training steps of posenc_train_bench with torch: a decoder of 0.8 million parameters, on one thread.

Needs torch (Debian: python3-torch). Prints tokens for each second of processor time, the median of the steps. The model is the
lab's: pre-norm, GELU with tanh, tied embeddings, RoPE by halves, AdamW, gradients clipped to norm 1, float32. Attention is
written out, or with --sdpa torch's own where it has one (from torch 2.0 on).
"""

import argparse
import math
import time

import torch
from torch import nn

LAYERS, HEADS, WIDTH, TOKENS, BATCH, VOCABULARY = 4, 4, 128, 256, 16, 96


def rotation(features):
    frequencies = 10000.0 ** (-torch.arange(0, features, 2, dtype=torch.float64) / features)
    angles = torch.outer(torch.arange(TOKENS, dtype=torch.float64), frequencies)
    return torch.cat([angles.cos()] * 2, 1).float(), torch.cat([angles.sin()] * 2, 1).float()


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.gelu = nn.GELU(approximate="tanh")

    def attend(self, x, cos, sin, mask, sdpa):
        batch, tokens, _ = x.shape
        q, k, v = (part.view(batch, tokens, HEADS, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))

        def rotated(y):
            half = y.shape[-1] // 2
            return y * cos + torch.cat((-y[..., half:], y[..., :half]), -1) * sin

        q, k = rotated(q), rotated(k)
        if sdpa:
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            mixed = torch.softmax(scores + mask, -1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))

    def forward(self, x, cos, sin, mask, sdpa):
        x = x + self.attend(self.norm1(x), cos, sin, mask, sdpa)
        return x + self.down(self.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(VOCABULARY, WIDTH))
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.cos, self.sin = rotation(WIDTH // HEADS)
        self.mask = torch.full((TOKENS, TOKENS), float("-inf")).triu(1)

    def forward(self, ids, sdpa):
        x = self.table[ids]
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, self.mask, sdpa)
        return self.norm(x) @ self.table.t()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sdpa", action="store_true")
    flags = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(flags.threads)
    model = Decoder()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.99), weight_decay=0.1)
    speeds = []
    for step in range(flags.steps + 2):
        ids = torch.randint(VOCABULARY, (BATCH, TOKENS + 1))
        begin = time.process_time()
        logits = model(ids[:, :-1], flags.sdpa)
        loss = nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), ids[:, 1:].reshape(-1))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step >= 2:
            speeds.append(BATCH * TOKENS / (time.process_time() - begin))
    speeds.sort()
    count = sum(p.numel() for p in model.parameters())
    print(f"torch {torch.__version__}, {flags.threads} thread(s): {count} parameters, "
          f"{speeds[len(speeds) // 2]:.0f} tokens for each second of processor time")


if __name__ == "__main__":
    main()

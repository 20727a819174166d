"""Attention on one GPU under every mask that the kernels for compute capability 9.0 support: posenc with its position inside,
cuDNN without position (torch's SDPA) and FlexAttention with it, side by side.

python3 cuda_masks.py [--jobs TEXT…] [--peers NAME…]     needs PyTorch with CUDA, and posenc on PYTHONPATH

Prints TFLOP/s of the visible pairs, bf16, each launch after a pause and queued behind a kernel that waits; with gradients, the
products of a backward pass count 2.5 times those of the forward pass. One head of posenc's results is compared with the same
computed in float64. cuDNN has no window and, in torch, no causal mask for fewer queries than keys.
"""

import argparse
import math

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import posenc
import posenc.torch
from timing import median_ms

BUCKETS, MOST = 32, 128  # T5's
POSITIONS = ("none", "ALiBi", "T5")


class Job:
    def __init__(self, name, features, causal, window=0, batch=4, heads=16, key_heads=16, queries=4096, keys=4096, values=None,
                 packed=()):
        self.name, self.features, self.causal, self.window = f"{name}, D {features}", features, causal, window
        self.values = values or features
        if values:
            self.name += f"/{values}"
        self.packed = list(packed)
        lengths = torch.tensor(self.packed or [queries], device="cuda")
        self.sequence = torch.repeat_interleave(torch.arange(len(lengths), device="cuda"), lengths)
        self.batch, self.heads, self.key_heads, self.queries, self.keys = batch, heads, key_heads, queries, keys

    def sees(self, i, j):
        """Whether query i attends to key j: numbers, or tensors that broadcast."""
        beside = i + (self.keys - self.queries)
        seen = (j <= beside) if self.causal else (j >= 0) & (i >= 0)
        if self.window > 0:
            seen = seen & (beside - j < self.window) & (j - beside < self.window)
        if self.packed:
            seen = seen & (self.sequence[i] == self.sequence[j])
        return seen

    def tensors(self):
        torch.manual_seed(1)
        queries, keys = (self.batch, self.heads, self.queries), (self.batch, self.key_heads, self.keys)
        shapes = [(*queries, self.features), (*keys, self.features), (*keys, self.values), (*queries, self.values)]
        return [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for shape in shapes]

    def operations(self):
        i, j = torch.arange(self.queries, device="cuda")[:, None], torch.arange(self.keys, device="cuda")
        return 2 * self.batch * self.heads * (self.features + self.values) * int(self.sees(i, j).sum())


JOBS = [Job(name, features, *rest) for name, *rest in (("causal", True), ("all keys", False), ("causal, window 1024", True, 1024))
        for features in (128, 64)]
JOBS += [Job(name, 256, *rest) for name, *rest in (("causal", True, 0, 4, 8, 4), ("all keys", False, 0, 4, 8, 4),
                                                    ("causal, window 1024", True, 1024, 4, 8, 4))]
JOBS += [Job(name, 192, causal, values=128) for name, causal in (("causal", True), ("all keys", False))]
PACKED = [300, 2100, 777, 4096, 128, 1500, 3000, 64, 1000, 3419]  # 16,384 tokens
JOBS += [Job(name, 128, causal, 0, 1, 16, 16, 16384, 16384, packed=PACKED)
         for name, causal in (("packed, causal", True), ("packed, all keys", False))]
JOBS.append(Job("2048 queries over 16384 keys, causal", 128, True, 0, 1, 32, 8, 2048, 16384))
JOBS.append(Job("2048 queries over 16384 keys, all keys", 128, False, 0, 1, 32, 8, 2048, 16384))


def bucket_of(distance, bidirectional):
    """T5's bucket of key − query, as transformers computes it (modeling_t5.py, _relative_position_bucket)."""
    buckets, start = BUCKETS, torch.zeros_like(distance)
    if bidirectional:
        buckets //= 2
        start = (distance > 0).to(distance.dtype) * buckets
        distance = distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    exact = buckets // 2
    share = torch.log(distance.clamp(min=1).double() / exact) / math.log(MOST / exact)
    wide = exact + (share * (buckets - exact) + 1e-9).long()  # log is not exact where the share is
    return start + torch.where(distance < exact, distance, wide.clamp(max=buckets - 1))


def slopes_of(heads):
    return torch.tensor([2.0 ** (-8 * (h + 1) / heads) for h in range(heads)], device="cuda")


def in_float64(job, position, table, q, k, v, g):
    """The first key head of the first sequence, with its query heads: out and the gradients of q, k and v."""
    group = job.heads // job.key_heads
    q, k, v = (x.double().requires_grad_() for x in (q[0, :group], k[0, :1], v[0, :1]))
    i, j = torch.arange(job.queries, device="cuda")[:, None], torch.arange(job.keys, device="cuda")
    distance = j - i - (job.keys - job.queries)
    scores = q @ k.mT / math.sqrt(job.features)
    if position == "ALiBi":
        scores = scores - slopes_of(job.heads)[:group, None, None].double() * distance.abs()
    if position == "T5":
        scores = scores + table.double()[bucket_of(distance, not job.causal)].permute(2, 0, 1)[:group]
    out = torch.softmax(scores.masked_fill(~job.sees(i, j), -math.inf), -1) @ v
    return out, *torch.autograd.grad(out, (q, k, v), g[0, :group].double())


def posenc_works(job, position, leaves, table):
    if position == "none":
        form = None
    elif position == "ALiBi":
        form = posenc.Alibi(heads=job.heads)
    else:
        form = posenc.T5(heads=job.heads, buckets=BUCKETS, max_distance=MOST, bidirectional=not job.causal)
    return lambda: posenc.torch.attention(*leaves, form, table=table if position == "T5" else None, causal=job.causal,
                                          window=job.window, **({"packed": job.packed} if job.packed else {}))


def cudnn_works(job, leaves):
    def attend():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=job.causal,
                                                                    enable_gqa=job.heads != job.key_heads)
    return attend


def flex_works(job, position, leaves, table):
    torch._dynamo.reset()  # it compiles a function a limited number of times
    slopes, offset = slopes_of(job.heads), job.keys - job.queries
    distances = torch.arange(1 - job.keys, job.keys, device="cuda")
    buckets = bucket_of(distances, not job.causal)

    def alibi(score, b, h, i, j):
        return score - slopes[h] * (i + offset - j).abs()

    def t5(score, b, h, i, j):
        return score + table[buckets[j - i - offset + job.keys - 1], h]

    def mask(b, h, i, j):
        return job.sees(i, j)

    blocks = None
    if job.causal or job.window or job.packed:
        blocks = create_block_mask(mask, None, None, job.queries, job.keys, device="cuda")
    score = {"none": None, "ALiBi": alibi, "T5": t5}[position]
    flex = torch.compile(flex_attention, dynamic=False)
    return lambda: flex(*leaves, score_mod=score, block_mask=blocks, enable_gqa=job.heads != job.key_heads)


def rates(job, works, leaves, table, g, has_table):
    operations = job.operations()

    def forward():
        with torch.no_grad():
            works()

    wanted = [*leaves, table] if has_table else leaves

    def both():
        torch.autograd.grad(works(), wanted, g)

    return [factor * operations / median_ms(work, 6_000_000) / 1e9 for work, factor in ((forward, 1), (both, 3.5))]


def measure(job, peers):
    *inputs, g = job.tensors()
    leaves = [x.requires_grad_() for x in inputs]
    table = torch.randn(BUCKETS, job.heads, device="cuda").requires_grad_()
    found = {}
    if "posenc" in peers:
        for position in POSITIONS:
            works = posenc_works(job, position, leaves, table)
            found["posenc", position] = rates(job, works, leaves, table, g, position == "T5")
            out = works()
            got = [out, *torch.autograd.grad(out, leaves, g)]
            group = job.heads // job.key_heads
            got = [got[0][0, :group], got[1][0, :group], got[2][0, :1], got[3][0, :1]]
            want = in_float64(job, position, table, *inputs, g)
            errors = [float((x.double() - y).detach().norm() / y.detach().norm()) for x, y in zip(got, want)]
            print(f"{job.name}, posenc {position}: errors of out, dq, dk, dv " + ", ".join(f"{e:.1e}" for e in errors), flush=True)
            assert max(errors) < 6e-3, errors
    others = []  # names, and what makes the function to measure
    if "cudnn" in peers and not job.window and not job.packed and not (job.causal and job.queries != job.keys):
        others.append(("cuDNN", "none", lambda position: cudnn_works(job, leaves)))
    if "flex" in peers:
        others += [("Flex", position, lambda position: flex_works(job, position, leaves, table)) for position in POSITIONS]
    for name, position, make in others:
        try:
            found[name, position] = rates(job, make(position), leaves, table, g, position == "T5")
        except Exception as error:
            print(f"{job.name}, {name} {position}: {str(error).splitlines()[0]}", flush=True)
    cells = [f"{who} {position} {forward:.0f} / {both:.0f}" for (who, position), (forward, both) in found.items()]
    print(f"{job.name}, TFLOP/s forward / with gradients: " + "; ".join(cells), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", nargs="*", default=[""], help="only those whose name begins with one of these")
    parser.add_argument("--peers", nargs="*", default=["posenc", "cudnn", "flex"])
    arguments = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "cuDNN", torch.backends.cudnn.version())
    for one in JOBS:
        if one.name.startswith(tuple(arguments.jobs)):
            measure(one, arguments.peers)

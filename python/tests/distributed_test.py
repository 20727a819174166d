"""posenc.torch.distributed: two and four processes on the loopback give what one process gives, with gradients."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from ranks import briefly, ranks, until_found  # first: it ends the test where there is no torch

import posenc
import posenc.torch as pt
import torch
import torch.distributed as dist
from posenc import _ranks, _shards
from posenc.torch import distributed

ROOT = Path(os.environ.get("POSENC_ROOT", Path(__file__).parents[2]))
EXAMPLE = ROOT / "examples/python/08_long_context.py"
ROPE = posenc.Rope(dims=8)
ALIBI = posenc.Alibi(heads=4)
T5 = posenc.T5(heads=4, buckets=8, max_distance=16)
TOKENS = 32
KERPLE = posenc.prepare(posenc.Kerple(amplitudes=(1.0, 0.5, 0.2, 0.1), rates=(1.0, 2.0, 0.5, 1.0)), length=TOKENS // 2)
SWIN, GRID = posenc.Swin(heads=4, window=(6, 6)), torch.stack((torch.arange(TOKENS) // 6, torch.arange(TOKENS) % 6))
# name → form, its table, sinks, options, methods besides ring
CASES = {
    "no position, all keys": (None, False, False, {}, ("all-gather", "all-to-all")),
    "causal": (None, False, False, {"causal": True}, ("all-gather", "all-to-all")),
    "rope": (ROPE, False, False, {"causal": True}, ("all-gather", "all-to-all")),
    "rope, all keys": (ROPE, False, False, {}, ("all-gather",)),
    "rope, window": (ROPE, False, False, {"causal": True, "window": 5}, ("all-gather", "all-to-all")),
    "rope, wide window": (ROPE, False, False, {"causal": True, "window": 18}, ("all-gather",)),
    "rope, window on both sides": (ROPE, False, False, {"window": 6}, ("all-gather",)),
    "rope, chunks": (ROPE, False, False, {"causal": True, "chunk": 7}, ("all-gather", "all-to-all")),
    "rope, packed": (ROPE, False, False, {"causal": True, "packed": [5, 1, 19, 7]}, ("all-gather", "all-to-all")),
    "rope, packed, window": (ROPE, False, False, {"causal": True, "window": 4, "packed": [5, 1, 19, 7]}, ("all-gather",)),
    "packed, all keys": (None, False, False, {"packed": [20, 12]}, ("all-gather",)),
    "alibi": (ALIBI, False, False, {"causal": True}, ("all-gather",)),
    "alibi, window, packed": (ALIBI, False, False, {"causal": True, "window": 6, "packed": [9, 23]}, ("all-gather",)),
    "t5": (T5, True, False, {"scale": 1.0}, ("all-gather",)),
    "t5, causal, packed": (T5, True, False, {"scale": 1.0, "causal": True, "packed": [9, 23]}, ("all-gather",)),
    "sinks": (ROPE, False, True, {"causal": True}, ("all-gather",)),
    "sinks, window": (None, False, True, {"causal": True, "window": 7}, ("all-gather",)),
    "softcap": (ROPE, False, False, {"causal": True, "softcap": 2.0}, ("all-gather",)),
    "temperature": (ROPE, False, False, {"causal": True, "temperature": (0.1, 8, 0)}, ("all-gather",)),
}


def inputs(dtype=torch.float32, heads=4, key_heads=2):
    made = torch.Generator().manual_seed(5)
    randn = lambda *shape: torch.randn(*shape, generator=made).to(dtype)
    return randn(2, heads, TOKENS, 8), randn(2, key_heads, TOKENS, 8), randn(2, key_heads, TOKENS, 8), randn(2, heads, TOKENS, 8)


def learned(has_table, has_sinks):
    made = torch.Generator().manual_seed(6)
    table = torch.randn(8, 4, generator=made).requires_grad_() if has_table else None
    sinks = torch.randn(4, generator=made).requires_grad_() if has_sinks else None
    return table, sinks


def parameters_of(table, sinks):
    return [x for x in (table, sinks) if x is not None]


def whole(case, dtype=torch.float32, key_heads=2):
    """What one process computes: out and gradients of q, k, v and the parameters."""
    form, has_table, has_sinks, options, _ = CASES[case]
    q, k, v, d = inputs(dtype, key_heads=key_heads)
    table, sinks = learned(has_table, has_sinks)
    for x in (q, k, v):
        x.requires_grad_()
    out = pt.attention(q, k, v, form, table=table, sinks=sinks, **options)
    return out.detach(), *(x.detach() for x in torch.autograd.grad(out, [q, k, v, *parameters_of(table, sinks)], d))


def parts(case, method, split="zigzag", dtype=torch.float32, key_heads=2):
    """The same on all ranks, gathered."""
    form, has_table, has_sinks, options, _ = CASES[case]
    q, k, v, d = (distributed.shard(x, dim=2, split=split) for x in inputs(dtype, key_heads=key_heads))
    table, sinks = learned(has_table, has_sinks)
    for x in (q, k, v):
        x.requires_grad_()
    out = distributed.context_parallel_attention(q, k, v, form, method=method, split=split, table=table, sinks=sinks, **options)
    grads = torch.autograd.grad(out, [q, k, v, *parameters_of(table, sinks)], d)
    for x in grads[3:]:
        dist.all_reduce(x)
    return tuple(distributed.unshard(x.detach(), dim=2, split=split) for x in (out, *grads[:3])) + tuple(grads[3:])


def text_of_error(trial):
    try:
        trial()
        return "accepted"
    except (ValueError, TypeError) as error:
        return str(error)


# --- what the processes do ------------------------------------------------------------------------------------------------------


def matrix(rank, size):
    worst = {}
    for case, (*_, others) in CASES.items():
        for method in ("ring", *others):
            key_heads = 4 if method == "all-to-all" and size > 2 else 2  # it needs one for each rank
            found, wanted = parts(case, method, key_heads=key_heads), whole(case, key_heads=key_heads)
            worst[case, method] = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, wanted))
    for split in ("zigzag", "contiguous"):
        found = parts("rope, packed, window", "ring", split=split)
        worst["split", split] = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, whole("rope, packed, window")))
    again = [parts("alibi, window, packed", "ring") for _ in range(2)]
    same = all(torch.equal(a, b) for a, b in zip(*again))
    return worst, same


def other_types(rank, size):
    worst = {}
    for dtype, method in ((torch.bfloat16, "ring"), (torch.float16, "ring"), (torch.float64, "auto"), (torch.bfloat16, "all-gather")):
        found, wanted = parts("rope", method, dtype=dtype), whole("rope", dtype=dtype)
        assert found[0].dtype == dtype
        worst[str(dtype), method] = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, wanted))
    return worst


def given_positions(rank, size):
    q, k, v, _ = inputs()
    ids = torch.arange(TOKENS) * 3 + 1000
    wanted = pt.attention(q, k, v, ROPE, causal=True, query_positions=ids, key_positions=ids)
    found = {}
    for method in ("ring", "all-gather", "auto"):
        mine = [distributed.shard(x, dim=2) for x in (q, k, v)]
        out = distributed.context_parallel_attention(*mine, ROPE, method=method, causal=True, positions=distributed.shard(ids, dim=0))
        found[method] = float((distributed.unshard(out, dim=2) - wanted).abs().max())
    mine = [distributed.shard(x, dim=2) for x in (q, k, v)]
    for first in (2**31 - 3, 2**33, 2**53 - TOKENS):  # positions past 32 bits: RoPE depends on offsets alone
        far = torch.arange(TOKENS) + first
        out = distributed.context_parallel_attention(*mine, ROPE, method="ring", causal=True, positions=distributed.shard(far, dim=0))
        found[first] = float((distributed.unshard(out, dim=2) - pt.attention(q, k, v, ROPE, causal=True)).abs().max())
    bshd = [x.transpose(1, 2).contiguous() for x in mine]
    out = distributed.context_parallel_attention(*bshd, ROPE, method="ring", causal=True, order="bshd")
    found["bshd"] = float((distributed.unshard(out, dim=1).transpose(1, 2) - pt.attention(q, k, v, ROPE, causal=True)).abs().max())
    ids = distributed.position_ids(TOKENS, packed=[5, 1, 19, 7])
    sequences = torch.cat([torch.arange(n) for n in (5, 1, 19, 7)])
    assert torch.equal(distributed.unshard(ids, dim=0), sequences)
    return found


def gradients_of_shards(rank, size):
    """Each rank has a loss of its own over the whole sequence: unshard gives each shard the sum of them, shard each token its own."""
    x = torch.randn(2, TOKENS, 3, generator=torch.Generator().manual_seed(7)).requires_grad_()
    weights = torch.arange(TOKENS)[None, :, None] + 1.0
    for split in ("zigzag", "contiguous"):
        whole = distributed.unshard(distributed.shard(x, split=split), split=split)
        assert torch.equal(whole, x)
        (d,) = torch.autograd.grad(((rank + 1) * weights * whole).sum(), x)
        assert int((d[:, :, 0] != 0).sum()) == 2 * TOKENS // size
        dist.all_reduce(d)
        assert torch.equal(d, (size * (size + 1) / 2 * weights).expand_as(d))
    return "right"


def messages(rank, size):
    """How many blocks of keys, and of their gradients, a rank sends for options with contiguous shards of 8 tokens."""
    send, sent, found = _ranks.Carousel.send, [], {}
    _ranks.Carousel.send = lambda self, hops: (sent.append(hops), send(self, hops))
    for name, options in {"causal": {}, "window": {"window": 5}, "chunk": {"chunk": 8}, "packed": {"packed": [8] * 4}, "half": {"chunk": 16}}.items():
        q, k, v, _ = (distributed.shard(x, dim=2, split="contiguous").requires_grad_() for x in inputs())
        sent.clear()
        out = distributed.context_parallel_attention(q, k, v, ROPE, method="ring", split="contiguous", causal=True, **options)
        forward = len(sent)
        torch.autograd.grad(out.sum(), (q, k, v))
        found[name] = forward, len(sent) - forward
    _ranks.Carousel.send = send
    return found


def windows_by_position(rank, size):
    """Given positions of one axis: as in one process, windows and chunks go by them, whatever tokens have them."""
    made = torch.Generator().manual_seed(8)
    ids = {"three by three": torch.arange(TOKENS) * 3, "in any order": torch.randperm(TOKENS, generator=made), "a tree": torch.arange(TOKENS) // 2}
    found = {}
    for name, each in ids.items():
        for option in ({"window": 5}, {"chunk": 7}, {"window": 5, "chunk": 7}, {"window": 5, "causal": True, "packed": [5, 1, 19, 7]}):
            for form in (ROPE, None):
                q, k, v, d = inputs()
                for x in (q, k, v):
                    x.requires_grad_()
                out = pt.attention(q, k, v, form, query_positions=each, key_positions=each, **option)
                wanted = [out.detach(), *torch.autograd.grad(out, (q, k, v), d)]
                for method in ("ring", "all-gather", "all-to-all"):
                    mine = [distributed.shard(x.detach(), dim=2).requires_grad_() for x in (q, k, v)]
                    out = distributed.context_parallel_attention(*mine, form, method=method, positions=distributed.shard(each, dim=0), **option)
                    grads = torch.autograd.grad(out, mine, distributed.shard(d, dim=2))
                    parts = [distributed.unshard(x.detach(), dim=2) for x in (out, *grads)]
                    worst = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(parts, wanted))
                    found[name, str(option), str(form), method] = worst
    return found


def options_of_decoding(rank, size):
    """Sinks count once, and masks go by position, also for queries whose own keys several ranks have."""
    q, k, v, _ = inputs()
    begin, each = rank * TOKENS // size, TOKENS // size
    mine, sinks, found = slice(begin, begin + each), learned(False, True)[1].detach(), {}
    for queries in (1, 5, 12):
        last = q[:, :, -queries:].contiguous()
        for name, option in {"causal": {}, "sinks": {"sinks": sinks}, "window": {"window": 6}, "chunk": {"chunk": 7}}.items():
            wanted = posenc.attention(last, k, v, posenc.prepare(ALIBI), causal=True, **option)
            out = distributed.merged_attention(last, k[:, :, mine], v[:, :, mine], ALIBI, causal=True, query_positions=TOKENS - queries,
                                               key_positions=begin, **option)
            found[name, queries] = float((out - wanted).abs().max())
    return found


def sharded_cache(rank, size):
    """A part of the keys on each rank, contiguous or in pages; rank 0 may have none."""
    q, k, v, _ = inputs()
    last = q[:, :, -1:].contiguous()
    wanted = posenc.attention(last, k, v, posenc.prepare(ALIBI), causal=True)
    found = {}
    for name, first in (("equal", 0), ("none on rank 0", 1)):
        begin, end = (max(0, TOKENS * (rank - first + one) // (size - first)) for one in (0, 1))
        mine = slice(begin, end)
        place = {"query_positions": TOKENS - 1, "key_positions": begin}
        found[name] = distributed.merged_attention(last, k[:, :, mine], v[:, :, mine], ALIBI, **place)
        found[name, "bshd"] = distributed.merged_attention(*(x.transpose(1, 2).contiguous() for x in (last, k[:, :, mine], v[:, :, mine])), ALIBI,
                                                           order="bshd", **place).transpose(1, 2)
        page, pages = 4, max(1, -(-(end - begin) // 4))
        pools = [torch.full((2 * pages, 2, page, 8), float("nan")) for _ in range(2)]  # [pages, key heads, tokens of one, features]
        table = torch.arange(2 * pages).reshape(2, pages).flip(1).contiguous()
        for pool, x in zip(pools, (k, v)):
            for sequence in range(2):
                for token, row in enumerate(x[sequence, :, mine].unbind(1)):
                    pool[table[sequence, token // page], :, token % page] = row
        found[name, "pages"] = distributed.merged_attention(last, *pools, ALIBI, block_table=table, key_lengths=[end - begin] * 2, **place)
    worst = {case: float((out - wanted).abs().max()) for case, out in found.items()}
    worst.update(options_of_decoding(rank, size))
    same = torch.stack([_ranks.gather(out, None) for out in found.values()])
    mine = slice(rank * 8, rank * 8 + 8)
    call = lambda q, **options: distributed.merged_attention(q, k[:, :, mine], v[:, :, mine], ALIBI, **options)
    place = {"query_positions": TOKENS - 1, "key_positions": rank * 8}
    trials = {"queries": lambda: call(last if rank != 1 else last[:1], **place), "types": lambda: call(last if rank != 1 else last.double(), **place),
              "options": lambda: call(last, causal=rank == 1, **place), "names of options": lambda: call(last, **(place if rank != 1 else {})),
              "causal with several queries": lambda: call(q[:, :, -2:].contiguous(), causal=True, key_lengths=[8, 8], **place),
              "on rank 1": lambda: call(last, key_lengths=[9 if rank == 1 else 8] * 2, **place)}
    return worst, all(torch.equal(one, same[:, 0]) for one in same.unbind(1)), {name: text_of_error(trial) for name, trial in trials.items()}


def in_a_group(rank, size):
    group = dist.new_group([1, 3])
    q, k, v, _ = inputs()
    if rank not in (1, 3):
        try:
            distributed.shard(q, dim=2, group=group)
        except RuntimeError as error:
            return str(error)
    mine = [distributed.shard(x, dim=2, group=group) for x in (q, k, v)]
    out = distributed.context_parallel_attention(*mine, ROPE, group=group, method="ring", causal=True)
    return float((distributed.unshard(out, dim=2, group=group) - pt.attention(q, k, v, ROPE, causal=True)).abs().max())


def faults(rank, size):
    """Every rank says the same, and can go on."""
    q, k, v, _ = inputs()
    mine = [distributed.shard(x, dim=2) for x in (q, k, v)]
    call = distributed.context_parallel_attention
    odd = [x[:, :, :3] for x in mine]
    trials = {
        "shape": lambda: call(*(odd if rank == 1 else mine), ROPE, causal=True),
        "type": lambda: call(*(x.double() if rank == 1 else x for x in mine), ROPE, causal=True),
        "option": lambda: call(*mine, ROPE, causal=rank != 1),
        "form": lambda: call(*mine, ROPE if rank != 1 else posenc.Rope(dims=4), causal=True),
        "odd": lambda: call(*odd, ROPE, causal=True),
        "empty": lambda: call(*(x[:, :, :0] for x in mine), ROPE, causal=True),
        "empty on one": lambda: call(*(x[:, :, : 0 if rank == 1 else 16] for x in mine), ROPE, causal=True),
        "packed": lambda: call(*mine, ROPE, causal=True, packed=[3, 4]),
        "unknown": lambda: call(*mine, ROPE, causal=True, key_mask=torch.ones(2, 8)),
        "unknown on one": lambda: call(*mine, ROPE, causal=True, **({"key_mask": torch.ones(2, 8)} if rank == 1 else {})),
        "order": lambda: call(*mine, ROPE, order="sbhd"),
        "method": lambda: call(*mine, ROPE, method="tree"),
        "heads": lambda: call(*mine, ALIBI, method="all-to-all"),
        "rotations by head": lambda: call(*mine, posenc.Fope(heads=4, dims=8), method="all-to-all"),
        "counts": lambda: call(*mine, posenc.Cope(rows=16), table=torch.zeros(16, 8), method="ring"),
        "positions on one": lambda: call(*mine, ROPE, positions=torch.arange(16) if rank == 1 else None),
        "positions too few": lambda: call(*mine, ROPE, positions=torch.arange(15)),
        "positions too large": lambda: call(*mine, ROPE, positions=torch.arange(16) + (2**53 - 15 if rank == 1 else 0)),
        **{f"too far, {method}": lambda method=method: call(*mine, KERPLE, causal=True, method=method) for method in ("ring", "all-gather")},
        **{f"too far on one, {method}": lambda method=method: call(*mine, SWIN, causal=True, method=method, table=torch.zeros(121, 4),
                                                                   positions=GRID[:, :16] if rank == 0 else 100 * GRID[:, :16])
           for method in ("ring", "all-gather")},
        "shard": lambda: distributed.shard(q[:, :, :7], dim=2),
        "split": lambda: distributed.shard(q, dim=2, split="stripes"),
    }
    said = {name: text_of_error(trial) for name, trial in trials.items()}
    call(*mine, ROPE, causal=True)
    return said


def peak_of(call):
    """The most bytes that tensors made in a call had at once."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as found:
        kept = call()
    events = [one for one in found.profiler.kineto_results.events() if one.name() == "[memory]"]
    when = lambda one: one.start_ns() if hasattr(one, "start_ns") else one.start_us()
    now = most = 0
    for one in sorted(events, key=when):
        now += one.nbytes()
        most = max(most, now)
    return most, kept


def memory(rank, size):
    """Peaks of forward and backward, in bytes of a shard's keys and values. Two shards of 256 tokens a rank, whatever the ranks."""
    made = torch.Generator().manual_seed(rank)
    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        q, k, v, d = (torch.randn(1, 2, 512, 64, generator=made).to(dtype).requires_grad_() for _ in range(4))
        shard = 2 * k.numel() * k.element_size()
        call = lambda method: distributed.context_parallel_attention(q, k, v, ROPE, causal=True, method=method, check=False)
        for method in ("ring", "all-gather"):
            forward, out = peak_of(lambda: call(method))
            backward, _ = peak_of(lambda: torch.autograd.grad(out, (q, k, v), d))
            found[method, str(dtype)] = forward / shard, backward / shard
    return found


class Layer(torch.nn.Module):
    """A layer with RoPE and sinks, over this rank's tokens; or, without ranks, over all."""

    def __init__(self):
        super().__init__()
        self.project, self.mix = torch.nn.Linear(16, 64), torch.nn.Linear(32, 16)
        self.sinks = torch.nn.Parameter(torch.zeros(4))

    def forward(self, x, method=None):
        q, k, v = (one.unflatten(-1, (-1, 8)) for one in self.project(x).split((32, 16, 16), -1))
        if method is None:
            out = pt.attention(q, k, v, ROPE, causal=True, sinks=self.sinks, order="bshd")
        else:
            out = distributed.context_parallel_attention(q, k, v, ROPE, causal=True, sinks=self.sinks, order="bshd", method=method)
        return self.mix(out.flatten(-2))


def trained(wrap, rank, size, method="ring"):
    """Two steps of a layer in DDP or FSDP, and of one process that has the whole sequence: (worst difference of parameters, of the loss)."""
    made = torch.Generator().manual_seed(3)
    x, y = torch.randn(2, 2, TOKENS, 16, generator=made)
    torch.manual_seed(0)
    alone = Layer()
    torch.manual_seed(0)
    ours = wrap(Layer())
    mine, wanted = distributed.shard(x), distributed.shard(y)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.5) for one in (alone, ours)]
    for _ in range(2):
        losses = [(alone(x) - y).pow(2).mean(), (ours(mine, method) - wanted).pow(2).mean()]  # DDP takes the mean of the ranks' gradients
        for loss, optimizer in zip(losses, optimizers):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    total = losses[1].detach()
    dist.all_reduce(total)
    with ours.summon_full_params(ours) if hasattr(ours, "summon_full_params") else contextlib.nullcontext():
        worst = max(float((a - b).abs().max()) for a, b in zip(alone.parameters(), ours.module.parameters()))
    return worst, abs(float(losses[0] - total / size))


def in_ddp(rank, size):
    return {method: trained(torch.nn.parallel.DistributedDataParallel, rank, size, method) for method in ("ring", "all-gather")}


def in_fsdp(rank, size):
    """Each rank has a part of the parameters. None: this torch has no FSDP for CPUs."""
    if not pt.HAS_OPERATORS:
        return None
    from torch.distributed.fsdp import FullyShardedDataParallel

    wrap = lambda one: FullyShardedDataParallel(one, device_id=torch.device("cpu"), use_orig_params=True)
    return {method: trained(wrap, rank, size, method) for method in ("ring", "all-gather")}


def has_inductor():
    """Whether this machine has what torch compiles with: a compiler, headers, setuptools."""
    try:
        torch.compile(lambda x: x + 1)(torch.ones(3))
        return True
    except Exception:
        return False


def compiled(rank, size):
    """One operator in the graph, for each method; None: this torch has no operators."""
    if not pt.HAS_OPERATORS:
        return None
    found = {}
    backends = [("aot_eager", method) for method in ("ring", "all-gather", "all-to-all")] + [("inductor", "ring")] * has_inductor()
    for backend, method in backends:
        def call(q, k, v):
            return distributed.context_parallel_attention(q, k, v, ROPE, method=method, causal=True) * 2

        results = []
        for one in (call, torch.compile(call, fullgraph=True, backend=backend)):
            q, k, v, d = (distributed.shard(x, dim=2).requires_grad_() for x in inputs())
            out = one(q, k, v)
            results.append((out.detach(), *torch.autograd.grad(out, (q, k, v), d.detach())))
        found[backend, method] = all(torch.equal(a, b) for a, b in zip(*results))
    return found


TIMEOUT = 5  # seconds, of a group in which a rank ends or hangs


def without_rank_1(rank, call, when, action):
    """Calls with a group that times out, of which rank 1 does something else before its call, or at its first step, when it has agreed and
    begun to send. What the others raise, and after how many seconds."""
    group = briefly(TIMEOUT)
    mine = [distributed.shard(x, dim=2, group=group).requires_grad_() for x in inputs()[:3]]
    prepared = call(mine, group)
    turn = _ranks.Carousel.turn

    def changed(self):
        action()
        turn(self)

    if rank == 1 and when == "before":
        action()
    elif rank == 1:
        _ranks.Carousel.turn = changed
    begin = time.monotonic()
    try:
        prepared()
    except RuntimeError as error:
        return str(error), time.monotonic() - begin
    return "accepted", 0


def end():
    os._exit(7)


def hang():
    """Until the others have found out: they can do so by the timeout alone."""
    until_found(dist.get_world_size() - 1)
    end()


def attends(method, check=True):
    return lambda mine, group: lambda: distributed.context_parallel_attention(*mine, ROPE, causal=True, method=method, group=group, check=check)


def decodes(mine, group):
    q, k, v = (x.detach() for x in mine)
    return lambda: distributed.merged_attention(q[:, :, :1].contiguous(), k, v, ROPE, query_positions=TOKENS, key_positions=0, group=group, check=False)


def differentiates(mine, group):
    out = attends("ring")(mine, group)()
    return lambda: out.sum().backward()


def ends_before(rank, size):
    return without_rank_1(rank, attends("auto"), "before", end)


def ends_before_all_to_all(rank, size):
    return without_rank_1(rank, attends("all-to-all", check=False), "before", end)


def ends_before_all_gather(rank, size):
    return without_rank_1(rank, attends("all-gather", check=False), "before", end)


def ends_before_decoding(rank, size):
    return without_rank_1(rank, decodes, "before", end)


def ends_within(rank, size):
    return without_rank_1(rank, attends("ring"), "within", end)


def hangs_within(rank, size):
    return without_rank_1(rank, attends("ring"), "within", hang)


def ends_in_backward(rank, size):
    return without_rank_1(rank, differentiates, "within", end)


TOGETHER = {2: [matrix, other_types, given_positions, gradients_of_shards, windows_by_position, faults, memory, in_ddp, in_fsdp, compiled],
            4: [matrix, sharded_cache, in_a_group, messages, memory]}
FOUND = {}


def found_by(work, size):
    """What each rank returned. Everything that a group of one size does is done by the same processes."""
    if size not in FOUND:
        FOUND[size] = ranks(TOGETHER[size], size)
    return [None if one is None else one[work.__name__] for one in FOUND[size]]


class Distributed(unittest.TestCase):
    def check(self, worst, bound):
        for case, error in worst.items():
            self.assertLess(error, bound, (case, worst))

    def test_every_case_on_two_and_four_ranks(self):
        for size in (2, 4):
            for found in found_by(matrix, size):
                self.assertIsInstance(found, tuple, found)
                self.check(found[0], 2e-6)
                self.assertTrue(found[1], "not the same bits in a second run")

    def test_other_types(self):
        for found in found_by(other_types, 2):
            self.assertIsInstance(found, dict, found)
            for (dtype, method), error in found.items():
                self.assertLess(error, {"torch.bfloat16": 2e-2, "torch.float16": 2e-3, "torch.float64": 1e-14}[dtype], (dtype, method))

    def test_given_positions_and_orders(self):
        for found in found_by(given_positions, 2):
            self.assertIsInstance(found, dict, found)
            self.check(found, 2e-6)

    def test_shard_and_unshard_are_differentiable(self):
        self.assertEqual(found_by(gradients_of_shards, 2), ["right"] * 2)

    def test_messages_that_no_query_needs_are_not_sent(self):
        """Forward; backward with the gradients of keys, which travel home. Two chunks of two shards: their second shard needs the first."""
        for found in found_by(messages, 4):
            self.assertEqual(found, {"causal": (3, 7), "window": (1, 3), "chunk": (0, 0), "packed": (0, 0), "half": (1, 3)})

    def test_windows_by_given_positions(self):
        for found in found_by(windows_by_position, 2):
            self.assertIsInstance(found, dict, found)
            self.assertEqual(len(found), 72)
            self.check(found, 4e-6)

    def test_a_cache_split_between_ranks(self):
        every = found_by(sharded_cache, 4)
        for found in every:
            self.assertIsInstance(found, tuple, found)
            self.assertEqual(len(found[0]), 18)
            self.check(found[0], 1e-6)
            self.assertTrue(found[1], "ranks have different bits")
            for name, text in found[2].items():
                self.assertIn(name, text)
                self.assertEqual(text, every[0][2][name])

    def test_a_group_of_some_ranks(self):
        found = found_by(in_a_group, 4)
        for rank in (1, 3):
            self.assertIsInstance(found[rank], float, found)
            self.assertLess(found[rank], 2e-6)
        self.assertEqual([found[0], found[2]], ["shard: this process is not in the group"] * 2)

    def test_memory_of_a_rank(self):
        """As docs/guide/scaling.md has it, in shards of keys and values: q is half of one here."""
        for size in (2, 4):
            for found in found_by(memory, size):
                self.assertIsInstance(found, dict, found)
                for dtype, wide in (("torch.float32", 1), ("torch.bfloat16", 2)):  # how many times a float32 is larger
                    forward, backward = found["ring", dtype]
                    sums = 3 * 4 / (2 * 64 * 4) * wide  # three logsumexps, a float32 for each 64 features
                    # The message at hand and the one in flight; out in float32, a part of it, and for 16 bits the rounded result.
                    self.assertLessEqual(forward, 2 + 0.5 * wide + 0.5 + (0.5 if wide > 1 else 0) + sums)
                    self.assertGreater(forward, 2)
                    # The same; the gradients of both in float32; those of this step; d_q in float32 and a part; results.
                    self.assertLessEqual(backward, 2 + 2 * wide + 1 + 0.5 * wide + 0.5 + 0.5 + sums)
                    self.assertGreater(found["all-gather", dtype][0], size)  # all keys: more with more ranks
        self.assertGreater(found_by(memory, 4)[0]["all-gather", "torch.float32"][0], 2 + 0.5 + 0.5 + 3 / 128)  # what a ring may not

    def test_a_layer_in_ddp(self):
        for found in found_by(in_ddp, 2):
            self.assertIsInstance(found, dict, found)
            for method, (parameters, loss) in found.items():
                self.assertLess(parameters, 2e-6, method)
                self.assertLess(loss, 2e-6, method)

    def test_a_layer_in_fsdp(self):
        for found in found_by(in_fsdp, 2):
            if found is None:
                self.skipTest("this torch has no FSDP for CPUs (2.4)")
            self.assertIsInstance(found, dict, found)
            for method, (parameters, loss) in found.items():
                self.assertLess(parameters, 2e-6, method)
                self.assertLess(loss, 2e-6, method)

    def test_compiled_it_is_an_operator(self):
        for found in found_by(compiled, 2):
            if found is None:
                self.skipTest("this torch has no operators (2.4)")
            self.assertGreaterEqual(len(found), 3)
            self.assertEqual(set(found.values()), {True}, found)

    def test_faults_are_the_same_error_on_every_rank(self):
        first, second = found_by(faults, 2)
        self.assertIsInstance(first, dict, first)
        wanted = {
            "shape": "the ranks disagree about shapes: q [2, 4, 16, 8], k [2, 2, 16, 8], v [2, 2, 16, 8] on rank 0, q [2, 4, 3, 8]",
            "type": "the ranks disagree about types: q torch.float32", "option": 'the ranks disagree about options: {"causal": true, ',
            "form": "the ranks disagree about form:", "odd": "expected a positive number of tokens that 4 divides (zigzag, 2 ranks), got 6",
            "empty": "got 0", "empty on one": "the ranks disagree about shapes",
            "packed": "expected positive lengths that add up to the 32 tokens of all ranks, got a sum of 7",
            "unknown": "there is no option 'key_mask' over several ranks", "unknown on one": "the ranks disagree about options",
            "method": "method must be one of auto, ring, all-to-all, all-gather, got 'tree'", "heads": "choose ring or all-gather",
            "rotations by head": "choose ring or all-gather", "counts": "cope counts over all keys, which a ring does not have at once",
            "too far, ring": "is outside -15 to 15, which the form was prepared for (on rank 0)", "too far, all-gather": "outside -15 to 15",
            "too far on one, ring": "is outside -5 to 5, which the form was prepared for (on rank 0)", "too far on one, all-gather": "outside -5 to 5",
            "positions on one": "the ranks disagree about positions: none on rank 0, [16] torch.int64",
            "positions too few": "expected a position for each of the 16 tokens of a rank, got 15",
            "positions too large": "positions must lie between -2^53 and 2^53, got 9007199254740992",
            "order": 'order must be "bhsd" or "bshd", got \'sbhd\'', "shard": "got 7", "split": "got 'stripes'"}
        self.assertEqual(set(first), set(wanted))
        for name, text in wanted.items():
            self.assertIn(text, first[name])
            self.assertEqual(first[name], second[name])

    def test_a_rank_that_ends_or_hangs_is_an_error_on_the_others(self):
        """On every other rank, within the group's timeout; none of them exits before all have found out."""
        for work, size in ((ends_before, 2), (ends_before_all_to_all, 2), (ends_before_all_gather, 4), (ends_before_decoding, 4), (ends_within, 4),
                           (hangs_within, 4), (ends_in_backward, 4)):
            found = ranks([work], size, ends=size - 1)
            for rank in {*range(size)} - {1}:
                self.assertIsInstance(found[rank], dict, (work, found))
                self.assertIsInstance(found[rank][work.__name__], tuple, found)
                said, seconds = found[rank][work.__name__]
                self.assertIn("a rank ended, or did not answer within the group's timeout", said, (work, rank))
                self.assertLess(seconds, TIMEOUT + 20, (work, rank))  # the rest is for a machine with other work; the rank that hangs waits for longer

    def test_steps_that_no_query_needs_are_skipped(self):
        steps = lambda split, window, packed=None: _shards.steps_of(_shards.layout_of(1024, 8, split, packed, 0), True, window)
        self.assertEqual(steps("contiguous", 0), tuple(range(8)))
        self.assertEqual(steps("contiguous", 100), (0, 1))
        self.assertEqual(steps("contiguous", 129), (0, 1))
        self.assertEqual(steps("contiguous", 130), (0, 1, 2))
        self.assertEqual(steps("zigzag", 64), (0, 1, 7))
        self.assertEqual(steps("contiguous", 0, (128,) * 8), (0,))

    def test_sequences_past_32_bits_are_laid_out_without_their_tokens(self):
        tokens, size = 2**36, 4
        layout = _shards.layout_of(tokens, size, "zigzag", (2**35 - 5, 2**35 + 5), 0)
        self.assertEqual(sum(piece.size for pieces in layout for piece in pieces), tokens)
        last = layout[0][-1]
        self.assertEqual((last.token + last.size, last.position + last.size, last.sequence), (tokens, 2**35 + 5, 2**35 - 5))
        (call,) = _shards.calls_of(layout[0][-1:], layout[3][-1:], True, 0)
        self.assertEqual((call.query_position, call.key_position), (2**35 + 5 - 2**33, 5))

    def test_the_example_needs_all_ranks(self):
        """One process that has the whole sequence is refused the memory. documents_test runs it with four."""
        with tempfile.TemporaryDirectory() as folder:
            one = f"import sys, torch; sys.path.insert(0, {str(EXAMPLE.parent)!r}); example = __import__('08_long_context')\n" \
                  f"torch.distributed.init_process_group('gloo', init_method='file://{folder}/store', rank=0, world_size=1); example.train()"
            made = subprocess.run([sys.executable, "-B", "-W", "ignore", "-c", one], capture_output=True, text=True,
                                  env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"})
        self.assertNotEqual(made.returncode, 0, made.stdout)
        self.assertRegex(made.stderr, "allocate")
        self.assertNotIn("the loss falls", made.stdout)

    def test_the_example_by_torchrun(self):
        """By the command of docs/guide/scaling.md."""
        guide = (ROOT / "docs/guide/scaling.md").read_text("utf-8")
        (command,) = (line for line in guide.splitlines() if line.startswith("torchrun "))
        _, *arguments = command.partition("#")[0].split()
        self.assertEqual(ROOT / arguments[-1], EXAMPLE)
        for _ in range(3):  # a port that was free may be taken a moment later
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            made = subprocess.run([sys.executable, "-B", "-W", "ignore", "-m", "torch.distributed.run", "--master_addr", "127.0.0.1", "--master_port",
                                   str(port), *arguments], capture_output=True, text=True, cwd=ROOT,
                                  env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"})
            if not re.search("EADDRINUSE|[Aa]ddress already in use", made.stderr):
                break
        if "without libuv" in made.stderr:
            self.skipTest("this torchrun wants a store that its torch was built without")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("4 ranks, 65536 tokens: the loss falls: True", made.stdout + made.stderr)

    def test_without_a_process_group(self):
        x = torch.zeros(1, 1, 4, 8)
        for call in (lambda: distributed.context_parallel_attention(x, x, x), lambda: distributed.shard(x), lambda: distributed.position_ids(4)):
            with self.assertRaisesRegex(RuntimeError, "torch.distributed is not initialized"):
                call()


if __name__ == "__main__":
    unittest.main()

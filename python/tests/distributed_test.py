"""posenc.torch.distributed: two and four processes on the loopback give what one process gives, with gradients."""

import os
import pickle
import sys
import tempfile
import unittest

if os.environ.get("POSENC_SANITIZE"):
    print("not with a sanitizer: torch is not built for it")
    sys.exit(77)
try:
    import torch
    import torch.distributed as dist
except ImportError:
    print("torch is not installed: python3-torch")
    sys.exit(77)
if not dist.is_available():
    print("this torch has no torch.distributed")
    sys.exit(77)
import datetime
import traceback
import warnings

import torch.multiprocessing as mp

warnings.simplefilter("ignore")  # torch's own
import posenc
import posenc.torch as pt
from posenc import torch_distributed
from posenc.torch import distributed

ROPE = posenc.Rope(dims=8)
ALIBI = posenc.Alibi(heads=4)
T5 = posenc.T5(heads=4, buckets=8, max_distance=16)
TOKENS = 32
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


def whole(case, dtype=torch.float32):
    """What one process computes: out and gradients of q, k, v and the parameters."""
    form, has_table, has_sinks, options, _ = CASES[case]
    q, k, v, d = inputs(dtype)
    table, sinks = learned(has_table, has_sinks)
    for x in (q, k, v):
        x.requires_grad_()
    out = pt.attention(q, k, v, form, table=table, sinks=sinks, **options)
    return out.detach(), *(x.detach() for x in torch.autograd.grad(out, [q, k, v, *parameters_of(table, sinks)], d))


def parts(case, method, split="zigzag", dtype=torch.float32):
    """The same on all ranks, gathered."""
    form, has_table, has_sinks, options, _ = CASES[case]
    q, k, v, d = (distributed.shard(x, dim=2, split=split) for x in inputs(dtype))
    table, sinks = learned(has_table, has_sinks)
    for x in (q, k, v):
        x.requires_grad_()
    out = distributed.context_parallel_attention(q, k, v, form, method=method, split=split, table=table, sinks=sinks, **options)
    grads = torch.autograd.grad(out, [q, k, v, *parameters_of(table, sinks)], d)
    for x in grads[3:]:
        dist.all_reduce(x)
    return tuple(distributed.unshard(x.detach(), dim=2, split=split) for x in (out, *grads[:3])) + tuple(grads[3:])


# --- what the processes do ------------------------------------------------------------------------------------------------------


def matrix(rank, size):
    worst = {}
    for case, (*_, others) in CASES.items():
        for method in ("ring", *others):
            if method == "all-to-all" and size > 2:  # two key heads
                continue
            found, wanted = parts(case, method), whole(case)
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
    far = torch.arange(TOKENS) + 2**31  # positions past 32 bits: RoPE depends on distances alone
    mine = [distributed.shard(x, dim=2) for x in (q, k, v)]
    out = distributed.context_parallel_attention(*mine, ROPE, method="ring", causal=True, positions=distributed.shard(far, dim=0))
    found["2^31"] = float((distributed.unshard(out, dim=2) - pt.attention(q, k, v, ROPE, causal=True)).abs().max())
    bshd = [x.transpose(1, 2).contiguous() for x in mine]
    out = distributed.context_parallel_attention(*bshd, ROPE, method="ring", causal=True, order="bshd")
    found["bshd"] = float((distributed.unshard(out, dim=1).transpose(1, 2) - pt.attention(q, k, v, ROPE, causal=True)).abs().max())
    ids = distributed.position_ids(TOKENS, packed=[5, 1, 19, 7])
    sequences = torch.cat([torch.arange(n) for n in (5, 1, 19, 7)])
    assert torch.equal(distributed.unshard(ids, dim=0), sequences)
    return found


def sharded_cache(rank, size):
    q, k, v, _ = inputs()
    wanted = posenc.attention(q[:, :, -1:].contiguous(), k, v, posenc.prepare(ALIBI), causal=True)
    n = TOKENS // size
    mine = slice(rank * n, (rank + 1) * n)
    out = distributed.merged_attention(q[:, :, -1:], k[:, :, mine], v[:, :, mine], ALIBI, query_positions=TOKENS - 1, key_positions=rank * n)
    same = [torch.empty_like(out) for _ in range(size)]
    dist.all_gather(same, out)
    return float((out - wanted).abs().max()), all(torch.equal(x, out) for x in same)


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
        "packed": lambda: call(*mine, ROPE, causal=True, packed=[3, 4]),
        "unknown": lambda: call(*mine, ROPE, causal=True, key_mask=torch.ones(2, 8)),
        "method": lambda: call(*mine, ROPE, method="tree"),
        "heads": lambda: call(*mine, ALIBI, method="all-to-all"),
        "positions": lambda: call(*mine, ROPE, window=3, positions=torch.arange(mine[0].shape[2])),
        "shard": lambda: distributed.shard(q[:, :, :7], dim=2),
        "split": lambda: distributed.shard(q, dim=2, split="stripes"),
    }
    said = {}
    for name, trial in trials.items():
        try:
            trial()
            said[name] = "accepted"
        except (ValueError, TypeError) as error:
            said[name] = str(error)
    call(*mine, ROPE, causal=True)
    return said


def a_rank_ends(rank, size):
    if rank == 1:
        os._exit(7)
    q, k, v, _ = inputs()
    mine = [distributed.shard(x, dim=2) for x in (q, k, v)]
    try:
        distributed.context_parallel_attention(*mine, ROPE, causal=True)
    except RuntimeError as error:
        return str(error)
    return "accepted"


def run_rank(rank, size, work, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size, timeout=datetime.timedelta(seconds=60))
    try:
        result = globals()[work](rank, size)
    except Exception:
        result = traceback.format_exc()
    with open(f"{folder}/{rank}", "wb") as file:
        pickle.dump(result, file)
    if work != "a_rank_ends":
        dist.destroy_process_group()


def ranks(work, size):
    """What each rank returned; None for one that ended."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        context = mp.get_context("spawn")
        processes = [context.Process(target=run_rank, args=(rank, size, work, folder)) for rank in range(size)]
        for one in processes:
            one.start()
        for one in processes:
            one.join(120)
            if one.is_alive():
                one.kill()
        found = []
        for rank in range(size):
            path = f"{folder}/{rank}"
            found.append(pickle.load(open(path, "rb")) if os.path.exists(path) else None)
        return found


class Distributed(unittest.TestCase):
    def check(self, worst, bound):
        for case, error in worst.items():
            self.assertLess(error, bound, (case, worst))

    def test_every_case_on_two_and_four_ranks(self):
        for size in (2, 4):
            for found in ranks("matrix", size):
                self.assertIsInstance(found, tuple, found)
                self.check(found[0], 2e-6)
                self.assertTrue(found[1], "not the same bits in a second run")

    def test_other_types(self):
        for found in ranks("other_types", 2):
            self.assertIsInstance(found, dict, found)
            for (dtype, method), error in found.items():
                self.assertLess(error, {"torch.bfloat16": 2e-2, "torch.float16": 2e-3, "torch.float64": 1e-14}[dtype], (dtype, method))

    def test_given_positions_and_orders(self):
        for found in ranks("given_positions", 2):
            self.assertIsInstance(found, dict, found)
            self.check(found, 2e-6)

    def test_a_cache_split_between_ranks(self):
        for found in ranks("sharded_cache", 4):
            self.assertIsInstance(found, tuple, found)
            self.assertLess(found[0], 1e-6)
            self.assertTrue(found[1], "ranks have different bits")

    def test_a_group_of_some_ranks(self):
        found = ranks("in_a_group", 4)
        for rank in (1, 3):
            self.assertIsInstance(found[rank], float, found)
            self.assertLess(found[rank], 2e-6)
        self.assertEqual([found[0], found[2]], ["shard: this process is not in the group"] * 2)

    def test_faults_are_the_same_error_on_every_rank(self):
        first, second = ranks("faults", 2)
        self.assertIsInstance(first, dict, first)
        wanted = {
            "shape": "the ranks disagree about shapes: q [2, 4, 16, 8], k [2, 2, 16, 8], v [2, 2, 16, 8] on rank 0, q [2, 4, 3, 8]",
            "type": "the ranks disagree about types: q torch.float32", "option": "the ranks disagree about options: [('causal', True)]",
            "form": "the ranks disagree about form:", "odd": "expected a positive number of tokens that 4 divides (zigzag, 2 ranks), got 6",
            "empty": "got 0", "packed": "expected positive lengths that add up to the 32 tokens of all ranks, got a sum of 7",
            "unknown": "there is no option 'key_mask' over several ranks", "method": "method must be one of auto, ring, all-to-all, all-gather, got 'tree'",
            "heads": "choose ring or all-gather", "positions": "cannot be combined with positions", "shard": "got 7", "split": "got 'stripes'"}
        self.assertEqual(set(first), set(wanted))
        for name, text in wanted.items():
            self.assertIn(text, first[name])
            self.assertEqual(first[name], second[name])

    def test_a_rank_that_ends_is_an_error_on_the_others(self):
        found = ranks("a_rank_ends", 2)
        self.assertIsNone(found[1])
        self.assertNotEqual(found[0], "accepted")
        self.assertNotIn("Traceback", found[0])

    def test_steps_that_no_query_needs_are_skipped(self):
        steps = lambda split, window, packed=None: torch_distributed._steps(torch_distributed._layout(1024, 8, split, packed, 0), True, window)
        self.assertEqual(steps("contiguous", 0), tuple(range(8)))
        self.assertEqual(steps("contiguous", 100), (0, 1))
        self.assertEqual(steps("contiguous", 129), (0, 1))
        self.assertEqual(steps("contiguous", 130), (0, 1, 2))
        self.assertEqual(steps("zigzag", 64), (0, 1, 7))
        self.assertEqual(steps("contiguous", 0, (128,) * 8), (0,))

    def test_merging_by_torch_is_merge(self):
        made = torch.Generator().manual_seed(1)
        out, other = torch.randn(2, 2, 3, 5, 8, generator=made)
        sums, other_sums = torch.randn(2, 2, 3, 5, generator=made) * 4
        sums[0, 0, 0] = other_sums[0, 1, 0] = -float("inf")
        sums[1, 0, 2] = other_sums[1, 0, 2] = -float("inf")
        out[sums == -float("inf")] = 0
        other[other_sums == -float("inf")] = 0
        for dtype in (torch.float32, torch.bfloat16):
            wanted = posenc.merge(a := out.clone(), sa := sums.clone(), other.to(dtype), other_sums)
            torch_distributed._merge_by_torch(b := out.clone(), sb := sums.clone(), other.to(dtype), other_sums)
            self.assertIs(wanted, a)
            self.assertTrue(torch.allclose(a, b, rtol=1e-6, atol=1e-6))
            self.assertTrue(torch.allclose(sa, sb, rtol=1e-6, atol=1e-6))
            self.assertTrue(torch.equal(b[0, 1, 0], out[0, 1, 0]))

    def test_without_a_process_group(self):
        x = torch.zeros(1, 1, 4, 8)
        for call in (lambda: distributed.context_parallel_attention(x, x, x), lambda: distributed.shard(x), lambda: distributed.position_ids(4)):
            with self.assertRaisesRegex(RuntimeError, "torch.distributed is not initialized"):
                call()


if __name__ == "__main__":
    unittest.main()

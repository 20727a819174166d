"""posenc.torch.distributed on one GPU: a group of one rank over NCCL, with torch.compile, DDP and FSDP; and two processes over gloo."""

import os
import sys
import tempfile
import unittest

from ranks import ranks  # first: it ends the test where there is no torch

import torch

if not torch.cuda.is_available():
    print("there is no GPU")
    sys.exit(77)
import posenc
import posenc.torch as pt
import torch.distributed as dist
from posenc.torch import distributed

if not pt.HAS_OPERATORS:
    print("this torch has no operators (2.4)")
    sys.exit(77)
ROPE, ALIBI = posenc.Rope(dims=64), posenc.Alibi(heads=4)
TOKENS = 512


def inputs(dtype=torch.bfloat16):
    made = torch.Generator().manual_seed(5)
    return [torch.randn(1, heads, TOKENS, 64, generator=made).to("cuda", dtype).requires_grad_() for heads in (4, 2, 2, 4)]


def worst(found, wanted):
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, wanted))


def whole(form):
    q, k, v, d = inputs()
    out = pt.attention(q, k, v, form, causal=True)
    return [out.detach(), *torch.autograd.grad(out, (q, k, v), d.detach())]


def two_processes(rank, size):
    """Both on the same GPU: form and method → worst relative error."""
    found = {}
    for name, form, methods in (("rope", ROPE, ("ring", "all-gather", "all-to-all")), ("alibi", ALIBI, ("ring", "all-gather"))):
        wanted = whole(form)
        for method in methods:
            q, k, v, d = (distributed.shard(x.detach(), dim=2).requires_grad_() for x in inputs())
            out = distributed.context_parallel_attention(q, k, v, form, method=method, causal=True)
            made = [out.detach(), *torch.autograd.grad(out, (q, k, v), d.detach())]
            found[name, method] = worst([distributed.unshard(x, dim=2) for x in made], wanted)
    return found


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.mix = torch.nn.Linear(64, 4 * 64 + 2 * 2 * 64), torch.nn.Linear(4 * 64, 64)

    def forward(self, x):
        q, k, v = (one.unflatten(-1, (-1, 64)) for one in self.project(x).split((256, 128, 128), -1))
        return self.mix(distributed.context_parallel_attention(q, k, v, ROPE, causal=True, order="bshd", method="ring").flatten(-2))


class OneRank(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.cuda.set_device(0)
        cls.folder = tempfile.TemporaryDirectory()
        dist.init_process_group("nccl", init_method=f"file://{cls.folder.name}/store", rank=0, world_size=1)

    @classmethod
    def tearDownClass(cls):
        dist.destroy_process_group()
        cls.folder.cleanup()

    def test_every_method_over_nccl(self):
        for form in (ROPE, ALIBI, None):
            wanted = whole(form)
            for method in ("ring", "all-gather") if form is ALIBI else ("ring", "all-gather", "all-to-all"):
                q, k, v, d = inputs()
                out = distributed.context_parallel_attention(q, k, v, form, method=method, causal=True)
                self.assertLess(worst([out.detach(), *torch.autograd.grad(out, (q, k, v), d.detach())], wanted), 2e-2, (form, method))

    def test_compiled_with_inductor(self):
        for group in (None, dist.group.WORLD):
            def call(q, k, v):
                return distributed.context_parallel_attention(q, k, v, ROPE, method="ring", causal=True, group=group) * 2

            results = []
            for one in (call, torch.compile(call, fullgraph=True)):
                q, k, v, d = inputs()
                out = one(q, k, v)
                results.append([out.detach(), *torch.autograd.grad(out, (q, k, v), d.detach())])
            self.assertLess(worst(*results), 1e-6)

    def test_in_ddp_and_fsdp(self):
        from torch.distributed.fsdp import fully_shard

        x = torch.randn(1, TOKENS, 64, device="cuda", dtype=torch.bfloat16)
        gradients = []
        for wrap in (lambda one: one, torch.nn.parallel.DistributedDataParallel, fully_shard, torch.compile):
            torch.manual_seed(0)
            layer = wrap(Layer().to("cuda", torch.bfloat16))
            layer(x).float().pow(2).mean().backward()
            gradients.append([(one.grad.full_tensor() if hasattr(one.grad, "full_tensor") else one.grad).float() for one in layer.parameters()])
        for found in gradients[1:]:
            self.assertLess(worst(found, gradients[0]), 1e-2)


class TwoProcesses(unittest.TestCase):
    def test_on_the_same_gpu_over_gloo(self):
        for found in ranks([two_processes], 2):
            self.assertIsInstance(found["two_processes"], dict, found["two_processes"])
            for case, error in found["two_processes"].items():
                self.assertLess(error, 2e-2, case)


if __name__ == "__main__":
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    unittest.main()

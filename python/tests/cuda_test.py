"""Tensors on a GPU: in place on torch's own stream, the same bytes as on the host, gradients."""

import os
import sys
import unittest

if os.environ.get("POSENC_SANITIZE"):
    sys.exit(77)
try:
    import torch
except ImportError:
    print("torch is not installed: python3-torch")
    sys.exit(77)
import posenc

if not torch.cuda.is_available() or posenc.backends()["cuda"]:
    print("no GPU that torch and posenc can use")
    sys.exit(77)
import posenc.torch as pt

ROPE = posenc.Rope(dims=64, scaling=posenc.YarnScaling(factor=4))


class Cuda(unittest.TestCase):
    def test_rotate_is_that_of_the_host(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            x = torch.randn(2, 4, 16, 64).to(dtype)
            wanted = posenc.rotate(x.clone(), posenc.prepare(ROPE), first=7)
            there = x.cuda()
            pointer = there.data_ptr()
            posenc.rotate(there, posenc.prepare(ROPE), first=7)
            self.assertEqual(there.data_ptr(), pointer)
            self.assertTrue(torch.equal(there.cpu(), wanted))

    def test_side_stream(self):
        form = posenc.prepare(ROPE)
        x = torch.randn(8, 512, 64, device="cuda")
        wanted = posenc.rotate(x.clone(), form)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            y = x * 1.0
            posenc.rotate(y, form)
            z = y + 0.0
        torch.cuda.current_stream().wait_stream(stream)
        self.assertTrue(torch.equal(z, wanted))

    def test_graph(self):
        form = posenc.prepare(ROPE)
        x = torch.randn(8, 64, 64, device="cuda")
        still = x.clone()
        posenc.rotate(x.clone(), form)  # what a form needs is copied at its first use
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            posenc.rotate(x, form)
        x.copy_(still)
        graph.replay()
        self.assertTrue(torch.equal(x.cpu(), posenc.rotate(still.cpu(), form)))

    def test_attention_and_its_gradients(self):
        q, k, v = (torch.randn(1, 4, 128, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
        made = pt.attention(q, k, v, ROPE, causal=True)
        made.float().sum().backward()
        inputs = [one.detach().float().cpu().requires_grad_() for one in (q, k, v)]
        wanted = pt.attention(*inputs, ROPE, causal=True)
        wanted.sum().backward()
        self.assertLess(((made.float().cpu() - wanted).norm() / wanted.norm()).item(), 1e-2)
        for one, other in zip((q, k, v), inputs):
            self.assertLess(((one.grad.float().cpu() - other.grad).norm() / other.grad.norm()).item(), 3e-2)

    def test_shift(self):
        form = posenc.prepare(ROPE)
        keys = posenc.rotate(torch.randn(2, 4, 16, 64, device="cuda"), form)
        wanted = posenc.shift(keys.cpu(), form, 70)
        self.assertTrue(torch.equal(posenc.shift(keys, form, 70).cpu(), wanted))

    def test_cache(self):
        """A cache on the GPU has the bytes of one on the host, with slots and ids in either place."""
        form = posenc.prepare(ROPE)
        slots, ids = torch.tensor([40, -1, 3, 17, 0]), torch.tensor([7, 8, 0, 1, 900])
        for dtype in (torch.float32, torch.bfloat16):
            q, k, v = (torch.randn(5, heads, 64).to(dtype) for heads in (8, 2, 2))
            here, there = ([torch.zeros(4, 16, 2, 64, dtype=dtype, device=device) for _ in range(2)] for device in ("cpu", "cuda"))
            wanted = posenc.append(*here, slots, q.clone(), k, v, form, ids=ids, order="thd")
            for places in (slots, slots.cuda(), slots.cuda().int()):
                for one in there:
                    one.zero_()
                made = posenc.append(*there, places, q.cuda(), k.cuda(), v.cuda(), form, ids=ids.cuda(), order="thd")
                self.assertTrue(torch.equal(made.cpu(), wanted))
                for one, other in zip(here, there):
                    self.assertTrue(torch.equal(one, other.cpu()))
            for pools in (here, there):
                to, source = (torch.tensor(one, device=pools[0].device) for one in ([1, 2, 40], [40, 17, 0]))
                posenc.copy_slots(pools[0], to, source, order="bshd")
                posenc.shift(pools[0], form, -67, slots=to, order="bshd")
                posenc.rotate_into(pools[0], slots[:1].to(pools[0].device), k[:1].to(pools[0].device), form, first=5, order="thd")
                posenc.copy_into(pools[1], slots[:1].to(pools[0].device), k[:1].to(pools[0].device), order="thd")
            for one, other in zip(here, there):
                self.assertTrue(torch.equal(one, other.cpu()))
        posenc.synchronize()

    def test_norm_in_a_graph(self):
        form = posenc.prepare(posenc.Rope(dims=128))
        q, k, v = (torch.randn(64, heads, 128, device="cuda", dtype=torch.bfloat16) for heads in (32, 8, 8))
        weight = torch.randn(128, device="cuda", dtype=torch.bfloat16)
        pools = [torch.zeros(8, 16, 8, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
        slots, ids, out = torch.arange(64, device="cuda"), torch.arange(64, device="cuda"), torch.empty_like(q)

        def step():
            posenc.append(*pools, slots, q, k, v, form, ids=ids, out=out, q_norm=weight, k_norm=weight, order="thd")

        step()  # what a form needs is copied at its first use
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        slots.add_(64)  # read at each launch
        ids.add_(1000)
        for one in pools:
            one.zero_()
        graph.replay()
        wide = q.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6) * weight.float()
        wanted = posenc.rotate(wide, form, ids=ids, order="shd")
        self.assertLess(((out.float() - wanted).norm() / wanted.norm()).item(), 4e-3)
        self.assertFalse(pools[0][:4].any())
        self.assertTrue(torch.equal(pools[1].view(-1, 8, 128)[64:], v))

    def test_slots_past_the_cache(self):
        pool, k = torch.zeros(4, 16, 2, 64, device="cuda"), torch.randn(2, 2, 64, device="cuda")
        posenc.copy_into(pool, torch.tensor([3, 64], device="cuda"), k, order="thd")
        with self.assertRaisesRegex(posenc.Error, "slot 64 is past the end of the cache, which has 64 slots; its token was skipped"):
            posenc.synchronize()
        self.assertTrue(torch.equal(pool.view(-1, 2, 64)[3], k[0]))
        self.assertEqual(pool.count_nonzero().item(), 128)
        with self.assertRaisesRegex(posenc.Error, "slot 64 is past"):
            posenc.copy_into(pool, [3, 64], k, order="thd")
        with self.assertRaisesRegex(posenc.Error, "one tensor is on"):
            posenc.copy_into(pool, [3, 4], k.cpu(), order="thd")

    def test_gradient_of_a_bias(self):
        form = posenc.prepare(posenc.Alibi(heads=4))
        d_out = torch.randn(4, 32, 48, device="cuda")
        made = posenc.bias_backward(torch.zeros(4, device="cuda"), d_out, form, 32, 48)
        wanted = posenc.bias_backward(torch.zeros(4), d_out.cpu(), form, 32, 48)
        self.assertLess((made.cpu() - wanted).abs().max().item(), 1e-4)

    def test_compile(self):
        x = torch.randn(2, 4, 16, 64, device="cuda", requires_grad=True)
        function = torch.compile(lambda x: pt.rotate(x, ROPE).square().sum(), fullgraph=True)
        (slope,) = torch.autograd.grad(function(x), x)
        (wanted,) = torch.autograd.grad(pt.rotate(x, ROPE).square().sum(), x)
        self.assertLess((slope - wanted).abs().max().item(), 1e-5)

    def test_cupy(self):
        try:
            import cupy
        except ImportError:
            self.skipTest("cupy is not installed")
        form = posenc.prepare(ROPE)
        x = cupy.random.standard_normal((4, 16, 64), dtype=cupy.float32)
        wanted = posenc.rotate(cupy.asnumpy(x), form, first=7)
        pointer = x.data.ptr
        self.assertIs(posenc.rotate(x, form, first=7), x)
        self.assertEqual((x.data.ptr, cupy.asnumpy(x).tobytes()), (pointer, wanted.tobytes()))
        cosines, _ = posenc.tabulate(form, count=3, like=x)
        self.assertIsInstance(cosines, cupy.ndarray)

    def test_opcheck(self):
        x, form = torch.randn(2, 3, 5, 64, device="cuda", requires_grad=True), pt._text_of(ROPE, "")
        torch.library.opcheck(torch.ops.posenc.rotate, (x, None, 7, form, "bhsd"))

    def test_refusals(self):
        with self.assertRaises((ValueError, RuntimeError, NotImplementedError)):
            posenc.rotate(torch.randn(4, 64, device="cuda"), posenc.prepare(ROPE), out=torch.empty(4, 64))


if __name__ == "__main__":
    unittest.main()

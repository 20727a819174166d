"""posenc.torch: gradients against finite differences, values against torch's own formulas."""

import math
import resource
import sys
import unittest

import needs_torch  # noqa: F401  (first)

import torch
import numpy as np
import posenc
import posenc.torch as pt
from posenc import _merging

YARN = posenc.Rope(dims=8, scaling=posenc.YarnScaling(factor=4))


def randn(*shape, grad=True, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, requires_grad=grad)


class InPlace(unittest.TestCase):
    def test_tensors_are_rotated_in_place(self):
        form = posenc.prepare(YARN)
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            x = torch.randn(2, 3, 5, 8).to(dtype)
            wanted = posenc.rotate(x.double().numpy(), form, first=7)
            pointer = x.data_ptr()
            self.assertIs(posenc.rotate(x, form, first=7), x)
            self.assertEqual(x.data_ptr(), pointer)
            bound = {torch.float32: 2e-6, torch.float64: 1e-14, torch.float16: 8e-3, torch.bfloat16: 6e-2}[dtype]
            self.assertLess(np.abs(x.double().numpy() - wanted).max(), bound)
        bshd = torch.randn(2, 5, 3, 8)
        wanted = posenc.rotate(bshd.transpose(1, 2).contiguous(), form)
        self.assertTrue(torch.equal(posenc.rotate(bshd.clone(), form, order="bshd").transpose(1, 2), wanted))
        self.assertTrue(torch.equal(posenc.rotate(bshd.clone().transpose(1, 2), form), wanted))
        ids = torch.arange(4, 9)
        self.assertTrue(torch.equal(posenc.rotate(wanted.clone(), form, ids=ids), posenc.rotate(wanted.clone(), form, first=4)))

    def test_new_arrays_are_tensors(self):
        x = torch.randn(2, 4, 8)
        self.assertIsInstance(posenc.attention(x, x, x), torch.Tensor)
        cosines, _ = posenc.tabulate(posenc.prepare(YARN), count=3, like=x, dtype="bf16")
        self.assertEqual((cosines.dtype, tuple(cosines.shape)), (torch.bfloat16, (3, 4)))

    def test_refusals(self):
        form = posenc.prepare(YARN)
        for x, kind, text in ((randn(4, 8), ValueError, "requires grad"), (torch.nn.Parameter(torch.zeros(4, 8)), ValueError, "requires grad"),
                              (torch.zeros(1, 8).expand(4, 8), ValueError, "stride"), (torch.zeros(4, 8, dtype=torch.complex64), Exception, ""),
                              (torch.zeros(4, 8).to_sparse(), Exception, ""), (torch.zeros(4, 8, device="meta"), Exception, ""),
                              (torch.zeros(4, 8, dtype=torch.int16), NotImplementedError, "f32"),
                              (torch.zeros(4, 8, dtype=torch.complex64).conj().imag, ValueError, "resolve_neg")):
            with self.assertRaisesRegex(kind, text):
                posenc.rotate(x, form)
        with self.assertRaisesRegex(ValueError, "requires grad"):
            pt.rotate_(randn(4, 8), form)
        with self.assertRaisesRegex(ValueError, "pass the scheme"):
            pt.rotate(randn(4, 8), form.adjoint())

    def test_calls_leak_nothing(self):
        form, x, ids = posenc.prepare(YARN), torch.zeros(2, 8), torch.arange(2)
        counted = (x, ids, torch.float32, torch.int64, form)
        for count in (1000, 100_000):
            before = [sys.getrefcount(one) for one in counted]
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for _ in range(count):
                posenc.rotate(x, form, ids=ids)
        self.assertEqual([sys.getrefcount(one) for one in counted], before)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory, 8 << 10)  # in KiB

    def test_tensors_that_only_look_plain(self):
        """Each is read as it is, or refused: none by an address that is not its own."""
        form = posenc.prepare(YARN)
        wanted = posenc.rotate(torch.ones(4, 8), form)
        part = torch.ones(3, 4, 8)
        posenc.rotate(part[1], form)  # an offset into another's memory
        self.assertTrue(torch.equal(part[1], wanted) and bool((part[0] == 1).all()) and bool((part[2] == 1).all()))
        shared = torch.from_numpy(np.ones((4, 8), "f"))
        self.assertTrue(torch.equal(posenc.rotate(shared, form), wanted))
        kind = type("Mine", (torch.Tensor,), {})
        self.assertTrue(torch.equal(posenc.rotate(torch.ones(4, 8).as_subclass(kind), form).as_subclass(torch.Tensor), wanted))
        still = torch.nn.Parameter(torch.ones(4, 8), requires_grad=False)
        self.assertTrue(torch.equal(posenc.rotate(still, form), wanted))
        with torch.inference_mode():
            self.assertTrue(torch.equal(posenc.rotate(torch.ones(4, 8), form), wanted))
        self.assertEqual(posenc.rotate(torch.ones(0, 4, 8), form).shape, (0, 4, 8))
        for x in (torch.quantize_per_tensor(torch.ones(4, 8), 0.1, 0, torch.quint8), torch.ones(4, 8).to_mkldnn() if torch.backends.mkldnn.is_available() else 1.0):
            with self.assertRaises((TypeError, ValueError, RuntimeError, NotImplementedError, BufferError)):
                posenc.rotate(x, form)

    def test_weights_that_nobody_else_holds(self):
        form = posenc.prepare(posenc.T5(heads=2, buckets=4, max_distance=8), weights=torch.ones(4, 2))
        junk = [torch.zeros(4, 2) for _ in range(64)]
        self.assertEqual(float(posenc.bias(form, 2, 2).sum()), 8.0)
        del junk


class Gradients(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)
        posenc.set_threads(1)  # thousands of tiny calls
        self.addCleanup(posenc.set_threads, 0)

    def test_rotate(self):
        x = randn(1, 2, 5, 8)
        self.assertTrue(torch.autograd.gradcheck(lambda x: pt.rotate(x, posenc.prepare(YARN), first=7), (x,)))
        self.assertTrue(torch.autograd.gradcheck(lambda x: pt.rotate(x, YARN, ids=[4, 2, 2, 9, 1]), (x,)))
        self.assertTrue(torch.autograd.gradcheck(lambda x: pt.rotate(x, YARN, order="bshd"), (x,)))
        self.assertTrue(torch.autograd.gradcheck(lambda x: pt.rotate(x.transpose(1, 2), YARN), (x,)))
        pt.rotate(x, YARN).sum().backward()  # the gradient that comes is one number, expanded
        self.assertEqual(x.grad.shape, x.shape)

    def test_attention(self):
        q, k, v = randn(2, 2, 4, 8), randn(2, 1, 4, 8), randn(2, 1, 4, 8)
        for options in ({}, {"causal": True}, {"causal": True, "window": 3}, {"scale": 0.7}, {"softcap": 1.5}, {"mask": torch.ones(4, 4, dtype=torch.bool).tril()}, {"key_mask": torch.tensor([[1] * 4, [0, 0, 1, 1]])}):
            self.assertTrue(torch.autograd.gradcheck(lambda q, k, v: pt.attention(q, k, v, YARN, **options), (q, k, v)), options)
        bshd = [one.detach().transpose(1, 2).contiguous().requires_grad_() for one in (q, k, v)]
        self.assertTrue(torch.autograd.gradcheck(lambda q, k, v: pt.attention(q, k, v, YARN, causal=True, order="bshd"), bshd))
        strided = randn(2, 4, 2, 8)
        self.assertTrue(torch.autograd.gradcheck(lambda q: pt.attention(q.transpose(1, 2), k.detach(), v.detach(), YARN), (strided,)))

    def test_sinks(self):
        q, k, v, sinks = randn(1, 2, 4, 4), randn(1, 2, 4, 4), randn(1, 2, 4, 4), randn(2)
        self.assertTrue(torch.autograd.gradcheck(lambda q, sinks: pt.attention(q, k.detach(), v.detach(), sinks=sinks, causal=True), (q, sinks)))

    def test_learned_bias(self):
        q, k, v = randn(1, 2, 4, 4), randn(1, 1, 4, 4), randn(1, 1, 4, 4)
        table = randn(8, 2)
        scheme = posenc.T5(heads=2, buckets=8, max_distance=16)
        self.assertTrue(torch.autograd.gradcheck(lambda q, k, v, table: pt.attention(q, k, v, scheme, table=table, scale=1.0), (q, k, v, table)))

    def test_learned_positions(self):
        x, table = randn(2, 3, 4), randn(8, 4)
        scheme = posenc.Learned(rows=8, width=4, offset=2)
        self.assertTrue(torch.autograd.gradcheck(lambda x, table: pt.add(x, scheme, table=table, ids=[1, 5, 1]), (x, table)))
        self.assertTrue(torch.autograd.gradcheck(lambda x: pt.add(x, posenc.Sinusoidal(width=4), first=3), (x,)))

    def test_forms_as_text_are_one_line(self):
        """torch's compiler writes them into comments of the code that it makes."""
        for scheme in (YARN, posenc.T5(heads=2), posenc.Sinusoidal(width=4)):
            text = pt._text_of(scheme, "")
            self.assertNotIn("\n", text)
            self.assertEqual(posenc.forms.recipe_of(text), (scheme.to_json(), 0, "exact", None, None))

    def test_twice_is_refused(self):
        x = randn(2, 8)
        (slope,) = torch.autograd.grad(pt.rotate(x, YARN).pow(2).sum(), x, create_graph=True)
        with self.assertRaises(RuntimeError):
            slope.sum().backward()


def attended(q, k, v, bias, causal, scale):
    scores = scale * q @ k.transpose(-1, -2) + bias
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -math.inf)
    return scores.softmax(-1) @ v


def buckets(scheme, count):
    """T5's buckets, as transformers computes them."""
    relative = torch.arange(count)[None] - torch.arange(count)[:, None]
    half = scheme.buckets // 2
    upper = (relative > 0).long() * half
    distance = relative.abs()
    exact = half // 2
    far = exact + (torch.log(distance.clamp(min=1).double() / exact) / math.log(scheme.max_distance / exact) * (half - exact)).long()
    return upper + torch.where(distance < exact, distance, far.clamp(max=half - 1))


class AgainstTorch(unittest.TestCase):
    def test_training_a_bias_is_training_its_table(self):
        """50 steps with posenc's attention equal 50 steps with the bias as an array."""
        torch.manual_seed(1)
        scheme = posenc.T5(heads=2, buckets=8, max_distance=16)
        q, k, v, goal = (torch.randn(1, 2, 10, 4, dtype=torch.float64) for _ in range(4))
        module = pt.RelativeBias(scheme, dtype=torch.float64)
        plain = torch.nn.Parameter(module.table.detach().clone())
        where = buckets(scheme, 10)
        ours, theirs = torch.optim.SGD(module.parameters(), 0.5), torch.optim.SGD([plain], 0.5)
        losses = []
        for _ in range(50):
            for optimizer, out in ((ours, module.attention(q, k, v, scale=1.0)),
                                   (theirs, attended(q, k, v, plain[where].permute(2, 0, 1), False, 1.0))):
                optimizer.zero_grad()
                loss = (out - goal).pow(2).sum()
                loss.backward()
                optimizer.step()
            losses.append(float(loss))
        self.assertLess((module.table - plain).abs().max().item(), 1e-9)
        self.assertGreater(module.table.detach().abs().max().item(), 0.01)  # something was learned
        self.assertLess(losses[-1], losses[0])
        self.assertLess((module(10, 10) - plain.detach()[where].permute(2, 0, 1)).abs().max().item(), 1e-6)

    def test_attention_is_torchs(self):
        q, k, v = (torch.randn(1, 2, 10, 4, dtype=torch.float64) for _ in range(3))
        self.assertLess((pt.attention(q, k, v, causal=True) - attended(q, k, v, 0, True, 0.5)).abs().max().item(), 1e-14)

    def test_packed_sequences(self):
        q, k, v = (torch.randn(1, 2, 10, 8, dtype=torch.float64, requires_grad=True) for _ in range(3))
        apart = torch.cat([pt.attention(*(x[:, :, at] for x in (q, k, v)), YARN, causal=True) for at in (slice(0, 3), slice(3, 10))], 2)
        packed = pt.attention(q, k, v, YARN, causal=True, packed=[3, 7])
        self.assertTrue(torch.equal(packed, apart))
        for one, other in zip(torch.autograd.grad(packed.sum(), (q, k, v)), torch.autograd.grad(apart.sum(), (q, k, v))):
            self.assertTrue(torch.equal(one, other))
        with self.assertRaisesRegex(ValueError, "sum to 9"):
            pt.attention(q, k, v, YARN, packed=[3, 6])

    def test_rotated_q_and_k_are_rounded_where_asked(self):
        rope = posenc.Rope(dims=16)
        q, k, v = (3 * torch.randn(1, 2, 48, 16) for _ in range(3))
        q, k, v = (one.to(torch.bfloat16) for one in (q, k, v))
        before = pt.attention(pt.rotate(q, rope), pt.rotate(k, rope), v, causal=True, scale=1.0)
        rounded = pt.attention(q, k, v, rope, causal=True, scale=1.0, rounds_rotated=True)
        self.assertTrue(torch.equal(rounded, before))
        self.assertFalse(torch.equal(pt.attention(q, k, v, rope, causal=True, scale=1.0), before))

    def test_rotary_embedding(self):
        config = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "max_position_embeddings": 128,
                  "rope_theta": 10000.0}
        x, ids = torch.zeros(1), torch.arange(1000, 1004)[None]
        cosines, sines = pt.RotaryEmbedding(config)(x, ids)
        angle = ids[0, :, None].double() * 10000.0 ** (-torch.arange(8).double() / 8)
        self.assertLess((cosines[0].double() - torch.cat((angle, angle), -1).cos()).abs().max().item(), 6e-8)
        self.assertEqual(tuple(sines.shape), (1, 4, 16))
        theirs = torch.cat(((ids[0, :, None].float() * (1.0 / 10000.0 ** (torch.arange(0, 16, 2).float() / 16))),) * 2, -1).cos()
        self.assertLess((pt.RotaryEmbedding(config, numerics="hf-f32")(x, ids)[0][0] - theirs).abs().max().item(), 2e-7)


class Merge(unittest.TestCase):
    def test_merging_by_torch_is_merge(self):
        """What a GPU does, with its stated error, and for rows that have no key, or no logsumexp."""
        made = torch.Generator().manual_seed(1)
        odd = [float(x) for x in ("-inf", "inf", "nan", "0")]
        for dtype, order in ((torch.float32, "bhsd"), (torch.bfloat16, "bhsd"), (torch.float64, "bhsd"), (torch.float32, "bshd")):
            out, other = torch.randn(2, 2, 3, 20, 8, generator=made)
            sums, others = torch.randn(2, 2, 3, 20, generator=made) * 4
            sums[0, 0, :16], others[0, 0, :16] = torch.tensor(odd).repeat_interleave(4), torch.tensor(odd * 4)
            out[torch.isneginf(sums)], other[torch.isneginf(others)] = float("nan"), float("nan")  # not read
            if order == "bshd":
                out, other = (x.transpose(1, 2).contiguous() for x in (out, other))
            other = other.to(dtype)
            for a, b, log_a, log_b in ((out, other, sums, others), (other.float(), out.to(dtype), others, sums)):
                wanted = posenc.merge(a.clone(), expected := log_a.clone(), b, log_b, order=order)
                _merging.merge_by_torch(made_a := a.clone(), log := log_a.clone(), b, log_b, order)
                bound = 3.5 * 2**-24 * torch.maximum(a.nan_to_num().abs(), b.nan_to_num().abs().float())  # and half an ulp of merge's own
                self.assertTrue(torch.equal(made_a.isnan(), wanted.isnan()))
                self.assertTrue(((made_a - wanted).nan_to_num().abs() <= bound).all())
                self.assertTrue(torch.allclose(log, expected, rtol=2**-23, atol=2**-23, equal_nan=True))
        with self.assertRaisesRegex(ValueError, r"merge: other_logsumexp has shape \[2, 3, 4\] but must have \[2, 3, 20\]"):
            _merging.merge_by_torch(torch.zeros(2, 3, 20, 8), torch.zeros(2, 3, 20), torch.zeros(2, 3, 20, 8), torch.zeros(2, 3, 4))


@unittest.skipUnless(pt.HAS_OPERATORS, "operators need torch 2.4")
class Operators(unittest.TestCase):
    def test_opcheck(self):
        x, form = torch.randn(2, 3, 5, 8, requires_grad=True), pt._text_of(YARN, "")
        torch.library.opcheck(torch.ops.posenc.rotate, (x, None, 7, form, "bhsd"))
        options = '{"causal": true, "window": 0, "scale": null, "keys_are_rotated": false, "order": "bhsd"}'
        q, k, v = (torch.randn(2, 3, 5, 8, requires_grad=True) for _ in range(3))
        torch.library.opcheck(torch.ops.posenc.attention, (q, k, v, None, None, None, None, None, None, form, options))
        torch.library.opcheck(torch.ops.posenc.add, (torch.randn(3, 4, requires_grad=True), None, None, 0, pt._text_of(posenc.Sinusoidal(width=4), "")))

    def test_compile(self):
        def model(q, k, v):
            return pt.attention(pt.rotate(q, YARN), pt.rotate(k, YARN), v, causal=True).sum()

        inputs = [torch.randn(1, 2, 6, 8, requires_grad=True) for _ in range(3)]
        wanted = torch.autograd.grad(model(*inputs), inputs)
        made = torch.autograd.grad(torch.compile(model, fullgraph=True, backend="aot_eager")(*inputs), inputs)
        for one, other in zip(made, wanted):
            self.assertTrue(torch.equal(one, other))

    def test_export(self):
        class Module(torch.nn.Module):
            def forward(self, x):
                return pt.rotate(x, YARN, first=3)

        x = torch.randn(2, 5, 8)
        self.assertTrue(torch.equal(torch.export.export(Module(), (x,)).module()(x), Module()(x)))


if __name__ == "__main__":
    unittest.main()

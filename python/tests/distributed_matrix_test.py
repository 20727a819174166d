"""posenc.torch.distributed: every form × packed × window × GQA × sinks, by a ring and by all-gather, gives what one process gives."""

import itertools
import json
import unittest

from ranks import ranks  # first: it ends the test where there is no torch

import posenc
import posenc.torch as pt
import torch
from posenc import _methods, _ranks, schemes
from posenc.forms import recipe_of
from posenc.torch import distributed

TOKENS, HEADS, FEATURES = 32, 4, 8
PACKED, WINDOW = [5, 1, 19, 7], 5
TWO = torch.stack((torch.arange(TOKENS) // 6, torch.arange(TOKENS) % 6))
THREE = torch.stack((torch.arange(TOKENS), *TWO))
LONG = {"length": TOKENS}


class Case:
    """A form, the shape of its table if it has one that is trained, positions if they have several axes, and what it cannot do."""

    def __init__(self, form, table=None, positions=None, gqa=True, gradients=True, ring_gradients=True):
        self.form, self.table, self.positions, self.gqa = form, table, positions, gqa
        self.gradients, self.ring_gradients = gradients, gradients and ring_gradients


FORMS = {
    "none": Case(None),
    "temperature": Case(posenc.Temperature(floor=8)),
    "rope": Case(posenc.Rope(dims=8)),
    "rope interleaved": Case(posenc.Rope(dims=8, layout="interleaved")),
    "rope partial": Case(posenc.Rope(dims=4, first_dim=2)),
    "yarn": Case(posenc.Rope(dims=8, scaling=posenc.YarnScaling(factor=4.0))),
    "xpos": Case(posenc.Rope(dims=8, layout="interleaved", scaling=posenc.XposScaling())),
    "mrope": Case(posenc.Rope(dims=8, sections=(2, 1, 1)), positions=THREE),
    "patch-rope": Case(posenc.PatchRope(dims=8), positions=TWO),
    "rope-mixed": Case(posenc.RopeMixed(heads=4, dims=8), positions=TWO, gqa=False),
    "fope": Case(posenc.Fope(heads=4, dims=8), gqa=False),
    "alibi": Case(posenc.Alibi(heads=4)),
    "kerple": Case(posenc.prepare(posenc.Kerple(amplitudes=(1.0, 0.5, 0.2, 0.1), rates=(1.0, 2.0, 0.5, 1.0)), **LONG)),
    "fire": Case(posenc.prepare(posenc.Fire(hidden_weights=(0.1, -0.3) * 4, hidden_biases=(0.1,) * 8, output_weights=(0.1, -0.2) * 16,
                                            output_biases=(0.1,) * 4), **LONG)),
    "sandwich": Case(posenc.prepare(posenc.Sandwich(heads=4, dims=16), **LONG)),
    "t5": Case(posenc.T5(heads=4, buckets=8, max_distance=16), table=(8, 4)),
    "swin": Case(posenc.Swin(heads=4, window=(6, 6)), table=(121, 4), positions=TWO),
    "log-cpb": Case(posenc.LogCpb(heads=4, window=(6, 6), hidden_weights=(0.1, -0.2) * 8, hidden_biases=(0.1,) * 8, output_weights=(0.1, 0.3) * 16),
                    positions=TWO),
    "shaw": Case(posenc.Shaw(left=4, right=4), table=(9, 8), gradients=False),  # nor has one process gradients of these tables
    "cope": Case(posenc.Cope(rows=16), table=(16, 8), gradients=False),
    "decomposed": Case(posenc.Decomposed(window=(6, 6)), table=(22, 8), positions=TWO, gradients=False),
}


def inputs(case, gqa, has_sinks):
    made = torch.Generator().manual_seed(5)
    randn = lambda *shape: torch.randn(*shape, generator=made)
    key_heads = HEADS // 2 if gqa else HEADS
    q, k, v, d = (randn(1, heads, TOKENS, FEATURES) for heads in (HEADS, key_heads, key_heads, HEADS))
    return q, k, v, d, None if case.table is None else randn(*case.table), randn(HEADS) if has_sinks else None


def whole(case, q, k, v, d, table, sinks, options):
    wanted = [x.clone().requires_grad_() for x in (q, k, v)] + [x.clone().requires_grad_() for x in (table, sinks) if x is not None]
    learned = iter(wanted[3:])
    out = pt.attention(*wanted[:3], case.form, table=None if table is None else next(learned), sinks=None if sinks is None else next(learned),
                       query_positions=case.positions, key_positions=case.positions, **options)
    return [out.detach(), *(torch.autograd.grad(out, wanted, d) if case.gradients else ())]


def parts(case, method, q, k, v, d, table, sinks, options):
    q, k, v, d = (distributed.shard(x, dim=2) for x in (q, k, v, d))
    wanted = [x.requires_grad_() for x in (q, k, v)] + [x.clone().requires_grad_() for x in (table, sinks) if x is not None]
    learned = iter(wanted[3:])
    ids = None if case.positions is None else distributed.shard(case.positions, dim=1)
    out = distributed.context_parallel_attention(q, k, v, case.form, method=method, table=None if table is None else next(learned),
                                                 sinks=None if sinks is None else next(learned), positions=ids, check=False, **options)
    back = case.ring_gradients if method == "ring" else case.gradients
    grads = torch.autograd.grad(out, wanted, d) if back else ()
    return gathered((out.detach(), *grads[:3]), grads[3:])


def gathered(split, shares):
    """Whole tensors of the shards, and sums of the shares, by one message: more of them would be most of this test's time."""
    every = _ranks.gather(torch.cat([x.flatten() for x in (*split, *shares)]), None)
    size, found, at = len(every), [], 0
    for x in (*split, *shares):
        each = every[:, at : at + x.numel()].reshape(size, *x.shape)
        at += x.numel()
        found.append(_methods.in_order(each.movedim(-2, 1).flatten(0, 1), size, "zigzag").movedim(0, -2) if len(found) < len(split) else each.sum(0))
    return found


def every_case(rank, size):
    """name → worst relative error over out and gradients. Every rank has the same gathered results, and compares some."""
    found = {}
    for name, case in FORMS.items():
        for packed, window, causal, gqa, has_sinks in itertools.product((False, True), (False, True), (True, False), (True, False), (False, True)):
            if gqa and not case.gqa:
                continue
            options = {"causal": causal, **({"packed": PACKED} if packed else {}), **({"window": WINDOW} if window else {})}
            given = inputs(case, gqa, has_sinks)
            mine = len(found) // 2 % size == rank
            wanted = whole(case, *given, options) if mine else []
            for method in ("auto" if name == "cope" else "ring", "all-gather"):
                made = parts(case, method, *given, options)
                found[name, method, packed, window, causal, gqa, has_sinks] = max(
                    (float((a - b).abs().max() / b.abs().max()) for a, b in zip(made, wanted, strict=True)), default=0.0) if mine else None
    return found


class Matrix(unittest.TestCase):
    def check(self, size):
        compared = {}
        for found in ranks([every_case], size):
            found = found["every_case"]
            self.assertIsInstance(found, dict, found)
            self.assertEqual(len(found), 1280)
            compared.update({case: error for case, error in found.items() if error is not None})
        self.assertEqual({case[0] for case in compared}, set(FORMS))
        self.assertEqual(len(compared), 1280)
        worse = {case: error for case, error in compared.items() if not error < 4e-6}
        self.assertFalse(worse, f"{len(worse)} of {len(compared)}")

    def test_two_ranks(self):
        self.check(2)

    def test_four_ranks(self):
        self.check(4)

    def test_every_scheme_of_attention_is_here(self):
        """But for those that need more than a form: gates, queries for positions, a second table."""
        forms = [posenc.prepare(posenc.NoPosition()) if case.form is None else case.form for case in FORMS.values()]
        here = {json.loads(recipe_of(pt._text_of(form, "attention"))[0])["scheme"] for form in forms}
        every = {one.name for one in vars(schemes).values() if isinstance(one, type) and issubclass(one, posenc.Scheme) and one is not posenc.Scheme}
        self.assertEqual(every - here, {"sinusoidal", "learned", "resized", "steps", "shift",  # added to tokens, not in attention
                                        "forget-gate", "relative-logits", "deberta", "transformer-xl"})


if __name__ == "__main__":
    unittest.main()

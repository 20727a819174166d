"""Attention with a position, on posenc's kernels where they take it and by torch's own operations elsewhere."""

from __future__ import annotations

import math
from typing import Any

import torch

import posenc
import posenc.torch as pt

from .jobs import Position, Shape

REFUSALS = (NotImplementedError, RuntimeError, ValueError, TypeError)  # posenc's, for what its kernels do not take
SDPA = getattr(torch.nn.functional, "scaled_dot_product_attention", None)  # torch ≥ 2.0


def rope_scheme(position: Position, dims: int) -> Any:
    """The position as posenc's scheme."""
    scaling: Any = None
    if position.scaling == "linear":
        scaling = posenc.LinearScaling(factor=position.factor)
    elif position.scaling == "ntk":
        scaling = posenc.NtkScaling(factor=position.factor)
    elif position.scaling == "yarn":
        scaling = posenc.YarnScaling(factor=position.factor, original_length=position.trained)
    elif position.proportion != 1.0:
        scaling = posenc.ProportionalScaling(proportion=position.proportion)
    return posenc.Rope(dims=dims, base=position.base, scaling=scaling)


def scheme_of(position: Position, shape: Shape, weights: Any) -> Any:
    """The whole position as posenc's scheme, for a checkpoint; what the library has no words for (layers without) is left out."""
    if position.kind == "rope":
        return rope_scheme(position, shape.head_width)
    if position.kind == "kerple":
        amplitudes, rates = weights["kerple"].detach().abs().clamp(min=0.01).tolist()
        return posenc.Kerple(amplitudes=tuple(amplitudes), rates=tuple(rates))
    if position.kind == "alibi":
        return posenc.Alibi(heads=shape.heads)
    if position.kind == "t5":
        return posenc.T5(heads=shape.heads, buckets=32, max_distance=128, bidirectional=False)
    if position.kind == "sinusoidal":
        return posenc.Sinusoidal(width=shape.width, base=position.base)
    if position.kind == "learned":
        return posenc.Learned(rows=len(weights["learned"]), width=shape.width)
    return posenc.ForgetGate() if position.kind == "forget" else posenc.NoPosition()


def tables(position: Position, dims: int, ids: Any, like: Any) -> tuple[Any, Any]:
    """Cosines and sines of positions, [positions, dims / 2], by the arithmetic that the position names, in f32 or bf16."""
    if position.arithmetic == "bf16":
        # What a model computes whose frequencies and positions were both converted to bf16.
        frequencies = torch.tensor(posenc.prepare(rope_scheme(position, dims)).frequencies, device=like.device).to(torch.bfloat16)
        angles = ids.to(like.device).to(torch.bfloat16)[:, None] * frequencies
        return angles.float().cos().to(torch.bfloat16), angles.float().sin().to(torch.bfloat16)
    numerics = "exact" if position.arithmetic == "exact" else "hf-f32"
    form = posenc.prepare(rope_scheme(position, dims), numerics=numerics)  # type: ignore[arg-type]
    made = posenc.tabulate(form, ids=ids.cpu(), dtype="f32", like=torch.empty(0))
    cosines, sines = (one.to(like.device) for one in made)
    if position.arithmetic == "f32-bf16":
        return cosines.to(torch.bfloat16), sines.to(torch.bfloat16)
    return cosines, sines


def rotated(x: Any, cosines: Any, sines: Any) -> Any:
    """x of [batch, tokens, heads, features] with its halves rotated, in the type of the tables, rounded to that of x."""
    first, second = x.to(cosines.dtype).chunk(2, -1)
    cosines, sines = cosines[:, None], sines[:, None]
    return torch.cat((first * cosines - second * sines, second * cosines + first * sines), -1).to(x.dtype)


def kerple_bias(parameters: Any, tokens: int) -> Any:
    """KERPLE's logarithmic bias, [heads, tokens, tokens], from its two parameters of each head."""
    ids = torch.arange(tokens, device=parameters.device)
    distance = (ids[:, None] - ids).clamp(min=0).float()
    amplitude, rate = parameters.abs().clamp(min=0.01)[:, :, None, None]
    return -amplitude * torch.log1p(rate * distance)


def forget_bias(logits: Any) -> Any:
    """Sums of the logarithms of gates between key and query, [batch, heads, tokens, tokens], from logits [batch, tokens, heads]."""
    sums = torch.nn.functional.logsigmoid(logits.float()).cumsum(1).transpose(1, 2)
    return sums[..., :, None] - sums[..., None, :]


def explicit(q: Any, k: Any, v: Any, bias: Any, causal: bool, seen: Any = None) -> Any:
    """softmax(q·kᵀ / √features + bias) · v with the scores in memory; q, k, v: [batch, tokens, heads, features].

    seen: called with the weights, [batch, heads, tokens, tokens].
    """
    tokens = q.shape[1]
    if seen is None and tokens > 1024 and q.shape[0] > 1 and not torch.is_grad_enabled():  # one sequence at a time: scores are large
        each = bias if bias is not None and bias.dim() == 4 else [bias] * q.shape[0]
        return torch.cat([explicit(q[i:i + 1], k[i:i + 1], v[i:i + 1], each[i], causal) for i in range(q.shape[0])])
    q, k, v = (one.transpose(1, 2) for one in (q, k, v))
    scores = (q @ k.transpose(-2, -1)).float() / math.sqrt(q.shape[-1])
    if bias is not None:
        scores = scores + bias
    if causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens, dtype=torch.bool, device=q.device).triu(1), -math.inf)
    weights = torch.softmax(scores, -1)
    if seen is not None:
        seen(weights)
    return (weights.to(v.dtype) @ v).transpose(1, 2)


class Attention:
    """Attention of one model as it is now: attention(layer, q, k, v, first=) with q, k and v of [batch, tokens, heads, features].

    ids: the positions if they are not consecutive. `used` collects what computed it, for the results. With `seen`, scores are in
    memory and it is called with the weights of each layer.
    """

    def __init__(self, position: Position, shape: Shape, weights: dict[str, Any], causal: bool = True, seen: Any = None) -> None:
        self.position, self.shape, self.weights, self.causal, self.seen = position, shape, weights, causal, seen
        self.used: set[str] = set()
        self.kernels = seen is None  # posenc's; false once they refused
        self._tables: dict[tuple[int, int], tuple[Any, Any]] = {}
        self._forms: dict[str, Any] = {}

    def has_position(self, layer: int) -> bool:
        every = self.position.nope_every
        return not (every and (layer + 1) % every == 0)

    def __call__(self, layer: int, q: Any, k: Any, v: Any, *, first: int = 0, ids: Any = None, gates: Any = None) -> Any:
        kind = self.position.kind if self.has_position(layer) else "none"
        window = self.position.window if self.position.nope_every and kind != "none" else 0
        if self.position.temperature and (kind == "none" or not self.position.nope_every):
            q = q * self._temperature(q)
        if kind == "rope":
            return self._rope(q, k, v, first, ids, window)
        if kind in ("kerple", "forget"):
            bias = kerple_bias(self.weights["kerple"], q.shape[1]) if kind == "kerple" else forget_bias(gates)
            self.used.add("scores in memory")
            return explicit(q, k, v, bias, self.causal, self.seen)
        table = self.weights["t5"] * self.position.gain if kind == "t5" else None
        form = {"alibi": self._alibi, "t5": self._t5}.get(kind, lambda: None)()
        return self._kernel(q, k, v, form, table, window)

    def _temperature(self, q: Any) -> Any:
        seen = torch.arange(1, q.shape[1] + 1, device=q.device).float()
        return (seen.log() / math.log(self.position.trained)).clamp(min=1.0)[:, None, None].to(q.dtype)

    def _alibi(self) -> Any:
        return self._forms.setdefault("alibi", posenc.Alibi(heads=self.shape.heads))

    def _t5(self) -> Any:
        return self._forms.setdefault("t5", posenc.T5(heads=self.shape.heads, buckets=32, max_distance=128, bidirectional=not self.causal))

    def _rope(self, q: Any, k: Any, v: Any, first: int, ids: Any, window: int) -> Any:
        arithmetic = self.position.arithmetic
        if arithmetic in ("exact", "f32") and ids is None and self.kernels:
            form = self._forms.get(arithmetic)
            if form is None:
                numerics = "exact" if arithmetic == "exact" else "hf-f32"
                form = self._forms[arithmetic] = posenc.prepare(rope_scheme(self.position, q.shape[-1]), numerics=numerics)  # type: ignore[arg-type]
            if first == 0:
                return self._kernel(q, k, v, form, None, window)
            try:
                q, k = (pt.rotate(one, form, first=first, order="bshd") for one in (q, k))
                return self._kernel(q, k, v, None, None, window)
            except REFUSALS as error:
                self._refused(error)
        key = (first, q.shape[1])
        if key not in self._tables or ids is not None:
            if len(self._tables) > 8:
                self._tables.clear()
            wanted = ids if ids is not None else torch.arange(first, first + q.shape[1])
            self._tables[key] = tables(self.position, q.shape[-1], wanted, q)
        cosines, sines = self._tables[key]
        self.used.add(f"rotated by torch ({arithmetic})")
        return self._kernel(rotated(q, cosines, sines), rotated(k, cosines, sines), v, None, None, window)

    def _kernel(self, q: Any, k: Any, v: Any, form: Any, table: Any, window: int) -> Any:
        if self.kernels:
            try:
                out = pt.attention(q, k, v, form, table=table, causal=self.causal, window=window, order="bshd")
                self.used.add("posenc")
                return out
            except REFUSALS as error:
                self._refused(error)
        return self._fallback(q, k, v, form, table, window)

    def _refused(self, error: BaseException) -> None:
        self.kernels = False
        self.used.add(f"posenc refused: {str(error)[:120]}")

    def _fallback(self, q: Any, k: Any, v: Any, form: Any, table: Any, window: int) -> Any:
        """The same by torch, for what posenc's kernels refuse."""
        tokens, bias = q.shape[1], None
        if form is not None and getattr(form, "kind", "") == "rotation":
            cosines, sines = tables(self.position, q.shape[-1], torch.arange(tokens), q)
            q, k = rotated(q, cosines, sines), rotated(k, cosines, sines)
        elif form is not None:
            ready = posenc.prepare(form, weights=table.detach().cpu()) if table is not None else posenc.prepare(form)
            if table is not None and table.requires_grad and torch.is_grad_enabled():
                rows = posenc.bias(posenc.prepare(form, weights=torch.arange(table.shape[0]).float()[:, None].expand(*table.shape).contiguous()), tokens, tokens,
                                   like=torch.empty(0))[0].long().to(q.device)
                bias = table[rows].permute(2, 0, 1)
            else:
                bias = posenc.bias(ready, tokens, tokens, like=torch.empty(0)).to(q.device)
        if SDPA is not None and bias is None and not window and self.seen is None:
            self.used.add("torch's attention")
            return SDPA(*(one.transpose(1, 2) for one in (q, k, v)), is_causal=self.causal).transpose(1, 2)
        if window:
            ids = torch.arange(tokens, device=q.device)
            far = (ids[:, None] - ids).abs() >= window
            bias = (0.0 if bias is None else bias) + torch.zeros(tokens, tokens, device=q.device).masked_fill(far, -math.inf)
        self.used.add("scores in memory")
        return explicit(q, k, v, bias, self.causal, self.seen)

"""Compares one recorded computation of attention with what the files of its model say, and knows what could not have shown."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterator, Mapping, Sequence

import torch

from ._recording import Call
from .attention import RULES  # noqa: F401  (the names of a temperature's rules)
from .forms import Form
from .keywords import attention


@dataclass(frozen=True)
class AttentionVerdict:
    """What the attention of a layer did: everything between its queries, keys and values and its output."""

    verdict: str  #: "agrees", "differs", or "not seen"
    seen: Sequence[str] = ()  #: what would have shown if it were missing or another: scale, causal mask, window …
    unseen: Sequence[str] = ()  #: what would not have shown here, and what would show it
    differs: Sequence[str] = ()  #: what differs, and what to change
    largest_difference: float = math.nan  #: relative to the largest output

    @property
    def text(self) -> str:
        return "; ".join(self.differs or self.unseen)


@dataclass(frozen=True)
class Expected:
    """What a layer's files say: options of attention, and a bias (its rotation was applied before)."""

    options: Mapping[str, Any]
    bias: Form | None = None
    key_mask: Any = None  #: [batch, keys] bool: which keys are tokens
    packed: Sequence[int] | None = None  #: lengths of packed sequences
    mask: Any = None  #: [batch, 1, queries, keys], where the files leave the mask to the caller: the model's own
    heads_are_tiled: bool = False
    unseen: tuple[str, ...] = ()


@dataclass
class _Tensors:
    q: Any
    k: Any
    v: Any
    got: Any
    rows: Any = field(repr=False)  #: [batch, 1, queries, 1] bool: which queries are tokens and see a key


def computed(call: _Tensors, expected: Expected) -> Any:
    """The output that the files specify, [batch, heads, queries, features], in float32; sequence by sequence."""
    q, k, v = call.q, call.k, call.v
    if expected.heads_are_tiled and 1 < k.shape[1] < q.shape[1]:
        count = q.shape[1] // k.shape[1]
        k, v = k.repeat(1, count, 1, 1), v.repeat(1, count if v.shape[1] < q.shape[1] else 1, 1, 1)
    elif v.shape[1] != k.shape[1]:  # one of them was repeated before it was seen
        most = max(v.shape[1], k.shape[1])
        k, v = (x.repeat_interleave(most // x.shape[1], 1) for x in (k, v))
    outputs = []
    for i in range(q.shape[0]):
        options = {name: value for name, value in expected.options.items() if value is not None}
        if expected.packed is not None:
            options["packed"] = list(expected.packed)
        if expected.key_mask is not None:
            options["key_mask"] = expected.key_mask[i : i + 1]
        if expected.mask is not None:
            options["mask"] = expected.mask[min(i, len(expected.mask) - 1)][None].contiguous()
        one = [x[i : i + 1].contiguous() for x in (q, k, v)]
        outputs.append(attention(one[0], one[1], one[2], expected.bias, **options))
    return torch.cat(outputs)


# --- what may be otherwise ----------------------------------------------------------------------------------------------


def _with(expected: Expected, **options: Any) -> Expected:
    return replace(expected, options={**expected.options, **options})


@dataclass(frozen=True)
class Rival:
    """A known mistake: what it is about, what it does, and what would show it."""

    about: str
    words: str
    expected: Expected
    needs: str = ""


def _of_masks(expected: Expected, queries: int, keys: int) -> Iterator[Rival]:
    options = expected.options
    window, chunk = options.get("window") or 0, options.get("chunk") or 0
    more = "two tokens or more"
    if options.get("causal"):
        yield Rival("causal mask", "mask: expected causal, got none", _with(expected, causal=False, window=0, chunk=0), more)
        if window or chunk:
            yield Rival("causal mask", "mask: expected causal, got none", _with(expected, causal=False), more)
    elif queries == keys:
        yield Rival("no causal mask", "mask: expected none, got causal", _with(expected, causal=True), more)
    if window:
        enough = f"{window + 1:,} tokens"
        for other in (0, window - 1, window + 1):
            got = f"one of {other}" if other else "none"
            yield Rival(f"window {window}", f"window: expected {window}, got {got}", _with(expected, window=other), enough)
    if chunk:
        yield Rival(f"chunk {chunk}", f"chunk: expected {chunk}, got none", _with(expected, chunk=0), f"{chunk + 1:,} tokens")
        yield Rival(f"chunk {chunk}", f"chunk: expected {chunk}, got a window", _with(expected, chunk=0, window=chunk), f"{chunk + 1:,} tokens")
    if expected.key_mask is not None and not bool(expected.key_mask.all()):
        yield Rival("padding", "padding: tokens attend to it", replace(expected, key_mask=None))
    if expected.packed is not None:
        yield Rival("packed sequences", "packing: tokens attend to other sequences", replace(expected, packed=None))


def _of_scores(expected: Expected, call: _Tensors) -> Iterator[Rival]:
    options = expected.options
    scale = options.get("scale") or 1 / math.sqrt(call.q.shape[-1])
    yield Rival("scale", f"scale: expected {scale:.4g}, got {scale * 1.1:.4g}", _with(expected, scale=scale * 1.1), "larger scores")
    if options.get("softcap"):
        yield Rival(f"softcap {options['softcap']:g}", f"softcap: expected {options['softcap']:g}, got none", _with(expected, softcap=None), "larger scores")
    if options.get("sinks") is not None:
        yield Rival("sinks", "sinks: expected one for each head, got none", _with(expected, sinks=None), "larger sinks")
    if options.get("temperature") is not None:
        yield Rival("temperature", "temperature: expected, got none", _with(expected, temperature=None),
                    f"{options['temperature'][1] + 1:,} tokens")
    if expected.bias is not None:
        yield Rival("bias", "bias: expected, got none", replace(expected, bias=None), "a trained table that is not 0")
    if 1 < call.k.shape[1] < call.q.shape[1]:
        yield Rival("groups of heads", "heads: query heads of a key head are next to each other, here they are apart",
                    replace(expected, heads_are_tiled=True))


def rivals(expected: Expected, call: _Tensors) -> Iterator[Rival]:
    """Known mistakes in the attention of a layer."""
    yield from _of_masks(expected, call.q.shape[2], call.k.shape[2])
    yield from _of_scores(expected, call)


def _strays(expected: Expected, call: _Tensors) -> Iterator[Rival]:
    """What was applied though the files do not say so; these only name a difference."""
    options = expected.options
    keys = call.k.shape[2]
    if not options.get("window") and not options.get("chunk"):
        for window in range(1, min(keys, 65)):
            yield Rival("window", f"window: expected none, got one of {window}", _with(expected, window=window))
    elif options.get("window"):
        for window in range(1, min(keys, 65)):
            yield Rival("window", f"window: expected {options['window']}, got one of {window}", _with(expected, window=window))
    if not options.get("softcap"):
        for cap in (10.0, 15.0, 20.0, 30.0, 50.0):
            yield Rival("softcap", f"softcap: expected none, got {cap:g}", _with(expected, softcap=cap))


# --- the verdict --------------------------------------------------------------------------------------------------------


def _tolerance(call: Call) -> float:
    """Relative to the largest output: float32 sums in another order; 16 bits of every weight and product."""
    kinds = [x.dtype for x in (call.q, call.k, call.v, call.out, call.weights) if x is not None]
    return 2e-4 if all(kind in (torch.float32, torch.float64) for kind in kinds) else 4e-2


def _distance(a: Any, b: Any, rows: Any) -> float:
    """The largest difference, relative to the largest expected output."""
    b = torch.where(rows, b, torch.zeros_like(b))
    a = torch.where(rows, a, torch.zeros_like(a))
    most = float(a.abs().max())
    found = float((a - b).abs().max()) / (most or 1.0)
    return found if math.isfinite(found) else math.inf


def _scale_that_fits(expected: Expected, call: _Tensors, tolerance: float) -> float | None:
    """The scale with which the output is what was seen: by bisection in thirds around the best of a coarse grid."""
    first = expected.options.get("scale") or 1 / math.sqrt(call.q.shape[-1])

    def off(power: float) -> float:
        return _distance(computed(call, _with(expected, scale=first * 2.0**power)), call.got, call.rows)

    best = min((off(one / 2), one / 2) for one in range(-14, 15))[1]
    low, high = best - 0.5, best + 0.5
    for _ in range(30):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if off(a) < off(b) else (a, high)
    found = (low + high) / 2
    return first * 2.0**found if off(found) <= tolerance else None


def _name_of(expected: Expected, call: _Tensors, tolerance: float, wanted: Any) -> Sequence[str]:
    """What explains the difference, in words."""
    for make in (rivals, _strays):
        for one in make(expected, call):
            if one.about != "scale" and _distance(computed(call, one.expected), call.got, call.rows) <= tolerance:
                return [one.words]
    scale = _scale_that_fits(expected, call, tolerance)
    if scale is not None:
        first = expected.options.get("scale") or 1 / math.sqrt(call.q.shape[-1])
        return [f"scale: expected {first:.6g}, got {scale:.6g}"]
    off = (torch.where(call.rows, wanted - call.got, torch.zeros_like(wanted)).abs() > tolerance * float(wanted.abs().max())).any(-1)
    heads = off.any(2).any(0).nonzero().flatten().tolist()
    tokens = off.any(1).any(0).nonzero().flatten().tolist()
    where = f"heads {', '.join(map(str, heads[:8]))} " if len(heads) < off.shape[1] else ""
    return [f"attention: its output is not that of the config; {where}first at token {tokens[0] if tokens else 0}, and no single known mistake explains it"]


def judged(call: Call, expected: Expected, rows: Any) -> AttentionVerdict:
    """The verdict over one call."""
    v = call.v
    got = call.out
    if v is None:  # weights were seen: the output of values that are the rows of the identity
        keys = call.k.shape[2]
        v = torch.eye(keys).expand(call.k.shape[0], call.k.shape[1], keys, keys)
        got = call.weights
    tensors = _Tensors(call.q.float().cpu(), call.k.float().cpu(), v.float().cpu(), got.float().cpu(), rows.cpu())
    tolerance = _tolerance(call)
    wanted = computed(tensors, expected)
    distance = _distance(wanted, tensors.got, tensors.rows)
    if distance > tolerance and call.v is None:  # of products, the scale may be in the queries, where it was not seen
        unscaled = _with(expected, scale=1.0)
        if _distance(computed(tensors, unscaled), tensors.got, tensors.rows) <= tolerance:
            expected = replace(unscaled, unseen=(*expected.unseen, "scale (queries were multiplied before the product)"))
            wanted = computed(tensors, expected)
            distance = _distance(wanted, tensors.got, tensors.rows)
    if distance > tolerance:
        return AttentionVerdict("differs", differs=tuple(_name_of(expected, tensors, tolerance, wanted)), largest_difference=distance)
    shown: dict[str, bool] = {}
    needs: dict[str, str] = {}
    for one in rivals(expected, tensors):
        visible = _distance(wanted, computed(tensors, one.expected), tensors.rows) > 2 * tolerance
        shown[one.about] = shown.get(one.about, True) and visible
        needs[one.about] = one.needs
    seen = tuple(about for about, is_shown in shown.items() if is_shown)
    unseen = tuple(about + (f" ({needs[about]} would)" if needs[about] else "") for about, is_shown in shown.items() if not is_shown)
    return AttentionVerdict("agrees", seen, unseen + expected.unseen, largest_difference=distance)


def factor_between(x: Any, sources: Sequence[Any]) -> float:
    """c where x is c times one of the sources in any order (heads apart, transposed), as a projection that was scaled; else 1."""
    found = x.float().abs().flatten().sort().values
    total = float(found.sum())
    for source in sources:
        if source.numel() != x.numel() or not total:
            continue
        other = source.float().abs().flatten().sort().values
        ratio = total / (float(other.sum()) or math.inf)
        if ratio and torch.allclose(found, ratio * other, rtol=1e-4, atol=1e-5 * float(found[-1])):
            return ratio
    return 1.0


Judge = Callable[[Call], AttentionVerdict]

__all__ = ["AttentionVerdict", "Expected", "factor_between", "judged", "rivals"]

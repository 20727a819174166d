"""Attention that applies position as keys and queries are loaded."""

from __future__ import annotations

from collections import namedtuple

from . import _posenc
from .arrays import cache_order_of, empty_like, f32_like, features_of, flags_of, ids_of, shape_of, table_of
from .forms import handle_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .arrays import Array, CacheOrder, DType, Order
    from .forms import Form

Gradients = namedtuple("Gradients", ["q", "k", "v", "parameters", "sinks", "position_queries", "log_gates"])
Gradients.__doc__ = "What attention_backward returns; None for a gradient that was not requested."


# --- values of options as the extension takes them, by their kinds --------------------------------------------------


def positions_of(where: Any) -> Any:
    return where if where is None or isinstance(where, int) else ids_of(where)


VALUES = (0, 1, 2, 3, 6)  # the kinds of options that are not arrays: flags, integers, numbers and temperatures
RULES = ("steps", "log", "tokens")  # of a temperature


def temperature_of(given: Any) -> Any:
    if given is None:
        return None
    scale, length, shift, *rule = given
    if len(rule) > 1 or (rule and rule[0] not in RULES):
        raise ValueError(f"attention: the rule of a temperature must be one of {', '.join(RULES)} but is {rule[0]!r}")
    return float(scale), int(length), int(shift), RULES.index(rule[0]) if rule else 0


def _is_torch_bool(x: Any) -> bool:
    return x is not None and str(getattr(x, "dtype", "")) == "torch.bool"


def bytes_of(numbers: Any) -> Any:
    """Integers; torch before 2.2 does not export bool, so its bytes are taken."""
    if not _is_torch_bool(numbers):
        return ids_of(numbers)
    import torch

    return numbers.view(torch.uint8)


def pattern_of(x: Any) -> Any:
    """A tensor; if torch does not export bool, numbers to add in its place."""
    if not _is_torch_bool(x):
        return x
    try:
        x[..., :0].__dlpack__()
    except RuntimeError:
        import torch

        return torch.zeros(x.shape, device=x.device).masked_fill(~x, -float("inf"))
    return x


def pages_of(table: Any) -> Any:
    return table_of(table, "attention", "block_table")


# --- the calls; keywords.py has their keywords ------------------------------------------------------------------------


def with_form(form: Form | None, options: dict[str, Any]) -> int:
    """Adds the form to the options; returns its number of position axes."""
    if form is None:
        return 1
    options["position"] = handle_of(form, "attention")
    return form._axes


def call_attention(out: Any, q: Array, k: Array, v: Array, form: Form | None, options: dict[str, Any], order: Order,
                   cache_order: CacheOrder | None, dtype: DType | None) -> Any:
    if out is None:
        out = empty_like(q, (*shape_of(q)[:-1], features_of(v)))
    _posenc.attention(out, q, k, v, options, with_form(form, options), order,
                      None if options["block_table"] is None else cache_order_of(order, cache_order),
                      0 if dtype is None else flags_of(dtype))
    return out


def backward_of(d_out: Array, q: Array, k: Array, v: Array, out: Array | None, logsumexp: Array | None, form: Form | None,
                options: dict[str, Any], order: Order, wanted: tuple[str, ...], added: tuple[Any, ...]) -> Gradients:
    inputs = {"q": q, "k": k, "v": v, "position_queries": options["position_queries"], "log_gates": options["log_gates"]}
    unknown = set(wanted) - set(inputs)
    if unknown:
        raise ValueError(f"attention_backward: wanted names {sorted(unknown)[0]!r}; choose from: {', '.join(inputs)}")
    for name in wanted:
        if inputs[name] is None:
            raise ValueError(f"attention_backward: wanted names {name!r}, but there are none")
    made = tuple(empty_like(x) if name in wanted else None for name, x in inputs.items())
    _posenc.attention_backward(d_out, q, k, v, out, logsumexp, options, with_form(form, options), order,
                               (*made[:4], *added, made[4]))
    return Gradients(made[0], made[1], made[2], added[0], added[1], made[3], made[4])


def merge(out: Any, logsumexp: Any, other: Array, other_logsumexp: Array, *, order: Order = "bhsd",
          dtype: DType | None = None) -> Any:
    """Merges attention over other keys into out and logsumexp, in place: partial results over disjoint keys become the result
    over all of them. On the host, and by torch for its tensors on a GPU. Returns out.

    out, other: [batch, heads, queries, features], what attention returned; their types may differ.
    logsumexp, other_logsumexp: [batch, heads, queries], f32 or f64, what attention(logsumexp=) wrote; −inf: a query with no key.
    order: the axes of out and other.
    dtype: "bf16" if numpy arrays of uint16 hold bfloat16.
    Error: half an ulp of each, plus ε · max(|out|, |other|) if each logsumexp is off by up to ε; on a GPU, also
      3 · 2^-24 · max(|out|, |other|), or 3 · 2^-53 if one of them is float64.
    Raises: Error for a shape or type that is invalid and for arrays that overlap, ValueError for a shape or place on a GPU; both are then
      left unchanged.
    """
    if getattr(out, "is_cuda", False):
        from ._merging import merge_by_torch

        merge_by_torch(out, logsumexp, other, other_logsumexp, order)
        return out
    _posenc.merge(out, logsumexp, other, other_logsumexp, order, flags_of(dtype))
    return out


def new_logsumexp(q: Array, order: Order = "bhsd") -> Any:
    """An array for attention's logsumexp: [batch, heads, queries], f32, or f64 if q is."""
    shape = shape_of(q)[:-1]
    if order in ("bshd", "shd", "thd"):
        shape = (*shape[:-2], shape[-1], shape[-2])
    return f32_like(q, shape)


__all__ = ["Gradients", "merge", "new_logsumexp"]

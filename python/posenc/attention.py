"""Attention that applies position as keys and queries are loaded."""

from __future__ import annotations

from collections import namedtuple

from . import _posenc
from .arrays import cache_order_of, empty_like, f32_like, flags_of, ids_of, shape_of, table_of
from .forms import handle_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .arrays import Array, CacheOrder, DType, Ids, Order
    from .forms import Form

Gradients = namedtuple("Gradients", ["q", "k", "v", "parameters", "sinks", "position_queries", "log_gates"])
Gradients.__doc__ = "What attention_backward returns; None where it was not wanted."


def _positions(where: Any) -> Any:
    return where if where is None or isinstance(where, int) else ids_of(where)


def _temperature(given: Any) -> Any:
    if given is None:
        return None
    scale, length, shift, *rule = given
    names = ("steps", "log", "tokens")
    if len(rule) > 1 or (rule and rule[0] not in names):
        raise ValueError(f"attention: the rule of a temperature must be one of {', '.join(names)} but is {rule[0]!r}")
    return float(scale), int(length), int(shift), names.index(rule[0]) if rule else 0


def _mask(mask: Any, is_pattern: bool) -> Any:
    """torch before 2.2 does not export bool: bytes for a list of keys, numbers to add for a pattern."""
    if mask is None or str(getattr(mask, "dtype", "")) != "torch.bool":
        return ids_of(mask)
    import torch

    if not is_pattern:
        return mask.view(torch.uint8)
    try:
        mask[..., :0].__dlpack__()
    except RuntimeError:
        return torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, -float("inf"))
    return mask


def _options(form: Form | None, causal: bool, window: int, scale: float | None, query_positions: Any, key_positions: Any,
             keys_are_rotated: bool, query_lengths: Any, key_lengths: Any, packed: Any, packed_keys: Any,
             key_mask: Any, chunk: int, softcap: float | None, temperature: Any, sinks: Any, mask: Any,
             position_queries: Any, log_gates: Any, rounds_rotated: bool, block_table: Any = None,
             repeatable: bool = False) -> tuple[Any, ...]:
    return (None if form is None else handle_of(form, "attention"), causal, window, scale, _positions(query_positions),
            _positions(key_positions), keys_are_rotated, ids_of(query_lengths), ids_of(key_lengths), ids_of(packed),
            ids_of(packed_keys), _mask(key_mask, False), 1 if form is None else form._axes, chunk, softcap or 0.0,
            _temperature(temperature), sinks, _mask(mask, True), position_queries, log_gates, rounds_rotated,
            table_of(block_table, "attention", "block_table"), repeatable)


def attention(q: Array, k: Array, v: Array, form: Form | None = None, *, causal: bool = False, window: int = 0,
              scale: float | None = None, query_positions: Ids | int | None = None,
              key_positions: Ids | int | None = None, keys_are_rotated: bool = False, query_lengths: Ids | None = None,
              key_lengths: Ids | None = None, packed: Ids | None = None, packed_keys: Ids | None = None,
              key_mask: Ids | None = None, chunk: int = 0, softcap: float | None = None,
              temperature: tuple[Any, ...] | None = None, sinks: Array | None = None, mask: Array | None = None,
              position_queries: Array | None = None, log_gates: Array | None = None, rounds_rotated: bool = False,
              block_table: Ids | None = None, order: Order = "bhsd", cache_order: CacheOrder | None = None,
              out: Any = None, logsumexp: Any = None, weights: Any = None, dtype: DType | None = None) -> Any:
    """softmax(scale · q·kᵀ + bias) · v over the keys that each query may attend to; returns `out`.

    q: [batch, heads, queries, features], k, v: [batch, key heads, keys, features], or without the first axes; `order`
      names their axes as they are in memory. heads is a multiple of key heads.
    form: a rotation (q and k are rotated as they are loaded) or a bias; None: no position.
    causal: a query attends to no key after its own token. The queries are the last tokens of the sequence.
    window: n: a query attends only to keys less than n away; 0: to all.
    scale: multiplies q·k; None: 1/√features (T5 needs 1).
    query_positions, key_positions: an int (the first of consecutive ones), or ids; None: 0, 1, 2 …
    keys_are_rotated: the cache holds keys that were rotated when they were written.
    rounds_rotated: f16 and bf16, on the host: rotated q and k are rounded to their type, as rotate rounds them and as a
      cache of rotated keys stores them; otherwise they keep the precision of f32, which takes longer. A GPU always rounds.
    query_lengths, key_lengths: [batch], the lengths of shorter sequences. packed, packed_keys: the lengths of sequences
      packed one after another. key_mask: [batch, keys], 0 is padding.
    chunk: a query attends only to keys in its own chunk of positions (Llama 4). softcap: scores become c · tanh(score / c)
      (Gemma 2). temperature: (scale, length, shift) multiplies queries by 1 + scale · ln(1 + ⌊(p + shift) / length⌋); with
      "log" as a fourth, 1 + scale · ln(max(1, (p + shift) / length)), with "tokens" scale · ln(p + shift).
    sinks: [heads], logits that take part in every softmax (gpt-oss). mask: broadcast to [batch, heads, queries, keys], bool or
      numbers that are added.
    position_queries: [batch, heads, queries, features], multiplied with the form's vectors by distance in place of q
      (relative-logits); axes as in q.
    log_gates: [batch, heads, keys], logarithms of the gates whose sums the form adds (forget-gate), f32 or f64.
    block_table: [sequences, pages of each], integers, or a list for each sequence: k and v are pools of pages,
      [pages, key heads, page size, features], or with cache_order="bshd" [pages, page size, key heads, features] as vLLM's.
      Token t of sequence b is token t mod page size of page block_table[b, t // page size]. Requires key_lengths, one for
      each sequence, including the new tokens. Entries for tokens that no query attends to may be −1. With `packed` (the number
      of queries of each sequence in this call), q holds the tokens of all sequences one after another: order="thd" for
      [tokens, heads, features].
    cache_order: the axes of the pools; None: heads in the same place as in q.
    logsumexp, weights: also written if given: [batch, heads, queries], [batch, heads, queries, keys].
    dtype: "bf16" if numpy arrays of uint16 hold bfloat16; q may be f32 with a cache of f16 or bf16.
    Error: f32, at most 2e-6 · Σ weight · |v| while |scale · q·k| and the bias stay below 16.
    Throws: Error for a shape, type, length, position or form that does not fit; out is then left unchanged.
    """
    if out is None:
        out = empty_like(q, (*shape_of(q)[:-1], shape_of(v)[-1]))
    options = _options(form, causal, window, scale, query_positions, key_positions, keys_are_rotated, query_lengths,
                       key_lengths, packed, packed_keys, key_mask, chunk, softcap, temperature, sinks, mask,
                       position_queries, log_gates, rounds_rotated, block_table)
    _posenc.attention(out, q, k, v, options, order, None if block_table is None else cache_order_of(order, cache_order),
                      logsumexp, weights, 0 if dtype is None else flags_of(dtype))
    return out


def attention_backward(d_out: Array, q: Array, k: Array, v: Array, form: Form | None = None, *, out: Array | None = None,
                       logsumexp: Array | None = None, wanted: tuple[str, ...] = ("q", "k", "v"),
                       d_parameters: Any = None, causal: bool = False, window: int = 0, scale: float | None = None,
                       query_positions: Ids | int | None = None, key_positions: Ids | int | None = None,
                       keys_are_rotated: bool = False, query_lengths: Ids | None = None, key_lengths: Ids | None = None,
                       packed: Ids | None = None, packed_keys: Ids | None = None, key_mask: Ids | None = None, chunk: int = 0,
                       softcap: float | None = None, temperature: tuple[Any, ...] | None = None,
                       sinks: Array | None = None, mask: Array | None = None, d_sinks: Any = None,
                       position_queries: Array | None = None, log_gates: Array | None = None, d_query_vectors: Any = None,
                       d_key_vectors: Any = None, d_value_vectors: Any = None, d_query_offsets: Any = None,
                       rounds_rotated: bool = False, repeatable: bool = False, order: Order = "bhsd") -> Gradients:
    """The gradients of attention, given that of its output; options as passed to attention.

    out, logsumexp: the outputs of attention; None: recomputed.
    wanted: which of "q", "k", "v", "position_queries" and "log_gates" are computed. d_parameters: added to, if the form is
      a learned bias, in the shape of bias_backward. d_sinks: added to, [heads]. d_query_vectors, d_key_vectors, d_value_vectors,
      d_query_offsets: added to, if the form has vectors by distance, in the shape of their tables.
    repeatable: on a GPU, the same bytes in every run, at some cost in speed; on the host this is always so.
    Throws: as attention, and for a gradient that the position does not have.
    """
    inputs = {"q": q, "k": k, "v": v, "position_queries": position_queries, "log_gates": log_gates}
    unknown = set(wanted) - set(inputs)
    if unknown:
        raise ValueError(f"attention_backward: wanted names {sorted(unknown)[0]!r}; choose from: {', '.join(inputs)}")
    for name in wanted:
        if inputs[name] is None:
            raise ValueError(f"attention_backward: wanted names {name!r}, but there are none")
    made = tuple(empty_like(x) if name in wanted else None for name, x in inputs.items())
    options = _options(form, causal, window, scale, query_positions, key_positions, keys_are_rotated, query_lengths,
                       key_lengths, packed, packed_keys, key_mask, chunk, softcap, temperature, sinks, mask,
                       position_queries, log_gates, rounds_rotated, None, repeatable)
    _posenc.attention_backward(d_out, q, k, v, out, logsumexp, options, order,
                               (*made[:4], d_parameters, d_sinks, d_query_vectors, d_key_vectors, d_value_vectors,
                                d_query_offsets, made[4]))
    return Gradients(made[0], made[1], made[2], d_parameters, d_sinks, made[3], made[4])


def new_logsumexp(q: Array, order: Order = "bhsd") -> Any:
    """An array for attention's logsumexp: [batch, heads, queries], f32, or f64 if q is."""
    shape = shape_of(q)[:-1]
    if order in ("bshd", "shd", "thd"):
        shape = (*shape[:-2], shape[-1], shape[-2])
    return f32_like(q, shape)


__all__ = ["Gradients", "attention", "attention_backward", "new_logsumexp"]

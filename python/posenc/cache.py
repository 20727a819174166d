"""A paged cache of keys and values: writes tokens to slots, and moves them.

A pool is [pages, heads, page size, features] (order "bhsd"), or [pages, page size, heads, features] as vLLM's ("bshd"), in
any strides; f32, f64, f16 or bf16, independent of the type of the tokens, or e4m3 with a scale: torch.float8_e4m3fn, or
uint8, which holds its bytes. In numpy, it may also be q8_0, with ggml's bytes: np.zeros((pages, heads, page size, features // 32),
posenc.q8_0), or a view of uint8 as posenc.q8_0. Slot s is token s mod page size of page s // page size, and a negative slot
skips its token. A plain cache of n tokens is one page of n. Everything is written in place; an array
for which that is not possible is rejected.
A cache may be on a GPU, with the tokens. Its slots are then on the host, or on the GPU (int64 or int32, such as vLLM's
slot_mapping): there the token of a slot past the end of the cache is skipped, and the next synchronize() throws an Error; a
slot that occurs twice is not detected.
"""

from __future__ import annotations

from array import array

from . import _posenc
from .arrays import cache_order_of, flags_of, ids_of, table_of
from .forms import handle_of
from .positions import _integers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .arrays import Array, CacheOrder, DType, Ids, Order
    from .forms import Form


def _scale(scale: Any) -> Any:
    return array("f", [scale]) if isinstance(scale, (int, float)) else scale


def _slots(slots: Any, verb: str, name: str) -> Any:
    nested = isinstance(slots, (list, tuple)) and any(isinstance(row, (list, tuple, range)) for row in slots)
    return table_of(slots, verb, name) if nested else ids_of(slots)


def slots_of(pages: Ids, page_size: int, first: int, count: int) -> Any:
    """The slots of tokens first … first + count − 1 of a sequence with these pages: its row of a block table.

    Raises: Error for a negative first or count, a page size below 1, and tokens past the pages or in a negative page.
    """
    if count < 0:
        raise _posenc.Error(f"slots_of: first and count must be 0 or more but are {first} and {count}")
    out = _integers((count,))
    _posenc.slots_of(out, ids_of(pages), page_size, first)
    return out


def rotate_into(cache: Any, slots: Ids, k: Array, form: Form | None, *, first: int = 0, ids: Ids | None = None,
                order: Order = "bhsd", cache_order: CacheOrder | None = None, dtype: DType | None = None,
                scale: float | Array | None = None) -> Any:
    """Writes keys to their slots, each rotated by its position, once. Returns the cache.

    cache: a pool of pages, written in place.
    slots: one for each token, [batch, sequence]; a negative one skips its token.
    k: [batch, heads, sequence, features], or without the first axes; order="thd" for [tokens, heads, features].
    form: a rotation. With a bias, no position or None, keys are copied unchanged, so that the form of any layer can be passed.
    first, ids: positions of the tokens, as in rotate.
    cache_order: the axes of the pool; None: heads in the same place as in k.
    dtype: "bf16" if numpy arrays of uint16 hold bfloat16.
    scale: of a cache of e4m3, a number or float32 [heads]: keys are divided by it, then rounded to nearest; beyond ±448 they
      become that. attention(k_scale=) multiplies by it.
    Error, Range: as rotate. Raises: Error for a shape, type, slot, position, scale or form that is invalid, and for two
    tokens in one slot; the cache is then left unchanged.
    """
    _posenc.rotate_into(None if form is None else handle_of(form, "rotate_into"), cache, _slots(slots, "rotate_into", "slots"),
                        k, first if ids is None else ids_of(ids), 1 if form is None else form._axes, order,
                        cache_order_of(order, cache_order), "rotate_into", 0 if dtype is None else flags_of(dtype), _scale(scale))
    return cache


def copy_into(cache: Any, slots: Ids, x: Array, *, order: Order = "bhsd", cache_order: CacheOrder | None = None,
              dtype: DType | None = None, scale: float | Array | None = None) -> Any:
    """Writes values, or keys that are not rotated, to their slots; arguments as in rotate_into. Returns the cache."""
    _posenc.rotate_into(None, cache, _slots(slots, "copy_into", "slots"), x, 0, 1, order, cache_order_of(order, cache_order),
                        "copy_into", 0 if dtype is None else flags_of(dtype), _scale(scale))
    return cache


def append(k_cache: Any, v_cache: Any, slots: Ids, q: Array | None, k: Array, v: Array, form: Form | None, *, first: int = 0,
           ids: Ids | None = None, out: Any = None, q_norm: Array | None = None, k_norm: Array | None = None, eps: float = 1e-6,
           norm_offset: float = 0.0, order: Order = "bhsd", cache_order: CacheOrder | None = None,
           dtype: DType | None = None, k_scale: float | Array | None = None, v_scale: float | Array | None = None) -> Any:
    """A step of a decoder: rotates the queries, in place unless `out` is given, and writes rotated keys and unchanged values to
    their slots. Returns the queries. On a GPU it is a single kernel.

    q: None to write only keys and values. form: with a bias, no position or None, nothing is rotated.
    q_norm, k_norm: weights of an RMS norm that is applied before the rotation, x / √(mean(x²) + eps) · (weight + norm_offset):
      [features] for each head (Qwen 3; Gemma 3 with norm_offset=1), [heads, features] for all heads of a token (OLMo 2).
    k_scale, v_scale: of caches of e4m3, as scale in rotate_into. Everything else as there.
    Error: as rotate, bit-identical on host and GPU; a norm is computed in f32 (f64 for f64).
    Raises: as rotate_into; everything is then left unchanged.
    """
    if out is None:
        out = q
    _posenc.append(None if form is None else handle_of(form, "append"), k_cache, v_cache, _slots(slots, "append", "slots"), q, k,
                   v, out, q_norm, k_norm, eps, norm_offset, first if ids is None else ids_of(ids),
                   1 if form is None else form._axes, order, cache_order_of(order, cache_order),
                   0 if dtype is None else flags_of(dtype), _scale(k_scale), _scale(v_scale))
    return out


def copy_slots(cache: Any, to: Ids, from_: Ids, *, order: CacheOrder = "bhsd", dtype: DType | None = None) -> Any:
    """Copies the token of slot from_[i] to slot to[i], as if all were read before any is written. Returns the cache.

    For a fork that gets its own page, and for tokens that close a gap; `shift` then gives keys their new positions. If
    either slot is negative, the copy is skipped.
    Raises: Error for lists of different lengths, a slot past the cache, and two tokens in one slot; the cache is then
    left unchanged.
    """
    _posenc.copy_slots(cache, ids_of(to), ids_of(from_), order, 0 if dtype is None else flags_of(dtype))
    return cache


__all__ = ["append", "copy_into", "copy_slots", "rotate_into", "slots_of"]

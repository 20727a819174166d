"""Attention made ready for many calls, such as the steps of a decoder."""

from __future__ import annotations

from . import _posenc
from .arrays import cache_order_of, empty_like, flags_of, shape_of
from .attention import _options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .arrays import Array, CacheOrder, DType, Order
    from .forms import Form


class AttentionPlan:
    """What plan_attention returns: call it with q, k and v. It owns a workspace, so that a call allocates nothing.

    Threads may share a plan; while one has the workspace, calls of others allocate their own.
    """

    __slots__ = ("_handle", "__weakref__")

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def __call__(self, q: Array, k: Array, v: Array, out: Any = None) -> Any:
        """attention with the plan's options, over lengths, pages and ids as they are now; returns `out`.

        Throws: as attention, and for shapes and types other than the plan's.
        """
        if out is None:
            out = empty_like(q, (*shape_of(q)[:-1], shape_of(v)[-1]))
        _posenc.attend(self._handle, out, q, k, v)
        return out

    @property
    def workspace_bytes(self) -> int:
        """How large its workspace is."""
        return int(_posenc.plan_facts(self._handle)[0])

    @property
    def threads(self) -> int:
        """How many threads a call runs on."""
        return int(_posenc.plan_facts(self._handle)[1])

    def __repr__(self) -> str:
        return f"<plan of attention: {self.threads} threads, {self.workspace_bytes} bytes>"


def plan_attention(q: Array, k: Array, v: Array, form: Form | None = None, *, threads: int = 0, causal: bool = False,
                   window: int = 0, scale: float | None = None, query_positions: Array | int | None = None,
                   key_positions: Array | int | None = None, keys_are_rotated: bool = False,
                   query_lengths: Array | None = None, key_lengths: Array | None = None, packed: Array | None = None,
                   packed_keys: Array | None = None, key_mask: Array | None = None, chunk: int = 0,
                   softcap: float | None = None, temperature: tuple[Any, ...] | None = None, sinks: Array | None = None,
                   mask: Array | None = None, position_queries: Array | None = None, log_gates: Array | None = None,
                   rounds_rotated: bool = False, block_table: Array | None = None, order: Order = "bhsd",
                   cache_order: CacheOrder | None = None, logsumexp: Any = None, weights: Any = None,
                   dtype: DType | None = None) -> AttentionPlan:
    """Attention made ready for many calls with arrays of these shapes and types, on the host; options as attention has them.

    q, k, v: their numbers are not read.
    threads: of each call; 0: as many as calls have now.
    The plan keeps the arrays of the options and reads them at each call: a decoder changes key_lengths, block_table and
    ids in place. They are contiguous int64, block_table int32; lists are refused, for the plan could not see them change.
    With f32, f16 and bf16, and without weights, a call allocates nothing but `out`, where that is not given.
    Throws: as attention, and for packed queries over pages.
    """
    given = {"query_positions": query_positions, "key_positions": key_positions, "query_lengths": query_lengths,
             "key_lengths": key_lengths, "packed": packed, "packed_keys": packed_keys, "key_mask": key_mask, "mask": mask,
             "block_table": block_table}
    for name, value in given.items():
        if isinstance(value, (list, tuple, range)):
            raise TypeError(f"plan_attention: {name} must be an array, which is read at each call, but is of type "
                            f"{type(value).__name__}")
    options = _options(form, causal, window, scale, query_positions, key_positions, keys_are_rotated, query_lengths,
                       key_lengths, packed, packed_keys, key_mask, chunk, softcap, temperature, sinks, mask,
                       position_queries, log_gates, rounds_rotated, block_table)
    if options[17] is not mask:
        raise TypeError("plan_attention: this torch does not export bool; pass a mask of numbers that are added")
    return AttentionPlan(_posenc.plan(q, k, v, options, order,
                                      None if block_table is None else cache_order_of(order, cache_order), logsumexp,
                                      weights, threads, 0 if dtype is None else flags_of(dtype)))


__all__ = ["AttentionPlan", "plan_attention"]

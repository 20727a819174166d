"""Attention prepared once and called many times, e.g. for each decoding step."""

from __future__ import annotations

from . import _posenc
from .arrays import cache_order_of, empty_like, features_of, flags_of, shape_of
from .attention import with_form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .arrays import Array, CacheOrder, DType, Order
    from .forms import Form


class AttentionPlan:
    """What plan_attention returns: call it with q, k and v. It owns its workspace, so a call allocates only its result.

    Threads may share a plan; while one has the workspace, calls of others allocate their own.
    """

    __slots__ = ("_handle", "__weakref__")

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def __call__(self, q: Array, k: Array, v: Array, out: Any = None) -> Any:
        """attention with the plan's options, over lengths, pages and ids as they are now; returns `out`.

        Raises: as attention, and for shapes and types other than the plan's.
        """
        if out is None:
            out = empty_like(q, (*shape_of(q)[:-1], features_of(v)))
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


def make_plan(q: Array, k: Array, v: Array, form: Form | None, given: dict[str, Any], options: dict[str, Any], order: Order,
              cache_order: CacheOrder | None, threads: int, dtype: DType | None) -> AttentionPlan:
    """`given`: arrays as the caller has them. A plan reads them at each call, so none may have become a copy in `options`."""
    for name, value in given.items():
        if isinstance(value, (list, tuple, range)):
            raise TypeError(f"plan_attention: {name} must be an array, which is read at each call, but is of type "
                            f"{type(value).__name__}")
        if options[name] is not value and options[name].data_ptr() != value.data_ptr():
            raise TypeError(f"plan_attention: this torch does not export bool; pass a {name} of numbers that are added")
    return AttentionPlan(_posenc.plan(q, k, v, options, with_form(form, options), order,
                                      None if options["block_table"] is None else cache_order_of(order, cache_order), threads,
                                      0 if dtype is None else flags_of(dtype)))


__all__ = ["AttentionPlan"]

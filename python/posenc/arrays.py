"""Which library an array belongs to, and how to create a new one with that library."""

from __future__ import annotations

import sys
from array import array

TYPE_CHECKING = False  # typing is slow to import, and only type checkers need it
if TYPE_CHECKING:
    from typing import Any, Literal, Protocol, Sequence, Union

    DType = Literal["f32", "f64", "f16", "bf16"]
    Order = Literal["bhsd", "bshd", "hsd", "shd", "thd", "sd"]
    CacheOrder = Literal["bhsd", "bshd"]

    class SupportsDLPack(Protocol):
        """An array that exports itself: torch, cupy, jax, numpy …"""

        def __dlpack__(self) -> Any: ...

    # numpy arrays, memoryviews and array.array have the buffer protocol, which Python 3.11 cannot name as a type.
    Array = Union[SupportsDLPack, Any]
    Ids = Union[SupportsDLPack, Sequence[int], Any]

# A block of q8_0 as numpy describes it, 34 bytes for 32 features: the last axis of a cache of q8_0 has one for each.
q8_0: Any = [("scale", "<f2"), ("values", "i1", 32)]

BF16 = 2  # 16-bit integers hold bfloat16: a flag of the extension
_NUMPY = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "uint16"}
_TORCH = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16"}


def library_of(x: Any) -> str:
    """The string "torch", "cupy", or "numpy" for everything on the host."""
    for kind in type(x).__mro__:
        name = kind.__module__.partition(".")[0]
        if name in ("torch", "cupy"):
            return name
    return "numpy"


def flags_of(dtype: DType | None) -> int:
    if dtype is not None and dtype not in _NUMPY:
        raise ValueError(f"dtype must be one of f32, f64, f16, bf16 but is {dtype!r}")
    return BF16 if dtype == "bf16" else 0


def empty(shape: Sequence[int], dtype: DType, like: Any = None) -> Any:
    """A new array of `like`'s library, on its device; a numpy array if `like` is None."""
    flags_of(dtype)
    library = "numpy" if like is None else library_of(like)
    if library == "torch":
        import torch

        return torch.empty(tuple(shape), dtype=getattr(torch, _TORCH[dtype]), device=like.device)
    if library == "cupy":
        import cupy

        return cupy.empty(tuple(shape), dtype=_NUMPY[dtype])
    return _numpy("out=").empty(tuple(shape), dtype=_NUMPY[dtype])


def empty_like(x: Any, shape: Sequence[int] | None = None) -> Any:
    """A new array of x's library, type and device."""
    library = library_of(x)
    if library == "torch":
        return x.new_empty(tuple(x.shape if shape is None else shape))
    if library == "cupy":
        import cupy

        return cupy.empty(tuple(x.shape if shape is None else shape), dtype=x.dtype)
    numpy = _numpy("out=")
    view = numpy.asarray(x)
    return numpy.empty(view.shape if shape is None else tuple(shape), dtype=view.dtype)


def f32_like(x: Any, shape: Sequence[int]) -> Any:
    """f64 for f64, else f32: the type of sums."""
    return empty(shape, "f64" if "float64" in str(getattr(x, "dtype", "")) else "f32", x)


def shape_of(x: Any) -> tuple[int, ...]:
    shape = getattr(x, "shape", None)
    return tuple(shape) if shape is not None else tuple(memoryview(x).shape or ())


def features_of(x: Any) -> int:
    """The length of the last axis, in numbers: an element of q8_0 is a block of them."""
    count = shape_of(x)[-1]
    return count * 32 if getattr(getattr(x, "dtype", None), "names", None) == ("scale", "values") else count


def ids_of(ids: Any) -> Any:
    """A list of integers becomes an array; arrays stay as they are."""
    return array("q", ids) if isinstance(ids, (list, tuple, range)) else ids


def table_of(rows: Any, verb: str, name: str) -> Any:
    """Lists of integers become an array with a row for each, shorter ones padded with −1; arrays stay as they are."""
    if not isinstance(rows, (list, tuple)):
        return rows
    if not any(isinstance(row, (list, tuple, range)) for row in rows):
        raise TypeError(f"{verb}: {name} must have a list for each sequence, as [[3, 6], [1]], or be an array of two axes")
    width = max(len(row) for row in rows)
    flat = array("q", (page for row in rows for page in (*row, *(-1,) * (width - len(row)))))
    return memoryview(flat).cast("B").cast("q", [len(rows), width]) if width else memoryview(flat)


def cache_order_of(order: str, cache_order: str | None) -> str:
    """The axis order of a paged cache: as given, else with heads in the same place as in the tokens."""
    return cache_order or ("bshd" if order in ("bshd", "shd", "thd") else "bhsd")


def _numpy(instead: str) -> Any:
    if sys.modules.get("numpy") is None:
        try:
            import numpy  # noqa: F401
        except ImportError:
            raise ImportError(f"posenc makes new arrays with numpy, which is not installed; pass {instead}") from None
    return sys.modules["numpy"]

"""The verbs: tables, additions, rotations and biases, in place on the caller's arrays."""

from __future__ import annotations

from . import _posenc
from .arrays import empty, flags_of, ids_of, shape_of
from .forms import Form, handle_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .arrays import Array, DType, Ids, Order


def rotate(x: Any, form: Form, *, first: int = 0, ids: Ids | None = None, order: Order = "bhsd", out: Any = None,
           dtype: DType | None = None) -> Any:
    """Rotates the pairs of x by the angles of its positions, in place unless `out` is given; returns the result.

    x: [batch, heads, sequence, features], or without the first axes; or (q, k), rotated in one pass.
    first, ids: positions first, first + 1, …, or one id for each token: [sequence] or [batch, sequence], preceded by an
      axis of form.axes coordinates if there are several.
    order: the axes of x as they are in memory; "bshd" is what torch's projections give.
    dtype: "bf16" if x is a numpy array of uint16 that holds bfloat16.
    Error: f32, at most 2 ulp of the larger product. Bit-identical on every machine.
    Range: positions |p| < 2^53 (on a GPU 0 ≤ p), or rows of the form's table; fractions: prepare(…, denominators=…).
    Raises: Error for a shape, type, position or form that is invalid; x is then left unchanged.
    """
    if type(form) is not Form:  # quicker than a call; a subclass passes it
        handle_of(form, "rotate")
    where = first if ids is None else ids_of(ids)
    if type(x) is tuple:
        q, k = x
        out_q, out_k = x if out is None else out
        _posenc.rotate(form._handle, out_q, q, out_k, k, where, form._axes, order, 0 if dtype is None else flags_of(dtype))
        return out_q, out_k
    if out is None:
        out = x
    _posenc.rotate(form._handle, out, x, None, None, where, form._axes, order, 0 if dtype is None else flags_of(dtype))
    return out


def rotate_backward(d_out: Any, form: Form, *, first: int = 0, ids: Ids | None = None, order: Order = "bhsd") -> Any:
    """The gradient of rotate, in place: rotates d_out (or a pair of them) back, keeping the magnitude.

    Range, Raises: as rotate.
    """
    q, k = d_out if type(d_out) is tuple else (d_out, None)
    _posenc.rotate_backward(handle_of(form, "rotate_backward"), q, k, first if ids is None else ids_of(ids), form._axes, order)
    return d_out


def rerotate(x: Any, before: Form, after: Form, *, first: int = 0, ids: Ids | None = None, order: Order = "bhsd",
             dtype: DType | None = None) -> Any:
    """Turns cached keys that `before` rotated into those that `after` would have rotated; in place.

    Error: with exact angles one rotation by their difference.
    Raises: Error if the two do not rotate the same features.
    """
    _posenc.rerotate(handle_of(before, "rerotate"), handle_of(after, "rerotate"), x, first if ids is None else ids_of(ids),
                     before._axes, order, 0 if dtype is None else flags_of(dtype))
    return x


def shift(keys: Any, form: Form, by: int, *, slots: Ids | None = None, order: Order = "bhsd",
          dtype: DType | None = None) -> Any:
    """Moves rotated keys of a cache by a constant: what `form` wrote for position p becomes what it writes for p + by.

    In place; for every scaling, magnitude and layout.
    slots: of a pool of pages, [pages, heads, page size, features], only the keys in these slots; None: all of `keys`.
    Error: one rotation by a constant, and one more rounding.
    Raises: Error for float32 angles (use rerotate), for a table, for a slot past the pool or given twice, and as
    rotate.
    """
    _posenc.shift(handle_of(form, "shift"), keys, ids_of(slots), by, order, 0 if dtype is None else flags_of(dtype))
    return keys


def add(x: Any, form: Form, *, first: int = 0, ids: Ids | None = None, out: Any = None, dtype: DType | None = None) -> Any:
    """Adds the vector of each position to x, in place unless `out` is given; returns the result.

    x: [..., sequence, width].
    Error: waves are correctly rounded to f32, f16 and bf16; the sum is rounded once.
    Range: positions |p| < 2^53 (on a GPU 0 ≤ p); for a learned table, its rows.
    Raises: Error for a shape, type, position or form that is invalid; x is then left unchanged.
    """
    if out is None:
        out = x
    _posenc.add(handle_of(form, "add"), out, x, first if ids is None else ids_of(ids), form._axes,
                0 if dtype is None else flags_of(dtype))
    return out


def add_backward(d_table: Any, d_out: Array, *, first: int = 0, ids: Ids | None = None, offset: int = 0) -> Any:
    """The gradient of a learned table: d_table[p + offset] += Σ d_out[token at p]; in place.

    Error: each row is summed in double in the order of the tokens and rounded once.
    Raises: Error for a position that is not a row of the table.
    """
    _posenc.add_backward(d_table, d_out, first if ids is None else ids_of(ids), 1, offset)
    return d_table


def tabulate(form: Form, *, first: int = 0, count: int | None = None, ids: Ids | None = None, dtype: DType = "f32",
             like: Any = None, out: Any = None) -> Any:
    """The table of an addition, [positions, width]; for a rotation (cosines, sines), each [positions, pairs].

    first, count: positions first … first + count − 1; or ids, one for each row (with form.axes coordinates each).
    like: an array whose library and device the result uses; None: numpy. "bf16" in numpy is uint16.
    out: arrays to write to instead: one, or (cosines, sines).
    Error: correctly rounded to f32, f16 and bf16; within 0.501 ulp in f64. Bit-identical on every machine.
    Raises: Error for a form that is neither, and for a type or position that is invalid.
    """
    handle = handle_of(form, "tabulate")
    where = first if ids is None else ids_of(ids)
    is_rotation = form.kind == "rotation"
    if out is None:
        if ids is not None:
            shape = shape_of(where)
            lead = shape if form.axes == 1 else (shape[1:] if len(shape) > 1 else (shape[0] // form.axes,))
        elif count is not None:
            lead = (count,)
        else:
            raise TypeError("tabulate: count, ids or out is needed")
        columns = (form.pairs if is_rotation else form.width) or 0
        one = empty((*lead, columns), dtype, like)
        out = (one, empty((*lead, columns), dtype, like)) if is_rotation else one
    cosines, sines = out if is_rotation else (out, None)
    _posenc.tabulate(handle, cosines, sines, where, form._axes, flags_of(dtype))
    return out


def bias(form: Form, queries: Any, keys: Any, *, dtype: DType = "f32", like: Any = None, out: Any = None) -> Any:
    """What the form adds to every attention score: [heads, queries, keys].

    queries, keys: how many there are (positions 0, 1, 2 …), or the position of each.
    Error: computed in double and rounded once. Bit-identical on every backend.
    Raises: Error for a form that is not a bias, and for vectors by distance, which need q and k.
    """
    handle = handle_of(form, "bias")
    of_queries, many_queries = _counted(queries, form)
    of_keys, many_keys = _counted(keys, form)
    if out is None:
        out = empty((form.heads or 0, many_queries, many_keys), dtype, like)
    _posenc.bias(handle, out, of_queries, of_keys, form._axes, flags_of(dtype))
    return out


def bias_backward(d_parameters: Any, d_out: Array, form: Form, queries: Any, keys: Any) -> Any:
    """The gradient of the form's parameters: adds to d_parameters; d_out has the shape of bias's `out`.

    d_parameters: [heads] for slopes, [rows, heads] for a table, [n] for a learned map.
    """
    handle = handle_of(form, "bias_backward")
    _posenc.bias_backward(handle, d_parameters, d_out, _counted(queries, form)[0], _counted(keys, form)[0], form._axes)
    return d_parameters


def _counted(where: Any, form: Form) -> tuple[Any, int]:
    """Positions as the extension takes them, and how many there are."""
    if isinstance(where, int):
        return 0, where
    ids = ids_of(where)
    shape = shape_of(ids)
    return ids, shape[-1] if len(shape) > 1 else shape[0] // form.axes


__all__ = ["add", "add_backward", "bias", "bias_backward", "rerotate", "rotate", "rotate_backward", "shift", "tabulate"]

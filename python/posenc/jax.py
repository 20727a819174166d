"""posenc for JAX, whose arrays are immutable: every function returns a new array, on the device of the one it was given.

The numbers are computed on the host: an array there is read in place, one on a GPU is copied. jax.grad differentiates
rotate, add and attention; inside jax.jit they are callbacks to the host, one for each call. Arrays of several devices and
jax.vmap are refused.
"""

from __future__ import annotations

from typing import Any, Callable

import jax
import numpy
from jax import numpy as jnp

from . import apply
from .keywords import attention as plain_attention, attention_backward
from .forms import Form, handle_of


# --- arrays of jax and of numpy -----------------------------------------------------------------------------------------


def _bits(x: Any) -> tuple[Any, str | None]:
    """x as numpy reads it, without a copy if it is on the host; bfloat16 as its bits, which numpy has no type for."""
    found = numpy.asarray(x)
    return (found.view(numpy.uint16), "bf16") if found.dtype == jnp.bfloat16 else (found, None)


def _wide(x: Any) -> Any:
    """The same, with bfloat16 as f32."""
    found = numpy.asarray(x)
    return found.astype(numpy.float32) if found.dtype == jnp.bfloat16 else found


def _known(value: Any, verb: str, name: str) -> Any:
    """A position, mask or table as a numpy array. jit knows only the shape of what it traces."""
    if isinstance(value, jax.core.Tracer):
        raise NotImplementedError(f"{verb}: {name} is traced by jax.jit or jax.grad; pass it as a constant")
    return numpy.asarray(value) if isinstance(value, jax.Array) else value


def _called(function: Callable[..., Any], like: tuple[Any, ...], *arrays: Any) -> tuple[Any, ...]:
    """function(*arrays), which returns one numpy array for each of `like`, as arrays of jax."""
    if any(isinstance(one, jax.core.Tracer) for one in arrays):
        shapes = tuple(jax.ShapeDtypeStruct(one.shape, one.dtype) for one in like)
        made: tuple[Any, ...] = jax.pure_callback(function, shapes, *arrays)
        return made
    devices = {device for one in arrays if isinstance(one, jax.Array) for device in one.devices()}
    if len(devices) > 1:
        raise NotImplementedError(f"posenc: arrays on {len(devices)} devices; gather them on one first")
    return tuple(jax.device_put(one, *devices) for one in function(*arrays))


# --- the functions ------------------------------------------------------------------------------------------------------


def rotate(x: Any, form: Form, *, first: int = 0, ids: Any = None, order: Any = "bhsd") -> Any:
    """x with its pairs rotated by the angles of its positions: a new array, differentiable. Arguments as posenc.rotate."""
    handle_of(form, "rotate")
    known = _known(ids, "rotate", "ids")

    def rotated(form: Form, x: Any) -> Any:
        def on_host(x: Any) -> Any:
            bits, dtype = _bits(x)
            made = apply.rotate(bits, form, first=first, ids=known, order=order, dtype=dtype, out=numpy.empty_like(bits))  # type: ignore[arg-type]
            return (made.view(numpy.asarray(x).dtype),)

        return _called(on_host, (x,), x)[0]

    @jax.custom_vjp
    def differentiable(x: Any) -> Any:
        return rotated(form, x)

    differentiable.defvjp(lambda x: (rotated(form, x), None), lambda _, d: (rotated(form.adjoint(), d),))
    return differentiable(x)


def add(x: Any, form: Form, *, first: int = 0, ids: Any = None) -> Any:
    """x plus the vectors of its positions: a new array, differentiable in x. Arguments as posenc.add."""
    handle_of(form, "add")
    known = _known(ids, "add", "ids")

    def on_host(x: Any) -> Any:
        bits, dtype = _bits(x)
        made = apply.add(bits, form, first=first, ids=known, dtype=dtype, out=numpy.empty_like(bits))  # type: ignore[arg-type]
        return (made.view(numpy.asarray(x).dtype),)

    @jax.custom_vjp
    def differentiable(x: Any) -> Any:
        return _called(on_host, (x,), x)[0]

    differentiable.defvjp(lambda x: (_called(on_host, (x,), x)[0], None), lambda _, d: (d,))
    return differentiable(x)


def tabulate(form: Form, *, first: int = 0, count: int | None = None, ids: Any = None, dtype: Any = "f32") -> Any:
    """The table of an addition, or (cosines, sines) of a rotation, as new arrays. Arguments as posenc.tabulate."""
    made = apply.tabulate(form, first=first, count=count, ids=_known(ids, "tabulate", "ids"), dtype=dtype)
    found = tuple(_put(one, dtype) for one in (made if isinstance(made, tuple) else (made,)))
    return found if isinstance(made, tuple) else found[0]


def bias(form: Form, queries: Any, keys: Any, *, dtype: Any = "f32") -> Any:
    """What the form adds to every attention score, as a new array. Arguments as posenc.bias."""
    return _put(apply.bias(form, _known(queries, "bias", "queries"), _known(keys, "bias", "keys"), dtype=dtype), dtype)


def attention(q: Any, k: Any, v: Any, form: Form | None = None, *, order: Any = "bhsd", **options: Any) -> Any:
    """softmax(scale · q·kᵀ + bias) · v: a new array, differentiable in q, k and v. Options as posenc.attention."""
    for name in ("out", "logsumexp", "weights"):
        if name in options:
            raise TypeError(f"attention: arrays of jax cannot be written, so {name}= is not taken")
    known = {name: _known(value, "attention", name) for name, value in options.items()}

    def on_host(q: Any, k: Any, v: Any) -> Any:
        (bits, dtype), (keys, _), (values, _) = _bits(q), _bits(k), _bits(v)
        out = numpy.empty((*bits.shape[:-1], values.shape[-1]), bits.dtype)
        made = plain_attention(bits, keys, values, form, order=order, out=out, dtype=dtype, **known)  # type: ignore[arg-type]
        return (made.view(numpy.asarray(q).dtype),)

    def attended(q: Any, k: Any, v: Any) -> Any:
        return _called(on_host, (jax.ShapeDtypeStruct((*q.shape[:-1], v.shape[-1]), q.dtype),), q, k, v)[0]

    def gradients(d: Any, q: Any, k: Any, v: Any) -> Any:
        made = attention_backward(_wide(d), _wide(q), _wide(k), _wide(v), form, order=order, **known)
        return tuple(one.astype(numpy.asarray(x).dtype) for one, x in zip((made.q, made.k, made.v), (q, k, v)))

    @jax.custom_vjp
    def differentiable(q: Any, k: Any, v: Any) -> Any:
        return attended(q, k, v)

    differentiable.defvjp(lambda q, k, v: (attended(q, k, v), (q, k, v)), lambda kept, d: _called(gradients, kept, d, *kept))
    return differentiable(q, k, v)


def _put(made: Any, dtype: str) -> Any:
    return jnp.asarray(made.view(jnp.bfloat16) if dtype == "bf16" else made)


__all__ = ["add", "attention", "bias", "rotate", "tabulate"]

"""posenc for torch: differentiable functions, and modules that hold learned parameters.

rotate, add and attention return new tensors and are differentiable. With torch ≥ 2.4 they are operators of torch
(posenc::rotate …), which torch.compile and torch.export can trace; before that, autograd functions. A form is passed as
text, so that it can be traced and saved; a trained table is a separate argument, and gets a gradient.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Optional

import torch

from . import _posenc, apply
from .arrays import ids_of
from .attention import VALUES, new_logsumexp
from .forms import Form, prepare, recipe_of, text_of
from .keywords import attention as plain_attention, attention_backward
from .scheme import Scheme, scheme as scheme_from
from .schemes import T5

HAS_OPERATORS = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 4)


# --- forms as text --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _form(text: str) -> Form:
    scheme, length, numerics, table_type, arithmetic = recipe_of(text)
    return prepare(scheme, length=length, numerics=numerics, table_type=table_type, arithmetic=arithmetic)  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def _adjoint(text: str) -> Form:
    return _form(text).adjoint()


def _text_of(form: Form | Scheme | str | None, verb: str) -> str:
    """The text of a form or scheme; "" for none. torch.compile traces this: no JSON is made here."""
    if form is None:
        return ""
    if isinstance(form, Form):
        if form._text is None:
            raise ValueError(f"{verb}: pass the scheme (and table= for what is trained), not a form with weights or a derived one")
        return form._text
    scheme = form if isinstance(form, Scheme) else scheme_from(form)
    return text_of(scheme._json, 0, "exact", None, None)


def _bound(text: str, table: Optional[torch.Tensor]) -> Form | None:
    """The form of a text, with its table if it has one."""
    if not text:
        return None
    if table is None:
        return _form(text)
    scheme, length, numerics, table_type, arithmetic = recipe_of(text)
    return prepare(scheme, length=length, numerics=numerics, table_type=table_type, arithmetic=arithmetic,  # type: ignore[arg-type]
                   weights=table.detach())


_VALUES = (*(name for name, kind, _ in _posenc.options() if kind in VALUES), "packed", "packed_keys")


def _option(value: Any) -> str:
    """A number, a truth value, a text, a sequence of these or None, as in JSON. torch.compile traces this."""
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(_option(one) for one in value) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return "null" if value is None else "true" if value is True else "false" if value is False else str(value)


def _ids(ids: Any) -> Optional[torch.Tensor]:
    if ids is None or isinstance(ids, torch.Tensor):
        return ids
    return torch.tensor(list(ids_of(ids)), dtype=torch.int64)


# --- what is computed, without autograd -------------------------------------------------------------------------------


def _rotate(x: torch.Tensor, ids: Optional[torch.Tensor], first: int, form: str, order: str) -> torch.Tensor:
    out = torch.empty_like(x, requires_grad=False)
    apply.rotate(x.detach(), _form(form), first=first, ids=ids, order=order, out=out)  # type: ignore[arg-type]
    return out


def _rotate_back(d: torch.Tensor, ids: Optional[torch.Tensor], first: int, form: str, order: str) -> torch.Tensor:
    d = d.detach().contiguous()
    out = torch.empty_like(d)
    apply.rotate(d, _adjoint(form), first=first, ids=ids, order=order, out=out)  # type: ignore[arg-type]
    return out


def _add(x: torch.Tensor, table: Optional[torch.Tensor], ids: Optional[torch.Tensor], first: int, form: str) -> torch.Tensor:
    out = torch.empty_like(x, requires_grad=False)
    bound = _bound(form, table)
    assert bound is not None
    apply.add(x.detach(), bound, first=first, ids=ids, out=out)
    return out


def _add_back(d: torch.Tensor, table: torch.Tensor, ids: Optional[torch.Tensor], first: int, form: str) -> torch.Tensor:
    d_table = torch.zeros_like(table, requires_grad=False)
    offset = json.loads(recipe_of(form)[0]).get("offset", 0)
    apply.add_backward(d_table, d.detach().contiguous(), first=first, ids=ids, offset=offset)
    return d_table


def _attention_options(options: str, sinks: Optional[torch.Tensor], mask: Optional[torch.Tensor], key_mask: Optional[torch.Tensor],
                       query_positions: Optional[torch.Tensor], key_positions: Optional[torch.Tensor]) -> dict[str, Any]:
    if key_mask is not None:
        key_mask = key_mask.cpu()  # masks are read on the host
    return {**json.loads(options), "sinks": None if sinks is None else sinks.detach(),
            "mask": None if mask is None else mask.detach(), "key_mask": key_mask, "query_positions": query_positions, "key_positions": key_positions}


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: Optional[torch.Tensor], sinks: Optional[torch.Tensor],
               mask: Optional[torch.Tensor], key_mask: Optional[torch.Tensor], query_positions: Optional[torch.Tensor], key_positions: Optional[torch.Tensor], form: str,
               options: str) -> tuple[torch.Tensor, torch.Tensor]:
    found = _attention_options(options, sinks, mask, key_mask, query_positions, key_positions)
    out = q.new_empty((*q.shape[:-1], v.shape[-1]))
    lse = new_logsumexp(q, found["order"])
    plain_attention(q.detach(), k.detach(), v.detach(), _bound(form, table), out=out, logsumexp=lse, **found)
    return out, lse


def _attention_back(d: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
                    table: Optional[torch.Tensor], sinks: Optional[torch.Tensor], mask: Optional[torch.Tensor],
                    key_mask: Optional[torch.Tensor], query_positions: Optional[torch.Tensor],
                    key_positions: Optional[torch.Tensor], form: str, options: str) -> tuple[torch.Tensor, ...]:
    found = _attention_options(options, sinks, mask, key_mask, query_positions, key_positions)
    d_table = torch.zeros_like(table, requires_grad=False) if table is not None else q.new_empty((0,))
    d_sinks = torch.zeros_like(sinks, requires_grad=False) if sinks is not None else q.new_empty((0,))
    made = attention_backward(
        d.detach().contiguous(), q.detach(), k.detach(), v.detach(), _bound(form, table), out=out.detach(), logsumexp=lse.detach(),
        d_parameters=d_table if table is not None else None, d_sinks=d_sinks if sinks is not None else None, **found)
    return made.q, made.k, made.v, d_table, d_sinks


# --- autograd ---------------------------------------------------------------------------------------------------------

if HAS_OPERATORS:
    _library = torch.library.Library("posenc", "DEF")
    _OPERATORS = {
        "rotate(Tensor x, Tensor? ids, SymInt first, str form, str order) -> Tensor": _rotate,
        "rotate_backward(Tensor d, Tensor? ids, SymInt first, str form, str order) -> Tensor": _rotate_back,
        "add(Tensor x, Tensor? table, Tensor? ids, SymInt first, str form) -> Tensor": _add,
        "add_backward(Tensor d, Tensor table, Tensor? ids, SymInt first, str form) -> Tensor": _add_back,
        "attention(Tensor q, Tensor k, Tensor v, Tensor? table, Tensor? sinks, Tensor? mask, Tensor? key_mask, Tensor? query_positions, Tensor? key_positions, "
        "str form, str options) -> (Tensor, Tensor)": _attention,
        "attention_backward(Tensor d, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, Tensor? table, Tensor? sinks, Tensor? mask, "
        "Tensor? key_mask, Tensor? query_positions, Tensor? key_positions, str form, str options) -> (Tensor, Tensor, Tensor, Tensor, Tensor)": _attention_back,
    }
    for _signature, _function in _OPERATORS.items():
        _library.define(_signature)
        for _key in ("CPU", "CUDA"):
            _library.impl(_signature.partition("(")[0], _function, _key)

    def _like(x: torch.Tensor, *others: Any) -> torch.Tensor:
        return torch.empty_like(x)

    def _like_table(d: torch.Tensor, table: torch.Tensor, *others: Any) -> torch.Tensor:
        return torch.empty_like(table)

    def _attention_like(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *others: Any) -> tuple[torch.Tensor, torch.Tensor]:
        shape = list(q.shape[:-1])
        if json.loads(others[-1])["order"] in ("bshd", "shd", "thd"):
            shape[-1], shape[-2] = shape[-2], shape[-1]
        kind = torch.float64 if q.dtype == torch.float64 else torch.float32
        return q.new_empty((*q.shape[:-1], v.shape[-1])), q.new_empty(shape, dtype=kind)

    def _gradients_like(d: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
                        table: Optional[torch.Tensor], sinks: Optional[torch.Tensor], *others: Any) -> tuple[torch.Tensor, ...]:
        return (q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape),
                torch.empty_like(table) if table is not None else q.new_empty((0,)),
                torch.empty_like(sinks) if sinks is not None else q.new_empty((0,)))

    for _name, _fake in (("rotate", _like), ("rotate_backward", lambda d, *others: torch.empty_like(d, memory_format=torch.contiguous_format)),
                         ("add", _like), ("add_backward", _like_table), ("attention", _attention_like),
                         ("attention_backward", _gradients_like)):
        torch.library.register_fake(f"posenc::{_name}", _fake, lib=_library)

    def _rotate_setup(ctx: Any, inputs: Any, output: Any) -> None:
        _, ids, ctx.first, ctx.form, ctx.order = inputs
        ctx.save_for_backward(ids)

    def _rotate_grad(ctx: Any, d: torch.Tensor) -> Any:
        return torch.ops.posenc.rotate_backward(d, ctx.saved_tensors[0], ctx.first, ctx.form, ctx.order), None, None, None, None

    def _add_setup(ctx: Any, inputs: Any, output: Any) -> None:
        _, table, ids, ctx.first, ctx.form = inputs
        ctx.save_for_backward(table, ids)

    def _add_grad(ctx: Any, d: torch.Tensor) -> Any:
        table, ids = ctx.saved_tensors
        d_table = torch.ops.posenc.add_backward(d, table, ids, ctx.first, ctx.form) if table is not None else None
        return d, d_table, None, None, None

    def _attention_setup(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.form, ctx.options = inputs
        ctx.save_for_backward(*tensors[:3], *output, *tensors[3:])
        ctx.mark_non_differentiable(output[1])

    def _attention_grad(ctx: Any, d: torch.Tensor, d_lse: Any) -> Any:
        q, k, v, out, lse, table, sinks, *others = ctx.saved_tensors
        dq, dk, dv, d_table, d_sinks = torch.ops.posenc.attention_backward(d, q, k, v, out, lse, table, sinks, *others, ctx.form, ctx.options)
        return dq, dk, dv, None if table is None else d_table, None if sinks is None else d_sinks, None, None, None, None, None, None

    def _no_second_derivative(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError("posenc: a second derivative is not implemented")

    for _name in ("rotate_backward", "add_backward", "attention_backward"):
        torch.library.register_autograd(f"posenc::{_name}", _no_second_derivative, lib=_library)
    torch.library.register_autograd("posenc::rotate", _rotate_grad, setup_context=_rotate_setup, lib=_library)
    torch.library.register_autograd("posenc::add", _add_grad, setup_context=_add_setup, lib=_library)
    torch.library.register_autograd("posenc::attention", _attention_grad, setup_context=_attention_setup, lib=_library)
    _call_rotate: Any = torch.ops.posenc.rotate
    _call_add: Any = torch.ops.posenc.add
    _call_attention: Any = torch.ops.posenc.attention
else:
    from torch.autograd.function import once_differentiable

    class _Rotate(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, ids: Any, first: int, form: str, order: str) -> torch.Tensor:
            ctx.rest = ids, first, form, order
            return _rotate(x, ids, first, form, order)

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, d: torch.Tensor) -> Any:
            return _rotate_back(d, *ctx.rest), None, None, None, None

    class _Add(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, table: Any, ids: Any, first: int, form: str) -> torch.Tensor:
            ctx.save_for_backward(table)
            ctx.rest = ids, first, form
            return _add(x, table, ids, first, form)

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, d: torch.Tensor) -> Any:
            (table,) = ctx.saved_tensors
            return d, _add_back(d, table, *ctx.rest) if table is not None else None, None, None, None

    class _Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: Any, sinks: Any, mask: Any, key_mask: Any,
                    query_positions: Any, key_positions: Any, form: str, options: str) -> Any:
            out, lse = _attention(q, k, v, table, sinks, mask, key_mask, query_positions, key_positions, form, options)
            ctx.save_for_backward(q, k, v, out, lse, table, sinks)
            ctx.rest = mask, key_mask, query_positions, key_positions, form, options
            ctx.mark_non_differentiable(lse)
            return out, lse

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, d: torch.Tensor, d_lse: Any) -> Any:
            q, k, v, out, lse, table, sinks = ctx.saved_tensors
            dq, dk, dv, d_table, d_sinks = _attention_back(d, q, k, v, out, lse, table, sinks, *ctx.rest)
            return dq, dk, dv, None if table is None else d_table, None if sinks is None else d_sinks, None, None, None, None, None, None

    _call_rotate = _Rotate.apply
    _call_add = _Add.apply
    _call_attention = _Attention.apply


# --- the functions ----------------------------------------------------------------------------------------------------


def rotate(x: torch.Tensor, form: Form | Scheme | str, *, first: int = 0, ids: Any = None, order: str = "bhsd") -> torch.Tensor:
    """x with its pairs rotated by the angles of its positions: a new tensor, differentiable. Arguments as posenc.rotate."""
    result: torch.Tensor = _call_rotate(x, _ids(ids), first, _text_of(form, "rotate"), order)
    return result


def rotate_(x: torch.Tensor, form: Form, *, first: int = 0, ids: Any = None, order: str = "bhsd") -> torch.Tensor:
    """The same in place, for tensors that do not require grad."""
    apply.rotate(x, form, first=first, ids=ids, order=order)  # type: ignore[arg-type]
    return x


def add(x: torch.Tensor, form: Form | Scheme | str, *, table: torch.Tensor | None = None, first: int = 0, ids: Any = None) -> torch.Tensor:
    """x plus the vectors of its positions: a new tensor. `table` is the trained one, [rows, width], and gets a gradient."""
    result: torch.Tensor = _call_add(x, table, _ids(ids), first, _text_of(form, "add"))
    return result


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: Form | Scheme | str | None = None, *,
              table: torch.Tensor | None = None, query_positions: Any = None, key_positions: Any = None, key_mask: Any = None,
              sinks: torch.Tensor | None = None, mask: torch.Tensor | None = None, order: str = "bhsd",
              **values: Any) -> torch.Tensor:
    """softmax(scale · q·kᵀ + bias) · v, differentiable in q, k, v, the trained `table` of a bias and the sinks.

    Arguments as posenc.attention; form may be a scheme, which is then prepared and cached.
    values: the options of posenc.attention that are not arrays: causal, window, scale, softcap, temperature …; and packed and
    packed_keys, the lengths of sequences, as lists.
    """
    if mask is not None and mask.requires_grad:
        raise NotImplementedError("attention: a mask has no gradient; pass mask.detach(), or a bias with its table")
    for name in values:
        if name not in _VALUES:
            raise TypeError(f"attention: with torch there is no option {name!r}; choose from: {', '.join(_VALUES)}")
    options = ", ".join(f'"{name}": {_option(value)}' for name, value in (*values.items(), ("order", order)))
    result: torch.Tensor = _call_attention(q, k, v, table, sinks, mask, key_mask, _ids(query_positions), _ids(key_positions),
                                           _text_of(form, "attention"), f"{{{options}}}")[0]
    return result


class RelativeBias(torch.nn.Module):
    """The trained table of a bias by distance (T5, Swin …), [rows, heads], and attention with it.

        bias = RelativeBias(posenc.T5(heads=8))
        out = bias.attention(q, k, v, scale=1.0)       # nothing of size queries × keys is allocated
    """

    def __init__(self, scheme: Scheme, *, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        if not isinstance(scheme, T5):
            raise NotImplementedError(f"RelativeBias: {scheme.name} is not a table of buckets and heads; pass table= to attention()")
        self.scheme = scheme
        self.table = torch.nn.Parameter(torch.zeros(scheme.buckets, scheme.heads, device=device, dtype=dtype))

    def forward(self, queries: int, keys: int) -> torch.Tensor:
        """The bias as an array, [heads, queries, keys], without a gradient: for inspection and comparison."""
        form = prepare(self.scheme, weights=self.table.detach())
        result: torch.Tensor = apply.bias(form, queries, keys, like=self.table)
        return result

    def attention(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
        """attention() with this bias; its gradient goes to `table`."""
        return attention(q, k, v, self.scheme, table=self.table, **options)

    def extra_repr(self) -> str:
        return repr(self.scheme)


class RotaryEmbedding(torch.nn.Module):
    """Cosines and sines as Hugging Face's rotary modules give them, exact: forward(x, position_ids) → (cos, sin).

    config: a transformers config, a dict, or a Rope. numerics: "exact", or "hf-f32" for the angles of transformers.
    repeat: how a pair's value is repeated over its two features: "halves" (Llama), "interleaved" (GLM, Cohere), "none".
    mix_axes: for M-RoPE: True merges the sections of the three coordinates into one table here (Qwen3-VL); False leaves
      that to the caller, and the result has the coordinates as its first axis (Qwen2-VL).
    """

    def __init__(self, config: Any, *, numerics: str = "exact", repeat: str = "halves", layer_type: str | None = None,
                 mix_axes: bool = False) -> None:
        super().__init__()
        self.config = config
        self.numerics = numerics
        self.repeat = repeat
        self.mix_axes = mix_axes
        self.schemes = _rotary_schemes(config, layer_type, mix_axes)

    def forward(self, x: torch.Tensor, position_ids: torch.Tensor, layer_type: str | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """position_ids: [batch, sequence], or with more axes before; the last axis of the result is the head dimension."""
        scheme = self.schemes.get(layer_type, next(iter(self.schemes.values()))) if layer_type is not None else next(iter(self.schemes.values()))
        scaling = getattr(scheme, "scaling", None)
        length = int(position_ids.max()) + 1 if scaling is not None and scaling.name in ("dynamic", "longrope") else 0
        form = prepare(scheme, length=length, numerics=self.numerics)  # type: ignore[arg-type]
        kind = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16"}[x.dtype]
        ids, shape = position_ids.detach().to(x.device), position_ids.shape
        if form.axes > 1:
            if ids.dim() == 2:
                ids = ids.expand(form.axes, *shape)
            shape = ids.shape[1:]
        pair = apply.tabulate(form, ids=ids.reshape(form.axes, -1).squeeze(0).contiguous(), dtype=kind, like=x)  # type: ignore[arg-type]
        cosines, sines = (one.reshape(*shape, -1) for one in pair)
        if self.repeat == "halves":
            return torch.cat((cosines, cosines), -1), torch.cat((sines, sines), -1)
        if self.repeat == "interleaved":
            return cosines.repeat_interleave(2, -1), sines.repeat_interleave(2, -1)
        return cosines, sines

    def extra_repr(self) -> str:
        return f"{next(iter(self.schemes.values()))}, numerics={self.numerics!r}"


def _rotary_schemes(config: Any, layer_type: str | None, mix_axes: bool) -> dict[Any, Scheme]:
    """The config's rotations by layer type; M-RoPE sections are either merged here or left to the caller."""
    from dataclasses import replace

    from .models import read_model

    if isinstance(config, Scheme):
        return {layer_type: config}
    found: dict[Any, Scheme] = {}
    for group in read_model(config).groups:
        if group["scheme"]["scheme"] == "rope":
            fields = {key: value for key, value in group["scheme"].items() if key != "magnitude"}
            scheme = replace(scheme_from(fields), first_dim=0, sign=1)  # what the model rotates with them has the sign
            found.setdefault(group["layer_type"], scheme if mix_axes else replace(scheme, sections=()))
    if not found:
        raise NotImplementedError("RotaryEmbedding: this config has no RoPE")
    return found


def __getattr__(name: str) -> Any:
    """posenc.torch.distributed, loaded when it is wanted: a torch may have been built without."""
    if name != "distributed":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import torch_distributed

    return torch_distributed


__all__ = ["RelativeBias", "RotaryEmbedding", "add", "attention", "rotate", "rotate_"]

"""From a scheme to a form, which is what the verbs apply."""

from __future__ import annotations

import json
from functools import lru_cache

from . import _posenc
from .arrays import ids_of
from .scheme import Scheme, scheme as scheme_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from .arrays import Array, DType, Ids

    Numerics = Literal["exact", "hf-f32", "ggml-f32"]


def text_of(scheme: str, length: int, numerics: str | None, table_type: str | None, arithmetic: str | None) -> str:
    """A recipe as one line: torch's compiler writes the arguments of operators into comments of the code that it makes."""
    return f"{length} {numerics or '-'} {table_type or '-'} {arithmetic or '-'} {scheme}"


def recipe_of(text: str) -> tuple[str, int, str | None, str | None, str | None]:
    length, *names, scheme = text.split(" ", 4)
    numerics, table_type, arithmetic = (None if name == "-" else name for name in names)
    return scheme, int(length), numerics, table_type, arithmetic


class Form:
    """A prepared scheme: an addition, a rotation or a bias. Immutable; threads may share it.

    A form prepared with weights reads them in place, and keeps them alive.
    """

    __slots__ = ("_handle", "_axes", "_facts", "_recipe", "_text", "__weakref__")

    def __init__(self, handle: Any, recipe: tuple[Any, ...] | None) -> None:
        self._handle = handle
        self._recipe = recipe  # scheme and options; None: it cannot be made again
        self._text = None if recipe is None else text_of(*recipe)  # the same as a text, for operators of torch
        self._facts: dict[str, Any] = json.loads(_posenc.form_json(handle))
        self._axes: int = self._facts["axes"]

    @property
    def kind(self) -> str:
        """What it is: "addition", "rotation", "bias" or "nothing"."""
        return str(self._facts["kind"])

    @property
    def axes(self) -> int:
        """How many coordinates a position has."""
        return self._axes

    @property
    def pairs(self) -> int | None:
        """Pairs of features that a rotation rotates."""
        return self._facts.get("pairs")

    @property
    def heads(self) -> int | None:
        """Heads of a bias; 0: any number."""
        return self._facts.get("heads")

    @property
    def width(self) -> int | None:
        """Features per token of an addition."""
        return self._facts.get("width")

    @property
    def layout(self) -> str | None:
        """Where the two features of a rotated pair are: "halves", "interleaved" …"""
        return self._facts.get("layout")

    @property
    def magnitude(self) -> float:
        """The factor of cosines and sines (YaRN, LongRoPE)."""
        return float(self._facts.get("magnitude", 1.0))

    @property
    def softmax_factor(self) -> float:
        """The factor that multiplies attention's scale."""
        return float(self._facts.get("softmax_factor", 1.0))

    @property
    def frequencies(self) -> tuple[float, ...]:
        """Radians per position of each pair or wave."""
        return tuple(self._facts.get("frequencies", ()))

    def adjoint(self) -> Form:
        """The transpose of a rotation, for gradients. It keeps the magnitude."""
        return Form(_posenc.derive(self._handle, "adjoint"), None)

    def inverse(self) -> Form:
        """The rotation that undoes this one."""
        return Form(_posenc.derive(self._handle, "inverse"), None)

    def for_keys(self) -> Form:
        """The rotation of keys, if it differs from that of queries (xPos)."""
        return Form(_posenc.derive(self._handle, "for_keys"), None)

    def head(self, head: int) -> Form:
        """One head of a form that differs from head to head (rope-mixed, fope)."""
        return Form(_posenc.head(self._handle, head), None)

    def slice_heads(self, first: int, count: int) -> Form:
        """Heads first … first + count − 1 of any form, for a process that has only these (tensor parallelism); what all heads share
        remains as it is. It reads the same weights.

        Raises: Error for heads that the form does not have.
        """
        return Form(_posenc.slice_heads(self._handle, first, count), None)

    def bind(self, weights: Array, key_weights: Array | None = None, value_weights: Array | None = None) -> Form:
        """The same form with another trained table of the same shape, for all of its tables."""
        return Form(_posenc.bind(self._handle, weights, key_weights, value_weights), None)

    def __reduce__(self) -> Any:
        if self._recipe is None:
            raise TypeError("a form with weights, or one derived from another, cannot be pickled: prepare it again")
        return _prepared, self._recipe

    def __repr__(self) -> str:
        facts = {key: value for key, value in self._facts.items() if key not in ("kind", "frequencies")}
        return f"<{self.kind}: {', '.join(f'{key} {value}' for key, value in facts.items())}>"

    def _repr_html_(self) -> str:
        from .html import table

        rows = [(key, f"{len(value)} values, {value[0]:.3g} to {value[-1]:.3g} radians per position"
                 if key == "frequencies" and value else value) for key, value in self._facts.items()]
        return table("Form", rows)


def handle_of(form: Form, verb: str) -> Any:
    """The form's handle in the extension. Raises: TypeError for anything that is not a form."""
    if isinstance(form, Form):
        return form._handle
    raise TypeError(f"{verb}: form must be what prepare() returns but is of type {type(form).__name__}"
                    + (f"; pass prepare({type(form).__name__}(…))" if isinstance(form, Scheme) else ""))


@lru_cache(maxsize=256)
def _prepared(text: str, length: int, numerics: str | None, table_type: str | None, arithmetic: str | None) -> Form:
    handle = _posenc.prepare(text, length, numerics, table_type, arithmetic, None, None, None, None)
    return Form(handle, (text, length, numerics, table_type, arithmetic))


def prepare(scheme: Scheme | str, *, length: int = 0, numerics: Numerics = "exact", table_type: DType | None = None,
            arithmetic: DType | None = None, weights: Array | None = None, key_weights: Array | None = None,
            value_weights: Array | None = None, denominators: Ids | None = None) -> Form:
    """Turns a scheme into a form: once per model, or per length if the scheme depends on it.

    scheme: a scheme such as Rope(dims=128), its JSON, or its name.
    length: tokens in the sequence, for schemes that depend on it (dynamic NTK, LongRoPE, KERPLE).
    numerics: "exact", or the float32 angles that models were trained with: "hf-f32", "ggml-f32".
    table_type, arithmetic: the types in which an engine rotates; None: f32, f64 for f64.
    weights, key_weights, value_weights: the trained table, if the scheme has one, the one dotted with keys (DeBERTa) and the
      one added to values (Shaw). The form reads them in place.
    denominators: positions are fractions, id / denominator, exactly: one for all axes or one for each (rope, sinusoidal).
    Without weights the result is cached by value: calling it again costs nothing.
    Raises: Error with scheme, field, value and rule.
    """
    text = scheme.to_json() if isinstance(scheme, Scheme) else scheme_from(scheme).to_json()
    if weights is None and key_weights is None and value_weights is None and denominators is None:
        return _prepared(text, length, numerics, table_type, arithmetic)
    return Form(_posenc.prepare(text, length, numerics, table_type, arithmetic, weights, key_weights, value_weights,
                                ids_of(denominators)), None)


def prepare_table(cosines: Array, sines: Array, *, layout: str = "halves") -> Form:
    """A rotation by your own cosines and sines, [rows, pairs] or [batch, sequence, pairs], read in place."""
    return Form(_posenc.prepare_table(cosines, sines, layout), None)

"""How a model encodes position, from its own files, and whether tensors agree with it."""

from __future__ import annotations

import json
import os
from dataclasses import field
from pathlib import Path
from typing import Any, Mapping, Sequence, Union

from . import _posenc
from ._values import dataclass
from .arrays import flags_of, ids_of, library_of, shape_of
from .attention import RULES, VALUES
from .forms import Form, prepare
from .html import grid, table
from .scheme import Scheme, scheme as scheme_from
from .schemes import Rope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .arrays import Array, DType, Ids, Order
    from .forms import Numerics

ModelSource = Union[str, "os.PathLike[str]", bytes, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A description of what one layer of a model does with position. posenc.layer() prepares it for attention()."""

    index: int | None
    layer_type: str | None
    scheme: Scheme
    scale: float | None  #: of scores; None: 1/√features
    window: int | None
    causal: bool | None
    first_position: int
    chunk: int | None
    softcap: float | None
    temperature: tuple[float, int, int, str] | None  #: scale, length, shift, rule
    has_sinks: bool  #: posenc.layer() then needs their trained logits

    def prepare(self, *, length: int = 0, numerics: Numerics = "exact", weights: Array | None = None) -> Form:
        """The form of this layer's scheme, its softmax factor included."""
        return prepare(self.scheme, length=length, numerics=numerics, weights=weights)


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedLayer:
    """What layer() returns: posenc.attention(q, k, v, prepared.form, **prepared.options)."""

    form: Form | None  #: a rotation or a bias; None: no position inside attention
    options: Mapping[str, Any]  #: causal, window, chunk, scale, softcap, temperature and sinks, for attention()
    addition: Form | None  #: added to the embeddings, once, before the first layer
    first_position: int  #: of the first token (RoBERTa and M2M100: 2)
    notes: Sequence[str]  #: what else the family does with position, which is left to the caller


@dataclass(frozen=True)
class Model:
    """How a model encodes position. `data` is what `posenc inspect --json` prints."""

    data: Mapping[str, Any] = field(repr=False)
    config: bytes = field(repr=False, compare=False)

    @property
    def model_type(self) -> str:
        return str(self.data["model_type"])

    @property
    def groups(self) -> Sequence[Mapping[str, Any]]:
        """Layers that treat position in the same way, as the JSON has them."""
        return list(self.data["layers"])

    @property
    def trained_length(self) -> int | None:
        found: int | None = self.data["trained_length"]
        return found

    @property
    def usable_length(self) -> int | None:
        found: int | None = self.data["usable_length"]
        return found

    @property
    def warnings(self) -> Sequence[str]:
        return list(self.data["warnings"])

    @property
    def assumed(self) -> Sequence[str]:
        return list(self.data["assumed"])

    @property
    def notes(self) -> Sequence[str]:
        return list(self.data["notes"])

    def _groups_of(self, index: int, part: str | None) -> Sequence[Mapping[str, Any]]:
        if part is None:
            meant = list(self.groups)
        else:
            meant = [group for group in self.groups if group["layer_type"] == part]
            meant += [group for one in self.data["parts"] if one["part"] == part for group in one["layers"]]
        return [group for group in meant if group["layers"] is None or index in _layers(group["layers"])]

    def group_of(self, index: int, part: str | None = None) -> Mapping[str, Any]:
        """The group of a layer, in "encoder", "decoder", "vision" … if several parts have it.

        Raises: Error if the model has no such layer, or several.
        """
        found = self._groups_of(index, part) if index >= 0 else []
        if len(found) == 1:
            return found[0]
        its = f" in its {part}" if part is not None else ""
        if found:
            names = ", ".join(str(group["layer_type"]) for group in found)
            raise _posenc.Error(f"layer: {self.model_type} has {len(found)} layers {index}{its}; choose with part=: {names}")
        known = ", ".join(str(group["layers"] or group["layer_type"]) for group in self.groups)
        raise _posenc.Error(f"layer: {self.model_type} has no layer {index}{its} (it has {known})")

    def layer(self, index: int = 0, part: str | None = None) -> Layer:
        """What layer `index` does with position."""
        return self._layer(index, self.group_of(index, part))

    def _layer(self, index: int, group: Mapping[str, Any]) -> Layer:
        found = dict(group["scheme"])
        if found.get("available", True) is False:
            raise NotImplementedError(f"layer: {self.model_type} uses {found['scheme']}: {group.get('formula', '')}")
        if mixer := group.get("token_mixer"):
            raise NotImplementedError(f"layer: {self.model_type}, layer {index}: it has no attention ({mixer} instead)")
        if other := group.get("other_attention"):
            raise NotImplementedError(f"layer: {self.model_type}, layer {index}: its attention is not computed: {other}")
        found.pop("magnitude", None)
        warm = group.get("temperature")
        scale = 1.0 if group["unscaled"] else group["scale"]
        return Layer(index=index, layer_type=group["layer_type"], scheme=scheme_from(json.dumps(found)), scale=scale,
                     window=group["window"], causal=group["causal"], first_position=group["first_position"],
                     chunk=group.get("chunk"), softcap=group.get("softcap"), has_sinks=bool(group.get("sinks")),
                     temperature=(warm["scale"], warm["length"], warm["shift"], warm["rule"]) if warm else None)

    def __repr__(self) -> str:
        lines = [f"{self.model_type}, {self.trained_length or 'unknown'} positions"]
        lines += [f"  layers {group['layers'] or 'all'}: {_group_text(group)}" for group in self.groups]
        lines += [f"  warning: {text}" for text in self.warnings]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(group["layers"] or "all", group["layer_type"] or "", _group_text(group)) for group in self.groups]
        return grid(f"{self.model_type}, {self.trained_length or 'unknown'} positions", ("layers", "type", "position"), rows)


def _group_text(group: Mapping[str, Any]) -> str:
    parts = [f"{key} {value}" for key, value in group["scheme"].items()
             if key not in ("scheme", "scaling", "sections", "section_order", "available")]
    text = f"{group['scheme']['scheme']} ({', '.join(parts)})" if parts else str(group["scheme"]["scheme"])
    if (scaling := group["scheme"].get("scaling")) and scaling["type"] != "none":
        text += f", {scaling['type']} scaling"
    for name in ("window", "chunk", "scale", "softcap"):
        if group.get(name) is not None:
            text += f", {name} {group[name]}"
    return text


def _layers(ranges: str) -> set[int]:
    """"0-2,4" → {0, 1, 2, 4}."""
    found: set[int] = set()
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _bytes_of(source: ModelSource) -> bytes:
    if isinstance(source, bytes):
        return source
    if isinstance(source, Mapping):
        return json.dumps(source).encode()
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return source.encode()
    if not isinstance(source, (str, os.PathLike)):
        if hasattr(source, "to_dict"):  # a transformers config
            return json.dumps(source.to_dict(), default=str).encode()
        raise TypeError(f"read_model: a path, JSON text, bytes or a config is needed, not {type(source).__name__}")
    path = Path(source)
    return (path / "config.json" if path.is_dir() else path).read_bytes()


def read_model(source: ModelSource) -> Model:
    """Reads how a model encodes position.

    source: the path of a config.json, of a folder that holds one, or of a .gguf file; JSON text; a dict; the config of
      a transformers model.
    An unknown model_type with the usual keys of RoPE is read as most families are; `data["is_assumed"]` is then true.
    Raises: Error that names key, value and rule; also for an unknown model_type without those keys.
    """
    if isinstance(source, Model):
        return source
    config = _bytes_of(source)
    return Model(json.loads(_posenc.read_model(config)), config)


inspect = read_model


def layer(model: ModelSource | Model, index: int = 0, *, part: str | None = None, length: int = 0,
          numerics: Numerics = "exact", weights: Array | None = None, key_weights: Array | None = None,
          value_weights: Array | None = None, sinks: Array | None = None, causal: bool | None = None) -> PreparedLayer:
    """All that the attention of a layer does, from the model's files: form, scale, mask, softcap, sinks and temperature.

        layer = posenc.layer(config, 3)
        posenc.attention(q, k, v, layer.form, **layer.options)

    model: as read_model takes it, or a Model. index: counted from 0 in its part.
    part: "encoder", "decoder", or another part's name ("vision"): required if several parts have the layer.
    length: of the sequence, for schemes that depend on it. numerics, weights, key_weights, value_weights: as in prepare.
    sinks: [heads], the trained logits of a layer that has sinks (gpt-oss). causal: required if the config does not specify it.
    Raises: Error for a layer that the model does not have or that several parts have, a scheme that is not computed, sinks
    or tables that are missing, and if the files do not specify whether attention is causal.
    """
    config = model.config if isinstance(model, Model) else _bytes_of(model)
    form, addition, given, first, notes = _posenc.layer(
        config, index, part, length, numerics, weights, key_weights, value_weights, sinks,
        0 if causal is None else 1 if causal else 2)
    # Of flags only those that are set: the others describe a call. causal is a property of every layer.
    options = {name: given[name] for name, kind, _ in _posenc.options()
               if kind in VALUES and (kind != 0 or given[name] or name == "causal")}
    warm = options["temperature"]
    options.update(causal=bool(given["causal"]), softcap=given["softcap"] or None, sinks=sinks,
                   temperature=None if warm is None else (*warm[:3], RULES[warm[3]]))
    return PreparedLayer(form=None if form is None else Form(form, None), options=options,
                         addition=None if addition is None else Form(addition, None), first_position=first,
                         notes=tuple(json.loads(notes)))


@dataclass(frozen=True)
class Verdict:
    """A result whose fields are those of the program's --json; also attributes: result.agrees, result.verdict …"""

    data: Mapping[str, Any] = field(repr=False)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["data"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __getstate__(self) -> Any:
        return {"data": dict(self.data)}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)


class CheckResult(Verdict):
    """Whether a tensor is what a scheme makes of another: agrees, verdict, max_abs_error, first_difference, advice …

    True only if it agrees. "inconclusive": no difference was found, but a known mistake would not have been seen in these
    tensors; reason says which, and which tokens would decide (deciding, float32_decides). excluded, unseen: the known
    mistakes that these tensors rule out, and those that they cannot; is_rounding marks those that only round angles.
    """

    def __bool__(self) -> bool:
        return bool(self.data["agrees"])

    def __repr__(self) -> str:
        data = self.data
        text = f"{data['verdict']}: largest difference {data['max_abs_error']:.3g}"
        if data["verdict"] == "inconclusive":
            return f"inconclusive: {data['reason']}"
        if data["numerics"] != "exact":
            text += f", with {data['numerics']} angles"
        if data.get("values"):
            text += f"; all values are {data['values']}, and compared as such"
        if (first := data["first_difference"]) is None:
            return text
        text += f"; at {first['index']} expected {first['expected']:.7g}, got {first['got']:.7g}"
        text += f"; {data['where']}" if data["where"] else ""
        return "\n".join([text, f"  what was applied: {_diagnosis_text(data['diagnosis'])}",
                          *(f"  - {line}" for line in data["advice"])])

    def _repr_html_(self) -> str:
        first = self.data["first_difference"]
        rows = [("verdict", self.data["verdict"]), ("largest difference", f"{self.data['max_abs_error']:.3g}")]
        if self.data["reason"]:
            rows.append(("reason", self.data["reason"]))
        if first is not None:
            rows += [("first difference", f"{first['index']}: expected {first['expected']:.7g}, got {first['got']:.7g}"),
                     ("what was applied", _diagnosis_text(self.data["diagnosis"]))]
        return table("check", rows + [("what to change", line) for line in self.data["advice"]])


class Diagnosis(Verdict):
    """Which convention made one tensor from another: verdict, best, others, remarks."""

    def __repr__(self) -> str:
        return "\n".join([_diagnosis_text(self.data), *(f"  - {line}" for line in self.data["remarks"])])

    def _repr_html_(self) -> str:
        best = self.data["best"] or {}
        rows = [("verdict", self.data["verdict"]), *((key, value) for key, value in best.items() if key != "positions")]
        return table("diagnosis", rows + [("remark", line) for line in self.data["remarks"]])


def _diagnosis_text(data: Mapping[str, Any]) -> str:
    best = data["best"]
    if best is None:
        return str(data["verdict"])
    shown = [f"{key} {best[key]}" for key in ("layout", "dims", "base", "spacing", "heads", "buckets") if key in best]
    if "scaling" in best and best["scaling"]["type"] != "none":
        shown.append(f"{best['scaling']['type']} scaling")
    for key, usual in (("sign", 1), ("first_dim", 0), ("magnitude", 1), ("first_position", 0), ("position_factor", 1)):
        value = best.get(key, usual)
        if abs(value - usual) > 1e-6:
            shown.append(f"{key} {value:.6g}")
    shown += [key for key in ("swapped", "reversed", "along_heads") if best[key]]
    return f"{data['verdict']}: {best['scheme']} ({', '.join(shown)})"


def _on_host(x: Any) -> Any:
    """A detached tensor in host memory; arrays that are there stay as they are."""
    library = library_of(x)
    if library == "torch":
        return x.detach().cpu()
    return x.get() if library == "cupy" else x


def check(before: Array, after: Array, scheme: Scheme | str | None = None, *, model: ModelSource | Model | None = None,
          layer: int = 0, part: str | None = None, first: int | None = None, ids: Ids | None = None, keys: Ids | None = None, causal: bool = False,
          weights: Array | None = None, tolerance: float = 0.0, order: Order = "bhsd",
          dtype: DType | None = None, length: int = 0) -> CheckResult:
    """Whether `after` is what a scheme makes of `before`, element by element; if not, what was applied instead.

    before, after: vectors [..., sequence, features] before and after a rotation or an addition; or scores
      [..., heads, queries, keys] before and after a bias. Tensors on a GPU are copied to the host.
    scheme, or model with layer (and part, if several have it): what is expected. The float32 angles of Hugging Face and ggml count as right.
    first, ids: positions of the tokens (of the queries, for a bias); keys: those of the keys.
    tolerance: relative to the norm of a pair or an element; 0: by type (f32 2e-6).
    length: tokens in the whole sequence, for scalings that depend on it (dynamic, longrope); 0: up to the last position.
    Raises: Error for shapes, types, positions and schemes that are invalid.
    """
    if (scheme is None) == (model is None):
        raise TypeError("check: pass a scheme, or model= with layer=")
    if model is not None:
        found = read_model(model).layer(layer, part) if not isinstance(model, Model) else model.layer(layer, part)
        scheme = found.scheme
        first = found.first_position if first is None else first
    assert scheme is not None
    if not isinstance(scheme, Scheme):
        scheme = scheme_from(scheme)
    axes = len(scheme.sections) if isinstance(scheme, Rope) and scheme.sections else getattr(scheme, "axes", 1)
    if not isinstance(axes, int):
        axes = len(axes)
    where = (first or 0) if ids is None else ids_of(ids)
    shape = shape_of(before)
    text = _posenc.check(scheme.to_json(), _on_host(before), _on_host(after), where, ids_of(keys), axes, causal,
                         tolerance, None if weights is None else _on_host(weights), 0 if dtype is None else flags_of(dtype),
                         order if order != "bhsd" or len(shape) <= 4 else "bhsd", length)
    result = json.loads(text)
    if result["first_difference"] is not None and order in ("bshd", "shd", "thd"):
        index = result["first_difference"]["index"]  # in the caller's own order
        index[-3], index[-2] = index[-2], index[-3]
    return CheckResult(result)


def diagnose(before: Array, after: Array, *, ids: Ids | None = None, axes: int = 1, order: Order = "bhsd",
             dtype: DType | None = None) -> Diagnosis:
    """Finds the convention, or the bug, that made `after` from `before`: shapes as in check.

    ids: the position of each token, if known; else consecutive, from a position to be found.
    Raises: Error for shapes that differ, integers, and positions that are invalid.
    """
    text = _posenc.diagnose(_on_host(before), _on_host(after), ids_of(ids), axes, 0 if dtype is None else flags_of(dtype), order)
    return Diagnosis(json.loads(text))


class Comparison(Verdict):
    """Where engines would compute different things for a model: agrees, length, topics."""

    def __bool__(self) -> bool:
        return bool(self.data["agrees"])

    def __repr__(self) -> str:
        lines = [f"{'engines agree' if self.data['agrees'] else 'engines differ'}, {self.data['length']} tokens"]
        for topic in self.data["topics"]:
            lines.append(f"  {topic['topic']}: {'differ' if topic['differs'] else 'agree'}")
            lines += [f"    {one['engine']}: {one['what']}" for one in topic["engines"]]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(topic["topic"], one["engine"], one["what"], "differs" if one["differs"] else "") for topic in
                self.data["topics"] for one in topic["engines"]]
        return grid(f"engines at {self.data['length']} tokens", ("topic", "engine", "what it does", ""), rows)


def compare_engines(model: ModelSource | Model, *, length: int = 0, engines: Sequence[str] = ()) -> Comparison:
    """Where engines (hf, vllm, llama.cpp …) compute different things for a model, and how different.

    length: tokens in the sequence; 0: all that the model can use. engines: the first is the one to measure against.
    """
    config = model.config if isinstance(model, Model) else _bytes_of(model)
    return Comparison(json.loads(_posenc.compare_engines(config, ",".join(engines) or None, length)))


__all__ = ["CheckResult", "Comparison", "Diagnosis", "Layer", "Model", "PreparedLayer", "check", "compare_engines", "diagnose",
           "inspect", "layer", "read_model"]

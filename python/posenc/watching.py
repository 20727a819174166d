"""Checks whether a running model applies RoPE as its config specifies: one forward pass, a verdict for every layer."""

from __future__ import annotations

import inspect
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterator, Mapping, Sequence

from .arrays import shape_of
from .html import grid
from .models import CheckResult, Layer, Model, ModelSource, check, read_model
from .scheme import Scheme


@dataclass(frozen=True)
class LayerVerdict:
    """What one layer did to its queries and keys."""

    layer: int
    name: str  #: of the module
    expected: Scheme
    q: CheckResult | None = field(repr=False)
    k: CheckResult | None = field(repr=False)
    problem: str = ""  #: why it could not be checked

    @property
    def agrees(self) -> bool:
        """No difference was found; what these tokens cannot show is in unseen()."""
        return not self.problem and all(one is not None and one.verdict != "differs" for one in (self.q, self.k))

    def unseen(self) -> str:
        """What the tokens of this forward could not have shown, in words; "" if nothing."""
        return next((one.reason for one in (self.q, self.k) if one is not None and one.reason), "")

    def lines(self) -> list[str]:
        """What differs, in words."""
        if self.problem:
            return [self.problem]
        found = []
        for name, result in (("queries", self.q), ("keys", self.k)):
            if result is not None and result.verdict == "differs":
                found += [f"{name}: {line}" for line in repr(result).splitlines()]
        return found


@dataclass(frozen=True)
class WatchReport:
    """The verdict for every layer; true if all agree with the config."""

    model_type: str
    layers: Sequence[LayerVerdict]

    def __bool__(self) -> bool:
        return bool(self.layers) and all(layer.agrees for layer in self.layers)

    @property
    def is_conclusive(self) -> bool:
        """Every known mistake would have been seen in the tokens of this forward, in every layer."""
        return not any(layer.unseen() for layer in self.layers)

    def __repr__(self) -> str:
        wrong = [layer for layer in self.layers if not layer.agrees]
        if not self.layers:
            return f"{self.model_type}: no rotation was seen"
        unseen = next((layer.unseen() for layer in self.layers if layer.unseen()), "")
        if not wrong:
            text = f"{self.model_type}: all {len(self.layers)} layers rotate as the config says"
            return f"{text}, as far as can be seen: {unseen}" if unseen else text
        lines = [f"{self.model_type}: {len(wrong)} of {len(self.layers)} layers do not rotate as the config says"]
        for layer in wrong:
            lines += [f"layer {layer.layer} ({layer.name})", *("  " + line for line in layer.lines())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(layer.layer, layer.name, "agrees" if layer.agrees else "differs", " ".join(layer.lines())) for layer in self.layers]
        return grid(f"{self.model_type}: rotations of one forward", ("layer", "module", "verdict", "what was seen"), rows)


@dataclass
class _Seen:
    """The tensors of one call of a rotation: queries and keys before and after."""

    layer: int
    name: str
    before: tuple[Any, ...]
    after: tuple[Any, ...]


_ROTATIONS = ("apply_rotary_pos_emb", "apply_rotary_emb", "apply_rotary", "rotary", "apply_multimodal_rotary_pos_emb",
              "apply_rotary_pos_emb_interleave")


def _attention_modules(model: Any) -> Iterator[tuple[int, str, Any]]:
    """Modules that hold a query projection, or know their layer and are called attention; numbered in order."""
    count = 0
    for name, module in model.named_modules():
        has_queries = any(hasattr(module, one) for one in ("q_proj", "wq", "q_a_proj", "qkv_proj", "query_key_value"))
        if has_queries or (hasattr(module, "layer_idx") and "attention" in type(module).__name__.lower()):
            layer = getattr(module, "layer_idx", None)
            yield layer if isinstance(layer, int) else count, name, module
            count += 1


@contextmanager
def _recorded(model: Any, rotation: str | None, seen: list[_Seen]) -> Iterator[None]:
    """While active, calls of the rotation functions of the model's own files are recorded."""
    current: list[tuple[int, str]] = []
    hooks = []
    patched: list[tuple[Any, str, Any]] = []

    def enter(layer: int, name: str) -> Callable[..., None]:
        return lambda *_: current.append((layer, name))

    def leave(*_: Any) -> None:
        current.pop()

    def recording(function: Any) -> Any:
        names = list(inspect.signature(function).parameters)

        def call(*arguments: Any, **options: Any) -> Any:
            values = [*arguments, *(options[name] for name in names[len(arguments):2] if name in options)]
            tensors = tuple(one.detach().clone() for one in values[:2] if hasattr(one, "detach") and one.dim() >= 3)
            result = function(*arguments, **options)
            made = result if isinstance(result, tuple) else (result,)
            pairs = [(a, b.detach().clone()) for a, b in zip(tensors, made) if hasattr(b, "detach") and a.shape == b.shape]
            if current and pairs:
                seen.append(_Seen(*current[-1], tuple(a for a, _ in pairs), tuple(b for _, b in pairs)))
            return result

        return call

    try:
        homes: set[Any] = set()
        for layer, name, module in _attention_modules(model):
            hooks += [module.register_forward_pre_hook(enter(layer, name)), module.register_forward_hook(leave)]
            homes.add(sys.modules.get(type(module).__module__))
            for method in _ROTATIONS if rotation is None else (rotation,):
                if callable(getattr(type(module), method, None)):
                    homes.add(type(module))
        for home in homes:
            for name in (rotation,) if rotation is not None else _ROTATIONS:
                function = None if home is None else vars(home).get(name)
                if callable(function) and not isinstance(function, type):
                    patched.append((home, name, function))
                    setattr(home, name, recording(function))
        yield
    finally:
        for home, name, function in patched:
            setattr(home, name, function)
        for hook in hooks:
            hook.remove()


def _in_order(tensor: Any, sequence: int) -> Any:
    """[batch, heads, sequence, features], whichever of the two middle axes is the sequence."""
    shape = shape_of(tensor)
    if len(shape) == 4 and shape[2] != sequence and shape[1] == sequence:
        return tensor.transpose(1, 2)
    return tensor


def _layer(model: Model, index: int) -> Layer:
    """The layer of this index; of the first part that has it, where several do."""
    groups = model._groups_of(index, None)
    return model._layer(index, groups[0]) if groups else model.layer(index)


def _verdict(one: _Seen, model: Model, sequence: int, positions: Any) -> LayerVerdict:
    layer = _layer(model, one.layer)
    results: list[CheckResult | None] = []
    for before, after in zip(one.before, one.after):
        before, after = (_in_order(x, sequence).contiguous() for x in (before, after))
        scheme = layer.scheme
        if getattr(scheme, "first_dim", 0) and shape_of(before)[-1] == getattr(scheme, "dims", 0):
            scheme = replace(scheme, first_dim=0)  # the model cut out the features that rotate (DeepSeek-V3)
        axes = len(getattr(scheme, "sections", ()))
        if positions is None and axes > 1:  # M-RoPE: the coordinates of text agree
            ids = [position for _ in range(axes) for position in range(layer.first_position, layer.first_position + sequence)]
            results.append(check(before, after, scheme, ids=ids))
        elif positions is None:
            results.append(check(before, after, scheme, first=layer.first_position))
        else:
            results.append(check(before, after, scheme, ids=positions))
    q, k = (*results, None)[:2] if len(results) > 1 else (results[0], results[0])
    return LayerVerdict(one.layer, one.name, layer.scheme, q, k)


def watch(model: Any, *inputs: Any, config: ModelSource | Model | None = None, positions: Any = None, rotation: str | None = None,
          **options: Any) -> WatchReport:
    """Runs one forward pass of a model and reports for every layer whether it rotates as its config says.

    model: a transformers or torch model; its attention modules call a function such as apply_rotary_pos_emb(q, k, …) of
      their own file, or name it by rotation=.
    inputs, options: the arguments of forward; without any, 16 random tokens of the config's vocabulary.
    config: a config, its path, or a dict; None: model.config.
    positions: the positions that the tokens have; None: consecutive from the model's first.
    A layer that differs comes with the first difference, the convention that was applied, and what to change.
    Raises: Error if the model's config is not known, TypeError if the model has no rotation to check.
    """
    import torch

    source: Any = getattr(model, "config", None) if config is None else config
    found = read_model(source)
    if not inputs and not options:
        vocabulary = int(getattr(getattr(model, "config", None), "vocab_size", 0) or _size(config, "vocab_size"))
        inputs = (torch.randint(0, vocabulary, (1, 16), generator=torch.Generator().manual_seed(0)).to(next(model.parameters()).device),)
    sequence = _sequence(inputs, options)
    seen: list[_Seen] = []
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad(), _recorded(model, rotation, seen):
            model(*inputs, **options)
    finally:
        model.train(was_training)
    if not seen:
        raise TypeError("watch: no attention module of this model calls a rotation that posenc knows "
                        f"({', '.join(_ROTATIONS)}); name it with rotation=")
    layers = []
    for one in seen:
        try:
            layers.append(_verdict(one, found, sequence, positions))
        except (ValueError, NotImplementedError) as error:
            expected = _layer(found, one.layer).scheme if one.layer < 10**6 else None
            layers.append(LayerVerdict(one.layer, one.name, expected, None, None, str(error)))  # type: ignore[arg-type]
    return WatchReport(found.model_type, layers)


def _size(config: Any, name: str) -> int:
    if isinstance(config, Mapping) and name in config:
        return int(config[name])
    raise TypeError(f"watch: the model's config has no {name}; pass the inputs of one forward")


def _sequence(inputs: Sequence[Any], options: Mapping[str, Any]) -> int:
    for one in (*inputs, *options.values()):
        shape: Sequence[int] = getattr(one, "shape", ())
        if len(shape) >= 2:
            return int(shape[1])
    raise TypeError("watch: pass the tokens of one forward, [batch, sequence]")


__all__ = ["LayerVerdict", "WatchReport", "watch"]

"""Records what the attention of a running torch model takes and gives: rotations, queries, keys, values, outputs."""

from __future__ import annotations

import inspect
import re
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Sequence

import torch
from torch.overrides import TorchFunctionMode

ROTATIONS = ("apply_rotary_pos_emb", "apply_rotary_emb", "apply_rotary", "rotary", "apply_multimodal_rotary_pos_emb",
             "apply_rotary_pos_emb_interleave")
HAS_KEYWORD_HOOKS = "with_kwargs" in inspect.signature(torch.nn.Module.register_forward_pre_hook).parameters
_LIKE_A_ROTATION = re.compile(r"apply_(\w+_)?(rotary|rope)")


@dataclass
class Rotation:
    """One call of a rotation: queries and keys, or one of them, before and after."""

    before: tuple[Any, ...]
    after: tuple[Any, ...]


@dataclass
class Call:
    """One computation of attention: [batch, heads, tokens, features]. Of weights instead of an output, out is weights @ values
    where values are the rows of the identity."""

    name: str  #: of the module
    layer: int | None
    q: Any
    k: Any
    v: Any  #: None: `weights` was seen instead of an output
    out: Any
    weights: Any = None
    sinks: Any = None
    mask: Any = None  #: of four axes, as the attention function got it
    rotations: list[Rotation] = field(default_factory=list)
    projected: list[Any] = field(default_factory=list)  #: what linear layers of this module gave


@dataclass
class _Frame:
    """A module that is running."""

    name: str
    layer: int | None
    rotations: list[Rotation] = field(default_factory=list)
    projected: list[Any] = field(default_factory=list)
    products: list[tuple[Any, Any, Any]] = field(default_factory=list)
    is_attention: bool = False


def _copy(x: Any) -> Any:
    return x.detach().clone()


def _number_in(name: str) -> int | None:
    """The layer that a name has: "decoder.layers.3.self_attn" → 3, of several the first."""
    found = re.search(r"\.(\d+)(\.|$)", "." + name)
    return int(found.group(1)) if found else None


class Recorder:
    """What was seen in one forward: `calls` of attention, and rotations outside of any (`loose`, by module)."""

    def __init__(self, batch: int) -> None:
        self.batch = batch  # of the forward, for products [batch · heads, queries, keys]
        self.calls: list[Call] = []
        self.loose: list[tuple[str, int | None, Rotation]] = []
        self.ids: list[Any] = []  #: position ids with axes that modules were given
        self.is_inside = False  # of a recorded attention function
        self.is_rotating = False
        self._stack: list[_Frame] = []

    # --- modules ------------------------------------------------------------------------------------------------------

    def enter(self, name: str, module: Any) -> None:
        layer = getattr(module, "layer_idx", None)
        layer = layer if isinstance(layer, int) and not isinstance(layer, bool) and layer >= 0 else _number_in(name)
        self._stack.append(_Frame(name, layer, is_attention=any(word in type(module).__name__.lower() for word in ("attention", "attn"))))

    def leave(self, out: Any) -> None:
        frame = self._stack.pop()
        if not any(one.name == frame.name for one in self.calls):
            self.loose += [(frame.name, frame.layer, one) for one in frame.rotations]
        if isinstance(out, torch.Tensor) and out.dim() >= 3 and self._stack:
            self._stack[-1].projected.append(out)

    def _home(self) -> _Frame | None:
        """The attention that is running: the innermost module called so, else the innermost."""
        return next((one for one in reversed(self._stack) if one.is_attention), self._stack[-1] if self._stack else None)

    def rotated(self, before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
        frame = self._home()
        if frame is not None:
            frame.rotations.append(Rotation(before, after))

    def _add(self, frame: _Frame, **tensors: Any) -> None:
        near = [one for one in self._stack if one.name.startswith(frame.name)]
        self.calls.append(Call(frame.name, frame.layer, **tensors, rotations=frame.rotations,
                               projected=[_copy(x) for one in near for x in one.projected]))

    def positions_of(self, _: Any, arguments: Sequence[Any], options: Any) -> None:
        """The positions that a module is given, the outermost first."""
        one = options.get("position_ids")
        if isinstance(one, torch.Tensor) and one.dim() == 3:
            self.ids.append(_copy(one))

    # --- attention as a function --------------------------------------------------------------------------------------

    def of_interface(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """An attention function of transformers that is recorded: (module, q, k, v, mask, …) → (out [b, s, h, d], weights)."""

        def call(module: Any, query: Any, key: Any, value: Any, *arguments: Any, **options: Any) -> Any:
            frame = self._home()
            if self.is_inside or frame is None:
                return function(module, query, key, value, *arguments, **options)
            self.is_inside = True
            q, k, v = _copy(query), _copy(key), _copy(value)
            try:
                result = function(module, query, key, value, *arguments, **options)
            finally:
                self.is_inside = False
            out = result[0] if isinstance(result, tuple) else result
            if q.dim() == 4 and out.dim() >= 3 and out.numel() == q.shape[0] * q.shape[1] * q.shape[2] * v.shape[-1]:
                mask = options.get("attention_mask", arguments[0] if arguments else None)
                self._add(frame, q=q, k=k, v=v, sinks=options.get("s_aux"), mask=mask if getattr(mask, "ndim", 0) == 4 else None,
                          out=_copy(out).reshape(q.shape[0], q.shape[2], q.shape[1], v.shape[-1]).transpose(1, 2))
            return result

        return call

    def of_sdpa(self, q: Any, k: Any, v: Any, out: Any) -> None:
        frame = self._home()
        if frame is not None and q.dim() == 4:
            self._add(frame, q=_copy(q), k=_copy(k), v=_copy(v), out=_copy(out))

    # --- attention as a product, a softmax and a product -------------------------------------------------------------

    def of_product(self, a: Any, b: Any, out: Any) -> None:
        frame = self._home()
        if frame is not None:
            frame.products = frame.products[-7:] + [(a, b, out)]

    def of_softmax(self, weights: Any) -> None:
        """Weights [..., queries, keys]: of the latest product of as many scores."""
        frame = self._home()
        if frame is None or weights.dim() < 3:
            return
        for a, b, out in reversed(frame.products):
            if out.numel() == weights.numel() and out.shape[-1] == weights.shape[-1] and b.shape[-1] == out.shape[-1]:
                rows = self.batch if weights.shape[0] % self.batch == 0 else 1
                heads = (-1, weights.shape[1]) if weights.dim() == 4 else (rows, weights.shape[0] // rows)
                try:
                    q, k = (_copy(x).expand(*out.shape[:-2], *x.shape[-2:]).reshape(*heads, *x.shape[-2:]) for x in (a, b.transpose(-1, -2)))
                except RuntimeError:
                    return
                self._add(frame, q=q, k=k, v=None, out=None, weights=_copy(weights).reshape(*heads, *weights.shape[-2:]))
                frame.products = []
                return


class _Products(TorchFunctionMode):  # type: ignore[misc]
    """Tells a recorder of matrix products, softmax and torch's attention."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = function(*args, **kwargs)
        if self.recorder.is_inside:
            return out
        name = getattr(function, "__name__", "")
        if name in ("matmul", "bmm", "__matmul__") and len(args) > 1:
            self.recorder.of_product(args[0], args[1], out)
        elif name == "baddbmm" and len(args) > 2:
            self.recorder.of_product(args[1], args[2], out)
        elif name == "baddbmm" and "batch1" in kwargs:
            self.recorder.of_product(kwargs["batch1"], kwargs["batch2"], out)
        elif name == "einsum":
            self._einsum(args, out)
        elif name == "softmax":
            self.recorder.of_softmax(out)
        elif name == "scaled_dot_product_attention":
            named = dict(zip(("query", "key", "value"), args), **kwargs)
            self.recorder.of_sdpa(named["query"], named["key"], named["value"], out)
        return out

    def _einsum(self, args: Sequence[Any], out: Any) -> None:
        """A product of two tensors over one index: as a matmul of the same scores."""
        if len(args) != 3 or not isinstance(args[0], str) or "->" not in args[0] or "." in args[0]:
            return
        inputs, made = args[0].replace(" ", "").split("->")
        first, second = inputs.split(",")
        summed = [one for one in first if one in second and one not in made]
        if len(summed) != 1 or len(made) < 3 or made[-2] not in first or made[-1] not in second:
            return
        outer = made[:-2]
        if sorted(first) != sorted(outer + made[-2] + summed[0]) or sorted(second) != sorted(outer + made[-1] + summed[0]):
            return
        a = args[1].permute([first.index(one) for one in outer + made[-2] + summed[0]])
        b = args[2].permute([second.index(one) for one in outer + summed[0] + made[-1]])
        self.recorder.of_product(a, b, out)


# --- what is patched ------------------------------------------------------------------------------------------------------


def _recording(recorder: Recorder, function: Any) -> Any:
    names = list(inspect.signature(function).parameters)

    def call(*arguments: Any, **options: Any) -> Any:
        values = [*arguments, *(options[name] for name in names[len(arguments):3] if name in options)]
        if recorder.is_rotating:  # one rotation that calls another is one
            return function(*arguments, **options)
        tensors = tuple(_copy(one) for one in values[:3] if hasattr(one, "detach") and one.dim() >= 3)
        recorder.is_rotating = True
        try:
            result = function(*arguments, **options)
        finally:
            recorder.is_rotating = False
        made = [one for one in (result if isinstance(result, tuple) else (result,)) if hasattr(one, "detach")]
        pairs = [(a, _copy(b)) for a, b in zip(tensors, made) if a.shape == b.shape]
        if pairs:
            recorder.rotated(tuple(a for a, _ in pairs), tuple(b for _, b in pairs))
        return result

    return call


def _is_rotation(name: str, value: Any, rotation: str | None) -> bool:
    if not callable(value) or isinstance(value, type):
        return False
    return name == rotation if rotation is not None else name in ROTATIONS or _LIKE_A_ROTATION.match(name) is not None


def _patch_rotations(model: Any, rotation: str | None, recorder: Recorder, stack: ExitStack) -> None:
    homes: list[Any] = []
    for module in model.modules():
        for home in (sys.modules.get(type(module).__module__), type(module)):
            is_torchs = getattr(home, "__name__", "").startswith("torch.") or getattr(home, "__module__", "").startswith("torch.")
            if home is not None and not is_torchs and all(home is not one for one in homes):
                homes.append(home)
    for home in homes:
        for name, value in list(vars(home).items()):
            if _is_rotation(name, value, rotation):
                stack.callback(setattr, home, name, value)
                setattr(home, name, _recording(recorder, value))


def _patch_interface(recorder: Recorder, stack: ExitStack) -> None:
    """The functions that transformers looks up, if it is there."""
    utils = sys.modules.get("transformers.modeling_utils")
    interface = getattr(utils, "AttentionInterface", None)
    for name in ("get_interface", "__getitem__"):
        theirs = getattr(interface, name, None)
        if theirs is None:
            continue

        def found(self: Any, *arguments: Any, _theirs: Any = theirs, **options: Any) -> Any:
            function = _theirs(self, *arguments, **options)
            return recorder.of_interface(function) if callable(function) else function

        is_own = name in vars(interface)
        stack.callback(setattr, interface, name, theirs) if is_own else stack.callback(delattr, interface, name)
        setattr(interface, name, found)


@contextmanager
def recorded(model: Any, rotation: str | None, batch: int = 1) -> Iterator[Recorder]:
    """While active, attention and rotations of the model's modules are recorded. The model is left as it was."""
    recorder = Recorder(batch)
    with ExitStack() as stack:
        for name, module in model.named_modules():
            stack.callback(module.register_forward_pre_hook(lambda module, _, name=name: recorder.enter(name, module)).remove)
            stack.callback(module.register_forward_hook(lambda *seen: recorder.leave(seen[-1])).remove)
            if HAS_KEYWORD_HOOKS:
                stack.callback(module.register_forward_pre_hook(recorder.positions_of, with_kwargs=True).remove)
        _patch_rotations(model, rotation, recorder, stack)
        _patch_interface(recorder, stack)
        with _Products(recorder):
            yield recorder


__all__ = ["Call", "ROTATIONS", "Recorder", "Rotation", "recorded"]

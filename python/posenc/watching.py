"""Checks whether a running model computes attention as its config specifies: one forward pass, a verdict for every layer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Mapping, Sequence

from .html import grid
from .models import CheckResult, Model, ModelSource, check, read_model
from .scheme import Scheme

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._attention_seen import AttentionVerdict
    from ._recording import Call, Recorder


@dataclass(frozen=True)
class LayerVerdict:
    """What one layer did to its queries and keys, and what its attention made of them."""

    layer: int
    name: str  #: of the module
    expected: Scheme | None
    q: CheckResult | None = field(repr=False)
    k: CheckResult | None = field(repr=False)
    problem: str = ""  #: why its rotation could not be checked
    attention: AttentionVerdict | None = None  #: scale, mask, window, softcap, sinks, bias, heads …; None: not recorded
    part: str | None = None  #: "encoder", "decoder", "vision" …
    remark: str = ""  #: what explains a difference of the rotation beside its diagnosis

    @property
    def agrees(self) -> bool:
        """No difference was found; what these tokens cannot show is in unseen()."""
        return not self.lines()

    @property
    def is_seen(self) -> bool:
        """Its rotation or its attention was compared."""
        return self.q is not None or (self.attention is not None and self.attention.verdict != "not seen")

    def unseen(self) -> str:
        """What the tokens of this forward could not have shown, in words; "" if nothing."""
        found = [next((one.reason for one in (self.q, self.k) if one is not None and one.reason), ""), self.problem]
        found.append(self.attention.text if self.attention is not None and self.attention.verdict != "differs" else "")
        return "; ".join(one for one in found if one)

    def lines(self) -> list[str]:
        """What differs, in words."""
        found = []
        for name, result in (("queries", self.q), ("keys", self.k)):
            if result is not None and result.verdict == "differs":
                found += f"{name}: {result!r}".splitlines()
        found += [self.remark] if self.remark else []
        if self.attention is not None:
            found += self.attention.differs
        return found

    def row(self) -> tuple[str, str, str, str, str]:
        """Layer, module, what agrees, what differs, what could not be seen."""
        agreed = ["rotation"] if self.q is not None and all(one is None or one.verdict != "differs" for one in (self.q, self.k)) else []
        agreed += self.attention.seen if self.attention is not None else []
        name = f"{self.part} {self.layer}" if self.part else str(self.layer)
        return name, self.name, ", ".join(agreed), "; ".join(map(str.strip, self.lines())), self.unseen()


@dataclass(frozen=True)
class WatchReport:
    """The verdict for every layer; true if all agree with the config."""

    model_type: str
    layers: Sequence[LayerVerdict]

    def __bool__(self) -> bool:
        return any(layer.is_seen for layer in self.layers) and all(layer.agrees for layer in self.layers)

    @property
    def is_conclusive(self) -> bool:
        """Every known mistake would have been seen in the tokens of this forward, in every layer."""
        return bool(self) and not any(layer.unseen() for layer in self.layers)

    def __repr__(self) -> str:
        wrong = [layer for layer in self.layers if not layer.agrees]
        if not any(layer.is_seen for layer in self.layers):
            why = next((f": {layer.unseen()}" for layer in self.layers if layer.unseen()), "")
            return f"{self.model_type}: nothing of its attention was seen{why}"
        unseen = next((layer.unseen() for layer in self.layers if layer.unseen()), "")
        if not wrong:
            count = sum(layer.is_seen for layer in self.layers)
            all_of = f"all {count}" if count == len(self.layers) else f"{count} of {len(self.layers)}"
            text = f"{self.model_type}: {all_of} layers rotate and attend as the config says"
            return f"{text}, as far as can be seen: {unseen}" if unseen else text
        lines = [f"{self.model_type}: {len(wrong)} of {len(self.layers)} layers do not rotate and attend as the config says"]
        for layer in wrong:
            lines += [f"layer {layer.layer} ({layer.name})", *("  " + line for line in layer.lines())]
        return "\n".join(lines)

    def table(self) -> str:
        """One line for each layer: what agrees, what differs, what could not be seen."""
        rows = [("layer", "module", "agrees", "differs", "could not be seen"), *(layer.row() for layer in self.layers)]
        return "\n".join(" | ".join(one or "-" for one in row) for row in rows)

    def _repr_html_(self) -> str:
        rows = [(*layer.row()[:2], "agrees" if layer.agrees else "differs", *layer.row()[2:]) for layer in self.layers]
        return grid(f"{self.model_type}: attention of one forward", ("layer", "module", "verdict", "agrees", "differs", "could not be seen"), rows)


_NOT_TEXT = ("pixel", "image", "video", "audio", "grid", "input_features", "lengths")

# --- rotations ------------------------------------------------------------------------------------------------------------


def _axes_of(scheme: Any) -> int:
    axes = getattr(scheme, "axes", 1)
    return len(getattr(scheme, "sections", ())) or (axes if isinstance(axes, int) else len(axes))


def _ids_for(row: int, sequence: int, axes: int, first: int, positions: Any, options: Mapping[str, Any]) -> Any:
    """The positions of a row's tokens, axis by axis: as given, as in forward's position_ids, or consecutive."""
    if positions is not None:
        return positions
    ids = options.get("position_ids")
    if ids is not None and getattr(ids, "ndim", 0) in (2, 3) and ids.shape[-1] == sequence:
        its = (ids[None] if ids.ndim == 2 else ids)[:, min(row, ids.shape[-2] - 1)].tolist()
        its = its[-axes:] if len(its) >= axes else its * axes
        return [one for axis in its for one in axis]
    return [position for _ in range(axes) for position in range(first, first + sequence)] if axes > 1 else None


def _rotation_results(call: Call, layer: Any, positions: Any, options: Mapping[str, Any]) -> tuple[list[CheckResult], str]:
    """The verdicts over queries and keys, and what explains a difference."""
    from ._layer_expected import in_order

    remark = ""
    results: list[CheckResult] = []
    sequence = call.q.shape[2] if call.q is not None else call.rotations[0].before[0].shape[-2]
    axes = _axes_of(layer.scheme)
    for one in call.rotations:
        for before, after in zip(one.before, one.after):
            before, after = (in_order(x, sequence).contiguous() for x in (before, after))
            scheme = layer.scheme
            if before.shape[-2] != sequence or len(results) == 2:
                continue
            if getattr(scheme, "first_dim", 0) and before.shape[-1] == getattr(scheme, "dims", 0):
                scheme = replace(scheme, first_dim=0)  # the model cut out the features that rotate (DeepSeek-V3)
            verdicts = []
            ids = options.get("position_ids")
            rows = range(before.shape[0]) if ids is not None and getattr(ids, "ndim", 0) in (2, 3) else [None]
            for row in rows:
                its = _ids_for(row or 0, sequence, axes, layer.first_position, positions, options)
                pair = (before, after) if row is None else (before[row : row + 1], after[row : row + 1])
                where = {"first": layer.first_position} if its is None else {"ids": its}
                verdicts.append(check(*pair, scheme, **where))
                if verdicts[-1].verdict == "differs" and its is not None and positions is None and ids is not None:
                    counted = _ids_for(0, sequence, axes, layer.first_position, None, {})
                    if check(*pair, scheme, **({"first": layer.first_position} if counted is None else {"ids": counted})).verdict != "differs":
                        remark = "positions: expected position_ids, got consecutive ones"
            results.append(next((one for one in verdicts if one.verdict == "differs"), verdicts[0]))
    return results, remark


# --- layers ---------------------------------------------------------------------------------------------------------------


def _verdict(call: Call, files: Model, model: Any, positions: Any, options: Mapping[str, Any]) -> LayerVerdict:
    from ._layer_expected import NotSeen, place_of

    results: list[CheckResult] = []
    problem, remark, scheme = "", "", None
    try:
        place = place_of(files, model, call.name, call.layer)
    except (NotSeen, ValueError, NotImplementedError) as error:
        return LayerVerdict(call.layer or 0, call.name, None, None, None, str(error))
    try:
        layer = place.layer()
        scheme = layer.scheme
        if hasattr(scheme, "layout") and call.rotations and not place.is_cross:
            if place.part in ("vision", "audio") or _axes_of(scheme) == 2:
                problem = "the rotation (positions of images and audio are not in the arguments)"
            else:
                results, remark = _rotation_results(call, layer, positions, options)
            if results and options.get("posenc_own_ids"):
                problem = "position ids of images (the model's own were taken; pass positions=)"
    except (ValueError, NotImplementedError) as error:
        problem = str(error)
    seen = _attention_verdict(call, model, place, options) if call.q is not None else None
    if seen is not None and seen.verdict == "differs" and place.group["causal"] is None:
        seen = _attention_verdict(call, model, place, options, causal=True)
    q, k = (*results, None, None)[:2] if len(results) != 1 else (results[0], results[0])
    if seen is not None and seen.verdict == "not seen" and problem:
        problem = ""  # one reason is enough
    return LayerVerdict(place.index, call.name, scheme, q, k, problem, seen, place.part, remark)


def _attention_verdict(call: Call, model: Any, place: Any, options: Mapping[str, Any], causal: bool = False) -> AttentionVerdict:
    import torch

    from ._attention_seen import AttentionVerdict, judged
    from ._layer_expected import REPEATED, NotSeen, before_repeat, changed_after_rotation, expected_of, with_own_mask

    try:
        expected, q, k = expected_of(model, place, call, options, causal)
    except (NotSeen, ValueError, NotImplementedError, TypeError) as error:
        return AttentionVerdict("not seen", unseen=(f"attention ({error})",))
    is_normed = any("after they are rotated" in note for note in place.files.notes)
    k = before_repeat(call, k)
    if not place.is_cross and not is_normed and expected.options.get("temperature") is None:
        for what, name in (("q", "queries"), ("k", "keys")):
            change = changed_after_rotation(call, what)
            if change == REPEATED and any(REPEATED in note for note in place.files.notes):
                continue
            if isinstance(change, float):  # the scale of the scores, or a part of it: what it should be is judged below
                q, k = (q / change, k) if what == "q" else (q, k / change)
                continue
            if change == "changed":
                return AttentionVerdict("differs", differs=(f"{name}: expected as they were rotated, got others (a norm, or another order)",))
            if change:
                return AttentionVerdict("differs", differs=(f"{name}: {change} after the rotation, not expected",))
    rows = torch.ones(q.shape[0], 1, q.shape[2], 1, dtype=torch.bool)
    if expected.key_mask is not None and not place.is_cross:
        rows &= expected.key_mask[:, None, :, None]
    elif expected.key_mask is not None:
        rows &= expected.key_mask.any(1)[:, None, None, None]
    seen = replace(call, q=q, k=k)
    mask: Any = options.get("attention_mask")
    has_other_length = getattr(mask, "ndim", 0) == 2 and mask.shape[1] != seen.k.shape[2] and not place.is_cross  # frames of waves, stacked inputs
    is_others = place.is_cross or has_other_length or any(word in name for name in options for word in _NOT_TEXT)
    own = with_own_mask(expected, call) if is_others else None
    verdict = None
    if own is None or not has_other_length:
        verdict = judged(seen, expected, rows)
        if verdict.verdict != "differs" or own is None:
            return verdict
    assert own is not None
    other = judged(seen, own, rows & own.mask.any(-1, keepdim=True))
    return other if verdict is None or other.verdict != "differs" else verdict


def _calls_of(recorder: Recorder) -> list[Call]:
    """Computations of attention, and rotations whose attention was not recorded."""
    from ._recording import Call

    calls = list(recorder.calls)
    alone: dict[str, Call] = {}
    for name, layer, rotation in recorder.loose:
        alone.setdefault(name, Call(name, layer, None, None, None, None)).rotations.append(rotation)
    return calls + list(alone.values())


def watch(model: Any, *inputs: Any, config: ModelSource | Model | None = None, positions: Any = None, rotation: str | None = None,
          **options: Any) -> WatchReport:
    """Runs one forward pass of a model and reports for every layer whether its attention is what its config says.

    It records queries and keys before and after their rotation, and what each attention (transformers' attention functions,
    torch's scaled_dot_product_attention, or a product, a softmax and a product) makes of queries, keys and values, and compares
    with posenc.layer(config, i): rotation and positions, scale, mask, window, chunk, softcap, sinks, temperature, bias, groups of
    heads, padding and packed sequences. Of each it says whether another value would have shown in these tokens.

    model: a transformers or torch model; its attention modules call a function such as apply_rotary_pos_emb(q, k, …) of
      their own file, or name it by rotation=.
    inputs, options: the arguments of forward; without any, 16 random tokens of the config's vocabulary.
    config: a config, its path, or a dict; None: model.config.
    positions: the positions that the tokens have; None: position_ids of the options, else consecutive from the model's first.
    A layer that differs comes with the first difference, the convention that was applied, and what to change.
    Raises: Error if the model's config is not known, TypeError if no attention and no rotation was seen.
    """
    import torch

    from ._recording import ROTATIONS, recorded

    source: Any = getattr(model, "config", None) if config is None else config
    found = read_model(source)
    if not inputs and not options:
        vocabulary = int(getattr(getattr(model, "config", None), "vocab_size", 0) or _size(config, "vocab_size"))
        inputs = (torch.randint(0, vocabulary, (1, 16), generator=torch.Generator().manual_seed(0)).to(next(model.parameters()).device),)
    batch = next((one.shape[0] for one in (*inputs, *options.values()) if getattr(one, "ndim", 0) > 1), 1)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad(), recorded(model, rotation, batch) as recorder:
            model(*inputs, **options)
    finally:
        model.train(was_training)
    calls = _calls_of(recorder)
    if "position_ids" not in options and any(word in name for name in options for word in _NOT_TEXT):
        own = next((one for one in recorder.ids if one.dim() == 3), None)
        options = {**options, "position_ids": own, "posenc_own_ids": True} if own is not None else options
    if not calls:
        raise TypeError("watch: no module of this model computes attention or calls a rotation that posenc knows "
                        f"({', '.join(ROTATIONS)}); name it with rotation=")
    return WatchReport(found.model_type, [_verdict(one, found, model, positions, options) for one in calls])


def _size(config: Any, name: str) -> int:
    if isinstance(config, Mapping) and name in config:
        return int(config[name])
    raise TypeError(f"watch: the model's config has no {name}; pass the inputs of one forward")


__all__ = ["LayerVerdict", "WatchReport", "watch"]

"""From a module's name to the layer of its model's files, and to what its attention is expected to do."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Mapping, Sequence

import torch

from ._attention_seen import Expected, factor_between
from ._recording import Call
from .models import Layer, Model, PreparedLayer, layer as prepared_layer, read_model

_CROSS = re.compile(r"cross_?att|encoder_attn|EncDecAttention|encoder_decoder|multihead_attn|crossattention", re.IGNORECASE)
REPEATED = "repeated as a whole"  #: the heads of keys, not each for itself
_PARTS = {"vision": r"vision|visual|image|vit\b|pixel", "audio": r"audio|speech|sound|whisper"}


class NotSeen(Exception):
    """Why a layer cannot be compared."""


@dataclass(frozen=True)
class Place:
    """A layer of the files: its part (None: the model has one) and its number."""

    files: Model
    part: str | None
    index: int
    group: Mapping[str, Any]
    is_cross: bool

    def layer(self) -> Layer:
        """What it does with position; its rotation is that of a layer whose attention is not computed too."""
        return self.files._layer(self.index, {**self.group, "other_attention": None})


def _config_of(model: Any, name: str) -> Any:
    """The config of a module: its own, else that of the nearest module around it."""
    modules = dict(model.named_modules())
    parts = name.split(".")
    for count in range(len(parts), -1, -1):
        config = getattr(modules.get(".".join(parts[:count])), "config", None)
        if hasattr(config, "model_type") and hasattr(config, "to_dict"):
            return config
    return None


def _keys_to(config: Any, wanted: Any) -> str | None:
    """The key of a part's config within a config, at any depth; None if it is not there."""
    for key in getattr(config, "sub_configs", {}):
        part = getattr(config, key, None)
        if part is wanted:
            return str(key)
        if part is not None and (found := _keys_to(part, wanted)) is not None:
            return found
    return None


def _source_of(files: Model, model: Any, name: str) -> tuple[Model, str | None]:
    """What describes a module: the model's files and its part there, or the files of its own config.

    Raises: NotSeen if neither does.
    """
    root: Any = getattr(model, "config", None)
    own = _config_of(model, name)
    if own is None or own is root or not hasattr(root, "sub_configs"):
        return files, None
    try:
        text = root.get_text_config()
    except (AttributeError, ValueError):  # it has several
        text = root
    if own is text or own.model_type == root.model_type:
        return files, None
    key = (_keys_to(root, own) or "").replace("_config", "")
    if key in {str(one["part"]) for one in files.data["parts"]}:
        return files, key
    try:
        return read_model(own), None
    except (ValueError, NotImplementedError) as error:
        raise NotSeen(f"the files do not describe its part: {error}") from None


def place_of(files: Model, model: Any, name: str, layer: int | None) -> Place:
    """The layer that a module belongs to, by its config and its name.

    Raises: NotSeen if the files describe no such layer, or several that its name does not tell apart.
    """
    path = "." + name.lower() + "."
    source, part = _source_of(files, model, name)
    if part is None and source is files:
        words = next((one for one, pattern in _PARTS.items() if re.search(pattern, path)), None)
        known = {str(one["part"]) for one in source.data["parts"]}
        if words is not None and known and "text" not in path:
            if words not in known:
                raise NotSeen(f"the files describe no {words} part")
            part = words
    numbers = [int(one) for one in re.findall(r"\.(\d+)(?=\.)", path)]
    index = layer if layer is not None else numbers[0] if numbers else 0
    groups = list(source._groups_of(index, part))
    if len(groups) > 1:
        named = [one for one in groups if str(one["layer_type"]) in ("encoder", "decoder") and f".{one['layer_type']}." in path]
        groups = named or ([] if all(one["layer_type"] in ("encoder", "decoder") for one in groups) else groups)
        if len(groups) > 1:  # of a table that is added and a bias, the bias is attention's
            groups = [one for one in groups if one["scheme"]["scheme"] not in ("learned", "sinusoidal")]
        if len(groups) != 1:
            raise NotSeen("several parts of the model have this layer, and the module's name does not say which it is")
        part = str(groups[0]["layer_type"])
    if part == "decoder" and "encoder" in path and "decoder" not in path:
        raise NotSeen("its config is the decoder's, and its name says that it is an encoder")
    if not groups:
        raise NotSeen(f"the files describe no layer {index}" + (f" of the {part} part" if part else ""))
    return Place(source, part, index, groups[0], _CROSS.search(name) is not None)


# --- what happens to queries and keys before attention ----------------------------------------------------------------


def in_order(tensor: Any, sequence: int) -> Any:
    """[batch, heads, sequence, features], whichever of the two middle axes is the sequence."""
    if tensor.dim() == 3:
        tensor = tensor[:, None] if tensor.shape[1] == sequence else tensor[None]
    if tensor.dim() == 4 and tensor.shape[2] != sequence and tensor.shape[1] == sequence:
        return tensor.transpose(1, 2)
    return tensor


def _rotated(call: Call, like: Any) -> list[Any]:
    found = [in_order(x, like.shape[2]) for one in call.rotations for x in one.after]
    return [x for x in found if x.shape == like.shape]


def _as_heads(x: Any, like: Any) -> Any | None:
    """What a projection gave, in the order of `like`, where it can be."""
    if x.numel() != like.numel():
        return None
    if x.shape == like.shape:
        return x
    if x.dim() == 3 and x.shape[:2] == (like.shape[0], like.shape[2]):
        return x.reshape(like.shape[0], like.shape[2], like.shape[1], like.shape[3]).transpose(1, 2)
    return in_order(x, like.shape[2]) if x.dim() == 4 and in_order(x, like.shape[2]).shape == like.shape else None


def _row_factors(x: Any, source: Any) -> Any | None:
    """What each token of source was multiplied by to become x, [tokens]; None where that is not all."""
    x, source = x.float(), source.float()
    factor = (x * source).sum((0, 1, 3)) / (source * source).sum((0, 1, 3)).clamp(min=1e-30)
    is_all = torch.allclose(x, source * factor[None, None, :, None], rtol=1e-3, atol=1e-4 * float(x.abs().max() or 1))
    return factor if is_all else None


def before_temperature(call: Call) -> Any:
    """The queries before each token's were multiplied by a temperature.

    Raises: NotSeen if they were not recorded.
    """
    sources = _rotated(call, call.q) + [one for one in (_as_heads(x, call.q) for x in call.projected) if one is not None]
    for source in sources:
        if _row_factors(call.q, source) is not None:
            return source
    raise NotSeen("the queries before the temperature were not seen")


def changed_after_rotation(call: Call, what: str) -> str | float:
    """What happened between the rotation and attention, in words; "" if nothing or it was not seen; a number above 0 if
    they were multiplied by it."""
    x = getattr(call, what)
    found = [in_order(one, x.shape[2]) for rotation in call.rotations for one in rotation.after]
    if len(found) < 2:
        return ""
    source = found[0] if what == "q" else found[1]
    if source.dim() != 4 or (source.shape[0], *source.shape[2:]) != (x.shape[0], *x.shape[2:]) or x.shape[1] % source.shape[1]:
        return ""  # a part of each head
    count = x.shape[1] // source.shape[1]
    sources = [source.repeat_interleave(count, 1)]
    if count > 1 and source.shape[1] > 1 and torch.equal(x, source.repeat(1, count, 1, 1)):
        return REPEATED
    close = 1e-3 * float(x.float().abs().max())
    if any(torch.allclose(x.float(), one.float(), rtol=1e-3, atol=close) for one in sources):
        return ""
    factors = next((one for one in (_row_factors(x, source) for source in sources) if one is not None), None)
    if factors is not None:
        mean, spread = float(factors.mean()), float(factors.std()) if len(factors) > 1 else 0.0
        if spread >= 1e-4 * abs(mean):
            return "multiplied by a temperature"
        return mean if mean > 0 else f"multiplied by {mean:.4g}"
    return "changed"


# --- what is expected ---------------------------------------------------------------------------------------------------


def _table_for(model: Any, name: str, scheme: str, heads: int) -> Any:
    """The trained table of a bias in the same stack of layers as module `name`."""
    best: Any = None
    for one, module in model.named_modules():
        weight: Any = getattr(module, "weight", None)
        if "relative_attention_bias" in one and getattr(weight, "ndim", 0) == 2 and heads in weight.shape:
            same = len([1 for a, b in zip(one.split("."), name.split(".")) if a == b])
            best = max(best or (-1, None), (same, weight), key=lambda pair: pair[0])
    if best is None:
        raise NotSeen(f"the trained table of {scheme} was not found")
    return best[1].detach().float().cpu().contiguous()


def _mask_of(options: Any, place: Place, call: Call) -> Any:
    """Which keys are tokens, from the arguments of forward, [batch, keys] bool."""
    is_decoder = place.part == "decoder" or ".decoder." in f".{call.name}."
    is_second = is_decoder and not place.is_cross and any(name.startswith("decoder_") for name in options)
    names = ("decoder_attention_mask",) if is_second else ("attention_mask", "encoder_attention_mask")
    for name in names if place.part not in _PARTS or place.is_cross else ():
        mask: Any = options.get(name)
        if mask is not None and getattr(mask, "ndim", 0) == 2 and tuple(mask.shape) == (call.q.shape[0], call.k.shape[2]):
            return mask.detach().cpu() != 0
    return None


def _packed_lengths(options: Mapping[str, Any], call: Call) -> Sequence[int] | None:
    """The lengths of packed sequences, by positions that start again."""
    ids: Any = options.get("position_ids")
    if ids is None or getattr(ids, "ndim", 0) != 2 or ids.shape[-1] != call.q.shape[2] or options.get("attention_mask") is not None:
        return None
    starts = [0, *(i for i in range(1, ids.shape[1]) if int(ids[0, i]) != int(ids[0, i - 1]) + 1), ids.shape[1]]
    if len(starts) < 3:
        return None
    if any(not torch.equal(row, ids[0]) for row in ids):
        raise NotSeen("the rows of position_ids differ")
    return [b - a for a, b in zip(starts, starts[1:])]


def _prepared(place: Place, **inputs: Any) -> PreparedLayer:
    """The layer as posenc.layer gives it; where position was added to the embeddings in a way that it does not compute, the
    options alone."""
    group = place.group
    is_added = group["scheme"].get("available", True) is False and str(group.get("formula", "")).startswith("x + ")
    if not is_added or group.get("token_mixer") or group.get("other_attention"):
        return prepared_layer(place.files, place.index, part=place.part, **inputs)
    warm = group.get("temperature")
    options = {"causal": bool(inputs["causal"] if group["causal"] is None else group["causal"]), "window": group.get("window") or 0,
               "chunk": group.get("chunk") or 0, "scale": 1.0 if group.get("unscaled") else group.get("scale"), "softcap": group.get("softcap"),
               "sinks": inputs["sinks"], "temperature": (warm["scale"], warm["length"], warm["shift"], warm["rule"]) if warm else None}
    return PreparedLayer(form=None, options=options, addition=None, first_position=group["first_position"], notes=())


def expected_of(model: Any, place: Place, call: Call, options: Mapping[str, Any], causal: bool) -> tuple[Expected, Any, Any]:
    """What the files say for a call, and its queries and keys as they are before what attention does to them.

    causal: whether it is, where the files do not say.

    Raises: NotSeen, NotImplementedError or Error that says why it cannot be compared.
    """
    group, unseen = place.group, []
    scheme = group["scheme"]["scheme"]
    if call.q.shape[2] != call.k.shape[2] and not place.is_cross:
        raise NotSeen(f"{call.q.shape[2]} queries and {call.k.shape[2]} keys: of another sequence, or of a cache")
    sinks = call.sinks.detach().float().cpu().flatten() if group.get("sinks") and call.sinks is not None else None
    weights = None
    if scheme == "t5":
        weights = _table_for(model, call.name, scheme, call.q.shape[1])
    if group["causal"] is None:
        unseen.append("whether the layer is causal (the files do not say)")
    layer = _prepared(place, length=call.q.shape[2], weights=weights, sinks=sinks,
                      causal=causal if group["causal"] is None else None)
    made = dict(layer.options)
    q, k = call.q, call.k
    if made.get("temperature") is not None:
        q = before_temperature(call)
    starts = [in_order(x, q.shape[2]) for one in call.rotations for x in one.before]
    q, k = (x / factor_between(x if not starts else _start_of(x, call, starts), call.projected) for x in (q, k))
    bias = layer.form if layer.form is not None and layer.form.kind == "bias" else None
    if layer.form is not None and layer.form.kind == "rotation" and not call.rotations:
        unseen.append("the rotation (the model calls no function for it that posenc knows)")
    factor = float(group.get("softmax_factor", 1.0))
    if factor != 1.0:
        made["scale"] = (made.get("scale") or call.q.shape[-1] ** -0.5) * factor
    if place.is_cross:
        made.update(causal=False, window=0, chunk=0)
        bias = None
    return Expected(made, bias, _mask_of(options, place, call), None if place.is_cross else _packed_lengths(options, call),
                    unseen=tuple(unseen)), q, k


def before_repeat(call: Call, k: Any) -> Any:
    """The keys before each head was repeated for the queries that share it, where they were seen."""
    found = [in_order(one, k.shape[2]) for rotation in call.rotations for one in rotation.after]
    if len(found) > 1 and 1 < found[1].shape[1] < k.shape[1] and k.shape[1] % found[1].shape[1] == 0:
        if torch.equal(found[1].repeat_interleave(k.shape[1] // found[1].shape[1], 1), k):
            return found[1]
    return k


def _start_of(x: Any, call: Call, starts: Sequence[Any]) -> Any:
    """x before its rotation, where that was seen."""
    for one, start in zip([in_order(y, x.shape[2]) for r in call.rotations for y in r.after], starts):
        if one.shape == x.shape and torch.equal(one, x):
            return start
    return x


def with_own_mask(expected: Expected, call: Call) -> Expected | None:
    """The same with the mask that the model made, for inputs whose masks the files leave to the caller; None: it was not seen."""
    keys = call.k.shape[2]
    if call.mask is not None:
        mask = call.mask[..., :keys].detach().cpu()
    elif call.weights is not None:
        mask = (call.weights > 0).any(1, keepdim=True).cpu()
    else:
        return None
    mask = mask if mask.dtype == torch.bool else mask > -1e4
    unseen = (*expected.unseen, "the mask (the model's own was taken, which the files leave to the caller)")
    return replace(expected, options={**expected.options, "causal": False, "window": 0, "chunk": 0}, mask=mask, key_mask=None, packed=None, unseen=unseen)


__all__ = ["REPEATED", "NotSeen", "Place", "before_repeat", "changed_after_rotation", "expected_of", "in_order", "place_of", "with_own_mask"]

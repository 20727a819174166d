"""posenc inside models of Hugging Face's transformers: exact rotary embeddings, and attention.

Read in transformers 5.16: models/llama, gemma2, gemma3, gpt_oss, mistral, t5 (modeling_*.py) and masking_utils.py.
"""

from __future__ import annotations

import inspect
import math
from typing import Any, Literal, Mapping

import torch

from . import torch as posenc_torch
from .models import read_model

NAME = "posenc"
NAME_OF_WHOLE_MASKS = "posenc-masks"  # the same with masks [batch, 1, queries, keys] of numbers to add


def use(model: Any, *, attention: bool = True, rotary: Literal["exact", "hf-f32"] | None = "exact",
        inputs: Mapping[str, Any] | None = None, check: bool = True) -> Any:
    """Makes a transformers model compute with posenc; returns the model.

    rotary: "exact" replaces every rotary embedding by one with correctly rounded cosines and sines, "hf-f32" by one with
      the float32 angles that transformers itself uses; None: unchanged. (A vision tower's own angles are unchanged too.)
    attention: registers posenc's attention and its masks, and switches the model to it.
    inputs: the arguments of the forwards before and after that are compared; None: 16 random tokens, for models of text.
    check: False leaves these out.
    Softcap, sinks, windows, padding, packed sequences and any other mask are kept. T5's bias is kept as well, but has no
    gradient here: under torch.no_grad() T5 works, training it raises. So does everything else that posenc does not support
    there (dropout, rotary embeddings that are not cosines and sines, a model such as BLOOM that computes attention itself):
    nothing is silently dropped.
    Raises: NotImplementedError that names the first layer whose output is another than before; the model is then as it was.
    """
    before = _outputs(model, inputs) if check else None
    undo = _Undo(model)
    first: Exception | None = None
    for name in (NAME, NAME_OF_WHOLE_MASKS) if attention else (NAME,):  # some models compute with the mask themselves
        try:
            _exchange(model, attention, rotary, name)
            if before is not None:
                _compare(before, _outputs(model, inputs), inputs)
            return model
        except Exception as error:
            undo()
            first = first or error
    assert first is not None
    raise first


def _exchange(model: Any, attention: bool, rotary: Any, name: str) -> None:
    if attention:
        _refuse_own_attention(model)
    if rotary is not None:
        replaced = _replace_rotary(model, rotary)
        if not replaced and not attention:
            raise NotImplementedError(f"use: {type(model).__name__} has no rotary embedding")
    if attention:
        _register()
        if hasattr(model, "set_attn_implementation"):
            model.set_attn_implementation(name)
        else:
            model.config._attn_implementation = name
        # set_attn_implementation leaves out parts whose config is another object of the same class: T5's two halves
        for module in model.modules():
            config = getattr(module, "config", None)
            if getattr(config, "_attn_implementation_internal", name) != name:
                config._attn_implementation_internal = name  # type: ignore[union-attr]


# --- the model before and after -----------------------------------------------------------------------------------------


class _Undo:
    """Remembers the modules and attention functions of a model, and puts them back."""

    def __init__(self, model: Any) -> None:
        self.children = [(parent, dict(parent._modules)) for parent in model.modules()]
        configs = [one for module in model.modules() for one in _configs_in(getattr(module, "config", None))]
        self.configs = [(config, config._attn_implementation_internal) for config in configs]

    def __call__(self) -> None:
        for parent, modules in self.children:
            parent._modules.clear()
            parent._modules.update(modules)
        for config, name in self.configs:
            config._attn_implementation_internal = name


def _configs_in(config: Any) -> list[Any]:
    """A config and those of its parts."""
    if not hasattr(config, "_attn_implementation_internal"):
        return []
    return [config, *(found for key in getattr(config, "sub_configs", {}) for found in _configs_in(getattr(config, key, None)))]


def _default_inputs(model: Any) -> Mapping[str, Any]:
    """Tokens for a model of text.

    Raises: NotImplementedError for models that take something else.
    """
    main = getattr(model, "main_input_name", "input_ids")
    config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
    size = getattr(config, "vocab_size", None)
    if main != "input_ids" or not isinstance(size, int):
        raise NotImplementedError(f"use: {type(model).__name__} takes {main}; pass inputs= for the forwards that are compared, "
                                  "or check=False")
    device = next(model.parameters()).device
    tokens = torch.randint(0, size, (1, 16), generator=torch.Generator().manual_seed(0)).to(device)
    is_both = getattr(model.config, "is_encoder_decoder", False) and "decoder_input_ids" in inspect.signature(model.forward).parameters
    return {"input_ids": tokens, "decoder_input_ids": tokens[:, :8]} if is_both else {"input_ids": tokens}


def _tensors_in(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value.detach().float().cpu()] if value.is_floating_point() else []
    values = value.values() if isinstance(value, Mapping) else value if isinstance(value, (tuple, list)) else ()
    return [found for one in values for found in _tensors_in(one)]


def _outputs(model: Any, inputs: Mapping[str, Any] | None) -> tuple[list[tuple[str, list[Any]]], str]:
    """What each module that is called attention gave, in order, and at last the model; and the type of its numbers."""
    given = _default_inputs(model) if inputs is None else inputs
    seen: list[tuple[str, list[Any]]] = []
    hooks = []
    for name, module in model.named_modules():
        if any(word in type(module).__name__.lower() for word in ("attention", "attn")):
            hooks.append(module.register_forward_hook(lambda _, __, out, name=name: seen.append((name, _tensors_in(out)[:1]))))
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            seen.append(("its output", _tensors_in(model(**given))))
    finally:
        model.train(was_training)
        for hook in hooks:
            hook.remove()
    return seen, str(next((one.dtype for one in model.parameters() if one.is_floating_point()), torch.float32))


def _tokens_of(x: Any, inputs: Mapping[str, Any] | None) -> Any:
    """x without its padding: what attention makes of that is of no use, and engines differ."""
    kept = None
    for name in ("attention_mask", "decoder_attention_mask"):
        mask = (inputs or {}).get(name)
        if mask is not None and getattr(mask, "ndim", 0) == 2 and tuple(x.shape[:2]) == tuple(mask.shape):
            kept = mask.cpu() != 0 if kept is None else kept & (mask.cpu() != 0)
    return x if kept is None else x[kept]


def _compare(before: tuple[Any, str], after: tuple[Any, str], inputs: Mapping[str, Any] | None) -> None:
    """Raises if an output differs by more than other sums round; of 16 bits, every layer does."""
    tolerance = 1e-3 if before[1] in ("torch.float32", "torch.float64") else 6e-2
    for (name, ours), (other, theirs) in zip(after[0], before[0]):
        if name != other:
            continue  # a module ran more often; the output of the whole decides
        for a, b in zip(ours, theirs):
            if a.shape != b.shape:
                continue
            a, b = _tokens_of(a, inputs), _tokens_of(b, inputs)
            finite = torch.isfinite(b)
            most = float(b[finite].abs().max()) if bool(finite.any()) else 0.0
            off = float((a - b)[finite].abs().max()) if most else 0.0
            if not off <= tolerance * most:
                raise NotImplementedError(f"use: {name} differs by {off / most:.2g} of its largest value from what it gave before; "
                                          "the model was left as it was")


def _refuse_own_attention(model: Any) -> None:
    """Some models do not look up an attention function; transformers then warns, and keeps theirs."""
    for module in model.modules():
        can_set = getattr(module, "_can_set_attn_implementation", None)
        if can_set is not None and not can_set():
            raise NotImplementedError(f"use: {type(module).__name__} computes attention itself, so it cannot be replaced; "
                                      "attention=False exchanges rotary embeddings alone")


# --- rotary embeddings --------------------------------------------------------------------------------------------------


def _replace_rotary(model: Any, numerics: str) -> int:
    found = [(parent, name, child) for parent in model.modules() for name, child in parent.named_children()
             if name.startswith("rotary_emb") and any("inv_freq" in buffer for buffer, _ in child.named_buffers(recurse=False))]
    made = [(parent, name, _same_outputs(child, numerics)) for parent, name, child in found]  # all of them, or none
    for parent, name, module in made:
        setattr(parent, name, module)
    return len(made)


def _same_outputs(theirs: Any, numerics: str) -> Any:
    """A module with the same outputs as theirs, up to float32 angles; else an error that says why not."""
    kinds = list(getattr(theirs, "layer_types", None) or [None])
    takes_type = "layer_type" in inspect.signature(theirs.forward).parameters
    device = next(theirs.buffers()).device
    x = torch.zeros(1, device=device)
    ids = torch.arange(8, device=device)[None]
    if _has_axes(theirs.config):  # M-RoPE: [3, batch, sequence]
        ids = torch.stack((ids, ids + 3, 2 * ids))
    refused = ""
    tries = [(repeat, mix_axes) for mix_axes in ((False, True) if len(ids) > 1 else (False,)) for repeat in ("halves", "interleaved", "none")]
    for repeat, mix_axes in tries:
        ours = posenc_torch.RotaryEmbedding(theirs.config, numerics=numerics, repeat=repeat, mix_axes=mix_axes)
        matches = True
        for kind in kinds if takes_type else [None]:
            options = {"layer_type": kind} if takes_type else {}
            wanted = theirs(x, ids, **options)
            if not isinstance(wanted, tuple) or len(wanted) != 2:
                raise NotImplementedError(f"use: {type(theirs).__name__} gives no pair of cosines and sines")
            made = ours(x, ids, **options)
            for one, other in zip(made, wanted):
                if one.shape != other.shape or not torch.allclose(one, other.to(one.dtype), atol=1e-4):
                    matches = False
                    refused = f"gives {list(other.shape)}, and posenc {list(one.shape)}" if one.shape != other.shape else "gives other numbers"
        if matches:
            return ours
    raise NotImplementedError(f"use: {type(theirs).__name__} {refused} for positions 0 to 7; its rotary embedding stays as it is "
                              "with rotary=None")


def _has_axes(config: Any) -> bool:
    """Whether positions have three coordinates, as the rotary module of Qwen2-VL and its successors requires."""
    return any(group["scheme"].get("sections") for group in read_model(config).groups)


# --- attention ----------------------------------------------------------------------------------------------------------


def _register() -> None:
    """Attention and mask together: without the mask function, transformers would pass none, and queries would attend to padding."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, padding_mask)
    AttentionInterface.register(NAME_OF_WHOLE_MASKS, attention_forward)
    AttentionMaskInterface.register(NAME_OF_WHOLE_MASKS, eager_mask)


def _pattern(function: Any) -> dict[str, int]:
    """What a mask function of transformers lets through: {"causal": 1, "window": n}, or an error where it is another."""
    from transformers import masking_utils as masks

    if function is masks.causal_mask_function:
        return {"causal": 1}
    if function is masks.bidirectional_mask_function:
        return {}
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    if function.__code__ is masks.and_masks(masks.causal_mask_function).__code__:
        found: dict[str, int] = {}
        for part in next(cell for cell in cells if isinstance(cell, tuple)):
            found.update(_pattern(part))
        return found
    if function.__code__ is masks.sliding_window_overlay(1).__code__:
        return {"window": int(next(cell for cell in cells if isinstance(cell, int)))}
    raise LookupError(function.__qualname__)


class KeyMask(torch.Tensor):  # type: ignore[misc]
    """Which keys are tokens, [batch, keys], and what else the mask of these layers has: pattern["causal"], pattern["window"]."""

    pattern: dict[str, int]


def padding_mask(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0, kv_offset: int = 0, mask_function: Any = None,
                 attention_mask: Any = None, **options: Any) -> Any:
    """The mask that attention_forward takes: which keys are tokens, [batch, keys], with its pattern; where the pattern is
    neither causal nor a window, or the queries are not the last of the keys, the whole pattern, [batch, 1, queries, keys]."""
    try:
        if mask_function is not None:
            _pattern(mask_function)
        is_plain = int(q_offset) + q_length == kv_length + int(kv_offset)
    except LookupError:
        is_plain = False
    if not is_plain:
        from transformers.masking_utils import sdpa_mask

        options = {**options, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
        return sdpa_mask(batch_size=batch_size, q_length=q_length, kv_length=kv_length, q_offset=q_offset, kv_offset=kv_offset,
                         mask_function=mask_function, attention_mask=attention_mask, **options)
    if attention_mask is None:
        mask = torch.ones(batch_size, kv_length, dtype=torch.bool)
    else:
        mask = attention_mask[:, -kv_length:] if attention_mask.shape[-1] > kv_length else attention_mask
    made = mask.to(torch.bool).as_subclass(KeyMask)
    made.pattern = {"causal": 0, "window": 0, **(_pattern(mask_function) if mask_function is not None else {"causal": 1})}
    return made


def attention_forward(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float | None = None,
                      dropout: float = 0.0, sliding_window: int | None = None, softcap: float | None = None, s_aux: Any = None,
                      is_causal: bool | None = None, position_bias: Any = None, **options: Any) -> tuple[Any, None]:
    """Attention as transformers calls it: [batch, heads, sequence, features] in, [batch, sequence, heads, features] out."""
    if dropout:
        raise NotImplementedError("posenc: attention with dropout")
    causal = bool(getattr(module, "is_causal", True)) if is_causal is None else bool(is_causal)
    pattern, key_mask, window = position_bias, attention_mask, int(sliding_window or 0)
    if isinstance(attention_mask, KeyMask):  # what its mask function says, whatever the module says
        causal, window = bool(attention_mask.pattern["causal"]), attention_mask.pattern["window"]
        key_mask = None if bool(attention_mask.all()) else attention_mask.as_subclass(torch.Tensor)
    if attention_mask is not None and attention_mask.dim() == 4:  # it has everything in it
        key_mask, causal, window = None, False, 0
        if position_bias is not None:
            is_bool = attention_mask.dtype == torch.bool
            pattern = position_bias.masked_fill(~attention_mask, -math.inf) if is_bool else position_bias + attention_mask
        else:
            pattern = attention_mask
    elif attention_mask is not None and attention_mask.dim() != 2:
        raise NotImplementedError(f"posenc: a mask with {attention_mask.dim()} axes")
    out = posenc_torch.attention(query, key, value, causal=causal, window=window, scale=scaling, key_mask=key_mask, softcap=softcap,
                                 sinks=s_aux, mask=pattern)
    return out.transpose(1, 2).contiguous(), None


__all__ = ["attention_forward", "padding_mask", "use"]

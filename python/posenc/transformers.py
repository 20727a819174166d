"""posenc inside models of Hugging Face's transformers: exact rotary embeddings, and attention.

Read in transformers 5.16: models/llama, gemma2, gemma3, gpt_oss, mistral, t5 (modeling_*.py) and masking_utils.py.
"""

from __future__ import annotations

import inspect
import math
from typing import Any, Literal

import torch

from . import torch as posenc_torch

NAME = "posenc"


def use(model: Any, *, attention: bool = True, rotary: Literal["exact", "hf-f32"] | None = "exact") -> Any:
    """Makes a transformers model compute with posenc; returns the model.

    rotary: "exact" replaces every rotary embedding by one with correctly rounded cosines and sines, "hf-f32" by one with
      the float32 angles that transformers itself uses; None: unchanged. (A vision tower's own angles are unchanged too.)
    attention: registers posenc's attention and its masks, and switches the model to it.
    Softcap, sinks, windows, padding, packed sequences and any other mask are kept. T5's bias is kept as well, but has no
    gradient here: under torch.no_grad() T5 works, training it raises. So does everything else that posenc does not support
    there (dropout, rotary embeddings that are not cosines and sines, a model such as BLOOM that computes attention itself):
    nothing is silently dropped.
    """
    if attention:
        _refuse_own_attention(model)
    if rotary is not None:
        replaced = _replace_rotary(model, rotary)
        if not replaced and not attention:
            raise NotImplementedError(f"use: {type(model).__name__} has no rotary embedding")
    if attention:
        _register()
        if hasattr(model, "set_attn_implementation"):
            model.set_attn_implementation(NAME)
        else:
            model.config._attn_implementation = NAME
        # set_attn_implementation leaves out parts whose config is another object of the same class: T5's two halves
        for module in model.modules():
            config = getattr(module, "config", None)
            if getattr(config, "_attn_implementation_internal", NAME) != NAME:
                config._attn_implementation_internal = NAME  # type: ignore[union-attr]
    return model


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
    parameters = getattr(config, "rope_parameters", None) or {}
    return "mrope_section" in parameters


# --- attention ----------------------------------------------------------------------------------------------------------


def _register() -> None:
    """Attention and mask together: without the mask function, transformers would pass none, and queries would attend to padding."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, padding_mask)


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


def padding_mask(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0, kv_offset: int = 0, mask_function: Any = None,
                 attention_mask: Any = None, **options: Any) -> Any:
    """The mask that attention_forward takes: which keys are tokens, [batch, keys] (None: all are); where the pattern is
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
        return None
    mask = attention_mask[:, -kv_length:] if attention_mask.shape[-1] > kv_length else attention_mask
    return None if bool(mask.all()) else mask.to(torch.bool)


def attention_forward(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float | None = None,
                      dropout: float = 0.0, sliding_window: int | None = None, softcap: float | None = None, s_aux: Any = None,
                      is_causal: bool | None = None, position_bias: Any = None, **options: Any) -> tuple[Any, None]:
    """Attention as transformers calls it: [batch, heads, sequence, features] in, [batch, sequence, heads, features] out."""
    if dropout:
        raise NotImplementedError("posenc: attention with dropout")
    causal = bool(getattr(module, "is_causal", True)) if is_causal is None else bool(is_causal)
    pattern, key_mask, window = position_bias, attention_mask, int(sliding_window or 0)
    if attention_mask is not None and attention_mask.dim() == 4:  # it has everything in it
        key_mask, causal, window = None, False, 0
        pattern = attention_mask if position_bias is None else position_bias.masked_fill(~attention_mask, -math.inf)
    elif attention_mask is not None and attention_mask.dim() != 2:
        raise NotImplementedError(f"posenc: a mask with {attention_mask.dim()} axes")
    out = posenc_torch.attention(query, key, value, causal=causal, window=window, scale=scaling, key_mask=key_mask, softcap=softcap,
                                 sinks=s_aux, mask=pattern)
    return out.transpose(1, 2).contiguous(), None


__all__ = ["attention_forward", "padding_mask", "use"]

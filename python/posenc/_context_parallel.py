"""Attention over a sequence that is split between ranks, as one operator: checks on all ranks, the choice of a method, forward and backward.

posenc.torch.distributed makes it differentiable.
"""

from __future__ import annotations

import json
from typing import Any, Optional

import torch
import torch.distributed as dist

from . import torch as local
from ._methods import Task, Tensors, all_gather, all_gather_backward, all_to_all, all_to_all_backward, ring, ring_backward
from ._ranks import Attempt, agree, gather, group_of, ranks_of
from ._shards import check_tokens, layout_of, packed_lengths
from .forms import recipe_of

METHODS = ("auto", "ring", "all-to-all", "all-gather")
# Options of posenc.torch.attention that mean the same when keys are elsewhere. Lengths and masks would have to be split as well.
OPTIONS = ("causal", "window", "chunk", "scale", "softcap", "temperature", "rounds_rotated", "repeatable", "packed")
VERB = "context_parallel_attention"
COUNTED = ("cope",)  # what they add depends on all keys between query and key: parts cannot be merged
# Forms whose gradients need the scores of all keys at once (attention_backward rejects a logsumexp of more keys than the call's).
WHOLE = (*COUNTED, "shaw", "deberta", "transformer-xl", "relative-logits", "decomposed")
BY_HEAD = ("rope-mixed", "fope")  # rotations of their own for each head


# --- what is asked for -------------------------------------------------------------------------------------------------------


def shape_of(q: torch.Tensor) -> str:
    return str([int(n) for n in q.shape])


def check_call(tensors: Any, form: str, options: str, group: Any) -> None:
    """Raises the same error on every rank if one calls with another shape, type or option."""
    q, k, v, table, sinks, positions = tensors
    agree({"shapes": f"q {shape_of(q)}, k {shape_of(k)}, v {shape_of(v)}", "types": f"q {q.dtype}, k {k.dtype}, v {v.dtype}",
           "options": options, "form": form or "none", **{name: "none" if x is None else f"{shape_of(x)} {x.dtype}" for name, x in (
               ("positions", positions), ("table", table), ("sinks", sinks))}}, group, VERB)


def check_options(found: dict[str, Any]) -> None:
    for name in found:
        if name not in (*OPTIONS, "order", "split", "method", "check"):
            raise TypeError(f"{VERB}: there is no option {name!r} over several ranks; choose from: {', '.join(OPTIONS)}")
    if found["order"] not in ("bhsd", "bshd"):
        raise ValueError(f'{VERB}: order must be "bhsd" or "bshd", got {found["order"]!r}')


def check_ids(ids: torch.Tensor, tokens: int) -> None:
    """Of all ranks, so that all raise the same."""
    if ids.shape[-1] != tokens:
        raise ValueError(f"{VERB}: expected a position for each of the {tokens} tokens of a rank, got {ids.shape[-1]}")
    if int(ids.abs().max()) >= 2**53:
        raise ValueError(f"{VERB}: positions must lie between -2^53 and 2^53, got {int(ids.flatten()[ids.abs().argmax()])}")


def chosen(method: str, q: torch.Tensor, k: torch.Tensor, form: str, has_parameters: bool, size: int) -> str:
    """The method, from what is the same on all ranks. Tensors are [batch, heads, tokens, features]."""
    if method not in METHODS:
        raise ValueError(f"{VERB}: method must be one of {', '.join(METHODS)}, got {method!r}")
    scheme = json.loads(recipe_of(form)[0]) if form else {"scheme": ""}
    by_heads = q.dim() >= 3 and k.shape[-3] % size == 0 and not has_parameters and (not form or (
        local._form(form).kind in ("rotation", "nothing") and scheme["scheme"] not in BY_HEAD and not scheme.get("head_scales")))
    if method == "ring" and scheme["scheme"] in COUNTED:
        raise ValueError(f"{VERB}: {scheme['scheme']} counts over all keys, which a ring does not have at once; choose all-gather")
    if method == "all-to-all" and not by_heads:
        raise ValueError(f"{VERB}: all-to-all gives each of {size} ranks some key heads, here of {k.shape[-3] if k.dim() >= 3 else 1}, and a form "
                         "that is the same for all heads; choose ring or all-gather")
    if method != "auto":
        return method
    if by_heads and size > 1:
        return "all-to-all"
    return "all-gather" if q.dtype == torch.float64 or scheme["scheme"] in WHOLE else "ring"


def task_of(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, has_parameters: bool, ids: Optional[torch.Tensor], form: str,
            found: dict[str, Any], group: Any) -> Task:
    rank, size = ranks_of(group, VERB)
    if not q.shape[-2] == k.shape[-2] == v.shape[-2]:
        raise ValueError(f"{VERB}: expected as many queries as keys and values on a rank, got {q.shape[-2]}, {k.shape[-2]} and {v.shape[-2]}")
    tokens = size * q.shape[-2]
    check_tokens(tokens, size, found["split"], VERB)
    packed, chunk = packed_lengths(found.get("packed"), tokens), found.get("chunk", 0)
    method = chosen(found["method"], q, k, form, has_parameters, size)
    if ids is not None:
        check_ids(ids, q.shape[-2])
    values = {name: value for name, value in found.items() if name in OPTIONS and name not in ("causal", "window", "chunk", "packed")}
    window = found.get("window", 0)
    by_position = ids is not None and ids.shape[1] == 1 and bool(window or chunk)
    return Task(form, values, layout_of(tokens, size, found["split"], packed, 0 if by_position else chunk), bool(found.get("causal")), window,
                ids, group, rank, found["split"], method, packed, chunk, by_position)


# --- the operator ----------------------------------------------------------------------------------------------------------------


def _by_head(found: dict[str, Any], *tensors: torch.Tensor) -> Tensors:
    """[batch, heads, tokens, features], whatever the caller's order."""
    return tuple(x.detach() if found["order"] == "bhsd" else x.detach().transpose(-2, -3) for x in tensors)


def _as_given(found: dict[str, Any], x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return (x if found["order"] == "bhsd" else x.transpose(-2, -3)).to(like.dtype).contiguous()


def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: Optional[torch.Tensor], sinks: Optional[torch.Tensor],
            positions: Optional[torch.Tensor], form: str, options: str, group_name: str) -> Tensors:
    """Out; and for the backward pass: logsumexp, positions of all ranks, and q, k, v and out of the whole sequence, where a method has them."""
    group, found = group_of(group_name), json.loads(options)
    ranks_of(group, VERB)
    if found.get("check", True):
        check_call((q, k, v, table, sinks, positions), form, options, group)
    check_options(found)
    ids = None if positions is None else gather(positions.reshape(-1, positions.shape[-1]).to(torch.int64), group)
    by_q, by_k, by_v = _by_head(found, q, k, v)
    task = task_of(by_q, by_k, by_v, table is not None or sinks is not None, ids, form, found, group)
    table, sinks = (None if x is None else x.detach() for x in (table, sinks))
    none = [q.new_empty((0,)) for _ in range(4)]
    attempt = Attempt()
    if task.method == "ring":
        made: Tensors = (*ring(by_q, by_k, by_v, table, sinks, task, attempt), *none)
    elif task.method == "all-gather":
        out, lse, keys, values = all_gather(by_q, by_k, by_v, table, sinks, task, attempt)
        made = out, lse, none[0], keys, values, none[1]
    else:
        made = all_to_all(by_q, by_k, by_v, task)
    # A form may take only some distances or positions, which may be beyond them on one rank alone.
    limited = ids is not None or table is not None or bool(form) and local._form(form).kind not in ("rotation", "nothing")
    attempt.settle(group, limited and bool(found.get("check", True)))
    return _as_given(found, made[0], q), made[1], q.new_empty((0,), dtype=torch.int64) if ids is None else ids, *made[2:]


def backward(d: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: Optional[torch.Tensor], sinks: Optional[torch.Tensor],
             out: torch.Tensor, lse: torch.Tensor, ids: torch.Tensor, all_q: torch.Tensor, all_k: torch.Tensor, all_v: torch.Tensor,
             all_out: torch.Tensor, form: str, options: str, group_name: str) -> Tensors:
    """Gradients of q, k, v, table and sinks, the last two this rank's share; empty for what is not there."""
    group, found = group_of(group_name), json.loads(options)
    d, by_q, by_k, by_v, out = _by_head(found, d.contiguous(), q, k, v, out)
    table, sinks = (None if x is None else x.detach() for x in (table, sinks))
    task = task_of(by_q, by_k, by_v, table is not None or sinks is not None, ids if ids.numel() else None, form, found, group)
    d_table, d_sinks = (None if x is None else torch.zeros_like(x) for x in (table, sinks))
    if task.method == "ring":
        made = ring_backward(d, by_q, by_k, by_v, out, lse, table, sinks, d_table, d_sinks, task)
    elif task.method == "all-gather":
        made = all_gather_backward(d, by_q, all_k, all_v, out, lse, table, sinks, d_table, d_sinks, task)
    else:
        made = all_to_all_backward(d, lse, all_q, all_k, all_v, all_out, task)
    return (*(_as_given(found, x, like) for x, like in zip(made, (q, k, v))), *(q.new_empty((0,)) if x is None else x for x in (d_table, d_sinks)))


def shapes(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: Optional[torch.Tensor], sinks: Optional[torch.Tensor],
           positions: Optional[torch.Tensor], form: str, options: str, group_name: str) -> Tensors:
    """What forward returns, without its values: for torch.compile."""
    found, size = json.loads(options), dist.get_world_size(group_of(group_name))
    by_q, by_k, by_v = _by_head(found, q, k, v)
    method = chosen(found["method"], by_q, by_k, form, table is not None or sinks is not None, size)
    *front, heads, tokens, features = by_q.shape if q.dim() > 2 else (1, *by_q.shape)
    front = front if q.dim() > 2 else []
    *_, key_heads, _, key_features = by_k.shape if q.dim() > 2 else (1, *by_k.shape)
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    whole = tokens * size

    def rows(heads: int, count: int, *last: int) -> list[int]:
        return [*front, *([heads] if q.dim() > 2 else []), count, *last]

    lse = q.new_empty(rows(heads, tokens), dtype=wide)
    rest = [q.new_empty((0,)) for _ in range(4)]
    if method == "all-gather":
        rest[1:3] = k.new_empty(rows(key_heads, whole, key_features)), v.new_empty(rows(key_heads, whole, v.shape[-1]))
    elif method == "all-to-all":
        lse = q.new_empty(rows(heads // size, whole), dtype=wide)
        rest = [q.new_empty(rows(heads // size, whole, features)), k.new_empty(rows(key_heads // size, whole, key_features)),
                v.new_empty(rows(key_heads // size, whole, v.shape[-1])), q.new_empty(rows(heads // size, whole, v.shape[-1]))]
    ids = q.new_empty((0,), dtype=torch.int64) if positions is None else positions.new_empty(
        (size, positions.numel() // positions.shape[-1], positions.shape[-1]), dtype=torch.int64)
    return q.new_empty((*q.shape[:-1], v.shape[-1])), lse, ids, *rest

"""Attention over a sequence that is split between the ranks of torch.distributed: posenc.torch.distributed.

Every rank holds a shard of the tokens, of q, k and v alike. The result is that of posenc.torch.attention over the whole
sequence, for this rank's queries, and it is differentiable. With torch ≥ 2.4 it is an operator (posenc::context_parallel), which
torch.compile traces; before that, an autograd function.

    from posenc.torch import distributed
    x = distributed.shard(x)                       # this rank's tokens: an early and a late part (zig-zag)
    q, k, v = layer(x)
    out = distributed.context_parallel_attention(q, k, v, posenc.Rope(dims=128), causal=True)

Parameters (a bias's table, sinks) get this rank's share of their gradient, as the weights of any layer do: DDP, FSDP or an
all_reduce adds the shares up.
"""

from __future__ import annotations

from typing import Any, Optional

import torch

from . import _context_parallel as parallel, torch as local
from ._methods import in_order
from ._ranks import Attempt, agree, exchange, gather, name_of, ranks_of, sum_of_parts
from ._shards import check_tokens, layout_of, packed_lengths, runs_of
from .attention import merge, new_logsumexp
from .forms import Form
from .keywords import attention as plain_attention
from .scheme import Scheme

# --- shards ---------------------------------------------------------------------------------------------------------------


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return gather(x, group)

    @staticmethod
    def backward(ctx: Any, d: torch.Tensor) -> Any:
        return sum_of_parts(exchange(d, ctx.group)).to(d.dtype), None


def shard(x: torch.Tensor, *, dim: int = 1, group: Any = None, split: str = "zigzag") -> torch.Tensor:
    """This rank's tokens of x, which has all of them on axis `dim`; a copy, differentiable.

    split: "zigzag" gives each rank an early and a late part, so that a causal mask gives all the same work; "contiguous".
    """
    rank, size = ranks_of(group, "shard")
    check_tokens(x.shape[dim], size, split, "shard")
    return torch.cat([x.narrow(dim, begin, end - begin) for begin, end in runs_of(x.shape[dim], size, split)[rank]], dim)


def unshard(x: torch.Tensor, *, dim: int = 1, group: Any = None, split: str = "zigzag") -> torch.Tensor:
    """All tokens in their order, from every rank's shard: the inverse of shard, on every rank, differentiable."""
    rank, size = ranks_of(group, "unshard")
    check_tokens(size * x.shape[dim], size, split, "unshard")
    parts: torch.Tensor = _Gather.apply(x.transpose(0, dim).contiguous(), group)
    return in_order(parts.flatten(0, 1), size, split).transpose(0, dim)


def position_ids(tokens: int, *, group: Any = None, split: str = "zigzag", packed: Any = None, device: Any = None) -> torch.Tensor:
    """The positions of this rank's tokens, of `tokens` in all: [tokens of this rank], counted within each packed sequence."""
    rank, size = ranks_of(group, "position_ids")
    check_tokens(tokens, size, split, "position_ids")
    pieces = layout_of(tokens, size, split, packed_lengths(packed, tokens), 0)[rank]
    return torch.cat([torch.arange(one.position, one.position + one.size, device=device) for one in pieces])


# --- autograd -------------------------------------------------------------------------------------------------------------


def _gradients(found: tuple[torch.Tensor, ...], table: Any, sinks: Any) -> Any:
    d_q, d_k, d_v, d_table, d_sinks = found
    return d_q, d_k, d_v, None if table is None else d_table, None if sinks is None else d_sinks, None, None, None, None


if local.HAS_OPERATORS:
    _INPUTS = "Tensor q, Tensor k, Tensor v, Tensor? table, Tensor? sinks"
    _TEXTS = "str form, str options, str group"
    for _signature, _function in {
            f"context_parallel({_INPUTS}, Tensor? positions, {_TEXTS}) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)": parallel.forward,
            f"context_parallel_backward(Tensor d, {_INPUTS}, Tensor out, Tensor lse, Tensor ids, Tensor all_q, Tensor all_k, Tensor all_v, "
            f"Tensor all_out, {_TEXTS}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)": parallel.backward}.items():
        local._library.define(_signature)
        for _key in ("CPU", "CUDA"):
            local._library.impl(_signature.partition("(")[0], _function, _key)

    def _gradient_shapes(d: Any, q: Any, k: Any, v: Any, table: Any, sinks: Any, *others: Any) -> tuple[torch.Tensor, ...]:
        return (*(x.new_empty(x.shape) for x in (q, k, v)), *(q.new_empty((0,)) if x is None else torch.empty_like(x) for x in (table, sinks)))

    torch.library.register_fake("posenc::context_parallel", parallel.shapes, lib=local._library)
    torch.library.register_fake("posenc::context_parallel_backward", _gradient_shapes, lib=local._library)

    def _setup(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.form, ctx.options, ctx.group = inputs
        ctx.save_for_backward(*tensors[:5], *output)
        ctx.mark_non_differentiable(*output[1:])

    def _backward(ctx: Any, d: torch.Tensor, *others: Any) -> Any:
        saved = ctx.saved_tensors
        made = torch.ops.posenc.context_parallel_backward(d, *saved, ctx.form, ctx.options, ctx.group)
        return _gradients(made, saved[3], saved[4])

    torch.library.register_autograd("posenc::context_parallel_backward", local._no_second_derivative, lib=local._library)
    torch.library.register_autograd("posenc::context_parallel", _backward, setup_context=_setup, lib=local._library)
    _call: Any = torch.ops.posenc.context_parallel
else:

    class _ContextParallel(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            made = parallel.forward(*inputs)
            ctx.save_for_backward(*inputs[:5], *made)
            ctx.texts = inputs[6:]
            ctx.mark_non_differentiable(*made[1:])
            return made

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, d: torch.Tensor, *others: Any) -> Any:
            saved = ctx.saved_tensors
            return _gradients(parallel.backward(d, *saved, *ctx.texts), saved[3], saved[4])

    _call = _ContextParallel.apply


# --- attention ------------------------------------------------------------------------------------------------------------


def context_parallel_attention(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: Form | Scheme | str | None = None, *, group: Any = None,
        method: str = "auto", split: str = "zigzag", positions: Any = None, table: Optional[torch.Tensor] = None,
        sinks: Optional[torch.Tensor] = None, order: str = "bhsd", check: bool = True, **values: Any) -> torch.Tensor:
    """Attention of this rank's queries over the keys of all ranks, differentiable in q, k, v, `table` and `sinks`.

    q, k, v: this rank's tokens, as shard gives them; the same shapes and options on every rank, or each raises the same error.
    method: "ring" (keys travel, while attention over those at hand is computed: no rank holds more than three shards of them),
      "all-to-all" (each rank gets all tokens of some heads: key heads divisible by ranks, and a form that is the same for all
      heads), "all-gather" (all keys on every rank), "auto": all-to-all where it can, else ring; all-gather for float64 and for
      forms whose gradients need all keys at once (vectors by distance, cope).
    split: as in shard.
    positions: of this rank's tokens, [tokens] or [axes, tokens], for the form; None: 0, 1, 2 … in each sequence.
    order: "bhsd" or "bshd".
    check: compares shapes and options between ranks first, by a small message. Without it, ranks that differ may wait for the
      group's timeout, or compute nonsense.
    values: causal, window, chunk, scale, softcap, temperature, rounds_rotated, repeatable, and packed: the lengths of the sequences
      in the whole input.
    Error: that of attention, and for f16 and bf16 half an ulp for each part that is merged (ring).
    Raises: ValueError if ranks disagree, tokens cannot be split, or an option cannot be used over several ranks; RuntimeError if a
      rank ends or does not answer within the group's timeout.
    """
    given = [(name, value if name in parallel.OPTIONS else 0) for name, value in values.items() if value is not None and value is not False]
    given += [("method", method), ("split", split), ("order", order), ("check", check)]
    options = ", ".join(f'"{name}": {local._option(value)}' for name, value in given)
    ids = positions if positions is None or isinstance(positions, torch.Tensor) else torch.tensor(positions)
    result: torch.Tensor = _call(q, k, v, table, sinks, ids, local._text_of(form, parallel.VERB), f"{{{options}}}",
                                 name_of(group) if local.HAS_OPERATORS else group)[0]
    return result


def _of_part(q: torch.Tensor, k: torch.Tensor, order: str, rank: int, given: dict[str, Any]) -> dict[str, Any]:
    """The options of one rank's part. Sinks belong to one part; `causal` goes by token, and the tokens of a part end elsewhere."""
    options = {name: value for name, value in given.items() if name != "sinks" or rank == 0}
    queries, keys = (x.shape[-2 if order in ("bhsd", "hsd") else -3] for x in (q, k))
    first, begin = options.get("query_positions"), options.get("key_positions")
    if not options.get("causal"):
        return options
    if isinstance(first, int) and isinstance(begin, int) and options.get("block_table") is None and options.get("key_lengths") is None:
        options["causal"] = False
        if begin + keys > first + 1:
            ids = [torch.arange(one, one + count, device=q.device) for one, count in ((first, queries), (begin, keys))]
            options["mask"] = ids[1] <= ids[0][:, None]
    elif queries > 1:
        raise ValueError("merged_attention: for causal with several queries, query_positions and key_positions must be integers, and keys in no "
                         "pages and of one length; or pass a mask")
    return options


def merged_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: Form | Scheme | str | None = None, *,
                     group: Any = None, check: bool = True, **options: Any) -> torch.Tensor:
    """Decoding over a cache that is split between ranks: q is the same on every rank, the keys are this rank's, and so is the result
    over all keys, on every rank. Parts are merged in the order of ranks, so all ranks have the same bits. A rank may have no keys.

    options: as posenc.attention; pass query_positions and key_positions, because a rank's keys do not end with the queries. With
      block_table and key_lengths, k and v are this rank's pages.
    check: compares queries, types and options between ranks first, and errors afterwards, by small messages. Without it, ranks that differ
      may wait for the group's timeout, or compute nonsense.
    Raises: ValueError if ranks disagree, or one cannot compute its part; RuntimeError as context_parallel_attention.
    """
    rank, _ = ranks_of(group, "merged_attention")
    text = local._text_of(form, "merged_attention")
    order = options.get("order", "bhsd")
    if check:
        same = {name: value for name, value in options.items() if isinstance(value, (bool, int, float, str)) and name != "key_positions"}
        agree({"queries": f"{parallel.shape_of(q)}, values of {v.shape[-1]}", "types": f"q {q.dtype}, k {k.dtype}, v {v.dtype}", "form": text or "none",
               "names of options": str(sorted(options)), "options": str(sorted(same.items()))}, group, "merged_attention")
    part = q.new_empty((*q.shape[:-1], v.shape[-1]))
    lse = new_logsumexp(q, order)
    attempt = Attempt()
    attempt(lambda: plain_attention(q, k, v, local._bound(text, None), out=part, logsumexp=lse, **_of_part(q, k, order, rank, options)))
    attempt.settle(group, check)
    parts, sums = gather(part, group), gather(lse, group)
    out, lse = parts[0].to(torch.promote_types(q.dtype, torch.float32)), sums[0].clone()
    for other, other_lse in zip(parts[1:], sums[1:]):
        merge(out, lse, other, other_lse, order=order)
    return out.to(q.dtype)


__all__ = ["context_parallel_attention", "merged_attention", "position_ids", "shard", "unshard"]

"""Attention over a sequence that is split between the ranks of torch.distributed: posenc.torch.distributed.

Every rank holds a shard of the tokens, of q, k and v alike. The result is that of posenc.torch.attention over the whole
sequence, for this rank's queries, and it is differentiable.

    from posenc.torch import distributed
    x = distributed.shard(x)                       # this rank's tokens: an early and a late part (zig-zag)
    q, k, v = layer(x)
    out = distributed.context_parallel_attention(q, k, v, posenc.Rope(dims=128), causal=True)

Parameters (a bias's table, sinks) get this rank's share of their gradient, as the weights of any layer do: DDP, FSDP or an
all_reduce adds the shares up.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, Optional

import torch
import torch.distributed as dist

from . import torch as local
from .attention import merge as merge_on_host, new_logsumexp
from .forms import Form
from .keywords import attention as plain_attention, attention_backward
from .scheme import Scheme

METHODS = ("auto", "ring", "all-to-all", "all-gather")
SPLITS = ("zigzag", "contiguous")
# Options of posenc.torch.attention that mean the same when keys are elsewhere. Lengths and masks would have to be split as well.
OPTIONS = ("causal", "window", "chunk", "scale", "softcap", "temperature", "rounds_rotated", "repeatable", "packed")


# --- which tokens a rank has --------------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """Tokens that are neighbours in a shard and in their sequence."""

    slot: int  # of the first, in the shard
    token: int  # in the whole input
    size: int
    sequence: int  # pieces of different sequences, or chunks, do not attend to each other
    position: int  # of the first, in its sequence


class Call(NamedTuple):
    """One call of attention: these queries of this rank over those keys of a shard."""

    query: int
    queries: int
    key: int
    keys: int
    causal: bool
    window: int
    query_position: Optional[int]  # None: not consecutive
    key_position: Optional[int]


def _runs(tokens: int, size: int, split: str) -> list[list[tuple[int, int]]]:
    """The ranges of tokens of each rank. Zig-zag: with a causal mask, all ranks have the same work."""
    if split == "contiguous":
        return [[(rank * tokens // size, (rank + 1) * tokens // size)] for rank in range(size)]
    part = tokens // (2 * size)
    return [[(rank * part, (rank + 1) * part), (tokens - (rank + 1) * part, tokens - rank * part)] for rank in range(size)]


@lru_cache(maxsize=64)
def _layout(tokens: int, size: int, split: str, packed: Optional[tuple[int, ...]], chunk: int) -> tuple[tuple[Piece, ...], ...]:
    """The pieces of every rank, in the order of its shard."""
    starts = [0]
    for length in packed or (tokens,):
        starts.append(starts[-1] + length)
    cuts = {token: (sequence, 0) for sequence, token in enumerate(starts[:-1])}
    for start, end in zip(starts, starts[1:]) if chunk else ():
        for token in range(start + chunk, end, chunk):
            cuts[token] = (cuts[start][0], token - start)
    begins = sorted(cuts)
    layout = []
    for runs in _runs(tokens, size, split):
        pieces, slot = [], 0
        for begin, end in runs:
            for cut, following in zip(begins, [*begins[1:], tokens]):
                first, last = max(begin, cut), min(end, following)
                if first < last:
                    pieces.append(Piece(slot, first, last - first, cut, cuts[cut][1] + first - cut))
                    slot += last - first
        layout.append(tuple(pieces))
    return tuple(layout)


def _visible(query: Piece, key: Piece, causal: bool, window: int) -> Optional[tuple[bool, int]]:
    """Whether the call of two pieces is causal, and its window; None: no query attends to any key."""
    if query.sequence != key.sequence or (causal and key.position > query.position):
        return None
    if query == key:
        return causal, window if window < query.size else 0
    apart = query.position - key.position if key.position < query.position else key.position - query.position
    shorter = key.size if key.position < query.position else query.size
    nearest = apart - shorter + 1
    if not window or apart - shorter + query.size + key.size <= window:
        return False, 0
    return None if nearest >= window else (False, window)


@lru_cache(maxsize=512)
def _calls(queries: tuple[Piece, ...], keys: tuple[Piece, ...], causal: bool, window: int) -> tuple[Call, ...]:
    """The calls of one shard's queries over another's keys. Neighbours that need no mask become one call."""
    calls: list[Call] = []
    for query in queries:
        for key in keys:
            how = _visible(query, key, causal, window)
            if how is None:
                continue
            one = Call(query.slot, query.size, key.slot, key.size, *how, query.position, key.position)
            last = calls[-1] if calls else None
            if last and not (one.causal or one.window or last.causal or last.window) and (
                    (last.query, last.key + last.keys) == (one.query, one.key)):
                follows = last.key_position is not None and last.key_position + last.keys == one.key_position
                calls[-1] = last._replace(keys=last.keys + one.keys, key_position=last.key_position if follows else None)
            else:
                calls.append(one)
    joined: list[Call] = []
    for one in calls:
        for i, last in enumerate(joined):
            if not (one.causal or one.window or last.causal or last.window) and (
                    (last.key, last.keys, last.query + last.queries) == (one.key, one.keys, one.query)):
                follows = last.query_position is not None and last.query_position + last.queries == one.query_position
                joined[i] = last._replace(queries=last.queries + one.queries, query_position=last.query_position if follows else None)
                break
        else:
            joined.append(one)
    return tuple(joined)


@lru_cache(maxsize=64)
def _steps(layout: tuple[tuple[Piece, ...], ...], causal: bool, window: int) -> tuple[int, ...]:
    """The steps of the ring in which some rank has work. At step s, rank r has the keys of rank r − s."""
    size = len(layout)
    return tuple(step for step in range(size) if any(_calls(layout[rank], layout[rank - step], causal, window) for rank in range(size)))


# --- collectives that are differentiable, in a fixed order of sums ---------------------------------------------------------


def _bytes(x: torch.Tensor) -> torch.Tensor:
    """What is sent: gloo knows no bfloat16."""
    return x.contiguous().view(torch.uint8)


def _exchange(x: torch.Tensor, group: Any) -> torch.Tensor:
    """x[i] goes to rank i; the result's [i] came from rank i."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    dist.all_to_all_single(_bytes(out), _bytes(x), group=group)
    return out


def _gather(x: torch.Tensor, group: Any) -> torch.Tensor:
    """[ranks, …]"""
    out = x.new_empty((dist.get_world_size(group), *x.shape))
    dist.all_gather([_bytes(one) for one in out], _bytes(x), group=group)
    return out


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return _gather(x, group)

    @staticmethod
    def backward(ctx: Any, d: torch.Tensor) -> Any:
        parts = _exchange(d, ctx.group)
        total = parts[0].to(torch.promote_types(parts.dtype, torch.float32))
        for part in parts[1:]:
            total = total + part
        return total.to(d.dtype), None


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return _exchange(x, group)

    @staticmethod
    def backward(ctx: Any, d: torch.Tensor) -> Any:
        return _exchange(d, ctx.group), None


# --- shards ---------------------------------------------------------------------------------------------------------------


def _ranks(group: Any, verb: str) -> tuple[int, int]:
    if not dist.is_available() or not dist.is_initialized():
        raise RuntimeError(f"{verb}: torch.distributed is not initialized; start with torchrun and call init_process_group first")
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if rank < 0:
        raise RuntimeError(f"{verb}: this process is not in the group")
    return rank, size


def _check_tokens(tokens: int, size: int, split: str, verb: str) -> None:
    if split not in SPLITS:
        raise ValueError(f"{verb}: split must be one of {', '.join(SPLITS)}, got {split!r}")
    parts = 2 * size if split == "zigzag" else size
    if tokens <= 0 or tokens % parts:
        raise ValueError(f"{verb}: expected a positive number of tokens that {parts} divides "
                         f"({split}, {size} ranks), got {tokens}; pad the sequence")


@lru_cache(maxsize=64)
def _order(tokens: int, size: int, split: str) -> tuple[int, ...]:
    """The tokens of all shards, one shard after another."""
    return tuple(token for runs in _runs(tokens, size, split) for begin, end in runs for token in range(begin, end))


def shard(x: torch.Tensor, *, dim: int = 1, group: Any = None, split: str = "zigzag") -> torch.Tensor:
    """This rank's tokens of x, which has all of them on axis `dim`; a copy, differentiable.

    split: "zigzag" gives each rank an early and a late part, so that a causal mask gives all the same work; "contiguous".
    """
    rank, size = _ranks(group, "shard")
    _check_tokens(x.shape[dim], size, split, "shard")
    return torch.cat([x.narrow(dim, begin, end - begin) for begin, end in _runs(x.shape[dim], size, split)[rank]], dim)


def unshard(x: torch.Tensor, *, dim: int = 1, group: Any = None, split: str = "zigzag") -> torch.Tensor:
    """All tokens in their order, from every rank's shard: the inverse of shard, on every rank, differentiable."""
    rank, size = _ranks(group, "unshard")
    tokens = size * x.shape[dim]
    _check_tokens(tokens, size, split, "unshard")
    parts: torch.Tensor = _Gather.apply(x.transpose(0, dim).contiguous(), group)
    return _in_order(parts.flatten(0, 1), tokens, size, split).transpose(0, dim)


def _in_order(x: torch.Tensor, tokens: int, size: int, split: str) -> torch.Tensor:
    """Shards one after another on the first axis → the sequence."""
    back = torch.empty(tokens, dtype=torch.int64)
    back[torch.tensor(_order(tokens, size, split))] = torch.arange(tokens)
    return x.index_select(0, back.to(x.device))


def position_ids(tokens: int, *, group: Any = None, split: str = "zigzag", packed: Any = None, device: Any = None) -> torch.Tensor:
    """The positions of this rank's tokens, of `tokens` in all: [tokens of this rank], counted within each packed sequence."""
    rank, size = _ranks(group, "position_ids")
    _check_tokens(tokens, size, split, "position_ids")
    pieces = _layout(tokens, size, split, _packed(packed, tokens), 0)[rank]
    return torch.cat([torch.arange(one.position, one.position + one.size, device=device) for one in pieces])


def _packed(packed: Any, tokens: int) -> Optional[tuple[int, ...]]:
    if packed is None:
        return None
    lengths = tuple(int(one) for one in packed)
    if any(one <= 0 for one in lengths) or sum(lengths) != tokens:
        raise ValueError(f"packed: expected positive lengths that add up to the {tokens} tokens of all ranks, got a sum of {sum(lengths)}")
    return lengths


# --- agreement --------------------------------------------------------------------------------------------------------------


def _agree(what: dict[str, str], group: Any) -> None:
    """Raises the same error on every rank if one calls with another shape, type or option."""
    found: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, what, group=group)
    for rank, other in enumerate(found):
        for name, value in found[0].items():
            if other.get(name) != value:
                raise ValueError(f"context_parallel_attention: the ranks disagree about {name}: {value} on rank 0, {other.get(name)} on rank {rank}")


# --- attention ----------------------------------------------------------------------------------------------------------------


class _Task(NamedTuple):
    """What all steps of a call share."""

    form: str
    values: dict[str, Any]  # options without causal, window, chunk and packed
    layout: tuple[tuple[Piece, ...], ...]
    causal: bool
    window: int
    positions: Any  # None, or [ranks, axes, tokens of a rank], given by the caller
    group: Any


def _positions(task: _Task, rank: int, first: Optional[int], begin: int, count: int) -> Any:
    """Positions of some tokens of a rank's shard, as attention takes them."""
    if task.positions is not None:
        return task.positions[rank][..., begin : begin + count].contiguous()
    if first is not None:
        return first
    ids = [one.position + i for one in task.layout[rank] for i in range(one.size)]
    return ids[begin : begin + count]


def _options(task: _Task, call: Call, here: int, owner: int) -> dict[str, Any]:
    found = {**task.values, "causal": call.causal, "window": call.window}
    if task.form or call.window or "temperature" in found:
        found["query_positions"] = _positions(task, here, call.query_position, call.query, call.queries)
        found["key_positions"] = _positions(task, owner, call.key_position, call.key, call.keys)
    return found


def _merge(out: torch.Tensor, lse: torch.Tensor, other: torch.Tensor, other_lse: torch.Tensor) -> None:
    if out.device.type == "cpu":
        merge_on_host(out, lse, other, other_lse)
    else:
        _merge_by_torch(out, lse, other, other_lse)


def _merge_by_torch(out: torch.Tensor, lse: torch.Tensor, other: torch.Tensor, other_lse: torch.Tensor) -> None:
    """The same on a GPU. A side without keys (−inf) is not read, and a row that has keys keeps its bits."""
    share = torch.sigmoid(lse - other_lse).unsqueeze(-1)
    merged = share * out + (1 - share) * other
    merged = torch.where(torch.isneginf(lse).unsqueeze(-1), other.to(out.dtype), merged)
    out.copy_(torch.where(torch.isneginf(other_lse).unsqueeze(-1), out, merged))
    lse.copy_(torch.logaddexp(lse, other_lse))


class _Carousel:
    """A tensor that travels around the ring while the present one is computed with."""

    def __init__(self, x: torch.Tensor, group: Any) -> None:
        self.here, self.group = x, group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.coming: Any = None
        self.requests: list[Any] = []

    def member(self, rank: int) -> int:
        return rank % int(self.size) if self.group is None else int(dist.get_global_rank(self.group, rank % self.size))

    def send(self, hops: int) -> None:
        """Begins to send it `hops` ranks further, and to receive the one that comes from there."""
        self.coming = torch.empty_like(self.here)
        self.requests = dist.batch_isend_irecv([dist.P2POp(dist.isend, _bytes(self.here), self.member(self.rank + hops), self.group),
                                                dist.P2POp(dist.irecv, _bytes(self.coming), self.member(self.rank - hops), self.group)])

    def turn(self) -> None:
        for request in self.requests:
            request.wait()
        self.here, self.coming, self.requests = self.coming, None, []


def _keys_and_values(flat: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """One message, taken apart."""
    return flat[: k.numel()].view(k.shape), flat[k.numel() :].view(v.shape)


def _rows(x: torch.Tensor, begin: int, count: int) -> torch.Tensor:
    return x[..., begin : begin + count, :]


class _Ring(torch.autograd.Function):
    """Keys and values travel around the ring. Forward merges the parts; backward recomputes each with the sums of all keys."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: Any, sinks: Any, task: _Task) -> torch.Tensor:
        q, k, v = q.detach(), k.detach(), v.detach()
        rank, steps = dist.get_rank(task.group), _steps(task.layout, task.causal, task.window)
        form = local._bound(task.form, table)
        out = q.new_zeros((*q.shape[:-1], v.shape[-1]), dtype=torch.promote_types(q.dtype, torch.float32))
        lse = new_logsumexp(q).fill_(-float("inf"))
        block = _Carousel(torch.cat((k.flatten(), v.flatten())), task.group)
        for step, following in zip(steps, (*steps[1:], None)):
            if following is not None:
                block.send(following - step)
            owner = (rank - step) % block.size
            keys, values = _keys_and_values(block.here, k, v)
            for call in _calls(task.layout[rank], task.layout[owner], task.causal, task.window):
                options = _options(task, call, rank, owner)
                if sinks is not None and step == 0 and call.query == call.key:  # once for each query
                    options["sinks"] = sinks.detach()
                part = q.new_empty((*q.shape[:-2], call.queries, v.shape[-1]))
                part_lse = new_logsumexp(part)
                plain_attention(_rows(q, call.query, call.queries), _rows(keys, call.key, call.keys), _rows(values, call.key, call.keys), form,
                                out=part, logsumexp=part_lse, **options)
                _merge(_rows(out, call.query, call.queries), lse[..., call.query : call.query + call.queries], part, part_lse)
            if following is not None:
                block.turn()
        result = out.to(q.dtype)
        ctx.save_for_backward(q, k, v, result, lse, table, sinks)
        ctx.task = task
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d: torch.Tensor) -> Any:
        saved: list[Any] = [x if x is None else x.detach() for x in ctx.saved_tensors]
        q, k, v, out, lse, table, sinks = saved
        task, d = ctx.task, d.contiguous()
        rank, steps = dist.get_rank(task.group), _steps(task.layout, task.causal, task.window)
        form = local._bound(task.form, table)
        wide = torch.promote_types(q.dtype, torch.float32)
        d_q = torch.zeros_like(q, dtype=wide)
        d_table = None if table is None else torch.zeros_like(table)
        d_sinks = None if sinks is None else torch.zeros_like(sinks)
        block = _Carousel(torch.cat((k.flatten(), v.flatten())), task.group)
        d_block = _Carousel(torch.zeros_like(block.here, dtype=wide), task.group)  # travels behind its keys, one step later
        for step, following in zip(steps, (*steps[1:], None)):
            if following is not None:
                block.send(following - step)
            owner = (rank - step) % block.size
            keys, values = _keys_and_values(block.here, k, v)
            made_of = []
            for call in _calls(task.layout[rank], task.layout[owner], task.causal, task.window):
                has_sinks = sinks is not None and step == 0 and call.query == call.key
                made = attention_backward(
                    _rows(d, call.query, call.queries), _rows(q, call.query, call.queries), _rows(keys, call.key, call.keys),
                    _rows(values, call.key, call.keys), form, out=_rows(out, call.query, call.queries),
                    logsumexp=lse[..., call.query : call.query + call.queries], d_parameters=d_table, d_sinks=d_sinks if has_sinks else None,
                    sinks=sinks if has_sinks else None, **_options(task, call, rank, owner))
                _rows(d_q, call.query, call.queries).add_(made.q)
                made_of.append((call, made.k, made.v))
            if step > 0:
                d_block.turn()
            d_keys, d_values = _keys_and_values(d_block.here, k, v)
            for call, d_k, d_v in made_of:
                _rows(d_keys, call.key, call.keys).add_(d_k)
                _rows(d_values, call.key, call.keys).add_(d_v)
            if len(steps) > 1:
                d_block.send(-step if following is None else following - step)  # at the end, home
            if following is not None:
                block.turn()
        if len(steps) > 1:
            d_block.turn()
        d_keys, d_values = _keys_and_values(d_block.here, k, v)
        return d_q.to(q.dtype), d_keys.to(k.dtype), d_values.to(v.dtype), d_table, d_sinks, None


def _all_gather(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: Any, table: Any, sinks: Any, task: _Task, split: str) -> torch.Tensor:
    """Every rank has all keys: one call for each piece of its queries."""
    rank, size = dist.get_rank(task.group), len(task.layout)
    tokens = size * k.shape[-2]
    keys, values = (unshard(x, dim=x.dim() - 2, group=task.group, split=split) for x in (k, v))
    parts = []
    for piece in task.layout[rank]:
        others = [one for pieces in task.layout for one in pieces if one.sequence == piece.sequence]
        begin = min(one.token for one in others)
        end = piece.token + piece.size if task.causal else max(one.token + one.size for one in others)
        options: dict[str, Any] = {**task.values, "causal": task.causal, "window": task.window}
        if task.positions is not None:
            ids = task.positions.transpose(0, 1).flatten(1)  # [axes, tokens], shard after shard
            ids = _in_order(ids.t(), tokens, size, split).t()
            options["query_positions"] = ids[:, piece.token : piece.token + piece.size].squeeze(0)
            options["key_positions"] = ids[:, begin:end].squeeze(0)
        first = piece.position - (piece.token - begin)
        if task.positions is None and (first or not task.causal):  # else the queries are the last tokens, as attention takes them
            options["query_positions"] = torch.arange(piece.position, piece.position + piece.size)
            options["key_positions"] = torch.arange(first, first + end - begin)
        parts.append(local.attention(q[..., piece.slot : piece.slot + piece.size, :], keys[..., begin:end, :], values[..., begin:end, :],
                                     form, table=table, sinks=sinks, **options))
    return torch.cat(parts, -2)


def _all_to_all(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: Any, task: _Task, split: str, values: dict[str, Any]) -> torch.Tensor:
    """Every rank gets all tokens of some heads, and gives its result back (Ulysses)."""
    size, dim = len(task.layout), q.dim()
    tokens = size * q.shape[-2]

    def all_tokens(x: torch.Tensor) -> torch.Tensor:
        parts = torch.stack(x.chunk(size, -3))  # [ranks, …, heads/ranks, tokens of a rank, features]
        found: torch.Tensor = _Exchange.apply(parts, task.group)
        return _in_order(found.movedim(-2, 1).flatten(0, 1), tokens, size, split).movedim(0, dim - 2)

    ids = None
    if task.positions is not None:
        ids = _in_order(task.positions.transpose(0, 1).flatten(1).t(), tokens, size, split).t().squeeze(0).contiguous()
    out = local.attention(all_tokens(q), all_tokens(k), all_tokens(v), form, query_positions=ids, key_positions=ids, **values)
    mine = out.index_select(-2, torch.tensor(_order(tokens, size, split), device=out.device))
    parts = torch.stack(mine.chunk(size, -2))
    back: torch.Tensor = _Exchange.apply(parts, task.group)
    return torch.cat(list(back), -3)


def _chosen(method: str, q: torch.Tensor, k: torch.Tensor, form: str, has_parameters: bool, size: int) -> str:
    if method not in METHODS:
        raise ValueError(f"context_parallel_attention: method must be one of {', '.join(METHODS)}, got {method!r}")
    by_heads = q.dim() >= 3 and k.shape[-3] % size == 0 and not has_parameters and (not form or not has_parameters and local._form(form).kind == "rotation")
    if method == "all-to-all" and not by_heads:
        raise ValueError(f"context_parallel_attention: all-to-all gives each of {size} ranks some key heads, here of {k.shape[-3]}, and a form "
                         "that is the same for all heads; choose ring or all-gather")
    if method != "auto":
        return method
    if by_heads and size > 1:
        return "all-to-all"
    return "all-gather" if q.dtype == torch.float64 else "ring"


def context_parallel_attention(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: Form | Scheme | str | None = None, *, group: Any = None,
        method: str = "auto", split: str = "zigzag", positions: Any = None, table: Optional[torch.Tensor] = None,
        sinks: Optional[torch.Tensor] = None, order: str = "bhsd", **values: Any) -> torch.Tensor:
    """Attention of this rank's queries over the keys of all ranks, differentiable in q, k, v, `table` and `sinks`.

    q, k, v: this rank's tokens, as shard gives them; the same shapes and options on every rank, or each raises the same error.
    method: "ring" (keys travel, while attention over those at hand is computed: no rank holds more than three shards of them),
      "all-to-all" (each rank gets all tokens of some heads: key heads divisible by ranks, and a form that is the same for all
      heads), "all-gather" (all keys on every rank), "auto": all-to-all where it can, else ring; all-gather for float64.
    split: as in shard.
    positions: of this rank's tokens, [tokens] or [axes, tokens], for the form; None: 0, 1, 2 … in each sequence.
    order: "bhsd" or "bshd".
    values: causal, window, chunk, scale, softcap, temperature, rounds_rotated, repeatable, and packed: the lengths of the sequences
      in the whole input.
    Error: that of attention, and for f16 and bf16 half an ulp for each part that is merged (ring).
    Raises: ValueError if ranks disagree, tokens cannot be split, or an option cannot be used over several ranks.
    """
    rank, size = _ranks(group, "context_parallel_attention")
    unknown = [name for name in values if name not in OPTIONS]
    if unknown:
        raise TypeError(f"context_parallel_attention: there is no option {unknown[0]!r} over several ranks; choose from: {', '.join(OPTIONS)}")
    if order not in ("bhsd", "bshd"):
        raise ValueError(f'context_parallel_attention: order must be "bhsd" or "bshd", got {order!r}')
    text = local._text_of(form, "context_parallel_attention")
    values = {name: value for name, value in values.items() if value is not None and value is not False}
    if positions is not None and (values.get("window") or values.get("chunk")):
        raise ValueError("context_parallel_attention: window and chunk go by token here; they cannot be combined with positions")
    _agree({"shapes": f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}", "types": f"q {q.dtype}, k {k.dtype}, v {v.dtype}",
            "options": f"{sorted(values.items())}, order {order}, split {split}", "form": text or "none", "method": method,
            "positions": "none" if positions is None else str(list(positions.shape)), "table": "none" if table is None else str(list(table.shape)),
            "sinks": "none" if sinks is None else str(list(sinks.shape))}, group)
    if order == "bshd":
        q, k, v = (x.transpose(-2, -3) for x in (q, k, v))
    if not q.shape[-2] == k.shape[-2] == v.shape[-2]:
        raise ValueError(f"context_parallel_attention: expected as many queries as keys and values on a rank, got {q.shape[-2]}, {k.shape[-2]} and "
                         f"{v.shape[-2]}")
    tokens = size * q.shape[-2]
    _check_tokens(tokens, size, split, "context_parallel_attention")
    packed, chunk = _packed(values.get("packed"), tokens), values.get("chunk", 0)
    rest = {name: value for name, value in values.items() if name not in ("causal", "window", "chunk", "packed")}
    ids = None if positions is None else _gather(positions.reshape(-1, positions.shape[-1]).to(torch.int64), group)
    method = _chosen(method, q, k, text, table is not None or sinks is not None, size)
    task = _Task(text, rest, _layout(tokens, size, split, packed, chunk), bool(values.get("causal")), values.get("window", 0), ids, group)
    if method == "ring":
        out: torch.Tensor = _Ring.apply(q, k, v, table, sinks, task)
    elif method == "all-gather":
        out = _all_gather(q, k, v, form, table, sinks, task, split)
    else:
        out = _all_to_all(q, k, v, form, task, split, values)
    return out.transpose(-2, -3) if order == "bshd" else out


def merged_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: Form | Scheme | str | None = None, *,
                     group: Any = None, **options: Any) -> torch.Tensor:
    """Decoding over a cache that is split between ranks: q is the same on every rank, the keys are this rank's, and so is the result
    over all keys, on every rank. Parts are merged in the order of ranks, so all ranks have the same bits.

    options: as posenc.attention; pass query_positions and key_positions, because a rank's keys do not end with the queries.
    """
    _ranks(group, "merged_attention")
    text = local._text_of(form, "merged_attention")
    part = q.new_empty((*q.shape[:-1], v.shape[-1]))
    lse = new_logsumexp(q, options.get("order", "bhsd"))
    plain_attention(q, k, v, local._bound(text, None), out=part, logsumexp=lse, **options)
    parts, sums = _gather(part, group), _gather(lse, group)
    out, lse = parts[0].to(torch.promote_types(q.dtype, torch.float32)), sums[0].clone()
    for other, other_lse in zip(parts[1:], sums[1:]):
        _merge(out, lse, other, other_lse)
    return out.to(q.dtype)


__all__ = ["context_parallel_attention", "merged_attention", "position_ids", "shard", "unshard"]

"""Attention over a sequence that is split between ranks: three methods, each forward and backward, without autograd.

Tensors are [batch, heads, tokens, features] here; _context_parallel.py makes an operator of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import torch

from . import torch as local
from ._ranks import Attempt, Carousel, exchange, gather, sum_of_parts
from ._shards import Call, Layout, Piece, calls_of, runs_of, steps_of
from .attention import merge, new_logsumexp
from .keywords import attention as plain_attention, attention_backward


class Task(NamedTuple):
    """What all steps of a call share."""

    form: str
    values: dict[str, Any]  # options without causal, window, chunk and packed
    layout: Layout
    causal: bool
    window: int
    positions: Optional[torch.Tensor]  # [ranks, axes, tokens of a rank], given by the caller
    group: Any
    rank: int
    split: str
    method: str
    packed: Optional[tuple[int, ...]]
    chunk: int
    by_position: bool  # window and chunk go by given positions of one axis; else by token, as the layout has them

    @property
    def size(self) -> int:
        return len(self.layout)

    def calls(self, rank: int, owner: int) -> tuple[Call, ...]:
        """A rank's calls over the keys of another."""
        found = calls_of(self.layout[rank], self.layout[owner], self.causal, 0 if self.by_position else self.window)
        return tuple(call for call in found if self._meet(call, rank, owner)) if self.by_position else found

    def steps(self) -> tuple[int, ...]:
        """The steps of the ring in which some rank has work."""
        if not self.by_position:
            return steps_of(self.layout, self.causal, self.window)
        return tuple(step for step in range(self.size) if any(self.calls(rank, (rank - step) % self.size) for rank in range(self.size)))

    def _meet(self, call: Call, rank: int, owner: int) -> bool:
        """Whether some query may see some key, by the least and greatest positions of both."""
        assert self.positions is not None
        queries = self.positions[rank][0, call.query : call.query + call.queries]
        keys = self.positions[owner][0, call.key : call.key + call.keys]
        (first, last), (begin, end) = ((int(one.min()), int(one.max())) for one in (queries, keys))
        apart = max(begin - last, first - end, 0)
        same = not self.chunk or (first // self.chunk <= end // self.chunk and begin // self.chunk <= last // self.chunk)
        return same and (not self.window or apart < self.window)


Tensors = tuple[torch.Tensor, ...]


# --- one call of the ring ------------------------------------------------------------------------------------------------------


def _positions(task: Task, rank: int, first: Optional[int], begin: int, count: int) -> Any:
    """Positions of some tokens of a rank's shard, as attention takes them."""
    if task.positions is not None:
        return task.positions[rank][..., begin : begin + count].squeeze(0).contiguous()
    if first is not None:
        return first
    return torch.cat([torch.arange(one.position, one.position + one.size) for one in task.layout[rank]])[begin : begin + count]


def _near(query: int, queries: int, key: int, keys: int, window: int, like: torch.Tensor) -> torch.Tensor:
    """[queries, keys]: which are less than `window` tokens apart."""
    ids = [torch.arange(first, first + count, device=like.device) for first, count in ((query, queries), (key, keys))]
    return (ids[0][:, None] - ids[1]).abs() < window


def _options(task: Task, call: Call, owner: int) -> dict[str, Any]:
    found = {**task.values, "causal": call.causal, "window": call.window}
    if task.by_position:
        found["window"], found["chunk"] = task.window, task.chunk
    elif call.window and task.positions is not None and call.query_position != call.key_position:
        # Positions of several axes are the form's alone, and a window by token needs neighbours: a mask of its edge.
        assert call.query_position is not None and call.key_position is not None
        found["window"] = 0
        found["mask"] = _near(call.query_position, call.queries, call.key_position, call.keys, call.window, task.positions)
    if task.form or task.by_position or call.window or "temperature" in found:
        found["query_positions"] = _positions(task, task.rank, call.query_position, call.query, call.queries)
        found["key_positions"] = _positions(task, owner, call.key_position, call.key, call.keys)
    return found


def _keys_and_values(flat: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """One message, taken apart."""
    return flat[: k.numel()].view(k.shape), flat[k.numel() :].view(v.shape)


def _rows(x: torch.Tensor, begin: int, count: int) -> torch.Tensor:
    return x[..., begin : begin + count, :]


# --- ring: keys and values travel --------------------------------------------------------------------------------------------


def ring(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: Any, sinks: Any, task: Task, attempt: Attempt) -> Tensors:
    """Out and its logsumexp: attention over each shard of keys as it comes by, merged."""
    steps, form = task.steps(), local._bound(task.form, table)
    out = q.new_zeros((*q.shape[:-1], v.shape[-1]), dtype=torch.promote_types(q.dtype, torch.float32))
    lse = new_logsumexp(q).fill_(-float("inf"))
    block = Carousel(torch.cat((k.flatten(), v.flatten())), task.group)

    def add_part(call: Call, owner: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        options = _options(task, call, owner)
        if sinks is not None and owner == task.rank and call.query == call.key:  # once for each query
            options["sinks"] = sinks
        part = q.new_empty((*q.shape[:-2], call.queries, v.shape[-1]))
        part_lse = new_logsumexp(part)
        plain_attention(_rows(q, call.query, call.queries), _rows(keys, call.key, call.keys), _rows(values, call.key, call.keys), form,
                        out=part, logsumexp=part_lse, **options)
        merge(_rows(out, call.query, call.queries), lse[..., call.query : call.query + call.queries], part, part_lse)

    for step, following in zip(steps, (*steps[1:], None)):
        if following is not None:
            block.send(following - step)
        owner = (task.rank - step) % task.size
        keys, values = _keys_and_values(block.here, k, v)
        for call in task.calls(task.rank, owner):
            attempt(add_part, call, owner, keys, values)
        del keys, values  # else three messages are held while the next one is on its way
        if following is not None:
            block.turn()
    return out.to(q.dtype), lse


def ring_backward(d: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, table: Any, sinks: Any,
                  d_table: Any, d_sinks: Any, task: Task) -> Tensors:
    """Each part again, with the sums of all keys. The gradients of keys travel behind them, one step later."""
    steps, form = task.steps(), local._bound(task.form, table)
    wide = torch.promote_types(q.dtype, torch.float32)
    d_q = torch.zeros_like(q, dtype=wide, memory_format=torch.contiguous_format)
    block = Carousel(torch.cat((k.flatten(), v.flatten())), task.group)
    d_block = Carousel(torch.zeros_like(block.here, dtype=wide), task.group)
    for step, following in zip(steps, (*steps[1:], None)):
        if following is not None:
            block.send(following - step)
        owner = (task.rank - step) % task.size
        keys, values = _keys_and_values(block.here, k, v)
        made_of: list[Any] = []
        for call in task.calls(task.rank, owner):
            has_sinks = sinks is not None and step == 0 and call.query == call.key
            made = attention_backward(
                _rows(d, call.query, call.queries), _rows(q, call.query, call.queries), _rows(keys, call.key, call.keys),
                _rows(values, call.key, call.keys), form, out=_rows(out, call.query, call.queries),
                logsumexp=lse[..., call.query : call.query + call.queries], d_parameters=d_table, d_sinks=d_sinks if has_sinks else None,
                sinks=sinks if has_sinks else None, **_options(task, call, owner))
            _rows(d_q, call.query, call.queries).add_(made.q)
            made_of.append((call, made.k, made.v))
            del made
        del keys, values
        if step > 0:
            d_block.turn()
        d_keys, d_values = _keys_and_values(d_block.here, k, v)
        while made_of:
            call, *d_of = made_of.pop(0)
            for total, one in zip((d_keys, d_values), d_of):
                _rows(total, call.key, call.keys).add_(one)
            del d_of, total, one
        del d_keys, d_values
        if len(steps) > 1:
            d_block.send(-step if following is None else following - step)  # at the end, home
        if following is not None:
            block.turn()
    if len(steps) > 1:
        d_block.turn()
    return d_q, *(x.to(k.dtype, copy=True) for x in _keys_and_values(d_block.here, k, v))  # copies: an operator's results share no memory


# --- whole sequences ---------------------------------------------------------------------------------------------------------


def in_order(x: torch.Tensor, size: int, split: str) -> torch.Tensor:
    """Shards one after another on the first axis → the sequence."""
    tokens, slot, parts = x.shape[0], 0, []
    for runs in runs_of(tokens, size, split):
        for begin, end in runs:
            parts.append((begin, x[slot : slot + end - begin]))
            slot += end - begin
    return torch.cat([part for _, part in sorted(parts, key=lambda one: one[0])])


def in_shards(x: torch.Tensor, size: int, split: str, dim: int) -> torch.Tensor:
    """The sequence → shards one after another, on axis `dim`."""
    return torch.cat([x.narrow(dim, begin, end - begin) for runs in runs_of(x.shape[dim], size, split) for begin, end in runs], dim)


def whole_sequence(x: torch.Tensor, task: Task) -> torch.Tensor:
    """[…, tokens of a rank, features] → […, tokens, features], on every rank."""
    parts = gather(x.movedim(-2, 0).contiguous(), task.group)
    return in_order(parts.flatten(0, 1), task.size, task.split).movedim(0, -2).contiguous()


def all_ids(task: Task) -> Any:
    """The positions of the whole sequence, as attention takes them; None: not given."""
    if task.positions is None:
        return None
    ids = task.positions.transpose(0, 1).flatten(1)  # [axes, tokens], shard after shard
    return in_order(ids.t(), task.size, task.split).t().squeeze(0).contiguous()


BLOCK = 1024  # queries of a call that needs a mask of queries × keys


def _blocks(task: Task) -> Any:
    """The pieces of this rank's queries; smaller ones, and whether they need a mask, where a window by token has keys on both sides."""
    is_masked = bool(task.window) and not (task.causal or task.by_position or task.positions is None)
    for piece in task.layout[task.rank]:
        for first in range(0, piece.size, BLOCK if is_masked else piece.size):
            size = min(BLOCK, piece.size - first) if is_masked else piece.size
            yield Piece(piece.slot + first, piece.token + first, size, piece.sequence, piece.position + first), is_masked


def _over_pieces(task: Task, tokens: int) -> Any:
    """(piece, its keys' range, options) for each piece of this rank's queries."""
    ids = all_ids(task)
    for piece, is_masked in _blocks(task):
        others = [one for pieces in task.layout for one in pieces if one.sequence == piece.sequence]
        begin = min(one.token for one in others)
        end = piece.token + piece.size if task.causal else max(one.token + one.size for one in others)
        options: dict[str, Any] = {**task.values, "causal": task.causal, "window": task.window}
        if task.by_position:
            options["chunk"] = task.chunk
        if is_masked:
            begin, end = max(begin, piece.token - task.window + 1), min(end, piece.token + piece.size + task.window - 1)
            options["window"], options["mask"] = 0, _near(piece.token, piece.size, begin, end - begin, task.window, ids)
        first = piece.position - (piece.token - begin)
        if ids is not None:
            options["query_positions"] = ids[..., piece.token : piece.token + piece.size].contiguous()
            options["key_positions"] = ids[..., begin:end].contiguous()
        elif first or not task.causal:  # else the queries are the last tokens, as attention takes them
            options["query_positions"], options["key_positions"] = piece.position, first
        yield piece, begin, end - begin, options


def all_gather(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: Any, sinks: Any, task: Task, attempt: Attempt) -> Tensors:
    """Every rank has all keys: one call for each piece of its queries. Out, its logsumexp, all keys and values."""
    keys, values = whole_sequence(k, task), whole_sequence(v, task)
    form = local._bound(task.form, table)
    out, lse = q.new_empty((*q.shape[:-1], v.shape[-1])), new_logsumexp(q)

    def of_piece(piece: Piece, begin: int, count: int, options: dict[str, Any]) -> None:
        plain_attention(_rows(q, piece.slot, piece.size), _rows(keys, begin, count), _rows(values, begin, count), form, sinks=sinks,
                        out=_rows(out, piece.slot, piece.size), logsumexp=lse[..., piece.slot : piece.slot + piece.size], **options)

    for one in _over_pieces(task, keys.shape[-2]):
        attempt(of_piece, *one)
    return out, lse, keys, values


def all_gather_backward(d: torch.Tensor, q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, table: Any,
                        sinks: Any, d_table: Any, d_sinks: Any, task: Task) -> Tensors:
    form, wide = local._bound(task.form, table), torch.promote_types(q.dtype, torch.float32)
    d_q = torch.zeros_like(q, memory_format=torch.contiguous_format)
    d_keys, d_values = torch.zeros_like(keys, dtype=wide), torch.zeros_like(values, dtype=wide)
    for piece, begin, count, options in _over_pieces(task, keys.shape[-2]):
        made = attention_backward(_rows(d, piece.slot, piece.size), _rows(q, piece.slot, piece.size), _rows(keys, begin, count),
                                  _rows(values, begin, count), form, out=_rows(out, piece.slot, piece.size),
                                  logsumexp=lse[..., piece.slot : piece.slot + piece.size], d_parameters=d_table, d_sinks=d_sinks, sinks=sinks,
                                  **options)
        _rows(d_q, piece.slot, piece.size).copy_(made.q)
        _rows(d_keys, begin, count).add_(made.k)
        _rows(d_values, begin, count).add_(made.v)

    def share(x: torch.Tensor) -> torch.Tensor:
        parts = torch.stack(in_shards(x, task.size, task.split, x.dim() - 2).chunk(task.size, -2))
        return sum_of_parts(exchange(parts, task.group))

    return d_q, share(d_keys), share(d_values)


def _all_tokens(x: torch.Tensor, task: Task) -> torch.Tensor:
    """Some heads of all tokens, for all heads of some tokens."""
    parts = exchange(torch.stack(x.chunk(task.size, -3)), task.group)  # [ranks, …, heads/ranks, tokens of a rank, features]
    return in_order(parts.movedim(-2, 1).flatten(0, 1), task.size, task.split).movedim(0, -2).contiguous()


def _all_heads(x: torch.Tensor, task: Task) -> torch.Tensor:
    """The reverse."""
    parts = in_shards(x, task.size, task.split, x.dim() - 2).chunk(task.size, -2)
    return torch.cat(list(exchange(torch.stack(parts), task.group)), -3)


def _whole_options(task: Task) -> dict[str, Any]:
    ids = all_ids(task)
    return {**task.values, "causal": task.causal, "window": task.window, "chunk": task.chunk, "packed": task.packed, "query_positions": ids,
            "key_positions": ids}


def all_to_all(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, task: Task) -> Tensors:
    """Every rank gets all tokens of some heads, and gives its result back (Ulysses). Out, and for the backward pass: the logsumexp, q, k, v, out
    of those heads."""
    all_q, all_k, all_v = (_all_tokens(x, task) for x in (q, k, v))
    out, lse = all_q.new_empty((*all_q.shape[:-1], v.shape[-1])), new_logsumexp(all_q)
    plain_attention(all_q, all_k, all_v, local._bound(task.form, None), out=out, logsumexp=lse, **_whole_options(task))
    return _all_heads(out, task), lse, all_q, all_k, all_v, out


def all_to_all_backward(d: torch.Tensor, lse: torch.Tensor, all_q: torch.Tensor, all_k: torch.Tensor, all_v: torch.Tensor, all_out: torch.Tensor,
                        task: Task) -> Tensors:
    made = attention_backward(_all_tokens(d, task), all_q, all_k, all_v, local._bound(task.form, None), out=all_out, logsumexp=lse,
                              **_whole_options(task))
    return tuple(_all_heads(x, task) for x in (made.q, made.k, made.v))

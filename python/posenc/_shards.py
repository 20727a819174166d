"""Which tokens each rank has, and which calls of attention its queries need: plain numbers, for posenc.torch.distributed."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Optional

SPLITS = ("zigzag", "contiguous")


class Piece(NamedTuple):
    """Tokens that are neighbours in a shard and in their sequence."""

    slot: int  # of the first, in the shard
    token: int  # in the whole input
    size: int
    sequence: int  # pieces of different sequences, or chunks, do not attend to each other
    position: int  # of the first, in its sequence


Layout = tuple[tuple[Piece, ...], ...]  # the pieces of every rank, in the order of its shard


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


def runs_of(tokens: int, size: int, split: str) -> list[list[tuple[int, int]]]:
    """The ranges of tokens of each rank. Zig-zag: with a causal mask, all ranks have the same work."""
    if split == "contiguous":
        return [[(rank * tokens // size, (rank + 1) * tokens // size)] for rank in range(size)]
    part = tokens // (2 * size)
    return [[(rank * part, (rank + 1) * part), (tokens - (rank + 1) * part, tokens - rank * part)] for rank in range(size)]


def check_tokens(tokens: int, size: int, split: str, verb: str) -> None:
    if split not in SPLITS:
        raise ValueError(f"{verb}: split must be one of {', '.join(SPLITS)}, got {split!r}")
    parts = 2 * size if split == "zigzag" else size
    if tokens <= 0 or tokens % parts:
        raise ValueError(f"{verb}: expected a positive number of tokens that {parts} divides "
                         f"({split}, {size} ranks), got {tokens}; pad the sequence")


@lru_cache(maxsize=64)
def layout_of(tokens: int, size: int, split: str, packed: Optional[tuple[int, ...]], chunk: int) -> Layout:
    """The pieces of every rank."""
    starts = [0]
    for length in packed or (tokens,):
        starts.append(starts[-1] + length)
    cuts = {token: (sequence, 0) for sequence, token in enumerate(starts[:-1])}
    for start, end in zip(starts, starts[1:]) if chunk else ():
        for token in range(start + chunk, end, chunk):
            cuts[token] = (cuts[start][0], token - start)
    begins = sorted(cuts)
    layout = []
    for runs in runs_of(tokens, size, split):
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


def _within(query: Piece, key: Piece, how: tuple[bool, int]) -> Call:
    """The call of two pieces; of a window's edge only the queries that see a key, and the keys that some query sees."""
    causal, window = how
    apart = abs(query.position - key.position)
    first, last, begin, end = 0, query.size, 0, key.size
    if window and query != key:
        if key.position < query.position:
            last, begin = min(last, window - apart + key.size - 1), max(0, apart - window + 1)
        else:
            first, end = max(0, apart - window + 1), min(end, window - apart + query.size - 1)
    return Call(query.slot + first, last - first, key.slot + begin, end - begin, causal, window, query.position + first, key.position + begin)


def _plain(one: Call, last: Call) -> bool:
    """Whether neither has a mask."""
    return not (one.causal or one.window or last.causal or last.window)


@lru_cache(maxsize=512)
def calls_of(queries: tuple[Piece, ...], keys: tuple[Piece, ...], causal: bool, window: int) -> tuple[Call, ...]:
    """The calls of one shard's queries over another's keys. Neighbours that need no mask become one call."""
    calls: list[Call] = []
    for query in queries:
        for key in keys:
            how = _visible(query, key, causal, window)
            if how is None:
                continue
            one = _within(query, key, how)
            last = calls[-1] if calls else None
            if last and _plain(one, last) and (last.query, last.key + last.keys) == (one.query, one.key):
                follows = last.key_position is not None and last.key_position + last.keys == one.key_position
                calls[-1] = last._replace(keys=last.keys + one.keys, key_position=last.key_position if follows else None)
            else:
                calls.append(one)
    joined: list[Call] = []
    for one in calls:
        for i, last in enumerate(joined):
            if _plain(one, last) and (last.key, last.keys, last.query + last.queries) == (one.key, one.keys, one.query):
                follows = last.query_position is not None and last.query_position + last.queries == one.query_position
                joined[i] = last._replace(queries=last.queries + one.queries, query_position=last.query_position if follows else None)
                break
        else:
            joined.append(one)
    return tuple(joined)


@lru_cache(maxsize=64)
def steps_of(layout: Layout, causal: bool, window: int) -> tuple[int, ...]:
    """The steps of the ring in which some rank has work. At step s, rank r has the keys of rank r − s."""
    size = len(layout)
    return tuple(step for step in range(size) if any(calls_of(layout[rank], layout[rank - step], causal, window) for rank in range(size)))


def packed_lengths(packed: object, tokens: int) -> Optional[tuple[int, ...]]:
    if packed is None:
        return None
    lengths = tuple(int(one) for one in packed)  # type: ignore[attr-defined]
    if any(one <= 0 for one in lengths) or sum(lengths) != tokens:
        raise ValueError(f"packed: expected positive lengths that add up to the {tokens} tokens of all ranks, got a sum of {sum(lengths)}")
    return lengths

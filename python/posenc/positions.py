"""Where tokens are: packed sequences, padded batches, grids. The results hold int64."""

from __future__ import annotations

from array import array
from math import prod

from . import _posenc
from .arrays import ids_of, shape_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Sequence


def _integers(shape: Sequence[int]) -> Any:
    """int64 of this shape: numpy's if numpy is installed, else a memoryview."""
    try:
        import numpy
    except ImportError:
        flat = memoryview(array("q", bytes(8 * prod(shape))))
        return flat.cast("B").cast("q", list(shape)) if prod(shape) else flat
    return numpy.empty(tuple(shape), dtype=numpy.int64)


def packed_positions(lengths: Sequence[int]) -> Any:
    """Packed sequences: lengths (3, 2) → 0 1 2 0 1. Raises: Error for a negative length."""
    values = ids_of(lengths)
    out = _integers((max(0, sum(values)),))
    _posenc.packed_positions(out, values)
    return out


def grid_positions(extents: Sequence[int]) -> Any:
    """A grid in row-major order: extents (2, 3) → [[0 0 0 1 1 1], [0 1 2 0 1 2]]. Raises: Error for a negative extent."""
    values = ids_of(extents)
    out = _integers((len(values), max(0, prod(values))))
    _posenc.grid_positions(out, values)
    return out


def positions_from_mask(mask: Any, *, rule: Literal["cumulative", "roberta"] = "cumulative", padding: int = 1) -> Any:
    """The positions of a padded batch, [batch, sequence], from its mask (0: padding).

    cumulative: cumsum(mask) − 1, padding gets `padding`, as decoders with left padding do.
    roberta: cumsum(mask) · mask + padding: the first token is padding + 1.
    """
    out = _integers(shape_of(mask))
    _posenc.positions_from_mask(out, mask, rule, padding)
    return out


__all__ = ["grid_positions", "packed_positions", "positions_from_mask"]

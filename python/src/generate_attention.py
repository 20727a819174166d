"""Writes posenc/keywords.py: the functions of attention, with a keyword for each option in the library's own list. A build
runs it; nobody edits the result.

generate_attention.py posenc/keywords.py
"""

import importlib.util
import sys
import textwrap
from pathlib import Path

HEAD = '''"""Attention with its options. Made by generate_attention.py from the library's own list."""

from __future__ import annotations

from .attention import Gradients, backward_of, bytes_of, call_attention, pages_of, pattern_of, positions_of, temperature_of
from .plans import AttentionPlan, make_plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .arrays import Array, CacheOrder, DType, Ids, Order
    from .forms import Form
'''

ATTENTION = '''
def attention(
        q: Array, k: Array, v: Array, form: Form | None = None, *,
        {keywords},
        order: Order = "bhsd", cache_order: CacheOrder | None = None, out: Any = None, dtype: DType | None = None) -> Any:
    """softmax(scale · q·kᵀ + bias) · v over the keys that each query may attend to; returns `out`.

    q: [batch, heads, queries, features], k, v: [batch, key heads, keys, features], or without the first axes; `order`
      names their axes as they are in memory. heads is a multiple of key heads.
    form: a rotation (q and k are rotated as they are loaded) or a bias; None: no position.
{help}
    cache_order: the axes of pools of pages: "bshd" for [pages, page size, key heads, features] as vLLM's; None: heads in the
      same place as in q. With `packed` (the number of queries of each sequence), order="thd" for [tokens, heads, features].
    dtype: "bf16" if numpy arrays of uint16 hold bfloat16; q may be f32 with a cache of f16 or bf16.
    Error: f32, at most 2e-6 · Σ weight · |v| while |scale · q·k| and the bias stay below 16.
    Raises: Error if a shape, type, length, position or form is invalid; out is then unmodified.
    """
    return call_attention(out, q, k, v, form, {values}, order, cache_order, dtype)
'''

BACKWARD = '''
def attention_backward(
        d_out: Array, q: Array, k: Array, v: Array, form: Form | None = None, *, out: Array | None = None,
        logsumexp: Array | None = None, wanted: tuple[str, ...] = ("q", "k", "v"), d_parameters: Any = None, d_sinks: Any = None,
        d_query_vectors: Any = None, d_key_vectors: Any = None, d_value_vectors: Any = None, d_query_offsets: Any = None,
        {keywords},
        order: Order = "bhsd") -> Gradients:
    """The gradients of attention, given that of its output; options as passed to attention.

    out, logsumexp: the outputs of attention; None: recomputed.
    wanted: which of "q", "k", "v", "position_queries" and "log_gates" are computed. d_parameters: added to, if the form is
      a learned bias, in the shape of bias_backward. d_sinks: added to, [heads]. d_query_vectors, d_key_vectors, d_value_vectors,
      d_query_offsets: added to, if the form has vectors by distance, in the shape of their tables.
    Raises: as attention, and for a gradient that the position does not have.
    """
    return backward_of(d_out, q, k, v, out, logsumexp, form, {values}, order, wanted, (
        d_parameters, d_sinks, d_query_vectors, d_key_vectors, d_value_vectors, d_query_offsets))
'''

PLAN = '''
def plan_attention(
        q: Array, k: Array, v: Array, form: Form | None = None, *, threads: int = 0,
        {keywords},
        order: Order = "bhsd", cache_order: CacheOrder | None = None, dtype: DType | None = None) -> AttentionPlan:
    """Attention made ready for many calls with arrays of these shapes and types, on the host; the options are those of attention.

    q, k, v: their numbers are not read.
    threads: of each call; 0: as many as calls have now.
    The plan keeps the arrays of the options and reads them at each call: a decoder changes key_lengths, block_table and
    ids in place. They are contiguous int64, block_table int32; lists are rejected, because the plan
    could not see later changes.
    With f32, f16 and bf16, and without weights, a call allocates nothing but `out`, if that is not given.
    With packed queries over pages, a call may have fewer tokens than the plan.
    Raises: as attention.
    """
    return make_plan(q, k, v, form, {given}, {values}, order, cache_order, threads, dtype)


__all__ = ["attention", "attention_backward", "plan_attention"]
'''

# For each kind of posenc_field_kind: the type and default of a keyword, and the function that prepares its value.
KINDS = (("bool = False", ""), ("int = 0", ""), ("float | None = None", ""), ("float | None = None", ""), None,
         ("Ids | int | None = None", "positions_of"), ("tuple[Any, ...] | None = None", "temperature_of"),
         ("Ids | None = None", "bytes_of"), ("Ids | None = None", "pages_of"), ("Array | None = None", "pattern_of"),
         ("Array | None = None", ""), ("Any = None", ""))
FORM, TEMPERATURE, OUTPUT = 4, 6, 11
RULES = ('; (scale, length, shift): 1 + scale · ln(1 + ⌊(p + shift) / length⌋); with "log" as a fourth, '
         '1 + scale · ln(max(1, (p + shift) / length)), with "tokens" scale · ln(p + shift)')


def function(template, listed, of_plan=False):
    keywords, given, values, texts = [], [], [], []
    for name, kind, text in listed:
        declared, prepare = KINDS[kind]
        keywords.append(f"{name}: {declared.replace('Ids', 'Array') if of_plan else declared}")
        values.append(f'"{name}": {prepare}({name})' if prepare else f'"{name}": {name}')
        if prepare and kind != TEMPERATURE:
            given.append(f'"{name}": {name}')
        line = f"{name}: {text}{RULES if kind == TEMPERATURE else ''}."
        texts.append(textwrap.fill(line, 120, initial_indent=" " * 4, subsequent_indent=" " * 6))
    return template.format(keywords=",\n        ".join(keywords), help="\n".join(texts),
                           given="{" + ",\n        ".join(given) + "}", values="{" + ",\n        ".join(values) + "}")


def module(extension):
    listed = [option for option in extension.options() if option[1] != FORM]
    inputs = [option for option in listed if option[1] != OUTPUT]
    return "\n".join((HEAD, function(ATTENTION, listed), function(BACKWARD, inputs), function(PLAN, listed, of_plan=True)))


def extension_in(package):
    """The extension alone: the package cannot be imported before this module is written."""
    path = next(package.glob("_posenc*.so"))
    spec = importlib.util.spec_from_file_location("_posenc", path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(module(extension_in(target.parent)), encoding="utf-8")

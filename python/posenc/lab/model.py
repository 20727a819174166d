"""A pre-norm Transformer with GELU and tied embeddings, as functions of its parameters.

Everything but attention works on rows of tokens, [batch · tokens, width], and takes its parameters as arguments: one compiled
function then serves all layers, models, schemes and lengths of the same number of tokens, and attention stays outside of it.
"""

from __future__ import annotations

import math
from typing import Any, Callable

import torch
import torch.nn.functional as F

import posenc

from .attend import Attention
from .jobs import Job, Position, Shape

VOCABULARY = 256


def _normal(shape: tuple[int, ...], deviation: float, seed: int, stream: int) -> Any:
    generator = torch.Generator().manual_seed(seed * 1000 + stream)
    return torch.randn(*shape, generator=generator) * deviation


def initial(job: Job, rows: int) -> Any:
    """Parameters from a seed, on the host: those that all schemes have are the same for all. rows: of a learned table."""
    shape, width = job.shape, job.shape.width
    made = {"embed": _normal((VOCABULARY, width), 0.02, job.seed, 0)}
    for layer in range(shape.layers):
        at = 10 * (layer + 1)
        for name, count in (("norm1", width), ("qkv", 3 * width), ("out", width), ("norm2", width), ("up", 4 * width), ("down", width)):
            made[f"{layer}.{name}.bias"] = torch.zeros(count)
        made[f"{layer}.norm1"], made[f"{layer}.norm2"] = torch.ones(width), torch.ones(width)
        made[f"{layer}.qkv"] = _normal((3 * width, width), 0.02, job.seed, at)
        made[f"{layer}.out"] = _normal((width, width), 0.02 / math.sqrt(2 * shape.layers), job.seed, at + 1)
        made[f"{layer}.up"] = _normal((4 * width, width), 0.02, job.seed, at + 2)
        made[f"{layer}.down"] = _normal((width, 4 * width), 0.02 / math.sqrt(2 * shape.layers), job.seed, at + 3)
        if job.position.kind == "forget":
            made[f"{layer}.gate"], made[f"{layer}.gate.bias"] = _normal((shape.heads, width), 0.02, job.seed, at + 4), torch.full((shape.heads,), 3.0)
    made["norm"], made["norm.bias"] = torch.ones(width), torch.zeros(width)
    if job.position.kind == "learned":
        made["learned"] = _normal((rows, width), 0.02, job.seed, 1)
    if job.position.kind == "t5":
        made["t5"] = torch.zeros(32, shape.heads)
    if job.position.kind == "kerple":
        generator = torch.Generator().manual_seed(job.seed * 1000 + 2)
        made["kerple"] = torch.rand(2, shape.heads, generator=generator) + 0.5
    return made


def before(x: Any, norm: Any, norm_bias: Any, weight: Any, bias: Any, kind: Any) -> Any:
    """Queries, keys and values of rows; `kind` is the type of the products."""
    h = F.layer_norm(x, x.shape[-1:], norm, norm_bias)
    q, k, v = F.linear(h.to(kind), weight.to(kind), bias.to(kind)).chunk(3, -1)
    return q.contiguous(), k.contiguous(), v.contiguous()


def after(x: Any, mixed: Any, out: Any, out_bias: Any, norm: Any, norm_bias: Any, up: Any, up_bias: Any, down: Any, down_bias: Any) -> Any:
    """The rest of a layer, after attention."""
    kind = mixed.dtype
    x = x + F.linear(mixed, out.to(kind), out_bias.to(kind)).to(x.dtype)
    h = F.layer_norm(x, x.shape[-1:], norm, norm_bias).to(kind)
    h = F.gelu(F.linear(h, up.to(kind), up_bias.to(kind)), approximate="tanh")
    return x + F.linear(h, down.to(kind), down_bias.to(kind)).to(x.dtype)


def logits_of(x: Any, norm: Any, norm_bias: Any, embed: Any, kind: Any) -> Any:
    return F.linear(F.layer_norm(x, x.shape[-1:], norm, norm_bias).to(kind), embed.to(kind)).float()


def losses(x: Any, norm: Any, norm_bias: Any, embed: Any, kind: Any, targets: Any) -> Any:
    """The loss of each row; 0 where the target is −100."""
    return F.cross_entropy(logits_of(x, norm, norm_bias, embed, kind), targets, reduction="none", ignore_index=-100)


def _allow_many_shapes() -> None:
    """Each function is compiled for a few numbers of rows, with and without gradients; torch gives up after 8 by default."""
    try:
        import torch._dynamo as dynamo
    except ImportError:
        return
    for name in ("recompile_limit", "cache_size_limit"):
        if hasattr(dynamo.config, name):
            setattr(dynamo.config, name, 64)


class Pieces:
    """before, after and losses, compiled for one number of rows where torch can, and plain for any other number."""

    def __init__(self, compiled: bool) -> None:
        self.compiled, self.reason = False, "not asked for"
        self.rows: set[int] = set()
        self._made: dict[str, Callable[..., Any]] = {}
        if compiled and hasattr(torch, "compile"):
            _allow_many_shapes()
            for function in (before, after, losses):
                self._made[function.__name__] = torch.compile(function, dynamic=False)
            self.compiled = True
        elif compiled:
            self.reason = f"torch {torch.__version__} has no compiler"

    def __call__(self, function: Callable[..., Any], x: Any, *rest: Any) -> Any:
        if self.compiled and x.shape[0] in self.rows:
            try:
                return self._made[function.__name__](x, *rest)
            except Exception as error:  # what a compiler may raise is not limited to anything; the plain function gives the same
                self.compiled, self.reason = False, f"{type(error).__name__}: {str(error)[:200]}"
        return function(x, *rest)


def absolute(position: Position, weights: Any, width: int, tokens: int, first: int, ids: Any, device: Any) -> Any:
    """What is added to the embeddings, [tokens, width], or None."""
    where = ids if ids is not None else torch.arange(first, first + tokens)
    if position.kind == "sinusoidal":
        made = posenc.tabulate(posenc.prepare(posenc.Sinusoidal(width=width, base=position.base)), ids=where, dtype="f32", like=torch.empty(0))
        return made.to(device)
    if position.kind == "learned":
        return weights["learned"][where.to(device)] * math.sqrt(width)
    return None


class Model:
    """Parameters on a device, and their use with a position."""

    def __init__(self, weights: Any, shape: Shape, pieces: Pieces, dtype: Any) -> None:
        self.weights, self.shape, self.pieces = weights, shape, pieces
        self.kind, self.device = dtype, weights["embed"].device
        self._added: dict[tuple[str, int, int], Any] = {}

    def hidden(self, tokens: Any, attention: Attention, first: int = 0, ids: Any = None) -> Any:
        """The rows after the last layer, [batch · tokens, width], of tokens [batch, tokens]."""
        weights, shape = self.weights, self.shape
        batch, count = tokens.shape
        x = F.embedding(tokens, weights["embed"]) * (math.sqrt(shape.width) if shape.scaled else 1.0)
        added = self._added_to(attention.position, count, first, ids)
        if added is not None:
            x = x + added
        x = x.reshape(batch * count, shape.width)
        split = (batch, count, shape.heads, shape.head_width)
        for layer in range(shape.layers):
            norm = weights[f"{layer}.norm1"], weights[f"{layer}.norm1.bias"]
            q, k, v = (one.view(split) for one in self.pieces(before, x, *norm, weights[f"{layer}.qkv"], weights[f"{layer}.qkv.bias"], self.kind))
            gates = None
            if attention.position.kind == "forget":
                h = F.layer_norm(x, x.shape[-1:], *norm)
                gates = F.linear(h, weights[f"{layer}.gate"], weights[f"{layer}.gate.bias"]).view(batch, count, shape.heads)
            mixed = attention(layer, q, k, v, first=first, ids=ids, gates=gates).reshape(batch * count, shape.width)
            x = self.pieces(after, x, mixed, *(weights[f"{layer}.{name}{rest}"] for name in ("out", "norm2", "up", "down") for rest in ("", ".bias")))
        return x

    def losses(self, tokens: Any, targets: Any, attention: Attention, first: int = 0, ids: Any = None) -> Any:
        """The loss of each token, [batch · tokens]."""
        x = self.hidden(tokens, attention, first, ids)
        return self.pieces(losses, x, self.weights["norm"], self.weights["norm.bias"], self.weights["embed"], self.kind, targets.reshape(-1))

    def answers(self, tokens: Any, attention: Attention) -> Any:
        """The most likely next token after each, [batch, tokens]."""
        x = self.hidden(tokens, attention)
        return logits_of(x, self.weights["norm"], self.weights["norm.bias"], self.weights["embed"], self.kind).argmax(-1).view(tokens.shape)

    def _added_to(self, position: Position, count: int, first: int, ids: Any) -> Any:
        if position.kind == "learned" or ids is not None:
            return absolute(position, self.weights, self.shape.width, count, first, ids, self.device)
        key = (position.kind, count, first)
        if key not in self._added:
            self._added[key] = absolute(position, self.weights, self.shape.width, count, first, None, self.device)
        return self._added[key]

"""Positional encodings for Transformers: exact, fast, explained.

    rope = posenc.Rope(dims=128, base=5e5, scaling=posenc.Llama3Scaling(factor=8))
    posenc.rotate(q, posenc.prepare(rope), first=4096)      # numpy, torch, cupy: any array, in place

A scheme becomes a form (prepare), and verbs apply forms to arrays: tabulate, add, rotate, bias, attention. A decoder keeps
keys and values in pages (append, rotate_into, copy_into, attention with block_table); layer returns everything that a
model's attention needs. read_model shows how a model encodes position, check and diagnose compare an implementation with it,
and watch a running model. posenc.torch has differentiable functions and modules, posenc.transformers runs inside Hugging Face's
models, and posenc.jax returns jax arrays.
"""

from __future__ import annotations

from . import _posenc
from .apply import add, add_backward, bias, bias_backward, rerotate, rotate, rotate_backward, shift, tabulate
from .attention import Gradients, merge, new_logsumexp
from .arrays import q8_0
from .cache import append, copy_into, copy_slots, rotate_into, slots_of
from .errors import Error
from .forms import Form, prepare, prepare_table
from .keywords import attention, attention_backward, plan_attention
from .plans import AttentionPlan
from .positions import grid_positions, packed_positions, positions_from_mask
from .scheme import Scaling, Scheme, scheme
from .settings import backend, backends, force_backend, set_threads, synchronize, threads, use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .models import (CheckResult, Comparison, Diagnosis, Layer, Model, PreparedLayer, check, compare_engines, diagnose,
                         inspect, layer, read_model)
    from .plots import Plot, plot
    from .schemes import *
    from .watching import WatchReport, watch

__version__: str = _posenc.version()

# Everything beyond the core is loaded on first use, so that importing posenc takes milliseconds.
_LATER = {
    "models": ("CheckResult", "Comparison", "Diagnosis", "Layer", "Model", "PreparedLayer", "check", "compare_engines",
               "diagnose", "inspect", "layer", "read_model"),
    "plots": ("Plot", "plot"),
    "watching": ("WatchReport", "watch"),
}


if not TYPE_CHECKING:  # a type checker would believe that every name exists

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name in ("jax", "torch", "transformers"):
            return import_module(f"posenc.{name}")
        if name == "__all__":  # follows the library's own list
            return [*_NAMES, *import_module("posenc.schemes").__all__]
        if not name.startswith("_"):
            home = next((module for module, names in _LATER.items() if name in names), "schemes")
            module = import_module(f"posenc.{home}")
            if hasattr(module, name) and name in module.__all__:
                value = getattr(module, name)
                globals()[name] = value
                return value
        raise AttributeError(f"module 'posenc' has no attribute {name!r}")


def __dir__() -> list[str]:
    from .schemes import __all__ as schemes

    return sorted([*_NAMES, *schemes])


__all__ = ["AttentionPlan", "Error", "Form", "Gradients", "Scaling", "Scheme", "add", "add_backward", "append",
           "attention", "attention_backward", "backend", "backends", "bias", "bias_backward", "copy_into", "copy_slots", "force_backend",
           "grid_positions", "merge", "new_logsumexp", "packed_positions", "plan_attention", "positions_from_mask", "prepare",
           "prepare_table", "q8_0", "rerotate", "rotate", "rotate_backward", "rotate_into", "scheme", "set_threads", "shift",
           "slots_of", "synchronize", "tabulate", "threads", "use",
           # and those of _LATER, which type checkers see only if they are written out
           "CheckResult", "Comparison", "Diagnosis", "Layer", "Model", "Plot", "PreparedLayer", "WatchReport", "check",
           "compare_engines", "diagnose", "inspect", "layer", "plot", "read_model", "watch"]
_NAMES = list(__all__)
if not TYPE_CHECKING:
    del __all__  # __getattr__ provides it, including the schemes and scalings of the library's own list

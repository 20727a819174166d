"""What a position costs in training: tokens per second of one model with each scheme, on posenc's kernels and on torch's attention."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from .jobs import Job, Position

KINDS = ("none", "rope", "alibi", "t5", "sinusoidal")


def measure(text: bytes, device: str, out: Path, pattern: Job, rounds: int = 3) -> list[dict[str, Any]]:
    """Times each scheme in turn, `rounds` times, and keeps the median: a machine that slows down slows all of them."""
    from .train import Machine, begin, train

    machine = Machine(text, device)
    cases = [(kind, kernels) for kind in KINDS for kernels in (True, False) if kernels or kind in ("none", "rope")]
    found: dict[tuple[str, bool], list[float]] = {}
    ways: dict[tuple[str, bool], str] = {}
    for turn in range(rounds + 1):  # the first one compiles
        for kind, kernels in cases:
            machine.kernels = kernels
            job = replace(pattern, position=Position(kind=kind), variants=())
            made = train(job, machine, begin(job, machine, None), lambda line: None)
            if turn:
                found.setdefault((kind, kernels), []).append(made["tokens_per_second"])
            ways[kind, kernels] = "; ".join(made["attention"])
    median = {case: sorted(values)[len(values) // 2] for case, values in found.items()}
    rows = [{"position": kind, "attention": ways[kind, kernels], "tokens_per_second": median[kind, kernels], "all": found[kind, kernels],
             "over_none": round(median[kind, kernels] / median["none", kernels], 4), "compiled": machine.pieces.compiled} for kind, kernels in cases]
    out.mkdir(parents=True, exist_ok=True)
    (out / "speed.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return rows

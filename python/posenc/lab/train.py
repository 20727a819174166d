"""Trains and evaluates one job."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable

import torch

from . import checkpoint
from .attend import Attention
from .data import ASKED, DIGITS_OF_ASKED, HIDDEN, Copies, Text, masked
from .jobs import Job, Position, Variant
from .model import Model, Pieces, initial

PARTS = 16  # of a window, for the loss by position
DECAY = 0.1
MAP_CELLS, MAP_WINDOWS = 32, 8  # of a map of attention: parts of a window, and windows
Beat = Callable[[str], None]


class Machine:
    """What jobs of one process share: the device, the text, the compiled functions."""

    def __init__(self, text: bytes, device: str, compiled: bool = True, kernels: bool = True) -> None:
        self.device, self.kernels = torch.device(device), kernels
        self.is_cuda = self.device.type == "cuda"
        self.dtype = torch.bfloat16 if self.is_cuda else torch.float32
        self.text = Text(text, self.device)
        self.pieces = Pieces(compiled and self.is_cuda)
        if self.is_cuda:
            torch.backends.cuda.matmul.allow_tf32 = True

    def wait(self) -> None:
        if self.is_cuda:
            torch.cuda.synchronize()


def rate_at(job: Job, step: int) -> float:
    """Warm-up, then half a cosine down to a tenth."""
    if step < job.warmup:
        return job.learning_rate * (step + 1) / job.warmup
    done = (step - job.warmup) / max(1, job.steps - job.warmup)
    return job.learning_rate * (0.1 + 0.45 * (1 + math.cos(math.pi * done)))


def optimiser_of(weights: Any, is_cuda: bool) -> Any:
    """AdamW; matrices decay, vectors and what belongs to positions do not."""
    names = [name for name, value in weights.items() if value.dim() == 2 and name not in ("t5", "kerple", "learned")]
    groups = [{"params": [weights[name] for name in names], "weight_decay": DECAY},
              {"params": [value for name, value in weights.items() if name not in names], "weight_decay": 0.0}]
    options: dict[str, Any] = {"lr": 1e-3, "betas": (0.9, 0.99), "eps": 1e-8}
    if is_cuda:
        try:
            return torch.optim.AdamW(groups, fused=True, **options)
        except (TypeError, RuntimeError):
            pass
    return torch.optim.AdamW(groups, **options)


def attention_of(job: Job, machine: Machine, weights: Any, position: Position | None = None) -> Attention:
    made = Attention(position or job.position, job.shape, weights, causal=job.task != "masked")
    made.kernels = machine.kernels
    return made


def begin(job: Job, machine: Machine, folder: Path | None) -> Any:
    """The parameters that a job begins with: its parent's, or random ones."""
    if job.parent:
        assert folder is not None
        weights = checkpoint.read(folder / f"{job.parent}-{job.seed}.safetensors")
    else:
        weights = initial(job, job.length)
    return {name: value.to(machine.device).requires_grad_() for name, value in weights.items()}


def train_step(job: Job, step: int, model: Model, attention: Attention, optimiser: Any, tokens: Any, targets: Any, first: int = 0, ids: Any = None) -> Any:
    """One step of AdamW with gradients clipped to norm 1, as in the C++ lab; returns the loss before it."""
    loss = model.losses(tokens, targets, attention, first, ids).sum() / (targets != -100).sum()
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(list(model.weights.values()), 1.0)
    for group in optimiser.param_groups:
        group["lr"] = rate_at(job, step)
    optimiser.step()
    return loss


def train(job: Job, machine: Machine, weights: Any, beat: Beat) -> dict[str, Any]:
    """Trains the weights in place. Returns the loss by step, seconds, tokens per second and what computed attention."""
    machine.pieces.rows.add(job.batch * job.length)
    model, attention = Model(weights, job.shape, machine.pieces, machine.dtype), attention_of(job, machine, weights)
    optimiser = optimiser_of(weights, machine.is_cuda)
    windows = machine.text.training(job) if job.task in ("text", "masked") else None
    copies = Copies(job, machine.device) if windows is None else None
    curve: list[Any] = []
    machine.wait()
    start = after_first = time.perf_counter()
    for step in range(job.steps):
        first, ids = 0, None
        if windows is not None:
            tokens, targets = windows(step)
            first = windows.first[step] if job.offsets else 0
        else:
            assert copies is not None
            (tokens, targets), ids = copies.batch(step), copies.ids(step)
        loss = train_step(job, step, model, attention, optimiser, tokens, targets, first, ids)
        if step % 25 == 0 or step == job.steps - 1:
            curve.append((step, loss.detach()))
        if step == 0:
            machine.wait()
            after_first = time.perf_counter()  # the first step compiles
        if step % 100 == 99:
            beat(f"step {step + 1} of {job.steps}, loss {loss.item():.3f}")
    machine.wait()
    seconds = time.perf_counter() - start
    steady = (time.perf_counter() - after_first) / max(1, job.steps - 1)
    made = [[step, round(float(value), 5)] for step, value in curve]
    return {"curve": made, "loss": made[-1][1], "seconds": round(seconds, 3), "first_step_seconds": round(after_first - start, 3),
            "tokens_per_second": round(job.batch * job.length / max(steady, 1e-9)), "attention": sorted(attention.used)}


def position_of(job: Job, variant: Variant, length: int) -> Position:
    """The position of an evaluation."""
    change = dict(variant.change)
    if change.get("factor") == "length":
        change["factor"] = length / job.position.trained
    return replace(job.position, **change)


def evaluate_text(job: Job, machine: Machine, weights: Any, variant: Variant, length: int) -> dict[str, Any]:
    """The loss of the validation text in windows of `length`: all of it, its last quarter, by position; and pass keys."""
    model = Model(weights, job.shape, machine.pieces, machine.dtype)
    attention = attention_of(job, machine, weights, position_of(job, variant, length))
    windows = machine.text.windows(length, job.evaluated)
    rows = max(1, job.batch * job.length // length)
    total, generator = torch.zeros(PARTS, dtype=torch.float64, device=machine.device), torch.Generator(device=machine.device).manual_seed(9)
    count = torch.zeros_like(total)
    for start in range(0, len(windows), rows):
        part = windows[start:start + rows]
        tokens, targets = masked(part[:, :-1], generator) if job.task == "masked" else (part[:, :-1], part[:, 1:])
        each = model.losses(tokens, targets, attention, variant.first).view(len(part), PARTS, -1)
        total += each.double().sum((0, 2))
        count += (targets.reshape(len(part), PARTS, -1) != -100).double().sum((0, 2))
    by_part = (total / count).tolist()
    score = {"variant": variant.name, "length": length, "first": variant.first, "nll": float(total.sum() / count.sum()),
             "last_quarter": float(total[-PARTS // 4:].sum() / count[-PARTS // 4:].sum()), "by_position": [round(one, 5) for one in by_part],
             "bytes": int(count.sum())}
    if variant.passkey and length > len(HIDDEN) + len(ASKED):
        score.update(evaluate_passkeys(job, machine, model, attention, length, rows))
    score["attention"] = sorted(attention.used)
    return score


def evaluate_passkeys(job: Job, machine: Machine, model: Model, attention: Attention, length: int, rows: int) -> dict[str, Any]:
    """The share of pass keys of which all digits are the most likely ones, and the share of digits."""
    windows, keys = machine.text.keyed(length, job.passkeys)
    at = length - len(ASKED) + DIGITS_OF_ASKED - 1  # the token before the first digit
    right = []
    for start in range(0, len(windows), rows):
        made = model.answers(windows[start:start + rows], attention)[:, at:at + 5] - ord("0")
        right.append(made == keys[start:start + rows])
    digits = torch.cat(right)
    return {"passkey": float(digits.all(1).float().mean()), "passkey_digits": float(digits.float().mean()), "passkeys": len(digits)}


def evaluate_copies(job: Job, machine: Machine, weights: Any, size: int, count: int = 256) -> dict[str, Any]:
    """The share of strings of which every symbol and the end are the most likely ones."""
    model, attention = Model(weights, job.shape, machine.pieces, machine.dtype), attention_of(job, machine, weights)
    tokens, targets = Copies(job, machine.device).questions(size, count if job.steps > 50 else 8)
    made = model.answers(tokens, attention)
    right = ((made == targets) | (targets == -100)).all(1)
    return {"variant": "none", "length": size, "first": 0, "exact": float(right.float().mean()), "samples": len(right), "attention": sorted(attention.used)}


def attention_maps(job: Job, machine: Machine, weights: Any, length: int, cells: int = MAP_CELLS) -> list[list[int]]:
    """How much each part of a window attends to each other one, in thousandths, of each layer: its lower triangle, row by row.

    The mean over heads, over the queries of a part and over 8 windows of validation text; the keys of a part are summed.
    """
    length -= length % cells
    maps: list[Any] = []

    def keep(found: Any) -> None:
        maps.append(found.view(*found.shape[:2], cells, length // cells, cells, length // cells).sum(5).mean((0, 1, 3)))

    attention = Attention(job.position, job.shape, weights, causal=True, seen=keep)
    windows = machine.text.windows(length, MAP_WINDOWS * length)
    Model(weights, job.shape, machine.pieces, machine.dtype).hidden(windows[:, :-1], attention)
    rows, columns = torch.tril_indices(cells, cells).tolist()
    return [[round(1000 * value) for value in found.cpu()[rows, columns].tolist()] for found in maps]


def run_job(job: Job, machine: Machine, folder: Path | None, beat: Beat, parent: Job | None = None) -> dict[str, Any]:
    """Trains and evaluates. If the parent's checkpoint is not there, the parent is trained again first."""
    began = time.perf_counter()
    if job.parent and parent is not None and folder is not None and not (folder / f"{parent.name}.safetensors").is_file():
        beat("trains its parent again, which has no checkpoint here")
        before = begin(parent, machine, folder)
        train(parent, machine, before, beat)
        checkpoint.write(folder / f"{parent.name}.safetensors", before, parent)
    weights = begin(job, machine, folder)
    result = train(job, machine, weights, beat)
    if job.keep and folder is not None:
        checkpoint.write(folder / f"{job.name}.safetensors", weights, job)
    beat("evaluates")
    scores = []
    with torch.no_grad():
        for variant in job.variants:
            scores += [evaluate_text(job, machine, weights, variant, length) for length in variant.lengths]
        scores += [evaluate_copies(job, machine, weights, size) for size in job.sizes]
        maps = {length: attention_maps(job, machine, weights, length) for length in job.maps}
    pieces = machine.pieces
    return {"name": job.name, "run": job.run, "seed": job.seed, "job": job.to_json(), "parameters": sum(value.numel() for value in weights.values()),
            **result, "scores": scores, **({"maps": maps} if maps else {}), "compiled": pieces.compiled, "compile_note": "" if pieces.compiled else pieces.reason,
            "seconds_in_all": round(time.perf_counter() - began, 3), "device": torch.cuda.get_device_name() if machine.is_cuda else "cpu",
            "torch": str(torch.__version__)}

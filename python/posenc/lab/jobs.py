"""What is trained: jobs as plain data, and the presets."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Position:
    """How a model knows order. `arithmetic` says how angles are computed; the others are posenc's own names."""

    kind: str = "rope"  # none, rope, alibi, t5, sinusoidal, learned, kerple, forget
    base: float = 1e4
    proportion: float = 1.0  # p-RoPE: the fraction of pairs, the fastest ones, that rotate
    scaling: str = ""  # "", linear, ntk, yarn
    factor: float = 1.0
    trained: int = 512  # for yarn: the length that it extends; for temperature: the length from which on it acts
    arithmetic: str = "exact"  # exact, f32 (transformers' angles), f32-bf16 (those, in tables of bf16), bf16 (angles in bf16)
    nope_every: int = 0  # n: every n-th layer has no position
    window: int = 0  # of the layers that have a position, if some have none
    gain: float = 1.0  # T5's table is this times what is learned: Adam's steps are as large for a number of any size
    temperature: bool = False  # scores × max(1, ln n / ln trained): n tokens seen so far


@dataclass(frozen=True)
class Shape:
    layers: int = 6
    heads: int = 6
    width: int = 384
    scaled: bool = True  # embeddings × √width, as in Vaswani et al. 2017, so that sinusoids are not larger than they are

    @property
    def head_width(self) -> int:
        return self.width // self.heads


@dataclass(frozen=True)
class Variant:
    """An evaluation: the position as it is then, the lengths, and the first position."""

    name: str = "none"
    lengths: tuple[int, ...] = ()
    change: dict[str, Any] = field(default_factory=dict)  # of Position; factor "length": length / trained
    first: int = 0
    passkey: bool = False


@dataclass(frozen=True)
class Job:
    """One model: everything that its numbers depend on beside the text."""

    run: str  # what the claims call it; all seeds of one thing have one name
    seed: int
    task: str = "text"  # text, masked, copy, repeat
    position: Position = field(default_factory=Position)
    shape: Shape = field(default_factory=Shape)
    length: int = 512
    batch: int = 64
    steps: int = 500
    learning_rate: float = 1e-3
    warmup: int = 50
    offsets: int = 0  # n: each training step begins at a random position below n
    size: int = 20  # copy: the most symbols in training
    random_positions: int = 0  # n: sorted random positions below n in training (Ruoss et al. 2023)
    parent: str = ""  # the run whose parameters it begins with
    keep: bool = False  # its parameters are written to a checkpoint
    variants: tuple[Variant, ...] = ()
    evaluated: int = 1 << 18  # bytes of text for each length
    sizes: tuple[int, ...] = ()  # copy: the sizes that are evaluated
    passkeys: int = 64  # for each length
    maps: tuple[int, ...] = ()  # lengths of windows of which attention is kept, in parts

    @property
    def name(self) -> str:
        return f"{self.run}-{self.seed}"

    @property
    def work(self) -> float:
        """A guess of the time that it takes, in training tokens."""
        tokens = float(self.steps * self.batch * self.length)
        slow = 2.5 if self.position.kind in ("kerple", "forget") else 1.0
        shown = sum(len(one.lengths) * self.evaluated for one in self.variants) / 3
        return slow * (tokens + shown)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def is_of(self, result: dict[str, Any]) -> bool:
        """Whether a result is of this job; what its file does not say yet has the value that it has by default."""
        told = result["job"]
        whole = {**Job(self.run, self.seed).to_json(), **told, "position": {**asdict(Position()), **told.get("position", {})}}
        return bool(json.loads(json.dumps(whole)) == json.loads(json.dumps(self.to_json())))


RECIPE = 2  # counts changes of what models learn that a job does not say: results of another recipe are trained again

LENGTHS = (512, 1024, 2048, 4096, 8192)
SEEDS = (1, 2, 3, 4, 5)


def _seeds(job: Job) -> list[Job]:
    """A job for each seed; the first one of plain text keeps what it attends to, at the trained length and at twice that length."""
    keeps = job.task == "text" and not job.parent and not job.offsets and job.position.kind != "learned"
    return [replace(job, seed=seed, maps=(job.length, 2 * job.length) if keeps and seed == SEEDS[0] else ()) for seed in SEEDS]


def _plain(lengths: tuple[int, ...] = LENGTHS) -> Variant:
    return Variant("none", lengths, passkey=True)


def _extensions() -> tuple[Variant, ...]:
    """RoPE beyond its trained length without fine-tuning: each method with the factor of the length."""
    found = [Variant(name, (1024, 2048, 4096), {"scaling": name, "factor": "length"}, passkey=name != "linear") for name in ("linear", "ntk", "yarn")]
    return (*found, Variant("temperature", (2048,), {"temperature": True}))


def _precisions(offsets: tuple[int, ...], arithmetics: tuple[str, ...]) -> tuple[Variant, ...]:
    """The same model at positions that begin elsewhere, with each arithmetic of the angles."""
    return tuple(Variant(name, (512,), {"arithmetic": name}, first=first) for first in offsets for name in arithmetics)


def _rope() -> Job:
    precisions = _precisions((0, 100_000, 1_000_000, 10_000_000), ("exact", "f32", "f32-bf16", "bf16"))
    return Job("rope", 1, keep=True, variants=(_plain(), *_extensions(), *precisions))


def _tuned() -> list[Job]:
    """200 steps at four times the length, from the parameters of `rope`; DroPE's at the trained length."""
    common = Job("", 1, length=2048, batch=16, steps=200, warmup=20, learning_rate=3e-4, parent="rope", variants=(_plain((512, 2048)),))
    wanted: tuple[tuple[str, dict[str, Any]], ...] = (("tuned-linear", {"scaling": "linear", "factor": 4.0}), ("tuned-yarn", {"scaling": "yarn", "factor": 4.0}), ("tuned-plain", {}),
              ("tuned-base", {"base": 5e5}))
    jobs = [replace(common, run=name, position=replace(Position(), **change)) for name, change in wanted]
    drope = replace(common, run="drope", length=512, batch=64, position=Position(kind="none"),
                    variants=(_plain(), Variant("temperature", (1024, 2048, 8192), {"temperature": True}, passkey=True)))
    longer = replace(drope, run="rope-longer", position=Position(), variants=(_plain((512,)),))  # what the same steps give without dropping
    return [jobs[0], drope, *jobs[1:], longer]


def gpu() -> list[Job]:
    """In the order in which they are trained: first what would surprise, all seeds of a run together."""
    rope = _rope()
    offset = Job("", 1, offsets=1_000_000)
    trained = [replace(offset, run=f"offset-{name}", position=Position(arithmetic=name),
                       variants=_precisions((0, 100_000, 1_000_000), (name,))) for name in ("exact", "f32-bf16", "bf16")]
    text = Job("", 1, variants=(_plain(),))
    temperature = Variant("temperature", (1024, 2048, 8192), {"temperature": True}, passkey=True)
    none = replace(text, run="none", position=Position(kind="none"), variants=(_plain(), temperature))
    swan = replace(text, run="swan", position=Position(nope_every=3, window=128), variants=(_plain(), temperature))
    irope = replace(text, run="interleaved", position=Position(nope_every=3), variants=(_plain(), temperature))
    short = replace(text, run="base-100", position=Position(base=100.0))
    long = replace(text, run="base-500k", position=Position(base=5e5))
    partial = replace(text, run="p-rope", position=Position(proportion=0.75))
    # As embeddings are: at a rate of 1e-3, 500 steps move a number by some 0.3, and T5's biases are several nats.
    gain = math.sqrt(text.shape.width)
    t5 = replace(text, run="t5", position=Position(kind="t5", gain=gain))
    alibi, sinusoidal = (replace(text, run=kind, position=Position(kind=kind)) for kind in ("alibi", "sinusoidal"))
    learned = replace(text, run="learned", position=Position(kind="learned"), variants=(_plain((512,)),))
    copies = [Job(f"repeat-{kind}", 1, task="repeat", position=Position(kind=kind, gain=gain if kind == "t5" else 1.0), length=64, batch=128, steps=1500, sizes=(20, 21, 25, 30, 40))
              for kind in ("none", "rope", "alibi", "t5", "sinusoidal")]
    masked = [Job(f"masked-{kind}", 1, task="masked", position=Position(kind=kind), steps=800, variants=(Variant("none", (512,)),))
              for kind in ("none", "sinusoidal")]
    forget, kerple = (replace(text, run=kind, position=Position(kind=kind)) for kind in ("forget", "kerple"))
    ordered = [rope, *trained[:2], none, swan, *_tuned()[:2], short, partial, alibi, sinusoidal, *_tuned()[2:], t5, irope, learned, *copies, trained[2], *masked,
               forget, long, kerple]
    return [job for one in ordered for job in _seeds(one)]


def smoke() -> list[Job]:
    """Every kind of job once, for some seconds of a CPU: it shows that things work, not what is true."""
    shape = Shape(layers=2, heads=2, width=32)
    found = []
    for seed in (1, 2):
        common = Job("", seed, shape=shape, length=64, batch=4, steps=4, warmup=1, evaluated=1024, passkeys=2)
        plain = (Variant("none", (64, 128), passkey=True),)
        position = Position(trained=64)
        rope = replace(common, run="rope", position=position, keep=True, maps=(64, 128) if seed == 1 else (), variants=(
            *plain, Variant("yarn", (128,), {"scaling": "yarn", "factor": "length"}),
            *(Variant(name, (64,), {"arithmetic": name}, first=100_000) for name in ("exact", "f32", "f32-bf16", "bf16"))))
        found += [rope, replace(common, run="tuned-linear", parent="rope", position=replace(position, scaling="linear", factor=2.0), variants=plain)]
        if seed == 1:
            kinds = ("none", "alibi", "t5", "sinusoidal", "learned", "kerple", "forget")
            found += [replace(common, run=kind, steps=2, position=replace(position, kind=kind), variants=plain[:1] if kind != "learned" else
                              (Variant("none", (64,)),)) for kind in kinds]
            found += [replace(common, run="swan", steps=2, position=replace(position, nope_every=2, window=16), variants=(
                *plain, Variant("temperature", (128,), {"temperature": True}))),
                replace(common, run="offset-f32-bf16", steps=2, offsets=1000, position=replace(position, arithmetic="f32-bf16"), variants=plain),
                replace(common, run="masked-none", task="masked", position=replace(position, kind="none"), variants=(Variant("none", (64,)),)),
                replace(common, run="repeat-t5", task="repeat", size=4, length=16, sizes=(4, 6), position=replace(position, kind="t5")),
                replace(common, run="copy-sinusoidal", task="copy", size=4, length=16, sizes=(4,), random_positions=32,
                        position=replace(position, kind="sinusoidal"))]
    return found


PRESETS = {"gpu": gpu, "smoke": smoke}

"""Judges claims by results: paired by seed, with intervals that say their n. Needs no torch."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LEAST_EFFECT = 0.03  # a paper's effect below it is "no change", of which there is no share
FEWEST = 5  # seeds that an interval needs
CHANCE = 0.025  # that an interval of 95% lies on the wrong side of a threshold, on that side
# The quantile 0.975 of Student's t, by degrees of freedom.
T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)
REFERENCE = re.compile(r"(?P<run>[\w.-]+)/(?P<variant>[\w-]+)@(?P<length>\d+)(?:\+(?P<first>\d+))?:(?P<field>\w+)")




def claims_file() -> Path:
    """Beside this module in an installed package, in content/lab in the source tree."""
    here = Path(__file__).resolve()
    beside = here.with_name("claims.json")
    return beside if beside.is_file() else here.parents[3] / "content" / "lab" / "claims.json"


def read_claims(path: Path | None = None) -> tuple[list[dict[str, Any]], str]:
    """The claims, and the hash of their file."""
    data = (path or claims_file()).read_bytes()
    return json.loads(data)["claims"], hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Estimate:
    """A mean and an interval: of Student's t with 5 values or more, below that the range of the values."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def kind(self) -> str:
        return "95% interval" if self.n >= FEWEST else f"range of {self.n} seeds" if self.n > 1 else "one seed"


def estimate(values: list[float]) -> Estimate:
    n, mean = len(values), sum(values) / len(values)
    if n < FEWEST:
        return Estimate(mean, min(values), max(values), n)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    half = (T_975[n - 2] if n - 2 < len(T_975) else 1.96 + 2.5 / (n - 1)) * deviation / math.sqrt(n)
    return Estimate(mean, mean - half, mean + half, n)


@dataclass
class Verdict:
    claim: dict[str, Any]
    answer: str = "not testable here"  # reproduced, refuted, undecided, not testable here
    estimate: Estimate | None = None
    values: dict[int, float] = field(default_factory=dict)  # by seed
    reason: str = ""

    @property
    def share(self) -> float | None:
        """The effect here over the paper's, both as logarithms if they are ratios; None if the paper has none, or one near 0."""
        paper = self.claim.get("paper_effect")
        if self.estimate is None or not paper:
            return None
        here, there = self.estimate.mean, float(paper)
        if self.claim.get("exp"):
            here, there = math.log(here), math.log(there)
        return here / there if abs(there) >= LEAST_EFFECT else None


def value_at(results: Any, reference: str, seed: int) -> float | None:
    """The number that a reference names, RUN/VARIANT@LENGTH+FIRST:FIELD, for a seed; None: not measured."""
    match = REFERENCE.fullmatch(reference)
    if match is None:
        raise ValueError(f"not a reference: {reference}")
    result = results.get(f"{match['run']}-{seed}")
    for score in result["scores"] if result else ():
        if (score["variant"], score["length"], score["first"]) == (match["variant"], int(match["length"]), int(match["first"] or 0)):
            found = score.get(match["field"])
            return float(found) if found is not None and math.isfinite(found) else None
    return None


def seeds_of(results: Any) -> list[int]:
    return sorted({result["seed"] for result in results.values()})


def holds(claim: dict[str, Any], value: float) -> bool:
    """Whether a value is on the claim's side of its threshold."""
    threshold = float(claim["threshold"])
    if claim["side"] == "at most":
        return value <= threshold
    if claim["side"] == "at least":
        return value >= threshold
    if claim["side"] == "within":
        return abs(value) <= threshold
    raise ValueError(f"{claim['id']}: unknown side {claim['side']!r}")


def _off_side(claim: dict[str, Any], found: Estimate) -> bool:
    """Whether the whole interval is on the other side."""
    if claim["side"] == "within":
        return bool(found.low > claim["threshold"] or found.high < -claim["threshold"])
    return not holds(claim, found.low) and not holds(claim, found.high)


def _is_far(claim: dict[str, Any], found: Estimate) -> bool:
    """Fewer than 5 seeds decide only what is clear: the nearest value is farther from the threshold than the values are apart."""
    edges = (claim["threshold"], -claim["threshold"]) if claim["side"] == "within" else (claim["threshold"],)
    nearest = min(abs(value - edge) for value in (found.low, found.high) for edge in edges)
    return found.n > 1 and bool(nearest > found.high - found.low)


def measured(claim: dict[str, Any], results: Any, seed: int) -> tuple[float | None, str]:
    """The claim's measure for a seed: a weighted sum, of logarithms if `exp`; or why there is none."""
    for reference, least in claim.get("needs", ()):
        value = value_at(results, reference, seed)
        if value is not None and value < least:
            return None, f"{reference} is {value:.2f}, below the {least} that the claim needs"
    total = 0.0
    for weight, reference in claim["terms"]:
        value = value_at(results, reference, seed)
        if value is None:
            return None, f"{reference} was not measured"
        total += weight * value
    return total, ""


def judge(claim: dict[str, Any], results: Any) -> Verdict:
    verdict = Verdict(claim)
    if not claim.get("terms"):
        verdict.reason = claim.get("why_not", "needs a model or a text that this lab does not have")
        return verdict
    reasons = []
    for seed in seeds_of(results):
        value, reason = measured(claim, results, seed)
        if value is None:
            reasons.append(reason)
        else:
            verdict.values[seed] = value
    if not verdict.values:
        verdict.reason = reasons[0] if reasons else "no results"
        return verdict
    found = estimate(list(verdict.values.values()))
    if claim.get("exp"):
        found = Estimate(math.exp(found.mean), math.exp(found.low), math.exp(found.high), found.n)
        verdict.values = {seed: math.exp(value) for seed, value in verdict.values.items()}
    verdict.estimate, on_side = found, holds(claim, found.low) and holds(claim, found.high)
    if found.n < FEWEST and not _is_far(claim, found):
        verdict.answer, verdict.reason = "undecided", f"{found.kind}, too close to the threshold for so few"
    elif on_side:
        verdict.answer = "reproduced"
    elif _off_side(claim, found):
        verdict.answer = "refuted"
    else:
        verdict.answer, verdict.reason = "undecided", "the interval includes the threshold"
    return verdict


def judge_all(claims: list[dict[str, Any]], results: Any) -> list[Verdict]:
    return [judge(claim, results) for claim in claims]


def by_chance(verdicts: list[Verdict]) -> float:
    """How many of the decided claims would have been decided wrongly by chance, at most."""
    return CHANCE * sum(verdict.answer in ("reproduced", "refuted") for verdict in verdicts)

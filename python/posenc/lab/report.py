"""Writes what a run found: report.md, summary.json and figures as SVG. Needs no torch."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from .judge import Verdict, by_chance, estimate
from .lines import Line, chart, maps

MAPPED = ("rope", "alibi", "t5", "sinusoidal", "none", "swan", "forget", "kerple")  # runs of which attention is drawn
VARIED = ("rope", "p-rope", "base-100", "base-500k", "interleaved", "swan")  # shown beside each other
ANSWERS = ("reproduced", "refuted", "undecided", "not testable here")


def number(value: float) -> str:
    if 0 < abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.4f}" if abs(value) < 0.1 else f"{value:.3f}"


def shown(verdict: Verdict) -> str:
    found = verdict.estimate
    if found is None:
        return ""
    unit = verdict.claim.get("unit", "")
    return f"{number(found.mean)} [{number(found.low)}, {number(found.high)}]{' ' + unit if unit else ''}, {found.kind} (n = {found.n})"


def threshold(claim: dict[str, Any]) -> str:
    sign = {"at most": "≤ ", "at least": "≥ ", "within": "within ±"}[claim["side"]]
    return f"{sign}{claim['threshold']}"


def _paper(claim: dict[str, Any]) -> str:
    effect = claim.get("paper_effect")
    return f"{claim['published']} ({claim['source']})" + (f"; as this measure {number(float(effect))}" if effect is not None else "")


def table(verdicts: list[Verdict], answer: str) -> list[str]:
    chosen = [one for one in verdicts if one.answer == answer]
    if not chosen:
        return []
    lines = ["", f"## {answer.capitalize()}: {len(chosen)}"]
    if answer == "not testable here":
        lines += ["| claim | published | why |", "|---|---|---|"]
        return lines + [f"| {one.claim['claim']} | {_paper(one.claim)} | {one.reason} |" for one in chosen]
    lines += ["| claim | published | here | threshold | effect here / published |", "|---|---|---|---|---|"]
    for one in chosen:
        share = "" if one.share is None else f"{one.share:.2f}"
        note = f" ({one.reason})" if one.reason else ""
        lines.append(f"| {one.claim['claim']} | {_paper(one.claim)} | {one.claim['measure']}: {shown(one)}{note} | {threshold(one.claim)} | {share} |")
    return lines


def scores_of(results: Any, run: str, variant: str, key: str, first: int = 0) -> dict[int, list[float]]:
    """All seeds' values of a run by length."""
    found: dict[int, list[float]] = {}
    for result in results.values():
        if result["run"] == run:
            for score in result["scores"]:
                if score["variant"] == variant and score["first"] == first and score.get(key) is not None:
                    found.setdefault(score["length"], []).append(score[key])
    return dict(sorted(found.items()))


def _cell(values: list[float], exp: bool) -> str:
    made = estimate(values)
    mean, low, high = ((math.exp(one) if exp else one) for one in (made.mean, made.low, made.high))
    return f"{mean:.3f} ± {(high - low) / 2:.3f}" if exp else f"{mean:.2f}"


def lengths_table(results: Any, key: str, exp: bool) -> list[str]:
    """Runs and variants by length."""
    rows = {}
    for result in results.values():
        for score in result["scores"]:
            if key in score and score["first"] == 0 and score["variant"] not in ("exact", "f32", "f32-bf16", "bf16"):
                rows[(result["run"], score["variant"])] = scores_of(results, result["run"], score["variant"], key)
    lengths = sorted({length for row in rows.values() for length in row})
    if not rows:
        return []
    lines = ["| run | " + " | ".join(f"{length:,}" for length in lengths) + " | n |", "|---|" + "---|" * (len(lengths) + 1)]
    for (run, variant), row in rows.items():
        name = run if variant == "none" else f"{run}, {variant}"
        cells = [_cell(row[length], exp) if length in row else "" for length in lengths]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {max(len(one) for one in row.values())} |")
    return lines


def precision_table(results: Any) -> list[str]:
    """The loss by first position and arithmetic of the angles, minus that of exact angles at 0, in thousandths of a nat."""
    lines = []
    for run in dict.fromkeys(result["run"] for result in results.values()):
        seeds = {result["seed"]: {(s["variant"], s["first"]): s["nll"] for s in result["scores"] if s["variant"] in ("exact", "f32", "f32-bf16", "bf16")}
                 for result in results.values() if result["run"] == run}
        keys = sorted({key for one in seeds.values() for key in one}, key=lambda key: (key[1], key[0]))
        for key in keys:
            base = (("exact", 0) if any(("exact", 0) in one for one in seeds.values()) else (key[0], 0))
            values = [1000 * (one[key] - one[base]) for one in seeds.values() if key in one and base in one]
            if values:
                made = estimate(values)
                lines.append(f"| {run} | {key[0]} | {key[1]:,} | {made.mean:.3f} [{made.low:.3f}, {made.high:.3f}] | {made.n} |")
    head = ["| trained as | evaluated with angles | first position | loss minus that at 0, 10⁻³ nats | n |", "|---|---|---|---|---|"]
    return head + lines if lines else []


def figures(out: Path, results: Any) -> list[str]:
    """SVG files; their names."""
    made = []
    plain = [run for run in ("rope", "alibi", "t5", "sinusoidal", "none", "swan", "interleaved", "drope", "forget", "kerple", "p-rope", "base-100", "base-500k")
             if scores_of(results, run, "none", "nll")]
    lines = []
    for run in plain:
        rows = scores_of(results, run, "none", "nll")
        lines.append(Line(run, [(length, math.exp(sum(values) / len(values))) for length, values in rows.items()]))
    if lines:
        made.append(chart(out / "perplexity-by-length.svg", "Perplexity of bytes by length of the window", "bytes in a window", "perplexity", lines, log_x=True, log_y=True))
    lines = []
    for run in plain:
        parts = [score["by_position"] for result in results.values() if result["run"] == run for score in result["scores"]
                 if score["variant"] == "none" and score["length"] == 2048 and "by_position" in score]
        if parts:
            lines.append(Line(run, [((i + 0.5) * 2048 / len(parts[0]), sum(part[i] for part in parts) / len(parts)) for i in range(len(parts[0]))]))
    if lines:
        made.append(chart(out / "loss-by-position.svg", "Loss by position in windows of 2,048 bytes", "position", "nats per byte", lines, rule=512))
    lines = [Line(run, [(length, sum(values) / len(values)) for length, values in scores_of(results, run, "none", "passkey").items()]) for run in plain]
    lines = [line for line in lines if line.points]
    if lines:
        made.append(chart(out / "passkey.svg", "Pass keys retrieved", "bytes in a window", "share of keys with all digits right", lines, log_x=True))
    return made + attention_figures(out, results)


def attention_figures(out: Path, results: Any) -> list[str]:
    """What the first, the middle and the last layer attend to, by run, of which the first seed kept it."""
    made = []
    kept = {result["run"]: result for result in results.values() if "maps" in result}
    for length in sorted({length for result in kept.values() for length in result["maps"]}, key=int):
        rows = [(run, kept[run]["maps"][length]) for run in MAPPED if length in kept.get(run, {}).get("maps", ())]
        if not rows:
            continue
        layers = len(rows[0][1])
        chosen = sorted({0, layers // 2, layers - 1})
        trained = next(iter(kept.values()))["job"]["length"]
        made.append(maps(out / f"attention-{length}.svg", f"Attention in windows of {int(length):,} bytes", [f"layer {i + 1}" for i in chosen],
                         [(run, [layer[i] for i in chosen]) for run, layer in rows], trained / int(length) if trained < int(length) else None))
    return made


def markdown(results: Any, verdicts: list[Verdict], pictures: list[str], wanted: int = 0) -> str:
    any_result = next(iter(results.values()))
    seconds = sum(result["seconds_in_all"] for result in results.values())
    counts = ", ".join(f"{sum(one.answer == answer for one in verdicts)} {answer}" for answer in ANSWERS)
    stamps = sorted({result.get("claims_sha256", "")[:16] for result in results.values()})
    parameters = sorted(result["parameters"] for result in results.values())
    lines = [
        "# What the lab found: the preset " + str(any_result.get("preset")), "",
        f"{len(results)}{f' of {wanted}' if wanted > len(results) else ''} models of {parameters[0] / 1e6:.1f} million parameters, trained in {seconds / 60:.0f} minutes of processes that shared one "
        f"{any_result['device']} (torch {any_result['torch']}). SHA-256 of the text: {any_result.get('text_sha256', '')[:16]}…, of the claims: {', '.join(stamps)}….", "",
        f"**{counts}.** Schemes are compared seed by seed, with the same initial weights and the same batches. An interval is Student's, over n seeds; below 5 seeds it "
        f"is the range of the values, and decides only what is clear. By chance alone, at most {by_chance(verdicts):.1f} of the decided claims would be decided wrongly.",
    ]
    for answer in ANSWERS:
        lines += table(verdicts, answer)
    for title, body in (("Perplexity of bytes by length", lengths_table(results, "nll", True)), ("Pass keys retrieved", lengths_table(results, "passkey", False)),
                        ("Strings repeated or copied exactly", lengths_table(results, "exact", False)), ("Exact, float32 and bf16 angles", precision_table(results))):
        if body:
            lines += ["", f"## {title}", *body]
    lines += ["", *(f"![{name}]({name})" for name in pictures), "", "## What computed attention", ""]
    lines += [f"- {run}: {way}" for run, way in sorted({(result["run"], "; ".join(result["attention"])) for result in results.values()})]
    speeds = sorted(result["tokens_per_second"] for result in results.values())
    lines += ["", f"Tokens per second and process: {speeds[0] / 1e6:.2f} to {speeds[-1] / 1e6:.2f} million, median {speeds[len(speeds) // 2] / 1e6:.2f}."]
    return "\n".join(lines) + "\n"


def _by_size(values: dict[int, list[float]], exp: bool) -> list[dict[str, float]]:
    found = []
    for size, all_of in values.items():
        made = estimate(all_of)
        mean, least, most = ((math.exp(one) if exp else one) for one in (made.mean, min(all_of), max(all_of)))
        found.append({"size": size, "mean": mean, "least": least, "most": most})
    return found


def by_scheme(results: Any) -> list[dict[str, Any]]:
    """Each run as `posenc lab` gives a scheme: perplexity, exact match and pass keys by size; extensions of RoPE apart."""
    rows = []
    for run in dict.fromkeys(result["run"] for result in results.values()):
        of_run = [result for result in results.values() if result["run"] == run]
        job = of_run[0]["job"]
        common = {"seeds": len(of_run), "parameters": of_run[0]["parameters"]}
        scheme = f"{run}, fine-tuned" if run.startswith(("tuned-", "rope-longer")) else run.removeprefix(f"{job['task']}-")

        def row(task: str, name: str, extension: str, measure: str, values: dict[int, list[float]]) -> None:
            finite = {size: all_of for size, all_of in values.items() if all(map(math.isfinite, all_of))}
            if finite:
                rows.append({"task": task, "scheme": name, "extension": extension, **common, "measure": measure, "by_size": _by_size(finite, measure == "perplexity")})

        plain = scores_of(results, run, "none", "nll")
        if run not in VARIED[1:]:
            row("masked-text" if job["task"] == "masked" else "text", scheme, "none", "perplexity", plain)
        if run in VARIED:
            row("RoPE varied", scheme, "none", "perplexity", plain)
        warm = scores_of(results, run, "temperature", "nll") if run == "swan" else {}
        if warm and job["length"] in plain:  # within the trained length it changes nothing
            row("RoPE varied", f"{scheme}, scaled scores", "none", "perplexity", {job["length"]: plain[job["length"]], **warm})
        for extension in ("linear", "ntk", "yarn"):
            row("text", scheme, extension, "perplexity", scores_of(results, run, extension, "nll"))
        row("pass keys", scheme, "none", "exact match", scores_of(results, run, "none", "passkey"))
        row(job["task"], scheme, "none", "exact match", scores_of(results, run, "none", "exact"))
    tasks = list(dict.fromkeys(one["task"] for one in rows))
    return sorted(rows, key=lambda one: tasks.index(one["task"]))


def summary(results: Any, verdicts: list[Verdict], wanted: int = 0) -> dict[str, Any]:
    """What `posenc lab` writes as summary.json, which the explorer shows, with the effect beside the paper's."""
    some = next(iter(results.values()))
    return {"format": "posenc-lab-summary-1", "preset": some.get("preset", ""), "text": "documentation and dictionaries of Debian", "models": len(results),
            "models_planned": max(wanted, len(results)), "by_chance": by_chance(verdicts), "verdicts": [
                {"id": one.claim["id"], "claim": one.claim["claim"], "source": one.claim["source"], "published": one.claim["published"], "verdict": one.answer,
                 "measure": one.claim["measure"], "threshold": threshold(one.claim), "mean": one.estimate.mean if one.estimate else None,
                 "interval_95": [one.estimate.low, one.estimate.high] if one.estimate and one.estimate.n > 1 else [],
                 "values": [one.values[seed] for seed in sorted(one.values)], "unit": one.claim.get("unit", ""), "reason": one.reason,
                 "paper_effect": one.claim.get("paper_effect"), "effect_over_published": one.share} for one in verdicts],
            "results": by_scheme(results)}


def write(out: Path, results: Any, verdicts: list[Verdict], wanted: int = 0) -> None:
    """wanted: how many results the whole preset has."""
    pictures = figures(out, results)
    (out / "report.md").write_text(markdown(results, verdicts, pictures, wanted), "utf-8")
    (out / "summary.json").write_text(json.dumps(summary(results, verdicts, wanted), indent=1) + "\n", "utf-8")

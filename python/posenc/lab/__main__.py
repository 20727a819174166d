"""python -m posenc.lab: trains the models of a preset, judges the claims and writes a report."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from . import text as texts
from .jobs import PRESETS, RECIPE, Job
from .judge import judge_all, read_claims
from .pool import Pool, Setting, finished, shrunk


def flags_of(arguments: list[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m posenc.lab", description="Trains models on a GPU and judges published claims about positions.")
    parser.add_argument("--preset", choices=sorted(PRESETS), default="gpu")
    parser.add_argument("--out", type=Path, help="folder of the run; one that holds results is continued")
    parser.add_argument("--text", type=Path, help="lab-text.xz (python -m posenc.lab.text makes it), or any file")
    parser.add_argument("--minutes", type=float, default=1e6, help="stop by then; jobs that would not end in time are not begun")
    parser.add_argument("--workers", type=int, default=0, help="processes that share the device (default: 3 for each GPU, 1 elsewhere)")
    parser.add_argument("--device", default="", help="cuda or cpu (default: cuda if there is one)")
    parser.add_argument("--only", default="", help="runs to train, separated by commas")
    parser.add_argument("--seeds", type=int, default=0, help="only seeds up to this one")
    parser.add_argument("--trial", type=int, default=0, metavar="STEPS", help="each run once with so few steps: whether it works here")
    parser.add_argument("--list", action="store_true", help="show the jobs in order, and train nothing")
    parser.add_argument("--report", action="store_true", help="judge and report what is there, and train nothing")
    parser.add_argument("--speed", action="store_true", help="only time training steps with each scheme, and write speed.json")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    return parser.parse_args(arguments)


def jobs_of(flags: Any) -> list[Job]:
    jobs = PRESETS[flags.preset]()
    if flags.only:
        wanted = flags.only.split(",")
        unknown = set(wanted) - {job.run for job in jobs}
        if unknown:
            raise SystemExit(f"no run is called {', '.join(sorted(unknown))}; --list shows them")
        jobs = [job for job in jobs if job.run in wanted]
    if flags.seeds:
        jobs = [job for job in jobs if job.seed <= flags.seeds]
    return shrunk(jobs, flags.trial) if flags.trial else jobs


def listed(jobs: list[Job]) -> str:
    lines = []
    for run in dict.fromkeys(job.run for job in jobs):
        same = [job for job in jobs if job.run == run]
        one = same[0]
        lines.append(f"{run:18} {len(same)} seeds  {one.task:7} {one.steps:5} steps of {one.batch} × {one.length}{', from ' + one.parent if one.parent else ''}")
    total = sum(job.work for job in jobs)
    return "\n".join(lines) + f"\n{len(jobs)} jobs, {total / 1e6:,.0f} million tokens of work: about {total / 1e6 / 60:.0f} min at 1 million tokens/s\n"


def write_report(out: Path, jobs: list[Job]) -> None:
    """Of the results of these jobs: a run that was continued by another recipe holds others, too."""
    from .report import write

    claims, _ = read_claims()
    by_name = {job.name: job for job in jobs}
    found = finished(out)
    results = {name: result for name, result in found.items() if name in by_name and result.get("recipe") == RECIPE and by_name[name].is_of(result)}
    if len(results) < len(found):
        print(f"{len(found) - len(results)} results are of other jobs, or of an older recipe, and were left out")
    if not results:
        print(f"{out}: no results of this preset yet")
    else:
        verdicts = judge_all(claims, results)
        write(out, results, verdicts, len(jobs))
        counts = {answer: sum(one.answer == answer for one in verdicts) for answer in ("reproduced", "refuted", "undecided", "not testable here")}
        print(", ".join(f"{count} {answer}" for answer, count in counts.items()) + f": {out / 'report.md'}")


def main(arguments: list[str] | None = None) -> int:
    start = time.monotonic()
    flags = flags_of(arguments)
    jobs = jobs_of(flags)
    if flags.list:
        print(listed(jobs), end="")
        return 0
    if flags.out is None:
        raise SystemExit("--out: name a folder for the results")
    if flags.report:
        write_report(flags.out, jobs)
        return 0
    import torch

    device = flags.device or ("cuda" if torch.cuda.is_available() else "cpu")
    flags.out.mkdir(parents=True, exist_ok=True)
    if flags.text is None and flags.preset != "smoke":
        raise SystemExit("--text: the text to learn (python -m posenc.lab.text FOLDER makes lab-text.xz)")
    data, digest = texts.read(flags.text) if flags.text else (generated(), "generated")
    if flags.speed:
        show_speed(data, device, flags.out, jobs[0])
        return 0
    plain = flags.out / "text.bin"
    plain.write_bytes(data)
    claims, claims_digest = read_claims()
    stamp = {"format": "posenc-lab-results-1", "preset": flags.preset, "claims_sha256": claims_digest, "text_sha256": digest, "recipe": RECIPE}
    if flags.out.joinpath("results.jsonl").is_file():
        others = {(one["text_sha256"], one["preset"]) for one in finished(flags.out).values()} - {(digest, flags.preset)}
        if others:
            raise SystemExit(f"{flags.out}: holds results of another text or preset; choose another folder")
    setting = Setting(str(flags.out), str(plain), device, flags.workers or (3 * torch.cuda.device_count() if device == "cuda" else 1), not flags.no_compile)
    pool = Pool(jobs, setting, flags.minutes, stamp, flags.quiet, start)
    complete = pool.run()
    plain.unlink()
    write_report(flags.out, jobs)
    (flags.out / "state.json").write_text(json.dumps({"complete": complete, "done": len(pool.done), "of": pool.total, "failed": sorted(pool.failed)}) + "\n", "utf-8")
    return 0


def show_speed(data: bytes, device: str, out: Path, job: Job) -> None:
    from dataclasses import replace

    from .speed import measure

    for row in measure(data, device, out, replace(job, steps=min(job.steps, 60))):
        print(f"{row['position']:12} {row['tokens_per_second'] / 1e6:8.3f} M tokens/s, {row['over_none']:.3f} of none: {row['attention']}")


def generated() -> bytes:
    """A text without a file, for the preset smoke: sentences of a small grammar, always the same."""
    import random

    choice = random.Random(1).choice
    nouns, verbs = ("wave", "angle", "head", "token", "key", "query"), ("turns", "sees", "counts", "follows", "meets")
    return " ".join(f"the {choice(nouns)} {choice(verbs)} the {choice(nouns)}." for _ in range(20_000)).encode()


if __name__ == "__main__":
    raise SystemExit(main())

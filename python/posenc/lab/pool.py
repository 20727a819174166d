"""Runs jobs in worker processes, one writer: a result is appended to results.jsonl as soon as its job ends.

Several processes share one GPU, so that it has work while one of them compiles, evaluates or launches small kernels. A worker that
dies takes one job with it, and is replaced.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
import traceback
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from .jobs import Job

RESPAWNS = 6
SILENCE = 10.0  # seconds between lines that only say that something goes on


@dataclass(frozen=True)
class Setting:
    """What all jobs of a worker have in common."""

    out: str
    text: str
    device: str
    workers: int
    compiled: bool = True


def finished(out: Path) -> dict[str, dict[str, Any]]:
    """The results so far by name; a line that was cut off by the end of a run, or is none, is left out."""
    found = {}
    path = out / "results.jsonl"
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        try:
            result = json.loads(line)
        except ValueError:
            continue
        if isinstance(result, dict) and isinstance(result.get("job"), dict):
            found[str(result.get("name"))] = result
    return found


def attempt(job: Job, machine: Any, folder: Path, beat: Any, parent: Job | None) -> dict[str, Any]:
    """The job; if it fails, without the compiler, then without posenc's kernels: the result says so."""
    from .train import run_job

    failures: list[str] = []
    compiled = machine.pieces.compiled
    for without in ("", "compiler", "kernels"):
        if without == "compiler" and not compiled:
            continue
        # If it works without the compiler, the compiler stays off; if not, that was not the reason.
        machine.pieces.compiled = compiled and without != "compiler"
        if without == "compiler":
            machine.pieces.reason = "switched off after a failure"
        machine.kernels = without != "kernels"
        try:
            result = run_job(job, machine, folder, beat, parent)
            return {**result, "failures": failures}
        except Exception as error:  # whatever it is: the next way may work, and if none does, it is reported
            failures.append(f"{type(error).__name__}: {str(error)[:300]}")
            beat(f"failed ({failures[-1][:160]})")
            last = traceback.format_exc()
        finally:
            machine.kernels = True
    raise RuntimeError(last)


def work(index: int, setting: Setting, pipe: Any) -> None:
    """A worker: jobs come through the pipe until None does."""
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "4")
    import torch

    from .train import Machine

    torch.set_num_threads(max(1, (os.cpu_count() or 2) // (setting.workers + 1)))
    device = setting.device
    if device == "cuda":  # the workers are spread over all GPUs
        device = f"cuda:{index % torch.cuda.device_count()}"
        torch.cuda.set_device(device)
    machine = Machine(Path(setting.text).read_bytes(), device, setting.compiled)
    pipe.send(("ready", "", None))
    while True:
        wanted = pipe.recv()
        if wanted is None:
            return
        job, parent = wanted
        try:
            result = attempt(job, machine, Path(setting.out) / "checkpoints", lambda text: pipe.send(("beat", job.name, text)), parent)
            pipe.send(("done", job.name, result))
        except Exception:
            pipe.send(("failed", job.name, traceback.format_exc()))


class Worker:
    def __init__(self, index: int, setting: Setting, context: Any) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(index, setting, theirs), daemon=False)
        self.process.start()
        theirs.close()
        self.job: Job | None = None
        self.ready, self.began = False, 0.0


class Pool:
    """Dispatches jobs in order until all are done or the time is up."""

    def __init__(self, jobs: list[Job], setting: Setting, minutes: float, stamp: dict[str, Any], quiet: bool = False,
                 start: float | None = None) -> None:
        self.out, self.setting, self.stamp, self.quiet = Path(setting.out), setting, stamp, quiet
        self.start = time.monotonic() if start is None else start
        self.deadline = self.start + 60 * minutes
        self.by_name = {job.name: job for job in jobs}
        self.done = {name for name, result in finished(self.out).items()
                     if result.get("recipe") == stamp["recipe"] and name in self.by_name and self.by_name[name].is_of(result)}
        self.left = [job for job in jobs if job.name not in self.done]
        self.failed: set[str] = set()
        self.spent, self.worked, self.ended, self.respawned = 0.0, 0.0, 0, 0
        self.said = self.start
        self.total = len(jobs)
        self.context = multiprocessing.get_context("spawn")
        self.workers = [Worker(index, setting, self.context) for index in range(min(setting.workers, max(1, len(self.left))))] if self.left else []

    def say(self, text: str) -> None:
        """Prints a line, and keeps it in log.txt."""
        elapsed, left = time.monotonic() - self.start, max(0.0, self.deadline - time.monotonic())
        line = f"[{int(elapsed) // 60}:{int(elapsed) % 60:02d}, {int(left)} s left, {len(self.done)}/{self.total}] {text}"
        with open(self.out / "log.txt", "a", encoding="utf-8") as file:
            file.write(line + "\n")
        if not self.quiet:
            print(line, flush=True)

    def seconds_for(self, job: Job) -> float:
        """How long a job will take, from those that ended; before that, a careful guess."""
        return job.work * (self.spent / self.worked if self.ended else 2e-6) * 1.15 + 1.0

    def next_job(self) -> Job | None:
        """The first job that is ready and would end in time."""
        busy = {worker.job.name for worker in self.workers if worker.job is not None}
        for job in self.left:
            parent = f"{job.parent}-{job.seed}"
            waits = job.parent and parent not in self.done and parent not in self.failed and parent in self.by_name
            if not waits and parent not in busy and time.monotonic() + self.seconds_for(job) < self.deadline:
                self.left.remove(job)
                return job
        return None

    def give(self, worker: Worker) -> None:
        job = self.next_job()
        if job is None:
            return
        worker.job, worker.began = job, time.monotonic()
        worker.pipe.send((job, self.by_name.get(f"{job.parent}-{job.seed}") if job.parent else None))

    def hear(self, index: int) -> None:
        worker = self.workers[index]
        try:
            kind, name, what = worker.pipe.recv()
        except (EOFError, OSError):
            self.replace(index)
            return
        if kind == "ready":
            worker.ready = True
        elif kind == "beat":
            if what.startswith(("step", "evaluates")) and time.monotonic() - self.said < SILENCE:
                return
            self.said = time.monotonic()
            self.say(f"{name}: {what}")
        else:
            self.end(worker, kind, name, what)

    def end(self, worker: Worker, kind: str, name: str, what: Any) -> None:
        job, worker.job = worker.job, None
        assert job is not None
        if kind == "failed":
            self.failed.add(name)
            with open(self.out / "failures.txt", "a", encoding="utf-8") as file:
                file.write(f"{name}\n{what}\n")
            self.say(f"{name} FAILED: {str(what).strip().splitlines()[-1][:300]}")
            return
        with open(self.out / "results.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({**self.stamp, **what}) + "\n")
        self.done.add(name)
        self.spent += time.monotonic() - worker.began
        self.worked += job.work
        self.ended += 1
        needed = sum(self.seconds_for(one) for one in self.left) / max(1, len(self.workers))
        first = what["scores"][0] if what["scores"] else {}
        shown = ", ".join(f"{key} {first[key]:.4f}" for key in ("nll", "passkey", "exact") if key in first)
        self.say(f"{name}: {what['seconds_in_all']:.1f} s ({what['first_step_seconds']:.1f} the first step), {what['tokens_per_second'] / 1e6:.2f} M tokens/s, "
                 f"{shown}, {'; '.join(what['attention'])}{'' if what['compiled'] else ', not compiled'}; all the rest: about {needed / 60:.1f} min")

    def replace(self, index: int) -> None:
        """A new worker for one that died; its job is not tried again in this call."""
        old = self.workers[index]
        if old.job is not None:
            self.failed.add(old.job.name)
            self.say(f"{old.job.name} FAILED: its process ended with code {old.process.exitcode}")
        old.process.join(1)
        self.respawned += 1
        if self.respawned > RESPAWNS:
            raise SystemExit("the lab's workers keep dying: see the messages above")
        self.workers[index] = Worker(index, self.setting, self.context)

    def run(self) -> bool:
        """True if every job has a result."""
        try:
            while True:
                for worker in self.workers:
                    if worker.ready and worker.job is None:
                        self.give(worker)
                starting = any(not worker.ready for worker in self.workers)
                if time.monotonic() >= self.deadline or not any(worker.job for worker in self.workers) and (not starting or not self.left):
                    break
                pipes = [worker.pipe for worker in self.workers]
                for pipe in wait(pipes, timeout=max(0.05, min(5.0, self.deadline - time.monotonic()))):
                    self.hear(next(i for i, worker in enumerate(self.workers) if worker.pipe is pipe))
        finally:
            self.stop()
        self.say(f"{len(self.done)} of {self.total} jobs have results" + (f", {len(self.failed)} failed" if self.failed else ""))
        return len(self.done) >= self.total

    def stop(self) -> None:
        for worker in self.workers:
            if worker.job is not None:
                self.say(f"{worker.job.name}: stopped, the time is up")
                worker.process.terminate()
            else:
                try:
                    worker.pipe.send(None)
                except OSError:
                    pass
        for worker in self.workers:
            worker.process.join(10)
            if worker.process.is_alive():
                worker.process.kill()


def shrunk(jobs: list[Job], steps: int) -> list[Job]:
    """The first seed of each run with a few steps: whether all of it works on a machine."""
    return [replace(job, steps=steps, evaluated=1 << 15, passkeys=4, warmup=1) for job in jobs if job.seed == 1]

"""Batches: bytes of a text with pass keys, masked bytes, and strings to copy. All of a batch follows from seed and step."""

from __future__ import annotations

from typing import Any

import torch

from .jobs import Job
from .text import VALIDATION_BYTES

HIDDEN = b"\nThe pass key is 00000.\n"
ASKED = b"\nWhat is the pass key? The pass key is 00000.\n"
DIGITS_OF_HIDDEN, DIGITS_OF_ASKED = HIDDEN.index(b"0"), ASKED.index(b"0")
KEYED = 3  # one sequence in 3 has a pass key
MENTIONS, SLOT = 12, 38  # at most so many mentions of it in training, one in each slot of at least so many bytes
BEGIN, SEPARATOR, END, FIRST_SYMBOL, SYMBOLS = 1, 2, 3, 10, 16  # tokens of copy tasks


def _template(text: bytes, device: Any) -> Any:
    return torch.tensor(list(text), device=device)


def plant(windows: Any, places: Any, keys: Any) -> None:
    """Writes a pass key into each window, [rows, tokens], at its places, and the question at the end, in place.

    places: [rows, mentions]; keys: [rows, 5], digits. The window ends with the answer, the full stop and a line feed.
    """
    device, rows = windows.device, torch.arange(len(windows), device=windows.device)[:, None]
    asked = torch.full_like(places[:, 0], windows.shape[1] - len(ASKED))
    for text, starts, digit in (*((HIDDEN, places[:, i], DIGITS_OF_HIDDEN) for i in range(places.shape[1])), (ASKED, asked, DIGITS_OF_ASKED)):
        columns = starts[:, None] + torch.arange(len(text), device=device)
        windows[rows, columns] = _template(text, device).expand(len(windows), -1)
        windows[rows, columns[:, digit:digit + 5]] = keys + ord("0")


class Text:
    """A text on a device: training windows by seed and step, validation windows in order."""

    def __init__(self, text: bytes, device: Any) -> None:
        self.all = torch.frombuffer(bytearray(text), dtype=torch.uint8).to(device)
        self.validation = max(len(text) - VALIDATION_BYTES, len(text) * 9 // 10)

    def training(self, job: Job) -> "TrainingWindows":
        return TrainingWindows(self, job)

    def windows(self, length: int, total: int) -> Any:
        """The first `total` bytes of the validation text in windows, [windows, length + 1], that overlap by one byte."""
        count = min(total, len(self.all) - self.validation - 1) // length
        starts = self.validation + length * torch.arange(count, device=self.all.device)
        return self.all[starts[:, None] + torch.arange(length + 1, device=self.all.device)].long()

    def keyed(self, length: int, count: int) -> tuple[Any, Any]:
        """Validation windows, [count, length], each with a pass key at a depth of its own, and the keys."""
        generator = torch.Generator().manual_seed(12345)
        spare = len(self.all) - self.validation - length - 1
        starts = self.validation + torch.randint(spare, (count,), generator=generator)
        room = length - len(HIDDEN) - len(ASKED)
        places = (torch.arange(count) * room) // max(1, count - 1)
        keys = torch.randint(10, (count, 5), generator=generator)
        device = self.all.device
        windows = self.all[starts.to(device)[:, None] + torch.arange(length, device=device)].long()
        plant(windows, places.to(device)[:, None], keys.to(device))
        return windows, keys.to(device)


class TrainingWindows:
    """All random numbers of a run are drawn before it begins, from its seed alone, so that every scheme learns from the same windows."""

    def __init__(self, text: Text, job: Job) -> None:
        generator = torch.Generator().manual_seed(job.seed)
        device = text.all.device
        self.text, self.job, self.keyed = text, job, job.batch // KEYED if job.task == "text" else 0
        self.starts = torch.randint(text.validation - job.length - 1, (job.steps, job.batch), generator=generator).to(device)
        room = job.length + 1 - len(ASKED)
        mentions = min(MENTIONS, room // SLOT)
        self.keyed = self.keyed if mentions > 0 else 0
        slot = room // max(1, mentions)
        places = torch.randint(max(1, slot - len(HIDDEN)), (job.steps, max(1, self.keyed), max(1, mentions)), generator=generator)
        places += slot * torch.arange(max(1, mentions))
        # Many mentions teach to look a key up; every other sequence has only one, anywhere, which teaches to look far back.
        alone = torch.randint(max(1, room - len(HIDDEN)), (job.steps, max(1, self.keyed), 1), generator=generator)
        places[:, ::2] = alone[:, ::2]
        self.places = places.to(device)
        self.keys = torch.randint(10, (job.steps, max(1, self.keyed), 5), generator=generator).to(device)
        self.first = torch.randint(max(1, job.offsets), (job.steps,), generator=generator).tolist()
        self.mask = torch.Generator(device=device).manual_seed(job.seed + 1)
        self.columns = torch.arange(job.length + 1, device=device)

    def __call__(self, step: int) -> tuple[Any, Any]:
        windows = self.text.all[self.starts[step][:, None] + self.columns].long()
        if self.keyed:
            plant(windows[:self.keyed], self.places[step][:self.keyed], self.keys[step][:self.keyed])
        if self.job.task == "masked":
            return masked(windows[:, :-1], self.mask)
        return windows[:, :-1], windows[:, 1:]


def masked(windows: Any, generator: Any) -> tuple[Any, Any]:
    """15% of the bytes hidden (as byte 0), which are the targets."""
    hidden = torch.rand(windows.shape, generator=generator, device=windows.device) < 0.15
    return windows.masked_fill(hidden, 0), windows.masked_fill(~hidden, -100)


class Copies:
    """Strings to copy: begin, w1 … wn, separator, w1 … wn, end. `repeat`: all of a string's symbols are one."""

    def __init__(self, job: Job, device: Any) -> None:
        self.job, self.device = job, device

    def _sequences(self, sizes: Any, generator: Any, length: int) -> tuple[Any, Any]:
        rows = len(sizes)
        symbols = torch.randint(SYMBOLS, (rows, 1 if self.job.task == "repeat" else length), generator=generator).expand(rows, length) + FIRST_SYMBOL
        column = torch.arange(length + 1).expand(rows, -1)
        n = sizes[:, None]
        tokens = torch.zeros(rows, length + 1, dtype=torch.long)
        for offset in (1, n + 2):
            inside = (column >= offset) & (column < offset + n)
            tokens = torch.where(inside, symbols.gather(1, (column - offset).clamp(0, length - 1)), tokens)
        tokens = torch.where(column == 0, torch.full_like(tokens, BEGIN), tokens)
        tokens = torch.where(column == n + 1, torch.full_like(tokens, SEPARATOR), tokens)
        tokens = torch.where(column == 2 * n + 2, torch.full_like(tokens, END), tokens)
        answer = (column >= n + 2) & (column <= 2 * n + 2)
        targets = tokens.masked_fill(~answer, -100)[:, 1:]
        return tokens[:, :-1].to(self.device), targets.to(self.device)

    def batch(self, step: int) -> tuple[Any, Any]:
        generator = torch.Generator().manual_seed(self.job.seed * 1_000_003 + step)
        sizes = torch.randint(1, self.job.size + 1, (self.job.batch,), generator=generator)
        return self._sequences(sizes, generator, self.job.length)

    def questions(self, size: int, count: int) -> tuple[Any, Any]:
        generator = torch.Generator().manual_seed(777 + size)
        return self._sequences(torch.full((count,), size), generator, 2 * size + 2)

    def ids(self, step: int) -> Any:
        """Sorted random positions, one list for the batch; None: 0, 1, 2 …"""
        if not self.job.random_positions:
            return None
        generator = torch.Generator().manual_seed(self.job.seed * 7_000_003 + step)
        return torch.randperm(self.job.random_positions, generator=generator)[:self.job.length].sort().values

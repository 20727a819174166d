"""How the process computes: threads and backends."""

from __future__ import annotations

from contextlib import contextmanager

from . import _posenc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator


def threads() -> int:
    """How many threads a call uses: set_threads, else the environment's POSENC_THREADS, else all cores."""
    return int(_posenc.threads())


def set_threads(count: int) -> None:
    """Sets it for the whole process; 0 restores the default. Results never depend on it."""
    _posenc.set_threads(count)


def backend() -> str:
    """The backend in use for arrays on the host: "cpu", "reference" …"""
    return str(_posenc.backend())


def backends() -> dict[str, str]:
    """Every backend, and why it cannot run here ("": it can)."""
    import json

    return {entry["backend"]: entry["why_absent"] for entry in json.loads(_posenc.backends())}


def force_backend(name: str) -> None:
    """Uses this backend from now on, in the whole process; "" restores the default."""
    _posenc.force_backend(name)


@contextmanager
def use(*, threads: int | None = None, backend: str | None = None) -> Iterator[None]:
    """with posenc.use(threads=1, backend="reference"): … The threads are those of this thread's calls; the backend is the
    process's meanwhile."""
    before = _posenc.backend()
    calls = None if threads is None else _posenc.call_threads(threads)
    try:
        if backend is not None:
            _posenc.force_backend(backend)
        yield
    finally:
        if calls is not None:
            _posenc.call_threads(calls)
        if backend is not None:
            _posenc.force_backend(before)


def synchronize(stream: int = 0) -> None:
    """Waits for the work on a GPU's stream. Raises Error for problems detected on the GPU."""
    _posenc.synchronize(stream)


__all__ = ["backend", "backends", "force_backend", "set_threads", "synchronize", "threads", "use"]

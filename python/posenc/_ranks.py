"""Messages between the ranks of torch.distributed, in a fixed order of sums, for posenc.torch.distributed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator

import torch
import torch.distributed as dist


def ranks_of(group: Any, verb: str) -> tuple[int, int]:
    """This process's rank in the group, and the group's size."""
    if not dist.is_available() or not dist.is_initialized():
        raise RuntimeError(f"{verb}: torch.distributed is not initialized; start with torchrun and call init_process_group first")
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if rank < 0:
        raise RuntimeError(f"{verb}: this process is not in the group")
    return rank, size


def name_of(group: Any) -> str:
    """A group as text, as operators take it; "": the default one. torch.compile traces this."""
    return "" if group is None else str(group.group_name)


def group_of(name: Any) -> Any:
    """The reverse. torch before 2.4 has no operators here and no names: there it is the group itself."""
    if not isinstance(name, str):
        return name
    return dist.distributed_c10d._resolve_process_group(name) if name else None


@contextmanager
def all_present() -> Iterator[None]:
    """What a backend reports when a rank is gone differs from backend to backend."""
    try:
        yield
    except RuntimeError as error:
        raise RuntimeError("posenc.torch.distributed: a rank ended, or did not answer within the group's timeout; this rank cannot go on "
                           f"in the group ({str(error).splitlines()[0]})") from error


def _bytes(x: torch.Tensor) -> torch.Tensor:
    """What is sent: gloo knows no bfloat16."""
    return x.contiguous().view(torch.uint8)


def _is_staged(x: torch.Tensor, group: Any) -> bool:
    """gloo sends from host memory."""
    return bool(x.is_cuda and dist.get_backend(group) == "gloo")


def exchange(x: torch.Tensor, group: Any) -> torch.Tensor:
    """x[i] goes to rank i; the result's [i] came from rank i."""
    sent = x.cpu() if _is_staged(x, group) else x
    out = torch.empty_like(sent, memory_format=torch.contiguous_format)
    with all_present():
        dist.all_to_all_single(_bytes(out), _bytes(sent), group=group)
    return out.to(x.device)


def gather(x: torch.Tensor, group: Any) -> torch.Tensor:
    """[ranks, …]"""
    sent = x.cpu() if _is_staged(x, group) else x
    out = sent.new_empty((dist.get_world_size(group), *x.shape))
    with all_present():
        dist.all_gather([_bytes(one) for one in out], _bytes(sent), group=group)
    return out.to(x.device)


def sum_of_parts(parts: torch.Tensor) -> torch.Tensor:
    """Over the first axis, in the order of ranks."""
    total = parts[0].to(torch.promote_types(parts.dtype, torch.float32))
    for part in parts[1:]:
        total = total + part
    return total


def agree(what: dict[str, str], group: Any, verb: str) -> None:
    """Raises the same error on every rank if one calls with another shape, type or option."""
    found: list[Any] = [None] * dist.get_world_size(group)
    with all_present():
        dist.all_gather_object(found, what, group=group)
    for rank, other in enumerate(found):
        for name, value in found[0].items():
            if other.get(name) != value:
                raise ValueError(f"{verb}: the ranks disagree about {name}: {value} on rank 0, {other.get(name)} on rank {rank}")


class Attempt:
    """A rank's own work between messages. After an error the rank sends and receives as before, so that no other waits for it."""

    def __init__(self) -> None:
        self.error: Any = None

    def __call__(self, work: Any, *arguments: Any) -> Any:
        if self.error is None:
            try:
                return work(*arguments)
            except Exception as error:
                self.error = error
        return None

    def settle(self, group: Any, together: bool) -> None:
        """Raises this rank's error; together: every rank raises that of the first rank that has one."""
        if together:
            found: list[Any] = [None] * dist.get_world_size(group)
            with all_present():
                dist.all_gather_object(found, None if self.error is None else str(self.error), group=group)
            for rank, text in enumerate(found):
                if text is not None:
                    raise ValueError(f"{text} (on rank {rank})") from self.error
        if self.error is not None:
            raise self.error


class Carousel:
    """A tensor that travels around the ring while the present one is computed with."""

    def __init__(self, x: torch.Tensor, group: Any) -> None:
        self.here, self.group = x, group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.staged = _is_staged(x, group)
        self.sent: Any = None  # kept until it has arrived
        self.coming: Any = None
        self.requests: list[Any] = []

    def member(self, rank: int) -> int:
        return rank % int(self.size) if self.group is None else int(dist.get_global_rank(self.group, rank % self.size))

    def send(self, hops: int) -> None:
        """Begins to send it `hops` ranks further, and to receive the one that comes from there."""
        self.sent = self.here.cpu() if self.staged else self.here
        self.coming = torch.empty_like(self.sent)
        with all_present():
            self.requests = dist.batch_isend_irecv([dist.P2POp(dist.isend, _bytes(self.sent), self.member(self.rank + hops), self.group),
                                                    dist.P2POp(dist.irecv, _bytes(self.coming), self.member(self.rank - hops), self.group)])

    def turn(self) -> None:
        """Waits for the one that comes, which is then here."""
        with all_present():
            for request in self.requests:
                request.wait()
        self.here = self.coming.to(self.here.device) if self.staged else self.coming
        self.sent, self.coming, self.requests = None, None, []

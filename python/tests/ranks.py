"""Runs functions of a test on the ranks of a group: processes of this machine, which send over the loopback (gloo).

Whoever is only slow, on a machine with other work, is waited for; a group that shall time out is one that a test makes (briefly)."""

import datetime
import os
import pickle
import sys
import tempfile
import time
import traceback
from pathlib import Path

import needs_torch  # noqa: F401  (first)

import torch
import torch.distributed as dist

if not dist.is_available():
    print("this torch has no torch.distributed")
    sys.exit(77)
import posenc
import torch.multiprocessing as mp

PATIENCE = 180  # seconds that a message may take; twice as many for all works of a group
FOLDER = []  # where each rank writes what it found


def until_found(count):
    """Waits until so many ranks have written what they found."""
    deadline = time.monotonic() + PATIENCE / 3
    while sum(name.isdigit() for name in os.listdir(FOLDER[0])) < count and time.monotonic() < deadline:
        time.sleep(0.02)


def briefly(seconds):
    """A group of all ranks whose messages may take so long. All are here when it is made."""
    dist.barrier()
    return dist.new_group(timeout=datetime.timedelta(seconds=seconds))


def run_rank(rank, size, works, folder, ends):
    """A work that raises is its traceback; the following works are done all the same."""
    FOLDER.append(folder)
    torch.set_num_threads(1)
    posenc.set_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size, timeout=datetime.timedelta(seconds=PATIENCE))
    found = {}
    for work in works:
        try:
            found[work.__name__] = work(rank, size)
        except Exception:
            found[work.__name__] = traceback.format_exc()
    Path(folder, str(rank)).write_bytes(pickle.dumps(found))
    if ends:  # a group that is broken cannot be left in order, and nobody shall learn of a fault by another's exit
        until_found(ends)
        os._exit(0)
    dist.destroy_process_group()


def ranks(works, size, ends=0):
    """What each rank returned, by the name of the work; None for a rank that ended. ends: how many ranks are left of a broken group."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    context = mp.get_context("forkserver")  # torch is loaded once
    context.set_forkserver_preload(["torch", "torch.distributed", "posenc", "posenc.torch", "posenc.torch_distributed"])
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=run_rank, args=(rank, size, works, folder, ends)) for rank in range(size)]
        for one in processes:
            one.start()
        deadline = time.monotonic() + 2 * PATIENCE
        for one in processes:
            one.join(max(0.1, deadline - time.monotonic()))
            if one.is_alive():
                one.kill()
                one.join()
        paths = [Path(folder, str(rank)) for rank in range(size)]
        return [pickle.loads(path.read_bytes()) if path.exists() else None for path in paths]

"""Runs functions of a test on the ranks of a group: processes of this machine, which send over the loopback (gloo)."""

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


def run_rank(rank, size, works, folder, timeout, ends):
    """A work that raises is its traceback; the following works are done all the same."""
    torch.set_num_threads(1)
    posenc.set_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size, timeout=datetime.timedelta(seconds=timeout))
    found = {}
    for work in works:
        try:
            found[work.__name__] = work(rank, size)
        except Exception:
            found[work.__name__] = traceback.format_exc()
    Path(folder, str(rank)).write_bytes(pickle.dumps(found))
    if ends:  # a group that is broken cannot be left in order
        while len(os.listdir(folder)) < ends + 1:  # the store, and the ranks that do not die: nobody learns of a fault by another's exit
            time.sleep(0.02)
        os._exit(0)
    dist.destroy_process_group()


def ranks(works, size, timeout=60, ends=0):
    """What each rank returned, by the name of the work; None for a rank that ended. ends: how many ranks are left of a broken group."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    context = mp.get_context("forkserver")  # torch is loaded once
    context.set_forkserver_preload(["torch", "torch.distributed", "posenc", "posenc.torch", "posenc.torch_distributed"])
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=run_rank, args=(rank, size, works, folder, timeout, ends)) for rank in range(size)]
        for one in processes:
            one.start()
        deadline = time.monotonic() + 150
        for one in processes:
            one.join(max(0.1, deadline - time.monotonic()))
            if one.is_alive():
                one.kill()
        paths = [Path(folder, str(rank)) for rank in range(size)]
        return [pickle.loads(path.read_bytes()) if path.exists() else None for path in paths]

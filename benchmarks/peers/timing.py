"""How the scripts here time one launch on a GPU."""

import statistics
import time

import torch


def median_ms(work, cycles):
    """The median of seven launches, each after a pause and queued behind a kernel that waits for `cycles` of the GPU's clock, so
    that launching from Python does not count."""
    times = []
    for round_number in range(8):
        time.sleep(0.06)
        work()
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(cycles)
        before.record()
        work()
        after.record()
        after.synchronize()
        if round_number > 0:
            times.append(before.elapsed_time(after))
    return statistics.median(times)

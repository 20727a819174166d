"""Compares ring_simulation.py with rings that are run: 2 and 4 processes of this machine over the loopback (gloo), forward.

PYTHONPATH=build/release/python python3 benchmarks/ring_measured.py [--rounds 15]

Constants are measured: a ring's computation by one process while the others wait, and by all at once, without messages (which gives
the cores that they really share), and the latency, speed and processor time of messages while nobody computes. From these the simulation predicts
the time of whole rings. Constants and rings alternate, and medians are compared. Other work on the machine shows in both, but not
alike: run it on a quiet one.
"""

import argparse
import os
import statistics
import tempfile
import time

import posenc
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from posenc import _ranks
from posenc.torch import distributed

import ring_simulation as simulation

HEADS, FEATURES = 4, 64
CASES = [(ranks, tokens) for ranks in (2, 4) for tokens in (512, 1024)]  # tokens of a rank


class Still(_ranks.Carousel):
    """A ring whose keys stay where they are: computation alone."""

    def send(self, hops):
        pass

    def turn(self):
        pass


def inputs(tokens):
    made = torch.Generator().manual_seed(1)
    return [torch.randn(1, HEADS, tokens, FEATURES, generator=made) for _ in range(3)]


def attend(tensors):
    return distributed.context_parallel_attention(*tensors, posenc.Rope(dims=FEATURES), method="ring", causal=True, check=False)


def timed(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def alone(rank, action):
    """Of rank 0, while the others wait without using a core."""
    took = timed(action) if rank == 0 else 0.0
    dist.barrier()
    return took


def message(size):
    block = _ranks.Carousel(torch.zeros(size, dtype=torch.uint8), None)
    dist.barrier()

    def there():
        block.send(1)
        block.turn()

    before = time.process_time()
    took = timed(there)
    return took, time.process_time() - before  # of all threads: gloo has some


def together(action):
    dist.barrier()
    return timed(action)


def measure(rank, ranks, tokens, rounds):
    """Medians of (a ring's computation by one process, by all at once, a small message, one of keys and values, its work, the whole ring)."""
    from posenc import _methods

    tensors, size = inputs(tokens), 2 * 4 * HEADS * FEATURES * tokens
    found = []
    for _ in range(rounds + 2):
        travelling, _methods.Carousel = _methods.Carousel, Still
        compute = alone(rank, lambda: attend(tensors)), together(lambda: attend(tensors))
        _methods.Carousel = travelling
        found.append((*compute, message(64)[0], *message(size), together(lambda: attend(tensors))))
    mine = torch.tensor(found[2:], dtype=torch.float64)  # the first rounds make connections and threads
    every = _ranks.gather(mine, None)
    of_ranks = [every[:, :, column].max(0).values if column != 4 else every[:, :, column].mean(0) for column in range(6)]  # they share the work
    return [statistics.median(one.tolist()) for one in of_ranks]


def run_rank(rank, ranks, tokens, rounds, folder, results):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    posenc.set_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    found = measure(rank, ranks, tokens, rounds)
    if rank == 0:
        results.put(found)
    dist.barrier()
    dist.destroy_process_group()


def predict(ranks, tokens, compute, cores, small, large, work):
    layer = simulation.Layer(ranks * tokens, HEADS, HEADS, FEATURES, 4)
    machine = simulation.Machine(flops=layer.operations(ranks) / compute, link=layer.step_bytes(ranks) / max(1e-9, large - small), latency=small, copy=float("inf"),
                                 cores=cores, message_work=work, per_node=ranks)
    return simulation.ring(layer, machine, ranks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}, medians of {given.rounds} rounds\n"
          "ranks  tokens of a rank  cores shared  computation  small message  message  its work  ring: predicted  measured  difference")
    worst = 0.0
    for ranks, tokens in CASES:
        results = mp.get_context("spawn").SimpleQueue()
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(run_rank, (ranks, tokens, given.rounds, folder, results), ranks)
        compute, at_once, small, large, work, measured = results.get()
        cores = ranks * compute / at_once
        predicted = predict(ranks, tokens, compute, cores, small, large, work)
        worst = max(worst, abs(predicted / measured - 1))
        print(f"{ranks:5}  {tokens:16}  {cores:12.2f}  " + "  ".join(f"{1e3 * x:8.2f} ms" for x in (compute, small, large, work, predicted, measured))
              + f"  {100 * (predicted / measured - 1):+6.1f}%", flush=True)
    print(f"largest difference {100 * worst:.1f}%")


if __name__ == "__main__":
    main()

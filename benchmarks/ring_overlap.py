"""How much of a ring's message time is hidden behind computation: two processes of this machine, on its GPU if it has one, over gloo.

PYTHONPATH=build/release/python python3 benchmarks/ring_overlap.py [--device cpu] [--tokens 8192] [--trace ring.json]

A message counts from when it is begun until it has arrived. What of that time this rank computes in is hidden. On a GPU, kernels are
timed by events of its stream; copies between its memory and the host's, which only gloo needs, are not part of a message. The trace is
in the format that chrome://tracing and Perfetto read.
"""

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from pathlib import Path

import posenc
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from posenc import _methods, _ranks
from posenc.torch import distributed


class Recorder:
    """Intervals of messages and of computation, in seconds on this process's clock."""

    def __init__(self, device):
        self.device, self.messages, self.computed, self.events = device, [], [], []
        self.attention, self.send, self.turn = _methods.plain_attention, _ranks.Carousel.send, _ranks.Carousel.turn
        _methods.plain_attention = self.attend
        recorder = self
        _ranks.Carousel.send = lambda carousel, hops: recorder.begin(carousel, hops)
        _ranks.Carousel.turn = lambda carousel: recorder.end(carousel)

    def start(self):
        self.messages, self.computed, self.events = [], [], []
        if self.device == "cuda":
            torch.cuda.synchronize()
            self.first = torch.cuda.Event(enable_timing=True)
            self.first.record()
            torch.cuda.synchronize()
        self.since = time.perf_counter()

    def now(self):
        return time.perf_counter() - self.since

    def attend(self, *tensors, **options):
        if self.device == "cuda":
            both = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            both[0].record()
            self.attention(*tensors, **options)
            both[1].record()
            self.events.append(both)
        else:
            begin = self.now()
            self.attention(*tensors, **options)
            self.computed.append((begin, self.now()))

    def begin(self, carousel, hops):
        self.send(carousel, hops)
        begin, requests = self.now(), carousel.requests

        def arrive():  # a request may be waited for once
            for request in requests:
                request.wait()
            self.messages.append((begin, self.now()))

        carousel.requests, carousel.arriving = [], threading.Thread(target=arrive)
        carousel.arriving.start()

    def end(self, carousel):
        carousel.arriving.join()
        self.turn(carousel)

    def stop(self):
        if self.device == "cuda":
            torch.cuda.synchronize()
            self.computed = [tuple(self.first.elapsed_time(one) / 1e3 for one in both) for both in self.events]


def hidden(messages, computed):
    """(seconds of messages, those in which something was computed); what is computed does not overlap."""
    total = sum(end - begin for begin, end in messages)
    both = sum(max(0.0, min(end, last) - max(begin, first)) for begin, end in messages for first, last in computed)
    return total, both


def work(rank, given, folder):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    posenc.set_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    made = torch.Generator().manual_seed(rank)
    kind = torch.bfloat16 if given.device == "cuda" else torch.float32
    q, k, v = (torch.randn(1, given.heads, given.tokens, 128, generator=made).to(given.device, kind) for _ in range(3))
    recorder, found = Recorder(given.device), []
    for _ in range(given.rounds + 1):
        dist.barrier()
        recorder.start()
        distributed.context_parallel_attention(q, k, v, posenc.Rope(dims=128), method="ring", causal=True, check=False)
        recorder.stop()
        found.append((*hidden(recorder.messages, recorder.computed), recorder.messages, recorder.computed))
    Path(folder, f"found-{rank}").write_text(json.dumps(found[1:]), encoding="utf-8")  # the first one makes connections
    dist.barrier()
    dist.destroy_process_group()


def write_trace(path, found):
    events = [{"name": name, "ph": "X", "pid": rank, "tid": name, "ts": 1e6 * begin, "dur": 1e6 * (end - begin)}
              for rank, rounds in found for name, spans in zip(("message", "attention"), rounds[-1][2:]) for begin, end in spans]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events}, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--tokens", type=int, help="of a rank; 16384 on a GPU, 1024 without")
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--trace")
    given = parser.parse_args()
    given.tokens = given.tokens or (16384 if given.device == "cuda" else 1024)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (given, folder), 2)
        found = [(rank, json.loads(Path(folder, f"found-{rank}").read_text(encoding="utf-8"))) for rank in range(2)]
    for rank, rounds in found:
        total, both = (statistics.median(one[i] for one in rounds) for i in range(2))
        attention = statistics.median(sum(end - begin for begin, end in one[3]) for one in rounds)
        print(f"rank {rank}, {given.device}: messages {1e3 * total:.2f} ms, of which {100 * both / total:.0f}% hidden; attention {1e3 * attention:.2f} ms")
    if given.trace:
        write_trace(given.trace, found)


if __name__ == "__main__":
    main()

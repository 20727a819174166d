"""Trains one layer on a sequence that no process may hold: torchrun --nproc_per_node 4 08_long_context.py

Each rank has a shard of the tokens, and may use less memory than the whole sequence needs. The task is to repeat the token from 50
positions before, so ranks need each other's keys. Without torchrun, it starts four ranks itself."""

import os
import resource
import tempfile

import posenc
import torch
import torch.distributed as dist
from posenc.torch import distributed

TOKENS, WIDTH, HEADS, WORDS, LAG, WINDOW = 65536, 64, 4, 64, 50, 128
ALLOWED = 340_000_000  # bytes; a step over the whole sequence takes more


def word(positions):
    """Every rank makes its own tokens, each a function of its position."""
    return (positions * 2654435761 >> 7) % WORDS


def train():
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    ids = distributed.position_ids(TOKENS)
    inputs, targets = word(ids), word((ids - LAG).clamp(min=0))
    embed, project, read = torch.nn.Embedding(WORDS, WIDTH), torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WORDS)
    parameters = [*embed.parameters(), *project.parameters(), *read.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    rope = posenc.Rope(dims=WIDTH // HEADS, base=100)
    used = 4096 * int(open("/proc/self/statm").read().split()[5])  # data and stack, as the limit counts them
    resource.setrlimit(resource.RLIMIT_DATA, (used + ALLOWED, resource.RLIM_INFINITY))
    losses = []
    for _ in range(8):
        q, k, v = project(embed(inputs)).view(1, -1, 3, HEADS, WIDTH // HEADS).unbind(2)
        mixed = distributed.context_parallel_attention(q, k, v, rope, method="ring", causal=True, window=WINDOW, order="bshd")
        loss = torch.nn.functional.cross_entropy(read(mixed.reshape(-1, WIDTH)), targets)
        optimizer.zero_grad()
        loss.backward()
        for one in parameters:  # each rank has the gradient of its own tokens
            dist.all_reduce(one.grad)
            one.grad /= size
        optimizer.step()
        losses.append(loss.item())
    if rank == 0:
        print(f"{size} ranks, {TOKENS} tokens: the loss falls:", losses[-1] < 0.8 * losses[0])


def start(rank, folder):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # this machine only
    dist.init_process_group("gloo", init_method=f"file://{folder}/ranks", rank=rank, world_size=4)
    train()


if __name__ == "__main__":
    if "RANK" in os.environ:  # torchrun
        dist.init_process_group("gloo")
        train()
    else:
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(start, (folder,), 4)
# prints:
# 4 ranks, 65536 tokens: the loss falls: True

"""Simulates attention over a sequence that is split between ranks, event by event: how long a layer takes, and what limits it.

ring_simulation.py --tokens 16e6 --ranks 64 [--method ring|all-to-all] …    one case, with its closed form
ring_simulation.py --table                                                 the table of docs/guide/scaling.md

Ranks compute and send as posenc.torch.distributed does: in a ring, the keys and values of the next step travel while this step is
computed; in all-to-all, q, k and v travel before, and the result after. Links and cores are shared equally by whatever uses them.
"""

import argparse
import heapq
import random
from dataclasses import dataclass, field


# --- events -------------------------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self):
        self.now, self.count, self.events = 0.0, 0, []

    def at(self, time, action):
        self.count += 1  # events of one moment happen in the order in which they were made
        heapq.heappush(self.events, (time, self.count, action))

    def run(self):
        while self.events:
            self.now, _, action = heapq.heappop(self.events)
            action()


class Pool:
    """A link or a set of cores: `capacity` per second for all, at most `limit` for one; shared equally."""

    def __init__(self, clock, capacity, limit=None):
        self.clock, self.capacity, self.limit = clock, capacity, limit or capacity
        self.jobs, self.since, self.version = [], 0.0, 0

    def rate(self):
        return min(self.limit, self.capacity / len(self.jobs)) if self.jobs else 0.0

    def start(self, work, action):
        self.advance()
        self.jobs.append([work, action])
        self.plan()

    def advance(self):
        done = (self.clock.now - self.since) * self.rate()
        for job in self.jobs:
            job[0] -= done
        self.since = self.clock.now

    def plan(self):
        """The next job to end; plans made before are void."""
        self.version += 1
        if self.jobs:
            version, shortest = self.version, min(self.jobs, key=lambda job: job[0])
            self.clock.at(self.clock.now + max(0.0, shortest[0]) / self.rate(), lambda: self.finish(version, shortest))

    def finish(self, version, job):
        if version != self.version:
            return
        self.advance()
        self.jobs.remove(job)
        self.plan()
        job[1]()


class Latch:
    """Acts when it has been counted down."""

    def __init__(self, count, action):
        self.count, self.action = count, action

    def down(self):
        self.count -= 1
        if self.count == 0:
            self.action()


# --- machines --------------------------------------------------------------------------------------------------------------------


@dataclass
class Machine:
    """Speeds in operations and bytes per second, times in seconds."""

    flops: float = 741e12  # attention of one rank; measured on an H200 (benchmarks/README.md)
    copy: float = 4.26e12  # reading and writing memory; measured on the same
    link: float = 450e9  # of a GPU within its node, in one direction: NVLink 4, 900 GB/s in both
    network: float = 50e9  # of a network card: 400 Gbit/s
    cards: int = 8  # network cards of a node
    per_node: int = 8
    latency: float = 10e-6  # of a message, with its launch; assumed
    message_work: float = 0.0  # seconds of a core that a message takes from each end; 0: hardware moves it
    cores: float = 0  # that ranks of a node share, each needing one; 0: as many as ranks
    jitter: float = 0.0  # standard deviation of the logarithm of each step's time
    stragglers: dict = field(default_factory=dict)  # rank → how many times slower it is
    seed: int = 1


@dataclass
class Layer:
    """One layer's attention, causal, zig-zag: each step of a ring has the same work."""

    tokens: float = 1e6
    heads: int = 32
    key_heads: int = 8
    features: int = 128
    bytes: int = 2

    def operations(self, ranks):
        """Of one rank: half of all pairs of tokens."""
        return 4 * self.features * self.heads * self.tokens * self.tokens / 2 / ranks

    def step_bytes(self, ranks):
        """Keys and values of one shard."""
        return 2 * self.bytes * self.features * self.key_heads * self.tokens / ranks

    def merged_bytes(self, ranks):
        """Read and written to merge one step's part: out in float32 twice, the part once."""
        return (8 + self.bytes) * self.features * self.heads * self.tokens / ranks

    def memory(self, method, ranks):
        """Bytes of a rank, forward: q, k, v and the result; in a ring two messages, out in float32 and a part; else the same for some heads."""
        given = self.bytes * (2 * self.heads + 2 * self.key_heads)
        more = 4 * self.bytes * self.key_heads + (4 + self.bytes) * self.heads if method == "ring" else given
        return (given + more) * self.features * self.tokens / ranks

    def exchange_bytes(self, ranks):
        """(q, k and v; out) that a rank sends to others in all-to-all."""
        away = self.bytes * self.features * self.tokens / ranks * (ranks - 1) / ranks
        return away * (self.heads + 2 * self.key_heads), away * self.heads


class Cluster:
    """Ranks with their cores and links."""

    def __init__(self, machine, ranks):
        self.clock, self.machine, self.ranks = Clock(), machine, ranks
        self.random = random.Random(machine.seed)
        nodes = -(-ranks // machine.per_node)
        self.cores = [Pool(self.clock, machine.cores or machine.per_node, 1.0) for _ in range(nodes)]
        self.links = [Pool(self.clock, machine.link) for _ in range(ranks)]
        self.cards = [Pool(self.clock, machine.network * machine.cards, machine.network) for _ in range(nodes)]

    def node(self, rank):
        return rank // self.machine.per_node

    def compute(self, rank, seconds, action):
        slower = self.machine.stragglers.get(rank, 1.0) * (self.random.lognormvariate(0, self.machine.jitter) if self.machine.jitter else 1.0)
        self.cores[self.node(rank)].start(seconds * slower, action)

    def send(self, rank, to, size, action):
        inside = self.node(rank) == self.node(to)
        pool = self.links[rank] if inside else self.cards[self.node(rank)]
        self.clock.at(self.clock.now + self.machine.latency, lambda: pool.start(size, action))


def step_time(layer, machine, ranks):
    """Of one rank's computation in a step of a ring; with one rank, nothing is merged."""
    return layer.operations(ranks) / ranks / machine.flops + (layer.merged_bytes(ranks) / machine.copy if ranks > 1 else 0.0)


# --- methods --------------------------------------------------------------------------------------------------------------------


def ring(layer, machine, ranks):
    """Seconds until the last rank has its result."""
    cluster, compute = Cluster(machine, ranks), step_time(layer, machine, ranks)
    ends = [0.0] * ranks
    arrived = [[Latch(3, lambda rank=rank, step=step: begin(rank, step + 1)) for step in range(ranks - 1)] for rank in range(ranks)]

    def begin(rank, step):
        if step == ranks - 1:
            cluster.compute(rank, compute, lambda: ends.__setitem__(rank, cluster.clock.now))
            return
        after, to = arrived[rank][step], (rank + 1) % ranks

        def sent():
            after.down()
            arrived[to][step].down()

        cluster.send(rank, to, layer.step_bytes(ranks), sent)  # three must happen: sent, received, computed
        cluster.compute(rank, compute + machine.message_work, after.down)

    for rank in range(ranks):
        begin(rank, 0)
    cluster.clock.run()
    return max(ends)


def all_to_all(layer, machine, ranks):
    """The same. Every rank waits for all others before and after it computes."""
    cluster, compute = Cluster(machine, ranks), layer.operations(ranks) / machine.flops
    before, after = layer.exchange_bytes(ranks)
    ends = []

    def exchange(size, action):
        everybody = Latch(2 * ranks, action)
        inside = (min(machine.per_node, ranks) - 1) / max(1, ranks - 1)
        for rank in range(ranks):
            cluster.send(rank, rank, size * inside, everybody.down)
            cluster.clock.at(cluster.clock.now + machine.latency,
                             lambda rank=rank: cluster.cards[cluster.node(rank)].start(size * (1 - inside), everybody.down))

    def computed():
        exchange(after, lambda: ends.append(cluster.clock.now))

    computing = Latch(ranks, computed)
    exchange(before, lambda: [cluster.compute(rank, compute, computing.down) for rank in range(ranks)])
    cluster.clock.run()
    return ends[0]


METHODS = {"ring": ring, "all-to-all": all_to_all}


def closed_form(method, layer, machine, ranks):
    """Seconds, without jitter, stragglers and shared cores: what the simulation must give."""
    alone = layer.operations(ranks) / machine.flops
    crosses, within = ranks > machine.per_node, min(machine.per_node, ranks)
    if method == "ring":
        slowest = machine.latency + layer.step_bytes(ranks) / (min(machine.link, machine.network) if crosses else machine.link)
        compute = step_time(layer, machine, ranks)
        return (ranks - 1) * max(compute + machine.message_work, slowest) + compute
    inside = (within - 1) / max(1, ranks - 1)
    network = min(machine.network, machine.network * machine.cards / within)
    message = lambda size: machine.latency + max(size * inside / machine.link, size * (1 - inside) / network)
    return sum(message(size) for size in layer.exchange_bytes(ranks)) + alone


# --- failures --------------------------------------------------------------------------------------------------------------------


def run_with_failures(steps, step_time, failures, checkpoint_every, checkpoint_time, restart_time):
    """Seconds of a training run: at each failure the work since the last checkpoint is lost, and all ranks restart.

    failures: when a rank fails, in seconds since the start, in order; those during a restart do no further harm.
    """
    now, done, saved, pending = 0.0, 0, 0, list(failures)
    while done < steps:
        saves = (done + 1) % checkpoint_every == 0
        ends = now + step_time + (checkpoint_time if saves else 0)
        while pending and pending[0] < now:
            pending.pop(0)
        if pending and pending[0] < ends:
            now, done = pending.pop(0) + restart_time, saved
            continue
        now, done = ends, done + 1
        saved = done if saves else saved
    return now


def failures_of(ranks, hours_between, seconds, seed):
    """Of a rank once in `hours_between` hours, at random."""
    drawn, now, found = random.Random(seed), 0.0, []
    while hours_between and (now := now + drawn.expovariate(ranks / (hours_between * 3600))) < seconds:
        found.append(now)
    return found


# --- the command line ------------------------------------------------------------------------------------------------------------


def limit_of(method, layer, ranks, memory=141e9):
    """Why a method cannot be used; None: it can. memory: bytes of a GPU, here an H200."""
    if method == "all-to-all" and layer.key_heads % ranks:
        return "heads"
    return "memory" if layer.memory(method, ranks) > memory else None


def print_table(machine):
    print("| tokens | GPUs | tokens per GPU | ring | all-to-all |\n|---|---|---|---|---|")
    for name, tokens in (("1 M", 2**20), ("16 M", 2**24), ("128 M", 2**27)):
        for ranks in (8, 64, 256, 1024):
            layer, cells = Layer(tokens), []
            for method in ("ring", "all-to-all"):
                time, alone = closed_form(method, layer, machine, ranks), layer.operations(ranks) / machine.flops
                seconds = f"{time:,.0f}" if time >= 100 else f"{time:.2g}"
                cells.append(limit_of(method, layer, ranks) or f"{seconds} s, {100 * alone / time:.0f}%")
            print(f"| {name} | {ranks} | {tokens // ranks:,} | {cells[0]} | {cells[1]} |")


def pairs(text):
    return dict((int(rank), float(factor)) for rank, factor in (one.split(":") for one in text.split(",") if one))


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--method", choices=METHODS, default="ring")
    parser.add_argument("--ranks", type=int, default=8)
    for group in (Layer(), Machine()):
        for name, value in vars(group).items():
            kind = pairs if isinstance(value, dict) else float if isinstance(value, float) else int
            parser.add_argument("--" + name.replace("_", "-"), type=kind, default=value, metavar="RANK:FACTOR,…" if kind is pairs else None)
    for name, value in (("steps", 0), ("layers", 32), ("checkpoint-every", 100), ("checkpoint-time", 30.0), ("restart-time", 300.0),
                        ("hours-between-failures", 0.0)):
        parser.add_argument("--" + name, type=type(value), default=value)
    return parser.parse_args(arguments)


def main(arguments=None):
    given = parse(arguments)
    machine = Machine(**{name: getattr(given, name) for name in vars(Machine())})
    if given.table:
        return print_table(machine)
    layer = Layer(**{name: getattr(given, name) for name in vars(Layer())})
    time, alone = METHODS[given.method](layer, machine, given.ranks), layer.operations(given.ranks) / machine.flops
    print(f"{given.method}, {layer.tokens:.4g} tokens, {given.ranks} ranks: {time:.4g} s a layer, of which computation {100 * alone / time:.1f}%; "
          f"closed form {closed_form(given.method, layer, machine, given.ranks):.4g} s")
    if given.steps:
        step = given.layers * time
        failures = failures_of(given.ranks, given.hours_between_failures, 100 * given.steps * step, machine.seed)
        total = run_with_failures(given.steps, step, failures, given.checkpoint_every, given.checkpoint_time, given.restart_time)
        print(f"{given.steps} steps of {given.layers} layers, forward: {total:.4g} s, of which {100 * given.steps * step / total:.1f}% steps that counted")
    return None


if __name__ == "__main__":
    main()

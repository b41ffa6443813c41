"""Policies of an audit written plainly, and the best schedules of a small log by brute force."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence

from schedgap.benchmarks.importers.server_tables import TraceServer
from schedgap.benchmarks.importers.traces import TraceJob
from schedgap.tools.audit.policies import EASY, STRICT, Nodes, Shapes, Work

Piece = tuple[int, int, int]


def pieces_of(k: int, shapes: Shapes) -> list[Piece]:
    """GPUs, processors and memory of each piece of a request."""
    rows = range(int(shapes.first[k]), int(shapes.first[k + 1]))
    return [(int(shapes.gpus[q]), int(shapes.processors[q]), int(shapes.memory[q])) for q in rows]


def plain_schedule(work: Work, shapes: Shapes, nodes: Nodes, rank: Sequence[float], mode: int) -> list[int]:
    """Starts, from the words of the policies: every moment looks at every job that waits, in order."""
    everything = list(zip(nodes.gpus.tolist(), nodes.processors.tolist(), nodes.memory.tolist(), strict=True))
    running: list[tuple[int, int, list[int]]] = []
    starts: dict[int, int] = {}
    waiting = sorted(range(len(work.arrival)), key=lambda j: rank[j])

    def less(room: list[tuple[int, ...]], j: int, on: Sequence[int], sign: int = -1) -> list[tuple[int, ...]]:
        new = list(room)
        for piece, n in zip(pieces_of(int(work.shape[j]), shapes), on, strict=True):
            new[n] = tuple(a + sign * b for a, b in zip(new[n], piece, strict=True))
        return new

    def find(j: int, free: list[tuple[int, ...]], limit: list[tuple[int, ...]]) -> list[int] | None:
        mask = shapes.allowed[shapes.mask[work.shape[j]]]
        on: list[int] = []
        for piece in pieces_of(int(work.shape[j]), shapes):
            fits = [
                (int(nodes.order[n]), free[n][0], n)
                for n in range(len(free))
                if mask[n]
                and n not in on
                and all(a >= b and c >= b for a, b, c in zip(free[n], piece, limit[n], strict=True))
            ]
            if not fits:
                return None
            on.append(min(fits)[2])
        return on

    moment, head, shadow, extra = -1, None, 0, list[tuple[int, ...]]()
    while waiting:
        events = [end for end, _, _ in running] + [int(work.arrival[j]) for j in waiting]
        moment = min(time for time in events if time > moment)
        running = [row for row in running if row[0] > moment]
        free: list[tuple[int, ...]] = list(everything)
        for _, j, on in running:
            free = less(free, j, on)
        blocked = False
        for j in [j for j in waiting if work.arrival[j] <= moment]:
            late = mode == EASY and blocked and moment + work.length[j] > shadow
            on = None if mode == STRICT and blocked else find(j, free, extra if late else free)
            if on is None:
                if not blocked and mode == EASY and (head != j or shadow <= moment):
                    head, shadow, extra = j, 2**62, list(free)
                    for end in sorted({end for end, _, _ in running}):
                        for other_end, other, other_on in running:
                            if other_end == end:
                                extra = less(extra, other, other_on, 1)
                        reserved = find(j, extra, extra)
                        if reserved is not None:
                            shadow, extra = end, less(extra, j, reserved)
                            break
                blocked = True
                continue
            if late:
                extra = less(extra, j, on)
            free = less(free, j, on)
            starts[j] = moment
            running.append((moment + int(work.length[j]), j, on))
        waiting = [j for j in waiting if j not in starts]
    return [starts[j] for j in range(len(work.arrival))]


def small_log(seed: int, count: int) -> tuple[list[TraceJob], list[TraceServer]]:
    """A log with types, nodes and shapes, its record made by starting jobs in a random order after random pauses."""
    drawn = random.Random(seed)
    kinds = drawn.choice([("a", "b"), ("a", "a"), ("a", "a", "b"), ("a", "b", "b")])
    servers = [
        TraceServer(f"n{n}", drawn.choice([1, 2, 2]), kind, drawn.choice([2, 4]), 8) for n, kind in enumerate(kinds)
    ]
    asked: list[tuple[str | None, dict[str, int], int]] = []
    while len(asked) < count:
        kind = drawn.choice([None, None, *kinds])
        room = [server for server in servers if kind in (None, server.kind)]
        chosen = drawn.sample(room, drawn.choice([1, 1, 1, min(2, len(room))]))
        shape = {server.id: drawn.randint(1, server.gpus) for server in chosen}
        asked.append((kind, shape, drawn.choice([1, 1, 2, 3, 4])))
    order = drawn.sample(range(count), count)
    taken: list[tuple[int, int, dict[str, int], dict[str, int]]] = []
    jobs: dict[int, TraceJob] = {}
    for k in order:
        kind, shape, length = asked[k]
        gpus = sum(shape.values())
        processors = gpus * drawn.choice([0, 1])
        part = {node: -(-processors * amount // gpus) for node, amount in shape.items()}
        arrival = drawn.randrange(4)
        start = arrival + drawn.choice([0, 0, 0, 1, 2])
        while any(_over(servers, taken, t, shape, part) for t in range(start, start + length)):
            start += 1
        taken.append((start, start + length, shape, part))
        times = {
            "arrival": float(arrival),
            "start": float(start),
            "end": float(start + length),
            "duration": float(length),
        }
        held = tuple(shape.items())
        jobs[k] = TraceJob(k, f"j{k}", gpus, nodes=held, asked=kind, processors=processors, memory=0, **times)  # type: ignore[arg-type]
    return [jobs[k] for k in range(count)], servers


def _over(
    servers: Sequence[TraceServer],
    taken: Sequence[tuple[int, int, dict[str, int], dict[str, int]]],
    moment: int,
    shape: Mapping[str, int],
    part: Mapping[str, int],
) -> bool:
    running = [row for row in taken if row[0] <= moment < row[1]]
    for server in servers:
        gpus = sum(row[2].get(server.id, 0) for row in running) + shape.get(server.id, 0)
        processors = sum(row[3].get(server.id, 0) for row in running) + part.get(server.id, 0)
        if gpus > server.gpus or processors > (server.processors or 0):
            return True
    return False


def best_means(jobs: Sequence[TraceJob], servers: Sequence[TraceServer]) -> tuple[float, float]:
    """The least mean time from submission to end, and the least weighted one, of schedules that keep all of a log.

    Some order of the jobs, each started as early as its nodes allow, gives the best of both: all orders and all nodes
    are gone through.
    """
    sizes = [(server.gpus, server.processors or 0) for server in servers]
    lengths = [int(job.duration or 0) for job in jobs]
    areas = [job.gpus * length for job, length in zip(jobs, lengths, strict=True)]
    ways = [list(_ways(job, servers)) for job in jobs]
    last = 4 + sum(lengths)
    best = [float("inf"), float("inf")]

    def put(order: tuple[int, ...], free: list[list[tuple[int, int]]], mean: int, weighted: int) -> None:
        if mean >= best[0] and weighted >= best[1]:
            return
        if not order:
            best[:] = [min(best[0], mean), min(best[1], weighted)]
            return
        j = order[0]
        for way in ways[j]:
            start = int(jobs[j].arrival)
            while any(free[t][n][q] < way[n][q] for t in range(start, start + lengths[j]) for n in way for q in (0, 1)):
                start += 1
            new = list(free)
            for t in range(start, start + lengths[j]):
                new[t] = [(g - way[n][0], p - way[n][1]) if n in way else (g, p) for n, (g, p) in enumerate(free[t])]
            took = start + lengths[j] - int(jobs[j].arrival)
            put(order[1:], new, mean + took, weighted + areas[j] * took)

    for order in itertools.permutations(range(len(jobs))):
        put(order, [list(sizes) for _ in range(2 * last)], 0, 0)
    return best[0] / len(jobs), best[1] / sum(areas)


def _ways(job: TraceJob, servers: Sequence[TraceServer]) -> Iterator[dict[int, tuple[int, int]]]:
    """GPUs and processors on nodes that keep a job's type and shape."""
    amounts = [amount or 0 for _, amount in job.nodes]
    seen = set()
    for nodes in itertools.permutations(range(len(servers)), len(amounts)):
        way = dict(zip(nodes, amounts, strict=True))
        if any(job.asked not in (None, servers[n].kind) or amount > servers[n].gpus for n, amount in way.items()):
            continue
        if (key := tuple(sorted(way.items()))) not in seen:
            seen.add(key)
            yield {n: (amount, -(-(job.processors or 0) * amount // job.gpus)) for n, amount in way.items()}

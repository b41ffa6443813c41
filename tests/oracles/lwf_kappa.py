"""Algorithm 1 of paper 001, LWF-kappa, from its text: which GPUs a job gets, given what is left to do on every GPU.

Lines are those of the printed algorithm. What it leaves open is taken as the page of ddl-cluster says: ties go to the
first GPU, and to the first server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Gpu = tuple[int, int]
"""Server, place on it."""


def lwf_kappa(
    wanted: int,
    memory: int,
    kappa: int,
    sizes: Sequence[int],  # GPUs of each server
    rest: Mapping[Gpu, int],  # memory that is free
    load: Mapping[Gpu, int],  # L_g: remaining workload
) -> list[Gpu] | None:
    """G(J), or None where the available GPUs are too few (line 24)."""
    every = [(s, g) for s, size in enumerate(sizes) for g in range(size)]
    if wanted <= kappa:  # line 4
        available = [gpu for gpu in every if rest[gpu] >= memory]  # line 5
        if len(available) < wanted:  # line 6
            return None
        return sorted(available, key=lambda gpu: (load[gpu], gpu))[:wanted]  # line 7
    total = {s: sum(load[s, g] for g in range(size)) for s, size in enumerate(sizes)}  # L_S
    servers = sorted(range(len(sizes)), key=lambda s: (total[s], s))  # line 13
    queue: list[Gpu] = []  # line 14
    for s in servers:  # line 15
        enough = [(s, g) for g in range(sizes[s]) if rest[s, g] >= memory]
        queue += sorted(enough, key=lambda gpu: (load[gpu], gpu))  # line 16
    return queue[:wanted] if len(queue) >= wanted else None  # lines 18 to 22


def adadual(new: float, old: Sequence[Sequence[float]], pair: float) -> bool:
    """Algorithm 2: whether a message starts; `old` has the remaining messages by server, `pair` is 2 (b + eta) / b.

    A server's tasks are collected only where there are more of them than on every server before (line 5 is strict).
    """
    most, collected = 0, list[float]()  # line 3
    for server in old:  # line 4
        if len(server) > most:  # line 5
            most = len(server)  # line 6
            collected += server  # line 7
    if most == 0:  # line 10
        return True
    if most == 1:  # line 13
        return new * pair < collected[0]  # line 15
    return False  # line 21

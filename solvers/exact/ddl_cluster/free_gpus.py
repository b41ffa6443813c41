"""What is free of a cluster in which jobs hold their GPUs, as time goes on."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Sequence
from copy import copy

from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu


class FreeGpus:
    """GPUs, with when they became free, the first ones first, and links that are free now."""

    def __init__(self, instance: DdlClusterInstance, wide: Sequence[bool]) -> None:
        self.instance, self.wide = instance, wide
        self.sizes = [server.gpus for server in instance.servers]
        self.idle = [[(0, g) for g in range(size)] for size in self.sizes]
        self.link = [True] * len(self.sizes)
        self.whole = sum(self.sizes)
        self.with_idle: list[list[int]] = [[] for _ in range(max(self.sizes) + 1)]
        for s, size in enumerate(self.sizes):
            self.with_idle[size].append(s)

    def copy(self) -> FreeGpus:
        """The same, to be changed apart."""
        other = copy(self)
        other.idle, other.link, other.with_idle = self.idle[:], self.link[:], [own[:] for own in self.with_idle]
        return other

    def _change(self, s: int, idle: list[tuple[int, int]], link: bool) -> None:
        """Set what is free on a server."""
        size = self.sizes[s]
        before = len(self.idle[s])
        if self.link[s] and before == size:
            self.whole -= size
        if link and len(idle) == size:
            self.whole += size
        if len(idle) != before:
            self.with_idle[before].remove(s)
            insort(self.with_idle[len(idle)], s)
        self.idle[s], self.link[s] = idle, link

    def fits(self, j: int) -> bool:
        """Whether a job can begin now."""
        given, need = self.instance.given[j], self.instance.jobs[j].gpus
        if given is not None:
            links = not self.wide[j] or all(self.link[s] for s, _ in given)
            return links and all(any(g == other for _, other in self.idle[s]) for s, g in given)
        return self.whole >= need if self.wide[j] else any(self.with_idle[need:])

    def hold(self, j: int) -> tuple[Gpu, ...]:
        """The GPUs of a job that fits: of the server with the least room, or of whole servers, the first ones."""
        held, need = self.instance.given[j], self.instance.jobs[j].gpus
        if held is None and self.wide[j]:
            held = ()
            for s, size in enumerate(self.sizes):
                if self.link[s] and len(self.idle[s]) == size:
                    held += tuple((s, g) for g in range(size))[: need - len(held)]
        elif held is None:
            s = next(servers[0] for servers in self.with_idle[need:] if servers)
            held = tuple((s, g) for g in sorted(g for _, g in self.idle[s][:need]))
        for s, taken in self._by_server(j, held):
            self._change(s, [own for own in self.idle[s] if own[1] not in taken], self.link[s] and not self.wide[j])
        return held

    def free(self, j: int, held: Iterable[Gpu], now: int) -> None:
        """A job has ended."""
        for s, taken in self._by_server(j, held):
            self._change(s, sorted([*self.idle[s], *((now, g) for g in taken)]), self.link[s] or self.wide[j])

    def _by_server(self, j: int, held: Iterable[Gpu]) -> Iterable[tuple[int, Collection[int]]]:
        """What a job takes of each server: all of it where it is wide and its GPUs are not given."""
        by_server: dict[int, Collection[int]] = {}
        for s, g in held:
            by_server[s] = [*by_server.get(s, ()), g]
        if self.wide[j] and self.instance.given[j] is None:
            by_server = {s: range(self.sizes[s]) for s in by_server}
        return by_server.items()

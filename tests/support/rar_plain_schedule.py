"""The schedule generation scheme of rar-ddls written out slot by slot: slow, obvious, nothing compiled."""

from __future__ import annotations

from typing import Any

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table
from schedgap.formulations.rar_ddls.schedule import (
    CONSIDERATE,
    CROSS_ANY,
    HEEDLESS,
    LARGEST_FIRST,
    NEVER_CROSS,
    QUIET,
    ROOMY,
    SHARED_ROOMY,
    UNSHARED_FILL,
    UNSHARED_ROOMY,
    UNSHARED_TIGHT,
    Choices,
)

Plan = tuple[dict[str, int], dict[str, dict[str, int]]]


class PlainSchedule:
    """One list schedule; ``run`` gives start slots and placements, or None where some job stalls for ever."""

    def __init__(self, instance: RarDdlsInstance, choices: Choices, care: int, slack: float, second: int) -> None:
        self.instance, self.table = instance, rate_table(instance)
        self.choices: Any = Choices(*(array.tolist() for array in choices))
        self.care, self.slack, self.second = care, slack, second
        self.sizes = [server.gpus for server in instance.servers]
        self.idle = self.sizes[:]
        self.running: dict[int, dict[int, int]] = {}
        self.left = [job.iterations for job in instance.jobs]

    def rings(self, server: int) -> int:
        return sum(len(placed) > 1 and server in placed for placed in self.running.values())

    def rate(self, j: int, placed: dict[int, int], extra: int = 0) -> int:
        meets = max(self.rings(s) for s in placed) + extra if len(placed) > 1 else 0
        return int(self.table.rates(j, len(placed), meets))

    def run(self) -> Plan | None:
        start, placement = {}, {}
        now, waiting = 1, list(self.choices.order)
        while waiting or self.running:
            closed = set()
            for j in waiting[:]:
                if self.choices.kind[j] in closed:
                    continue
                placed = self.place(j)
                if placed:
                    waiting.remove(j)
                    self.running[j] = placed
                    for s, gpus in placed.items():
                        self.idle[s] -= gpus
                    name = self.instance.jobs[j].id
                    start[name] = now
                    placement[name] = {self.instance.servers[s].id: gpus for s, gpus in placed.items()}
                    continue
                closed.add(self.choices.kind[j])
                if self.choices.holds[j] and self.running:
                    break
            rates = {j: self.rate(j, placed) for j, placed in self.running.items()}
            slots = min((-(-self.left[j] // rate) for j, rate in rates.items() if rate), default=None)
            if slots is None:
                return None
            now += slots
            for j, rate in rates.items():
                self.left[j] -= rate * slots
                if self.left[j] <= 0:
                    for s, gpus in self.running.pop(j).items():
                        self.idle[s] += gpus
        return start, placement

    def place(self, j: int) -> dict[int, int]:
        gang, likes = self.instance.jobs[j].gpus, self.choices.likes[j]
        if likes < len(self.sizes) and self.idle[likes] >= gang:
            return {likes: gang}
        holding = [s for s, idle in enumerate(self.idle) if idle >= gang]
        if holding:
            return {min(holding, key=lambda s: self.idle[s]): gang}
        if self.choices.cross[j] == NEVER_CROSS and gang <= max(self.sizes):
            return {}
        for rule in (self.choices.rule[j], self.second):
            placed = self.spread(j, rule) if rule >= 0 else {}
            if not placed or self.care == HEEDLESS or self.tolerable(j, placed):
                return placed
        return {}

    def key(self, rule: int, gang: int, s: int, likes: int) -> tuple[float, ...]:
        idle, rings = self.idle[s], self.rings(s)
        return (
            s != likes,
            *{
                ROOMY: (-idle, rings),
                UNSHARED_ROOMY: (rings, -idle),
                UNSHARED_TIGHT: (rings > 0, idle),
                SHARED_ROOMY: (-rings, -idle),
                LARGEST_FIRST: (-idle,),
                QUIET: (rings * (gang + self.sizes[s] + 1) - idle,),
                UNSHARED_FILL: (rings, -idle),
            }[rule],
            s,
        )

    def spread(self, j: int, rule: int) -> dict[int, int]:
        left = gang = self.instance.jobs[j].gpus
        likes = self.choices.likes[j]
        ranked = sorted((s for s, idle in enumerate(self.idle) if idle), key=lambda s: self.key(rule, gang, s, likes))
        placed: dict[int, int] = {}
        while ranked and left:
            s = ranked.pop(0)
            if self.idle[s] >= left and rule <= LARGEST_FIRST:
                for other in ranked:
                    tighter = left <= self.idle[other] < self.idle[s]
                    if tighter and (rule == LARGEST_FIRST or self.rings(other) <= self.rings(s)):
                        s = other
            placed[s] = min(left, self.idle[s])
            left -= placed[s]
        meets = any(self.rings(s) for s in placed)
        return {} if left or (meets and self.choices.cross[j] != CROSS_ANY) else placed

    def tolerable(self, j: int, placed: dict[int, int]) -> bool:
        rate = self.rate(j, placed, extra=1)
        if rate == 0 or self.care != CONSIDERATE:
            return rate > 0
        slots = -(-self.instance.jobs[j].iterations // rate)
        if slots > self.slack * int(self.table.best_duration[j]):
            return False
        return all(
            self.table.rates(other, len(there), self.rings(s) + 1) > 0
            for s in placed
            for other, there in self.running.items()
            if len(there) > 1 and s in there
        )

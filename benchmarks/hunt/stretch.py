"""One stretch of the search: a start, then so many small steps, each kept unless it makes things better."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from schedgap.benchmarks.hunt.mutate import mutated
from schedgap.benchmarks.hunt.starts import Starts
from schedgap.benchmarks.hunt.target import Judge, Probe
from schedgap.formulations.common.instance import Json

DRAWS = 8
"""Random starts of which the worst (for the heuristic) is gone on with."""


MOST_DRAWS = 60
"""Random starts tried at most until one counts."""


MOST_LOST = 10
"""Random starts on which a user's heuristic raises, before any counts, after which a stretch ends."""


MOST_DEFECTS = 3
"""Instances with a defect of ours after which a stretch ends."""


COOLING = (0.0, 0.0, 0.03, 0.1)
"""How much of the value a step may give up at first; falls to 0 along the stretch."""


@dataclass(frozen=True)
class Stretch:
    """What one island does in one round; a pure function of this and of what is hunted."""

    # seed, round, island: of its randomness
    seed: int
    round: int
    island: int
    steps: int  # instances to try
    start: Probe | None  # where it goes on; None begins at random
    partners: tuple[Probe, ...] = ()  # other instances to copy entries from
    deadline: float | None = None  # on the clock, or None
    clock: Callable[[], float] = time.monotonic  # clock that the hunt and all its workers read, seconds


@dataclass(frozen=True)
class Walked:
    """What came of a stretch."""

    current: Probe | None  # where it stands
    best: Probe | None  # the worst instance it has seen
    evaluations: int  # instances tried
    cut: bool = False  # the deadline ended it
    # defects, lost: what the judge met with
    defects: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        return {
            "current": None if self.current is None else self.current.to_dict(),
            "best": None if self.best is None else self.best.to_dict(),
            "evaluations": self.evaluations,
            "defects": list(self.defects),
            "lost": list(self.lost),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> Walked:
        """What :meth:`to_dict` wrote."""
        found = {name: None if data[name] is None else Probe.from_dict(data[name]) for name in ("current", "best")}
        lines = (tuple(data["defects"]), tuple(data.get("lost", ())))
        return cls(found["current"], found["best"], int(data["evaluations"]), False, *lines)


def walk(
    stretch: Stretch, judge: Judge, starts: Starts, goal: float | None, tell: Callable[[Probe], None] = lambda _: None
) -> Walked:
    """Search from one start.

    A step is kept when the value falls by less than the threshold, which sinks to 0 (threshold accepting):
    since it is known before the instance is tried, the exact method is not asked where a bound already
    shows that the step will not be kept.

    Parameters
    ----------
    goal : the stretch ends when this value is reached
    tell : told of every new best, at once
    """
    rng = np.random.default_rng([stretch.seed, stretch.round, stretch.island])
    current = best = stretch.start
    done = 0
    if current is None:
        for _ in range(MOST_DRAWS):
            if _over(stretch, judge) or (current is None and len(judge.lost) >= MOST_LOST):
                return Walked(current, current, done, _late(stretch), *_met(judge))
            data, options = starts.draw(rng)
            done += 1
            found = judge(data, options, 0.0 if current is None else current.value)
            if found is not None and (current is None or found.key < current.key):
                current = best = found
                tell(found)
            if done >= DRAWS and current is not None:
                break
    if current is None or best is None:
        return Walked(None, None, done, False, *_met(judge))
    slack = COOLING[int(rng.integers(len(COOLING)))]
    while done < stretch.steps and not (goal is not None and best.value >= goal) and best.value < float("inf"):
        if _over(stretch, judge):
            return Walked(current, best, done, _late(stretch), *_met(judge))
        done += 1
        partner = stretch.partners[int(rng.integers(len(stretch.partners)))] if stretch.partners else current
        changed = mutated(current.data, starts.space, rng, partner.data)
        if changed is None:
            continue
        need = current.value * (1 - slack * (1 - done / stretch.steps))
        found = judge(changed, current.options, need)
        if found is None or found.value < need:
            continue
        current = found
        if found.value > best.value:
            best = found
            tell(found)
    return Walked(current, best, done, False, *_met(judge))


def _met(judge: Judge) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(judge.defects), tuple(judge.lost)


def _over(stretch: Stretch, judge: Judge) -> bool:
    return len(judge.defects) >= MOST_DEFECTS or _late(stretch)


def _late(stretch: Stretch) -> bool:
    return stretch.deadline is not None and stretch.clock() >= stretch.deadline

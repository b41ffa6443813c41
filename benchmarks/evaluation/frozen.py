"""Quick judgements of many candidates, on instances whose optimum or bound is stored: nothing is solved.

For programs that write schedulers. A figure from here is no card: the instances are always the same, so whoever tries
often enough learns them. What came out best is judged by :func:`schedgap.benchmarks.evaluation.run.evaluate`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import math
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from schedgap.benchmarks.evaluation.contained import GUEST, Bounds, Contained, Failed
from schedgap.benchmarks.evaluation.nursery import Nursery
from schedgap.benchmarks.evaluation.online import scheduled
from schedgap.benchmarks.library.collection import Entry, entries
from schedgap.benchmarks.online.replay import Estimates, check_online
from schedgap.benchmarks.text import fixed, table
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import Disagreement, InputError, brief, printable
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.numbers import ratio, share_of_best
from schedgap.solvers.incumbent import contradicts

FIRST = 3
"""Instances, the smallest, of which a candidate has to schedule one before the rest is tried."""
GIVE_UP = 3
"""Instances on which it runs out of time or ends, one after another, before the rest is not tried any more."""
FIRST_RUN = 5.0
"""Seconds for a run that does not count, in which a candidate may import and compile."""
SHOWN = 6_000
"""Letters of an instance that is given back with what went wrong on it."""


@dataclass(frozen=True)
class Attempt:
    """A candidate on a stored instance."""

    entry: Entry  # the instance with what is known of it
    objective: float | None  # the checker's; None where there is no feasible solution
    ratio: float | None
    to: str  # optimum or bound
    failure: str  # as in a card; empty where feasible
    message: str
    seconds: float | None  # measured outside; None where nothing came
    # objective of an answer that breaks a rule, where it is better than what is possible
    looks: float | None = None

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        return {
            "instance": self.entry.id,
            "objective": self.objective,
            "ratio": None if self.ratio is None or math.isinf(self.ratio) else self.ratio,
            "ratio_to": self.to or None,
            "failure": self.failure or None,
            "message": self.message or None,
            "seconds": self.seconds,
            "looks": self.looks,
        }


@dataclass(frozen=True)
class Development:
    """What a candidate came to; no card."""

    scheduler: str
    problem: str
    attempts: Sequence[Attempt]  # every instance, the smallest first
    seconds: float  # for all of it, its process and the checks included
    isolated: bool | None  # as of a card

    @property
    def score(self) -> float:
        """The mean of 1/ratio over all instances, 0 for a failure."""
        return statistics.fmean(share_of_best(attempt.ratio) for attempt in self.attempts)

    @property
    def feasible(self) -> int:
        """Instances with a feasible solution."""
        return sum(attempt.objective is not None for attempt in self.attempts)

    @property
    def too_good(self) -> int:
        """Instances on which it breaks a rule, and would be better than possible if nobody looked."""
        return sum(attempt.looks is not None for attempt in self.attempts)

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form; keys are only added."""
        return {
            "schema": 1,
            "kind": "development",
            "scheduler": self.scheduler,
            "problem": self.problem,
            "development_score": self.score,
            "instances": len(self.attempts),
            "feasible": self.feasible,
            "too_good": self.too_good,
            "isolated": self.isolated,
            "seconds": self.seconds,
            "artifacts": self.artifacts(),
            "attempts": [attempt.to_dict() for attempt in self.attempts],
        }

    def artifacts(self) -> dict[str, Json]:
        """What helps the next try: the first failure and the worst ratio, each with its instance where it is small."""
        found: dict[str, Json] = {}
        failed = next((attempt for attempt in self.attempts if attempt.failure), None)
        if failed is not None:
            found["failure"] = {"kind": failed.failure, "message": failed.message, **_shown(failed.entry)}
        known = [attempt for attempt in self.attempts if attempt.ratio is not None]
        worst = max(known, key=lambda attempt: attempt.ratio or 0.0, default=None)
        if worst is not None and (worst.ratio or 0.0) > 1:
            best, shown = worst.entry.known, _shown(worst.entry)
            found["worst"] = {
                "ratio": worst.to_dict()["ratio"],
                "ratio_to": worst.to,
                "objective": worst.objective,
                "best_known": best.objective,
                **shown,
                "best_known_solution": best.solution if "data" in shown else None,
            }
        return found

    def to_text(self) -> str:
        """For a terminal."""
        head = ["instance", "ratio", "to", "failure"]
        rows = [
            [one.entry.id.partition("/")[2], fixed(one.ratio), one.to, f"{one.failure} {one.message[:80]}".strip()]
            for one in self.attempts
        ]
        lines = [
            f"{self.scheduler} on {self.problem}: development score {self.score:.4f}, no card",
            f"feasible on {self.feasible} of {len(self.attempts)} stored instances, {self.seconds:.2f} s",
        ]
        return printable("\n".join([*lines, "", table(head, rows, right=" r")]), "\n")


def _shown(entry: Entry) -> dict[str, Json]:
    text = entry.instance.to_json(None)
    return {"instance": entry.id, **({"data": entry.instance.to_dict()} if len(text) <= SHOWN else {})}


def stored(problem: Problem) -> list[Entry]:
    """The library's small instances of which an optimum or a bound is known, the smallest first.

    Raises InputError where it has none of this problem.
    """
    small = [entry for entry in entries(problem.id) if entry.frozen]
    if not small:
        raise InputError(f"--frozen: the library has no small instance of {problem.id}")
    return sorted(small, key=lambda entry: (len(entry.instance.to_json(None)), entry.id))


class FrozenJudge:
    """Judges candidates one after another, each in a fork of one process that has imported what is ours.

    The fork closes itself off before it loads the candidate. Exact methods and bounds of ours are not for candidates.
    """

    def __init__(
        self,
        problem: str | Problem,
        *,
        bounds: Bounds | None = None,
        estimates: Estimates | None = None,
        warm: bool = True,
    ) -> None:
        """Load the instances, and start the process from which those of candidates are forked.

        Parameters
        ----------
        problem : whose instances candidates take
        bounds : what a candidate may use; 2 s an instance where not given
        estimates : candidates are online policies, and are told this of lengths
        warm : there is such a process; a single candidate is as quick without
        """
        self.problem = find_problem(problem)
        if estimates is not None:
            check_online(self.problem)
        self.estimates = estimates
        self.bounds = replace(bounds or Bounds(seconds=2.0), first=FIRST_RUN, heuristics_only=True)
        self.entries = stored(self.problem)
        # What is seen in a container depends on the candidate.
        self._nursery = Nursery(GUEST, self.bounds.warmed(self.problem)) if warm and not self.bounds.container else None
        self._lock = threading.Lock()

    def judge(self, scheduler: str, *, most: int | None = None) -> Development:
        """Run a candidate on the first instances, and on all where it schedules one of them.

        Parameters
        ----------
        scheduler : ``file.py:name`` or ``package.module:name``. A file is copied into a folder of its own first, and
            sees nothing that lies beside it
        most : instances, the smallest; all where not given

        Raises InputError: it cannot be imported.
        Raises Disagreement: it is better than a stored bound: a defect of ours.
        """
        began = time.perf_counter()
        with self._lock, _alone(scheduler) as name, self._candidate(name) as contained:
            attempts = self._attempts(contained, most)
            return Development(scheduler, self.problem.id, attempts, time.perf_counter() - began, contained.isolated)

    def close(self) -> None:
        """End the process from which those of candidates are forked."""
        if self._nursery is not None:
            self._nursery.close()

    def __enter__(self) -> FrozenJudge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _candidate(self, name: str) -> Contained:
        contained = scheduled(name, self.problem, self.bounds, self.estimates)
        contained.nursery = self._nursery
        return contained

    def _attempts(self, contained: Contained, most: int | None) -> list[Attempt]:
        attempts: list[Attempt] = []
        for place, entry in enumerate(self.entries[:most]):
            last = attempts[-GIVE_UP:]
            ended = len(last) == GIVE_UP and all(one.failure in ("time", "died", "untried") for one in last)
            if ended or (place >= FIRST and not any(one.objective is not None for one in attempts)):
                attempts.append(Attempt(entry, None, None, "", "untried", "not tried after the failures before", None))
            else:
                attempts.append(self._attempt(contained, entry, place))
        return attempts

    def _attempt(self, contained: Contained, entry: Entry, place: int) -> Attempt:
        instance = entry.instance
        try:
            solution = contained(instance, seed=place)
        except Failed as error:
            return Attempt(entry, None, None, "", error.kind, str(error), None)
        if solution is None:
            return Attempt(entry, None, None, "", "none", "found nothing", contained.seconds)
        try:
            report = contained.check(instance, solution)
        except InputError as error:
            return Attempt(entry, None, None, "", "infeasible", f"no solution: {error}", contained.seconds)
        if not report.feasible or report.objective is None:
            return self._refused(entry, report, contained)
        objective = float(report.objective)
        bound = contained.certified_bound(instance) if contained.outside_model else entry.known.bound
        if bound is not None and contradicts(objective, bound, self.problem.sense):
            raise Disagreement(
                f"{contained.name} has {objective:.12g} on {entry.id}, better than the bound {bound:.12g}"
            )
        value, to = entry.ratio(objective)
        if contained.outside_model:
            value, to = ratio(objective, bound, self.problem.sense), "bound"
        return Attempt(entry, objective, value, to, "", "", contained.seconds)

    def _refused(self, entry: Entry, report: CheckReport, contained: Contained) -> Attempt:
        """An answer that breaks a rule, and may look better than the best."""
        said, looks = brief(report.violations[0].message) if report.violations else "has no objective", None
        value = None if report.objective is None else float(report.objective)
        bound = None if contained.outside_model else entry.known.bound
        if value is not None and bound is not None and contradicts(value, bound, self.problem.sense):
            looks = value
            said += f"; but for that its {value:.6g} would be better than possible ({bound:.6g})"
        return Attempt(entry, None, None, "", "infeasible", said, contained.seconds, looks)


@functools.cache
def judge_of(problem: str) -> FrozenJudge:
    """The one judge of this process: clients may load their evaluator anew for each candidate."""
    judge = FrozenJudge(problem)
    atexit.register(judge.close)
    return judge


@contextlib.contextmanager
def _alone(scheduler: str) -> Iterator[str]:
    """A file with nothing beside it; a module stays where it is."""
    place, _, name = scheduler.rpartition(":")
    if not place.endswith(".py"):
        yield scheduler
        return
    folder = Path(tempfile.mkdtemp(prefix="schedgap-candidate-"))
    try:
        with contextlib.suppress(OSError):  # what is not there is told where it is imported
            shutil.copy(place, folder / Path(place).name)
        yield f"{folder / Path(place).name}:{name}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)

"""Quick judgements of many candidates, on instances whose optimum or bound is stored: nothing is solved.

For programs that write schedulers. A figure from here is no card: the instances are always the same, so whoever tries
often enough learns them. What came out best is judged by :func:`schedgap.tools.evaluation.run.evaluate`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import math
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from schedgap.benchmarks.text import fixed, table
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import Disagreement, InputError, printable
from schedgap.formulations.common.instance import Instance, Json
from schedgap.formulations.common.numbers import ratio, share_of_best
from schedgap.solvers.incumbent import contradicts
from schedgap.tools.evaluation.contained import GIVE_UP, GUEST, Bounds, Contained, Judged
from schedgap.tools.evaluation.named import users_name
from schedgap.tools.evaluation.nursery import Nursery
from schedgap.tools.evaluation.online import scheduled
from schedgap.tools.evaluation.own_length import ratio_at_own_length
from schedgap.tools.library.collection import Entry, entries
from schedgap.tools.online.replay import Estimates, estimates_of, loop_of

FIRST = 3
"""Instances, the smallest, of which a candidate has to schedule one before the rest is tried."""
FIRST_RUN = 5.0
"""Seconds for a run that does not count, in which a candidate may import and compile."""
SHOWN = 6_000
"""Letters of an instance that is given back with what went wrong on it."""


@dataclass(frozen=True, kw_only=True)
class Attempt(Judged):
    """A candidate on a stored instance."""

    entry: Entry  # the instance with what is known of it
    ratio: float | None = None
    to: str = ""  # optimum or bound
    first: Instance | None = None  # instance of a first run that did not end: it never saw the entry's

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
            "own_length": self.own_length,
        }


@dataclass(frozen=True)
class Development:
    """What a candidate came to; no card."""

    scheduler: str
    problem: str
    attempts: Sequence[Attempt]  # every instance, the smallest first
    seconds: float  # for all of it, its process and the checks included
    isolated: bool | None  # whether the run was isolated, see the card

    @property
    def score(self) -> float:
        """The mean of 1/ratio over all instances, 0 for a failure that is not only too long."""
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
            found["failure"] = {"kind": failed.failure, "message": failed.message, **_shown(failed)}
        known = [attempt for attempt in self.attempts if attempt.ratio is not None]
        worst = max(known, key=lambda attempt: attempt.ratio or 0.0, default=None)
        if worst is not None and (worst.ratio or 0.0) > 1:
            best, shown = worst.entry.known, _shown(worst)
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
        if not self.feasible:  # mostly one mistake, in as many rows
            failures = Counter(row[-1] for row in rows)
            rows = [next(row for row in rows if row[-1] == failure) for failure in failures]
            rows = [[_and_more(row[0], failures[row[-1]] - 1), *row[1:]] for row in rows]
        lines = [
            f"{self.scheduler} on {self.problem}: development score {self.score:.4f}, no card",
            f"feasible on {self.feasible} of {len(self.attempts)} stored instances, {self.seconds:.2f} s",
        ]
        return printable("\n".join([*lines, "", table(head, rows, right=" r")]), "\n")


def _and_more(name: str, others: int) -> str:
    return f"{name} and {others} more" if others else name


def _shown(attempt: Attempt) -> dict[str, Json]:
    """What it was given: that of the first run is no stored one."""
    first, instance = attempt.first is not None, attempt.first or attempt.entry.instance
    small = len(instance.to_json(None)) <= SHOWN
    return {"instance": instance.name if first else attempt.entry.id, **({"data": instance.to_dict()} if small else {})}


def stored(problem: Problem) -> list[Entry]:
    """The library's small instances of which an optimum or a bound is known, the smallest first.

    Raises InputError where it has none of this problem.
    """
    small = [entry for entry in entries(problem.id) if entry.frozen]
    if not small:
        raise InputError(f"--frozen: the library has no small instance of {problem.id}")
    return sorted(small, key=lambda entry: (len(entry.instance.to_json(None)), entry.id))


class FrozenJudge(contextlib.AbstractContextManager["FrozenJudge"]):
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
            loop_of(self.problem)
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
        with self._lock, self._candidate(scheduler) as contained:
            attempts = self._attempts(contained, most)
            return Development(scheduler, self.problem.id, attempts, time.perf_counter() - began, contained.isolated)

    def close(self) -> None:
        """End the process from which those of candidates are forked."""
        if self._nursery is not None:
            self._nursery.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _candidate(self, name: str) -> Contained:
        contained = scheduled(name, self.problem, self.bounds, self.estimates)
        contained.nursery = self._nursery
        return contained

    def _attempts(self, contained: Contained, most: int | None) -> list[Attempt]:
        attempts: list[Attempt] = []
        ended = 0
        for place, entry in enumerate(self.entries[:most]):
            hopeless = place >= FIRST and all(one.objective is None and one.own_length is None for one in attempts)
            if contained.stuck or ended >= GIVE_UP or hopeless:
                message = "not tried after the failures before"
                attempts.append(Attempt(failure="untried", message=message, entry=entry))
                continue
            judged = contained.judged(entry.instance, place)
            ended = ended + 1 if judged.ended else 0
            attempts.append(self._attempt(contained, entry, judged))
        return attempts

    def _attempt(self, contained: Contained, entry: Entry, judged: Judged) -> Attempt:
        """The answer beside what is known of the instance; one that breaks a rule may look better than the best."""
        outside, sense = contained.outside_model, self.problem.sense
        bound = contained.certified_bound(entry.instance) if outside and not judged.failure else entry.known.bound

        def too_good(value: float | None) -> bool:
            return value is not None and bound is not None and contradicts(value, bound, sense)

        told = {**vars(judged), "solution": None, "entry": entry, "first": contained.stuck}
        if judged.own_length is not None:
            own = ratio_at_own_length(self.problem, entry.instance, contained.name, judged.own_length, bound)
            return Attempt(**{**told, "looks": None}, ratio=own, to="bound" if own is not None else "")
        if judged.failure and (outside or not too_good(judged.looks)):
            return Attempt(**{**told, "looks": None})
        if judged.failure:
            note = f"; but for that its {judged.looks:.6g} would be better than possible ({bound:.6g})"
            return Attempt(**{**told, "message": judged.message + note})
        objective = judged.objective
        if too_good(objective):
            raise Disagreement(
                f"{contained.name} has {objective:.12g} on {entry.id}, better than the bound {bound:.12g}"
            )
        value, to = (ratio(objective, bound, sense), "bound") if outside else entry.ratio(objective)
        return Attempt(**told, ratio=value, to=to)


@functools.cache
def judge_of(problem: str) -> FrozenJudge:
    """The one judge of this process: clients may load their evaluator anew for each candidate."""
    judge = FrozenJudge(problem)
    atexit.register(judge.close)
    return judge


def evaluate_frozen(
    scheduler: str | Callable[..., object],
    problem: str,
    *,
    online: bool = False,
    estimates: Estimates | None = None,
    time_limit: float = 2.0,
    memory_limit: float = 4.0,
    container: bool = False,
) -> Development:
    """A quick score on the library's small instances, whose optima or bounds are stored: nothing is solved.

    It is for programs that try many schedulers, and no card: the instances are always the same.
    :class:`FrozenJudge` judges many, each in a fork of one warm process.

    Parameters
    ----------
    scheduler, online, estimates, container : see :func:`~schedgap.tools.evaluation.run.evaluate`
    problem : whose instances it takes
    time_limit : seconds of a processor for an instance; three times that for one that sleeps
    memory_limit : GB of its process

    Returns
    -------
    Development
        ``score`` is the mean of 1/ratio, 0 for a failure; ``artifacts()`` says what went wrong, and where.

    Raises
    ------
    InputError
        The scheduler cannot be imported, or a number is out of range.
    Disagreement
        Its solution is better than a stored bound: a defect of ours.
    """
    told, bounds = estimates_of(online, estimates), Bounds.of(time_limit, memory_limit, container)
    with FrozenJudge(find_problem(problem, "--problem"), bounds=bounds, estimates=told, warm=False) as judge:
        return judge.judge(users_name(scheduler))

"""The hunt itself: rounds of islands over worker processes, a journal, then shrinking."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from schedgap.benchmarks.hunt.journal import FILE, Journal
from schedgap.benchmarks.hunt.limits import EVALUATIONS, Limits, parse_limits
from schedgap.benchmarks.hunt.result import FOUND, WORST, Hunted, summary, write_found
from schedgap.benchmarks.hunt.shrink import shrunk
from schedgap.benchmarks.hunt.starts import Starts, starts_of
from schedgap.benchmarks.hunt.stretch import Stretch, Walked
from schedgap.benchmarks.hunt.target import Judge, Probe, Target, find_target
from schedgap.benchmarks.hunt.work import DISAGREEMENTS, Done, Work, do_work, kept
from schedgap.benchmarks.judging.users_claims import claims_from
from schedgap.benchmarks.sweep.cluster import check_cluster, own_folder, pool_of
from schedgap.benchmarks.sweep.pool import Pool
from schedgap.benchmarks.sweep.progress import Progress, Sink
from schedgap.benchmarks.sweep.store import held
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import InstanceLike, read_instance
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Instance, Json, read_json

FACTS = "hunt.json"
OUT = Path("hunts")
ISLANDS = 8
STEPS = 50
FRESH_EVERY = 5
"""The first half of the islands begin anew every so many rounds; the others go on from the best so far."""
ELITE = 12
MOST_DEFECTS = 20
"""Instances with a defect of ours after which the hunt ends."""
SEARCHING = 0.85
"""Share of a budget in seconds for searching; the rest is for shrinking."""


@dataclass
class _Hunt:
    """A hunt under way."""

    target: Target
    limits: Limits
    seed: int
    pool: Pool[Work, Done]
    folder: Path
    journal: Journal
    bar: Progress
    deadline: float | None
    shrink_until: float | None
    goal: float | None
    starts: Starts
    began: float
    best: Probe | None = None
    finished: bool = False
    smallest: Probe | None = None
    shrinking: Shrinking | None = None
    walks: dict[tuple[int, int], Walked] = field(default_factory=dict)
    cut: list[Walked] = field(default_factory=list)
    families: bool = False
    given: bool = False

    @property
    def all_walks(self) -> tuple[Walked, ...]:
        """All walks: with those that the budget cut off, and those from presets where nothing counted."""
        return (*self.walks.values(), *self.cut)

    @property
    def evaluations(self) -> int:
        return sum(walked.evaluations for walked in self.all_walks)

    def take(self, found: Probe | None) -> None:
        """Remember `found` where it is the worst so far, and write it."""
        if found is not None and (self.best is None or found.key < self.best.key):
            self.best = found
            write_found(self.folder / FOUND, self.target, found)

    def recall(self) -> None:
        """Everything that the journal holds."""
        for line in self.journal.lines():
            if line.get("kind") == "found":
                self.take(Probe.from_dict(line["found"]))
            elif line.get("kind") == "shrinks":
                self.shrinking = Shrinking(self.best, Probe.from_dict(line["found"]))
            elif line.get("kind") == "shrunk":
                assert self.shrinking is not None
                self.shrinking.steps.append(Probe.from_dict(line["found"]))
            elif line.get("kind") == "walked" and line.get("families", False) == self.families:
                self.walks[line["round"], line["island"]] = Walked.from_dict(line["walked"])

    def search_everywhere(self) -> None:
        """From the presets; where nothing counts there, from the families that ``verify`` tries, round 0 again."""
        self.search()
        began = any(line.get("families") for line in self.journal.lines())
        if self.given or not self.starts.names:  # begun from an instance, and from nothing else
            return
        if self.limits.search["start"] == "presets" and (began or self.best is None):
            self.bar.say("hunt: no instance of the presets counts; going on from the families that verify tries")
            self.cut += self.walks.values()
            self.starts, self.walks = starts_of(self.target, self.limits, families=True), {}
            self.families = True
            self.recall()
            self.search()

    def search(self) -> None:
        """Rounds until a limit is met."""
        most = self.limits.search["evaluations"]
        if most is None and self.deadline is None:
            most = EVALUATIONS
        number = 0
        while True:
            # What rounds before this one came to, whether they were done now or in an earlier session.
            before = [walked for (r, _), walked in self.walks.items() if r < number]
            tried = sum(walked.evaluations for walked in before)
            best = [walked.best for walked in before if walked.best is not None]
            lost = 0 if self.best is not None else sum(len(walked.lost) for walked in before)
            if sum(len(walked.defects) for walked in before) + lost >= MOST_DEFECTS:
                return
            if any(self._reached(found) for found in best) or (most is not None and tried >= most):
                return
            if self._late() or (number > FRESH_EVERY and not best):
                return
            self._round(number, STEPS if most is None else max(1, min(STEPS, -(-(most - tried) // ISLANDS))))
            number += 1

    def _reached(self, found: Probe) -> bool:
        return found.value == float("inf") or (self.goal is not None and found.value >= self.goal)

    def _late(self) -> bool:
        return self.deadline is not None and self.pool.clock() >= self.deadline

    def _round(self, number: int, steps: int) -> None:
        elite = sorted(
            {w.best.key: w.best for (r, _), w in self.walks.items() if r < number and w.best is not None}.items()
        )
        partners = tuple(found for _, found in elite[:ELITE])
        clock = self.pool.clock
        work = [
            Work(
                Stretch(self.seed, number, k, steps, self._start(number, k, partners), partners, self.deadline, clock),
                self.target,
                self.starts,
                self.limits.search["work"],
                self.goal,
                self.journal.path,
            )
            for k in range(ISLANDS)
            if (number, k) not in self.walks
        ]
        for walked in (w for (r, _), w in self.walks.items() if r == number):
            self.take(walked.best)
        self.pool.run(work, self._collect, self._died, self.deadline, partial(_tick, self.bar))

    def _start(self, number: int, island: int, elite: tuple[Probe, ...]) -> Probe | None:
        """Where an island goes on: where it stood, one of the best, or nowhere (it begins anew)."""
        if island < ISLANDS // 2 or not elite:
            before = self.walks.get((number - 1, island))
            return None if number % FRESH_EVERY == 0 or before is None else before.current
        rng = np.random.default_rng([self.seed, number, island, 1])
        return elite[int(len(elite) * rng.random() ** 2)]

    def _died(self, work: Work, reason: str, seconds: float) -> None:
        method = self.target.method
        told = f"{kept(work, reason, reason)}{self.target.goes_on}"
        raise (InputError if method is not None and method.is_user_defined else Disagreement)(told)

    def _collect(self, work: Work, done: Done) -> None:
        if done.error is not None:
            status, message = done.error
            raise (Disagreement if status == Disagreement.exit_status else InputError)(message)
        walked, stretch = done.walked, work.stretch
        if walked is None or stretch is None:
            return
        self.take(walked.best)
        if walked.cut:
            self.cut.append(walked)
        else:
            self.walks[stretch.round, stretch.island] = walked
            place = {"round": stretch.round, "island": stretch.island}
            place |= {"families": True} if self.families else {}
            self.journal.add({"kind": "walked", **place, "walked": walked.to_dict()})
        told = "nothing yet" if self.best is None else summary(self.target, self.best)
        # With a budget the bar counts its seconds, otherwise the islands of all rounds.
        spent = min(self.bar.total - 1, int(self.pool.clock() - self.began))
        pieces = 1 if self.shrink_until is None else spent - self.bar.done
        self.bar.step(f"{told}; {self.evaluations} instances tried", pieces)

    def shrink(self) -> None:
        """The smallest instance that still shows it."""
        if self.best is None:
            return
        best, search = self.best, self.limits.search
        claim = self.target.guarantee is not None and best.refuted
        least = min(
            search["at_least"] or 0.0 if claim else search["at_least"] or search["keep"] * best.value, best.value
        )
        folder, clock = self.folder / DISAGREEMENTS, self.pool.clock
        judge = Judge(self.target, search["work"], folder, deadline=self.shrink_until, clock=clock)
        space = replace(self.starts.space, numbers=self.limits.numbers)

        # What is shrunk depends on every step before: an earlier session's are taken again, without trying anything,
        # unless something worse was found since.
        shrinking = self.shrinking
        if shrinking is None or shrinking.worst is not best:
            smaller = None if shrinking is None else shrinking.steps[-1] if shrinking.steps else shrinking.start
            start = smaller if smaller is not None and smaller.value >= best.value else best
            self.journal.add({"kind": "shrinks", "found": start.to_dict()})
            self.shrinking = shrinking = Shrinking(best, start)
        steps = deque(shrinking.steps)
        self.smallest = shrinking.steps[-1] if shrinking.steps else shrinking.start

        def tried(data: Mapping[str, Any]) -> Probe | None:
            if steps:
                return steps.popleft() if steps[0].data == data else None
            if self.shrink_until is not None and self.pool.clock() >= self.shrink_until:
                raise _Late
            found = judge(data, best.options, least)
            return found if found is not None and (found.refuted or not claim) else None

        def tell(found: Probe) -> None:
            if not any(found is step for step in shrinking.steps):
                self.smallest = found
                self.journal.add({"kind": "shrunk", "found": found.to_dict()})

        try:
            with self.bar.at_work("shrinking"):
                shrunk(shrinking.start, space, tried, tell)
        except _Late:
            self.bar.say(f"hunt: the budget ended the shrinking{self.target.goes_on}")
        write_found(self.folder / WORST, self.target, self.smallest)


@dataclass
class Shrinking:
    """The worst instance of the hunt when shrinking began, what it began with, and every step that was accepted."""

    worst: Probe | None
    start: Probe
    steps: list[Probe] = field(default_factory=list)


class _Late(Exception):
    """The budget is used up."""


def hunt(
    target: str | Callable[..., object] | Target,
    *,
    problem: str | Problem | None = None,
    claims: str | Path | None = None,
    limits: Mapping[str, object] | None = None,
    budget: float | None = None,
    seed: int = 0,
    workers: int = 1,
    resume: bool = False,
    out: str | Path | None = None,
    cluster: str | None = None,
    around: InstanceLike | Starts | None = None,
    progress: Sink | None = None,
) -> Hunted:
    """Search for the instance on which a heuristic is furthest from the optimum, or a claim nearest to failing.

    A fixed number of islands works in rounds. Each begins at random or from what was found before and changes
    numbers and structure step by step (threshold accepting); every instance that counts has a proven optimum.
    The islands do not depend on how many workers share them.

    Parameters
    ----------
    target : a guarantee's id, ``PROBLEM/HEURISTIC``, ``PROBLEM/package.module:function``, or a heuristic of
        your own: a callable ``(instance, *, seed) -> solution``
    problem : name of the problem that a callable is for
    claims : a Python file with ``CLAIMS``, guarantees of your own
    limits : ``{"jobs": 4, "jobs.gpus": 2, "evaluations": 500}``, see docs/hunting.md
    budget : seconds; by counts where not given, and then the result depends on the seed alone
    seed, workers : seed of all randomness; number of processes (1 works in this one)
    resume : go on with the hunt in `out`
    cluster : address of a Dask scheduler, whose workers are taken instead of processes of this machine
    out : its folder; ``hunts/<target>`` where not given
    around : an instance, or its file, that it begins from instead of random ones
    progress : a stream, or a function that is told whole lines

    Returns
    -------
    Hunted
        ``value`` the ratio (or left/right), ``worst.data`` the shrunk instance, ``path`` its file, for ``compare``;
        ``defects`` a line for each instance on which parts of schedgap disagreed.

    Raises
    ------
    InputError
        Bad input, or a heuristic of your own that raised on every instance; the line names the first.

    Examples
    --------
    >>> hunt("rar-ddls/ff", limits={"jobs": 3, "evaluations": 100}).value  # doctest: +SKIP
    """
    with claims_from(claims):
        chosen = target if isinstance(target, Target) else find_target(target, problem)
        bounds = parse_limits(chosen.problem, chosen.method, limits or {})
        if workers < 1:
            raise InputError(f"workers: must be at least 1, got {workers}")
        begun = None if around is None or isinstance(around, Starts) else read_instance(around)[1]
        if begun is not None and begun.problem_id != chosen.problem.id:
            raise InputError(f"--around: the instance is of {begun.problem_id}, not of {chosen.problem.id}")
        if budget is not None and not 0 < budget < 1e9:
            raise InputError(f"budget: must be seconds, positive and finite, got {budget}")
        name = "".join(c if c.isalnum() or c in "-_." else "-" for c in chosen.id)
        check_cluster(cluster)
        with held(OUT / name if out is None else Path(out), holds_a_hunt, resume) as folder:
            journal = Journal(own_folder(folder, cluster) / FILE)
            facts = {"target": chosen.id, "limits": {k: str(v) for k, v in bounds.given.items()}, "seed": seed}
            facts |= {} if begun is None else {"around": begun.content_hash()}
            begin(folder, facts)
            starts = around if isinstance(around, Starts) else None
            with pool_of(do_work, workers, inside=True, cluster=cluster) as pool:
                return _run(chosen, bounds, budget, seed, pool, folder, journal, progress, starts, begun)


def holds_a_hunt(folder: Path) -> bool:
    """Whether there is a hunt in `folder`."""
    return (folder / FACTS).exists() or (folder / FILE).exists()


def begin(folder: Path, facts: Mapping[str, Json]) -> None:
    """Write down what is hunted, or make sure that it is the same hunt that goes on."""
    path, journal = folder / FACTS, folder / FILE
    if not path.exists():
        if journal.exists():
            raise InputError(f"{folder}: holds a journal without {FACTS}; it cannot be told what was hunted")
        write_text(path, json.dumps(facts, indent=1) + "\n")
        return
    before = read_json(path)
    for name, value in facts.items():
        if before.get(name) != value:
            raise InputError(f"{folder}: the hunt there has {name} {before.get(name)!r}, not {value!r}")


def _run(
    target: Target,
    limits: Limits,
    budget: float | None,
    seed: int,
    pool: Pool[Work, Done],
    folder: Path,
    journal: Journal,
    progress: Sink | None,
    given: Starts | None,
    around: Instance | None,
) -> Hunted:
    starts = given or starts_of(target, limits, around=None if around is None else around.to_dict())
    most = limits.search["evaluations"] or EVALUATIONS
    total = ISLANDS * -(-most // (ISLANDS * STEPS))
    bar = Progress(total if budget is None else math.ceil(budget) + 1, progress, "hunt")
    if budget is not None:
        compiling = [Work(None, target, starts, 0.0, None, journal.path)] * pool.workers
        with _told(bar):
            pool.run(compiling, _ignore, _ignore, tick=partial(_tick, bar))
    began = pool.clock()
    deadline = None if budget is None else began + SEARCHING * budget
    state = _Hunt(
        target,
        limits,
        seed,
        pool,
        folder,
        journal,
        bar,
        deadline,
        None if budget is None else began + budget,
        limits.search["at_least"],
        starts,
        began,
        given=given is not None,
    )
    finished = True
    with _told(bar):
        try:
            state.recall()
            state.search_everywhere()
            if given is None:
                state.shrink()
        except KeyboardInterrupt:
            finished = False
            # What workers have found since is in the journal already.
            state.recall()
            if state.smallest is not None and state.smallest is not state.best:
                write_found(folder / WORST, target, state.smallest)
            else:
                state.smallest = None
    defects = tuple(dict.fromkeys(line for walked in state.all_walks for line in walked.defects))
    lost = tuple(line for walked in state.all_walks for line in walked.lost)
    if lost and state.best is None and finished:
        raise InputError(lost[0])
    return Hunted(target, state.best, state.smallest, state.evaluations, folder, finished, defects, lost)


def _tick(bar: Progress, running: Iterable[tuple[Work, float]]) -> None:
    bar.tick(("compiling" if work.stretch is None else f"island {work.island}", seconds) for work, seconds in running)


def _ignore(*_: object) -> None:
    """What goes wrong while a worker compiles goes wrong in its first stretch too, which tells it."""


@contextmanager
def _told(bar: Progress) -> Iterator[None]:
    try:
        yield
    finally:
        bar.finish()

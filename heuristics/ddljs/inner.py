"""One slot of ddljs as an instance of g-vne, and the methods that may solve it inside ``gadget``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.g_vne.instance import GVneInstance, Job
from schedgap.formulations.g_vne.ring_network import Ring
from schedgap.heuristics.ddljs.greedy_state import GreedyState
from schedgap.heuristics.g_vne.lp_rs_mde import TRIES
from schedgap.solvers.result import NO_DEADLINE, Deadline, Result, SolveOptions

NEGLIGIBLE = 1e-9
"""Gains below this share of the slot's largest are decided after the others, or left to filling: a linear program
that has both would not see them."""


@dataclass(frozen=True)
class SlotProblem:
    """Problem (10) of one slot."""

    instance: GVneInstance | None  # pi_k = mu_i(z_i + k) - mu_i(z_i); None where no job gains anything worth counting
    jobs: list[int]  # positions of its jobs
    ceiling: float  # sum of each job's best gain: an upper bound on what the slot can add
    left_out: float  # the part of `ceiling` that jobs with negligible gains make up
    later: list[int]  # positions of the jobs with negligible gains above 0


@dataclass(frozen=True)
class Answer:
    """What an inner method returns."""

    solution: Solution  # solution of g-vne
    bound: float | None = None  # proven, on what any rings of the slot add
    gamma: int | None = None  # Gamma of Lemma 7
    # of Algorithm 2: the largest share of a server's and of a link's capacity that is used, and the factors beta and
    # gamma that Theorem 8 allows them
    loads: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """What an inner method is asked to keep to."""

    seed: int = 0  # seed of all randomness
    gap: float = 0.0  # relative gap at which an exact method may stop
    deadline: Deadline = NO_DEADLINE  # deadline of the whole run
    start: Solution | None = None  # a solution to start from
    tries: int = TRIES  # most roundings of Algorithm 2, u_b

    def options(self) -> SolveOptions:
        """The same for an exact method, on one thread."""
        return SolveOptions(deadline=self.deadline, relative_gap=self.gap, seed=self.seed, threads=1, start=self.start)


Inner = Callable[[GVneInstance, Asked], Answer]


def slot_problem(
    progress: GreedyState, active: list[int], as_printed: bool = False, placed: Mapping[int, Ring] | None = None
) -> SlotProblem:
    """The weights of a slot, given what every job has already, on what the rings in `placed` leave of the network.

    Ring sizes go up to what is left of the budget (11) and what the network could host of the job alone; `as_printed`
    up to N_i instead of the latter.
    """
    rows = []
    for i in active:
        rows.append(progress.gains(i, progress.allowed(i) if as_printed else progress.largest(i)))
    best = [max(0.0, float(row.max())) for row in rows]
    least = NEGLIGIBLE * max(best, default=0.0)
    kept = [n for n, worth in enumerate(best) if worth > least]
    jobs = [
        Job.model_construct(
            id=progress.instance.jobs[active[n]].id,
            demand=progress.instance.jobs[active[n]].demand,
            bandwidth=progress.instance.jobs[active[n]].bandwidth,
            utility=tuple(rows[n].tolist()),
        )
        for n in kept
    ]
    made = None
    if jobs:
        made = GVneInstance.model_construct(
            problem="g-vne",
            name=f"{progress.instance.name}-slot-{len(progress.slots) + 1}",
            servers=progress.instance.servers if not placed else progress.remaining_servers(placed),
            links=progress.instance.links if not placed else progress.remaining_links(placed),
            jobs=tuple(jobs),
        )
    total = float(np.sum(best))
    return SlotProblem(
        made,
        [active[n] for n in kept],
        total,
        total - float(np.sum([best[n] for n in kept])),
        [active[n] for n, worth in enumerate(best) if 0 < worth <= least],
    )


def _greedy(instance: GVneInstance, asked: Asked) -> Answer:
    from schedgap.heuristics.g_vne.greedy import greedy

    solution = greedy(instance, seed=asked.seed).solution
    assert solution is not None
    return Answer(solution)


def _colgen(instance: GVneInstance, asked: Asked) -> Answer:
    from schedgap.solvers.exact.g_vne.colgen import solve_colgen

    return _proven(solve_colgen(instance, asked.options()))


def _engine(name: str) -> Inner:
    def call(instance: GVneInstance, asked: Asked) -> Answer:
        from schedgap.formulations.common.solution import parsed
        from schedgap.formulations.g_vne.check import check
        from schedgap.formulations.g_vne.instance import GVneSolution
        from schedgap.formulations.g_vne.models import build_ilp
        from schedgap.solvers.engines.declarative import solve_declarative

        build, check_it = partial(build_ilp, instance), partial(parsed(check, GVneSolution), instance)
        return _proven(solve_declarative(build, name, asked.options(), check_it))

    return call


def _rounding(**settings: Any) -> Inner:
    def call(instance: GVneInstance, asked: Asked) -> Answer:
        from schedgap.heuristics.g_vne.lp_rs_mde import lp_rs_mde

        run = lp_rs_mde(instance, seed=asked.seed, deadline=asked.deadline, tries=asked.tries, **settings)
        loads = {name: run.info[key] for name, key in _LOADS.items()}
        inside = None if run.info.get("outside_model") else run.bound
        return Answer(run.solution or {"rings": {}}, inside, int(run.info["gamma"]), loads)

    return call


_LOADS = {"server": "server_share", "beta": "beta_printed", "link": "link_share", "gamma": "gamma_printed"}


def _proven(result: Result) -> Answer:
    return Answer(result.solution or {"rings": {}}, result.bound)


INNER: dict[str, Inner] = {
    "colgen": _colgen,
    "greedy": _greedy,
    "lp-rs-mde": _rounding(variant="no-violation"),
    "lp-rs-mde-mdk": _rounding(variant="mdk"),
    "lp-rs-mde-printed": _rounding(variant="no-violation", lp="augmented"),
    "printed": _rounding(variant="vanilla", lp="augmented"),
    "cbc": _engine("cbc"),
    "highs": _engine("highs"),
    "cpsat": _engine("cpsat"),
}
"""Inner methods by name: ``colgen`` and the engines are exact, ``greedy`` proves nothing."""


OVERLOADS = "printed"
"""The inner method that may overload servers and links: Algorithm 2 as published."""


PRINTED = frozenset({"lp-rs-mde-printed", OVERLOADS})
"""Inner methods that are to see the slot as the paper has it: ring sizes that fit nowhere included."""


ALGORITHM_2 = frozenset({"lp-rs-mde", "lp-rs-mde-mdk", "lp-rs-mde-printed", OVERLOADS})
"""Inner methods that are asked in every slot, so that a run shows what Algorithm 2 itself does."""

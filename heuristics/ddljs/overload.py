"""How likely Algorithm 2's roundings overload a server or a link in some slot of the horizon: Theorem 10, exactly."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.heuristics.ddljs.greedy_state import GreedyState
from schedgap.heuristics.ddljs.inner import (
    slot_problem,
)
from schedgap.heuristics.g_vne.lp_rs_mde import Plan, make_plan

MOST_OUTCOMES = 5_000
"""Outcomes of a slot's rounding, and of the slots before it, up to which all are gone through."""


MOST_PLANS = 200
"""Linear programs that are solved for one instance at most."""


Row = tuple[str, int, int]
"""A server's resource ("server", node, resource), or a link ("link", its place, 0)."""


State = tuple[int, ...]
"""Worker-slots of every job so far."""


@dataclass(frozen=True)
class Overload:
    """The likeliest overload of one kind."""

    chance: float  # chance of a load of its printed factor times its capacity, or more, in some slot
    row: Row | None  # which


def likeliest_overloads(instance: DdljsInstance) -> dict[str, Overload] | str:
    """The largest probability of an overload, by kind of row; or why it is not computed.

    Every slot is one rounding of Algorithm 2 as printed (Rost and Schmid's program, u_b = 1) of what the slots before
    left; what jobs have done by then is followed through all outcomes.
    """
    progress = GreedyState(instance)
    chance: dict[State, float] = {(0,) * len(instance.jobs): 1.0}
    # by state, of each row: the probability of being there with this row overloaded already
    overloaded: dict[State, dict[Row, float]] = {state: {} for state in chance}
    plans = 0
    for slot in range(1, instance.horizon + 1):
        after: dict[State, float] = {}
        over: dict[State, dict[Row, float]] = {}
        for state, probability in chance.items():
            progress.done = list(state)
            active = [i for i, job in enumerate(instance.jobs) if job.arrival <= slot and progress.allowed(i)]
            problem = slot_problem(progress, active, as_printed=True)
            plans += 1
            if plans > MOST_PLANS:
                return f"more than {MOST_PLANS} linear programs"
            if problem.instance is None:
                outcomes: list[tuple[float, State, frozenset[Row]]] = [(1.0, state, frozenset())]
            else:
                plan = make_plan(problem.instance, lp="augmented")
                if _count(plan) > MOST_OUTCOMES:
                    return f"a rounding has more than {MOST_OUTCOMES} outcomes"
                outcomes = list(_outcomes(plan, problem.jobs, state))
            for part, reached, rows in outcomes:
                after[reached] = after.get(reached, 0.0) + probability * part
                there = over.setdefault(reached, {})
                for row, before in overloaded[state].items():
                    there[row] = there.get(row, 0.0) + before * part
                for row in rows:
                    new = probability - overloaded[state].get(row, 0.0)
                    there[row] = there.get(row, 0.0) + new * part
        chance, overloaded = after, over
        if len(chance) > MOST_OUTCOMES:
            return f"more than {MOST_OUTCOMES} states"
    totals: dict[Row, float] = {}
    for rows_of in overloaded.values():
        for row, value in rows_of.items():
            totals[row] = totals.get(row, 0.0) + value
    return {kind: _largest(totals, kind) for kind in ("server", "link")}


def _largest(totals: Mapping[Row, float], kind: str) -> Overload:
    own = [(value, row) for row, value in totals.items() if row[0] == kind]
    return Overload(*max(own)) if own else Overload(0.0, None)


def _count(plan: Plan) -> int:
    return int(np.prod([last - first + 1 for first, last in plan.mixture.groups], dtype=float))


def _outcomes(plan: Plan, jobs: list[int], state: State) -> Iterator[tuple[float, State, frozenset[Row]]]:
    """Every outcome of one rounding: its probability, what jobs have done then, the rows it overloads."""
    mixture = plan.mixture
    rows = _rows(plan)
    choices = []
    for first, last in mixture.groups:
        none = max(0.0, 1.0 - float(mixture.weights[first:last].sum()))
        choices.append([(none, -1), *((float(mixture.weights[k]), k) for k in range(first, last))])
    for picked in itertools.product(*choices):
        part = float(np.prod([weight for weight, _ in picked]))
        if part <= 0.0:
            continue
        chosen = [k for _, k in picked if k >= 0]
        done = list(state)
        for k in chosen:
            done[jobs[mixture.columns[k].group]] += mixture.columns[k].payload.size
        share: NDArray[np.float64] = mixture.share(chosen)
        beyond = np.flatnonzero((share >= plan.factors.printed - 1e-9) & (share > 1 + 1e-9))
        yield part, tuple(done), frozenset(rows[int(row)] for row in beyond)


def _rows(plan: Plan) -> dict[int, Row]:
    """What each row of the program stands for; the same in every slot."""
    subproblem = plan.second.subproblem
    named: dict[int, Row] = {}
    for (node, resource), row in np.ndenumerate(subproblem.node_row):
        named[int(row)] = ("server", int(node), int(resource))
    for place, link in enumerate(subproblem.link_row.tolist()):
        named[int(link)] = ("link", place, 0)
    return named

"""What paper 002 proves about HadarE: Theorem 3 and its corollary; proofs are in docs/proofs-hadar.md."""

from __future__ import annotations

from typing import cast

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.hadar.forked import node_speeds
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.heuristics.common.guarantee import (
    READING,
    Assumption,
    Case,
    Evaluation,
    Verdict,
    at_most,
    claims,
    not_applicable,
)
from schedgap.heuristics.hadar.forked_rounds import Forked, fork, input_order, utilisation_by_copies

LONGEST_CHAIN = 2000
"""Slots of work on the slowest node up to which copies are simulated."""


EQUAL = 1e-9
"""Two utilisations that differ by less, relatively, are equal."""


def _instance(case: Case) -> HadarInstance:
    return cast(HadarInstance, case.instance)


def _work_and_speed(case: Case) -> tuple[Floats, Floats]:
    """(J,) steps and (J, H) steps per slot."""
    instance = _instance(case)
    work = np.array([job.work for job in instance.jobs], dtype=float)
    return work, node_speeds(instance) * instance.slot_length


def _not_a_batch(case: Case) -> str | None:
    late = any(job.arrival > 1 for job in _instance(case).jobs)
    return "a job arrives after the start" if late else None


def _not_able(case: Case) -> str | None:
    _, speed = _work_and_speed(case)
    if speed.shape[1] < 2:
        return "a single node"
    return "a node cannot run a job" if (speed <= 0).any() else None


def _slot_too_long(case: Case) -> str | None:
    work, speed = _work_and_speed(case)
    shortest = float((work / speed.max(axis=1)).min())
    return None if shortest > 1 else "a job needs at most one slot on its fastest node"


def _several_jobs(case: Case) -> str | None:
    return "several jobs" if len(_instance(case).jobs) > 1 else None


BATCH = Assumption("a batch: all jobs are present at the start", _not_a_batch)


NODES = Assumption("n >= 2 nodes, each of which can run every job", _not_able)


SLOT = Assumption("the slot is shorter than the shortest job's training time", _slot_too_long)


ONE_JOB = Assumption("one job", _several_jobs)


SPLIT = Assumption("steps are split in proportion to speed over the copies that are scheduled, the fastest nodes first")


def _too_long(work: Floats, speed: Floats) -> str | None:
    if float(work.sum()) / float(speed.min()) > LONGEST_CHAIN:
        return f"simulated for at most {LONGEST_CHAIN} slots of work on the slowest node"
    return None


def _chain(case: Case) -> list[float] | Evaluation:
    """CRU^1..CRU^n, or the verdict where they are not known or CRU^n = CRU^(n+1) is refuted."""
    work, speed = _work_and_speed(case)
    nodes = speed.shape[1]
    wrong = _too_long(work, speed)
    if wrong is not None:
        return not_applicable(wrong)
    *cru, beyond = utilisation_by_copies(work, speed, nodes + 1)
    last = cru[-1]
    if abs(last - beyond) <= EQUAL * max(last, beyond):
        return cru
    reason = f"CRU^{nodes} = {last:.6g} has to equal CRU^{nodes + 1} = {beyond:.6g}"
    return Evaluation(Verdict.REFUTED, max(last, beyond), min(last, beyond), reason)


def _theorem_3(case: Case) -> Evaluation:
    cru = _chain(case)
    if isinstance(cru, Evaluation):
        return cru
    nodes = len(cru)
    # strict: one copy below any number between, that below n copies; with two nodes one copy below two
    first, between, last = cru[0], range(2, nodes), cru[nodes - 1]
    pairs = [(first, cru[x - 1], 1, x) for x in between] + [(cru[x - 1], last, x, nodes) for x in between]
    left, right, fewer, more = max(pairs or [(first, last, 1, nodes)], key=lambda pair: pair[0] / pair[1])
    reason = f"CRU^{fewer} = {left:.6g} has to be less than CRU^{more} = {right:.6g}"
    if left >= right * (1 - 1e-12):
        return Evaluation(Verdict.REFUTED, left, right, reason)
    return Evaluation(Verdict.HELD, left, right, reason)


def _theorem_3_weak(case: Case) -> Evaluation:
    cru = _chain(case)
    if isinstance(cru, Evaluation):
        return cru
    return at_most(max(cru[:-1]), cru[-1], "the largest CRU^x, x < n, and CRU^n")


def _n_copies(case: Case) -> tuple[Forked, int] | str:
    """The rounds with n copies of every job on n nodes, and n; or why they are not simulated."""
    work, speed = _work_and_speed(case)
    wrong = _too_long(work, speed)
    if wrong is not None:
        return wrong
    nodes, horizon = speed.shape[1], LONGEST_CHAIN + len(work)
    ran = fork(work, speed, lambda: speed, nodes, horizon, [1] * len(work), input_order)
    return (ran, nodes) if len(ran.busy) > 1 else "everything is done in one round"


def _corollary(case: Case) -> Evaluation:
    found = _n_copies(case)
    if isinstance(found, str):
        return not_applicable(found)
    ran, nodes = found
    fewest = min((len(ran.rounds[slot]), slot) for slot in range(1, len(ran.busy)))
    return at_most(nodes, fewest[0], f"n and the nodes with a copy in round {fewest[1]} of {len(ran.busy)}")


def _corollary_busy(case: Case) -> Evaluation:
    found = _n_copies(case)
    if isinstance(found, str):
        return not_applicable(found)
    ran, nodes = found
    least = min((busy, slot) for slot, busy in enumerate(ran.busy[:-1], 1))
    return at_most(nodes, least[0], f"n and the busy node-time in round {least[1]} of {len(ran.busy)}, in slots")


claim = claims("002", "hadar")


_FORKED = ("nodes", "long_nodes", "one_job", "forked_named")


HADARE = (
    claim(
        "theorem-3",
        "paper 002, Theorem 3",
        "CRU^1 < CRU^x < CRU^n = CRU^(n+j), 1 < x < n copies",
        (BATCH, NODES, SLOT, SPLIT),
        _theorem_3,
        families=_FORKED,
    ),
    claim(
        "theorem-3-weak",
        "paper 002, Theorem 3 with <= for <",
        "CRU^x <= CRU^n = CRU^(n+j), x < n copies: n copies use the cluster best",
        (BATCH, NODES, SLOT, SPLIT),
        _theorem_3_weak,
        kind=READING,
        families=_FORKED,
    ),
    claim(
        "theorem-3-single-job",
        "ours",
        "one job on its x fastest nodes, steps split by speed: CRU^x <= CRU^n = CRU^(n+j)",
        (ONE_JOB, BATCH, NODES, SPLIT),
        _theorem_3_weak,
        families=("one_job",),
    ),
    claim(
        "corollary",
        "paper 002, Corollary of Theorem 3: a node is idle in a round when it has no copy",
        "n copies of every job: every node has a copy in every round but possibly the last",
        (BATCH, NODES, SLOT, SPLIT),
        _corollary,
        families=_FORKED,
    ),
    claim(
        "corollary-busy",
        "paper 002, Corollary of Theorem 3: a node is idle when it is not busy, as in the proof's T_i^B",
        "n copies of every job: every node is busy throughout every round but possibly the last",
        (BATCH, NODES, SLOT, SPLIT),
        _corollary_busy,
        kind=READING,
        families=_FORKED,
    ),
)
"""The rows of the ledger about HadarE."""

"""The pair problem (Theorem 1): when does a new job start beside a running one, in continuous time.

The running job O has solo time a left, the new job N takes n alone; while both run they are slowed by xi_O and
xi_N. N starts at kappa in [0, a] (kappa = a: after O has ended). The policy sjf-bsbf decides by a compiled form of
the same rule, ``heuristics/gpu_sharing/kernel.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.layout import Layout, RowFamily, VariableFamily
from schedgap.formulations.gpu_sharing.dynamics import iteration_time, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance

_LARGEST = 1e9


@dataclass(frozen=True)
class Pair:
    """One instance of the pair problem.

    Raises InputError: a number is out of range (times from 1e-9 to 1e9, slowdowns from 1 to 1e6).
    """

    left: float  # a > 0, solo time the running job has left
    new: float  # n > 0, solo time of the new job
    # slow_running, slow_new: xi_O, xi_N >= 1
    slow_running: float
    slow_new: float

    def __post_init__(self) -> None:
        for name in ("left", "new"):
            if not 1 / _LARGEST <= getattr(self, name) <= _LARGEST:
                raise InputError(f"pair: {name}: must be from 1e-9 to 1e9, got {getattr(self, name)}")
        for name in ("slow_running", "slow_new"):
            if not 1 <= getattr(self, name) <= 1e6:
                raise InputError(f"pair: {name}: must be from 1 to 1e6, got {getattr(self, name)}")

    @property
    def switch(self) -> float:
        """The kappa before which N ends first: max(0, a - xi_N n / xi_O)."""
        return max(0.0, self.left - self.slow_new * self.new / self.slow_running)


@dataclass(frozen=True)
class Choice:
    """An optimal start: kappa, the mean completion time there, and whether it shares (kappa = 0)."""

    kappa: float
    mean: float
    share: bool


def completion_times(pair: Pair, kappa: float) -> tuple[float, float]:
    """(T_O, T_N) when N starts at `kappa`; eqs. (18) to (23).

    The job that ends first has run ``shared`` slowed the whole time; the other one has done shared / xi of
    its work by then and goes on alone.
    """
    a, n = pair.left, pair.new
    if pair.slow_new * n >= pair.slow_running * (a - kappa):
        shared = pair.slow_running * (a - kappa)
        return kappa + shared, kappa + shared * (1 - 1 / pair.slow_new) + n
    shared = pair.slow_new * n
    return a + shared * (1 - 1 / pair.slow_running), kappa + shared


def mean_completion(pair: Pair, kappa: float) -> float:
    """(T_O + T_N) / 2: continuous, piecewise linear and concave in kappa on [0, a]."""
    return sum(completion_times(pair, kappa)) / 2


def best_start(pair: Pair) -> Choice:
    """The exact minimiser over [0, a]: an end point, since the mean is concave. Ties share."""
    now, later = mean_completion(pair, 0.0), mean_completion(pair, pair.left)
    return Choice(0.0, now, True) if now <= later else Choice(pair.left, later, False)


def should_share(pair: Pair) -> bool:
    """The exact rule: sharing now is strictly better than waiting.

    Share iff xi_O (2 - 1/xi_N) < 2 or a > n (xi_N (2 - 1/xi_O) - 1).
    """
    running, new = pair.slow_running, pair.slow_new
    return running * (2 - 1 / new) < 2 or pair.left > pair.new * (new * (2 - 1 / running) - 1)


def pair_of(instance: GpuSharingInstance) -> Pair:
    """The pair of an instance with two jobs, in seconds: O is the one that arrives first, N comes when it arrives.

    Each takes the fewest accumulation steps that fit a GPU alone. `left` is what O has left at N's arrival if it
    started at its own. Raises InputError: there are not two jobs, one fits no GPU, or O would be over before N arrives.
    """
    if len(instance.jobs) != 2:
        raise InputError(f"job-pair: needs an instance of two jobs, got {len(instance.jobs)}")
    first = 0 if instance.jobs[0].arrival <= instance.jobs[1].arrival else 1
    one, other = instance.jobs[first], instance.jobs[1 - first]
    data = tables(instance)
    for j, job in enumerate(instance.jobs):
        if not data.steps[j]:
            raise InputError(f"job-pair: job {job.id} fits no GPU")
    seconds = [job.iterations * iteration_time(job, data.steps[j][0]) for j, job in enumerate(instance.jobs)]
    remaining = seconds[first] - (other.arrival - one.arrival) * instance.slot_length
    if remaining <= 0:
        raise InputError(f"job-pair: job {one.id} alone is over before job {other.id} arrives")
    return Pair(remaining, seconds[1 - first], instance.slowdown(one.id, other.id), instance.slowdown(other.id, one.id))


VARIABLES = {
    "kappa_first": VariableFamily("", "kappa where N ends first, else 0"),
    "kappa_second": VariableFamily("", "kappa - s where O ends first, else 0; s is the kappa before which N does"),
    "newcomer_ends_first": VariableFamily("", "1 where N ends first"),
}
ROWS = {
    "case_2": RowFamily("(22)-(25)", "kappa_first <= s where N ends first, else 0"),
    "case_1": RowFamily("(18)-(21)", "kappa_second <= a - s where O ends first, else 0"),
}


def pair_milp(pair: Pair) -> DeclarativeModel:
    """The pair problem as a MILP with one binary: which of the two linear pieces kappa lies on.

    Minimise the mean over kappa = k1 + s (1 - y) + k2 with s = switch: 0 <= k1 <= s y (N ends first, y = 1) and
    0 <= k2 <= (a - s) (1 - y) (O ends first). On each piece the mean is its value at the piece's lower end plus a slope
    times the distance from there: 1/2 on the first, 1 - xi_O (2 - 1/xi_N) / 2 on the second.

    Returns
    -------
    DeclarativeModel
        Extracts ``{"kappa": kappa}``. k1 and k2 are continuous, but every vertex has them at 0 or at s and a - s, so
        all three engines take it.
    """
    s, a = pair.switch, pair.left
    out = Layout(pulp.LpProblem("pair", pulp.LpMinimize), VARIABLES, ROWS, "the mean of T_O and T_N, in seconds")
    first = out.variable("kappa_first", high=s, integer=False)
    second = out.variable("kappa_second", high=a - s, integer=False)
    piece = out.variable("newcomer_ends_first", high=1 if s > 0 else 0)
    slope = 1 - pair.slow_running * (2 - 1 / pair.slow_new) / 2
    start, middle = mean_completion(pair, 0.0), mean_completion(pair, s)
    out.objective([(piece, start - middle), (first, 0.5), (second, slope)], middle)
    out.row("case_2", (), [(first, 1.0), (piece, -s)], "<=", 0)
    out.row("case_1", (), [(second, 1.0), (piece, a - s)], "<=", a - s)

    def extract(value: Callable[[pulp.LpVariable], float]) -> dict[str, Any]:
        return {"kappa": value(first) + s * (1 - value(piece)) + value(second)}

    return DeclarativeModel(out.problem, extract, 1, layout=out, tightened=False)

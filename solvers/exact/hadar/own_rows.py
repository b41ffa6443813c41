"""Rows and an objective of a user's own over hadar's schedules: what a schedule counts in them, and what it is charged.

Idea: the master knows schedules that run no slot after their work is done, and no job that runs and does not finish.
Any allocation becomes such a choice when jobs that do not finish are dropped and the others are cut where their work is
done. That switches `run` off, never on, and makes a `finish` earlier. So a change is one that the master can say when
no row breaks, and no objective gets worse, by either step: see :func:`own_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.changes import Changes, Place
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.solvers.changed_master import whole_changes


@dataclass(frozen=True)
class OwnRows:
    """Sums over schedules: a number for every slot in which a job runs, and one for the slot in which it finishes.

    Attributes
    ----------
    runs, finishes : (N, J, T + 1) by job and slot; slot 0 is unused
    upper : (N,) levels; every sum is at most its own
    worth : (J, T + 1) what finishing in a slot is worth instead of the utility, to be maximised; None where that stands
    run_worth : (J, T + 1) what running in a slot adds to it, never above 0
    factor : what one unit of the user's objective is in units of these
    """

    runs: Floats
    finishes: Floats
    upper: Floats
    worth: Floats | None
    run_worth: Floats
    factor: float

    def entries(self, j: int, levels: Ints, finish: int) -> Floats:
        """(N,) what a schedule, 0 in idle slots, adds to the sums."""
        added: Floats = self.runs[:, j] @ (levels > 0) + self.finishes[:, j, finish]
        return added

    def charges(self, duals: Floats) -> tuple[Floats, Floats]:
        """(J, T + 1) charges at the duals for running in a slot and for finishing in it."""
        return np.tensordot(duals, self.runs, axes=1), np.tensordot(duals, self.finishes, axes=1)


def own_rows(instance: HadarInstance, changes: Changes) -> OwnRows | None:
    """The changes as sums over schedules.

    Returns
    -------
    OwnRows; None where a change is about other families than `run` and `finish`, has numbers that are no small whole
    ones, or an allocation could keep it that has no counterpart in the master: as a sum that is at most its level, a
    row needs coefficients of `run` from 0 and coefficients of `finish` that do not fall from slot to slot; what is
    maximised needs coefficients of `run` up to 0 and of `finish` that do not rise.
    """
    if not changes.families() <= {"run", "finish"}:
        return None
    whole = whole_changes(changes)
    if whole is None:
        return None
    limited, goal, factor = whole
    limited = [row for row in limited if row[1] < 0 or max(row[0].values(), default=0) > 0]  # others always hold
    sums = [_sums(instance, terms) for terms, _ in limited]
    worth, run_worth = None, np.zeros((len(instance.jobs), instance.horizon + 1))
    if goal is not None:
        run_worth, worth = (changes.sense * MAXIMISE * part for part in _sums(instance, goal))
    counted = [*sums, *([] if worth is None else [(-run_worth, -worth)])]
    if not all(_lost_by_nothing(instance, runs, finishes) for runs, finishes in counted):
        return None
    shape = (len(sums), *run_worth.shape)
    return OwnRows(
        np.array([runs for runs, _ in sums]).reshape(shape),
        np.array([finishes for _, finishes in sums]).reshape(shape),
        np.array([level for _, level in limited], dtype=float),
        worth,
        run_worth,
        factor,
    )


def _sums(instance: HadarInstance, terms: Mapping[Place, int]) -> tuple[Floats, Floats]:
    """(J, T + 1) coefficients of `run` and of `finish`."""
    runs, finishes = (np.zeros((len(instance.jobs), instance.horizon + 1)) for _ in range(2))
    for (family, key), coefficient in terms.items():
        (runs if family == "run" else finishes)[instance.job_index[str(key[0])], int(key[1])] += coefficient
    return runs, finishes


def _lost_by_nothing(instance: HadarInstance, runs: Floats, finishes: Floats) -> bool:
    """Whether a sum never rises when a job stops to run where its work is done, or at once if it does not finish."""
    rising = all((np.diff(finishes[j, job.arrival :]) >= 0).all() for j, job in enumerate(instance.jobs))
    return bool((runs >= 0).all()) and rising

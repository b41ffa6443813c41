"""What a schedule is worth that breaks nothing but the horizon."""

from __future__ import annotations

from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.numbers import ratio
from schedgap.solvers.incumbent import contradicts


def ratio_at_own_length(
    problem: Problem, instance: Instance, who: str, objective: float | None, proven: float | None
) -> float | None:
    """The ratio of its objective to a bound on schedules of any length; None where either is unknown.

    It may count in a score. The objective is exact, and the bound is below every schedule's, within the horizon or
    not: 1/ratio is at most 1 and at most what the schedule is worth without the horizon, so no scheduler gains by
    being too long over one that is optimal. To an optimum within the horizon it would not do: a schedule that is
    longer may have a better mean JCT than that.

    Parameters
    ----------
    proven : a bound on the schedules within the horizon, or their optimum

    Raises Disagreement: the objective is better than the bound: a defect of ours.
    """
    if objective is None:
        return None
    bound = problem.bound_of_any_length(instance, proven)
    if bound is not None and contradicts(objective, bound, problem.sense):
        raise Disagreement(f"{who} has {objective:.12g} on {instance.name}, better than {bound:.12g}, at any length")
    return ratio(objective, bound, problem.sense)

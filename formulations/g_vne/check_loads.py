"""The independent checker of roundings that may overload servers and links: what they ask of them is measured."""

from __future__ import annotations

from fractions import Fraction

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.check_rings import check_rings, known_rings
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.solution import GVneSolution

CAPACITIES = ("server capacity", "link capacity")


def check_loads(instance: GVneInstance, solution: GVneSolution) -> CheckReport:
    """Check everything but capacities, which are measured instead: ``lp-rs-mde`` in the variant ``vanilla``.

    Parameters
    ----------
    instance : the instance
    solution : as for :func:`~schedgap.formulations.g_vne.check.check`

    Returns
    -------
    CheckReport
        Violations of ring size and of routes. ``objective`` is the sum of the utilities of all rings. ``details``:
        ``server_use`` and ``link_use``, the largest load over capacity (of those that are not 0), and
        ``overloaded``, a line for each capacity that is not kept.

    Raises
    ------
    InputError
        The instance does not have a job or a server that is named.
    """
    rings = solution.rings
    known_rings(instance, {job.id for job in instance.jobs}, rings)
    found, details = check_rings(instance, instance.jobs, rings)
    violations = [violation for violation in found if violation.constraint not in CAPACITIES]
    overloaded = [violation.message for violation in found if violation.constraint in CAPACITIES]
    total: Fraction | None = Fraction(0)
    for job in instance.jobs:
        size = len(rings[job.id].workers) if job.id in rings else 0
        if size > len(job.utility):
            message = f"job {job.id}: a ring of {size} workers, at most {len(job.utility)} allowed"
            violations.append(Violation("ring size", message, float(size - len(job.utility))))
            total = None
        elif size and total is not None:
            total += exact(job.utility[size - 1])
    return CheckReport(tuple(violations), total, {**details, "overloaded": overloaded})

"""The independent checker of g-vne: exact rationals, shares no code with any model or heuristic."""

from __future__ import annotations

from fractions import Fraction

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.g_vne.check_rings import check_rings, known_rings, loads_measured, overloads
from schedgap.formulations.g_vne.instance import GVneInstance, GVneSolution


def check(instance: GVneInstance, solution: GVneSolution) -> CheckReport:
    """Check the rings and recompute their utility.

    Raises InputError: the instance does not have a job or a server that is named.

    Parameters
    ----------
    solution : a ring for each job that is accepted

    Returns
    -------
    CheckReport
        Violations of ring size, number and ends of routes, links that do not exist, nodes that a route visits
        twice, and capacities of servers (18) and links (19), each with its numbers. ``objective`` is the sum of the
        utilities, None where a ring has more workers than the job's utility knows. ``details``: ``workers`` by job,
        ``server_use`` and ``link_use``, the largest shares of a capacity that are used.

    Notes
    -----
    O(size of the solution) exact operations.
    """
    rings = solution.rings
    known_rings(instance, {job.id for job in instance.jobs}, rings)
    violations, details = check_rings(instance, instance.jobs, rings)
    total: Fraction | None = Fraction(0)
    for job in instance.jobs:
        ring = rings.get(job.id)
        if ring is None:
            continue
        size = len(ring.workers)
        if size > len(job.utility):
            text = f"job {job.id}: a ring of {size} workers, at most {len(job.utility)} allowed"
            violations.append(Violation("ring size", text, float(size - len(job.utility))))
            total = None
        elif total is not None:
            total += exact(job.utility[size - 1])
    return CheckReport(tuple(violations), total, details)


# The independent checker of roundings that may overload servers and links: what they ask of them is measured.


def check_loads(instance: GVneInstance, solution: GVneSolution) -> CheckReport:
    """Check everything but capacities, which are measured instead: ``lp-rs-mde-printed``.

    Raises InputError: the instance does not have a job or a server that is named.

    Returns
    -------
    CheckReport
        As :func:`~schedgap.formulations.g_vne.check.check`, but without violations of capacities: they stand in
        ``details["overloaded"]``, a line for each with beta or gamma of the embedded rings, and ``details["beyond"]``
        counts those above it.
    """
    report = check(instance, solution)
    loads = overloads(instance, instance.jobs, solution.rings)
    return loads_measured(report, loads)

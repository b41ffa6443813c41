"""The independent checker of ddljs: exact rationals, utilities in decimals of 60 digits, no code of any model."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.ddljs.instance import DdljsInstance, Job
from schedgap.formulations.ddljs.solution import DdljsSolution
from schedgap.formulations.g_vne.check_rings import check_rings, known_rings

DIGITS = 60
"""Decimal digits that roots, logarithms and exponentials are rounded to."""


FAR = 300
"""A sigmoid this many units of its exponent away from the middle counts as 0 or 1: less than 1e-130 off."""


def check(instance: DdljsInstance, solution: DdljsSolution) -> CheckReport:
    """Check the rings of every slot and recompute their utility.

    Raises InputError: the instance does not have a job or a server that is named, or there are fewer or more entries
    than slots.

    Parameters
    ----------
    solution : the rings of every slot, the first is slot 1

    Returns
    -------
    CheckReport
        Violations, slot by slot, of what :func:`~schedgap.formulations.g_vne.check_rings.check_rings` looks at,
        and of arrival, ring size (2) and budget (3). ``objective`` is sum mu_i(efficiency worker-slots) over all
        jobs, those that never ran included: exact for linear utilities, within 1e-55 of the scale otherwise.
        ``details``: ``worker_slots`` and ``utility`` by job, ``server_use`` and ``link_use``, the largest shares
        of a capacity that are used in any slot.

    Notes
    -----
    O(size of the solution) exact operations.
    """
    violations: list[Violation] = []
    total = {job.id: 0 for job in instance.jobs}
    arrival = {job.id: job.arrival for job in instance.jobs}
    largest = {job.id: job.max_workers for job in instance.jobs}
    known = set(total)
    server_use = link_use = 0.0
    if len(solution.slots) != instance.horizon:
        raise InputError(f"solution: slots: has {len(solution.slots)} entries, the horizon is {instance.horizon}")
    for slot, entry in enumerate(solution.slots, start=1):
        rings = entry.rings
        known_rings(instance, known, rings, f"slots[{slot - 1}].")
        if not rings:
            continue
        running = [job for job in instance.jobs if job.id in rings]
        found, details = check_rings(instance, running, rings, f"slot {slot}, ")
        violations.extend(found)
        server_use = max(server_use, details["server_use"])
        link_use = max(link_use, details["link_use"])
        for job in running:
            size = len(rings[job.id].workers)
            total[job.id] += size
            if slot < arrival[job.id]:
                text = f"slot {slot}, job {job.id}: arrives in slot {job.arrival}"
                violations.append(Violation("arrival", text, float(job.arrival - slot)))
            if size > largest[job.id]:
                text = f"slot {slot}, job {job.id}: a ring of {size} workers, at most {job.max_workers} allowed"
                violations.append(Violation("ring size", text, float(size - job.max_workers)))
    worth: dict[str, Fraction] = {}
    for job in instance.jobs:
        violations.extend(_budget(job, total[job.id]))
        worth[job.id] = _utility(job, total[job.id])
    return CheckReport(
        tuple(violations),
        sum(worth.values(), Fraction(0)),
        {
            "worker_slots": total,
            "utility": {name: float(value) for name, value in worth.items()},
            "server_use": server_use,
            "link_use": link_use,
        },
    )


def _budget(job: Job, slots: int) -> list[Violation]:
    """Violations of (3): demand times worker-slots over the horizon."""
    found = []
    for name, limit in job.budget.items():
        used = exact(job.demand.get(name, 0)) * slots
        if used > exact(limit) * (1 + CHECK_TOLERANCE):
            text = f"job {job.id}, {name}: {float(used):.10g} used over the horizon, budget {limit:.10g}"
            found.append(Violation("budget", text, float(used - exact(limit))))
    return found


def _utility(job: Job, slots: int) -> Fraction:
    """mu_i(efficiency * slots)."""
    shape = job.utility
    x = exact(job.efficiency) * slots
    scale = exact(shape.scale)
    if shape.kind == "linear":
        return scale * x
    if shape.kind == "energy":
        return -scale * x * x
    context = Context(prec=DIGITS, rounding=ROUND_HALF_EVEN)
    if shape.kind == "sqrt":
        return scale * Fraction(context.sqrt(_decimal(x, context)))
    if shape.kind == "log1p":
        return scale * Fraction(context.ln(_decimal(1 + x, context)))
    if shape.kind == "log":
        assert shape.least is not None
        return scale * Fraction(context.ln(_decimal(max(x, exact(shape.least)), context)))
    assert shape.steepness is not None and shape.midpoint is not None
    z = exact(shape.steepness) * (x - exact(shape.midpoint))
    if abs(z) > FAR:
        return scale if z > 0 else Fraction(0)
    return scale / (1 + Fraction(context.exp(_decimal(-z, context))))


def _decimal(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))

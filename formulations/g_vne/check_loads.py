"""The independent checker of roundings that may overload servers and links: what they ask of them is measured."""

from __future__ import annotations

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.g_vne.check import check
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.solution import GVneSolution

CAPACITIES = ("server capacity", "link capacity")


def check_loads(instance: GVneInstance, solution: GVneSolution) -> CheckReport:
    """Check everything but capacities, which are measured instead: ``lp-rs-mde-printed``.

    Returns
    -------
    CheckReport
        As :func:`~schedgap.formulations.g_vne.check.check`, but without violations of capacities: they stand in
        ``details["overloaded"]``, a line for each.

    Raises
    ------
    InputError
        The instance does not have a job or a server that is named.
    """
    report = check(instance, solution)
    overloaded = [violation.message for violation in report.violations if violation.constraint in CAPACITIES]
    violations = tuple(violation for violation in report.violations if violation.constraint not in CAPACITIES)
    return CheckReport(violations, report.objective, {**report.details, "overloaded": overloaded})

"""The independent checker of schedules that may overload servers and links: what they ask of them is measured."""

from __future__ import annotations

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.ddljs.check import check
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.ddljs.solution import DdljsSolution

CAPACITIES = ("server capacity", "link capacity")


def check_loads(instance: DdljsInstance, solution: DdljsSolution) -> CheckReport:
    """Check everything but capacities, which are measured instead: ``gadget-printed``.

    Returns
    -------
    CheckReport
        As :func:`~schedgap.formulations.ddljs.check.check`, but without violations of capacities: they stand in
        ``details["overloaded"]``, a line for each.

    Raises
    ------
    InputError
        The instance does not have a job or a server that is named, or there are fewer or more entries than slots.
    """
    report = check(instance, solution)
    overloaded = [violation.message for violation in report.violations if violation.constraint in CAPACITIES]
    violations = tuple(violation for violation in report.violations if violation.constraint not in CAPACITIES)
    return CheckReport(violations, report.objective, {**report.details, "overloaded": overloaded})

"""The independent checker of roundings that may overload servers and links: what they ask of them is measured."""

from __future__ import annotations

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.check_rings import loads_measured, overloads
from schedgap.formulations.g_vne.check import check
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.solution import GVneSolution


def check_loads(instance: GVneInstance, solution: GVneSolution) -> CheckReport:
    """Check everything but capacities, which are measured instead: ``lp-rs-mde-printed``.

    Returns
    -------
    CheckReport
        As :func:`~schedgap.formulations.g_vne.check.check`, but without violations of capacities: they stand in
        ``details["overloaded"]``, a line for each with beta or gamma of the embedded rings, and ``details["beyond"]``
        counts those above it.

    Raises
    ------
    InputError
        The instance does not have a job or a server that is named.
    """
    report = check(instance, solution)
    loads = overloads(instance, instance.jobs, solution.rings)
    return loads_measured(report, loads)

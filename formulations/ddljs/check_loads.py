"""The independent checker of schedules that may overload servers and links: what they ask of them is measured."""

from __future__ import annotations

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.ddljs.check import check
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.ddljs.solution import DdljsSolution
from schedgap.formulations.g_vne.check_rings import loads_measured, overloads


def check_loads(instance: DdljsInstance, solution: DdljsSolution) -> CheckReport:
    """Check everything but capacities, which are measured instead: ``gadget-printed``.

    Raises InputError: the instance does not have a job or a server that is named, or there are fewer or more entries
    than slots.

    Returns
    -------
    CheckReport
        As :func:`~schedgap.formulations.ddljs.check.check`, but without violations of capacities: they stand in
        ``details["overloaded"]``, a line for each with beta or gamma of the embedded rings, and ``details["beyond"]``
        counts those above it.
    """
    report = check(instance, solution)
    loads = [
        load
        for slot, entry in enumerate(solution.slots, start=1)
        for load in overloads(instance, instance.jobs, entry.rings, f"slot {slot}, ")
    ]
    return loads_measured(report, loads)

"""What a problem gives to a model of one of its instances that a user changes: schedules, a bound, an exact method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schedgap.catalogue.problem import Problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.changes import Changes
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.solvers.changed import Aids
from schedgap.solvers.engines.declarative import Check
from schedgap.solvers.result import Result, SolveOptions

SHARE = 0.1
"""Share of the time left that all heuristics together may take before an engine begins."""
SECONDS = 20.0
"""The same where there is no limit."""


def aids_of(problem: Problem, instance: Instance, form: str | None, tighten: bool) -> Aids:
    """The aids of the form called `form`; none to a form that has no schedules of its own."""
    chosen = next((known for known in problem.forms if known.id == form), None)
    if chosen is None or chosen is not problem.default_form(tighten):
        return Aids()

    def schedules(options: SolveOptions) -> Iterator[tuple[str, Solution]]:
        limited = replace(options, deadline=options.deadline.part(SHARE, SECONDS))
        for method in problem.heuristics():
            if method.outside_model or method.is_user_defined or limited.deadline.passed:
                continue
            try:
                result = run_method(problem, instance, method, limited)
            except InputError:
                continue
            if result.solution is not None:
                yield method.id, result.solution

    def exact(changes: Changes, options: SolveOptions, check: Check) -> Result | None:
        if chosen.changed is None or tighten:
            return None
        answer: Result | None = chosen.changed(problem.cast_instance(instance), changes, options, check)
        return answer

    return Aids(schedules, exact, lambda: problem.certified_bound(instance))

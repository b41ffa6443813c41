"""What the papers plot of a schedule beside its objective, by problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from schedgap.formulations.common.instance import Instance
from schedgap.formulations.rar_ddls.check import check as check_rar_ddls
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.solution import RarDdlsSolution
from schedgap.solvers.result import Result

Metrics = Mapping[str, Any]


def _rar_ddls(instance: Instance, result: Result) -> Metrics:
    """Average JCT in slots (every job is there in slot 1), and the makespan of the bisected pass alone."""
    passes = result.info.get("bisected") or {}
    found: dict[str, Any] = {"mean_jct": None, "bisected": passes.get("makespan")}
    if result.solution is not None:
        report = check_rar_ddls(cast(RarDdlsInstance, instance), RarDdlsSolution.parse(result.solution))
        ends = report.details["completion"].values()
        found["mean_jct"] = sum(ends) / len(ends)
    return found


_BY_PROBLEM: Mapping[str, Callable[[Instance, Result], Metrics]] = {"rar-ddls": _rar_ddls}


def measured(problem: str, instance: Instance, result: Result) -> Metrics:
    """The problem's own metrics of an outcome; what is unknown is None."""
    return _BY_PROBLEM[problem](instance, result)

"""schedgap: how far is a GPU-cluster scheduler from the best possible schedule?

Everything here is loaded when it is first used, so that importing the package loads no engine.

Examples
--------
>>> import schedgap
>>> instance = schedgap.generate("rar-ddls", "contended", seed=3)
>>> result = schedgap.solve(instance, "cp", time_limit=60)
>>> result.status, result.objective, result.bound  # doctest: +SKIP
>>> print(schedgap.compare(instance).to_text())  # doctest: +SKIP
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # typing is slow to import, and Ctrl-C has no line yet
if TYPE_CHECKING:
    from schedgap.api import (
        audit,
        bench,
        certify,
        check,
        check_scheduler,
        compare,
        evaluate,
        evaluate_frozen,
        export,
        from_networkx,
        generate,
        hunt,
        hunt_family,
        import_trace,
        instance,
        judge,
        listing,
        load,
        make_env,
        methods,
        model,
        new_package,
        parametrize_with_checks,
        parse,
        plot,
        plot_pair,
        plot_ratios,
        problems,
        report,
        reproduce,
        run,
        schema,
        solve,
        to_networkx,
        verify,
    )
    from schedgap.formulations.common.check import CheckReport, Violation
    from schedgap.formulations.common.errors import Disagreement, EngineMissing, InputError, ModelRefused, SchedgapError
    from schedgap.formulations.common.instance import Instance
    from schedgap.library import library_faults, library_records, library_site, library_solve, library_submit
    from schedgap.solvers.model import Model
    from schedgap.solvers.result import Result, Status, Termination

_HOME = {
    **dict.fromkeys(("CheckReport", "Violation"), "schedgap.formulations.common.check"),
    **dict.fromkeys(
        ("Disagreement", "EngineMissing", "InputError", "ModelRefused", "SchedgapError"),
        "schedgap.formulations.common.errors",
    ),
    "Instance": "schedgap.formulations.common.instance",
    # Apart from the API: a judged scheduler may call that, and may not load the library, which knows the optima.
    **dict.fromkeys(
        ("library_faults", "library_records", "library_site", "library_solve", "library_submit"), "schedgap.library"
    ),
    "Model": "schedgap.solvers.model",
    **dict.fromkeys(("Result", "Status", "Termination"), "schedgap.solvers.result"),
}
"""Where a name stands that is not a function of the API."""

__all__ = [
    "CheckReport", "Disagreement", "EngineMissing", "InputError", "Instance", "Model", "ModelRefused", "Result",
    "SchedgapError", "Status", "Termination", "Violation", "audit", "bench", "certify", "check", "check_scheduler",
    "compare", "evaluate", "evaluate_frozen", "export", "from_networkx", "generate", "hunt", "hunt_family",
    "import_trace", "instance", "judge",
    "library_faults", "library_records", "library_site", "library_solve", "library_submit", "listing", "load",
    "make_env", "methods", "model", "new_package", "parametrize_with_checks", "parse", "plot", "plot_pair",
    "plot_ratios", "problems", "report", "reproduce", "run", "schema", "solve", "to_networkx", "verify",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """The public object called `name`, loaded now (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("schedgap")
    if name in __all__:
        return getattr(importlib.import_module(_HOME.get(name, "schedgap.api")), name)
    raise AttributeError(f"module 'schedgap' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What the package offers."""
    return sorted([*__all__, "__version__"])

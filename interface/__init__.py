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
    from schedgap.benchmarks.hunt.run import hunt
    from schedgap.benchmarks.ledger.verify import verify
    from schedgap.benchmarks.suites.runner import bench
    from schedgap.certifying import certify
    from schedgap.checking import check
    from schedgap.figures import plot, plot_pair, plot_ratios
    from schedgap.formulations.common.check import CheckReport, Violation
    from schedgap.formulations.common.errors import Disagreement, EngineMissing, InputError, ModelRefused, SchedgapError
    from schedgap.formulations.common.instance import Instance
    from schedgap.instances import (
        export,
        from_networkx,
        generate,
        import_trace,
        instance,
        load,
        methods,
        model,
        parse,
        problems,
        schema,
        to_networkx,
    )
    from schedgap.lists import listing
    from schedgap.solvers.model import Model
    from schedgap.solvers.result import Result, Status, Termination
    from schedgap.solving import compare, solve
    from schedgap.suites import report, run
    from schedgap.tools.audit.run import audit
    from schedgap.tools.evaluation.checks import check_scheduler, parametrize_with_checks
    from schedgap.tools.evaluation.frozen import evaluate_frozen
    from schedgap.tools.evaluation.package import new_package
    from schedgap.tools.evaluation.run import evaluate
    from schedgap.tools.families.run import hunt_family
    from schedgap.tools.judge.judge import judge
    from schedgap.tools.laboratory.running import reproduce
    from schedgap.tools.library.records import (
        library_faults,
        library_records,
        library_site,
        library_solve,
        library_submit,
    )
    from schedgap.tools.online.making import make_env

_HOME = {
    name: module
    for module, names in {
        "schedgap.benchmarks.hunt.run": "hunt",
        "schedgap.benchmarks.ledger.verify": "verify",
        "schedgap.benchmarks.suites.runner": "bench",
        "schedgap.certifying": "certify",
        "schedgap.checking": "check",
        "schedgap.figures": "plot plot_pair plot_ratios",
        "schedgap.formulations.common.check": "CheckReport Violation",
        "schedgap.formulations.common.errors": "Disagreement EngineMissing InputError ModelRefused SchedgapError",
        "schedgap.formulations.common.instance": "Instance",
        "schedgap.instances": "export from_networkx generate import_trace instance load methods model parse"
        " problems schema to_networkx",
        "schedgap.lists": "listing",
        "schedgap.solvers.model": "Model",
        "schedgap.solvers.result": "Result Status Termination",
        "schedgap.solving": "compare solve",
        "schedgap.suites": "report run",
    }.items()
    for name in names.split()
}
"""The module of each public name of the kit; those of tools are entry points of ``schedgap.functions``."""

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
    of_tool = name in __all__ and name not in _HOME
    if name in _HOME or of_tool:
        from schedgap.interrupt import at_work

        with at_work():
            if of_tool:
                from schedgap.reading import of_tools

                value = of_tools(name)
            else:
                value = getattr(importlib.import_module(_HOME[name]), name)
        if of_tool or _HOME[name].startswith("schedgap.benchmarks."):  # what works there knows nothing of Ctrl-C
            value = at_work()(value)
            value.__module__ = __name__  # where pickle finds it
        return globals().setdefault(name, value)  # of two threads that ask first, both get the same
    raise AttributeError(f"module 'schedgap' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What the package offers."""
    return sorted([*__all__, "__version__"])

"""The Python API: what the command line does, on any problem of the table; :mod:`schedgap.library` is apart."""

from __future__ import annotations

from schedgap.certifying import certify
from schedgap.checking import audit, check, judge
from schedgap.claims import (
    check_scheduler,
    evaluate,
    evaluate_frozen,
    hunt,
    hunt_family,
    make_env,
    new_package,
    parametrize_with_checks,
    verify,
)
from schedgap.figures import plot, plot_pair, plot_ratios
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
from schedgap.listing import listing
from schedgap.reproducing import reproduce
from schedgap.solving import compare, solve
from schedgap.suites import bench, report, run

__all__ = [
    "audit",
    "bench",
    "certify",
    "check",
    "check_scheduler",
    "compare",
    "evaluate",
    "evaluate_frozen",
    "export",
    "from_networkx",
    "generate",
    "hunt",
    "hunt_family",
    "import_trace",
    "instance",
    "judge",
    "listing",
    "load",
    "make_env",
    "methods",
    "model",
    "new_package",
    "parametrize_with_checks",
    "parse",
    "plot",
    "plot_pair",
    "plot_ratios",
    "problems",
    "report",
    "reproduce",
    "run",
    "schema",
    "solve",
    "to_networkx",
    "verify",
]

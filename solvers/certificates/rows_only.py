"""Which certificates are linear arguments: sums of rows, which the checkers of others can follow, too."""

from __future__ import annotations

from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.linear import Rejected

NO_ROWS = {
    "prices": "no linear argument for VIPR: a dynamic program finds the best of each job at the prices",
    "orders": "no linear argument for VIPR: they bound sequences of events",
    "srpt": "no linear argument for VIPR: they run a machine that may pause",
    "machines": "no linear argument for VIPR: they run machines that may pause",
}
"""Forms that cannot be written, and why."""


def unsaid(problem: str) -> str:
    """Why no certificate of a problem can be written; empty where those of some instance can."""
    try:
        forms = checker.rules_of(problem).FORMS
    except Rejected as fault:
        return str(fault)
    if set(forms) - set(NO_ROWS):
        return ""
    return "; ".join(f'in form "{form}" they are {NO_ROWS[form]}' for form in forms)


def says_bounds(problem: str) -> bool:
    """Whether certificates of a bound can be written, too."""
    try:
        return hasattr(checker.rules_of(problem), "AS_ROWS")
    except Rejected:
        return False

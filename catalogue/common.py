"""What the rows of several problems share: the engines' methods and options of presets."""

from __future__ import annotations

from schedgap.catalogue.problem import Kind, Method
from schedgap.heuristics.common.run import Option

SLACK = Option(float, 1.25, "horizon over a certified feasible makespan", minimum=1, maximum=100)
HORIZON = Option(int, None, "slots; an instance may then be infeasible", minimum=1, maximum=10**9)

ENGINE_METHODS = (
    Method("cbc", "declarative model solved by CBC (PuLP's bundled solver)", Kind.ENGINE, "cbc"),
    Method("highs", "declarative model solved by HiGHS", Kind.ENGINE, "highs"),
    Method("cpsat", "declarative model translated to CP-SAT", Kind.ENGINE, "cpsat"),
)

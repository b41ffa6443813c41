"""The solution of g-vne: a ring for each job that is accepted."""

from __future__ import annotations

from schedgap.formulations.common.substrate import RingSolution


class GVneSolution(RingSolution):
    """Embedded rings; a job that is not named is left out."""

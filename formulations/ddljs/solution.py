"""The solution of ddljs: the rings of every slot."""

from __future__ import annotations

from schedgap.formulations.common.solution import Listed, TypedSolution
from schedgap.formulations.g_vne.substrate import (
    RingSolution,
)


class DdljsSolution(TypedSolution):
    """A schedule.

    Attributes
    ----------
    slots : the rings of slot 1, 2, ... up to the horizon
    """

    slots: Listed[RingSolution]

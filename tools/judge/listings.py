"""What Ray and openb list of a cluster as an instance and a decision; docs/judging.md says what is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schedgap.formulations.common.instance import Json
from schedgap.tools.judge.draft import Draft
from schedgap.tools.judge.openb import openb
from schedgap.tools.judge.ray import ray
from schedgap.tools.judge.slurm.queue import slurm

LISTINGS: Mapping[str, Callable[..., Draft]] = {"slurm": slurm, "ray": ray, "openb": openb}
"""Formats that are two files, the second of nodes."""


def told(data: Json) -> str | None:
    """The format that a JSON value tells by itself."""
    if isinstance(data, Mapping) and "jobs" in data and "problem" not in data:
        return "slurm"
    groups = list(data.values()) if isinstance(data, Mapping) else data if isinstance(data, list) else []
    key = "strategy" if isinstance(data, Mapping) else "placement_group_id"
    return "ray" if groups and all(isinstance(x, Mapping) and key in x for x in groups) else None

"""The worst instance known for every heuristic, one file ``<problem>/worst-<heuristic>.json`` each, found by hunts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from schedgap.formulations.common.instance import read_json

SUFFIX = ".json"


@dataclass(frozen=True)
class Worst:
    """The worst instance known for a heuristic."""

    # problem, method: ids
    problem: str
    method: str
    file: str  # its name beside this module
    data: Mapping[str, Any]  # the instance as a JSON object, with its ``reference_hunt``
    options: Mapping[str, Any]  # options of the heuristic beyond its defaults
    seed: int  # seed that the heuristic runs with
    ratio: float  # heuristic to optimum, infinite where only one of them is 0


@cache
def worst_instances() -> dict[tuple[str, str], Worst]:
    """The worst instances by (problem, heuristic), in the order of their files' names."""
    found = {}
    here = files(__package__)
    folders = (folder for folder in here.iterdir() if folder.is_dir())
    names = (f"{folder.name}/{entry.name}" for folder in folders for entry in folder.iterdir())
    for name in sorted(name for name in names if "/worst-" in name and name.endswith(SUFFIX)):
        data = read_json(name, here.joinpath(*name.split("/")).read_text(encoding="utf-8"))
        facts = data["reference_hunt"]
        ratio = float(facts["ratio"])  # infinity is written as the text "inf"
        one = Worst(facts["problem"], facts["method"], name, data, facts["options"], facts["seed"], ratio)
        found[one.problem, one.method] = one
    return found

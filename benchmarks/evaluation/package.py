"""Packages to begin with: a heuristic or a problem of one's own that passes its own tests."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from schedgap.benchmarks.evaluation.evaluators import fresh, new_evaluator
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_text

TEMPLATES = Path(__file__).parent / "templates"
"""A folder for each kind of package, whose files end in .txt; NAME stands for the package's."""
KINDS = ("heuristic", "problem")


def new_package(
    kind: Literal["heuristic", "problem", "evaluator"],
    name: str,
    folder: Path | None = None,
    problem: str | None = None,
) -> list[Path]:
    """Write a package that passes its own tests, into a new folder of its name; or an evaluator of candidates.

    Parameters
    ----------
    kind : what it holds; a heuristic is one for rar-ddls
    name : of package, folder and method or problem: small letters, digits and _
    folder : where the new folder goes, of an evaluator the folder itself; the working directory where not given
    problem : of an evaluator

    Returns
    -------
    The files.

    Raises InputError: not a name, one that is taken, or a folder that is there already.
    """
    if kind == "evaluator":
        return new_evaluator(name, problem, folder)
    if kind not in KINDS:
        raise InputError(f"new: must be heuristic, problem or evaluator, got {kind!r}")
    if problem is not None:
        raise InputError("--problem: only with new evaluator")
    if not (name.isidentifier() and name.islower() and name.isascii()) or name in ("schedgap", "tests"):
        raise InputError(f"new: the name must be of small letters, digits and _, beginning with a letter, got {name!r}")
    home = fresh((folder or Path()) / name)
    written = []
    for template in sorted((TEMPLATES / kind).rglob("*.txt")):
        path = home / str(template.relative_to(TEMPLATES / kind).with_suffix("")).replace("NAME", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        written.append(write_text(path, template.read_text(encoding="utf-8").replace("NAME", name)))
    return written

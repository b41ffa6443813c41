"""A heuristic or a problem of one's own to begin with: a package that passes its own tests."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_text
from schedgap.tools.evaluation.evaluator_folder import fresh, new_evaluator

TEMPLATES = Path(__file__).parent / "templates"
"""A folder for each kind of package, whose files end in .txt; NAME stands for the package's."""


KINDS = ("heuristic", "problem")


def new_package(
    kind: Literal["heuristic", "problem", "evaluator"],
    name: str,
    folder: str | Path | None = None,
    *,
    problem: str | None = None,
) -> list[Path]:
    """Write a package with a heuristic or a problem of one's own that passes its own tests; its files.

    An evaluator is for a program that writes schedulers of `problem`: ``name`` is its form, openevolve or plain, and
    ``folder`` the new folder itself.

    Raises
    ------
    InputError
        Not a name, or a folder that is there already.
    """
    if kind == "evaluator":
        return new_evaluator(name, problem, None if folder is None else Path(folder))
    if kind not in KINDS:
        raise InputError(f"new: must be heuristic, problem or evaluator, got {kind!r}")
    if problem is not None:
        raise InputError("--problem: only with new evaluator")
    if not (name.isidentifier() and name.islower() and name.isascii()) or name in ("schedgap", "tests"):
        raise InputError(f"new: the name must be of small letters, digits and _, beginning with a letter, got {name!r}")
    home = fresh(Path(folder or "") / name)
    written = []
    for template in sorted((TEMPLATES / kind).rglob("*.txt")):
        path = home / str(template.relative_to(TEMPLATES / kind).with_suffix("")).replace("NAME", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        written.append(write_text(path, template.read_text(encoding="utf-8").replace("NAME", name)))
    return written

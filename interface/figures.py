"""Figures of solutions as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from schedgap.benchmarks.instances import figure_of
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import check_writable
from schedgap.formulations.common.instance import Instance, Solution

ENDINGS = (".svg", ".png", ".pdf")


def draw(problem: Problem, instance: Instance, solution: Solution, out: Path | None) -> Any:
    """The problem's figure of a well-formed `solution`, saved to `out` where it is given; the ending tells the format.

    The same solution always gives the same bytes: no dates, no random ids.

    Raises
    ------
    InputError
        An ending other than .svg, .png or .pdf, a file that cannot be written.
    """
    if out is not None:
        check_ending(out)
        check_writable(out)

    import matplotlib

    matplotlib.use("Agg")
    figure = figure_of(problem)(instance, solution)
    if out is not None:
        date = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[out.suffix.lower()]
        with matplotlib.rc_context({"svg.hashsalt": "schedgap"}):
            try:
                figure.savefig(out, metadata=date)
            except OSError as error:
                raise InputError(f"{out}: {error.strerror or error}") from None
    return figure


def check_ending(out: Path) -> None:
    """Refuse a file name whose ending is not that of a figure."""
    if out.suffix.lower() not in ENDINGS:
        raise InputError(f"{out}: must end in {', '.join(ENDINGS)}")

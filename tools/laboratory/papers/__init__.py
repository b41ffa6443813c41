"""The papers of the laboratory, each imported when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence

from schedgap.formulations.common.errors import InputError, near
from schedgap.tools.laboratory.declare import Paper

NAMES: Mapping[str, str] = {
    "000": "sjf-bco",
    "001": "ada-srsf",
    "002": "hadar",
    "003": "sjf-bsbf",
    "004": "gadget",
}
"""Every paper by number, with the name that its page has."""


def find_paper(name: str) -> Paper:
    """The paper with this number or name.

    Raises InputError: there is none; the line lists those that there are.
    """
    for number, known in NAMES.items():
        if name in (number, known):
            paper: Paper = importlib.import_module(f"schedgap.tools.laboratory.papers.paper_{number}").PAPER
            return paper
    known_ones = ", ".join(f"{number} ({known})" for number, known in NAMES.items())
    raise InputError(f"paper: unknown paper {name!r}, one of: {known_ones}{near(name, (*NAMES, *NAMES.values()))}")


def papers() -> Mapping[str, str]:
    """The papers by number, each with its other name."""
    return NAMES


def experiments() -> Mapping[str, Sequence[tuple[str, str]]]:
    """Every paper, "000 (sjf-bco)", with the id and title of each of its items."""
    return {
        f"{number} ({name})": [(item.id, item.title) for item in find_paper(number).items]
        for number, name in NAMES.items()
    }

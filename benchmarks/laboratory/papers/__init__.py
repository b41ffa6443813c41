"""The papers of the laboratory, each imported when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from schedgap.benchmarks.laboratory.declare import Paper
from schedgap.formulations.common.errors import InputError, near

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
            paper: Paper = importlib.import_module(f"schedgap.benchmarks.laboratory.papers.paper_{number}").PAPER
            return paper
    known_ones = ", ".join(f"{number} ({known})" for number, known in NAMES.items())
    raise InputError(f"paper: unknown paper {name!r}, one of: {known_ones}{near(name, (*NAMES, *NAMES.values()))}")

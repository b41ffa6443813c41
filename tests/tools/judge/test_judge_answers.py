"""What ``schedgap judge`` says of small snapshots of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import schedgap
from schedgap.tools.judge.judge import unread_rules

ONE = {"problem": "gang-placement", "nodes": [{"id": "n0", "gpus": [1000]}]}
GANG = {"pods": [{"count": 1, "gpu": 1000}]}


def _judged(folder: Path, **data: Any) -> Any:
    path = folder / "snapshot.json"
    path.write_text(json.dumps({**ONE, **data}))
    return schedgap.judge(path, names=True)


def test_what_ends_at_no_price_admits_it(tmp_path: Path) -> None:
    """A component that is the same in every decision is left out of the vector."""
    runs = [{"id": "r", "node": "n0", "devices": {"0": 1000}, "movable": True, "price": 0}]
    found = _judged(tmp_path, nodes=[{"id": "n0", "gpus": [0]}], running=runs, gangs=[{"id": "g", **GANG}])
    (lost,) = found.lost
    assert (lost.moves["preempted"], lost.price, lost.moves_proven) == (["r"], 0, True)


def test_a_decision_that_breaks_a_rule_has_no_ratio(tmp_path: Path) -> None:
    both = {name: [{"group": 0, "node": "n0", "devices": [0]}] for name in ("g", "h")}
    gangs = [{"id": name, **GANG} for name in both]
    found = _judged(tmp_path, gangs=gangs, reference_decision={"placement": both})
    assert not found.report.feasible and "it has no ratio" in found.verdict
    assert (found.to_dict()["ratio"], found.to_dict()["ratio_to"]) == (None, "optimum")


@pytest.mark.parametrize(
    ("rules", "verb"),
    [
        (("its spread rule",), "is"),
        (("the nodes of its volumes",), "are"),
        (("its affinity to other pods",), "is"),
        (("its slices",), "are"),
        (("its share of a card's cores",), "is"),
        (("its tasks, cores and sockets of a node",), "are"),
        (("its quota", "its spread rule"), "are"),
    ],
)
def test_the_verb_of_rules_that_are_not_read_has_their_number(rules: tuple[str, ...], verb: str) -> None:
    assert unread_rules(rules) == f"{', '.join(rules)}, which {verb} not read"

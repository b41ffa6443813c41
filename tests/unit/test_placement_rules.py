"""The study of placement rules: its example, and that no rule is above its reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from studies.placement_rules import FAMILIES, RULES, example, measured, page, picture, reference, weight_placed


def test_the_example_of_kueue_10574() -> None:
    """BestFit gives the 20 that prefer a rack the rack of 19 first; the optimum leaves it to those who require it."""
    instance = GangPlacementInstance.parse(example())
    assert reference(instance, 10.0) == (39, "certified")
    placed = {name: weight_placed(instance, method, settings, 1) for name, (method, settings) in RULES.items()}
    assert placed["Kueue, BestFit"] == 20 and placed["Kueue, LeastFreeCapacity"] == 39


@pytest.mark.parametrize("family", FAMILIES)
def test_no_rule_is_above_its_reference(family: str, tmp_path: Path) -> None:
    result = measured(family, 2, 0.1, 10.0)
    assert sum(result.proofs.values()) == 2
    for name, shares in result.shares.items():
        assert all(0 < share <= 1 for share in shares), name
    rows = {name: row for row in result.rows() for name in row[0].split("; ")}
    assert rows.keys() == RULES.keys() and rows[result.best()][-1] == "-"
    assert all(result.shares[name] == result.shares[row[0].split("; ")[0]] for name, row in rows.items())
    picture({family: result}, tmp_path / "x.svg")
    assert (tmp_path / "x.svg").stat().st_size > 1000


def test_the_page_has_every_rule_in_each_table() -> None:
    text = page({"hosts": measured("hosts", 1, 0.1, 10.0)}, 1)
    first = [
        cell for line in text.splitlines() if line.startswith("| ") for cell in line.split(" | ")[0][2:].split("; ")
    ]
    assert all(first.count(name) == 3 for name in RULES)

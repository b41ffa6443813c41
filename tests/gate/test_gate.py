"""A thin slice of the differential gate with a fixed seed, and that each stage of an exact method can decide alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate.answers import Examination, Record
from gate.gates import GATES, modest
from gate.instances import instance_of

from schedgap.reading import as_instance

FOUND = Path(__file__).parents[1] / "data" / "gate"
"""Instances of faults, mended."""

SLICE = {
    "rar-ddls": 24,
    "gpu-sharing": 15,
    "hadar": 16,
    "g-vne": 12,
    "ddljs": 12,
    "comm-contention": 8,
    "ddl-cluster": 8,
    "gang-placement": 24,
}
ALONE = {
    "rar-ddls": {"interval model", "slot packing", "local search"},
    "gpu-sharing": {"cp-sat", "dynamic program", "linear programs"},
    "hadar": {"branch and price", "compact program", "linear program"},
    "g-vne": {"branch and price", "linear program", "dive"},
    "ddljs": {"engine"},
    "comm-contention": {"whole tree", "first nodes", "one at a time"},
    "ddl-cluster": {"grid model", "placements"},
    "gang-placement": {"programs", "merged nodes", "patterns"},
}
"""Stages that decide some instance of the slice where the others are left out."""


@pytest.fixture(autouse=True)
def _modest(monkeypatch: pytest.MonkeyPatch) -> None:
    modest(monkeypatch.setattr)


@pytest.mark.parametrize("problem", GATES)
def test_all_answers_agree_with_an_exhaustive_search(problem: str, tmp_path: Path) -> None:
    total = Record()
    for number in range(SLICE[problem]):
        total.add(Examination(instance_of(problem, 0, number), [number], tmp_path).run())
    assert not total.faults
    assert total.instances == SLICE[problem]
    assert set(total.decided) >= ALONE[problem]


@pytest.mark.parametrize("path", sorted(FOUND.glob("*.json")), ids=lambda path: path.stem)
def test_what_the_gate_found_stays_mended(path: Path, tmp_path: Path) -> None:
    """Every question that there is."""
    assert not Examination(as_instance(path), range(24), tmp_path).run().faults

"""Rows and variables of certificates have names of their own, whatever the instance."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path

import pytest

import schedgap
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.content import plain

RULES = Path(checker.__file__).parent / "rules"
FILE = Path(__file__).parents[1] / "data" / "attack" / "F-certify-rar-exit5.json"


def places(path: Path, kind: str) -> list[tuple[str, int]]:
    """(family, number of indices) of every place that declares a row (or a variable) by a pattern."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == kind
        if call and isinstance(node.args[0], ast.JoinedStr):
            text = ast.unparse(node.args[0])[2:-1]
            found.append((text.partition("[")[0], text.count(",")))
    return found


@pytest.mark.parametrize("path", sorted(RULES.glob("*.py")), ids=lambda path: path.stem)
@pytest.mark.parametrize("kind", ["row", "var"])
def test_no_two_places_give_names_of_one_pattern(path: Path, kind: str) -> None:
    """The indices are numbers (the last one may be an id), so names of one place differ where they do."""
    count = Counter(places(path, kind))
    assert [pattern for pattern, times in count.items() if times > 1] == []


def test_the_patterns_are_seen() -> None:
    assert ("meet", 3) in places(RULES / "rar_ddls.py", "row")
    assert ("h", 1) in places(RULES / "rings.py", "var")


def test_a_ring_that_meets_many_others_is_certified() -> None:
    """Four rings: that of pairs with the fourth job and that of three rings at once were the same name."""
    certified = schedgap.certify(FILE)
    assert certified.infeasible or certified.optimal, certified.reason


def test_names_with_brackets_and_commas_stay_apart() -> None:
    """Ids stand in rows of ddl-cluster (servers) and of g-vne and ddljs (resources), behind numbers."""
    data = json.loads((FILE.parents[1] / "ddl-cluster-ring-of-three.json").read_text())
    names = {server["id"]: f"0],{n}[" for n, server in enumerate(data["servers"])}
    for server in data["servers"]:
        server["id"] = names[server["id"]]
    for job in data["jobs"]:
        job["placement"] = [[names[server], gpu] for server, gpu in job["placement"]]
    _, instance = schedgap.reading.read_instance(data)
    model = checker.model_of(plain(instance), "rows", {"cutoff": "1000"})
    shared = [name for name in model.rows if name.startswith("slowed[")]
    assert shared and all(re.fullmatch(r"slowed\[\d+,\d+,0\],\d+\[\]", name) for name in shared)

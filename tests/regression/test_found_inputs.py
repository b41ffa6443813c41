"""Files on which a process aborted, a method raised or a reader fell: refused with their place, or worked on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schedgap import plot
from schedgap.benchmarks.importers import import_instance
from schedgap.catalogue.agreement import Answer, agree
from schedgap.catalogue.method import Kind
from schedgap.catalogue.registry import find_problem, load_instance
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import InputError
from schedgap.solvers.result import SolveOptions, Status

FOLDER = Path(__file__).parents[1] / "data" / "found"
ATTACK = FOLDER.parent / "attack"
"""Instances of an attack on the answers, on which some method raised or was wrong."""
REFUSED = {
    "cand-11316": r"tasks\[1\]\.size: must be at least",
    "cand-14290": r"link\.latency: must be less than or equal to",
    "cand-18236": r"slot_length: must be at least",
}
TAKEN = sorted({path.stem for path in FOLDER.glob("*.json")} - REFUSED.keys() - {"plot-accumulation-solution"})
ATTACKED = ("ddl-cluster-short-message", "ddl-cluster-bytes", "ddljs-tiny-utility")


@pytest.mark.parametrize("name", REFUSED)
def test_numbers_out_of_range_are_refused_with_their_place(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}.json: {REFUSED[name]}"):
        load_instance(FOLDER / f"{name}.json")


@pytest.mark.parametrize(
    "path", [*(FOLDER / name for name in TAKEN), *(ATTACK / name for name in ATTACKED)], ids=lambda path: str(path.name)
)
def test_what_is_taken_is_solved_by_every_method(path: Path, tmp_path: Path) -> None:
    """Each ends without an error, and none has what another proves impossible."""
    name = path.name
    problem, instance = load_instance(path.with_name(f"{name}.json"))
    found = []
    aborted = ("cp", "job-shop") if name == "cpsat-abort" else None  # CBC is slow on the others, without a node
    for method in problem.methods:
        if aborted and method.id not in aborted:
            continue
        options = SolveOptions(threads=1, work_limit=0.05)
        try:
            result = run_method(problem, instance, method, options, disagreements=tmp_path)
        except InputError:  # a method for models of whole numbers, or for two jobs
            continue
        assert result.status is not Status.ERROR, (method.id, result.info)
        if not method.outside_model:
            exact = method.kind is not Kind.HEURISTIC
            found.append(Answer(method.id, result.status, result.objective, result.bound, exact=exact))
    assert any(answer.objective is not None for answer in found)
    assert agree(found, problem.sense, None).contradictions == ()


def test_a_solution_that_cannot_be_drawn_is_refused() -> None:
    instance, solution = (
        json.loads((FOLDER / f"plot-accumulation-{part}.json").read_text()) for part in ("instance", "solution")
    )
    with pytest.raises(InputError, match="cannot be drawn"):
        plot(instance, solution)


@pytest.mark.parametrize("name", ["edge", "node", "node2"])
def test_damaged_networks_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}.gml: "):
        import_instance(find_problem("g-vne"), "gml", [FOLDER / f"{name}.gml"], settings={"jobs": 2})

"""``schedgap check``: every violation with its numbers, the recomputed objective, exit statuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.command import Command


@pytest.fixture
def reference(mixed: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(mixed.read_text())["reference_solution"]
    return found


def write(folder: Path, data: object) -> Path:
    path = folder / "solution.json"
    path.write_text(json.dumps(data))
    return path


def test_a_feasible_solution_passes(command: Command, mixed: Path, tmp_path: Path, reference: dict[str, Any]) -> None:
    ran = command("check", mixed, write(tmp_path, reference))
    assert (ran.status, ran.out, ran.err) == (0, "feasible; makespan: 12 slots\n", "")
    ran = command("check", mixed, write(tmp_path, reference), "--json")
    found = json.loads(ran.out)
    assert ran.status == 0 and found["feasible"] is True and found["objective"] == 12
    assert found["violations"] == [] and max(found["details"]["completion"].values()) == 12


def test_standard_input_for_either(command: Command, mixed: Path, tmp_path: Path, reference: dict[str, Any]) -> None:
    path = write(tmp_path, reference)
    assert command("check", "-", path, stdin=mixed.read_text()).status == 0
    assert command("check", mixed, "-", stdin=json.dumps(reference)).status == 0


def test_one_gpu_moved_away(command: Command, mixed: Path, tmp_path: Path, reference: dict[str, Any]) -> None:
    reference["placement"]["j0"]["s2"] -= 1
    ran = command("check", mixed, write(tmp_path, reference))
    assert ran.status == 1
    assert "placement: job j0: placed on 3 GPUs, needs 4" in ran.out.splitlines()


def test_a_start_before_slot_1(command: Command, mixed: Path, tmp_path: Path, reference: dict[str, Any]) -> None:
    reference["start"]["j4"] = 0
    ran = command("check", mixed, write(tmp_path, reference))
    assert ran.status == 1
    assert "start: job j4: starts in slot 0, the first slot is 1" in ran.out.splitlines()


def test_an_overfilled_server(command: Command, mixed: Path, tmp_path: Path, reference: dict[str, Any]) -> None:
    reference["start"]["j0"] = 1
    ran = command("check", mixed, write(tmp_path, reference))
    assert ran.status == 1
    assert any(
        line.startswith("capacity: server s2, slot") and "8 GPUs used, 4 there" in line for line in ran.out.splitlines()
    )


def test_every_violation_is_printed_then_the_objective(
    command: Command, mixed: Path, tmp_path: Path, reference: dict[str, Any]
) -> None:
    reference["start"]["j4"] = -2
    reference["placement"]["j0"]["s2"] -= 1
    reference["start"]["j5"] = 40
    lines = command("check", mixed, write(tmp_path, reference)).out.splitlines()
    assert [line.partition(":")[0] for line in lines[:-1]].count("horizon") == 1
    assert {line.partition(":")[0] for line in lines[:-1]} >= {"start", "placement", "horizon"}
    assert lines[-1].startswith(f"{len(lines) - 1} violated; makespan: ")


def test_the_object_of_solve_is_taken_and_its_objective_checked(
    command: Command, mixed: Path, tmp_path: Path, reference: dict[str, Any]
) -> None:
    whole = {"problem": "rar-ddls", "status": "optimal", "objective": 12.0, "solution": reference}
    assert command("check", mixed, write(tmp_path, whole)).status == 0
    whole["objective"] = 11
    ran = command("check", mixed, write(tmp_path, whole))
    assert ran.status == 1
    assert ran.out == "objective: makespan 11 reported, 12 recomputed\n1 violated; makespan: 12 slots\n"


@pytest.mark.parametrize(
    ("bound", "line"),
    [
        (12.0, ""),
        (13, "bound: bound 13 reported, but makespan 12 is better\n"),
        (11, "optimal: reported optimal with bound 11, but makespan is 12"),
    ],
)
def test_the_bound_that_solve_claims_is_checked(
    command: Command, mixed: Path, tmp_path: Path, reference: dict[str, Any], bound: float, line: str
) -> None:
    whole = {"problem": "rar-ddls", "status": "optimal", "objective": 12.0, "bound": bound, "solution": reference}
    ran = command("check", mixed, write(tmp_path, whole))
    assert ran.status == (1 if line else 0)
    assert ran.out.startswith(line)


@pytest.mark.parametrize(("problem", "method"), [("hadar", "hadare"), ("gpu-sharing", "pollux")])
def test_a_schedule_outside_the_model_is_judged_by_its_own_checker(
    command: Command, tmp_path: Path, problem: str, method: str
) -> None:
    instance, bare, whole = (tmp_path / name for name in ("instance.json", "bare.json", "whole.json"))
    assert command("generate", problem, "--seed", "3", "--out", instance).status == 0
    solved = command("solve", instance, "--method", method, "--json", "--out", bare)
    whole.write_text(solved.out)
    for file in (bare, whole):
        ran = command("check", instance, file)
        assert ran.status == 0, ran
        assert ran.out.startswith("feasible, outside the model")
    assert (
        json.loads(command("check", instance, whole, "--json").out)["objective"] == json.loads(solved.out)["objective"]
    )
    wrong = json.loads(solved.out)
    wrong["objective"] *= 2
    whole.write_text(json.dumps(wrong))
    assert command("check", instance, whole).status == 1
    ran = command("plot", instance, bare, "--out", tmp_path / "figure.svg")
    assert ran.status == 2 and ran.err == (
        f"schedgap: error: {bare}: is a schedule outside the model, as of "
        f"{'hadare' if problem == 'hadar' else 'tiresias'}: only check reads those\n"
    )


BAD: list[tuple[Any, str]] = [
    ([], "a solution must be a JSON object, got list"),
    ({}, "start: is missing"),
    ({"status": "infeasible", "solution": None}, "solution: is null (status infeasible), there is nothing to check"),
    ({"status": "optimal", "solution": [1]}, "solution: must be a JSON object, got list"),
    ({"problem": "hadar", "status": "optimal", "solution": {}}, "problem: is 'hadar', the instance is of rar-ddls"),
]


@pytest.mark.parametrize(("content", "message"), BAD, ids=range(len(BAD)))
def test_what_is_no_solution(command: Command, mixed: Path, tmp_path: Path, content: Any, message: str) -> None:
    path = write(tmp_path, content)
    ran = command("check", mixed, path)
    assert ran.status == 2 and ran.message.startswith(f"{path}: ")
    assert message in ran.message


def test_ids_the_instance_does_not_have(
    command: Command, mixed: Path, tmp_path: Path, reference: dict[str, Any]
) -> None:
    for change, name in (
        (lambda s: s["start"].update(j9=1), "j9"),
        (lambda s: s["placement"].update(j9={"s0": 1}), "j9"),
        (lambda s: s["placement"]["j0"].update(s7=1), "s7"),
    ):
        solution = json.loads(json.dumps(reference))
        change(solution)
        path = write(tmp_path, solution)
        ran = command("check", mixed, path)
        assert ran.status == 2 and ran.out == ""
        assert ran.message.startswith(f"{path}: ") and name in ran.message


def test_a_job_left_out_and_wrong_types(
    command: Command, mixed: Path, tmp_path: Path, reference: dict[str, Any]
) -> None:
    for change in (
        lambda s: s["start"].pop("j3"),
        lambda s: s["placement"].pop("j3"),
        lambda s: s["start"].update(j3="1"),
        lambda s: s["start"].update(j3=1.5),
        lambda s: s["placement"]["j3"].update(s2=True),
        lambda s: s["placement"]["j3"].update(s0=0),
        lambda s: s["placement"].update(j3=[2]),
        lambda s: s.update(finish={}),
    ):
        solution = json.loads(json.dumps(reference))
        change(solution)
        path = write(tmp_path, solution)
        ran = command("check", mixed, path)
        assert ran.status == 2, solution
        assert ran.message.startswith(f"{path}: ")

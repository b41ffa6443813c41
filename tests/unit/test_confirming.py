"""``solve`` has what is proven confirmed by somebody else; nothing but the level of proof changes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import schedgap
from schedgap.benchmarks import confirming
from schedgap.catalogue.agreement import with_certificate
from schedgap.catalogue.registry import all_problems, find_problem
from schedgap.catalogue.run import checker_of, run_method
from schedgap.formulations.common.errors import Disagreement
from schedgap.solvers.result import Deadline, Proof, Result, SolveOptions, Status, Termination, clock
from schedgap.solving import solve_record

RAR = find_problem("rar-ddls")
CP = RAR.default_method()
ONE = SolveOptions(threads=1)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is confirmed does not depend on how busy the machine is."""
    monkeypatch.setattr(confirming, "SECONDS", 300.0)


@pytest.fixture
def no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirming, "_certificate", lambda *_: None)


def claimed(problem: str, seed: int = 0) -> tuple[Any, Any, Result]:
    """A tiny instance with what its default method claims of it."""
    instance = schedgap.generate(problem, "tiny", seed=seed)
    method = find_problem(problem).default_method(instance)
    result = run_method(find_problem(problem), instance, method, ONE)
    assert result.proof is Proof.CLAIMED
    return instance, method, result


@pytest.mark.parametrize("problem", all_problems())
def test_every_default_answer_on_tiny_is_confirmed(problem: str) -> None:
    for seed in range(5):
        result = schedgap.solve(schedgap.generate(problem, "tiny", seed=seed), threads=1)
        assert result.proof in (Proof.CERTIFIED, Proof.AGREED), seed


def test_only_the_level_of_proof_changes() -> None:
    instance = schedgap.generate("hadar", "tiny", seed=1)
    problem = find_problem("hadar")
    asked, alone = (solve_record(instance, None, ONE, confirm=confirm) for confirm in (True, False))
    fields, plain = asked.to_dict(), alone.to_dict()
    assert (fields["proof"], plain["proof"]) == ("certified", "claimed")
    assert {**fields, "proof": None, "seconds": 0} == {**plain, "proof": None, "seconds": 0}
    assert asked.exit_status == alone.exit_status == 0
    assert "  status     optimal, certified\n" in asked.to_text(problem)
    assert "  status     optimal, claimed by colgen\n" in alone.to_text(problem)


@pytest.mark.usefixtures("no_certificates")
@pytest.mark.parametrize(("problem", "by"), [("rar-ddls", "highs"), ("hadar", "cpsat"), ("gpu-sharing", "cbc")])
def test_an_engine_of_another_make_confirms(problem: str, by: str) -> None:
    record = solve_record(schedgap.generate(problem, "tiny", seed=0), None, ONE)
    assert (record.result.proof, record.result.info["confirmed_by"]) == (Proof.AGREED, by)
    assert f"  status     optimal, agreed by {record.method} and {by}\n" in record.to_text(find_problem(problem))


@pytest.mark.usefixtures("no_certificates")
def test_that_there_is_no_schedule_is_confirmed_or_claimed() -> None:
    instance = schedgap.generate("gpu-sharing", "tiny", seed=1)
    problem = find_problem("gpu-sharing")
    asked, alone = (solve_record(instance, None, ONE, confirm=confirm) for confirm in (True, False))
    assert "  status     infeasible, agreed by cp and cbc\n" in asked.to_text(problem)
    assert "  status     infeasible, claimed by cp\n" in alone.to_text(problem)
    assert asked.exit_status == alone.exit_status == 3


@pytest.mark.parametrize("problem", all_problems())
def test_nobody_confirms_himself(problem: str) -> None:
    instance, method, result = claimed(problem)
    ways = confirming._ways(find_problem(problem), instance, method, result, ONE, lambda _: pytest.fail())
    names = [name for name, _ in ways]
    assert names[0] == "certificate" and result.engine not in names and not set(names) & set(method.engines)


def lying(instance: Any, **said: Any) -> Result:
    """A schedule one slot longer than the best one, as an optimum, or what else is said."""
    best = run_method(RAR, instance, CP, ONE)
    assert best.solution is not None and best.objective is not None
    late = {**best.solution, "start": {job: start + 1 for job, start in best.solution["start"].items()}}
    value = best.objective + 1
    told = {"objective": value, "bound": value, "solution": late, "status": Status.OPTIMAL, "engine": "cpsat"}
    return Result(**{**told, **said}, termination=Termination.PROVEN, solve_seconds=0.1)


NO_SCHEDULE: dict[str, Any] = {"status": Status.INFEASIBLE, "objective": None, "bound": None, "solution": None}


@pytest.mark.parametrize("said", [{}, NO_SCHEDULE], ids=["optimal", "infeasible"])
def test_a_contradiction_is_an_error_and_goes_to_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], said: dict[str, Any]
) -> None:
    from schedgap.cli.main import main

    monkeypatch.chdir(tmp_path)
    instance = schedgap.generate("rar-ddls", "tiny", seed=0)
    Path("i.json").write_text(instance.to_json())
    result = lying(instance, **said)
    monkeypatch.setattr("schedgap.catalogue.run.run_method", lambda *_, **__: result)
    assert main(["solve", "i.json", "--no-confirm", "--json"]) == (3 if said else 0)
    capsys.readouterr()
    assert main(["solve", "i.json", "--out", "s.json"]) == 5
    message = capsys.readouterr().err
    written = json.loads(next(Path("disagreements").glob("rar-ddls-*[0-9a-f].json")).read_text())
    assert "is claimed, highs has one of" in message and "the instance is in disagreements/" in message
    assert written["reference_disagreement"]["engine"] == "highs"
    found = schedgap.check("i.json", "s.json")  # what the checker accepts is not lost
    assert found.feasible and (result.objective is None or found.objective < result.objective)


def test_an_engine_in_range_that_denies_a_schedule_contradicts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    instance, method, result = claimed("rar-ddls")
    tight = instance.model_copy(update={"horizon": 1})
    monkeypatch.setattr(RAR, "model", lambda _: type(RAR).model(RAR, tight))
    monkeypatch.setattr(confirming, "_certificate", lambda *_: None)
    with pytest.raises(Disagreement, match=r"highs proves infeasibility.*the instance is in"):
        confirming.confirmed(RAR, instance, method, result, ONE, checker_of(RAR, instance))


def test_ctrl_c_in_a_confirmation_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(confirming, "_certificate", interrupted)
    record = solve_record(schedgap.generate("rar-ddls", "tiny", seed=0), None, ONE)
    assert (record.result.status, record.result.proof) == (Status.OPTIMAL, Proof.CLAIMED)
    assert record.result.solution is not None and record.exit_status == 0


def test_a_confirmation_that_fails_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise RuntimeError("row meet[0] is declared twice")

    monkeypatch.setattr(confirming, "_certificate", failing)
    lines: list[str] = []
    result = schedgap.solve(schedgap.generate("rar-ddls", "tiny", seed=0), threads=1, progress=lines.append)
    assert result.proof is Proof.AGREED
    assert "schedgap: note: no confirmation by certificate: RuntimeError: row meet[0] is declared twice" in lines


@pytest.mark.parametrize(("limit", "seconds", "allowed"), [(None, 0.1, 1.0), (None, 7.0, 7.0), (3.0, 7.0, 3.0)])
def test_a_confirmation_keeps_to_its_time(
    monkeypatch: pytest.MonkeyPatch, limit: float | None, seconds: float, allowed: float
) -> None:
    given: list[float] = []

    def way(deadline: Deadline) -> None:
        given.append(deadline.remaining() or 0.0)

    def ways(*_: object) -> Iterator[tuple[str, confirming.Way]]:
        yield from (("certificate", way), ("highs", way))

    monkeypatch.setattr(confirming, "SECONDS", 1.0)
    monkeypatch.setattr(confirming, "_ways", ways)
    instance = schedgap.generate("rar-ddls", "tiny", seed=0)
    result = Result(Status.INFEASIBLE, termination=Termination.PROVEN, solve_seconds=seconds)
    options = SolveOptions(Deadline.after(limit))
    after = confirming.confirmed(RAR, instance, CP, result, options, lambda _: pytest.fail())
    assert after.proof is Proof.CLAIMED
    assert given[0] <= confirming.SHARE * allowed and given[-1] <= allowed

    given.clear()
    over = SolveOptions(Deadline(clock() - 1))
    assert confirming.confirmed(RAR, instance, CP, result, over, lambda _: pytest.fail()) is result and not given


def test_a_certificate_is_of_the_value_that_the_solution_has() -> None:
    """One that is not the optimum has none, so nothing is called certified."""
    instance, _, result = claimed("rar-ddls")
    assert confirming._certificate(RAR, instance, result, Deadline.after(300)) is Proof.CERTIFIED
    assert confirming._certificate(RAR, instance, lying(instance), Deadline.after(300)) is None


def test_a_certificate_of_less_than_the_value_confirms_nothing() -> None:
    """However small the values are: 1e-10 beside them is no rounding."""
    link = {"latency": 0.0, "seconds_per_unit": 1e-11, "contention_penalty": 1e-11}
    tasks = [{"id": "a", "release": 0.0, "size": 1.0}, {"id": "b", "release": 0.0, "size": 10.0}]
    instance = schedgap.load({"problem": "comm-contention", "name": "small", "link": link, "tasks": tasks})
    problem = find_problem("comm-contention")
    best = run_method(problem, instance, "bb", ONE)
    assert best.objective is not None
    worse = {"start": {"b": 0.0, "a": 10e-11}}
    objective = checker_of(problem, instance)(worse).value
    assert objective > 1.5 * best.objective
    lie = Result(Status.OPTIMAL, objective=objective, bound=objective, solution=worse)
    assert confirming._certificate(problem, instance, lie, Deadline.after(300)) is None
    assert with_certificate(problem, instance, lie).proof is Proof.CLAIMED
    assert confirming._certificate(problem, instance, best, Deadline.after(300)) is Proof.CERTIFIED
    assert with_certificate(problem, instance, best).proof is Proof.CERTIFIED

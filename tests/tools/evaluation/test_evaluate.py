"""One method on one instance, and methods against each other, on a toy problem whose methods misbehave on purpose."""

from __future__ import annotations

import functools
import io
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.toy import ToyInstance, generate, toy

from schedgap.benchmarks.instances import make_instance, workload_of
from schedgap.benchmarks.judging.ledger_verdicts import LedgerVerdict
from schedgap.benchmarks.records import Record
from schedgap.benchmarks.report.compare import compare, run_method
from schedgap.benchmarks.suites.plan import plan
from schedgap.benchmarks.sweep.progress import SolveProgress
from schedgap.catalogue.agreement import Answer, agree
from schedgap.catalogue.method import label
from schedgap.catalogue.rar_ddls import PROBLEM as RAR_DDLS
from schedgap.catalogue.registry import all_problems, find_method, method_settings
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.numbers import MAXIMISE, MINIMISE
from schedgap.formulations.common.options import options_of
from schedgap.heuristics.common.guarantee import Guarantee, at_most
from schedgap.solvers.result import Deadline, SolveOptions, Status

INSTANCE = generate(0)  # list scheduling needs 14 slots, the optimum is 13


def _hard() -> ToyInstance:
    """Optimum 10 above the bound 9."""
    return ToyInstance.parse({"problem": "toy", "name": "hard-0", "machines": 2, "jobs": [6, 6, 6]})


def _table(text: str) -> list[str]:
    """The lines of a comparison from its table on; what it says in words stands above."""
    lines = text.splitlines()
    return lines[next(place for place, line in enumerate(lines) if line.startswith("method")) :]


def test_an_exact_method_is_scored_by_the_checker() -> None:
    result = run_method(toy(), INSTANCE, "brute", SolveOptions())
    assert result.status is Status.OPTIMAL
    assert result.objective == result.bound


def test_a_heuristic_gets_the_certified_bound_and_is_optimal_when_it_meets_it() -> None:
    easy = ToyInstance.parse({"problem": "toy", "machines": 2, "jobs": [3, 3]})
    result = run_method(toy(), easy, "list", SolveOptions())
    assert (result.status, result.objective, result.bound) == (Status.OPTIMAL, 3.0, 3.0)
    worse = run_method(toy(), easy, "list", SolveOptions(), {"machines": 1})
    assert (worse.status, worse.objective, worse.bound) == (Status.FEASIBLE, 6.0, 3.0)
    assert worse.seconds is not None and worse.engine is None


def test_a_heuristic_that_finds_nothing_leaves_the_bound() -> None:
    result = run_method(toy("nothing"), INSTANCE, "nothing", SolveOptions())
    assert (result.status, result.objective, result.solution) == (Status.UNKNOWN, None, None)
    assert result.bound is not None


def test_outside_the_model_there_is_no_ratio_and_no_claim() -> None:
    problem = toy("outside")
    result = run_method(problem, INSTANCE, "outside", SolveOptions())
    assert result.status is Status.FEASIBLE and result.info["outside_model"]
    comparison = compare(problem, INSTANCE, ["brute", "outside"], SolveOptions())
    row = comparison.rows[1]
    assert row.outside_model and row.ratio is None and row.ratio_to == ""
    assert row.objective is not None and comparison.agreement.optimum is not None
    assert row.objective < comparison.agreement.optimum
    assert "outside the model" in comparison.to_text()


@pytest.mark.parametrize(
    ("method", "words"),
    [("broken", "rejected by the checker"), ("liar", "the checker computes")],
)
def test_our_own_mistakes_are_disagreements_with_the_instance_in_a_file(
    method: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(Disagreement, match=words) as caught:
        run_method(toy(method), INSTANCE, method, SolveOptions(), disagreements=tmp_path / "d")
    assert caught.value.exit_status == 5
    path = Path(str(caught.value).rsplit("the instance is in ", 1)[1].split(", a solution of")[0])
    assert path.parent == tmp_path / "d"
    assert ToyInstance.parse(json.loads(path.read_text())).content_hash() == INSTANCE.content_hash()


def test_two_exact_methods_that_disagree_stop_a_comparison(tmp_path: Path) -> None:
    with pytest.raises(Disagreement, match="proves the optimum"):
        compare(toy("too-good"), INSTANCE, ["brute", "too-good"], SolveOptions(), disagreements=tmp_path)
    assert len(list(tmp_path.glob("toy-*.json"))) == 1


def test_a_solution_of_an_instance_proven_infeasible_is_a_disagreement(tmp_path: Path) -> None:
    with pytest.raises(Disagreement, match="no solution"):
        compare(toy("no-solution"), INSTANCE, ["no-solution", "list"], SolveOptions(), disagreements=tmp_path)


def test_a_heuristic_better_than_a_proven_optimum_is_a_disagreement(tmp_path: Path) -> None:
    with pytest.raises(Disagreement, match="better than the optimum"):
        compare(toy("too-good"), INSTANCE, ["too-good", "shuffled"], SolveOptions(), repeat=9, disagreements=tmp_path)


def test_an_unknown_method_lists_those_there_are() -> None:
    with pytest.raises(InputError, match="unknown method 'nope' for toy, one of: brute, list, shuffled"):
        run_method(toy(), INSTANCE, "nope", SolveOptions())


def test_an_unknown_option_or_a_bad_value_is_refused() -> None:
    with pytest.raises(InputError, match="unknown option 'speed'"):
        run_method(toy(), INSTANCE, "list", SolveOptions(), {"speed": "2"})
    with pytest.raises(InputError, match="machines"):
        run_method(toy(), INSTANCE, "list", SolveOptions(), {"machines": "0"})
    with pytest.raises(InputError, match="none of the methods"):
        compare(toy(), INSTANCE, ["brute", "list"], SolveOptions(), {"speed": "2"})


def test_a_users_heuristic_runs_by_name() -> None:
    result = run_method(toy(), INSTANCE, "support.toy:users", SolveOptions())
    assert result.objective == run_method(toy(), INSTANCE, "list", SolveOptions()).objective


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("support.toy:users_bad", "rejected by the checker: jobs: 7 machines named for 6 jobs"),
        ("support.toy:users_raising", r"raised KeyError: 'gpus' \(toy.py, line \d+\)"),
        ("support.toy:users_text", "machine: must be a list"),
        ("support.toy:not_there", "has no function"),
        ("support.absent:f", "cannot import support.absent"),
        ("support.toy:", "package.module:function"),
    ],
)
def test_a_users_mistake_is_bad_input_in_one_line(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        run_method(toy(), INSTANCE, name, SolveOptions())
    assert not isinstance(caught.value, Disagreement)
    assert "\n" not in str(caught.value)


def test_a_users_mistake_does_not_stop_the_others(tmp_path: Path) -> None:
    methods, here = ["brute", "support.toy:users_bad", "list"], tmp_path / "disagreements"
    comparison = compare(toy(), INSTANCE, methods, SolveOptions(), disagreements=here)
    assert [bool(row.error) for row in comparison.rows] == [False, True, False]
    assert comparison.exit_status == 2
    assert "users_bad" in comparison.to_text().splitlines()[-1]


def test_a_users_heuristic_is_found_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_here.py").write_text("def f(instance, *, seed):\n    return {'machine': [0] * 6}\n")
    monkeypatch.chdir(tmp_path)
    assert run_method(toy(), INSTANCE, "mine_here:f", SolveOptions()).objective == sum(INSTANCE.jobs)


USERS = """
print("imported")

def f(instance, *, seed):
    print("called")
    import mine_later
    return {'machine': [0] * 6}

def leaves(instance, *, seed):
    raise SystemExit(3)

def long(instance, *, seed):
    raise ValueError("first line\\nsecond line")
"""


def test_a_users_code_prints_to_stderr_imports_from_here_and_cannot_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine_talks.py").write_text(USERS)
    (tmp_path / "mine_later.py").write_text("")
    (tmp_path / "mine_leaves.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    assert run_method(toy(), INSTANCE, "mine_talks:f", SolveOptions()).objective == sum(INSTANCE.jobs)
    printed = capsys.readouterr()
    assert (printed.out, printed.err.split()) == ("", ["imported", "called"])
    assert sys.path == path
    with pytest.raises(InputError, match=r"raised SystemExit: 3 \(mine_talks.py, line \d+\)$"):
        run_method(toy(), INSTANCE, "mine_talks:leaves", SolveOptions())
    with pytest.raises(InputError, match=r"raised ValueError: first line \(mine_talks.py, line \d+\)$"):
        run_method(toy(), INSTANCE, "mine_talks:long", SolveOptions())
    with pytest.raises(InputError, match="cannot import mine_leaves: SystemExit"):
        run_method(toy(), INSTANCE, "mine_leaves:f", SolveOptions())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seed": -1}, "seed: must be a whole number from 0, got -1"),
        ({"seed": 1.5}, "seed: must be a whole number from 0, got 1.5"),
        ({"seed": True}, "seed: must be a whole number from 0, got True"),
        ({"relative_gap": math.nan}, "relative gap: must be a finite number from 0, got nan"),
        ({"relative_gap": -0.1}, "relative gap: must be a finite number from 0, got -0.1"),
        ({"relative_gap": "1"}, "relative gap: must be a finite number from 0, got '1'"),
        ({"threads": 0}, "threads: must be a whole number from 1, got 0"),
        ({"threads": 1.0}, "threads: must be a whole number from 1, got 1.0"),
        ({"work_limit": 0}, "work limit: must be a positive finite number, got 0"),
        ({"work_limit": math.inf}, "work limit: must be a positive finite number, got inf"),
    ],
)
def test_options_are_validated(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        SolveOptions(**given)
    assert str(caught.value) == message


@pytest.mark.parametrize("seconds", ["5", True, math.nan, math.inf, 0, -1, [1]])
def test_a_time_limit_is_a_positive_number(seconds: Any) -> None:
    with pytest.raises(InputError, match=r"^time limit: must be "):
        Deadline.after(seconds)


def test_ratios_are_labelled() -> None:
    problem, hard = toy(), _hard()
    with_optimum = compare(problem, hard, ["brute", "list"], SolveOptions())
    assert [row.ratio_to for row in with_optimum.rows] == ["optimum", "optimum"]
    assert with_optimum.rows[1].ratio == 1.0
    without = compare(problem, hard, ["list"], SolveOptions())
    assert without.rows[0].ratio_to == "bound"
    assert without.rows[0].ratio == pytest.approx(12 / 9)
    assert "1.333 to bound" in without.to_text()


def test_guarantees_stand_beside_the_ratio() -> None:
    comparison = compare(toy(), INSTANCE, None, SolveOptions())
    assert [row.method.id for row in comparison.rows] == ["brute", "list", "shuffled"]
    verdicts = {j.guarantee.id: str(j.verdict) for j in comparison.rows[1].judgements}
    assert verdicts == {"toy-false": "refuted", "toy-never": "not applicable", "toy-graham": "held"}
    data = json.loads(json.dumps(comparison.to_dict()))
    assert data["rows"][1]["guarantees"][0]["ratio_bound"] == 1.0
    assert data["optimum"] == comparison.agreement.optimum


def test_repeat_tries_several_seeds_of_heuristics_only() -> None:
    comparison = compare(toy(), INSTANCE, ["brute", "shuffled"], SolveOptions(), repeat=5)
    exact, shuffled = comparison.rows
    assert (len(exact.results), len(shuffled.results)) == (1, 5)
    assert len(set(shuffled.objectives)) > 1
    assert shuffled.ratio is not None and shuffled.worst_ratio is not None
    assert 1 <= shuffled.ratio <= shuffled.worst_ratio
    assert "worst" in comparison.to_text()
    with pytest.raises(InputError, match="repeat"):
        compare(toy(), INSTANCE, ["shuffled"], SolveOptions(), repeat=0)


def test_no_mean_is_over_the_seeds_that_found_something() -> None:
    problem = toy("sometimes")
    problem.metrics = {"loss": "loss"}
    comparison = compare(problem, INSTANCE, ["brute", "sometimes"], SolveOptions(), repeat=5)
    row = comparison.rows[1]
    assert (row.objective, row.ratio, row.worst_ratio, row.objectives) == (None, None, None, (14.0, 14.0, 14.0))
    assert comparison.metrics(row) == {"loss": None}
    data = comparison.to_dict()["rows"]
    assert [(one["found"], one["runs"]) for one in data] == [(1, 1), (3, 5)] and data[1]["ratio"] is None
    lines = _table(comparison.to_text())
    assert lines[0].split()[:6] == ["method", "status", "found", "mean", "best", "worst"]
    shown = next(line for line in lines if line.startswith("sometimes"))
    assert shown.split()[2:9] == ["3", "of", "5", "-", "14", "nothing", "found"] and "to optimum" not in shown
    assert any(line.startswith("no mean, no ratio where a seed found nothing") for line in lines)


def test_each_method_has_the_time_limit_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[float | None] = []

    def spy(instance: ToyInstance, options: SolveOptions) -> object:
        from support.toy import brute

        left.append(options.deadline.remaining())
        return brute(instance, options)

    monkeypatch.setattr("support.toy.too_good", spy)
    compare(toy("too-good"), INSTANCE, ["brute", "too-good"], SolveOptions(deadline=Deadline.after(1e6)))
    assert left[-1] is not None and 9e5 < left[-1] <= 1e6  # warming it may have come first, without a limit


def test_agreement_sees_what_is_proven_and_what_contradicts() -> None:
    ours = Answer("ours", Status.FEASIBLE, 8.0, 5.0)
    met = agree([ours, Answer("other", Status.UNKNOWN, None, 8.0, exact=True)], MINIMISE)
    assert (met.optimum, met.bound, met.contradictions) == (8.0, 8.0, ())
    open_ = agree([ours], MINIMISE, certified=6.0)
    assert (open_.optimum, open_.bound) == (None, 6.0)
    assert open_.ratio(9.0, MINIMISE) == (1.5, "bound")
    assert agree([ours], MINIMISE, certified=8.5).contradictions
    assert agree([Answer("a", Status.FEASIBLE, 8.0, 5.0)], MAXIMISE).contradictions
    assert not agree([Answer("a", Status.FEASIBLE, 5.0, 8.0)], MAXIMISE).contradictions
    infeasible = agree([Answer("a", Status.INFEASIBLE, None, None, exact=True), ours], MINIMISE)
    assert infeasible.infeasible and infeasible.contradictions
    zero = agree([Answer("a", Status.OPTIMAL, 0.0, 0.0, exact=True)], MINIMISE)
    assert zero.ratio(0.0, MINIMISE) == (1.0, "optimum")
    assert zero.ratio(2.0, MINIMISE)[0] == math.inf
    apart = agree([Answer("a", Status.OPTIMAL, 3.0, 3.0, outside_model=True), ours], MINIMISE)
    assert not apart.contradictions and apart.optimum is None


def test_tolerance_of_agreement_is_the_conventions() -> None:
    same = [Answer("a", Status.OPTIMAL, 1e6, 1e6), Answer("b", Status.OPTIMAL, 1e6 + 5e-4, 1e6 + 5e-4)]
    other = [Answer("a", Status.OPTIMAL, 1e6, 1e6), Answer("b", Status.OPTIMAL, 1e6 + 2e-3, 1e6 + 2e-3)]
    assert not agree(same, MINIMISE).contradictions
    assert agree(other, MINIMISE).contradictions


def test_the_row_of_a_real_problem_names_things_that_exist() -> None:
    assert workload_of(RAR_DDLS).suites
    for method in RAR_DDLS.methods:
        if method.kind != "engine":
            assert callable(method.call)


def test_compare_tells_which_method_runs() -> None:
    stream = io.StringIO()
    progress = SolveProgress(MINIMISE, "compare", stream)
    told: list[str] = []
    running = progress.running

    def noted(method: str) -> None:
        running(method)
        told.append(progress.line())

    progress.running = noted  # type: ignore[method-assign]
    compare(toy(), INSTANCE, ["brute", "list"], SolveOptions(report=progress))
    assert [line.split()[:2] for line in told] == [["compare", "brute"], ["compare", "list"]]
    assert all("objective -  bound -" in line for line in told)
    assert compare(toy(), INSTANCE, ["brute"], SolveOptions(report=lambda *_: None)).exit_status == 0


def test_reasons_stand_under_the_table_and_the_ledger_beside_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    text = compare(toy("nothing"), INSTANCE, ["brute", "list", "nothing"], SolveOptions()).to_text()
    lines = _table(text)
    assert lines[0].split()[-3:] == ["ratio", "seconds", "proof"]
    head = next(line for line in lines if line.startswith("claim"))
    assert head.split()[-5:] == ["<=", "verdict", "left", "right", "ledger"]
    false, never, graham = (next(line for line in lines if name in line) for name in GUARANTEES)
    assert "  refuted  " in false and false.split()[-6:-4] == ["14.00", "13.00"]
    assert "  not applicable  " in never and "  not refuted here  " in graham
    assert all(line.endswith("not in the ledger") for line in (false, never, graham))
    assert "toy-never is not applicable: never applies" in lines
    assert "nothing: does not try" in lines
    assert any(line.startswith("not refuted here: ") for line in lines)
    shipped = LedgerVerdict("refuted", "refuted (3 of 4)")
    monkeypatch.setattr("schedgap.benchmarks.judging.judge.ledger_verdict", lambda name: shipped)
    again = compare(toy(), INSTANCE, ["brute", "list"], SolveOptions())
    assert again.to_text().count("refuted (3 of 4)") == 3
    data = again.to_dict()["rows"][1]
    assert {claim["ledger"] for claim in data["guarantees"]} == {"refuted (3 of 4)"} and data["reason"] is None


GUARANTEES = ("toy-false", "toy-never", "toy-graham")


def test_a_proof_is_told_of_what_is_settled_only() -> None:
    lines = _table(compare(toy("nothing"), INSTANCE, ["brute", "list", "nothing"], SolveOptions()).to_text())
    proofs = {line.split()[0]: line.split()[-1] for line in lines[2:5]}
    assert proofs == {"brute": "claimed", "list": "-", "nothing": "-"}
    assert "proof of what is optimal or infeasible: claimed = one solver alone" in lines
    without = compare(toy(), _hard(), ["list"], SolveOptions()).to_text()
    assert "proof of what" not in without


def test_columns_without_content_are_left_out_and_bounds_of_other_models_are_told() -> None:
    problem = toy("outside")
    problem.rows = (Guarantee("toy-inside", "toy", "nobody", "x <= y", "none", lambda case: at_most(1, 2), "list"),)
    lines = compare(problem, INSTANCE, ["brute", "list", "outside"], SolveOptions()).to_text().splitlines()
    head = next(line for line in lines if line.startswith("claim"))
    assert head.split() == ["claim", "verdict", "left", "right", "ledger"]
    outside = next(line for line in lines if line.startswith("outside"))
    assert outside.count("*") == 1
    assert "* a bound on what the method's own model allows, not on this problem" in lines


def test_a_group_of_claims_says_nothing_of_a_ratio_that_is_unknown() -> None:
    problem = toy("nothing")
    problem.rows = (Guarantee("toy-n", "toy", "nobody", "x <= y", "none", lambda case: at_most(1, 2), "nothing"),)
    lines = compare(problem, INSTANCE, ["nothing"], SolveOptions()).to_text().splitlines()
    assert lines[lines.index(next(line for line in lines if line.startswith("claim"))) + 2] == "nothing"


def test_printed_runs_each_method_as_its_paper_prints_it() -> None:
    problem = toy()
    problem.methods = tuple(replace(m, printed={"machines": 1}) if m.id == "list" else m for m in problem.methods)
    printed = problem
    usual, as_printed = (compare(printed, INSTANCE, None, SolveOptions(), printed=flag) for flag in (False, True))
    assert [dict(row.settings) for row in usual.rows] == [{}, {}, {}]
    assert [dict(row.settings) for row in as_printed.rows] == [{}, {"machines": 1}, {}]
    assert as_printed.rows[1].objective == sum(INSTANCE.jobs)
    assert "list ran with machines=1" in as_printed.to_text().splitlines()
    asked = compare(printed, INSTANCE, None, SolveOptions(), {"machines": "2"}, printed=True)
    assert asked.rows[1].settings == {"machines": 2}  # what is asked for counts more


@pytest.mark.parametrize(("problem_id", "method"), [(p.id, m.id) for p in all_problems().values() for m in p.methods])
def test_printed_settings_are_options_of_the_method_and_not_its_defaults(problem_id: str, method: str) -> None:
    found = find_method(all_problems()[problem_id], method)
    assert method_settings(found, found.printed) == dict(found.printed)
    assert all(found.options[name].default != value for name, value in found.printed.items())


def test_the_printed_claim_of_hadar_is_about_the_published_form_with_its_own_prices() -> None:
    instance = make_instance(all_problems()["hadar"], "lowhigh", 0)
    for settings in ({}, {"price": "early"}):
        methods = ["colgen", "hadar-online", "hadar-online+"]
        found = compare(all_problems()["hadar"], instance, methods, SolveOptions(), settings)
        claims = [{j.guarantee.id: j for j in row.judgements} for row in found.rows]
        assert (claims[1]["002-theorem-2"].verdict == "not applicable") is bool(settings)
        assert claims[2]["002-theorem-2-repaired"].verdict != "not applicable" and "002-theorem-2" not in claims[2]


def test_the_quick_suite_judges_hadars_theorem_2_as_printed() -> None:
    problem = all_problems()["hadar"]
    printed = {name: (dict(find_method(problem, name).printed),) for name in ("hadar-online", "hadar-rounds")}
    mine = [item for item in plan(["quick"], problems=[problem]) if item.record.batch == "lowhigh, printed settings"]
    asked = {(r.method, label(r.method, r.settings)) for r in (item.record for item in mine) if r.method in printed}
    assert asked == {(name, label(name, options)) for name, (options,) in printed.items()}
    kept = {item.record.instance_hash: item.instance for item in mine if item.instance is not None}
    judged = [
        {j.guarantee.id for row in found.rows for j in row.judgements if j.verdict != "not applicable"}
        for found in (
            compare(problem, instance, ["colgen", *printed], SolveOptions(), printed=True) for instance in kept.values()
        )
    ]
    assert len(kept) == 4 and any({"002-theorem-2", "002-theorem-2-rounds"} <= names for names in judged)


OUTSIDE = [
    ("g-vne", "lp-rs-mde-printed", {"004-theorem-8": "3.000"}),
    ("g-vne", "lp-rs-mde", {"004-theorem-10-one-slot-kept": "7.000"}),
    ("hadar", "hadar-rounds", {"002-theorem-2-rounds": "17.57"}),
]


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize(("problem_id", "method", "claims"), OUTSIDE)
def test_ratios_stand_beside_the_printed_bounds_outside_of_the_assumptions_too(
    problem_id: str, method: str, claims: dict[str, str], printed: bool
) -> None:
    problem = all_problems()[problem_id]
    instance = make_instance(problem, "tiny" if problem_id == "g-vne" else "small", 0)
    methods = [problem.methods[0].id, method]
    found = compare(problem, instance, methods, SolveOptions(), printed=printed)
    lines = found.to_text().splitlines()
    for name, most in claims.items():
        cells = next(line.split() for line in lines if line.startswith(f"  {name} "))
        assert cells[1:4] == [most, "not", "applicable"] and "-" not in cells[4:6]
        judgement = next(j for j in found.rows[1].judgements if j.guarantee.id == name)
        assert judgement.verdict == "not applicable" and judgement.evaluation.outside
        assert judgement.ratio_bound == pytest.approx(float(most), rel=1e-3)
    assert max(map(len, lines)) <= 100


def test_no_claim_is_judged_outside_but_for_its_sides() -> None:
    instance = make_instance(all_problems()["hadar"], "small", 0)
    found = compare(all_problems()["hadar"], instance, ["hadar-online"], SolveOptions(), {"price": "early"})
    claim = next(j for j in found.rows[0].judgements if j.guarantee.id == "002-theorem-2")
    assert claim.evaluation.outside  # other prices: 2 alpha would be of something else
    assert (claim.evaluation.left, claim.evaluation.right, claim.ratio_bound) == (None, None, None)


def test_where_the_published_form_has_no_prices_it_finds_nothing_and_says_why() -> None:
    instance = make_instance(all_problems()["hadar"], "tiny", 1)  # its printed U_min is 0
    found = compare(all_problems()["hadar"], instance, ["hadar-online", "hadar-online+", "gavel"], SolveOptions())
    assert not found.rows[0].error and not found.rows[0].objectives and found.rows[1].objectives
    text = found.to_text()
    assert found.rows[0].reason.startswith("the printed U_min is 0, since job ") and found.rows[0].reason in text
    claims = {j.guarantee.id: j for j in found.rows[0].judgements}
    assert all(j.verdict == "not applicable" for j in claims.values()) and "\n  002-theorem-2 " in text
    assert claims["002-theorem-2"].evaluation.reason == "stopped: no prices"


def test_what_the_print_refuses_is_told_and_the_others_run() -> None:
    def refuses(instance: object, *, seed: int, strict: bool = False) -> dict[str, object]:
        raise InputError("list: refused") if strict else AssertionError

    problem = toy()
    problem.methods = tuple(
        replace(m, source="paper 000", printed={"strict": True}, load=lambda: {"list": refuses})
        if m.id == "list"
        else m
        for m in problem.methods
    )
    found = compare(problem, INSTANCE, None, SolveOptions(), printed=True)
    refused = next(row for row in found.rows if row.method.id == "list")
    assert refused.error == "list: refused" and found.exit_status == 2 and refused.error in found.to_text()
    assert any(row.objectives for row in found.rows)


def test_repaired_forms_under_a_plain_name_say_so_and_stand_beside_the_published_ones() -> None:
    for problem in all_problems().values():
        for method in problem.methods:
            if method.repairs:
                ids = [known.id for known in problem.methods]
                assert ids[ids.index(method.id) - 1] == method.repairs
                assert method.id == f"{method.repairs}+" or method.shown == f"{method.id} (repaired)"
                assert "repaired" in method.title and method.source.startswith("ours")
    problem = all_problems()["g-vne"]
    found = compare(problem, make_instance(problem, "tiny", 0), None, SolveOptions())
    assert {"lp-rs-mde-printed", "lp-rs-mde (repaired)"} <= {row.method.shown for row in found.rows}
    printed, repaired = (next(r for r in found.rows if r.method.id == m) for m in ("lp-rs-mde-printed", "lp-rs-mde"))
    assert printed.outside_model and printed.ratio is None and not repaired.outside_model
    assert "lp-rs-mde (repaired)" in found.to_text() and record_label("g-vne", "lp-rs-mde") == "lp-rs-mde (repaired)"


def record_label(problem: str, method: str) -> str:
    return Record(problem, method).label


def test_printed_says_where_it_changes_nothing() -> None:
    problem = toy()
    problem.methods = tuple(replace(m, source="paper 000") if m.id == "list" else m for m in problem.methods)
    said = "the printed settings of list are the defaults"
    assert said in compare(problem, INSTANCE, None, SolveOptions(), printed=True).to_text().splitlines()
    assert said not in compare(problem, INSTANCE, None, SolveOptions()).to_text()


def test_only_annotations_of_options_are_read_and_what_cannot_be_read_is_one_line() -> None:
    def good(instance: NotHere, *, seed: int, kappa: int = 4) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    def bad(instance: object, *, seed: int, kappa: NotHere = 4) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert options_of(good)["kappa"].parse("7") == 7
    assert options_of(functools.partial(good, kappa=2))["kappa"].default == 2
    with pytest.raises(InputError, match=r"bad: the annotation of kappa cannot be read: NameError: .*NotHere"):
        options_of(bad)

"""The Python API: names, forms of input, files; what the command line is built on."""

import doctest
import json
import os
import pickle
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.toy import toy

import schedgap
from schedgap import instances, lists, solving
from schedgap.benchmarks.sweep import warm
from schedgap.benchmarks.sweep.progress import SolveProgress
from schedgap.catalogue.method import Method
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.rar_ddls import PROBLEM as RAR_DDLS
from schedgap.catalogue.run import run_method
from schedgap.cli.arguments import split_settings
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.files import check_writable, write_text
from schedgap.formulations.common.instance import Instance
from schedgap.solvers.result import Deadline, Result, Status, Termination
from schedgap.solving import interrupted, not_worse

CASES = Path(__file__).parents[1] / "data"
MIXED = CASES / "rar-14-mixed.json"


def reference() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(MIXED.read_text())["reference_solution"]
    return found


def test_every_public_name_is_there() -> None:
    for name in schedgap.__all__:
        assert getattr(schedgap, name) is not None
    assert set(schedgap.__all__) <= set(dir(schedgap))
    assert pickle.loads(pickle.dumps(schedgap.hunt)) is schedgap.hunt  # as a process pool sends it
    assert schedgap.__version__.count(".") >= 1
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = schedgap.nothing


def test_a_guests_source_of_one_word_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    guest = toy()
    guest.id = "toy-with-a-long-name"
    monkeypatch.setattr(lists, "all_problems", lambda: {guest.id: guest})
    heads, line, *_ = lists.listing().splitlines()
    assert line.split()[:2] == [guest.id, "-"] and line.endswith(guest.title)
    assert heads.index("what is asked") == line.index(guest.title)


def test_examples_in_the_docstrings() -> None:
    names = {name: getattr(schedgap, name) for name in schedgap.__all__}
    for module in (instances, solving, schedgap):
        failed, tried = doctest.testmod(module, extraglobs=names)
        assert tried > 0 and failed == 0


def test_an_instance_in_each_of_its_forms() -> None:
    instance = schedgap.load(MIXED)
    solution = reference()
    for form in (instance, json.loads(MIXED.read_text()), MIXED, str(MIXED)):
        assert schedgap.check(form, solution).objective == 12
    with pytest.raises(InputError, match=r"^instance: horizon: "):
        schedgap.check({**instance.to_dict(), "horizon": 0}, solution)


def test_a_solution_in_each_of_its_forms(tmp_path: Path) -> None:
    whole = {"status": "optimal", "solution": reference()}
    for number, form in enumerate((reference(), whole)):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(form))
        assert schedgap.check(MIXED, form).feasible and schedgap.check(MIXED, path).feasible


def test_solve_with_a_heuristic_and_typed_settings() -> None:
    result = schedgap.solve(MIXED, "sjf-bco", settings={"kappa": 1})
    assert result.status in (Status.FEASIBLE, Status.OPTIMAL) and result.seconds is not None
    with pytest.raises(InputError, match=r"option kappa: must be int, got 1\.5"):
        schedgap.solve(MIXED, "sjf-bco", settings={"kappa": 1.5})
    with pytest.raises(InputError, match="time limit"):
        schedgap.solve(MIXED, "sjf-bco", time_limit=0)


def test_no_clock_pays_for_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """In `compare`, whose seconds stand side by side, each method runs beforehand; one solve warms nothing."""
    done: list[str | float | None] = []

    def warmed(problem: Problem, method: Method, settings: Mapping[str, Any], disagreements: Path) -> None:
        done.append(f"{method.id} {dict(settings)}")

    class Noted(Deadline):
        @classmethod
        def after(cls, seconds: float | None) -> Deadline:
            done.append(seconds)
            return Deadline.after(seconds)

    def noted(problem: Problem, instance: Instance, method: Method, *args: Any, **options: Any) -> Result:
        done.append(f"run {method.id}")
        return run_method(problem, instance, method, *args, **options)

    monkeypatch.setattr(warm, "_warm", set())
    monkeypatch.setattr(warm, "warm_up", warmed)
    monkeypatch.setattr(solving, "Deadline", Noted)
    monkeypatch.setattr("schedgap.benchmarks.report.compare.run_method", noted)
    instance = schedgap.generate("rar-ddls", seed=3)
    result = schedgap.solve(instance, "sjf-bco", time_limit=1e6)
    assert result.solution is not None and result.seconds is not None
    schedgap.solve(instance, "sjf-bco", settings={"kappa": 2})
    assert done == [1e6, None]
    done.clear()
    text = schedgap.compare(instance, ["ff", "ls"], settings={"u": 2}).to_text()
    assert done == ["ff {}", "ls {}", None, "ff {'u': 2.0}", "run ff", "ls {'u': 2.0}", "run ls"]
    assert "seconds hold no import or compilation" in text


def test_warming_up_runs_the_method_on_the_first_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, str]] = []

    def note(problem: Problem, instance: Instance, method: Method, *_: object, **__: object) -> Result:
        ran.append((instance.name, method.id))
        stopped = method.id == "cp"
        return Result(Status.UNKNOWN, termination=Termination.INTERRUPTED if stopped else Termination.FINISHED)

    monkeypatch.setattr("schedgap.catalogue.run.run_method", note)
    for method in RAR_DDLS.methods:
        if method.id == "cp":  # it noticed Ctrl-C, which is not to get lost
            with pytest.raises(KeyboardInterrupt):
                warm.warm_up(RAR_DDLS, method)
        else:
            warm.warm_up(RAR_DDLS, method)
    assert ran == [("tiny-0", method.id) for method in RAR_DDLS.methods]


def test_an_answer_is_never_worse_than_its_start() -> None:
    result = schedgap.solve(MIXED, "sjf-bco", start=reference())
    assert result.objective == 12 and result.solution == reference()
    assert schedgap.check(MIXED, result.solution).objective == 12
    instance = schedgap.load(MIXED)
    for bound, status in ((12.0, Status.OPTIMAL), (11.0, Status.FEASIBLE), (None, Status.FEASIBLE)):
        worse = Result(Status.FEASIBLE, 20.0, bound, {"any": 1})
        assert not_worse(RAR_DDLS, instance, worse, reference(), 12.0).status is status
    kept = Result(Status.OPTIMAL, 11.0, 11.0, {"any": 1})
    assert not_worse(RAR_DDLS, instance, kept, reference(), 12.0) is kept


@pytest.mark.parametrize("method", ["highs", "cp", "sjf-bco"])
def test_the_front_desk_checks_each_solution_once(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    check = type(RAR_DDLS).check

    def noted(self: Problem, instance: Instance, solution: dict[str, Any]) -> CheckReport:
        asked.append(json.dumps([instance.name, solution], sort_keys=True))
        return check(RAR_DDLS, instance, solution)

    monkeypatch.setattr(type(RAR_DDLS), "check", noted)
    result = schedgap.solve(MIXED, method, start=reference(), threads=1, confirm=False)
    assert result.objective == 12 and asked
    own = 1 if method == "cp" else 0  # which looks for the best of the heuristics before, on its own
    assert max(asked.count(one) for one in asked) <= 1 + own


def test_infeasible_with_a_feasible_start_is_a_disagreement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Disagreement) as caught:
        not_worse(RAR_DDLS, schedgap.load(MIXED), Result(Status.INFEASIBLE), reference(), 12.0)
    path = Path(str(caught.value).rpartition(" ")[2])
    assert schedgap.load(path) == schedgap.load(MIXED)


def test_the_best_so_far_is_scored_by_the_checker() -> None:
    instance = schedgap.load(MIXED)
    result = interrupted(RAR_DDLS, instance, reference(), 7.0, 1.5)
    assert (result.status, result.objective, result.bound) == (Status.FEASIBLE, 12, 7)
    assert result.termination is Termination.INTERRUPTED and result.seconds == 1.5
    spoilt = reference()
    spoilt["start"]["j0"] = 1
    for best in (None, spoilt):
        result = interrupted(RAR_DDLS, instance, best, None, 1.5)
        assert (result.status, result.objective, result.solution) == (Status.UNKNOWN, None, None)


def test_progress_keeps_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    progress = SolveProgress(+1, "cp", sys.stderr)
    with progress:
        progress({"a": 1}, 20.0, 5.0)
        progress({"a": 2}, 22.0, 4.0)
        progress({"a": 3}, 18.0, None)
        progress(None, None, 9.0)
    assert (progress.solution, progress.objective, progress.bound) == ({"a": 3}, 18.0, 9.0)
    assert progress.line().endswith("objective 18  bound 9  gap 50.00%")
    assert capsys.readouterr().err == ""  # over before a line was due
    upwards = SolveProgress(-1, "cp", sys.stderr)
    upwards({"a": 1}, 20.0, 30.0)
    upwards({"a": 2}, 22.0, 40.0)
    assert (upwards.objective, upwards.bound) == (22.0, 30.0)


def test_settings_may_be_given_together_or_apart() -> None:
    assert split_settings(["solve", "x", "--set", "a=1", "b=2", "c.json"]) == [
        "solve", "x", "--set", "a=1", "--set", "b=2", "c.json",
    ]  # fmt: skip
    assert split_settings(["--set", "a=1", "--seed", "2", "b=2"]) == ["--set", "a=1", "--seed", "2", "b=2"]
    assert split_settings(["--", "--set", "a=1", "b=2"]) == ["--", "--set", "a=1", "b=2"]


def test_files_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "umask", None)  # to ask for it changes it for every thread
    path = tmp_path / "out.json"
    check_writable(path)
    assert not path.exists()
    write_text(path, "one")
    path.chmod(0o640)
    write_text(path, "two")
    assert path.read_text() == "two" and stat.S_IMODE(path.stat().st_mode) == 0o640
    link = tmp_path / "link.json"
    link.symlink_to(path)
    write_text(link, "three")
    assert link.is_symlink() and path.read_text() == "three"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.json", "out.json"]
    check_writable(path)
    assert path.read_text() == "three"
    write_text(Path("/dev/null"), "nothing")
    for bad in (tmp_path, tmp_path / "no" / "x", path / "x", Path("/dev/full")):
        with pytest.raises(InputError, match="cannot be written"):
            check_writable(bad)
            write_text(bad, "x" * 100_000)


def test_plot_gives_a_figure_and_a_file(tmp_path: Path) -> None:
    figure = schedgap.plot(MIXED, reference(), tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 1000 and figure.axes
    with pytest.raises(InputError, match=r"must end in \.svg, \.png, \.pdf"):
        schedgap.plot(MIXED, reference(), tmp_path / "x.txt")


def test_generate_and_methods() -> None:
    assert schedgap.problems()[0] == "rar-ddls"
    assert [method.id for method in schedgap.methods("rar-ddls")][:4] == ["cp", "cbc", "highs", "cpsat"]
    assert schedgap.generate("rar-ddls", seed=3) == schedgap.generate("rar-ddls", "tiny", seed=3)
    with pytest.raises(InputError, match="unknown problem"):
        schedgap.generate("rar")


def test_two_solutions_are_drawn_on_one_time_axis(tmp_path: Path) -> None:
    optimum = schedgap.solve(MIXED).solution
    other = schedgap.solve(MIXED, "sjf-bco").solution
    assert optimum is not None and other is not None
    figure = schedgap.plot(MIXED, {"solution": other, "status": "feasible", "method": "sjf-bco"}, compare=[optimum])
    first, second = figure.subfigs
    assert first.axes[0].get_xlim() == second.axes[0].get_xlim()
    words = [text.get_text() for text in figure.texts]
    assert words[0].startswith("rar-ddls") and words[1].startswith("sjf-bco: makespan ")
    assert words[2] == "solution 2: makespan 12 slots"


def nothing(instance: Instance, *, seed: int) -> None:
    """Finds nothing on any instance."""


def test_a_run_is_one_tidy_table_with_or_without_ratios() -> None:
    table = schedgap.run([MIXED, schedgap.generate("rar-ddls", seed=0)], ["cp", "rand"], repeat=2)
    assert list(table.method) == ["cp", "rand", "rand"] * 2 and list(table.seed) == [0, 0, 1] * 2
    assert (table.ratio[table.method == "cp"] == 1).all() and (table.ratio.dropna() >= 1).all()
    assert table.ratio.isna().any() and set(table.ratio_to) == {"optimum", ""} and table.instance[0] == "rar-14-mixed"
    empty = schedgap.run(schedgap.load(MIXED), [f"{__file__}:nothing"])
    assert empty[["objective", "ratio"]].isna().all(axis=None) and list(empty.status) == ["unknown"]
    assert empty.best_bound.notna().all() and list(empty.ratio_to) == [""]
    assert list(schedgap.run([]).columns) == list(table.columns)


def test_what_a_notebook_shows_is_short_and_unknowns_stay_unknown() -> None:
    instance = schedgap.load(MIXED)
    assert repr(instance) == "<rar-ddls 'rar-14-mixed': 3 servers, 6 jobs>"
    best = schedgap.solve(instance)
    assert repr(best).startswith("Result(status=optimal, objective=12.0, bound=12.0, gap=0.0")
    assert "solution" not in repr(best)
    frame = best.to_frame()
    assert frame.loc[0, "objective"] == 12 and list(frame)[:3] == ["status", "objective", "bound"]
    odd = schedgap.Result(schedgap.Status.ERROR, engine="<b>")
    assert "&lt;b&gt;" in odd._repr_html_() and "<td>unknown</td>" in odd._repr_html_()
    assert odd.to_frame()["objective"].isna().all()
    found = schedgap.compare(instance, ["cp", "ls", f"{__file__}:nothing"])
    assert repr(found) == "<comparison of 3 methods on rar-ddls 'rar-14-mixed'>"
    assert list(found.to_frame().objective.isna()) == [False, False, True]
    assert "<td>unknown</td>" in found._repr_html_()


def test_a_ledger_and_a_hunt_are_shown_in_a_line(tmp_path: Path) -> None:
    ledger = schedgap.verify(["001-theorem-1"], instances=1, out=tmp_path)
    assert repr(ledger) == "<ledger of 1 claim: 1 held>" and list(ledger.to_frame().id) == ["001-theorem-1"]
    assert "<td>held (1 instances)</td>" in ledger._repr_html_()
    found = schedgap.hunt("rar-ddls/ff", limits={"jobs": 2, "servers": 1, "evaluations": 4}, out=tmp_path / "hunt")
    assert repr(found).startswith("<hunt for rar-ddls/ff: ratio ") and "\n" not in repr(found)


def test_results_are_taken_wherever_solutions_are(tmp_path: Path) -> None:
    given = schedgap.load(MIXED)
    plain, best = schedgap.solve(given, "sjf-bco"), schedgap.solve(given, "cp")
    assert best.objective is not None and plain.objective is not None and plain.solution is not None
    assert schedgap.check(given, plain).objective == plain.objective
    assert schedgap.solve(given, "sjf-bco", start=best).objective == best.objective
    for further in (best, best.solution, [best, plain]):  # one, of either kind, or several
        schedgap.plot(given, plain, tmp_path / "figure.svg", compare=further)
        drawn = 1 + (len(further) if isinstance(further, list) else 1)
        assert (tmp_path / "figure.svg").read_text().count(": makespan") == drawn  # a heading each


def test_a_result_that_claims_too_much_is_told() -> None:
    given = schedgap.load(MIXED)
    best = schedgap.solve(given, "cp")
    assert best.objective is not None
    told = replace(best, objective=best.objective - 1)
    assert [one.constraint for one in schedgap.check(given, told).violations]
    with pytest.raises(InputError, match="there is nothing to check"):
        schedgap.check(given, replace(best, solution=None))


def test_a_result_is_written_and_read() -> None:
    given = schedgap.load(MIXED)
    best = schedgap.solve(given, "cp")
    written = json.loads(json.dumps(best.to_dict()))
    assert (written["status"], written["objective"], written["proof"]) == ("optimal", best.objective, best.proof)
    assert schedgap.check(given, written).feasible


def test_dir_of_an_instance_names_its_fields() -> None:
    shown = [name for name in dir(schedgap.load(MIXED)) if not name.startswith("_")]
    assert {"jobs", "servers", "to_dict"} <= set(shown)
    assert not [name for name in shown if name.startswith("model_") or name in ("copy", "dict", "json")]


def test_both_spellings_of_minimise() -> None:
    made = []
    for name in ("minimise", "minimize", "maximise", "maximize"):
        model = schedgap.model(schedgap.load(MIXED))
        getattr(model, name)(sum(model.variables["start"].values()))
        made.append((model.problem.sense, str(model.problem.objective)))
    assert made[0] == made[1] != made[2] == made[3]


def test_all_missing_keys_of_an_instance_are_named_at_once() -> None:
    data = json.loads(MIXED.read_text())
    for key in ("jobs", "servers", "horizon"):
        del data[key]
    with pytest.raises(InputError, match=r"instance: (\w+): is missing, and so are (\w+), (\w+)$") as told:
        schedgap.parse(data)
    assert all(key in str(told.value) for key in ("jobs", "servers", "horizon"))


def test_the_builder_names_what_every_server_and_job_lacks() -> None:
    """One line: entries that follow each other and lack the same are one place; the first wrong value stands behind."""
    link = {"latency": 0.0, "seconds_per_unit": 0.5, "contention_penalty": 0.1}
    tasks = schedgap.instance("comm-contention", link=link).task("a").task("b", release=0.0, size=1.0).task("c")
    with pytest.raises(InputError) as told:
        tasks.task("d", release="x").build()
    assert str(told.value) == "instance: tasks[0, 2, 3].size: is missing; " + (
        'tasks[3].release: must be a number, got "x"'
    )
    many = schedgap.instance("rar-ddls").server("s0", gpus=2).server("s1")
    for name in ("a", "b", "c"):
        many = many.job(name, gpus=1)
    with pytest.raises(InputError) as told:
        many.build()
    places = "servers[1].gpus, jobs[0-2].iterations"
    assert str(told.value) == f"instance: horizon: is missing, and so are {places}"


def test_a_thousand_entries_and_one_that_lack_the_same_are_all_named() -> None:
    tasks = [{"id": f"t{number}", "size": 1.0} for number in range(1001)]
    link = {"latency": 0.0, "seconds_per_unit": 0.5, "contention_penalty": 0.1}
    with pytest.raises(InputError, match=r"^instance: tasks\[0-1000\].release: is missing$"):
        schedgap.parse({"problem": "comm-contention", "link": link, "tasks": tasks})

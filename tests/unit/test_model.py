"""Declarative models a user can change: rows, objectives, names, files; what is refused."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pulp
import pytest
from oracles.schedules import CASES

import schedgap
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import InputError, RejectedSolution
from schedgap.solvers.engines.cbc import _program
from schedgap.solvers.engines.lp import file_names, write_model
from schedgap.solvers.result import Result

FORMS = [(case.problem, case.form) for case in CASES.values()]


def instance_of(problem: str) -> schedgap.Instance:
    """A small instance of a problem."""
    case = next(case for case in CASES.values() if case.problem == problem)
    return next(made for made, schedules in map(case.make, range(20)) if len(schedules) > 1)


def solved_by_reader(path: Path, reader: str) -> float:
    """The optimum of a file, read by another program."""
    if reader == "highs":
        import highspy

        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
        highs.run()
        assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return float(highs.getInfo().objective_function_value)
    if reader == "scip":
        import pyscipopt

        scip = pyscipopt.Model()
        scip.hideOutput()
        scip.readProblem(str(path))
        scip.optimize()
        assert scip.getStatus() == "optimal"
        return float(scip.getObjVal())
    out = path.with_suffix(".sol")
    subprocess.run([_program(), path, "solve", "solution", out], check=True, capture_output=True)
    first = out.read_text().splitlines()[0]
    assert first.startswith("Optimal")
    return float(first.split()[-1])


@pytest.mark.parametrize(("problem", "form"), FORMS)
@pytest.mark.parametrize("ending", ["lp", "mps"])
def test_files_are_read_back_to_the_same_optimum(tmp_path: Path, problem: str, form: str, ending: str) -> None:
    model = schedgap.model(instance_of(problem), form)
    expected = model.solve("highs").objective
    path = tmp_path / f"m.{ending}"
    names = model.write(path)
    assert len(set(names.values())) == len(names)
    sign = -1 if "NEGATED_OBJ" in path.read_text() else 1
    assert (sign == -1) == (ending == "mps" and model.problem.sense == pulp.LpMaximize)
    for reader in ("highs", "cbc", "scip"):
        assert sign * solved_by_reader(path, reader) == pytest.approx(expected, rel=1e-6), reader


def odd_instance() -> schedgap.Instance:
    return schedgap.parse(
        {
            "problem": "rar-ddls",
            "name": "odd",
            "horizon": 4,
            "network": {
                "inter_bandwidth": 1.0,
                "intra_bandwidth": 50.0,
                "contention_scale": 0.5,
                "contention_penalty": 0.2,
                "server_overhead": 0.0,
            },
            "reduce_speed": 100.0,
            "servers": [{"id": "s 0", "gpus": 2}, {"id": "s_0", "gpus": 1}],
            "jobs": [
                {
                    "id": name,
                    "gpus": 1,
                    "iterations": 10,
                    "gradient_size": 0.1,
                    "batch_size": 1,
                    "forward_time": 0.1,
                    "backward_time": 0.05,
                }
                for name in ("j[0]", "j 0,1", "3e5", "\u00fcber>=2")
            ],
        }
    )


@pytest.mark.parametrize("ending", ["lp", "mps"])
def test_ids_with_odd_characters_become_valid_names_that_differ(tmp_path: Path, ending: str) -> None:
    model = schedgap.model(odd_instance())
    assert model.variables["start"]["\u00fcber>=2", 3].name == "start[\u00fcber>=2,3]"
    model.add(model.variables["gpus"]["j[0]", "s 0"] == 0, name="not on s 0")
    path = tmp_path / f"m.{ending}"
    names = model.write(path)
    assert names["gpus[j[0],s 0]"] != names["gpus[j[0],s_0]"] and names["not on s 0"] == "not_on_s_0"
    expected = model.solve("cpsat").objective
    assert expected == 4
    for reader in ("highs", "cbc", "scip"):
        assert solved_by_reader(path, reader) == pytest.approx(expected), reader


def test_file_names_are_short_valid_and_different() -> None:
    names = ["x[a,b]", "x[a b]", "x[a_b]", "1x", "e1", "", "y" * 200, "y" * 201, "x(a,b)"]
    found = file_names(names)
    assert len(set(found)) == len(names) and max(map(len, found)) <= 100
    assert not any(set(name) & set("[] +-*/<>=:^\\") for name in found)
    assert not any(name[0] in "0123456789.eE" for name in found)


def test_a_row_that_a_cut_horizon_would_make_infeasible() -> None:
    """`contended` seed 3: the schedule shifted by three slots is feasible with makespan 6, in the full horizon."""
    model = schedgap.model(schedgap.generate("rar-ddls", "contended", seed=3))
    for t in (1, 2, 3):
        model.add(model.variables["start"]["j0", t] == 0, name=f"not_in_slot_{t}")
    result = model.solve("cpsat")
    assert (result.status, result.objective) == ("optimal", 6)
    assert result.solution is not None and result.solution["start"]["j0"] > 3


def test_a_row_that_only_late_schedules_keep_refutes_nothing() -> None:
    """comm-contention has no horizon; its model needs one, and called this infeasible, agreed by two engines."""
    instance = schedgap.generate("comm-contention", "tiny", seed=1, tasks=2)
    one, other = (task.id for task in instance.tasks)

    def under(level: float) -> Result:
        model = schedgap.model(instance)
        assert model.declarative.until is not None and f"end by {model.declarative.until:g} s" in str(model)
        model.add(model.variables["finish"][one] >= level * model.declarative.until)
        return model.solve("highs")

    late = under(1.01)
    assert (late.status, late.bound, late.proof) == ("unknown", None, None)
    assert "the model has no others" in late.info["reason"]
    start = {one: 1.01 * late.info["until"], other: max(task.release for task in instance.tasks)}
    assert schedgap.check(instance, {**schedgap.solve(instance).solution, "start": start}).feasible
    assert under(0.01).status == "optimal"
    whole = schedgap.model(instance)
    whole.minimise(whole.variables["finish"][other])
    found = whole.solve("highs")
    assert (found.status, found.bound) == ("feasible", None) and "no schedule that ends after" in found.info["reason"]


def test_an_own_objective_is_shown_with_the_problems_own_beside_it() -> None:
    instance = instance_of("rar-ddls")
    model = schedgap.model(instance)
    slots = range(1, instance.horizon + 1)
    jobs = list(model.variables["last"])
    ends: list[Any] = [t * model.variables["end"][j, t] for j in jobs for t in slots]
    model.minimise(pulp.lpSum(ends) * (1 / len(jobs)))
    result = model.solve("highs")
    assert result.solution is not None and result.objective is not None
    report = schedgap.check(instance, result.solution)
    completions = report.details["completion"]
    assert result.objective == pytest.approx(sum(completions.values()) / len(jobs), rel=1e-12)
    assert result.info["problem_objective"] == report.objective


def test_a_point_keeps_the_rows_and_an_own_row_judges_solutions() -> None:
    instance = instance_of("rar-ddls")
    model = schedgap.model(instance)
    best = model.solve("cpsat").solution
    assert best is not None
    point = model.point(best)
    job, start = next(iter(best["start"].items()))
    assert point[model.variables["start"][job, start]] == 1
    model.add(model.variables["start"][job, start] == 0, name="elsewhere")
    report = model.check(best)
    assert [v.constraint for v in report.violations] == ["own row"] and "elsewhere: 1 == 0" in report.violations[
        0
    ].message
    with pytest.raises(InputError, match="solution: not feasible: "):
        model.point({**best, "start": dict.fromkeys(best["start"], instance.horizon + 1)})


def test_what_cannot_be_added_is_refused_in_one_line() -> None:
    instance = instance_of("rar-ddls")
    model, other = schedgap.model(instance), schedgap.model(instance)
    makespan = model.variables["makespan"][()]
    job = next(iter(model.variables["last"]))
    for row, message in (
        (other.variables["makespan"][()] <= 3, "makespan is not a variable of this model"),
        (model.variables["last"][job] == 1, "not determined by a schedule"),
        (True, "must be a linear expression compared"),
        (makespan, "must be a linear expression compared"),
    ):
        with pytest.raises(InputError, match=message):
            model.add(row)
    model.add(makespan <= 100, name="mine")
    with pytest.raises(InputError, match="has a row 'mine' already"):
        model.add(makespan <= 99, name="mine")
    with pytest.raises(InputError, match="objective: must be a linear expression, got str"):
        model.minimise("makespan")
    tight = schedgap.model(instance, tighten=True)
    with pytest.raises(InputError, match="use tighten=False to change it"):
        tight.add(next(iter(tight.variables.values())).popitem()[1] == 0)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="use tighten=False"):
        tight.maximise(0)
    with pytest.raises(InputError, match=r"unknown form 'x' for rar-ddls, one of: time-indexed"):
        schedgap.model(instance, "x")
    with pytest.raises(InputError, match=r"must end in \.lp or \.mps"):
        model.write("m.txt")


@pytest.mark.parametrize(("problem", "form"), FORMS)
def test_print_counts_every_variable_and_row(problem: str, form: str) -> None:
    model = schedgap.model(instance_of(problem), form)
    text = str(model)
    layout = model.declarative.layout
    assert layout is not None
    assert sum(len(of) for of in layout.variables.values()) == len(layout.family_of) == len(model.problem.variables())
    assert sum(len(names) for names in layout.rows.values()) == model.problem.numConstraints()
    for family, kind in layout.kinds.items():
        assert (family in text and kind.meaning.split()[0] in text) or family not in layout.variables
    for family, law in layout.laws.items():
        assert law.prefix(family) in text or family not in layout.rows


def with_constant() -> DeclarativeModel:
    model = pulp.LpProblem("constant", pulp.LpMaximize)
    x = pulp.LpVariable("x", 0, 4, "Integer")
    y = pulp.LpVariable("y", -1, 7)
    model += 3 * x - y + 7
    model += 2 * x + y <= 5
    return DeclarativeModel(model, lambda value: {"x": value(x)}, -1)


@pytest.mark.parametrize("form", ["mps", "lp"])
def test_exported_files_keep_the_sense_and_the_constant(tmp_path: Path, form: str) -> None:
    import highspy

    path = tmp_path / f"model.{form}"
    write_model(with_constant(), path, form)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    sign = -1 if form == "mps" else 1
    assert sign * highs.getInfo().objective_function_value == pytest.approx(3 * 3 + 1 + 7)


def test_an_exported_mps_file_is_read_by_scip(tmp_path: Path) -> None:
    """A maximisation, so negated, with digits that a shorter form would lose."""
    import pyscipopt

    def model() -> DeclarativeModel:
        problem = pulp.LpProblem("digits", pulp.LpMaximize)
        x, y = (pulp.LpVariable(name, 0, 1, "Integer") for name in "xy")
        problem += 1.00000000000001 * x + 1.00000000000002 * y
        problem += x + y <= 1, "one"
        return DeclarativeModel(problem, lambda value: {"y": value(y)}, -1)

    path = tmp_path / "model.mps"
    write_model(model(), path, "mps")
    text = path.read_text()
    assert text.startswith("* to maximise: the optimum is minus that of this file") and "OBJSENSE" not in text
    assert "-1.00000000000002" in text
    scip = pyscipopt.Model()
    scip.hideOutput()
    scip.readProblem(str(path))
    assert scip.getObjectiveSense() == "minimize"
    scip.optimize()
    assert scip.getStatus() == "optimal" and scip.getObjVal() == pytest.approx(-1, rel=1e-9)


def test_a_model_that_no_row_with_a_variable_refutes_is_exported_as_infeasible(tmp_path: Path) -> None:
    import highspy

    def model() -> DeclarativeModel:
        problem = pulp.LpProblem("empty_row", pulp.LpMinimize)
        x = pulp.LpVariable("x", 0, 1, "Integer")
        problem += 1 * x
        problem.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(), pulp.LpConstraintGE, "never", 1))
        problem += x >= 0, "holds"
        return DeclarativeModel(problem, lambda value: {"x": value(x)}, 1)

    path = tmp_path / "model.mps"
    write_model(model(), path, "mps")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible


def test_rows_and_objectives_through_pulp_are_judged_like_those_of_add() -> None:
    instance = instance_of("comm-contention")
    model = schedgap.model(instance)
    start = model.variables["start"]
    first = next(iter(start.values()))
    model.problem += first >= 1.5, "later"
    model.problem += first <= 90
    assert model.own_rows[0] == "later" and len(model.own_rows) == 2
    free = next(v for v, family in model._layout.family_of.items() if model._layout.kinds[family].free)
    with pytest.raises(InputError, match=r"row _C2: .* is not determined by a schedule"):
        model.problem += free >= 0
    assert len(model.own_rows) == 2, "a refused row is taken out"
    with pytest.raises(InputError, match="problem: a model keeps the PuLP problem"):
        model.problem = pulp.LpProblem()
    problem = model.problem
    problem += first >= 2, "behind its back"
    result = model.solve("highs")
    assert min(result.solution["start"].values()) >= 1.5 and result.solution["start"][next(iter(start))] >= 2 - 1e-6
    with pytest.warns(UserWarning, match="Overwriting previously set objective"):
        model.problem += pulp.lpSum(start.values())
    own = model.solve("highs")
    assert own.objective == pytest.approx(sum(own.solution["start"].values()), abs=1e-4)
    assert own.info["problem_objective"] is not None


def test_a_tightened_model_refuses_rows_through_pulp() -> None:
    model = schedgap.model(instance_of("comm-contention"), tighten=True)
    with pytest.raises(InputError, match="add: a tightened model keeps an optimum of its own objective only"):
        model.problem += next(iter(model._layout.family_of)) >= 1
    assert not model.own_rows


def test_values_of_a_relaxation_hold_zeros_too() -> None:
    model = schedgap.model(instance_of("g-vne"), "mcf")
    values = model.solve("highs").info["values"]
    assert set(values) == {variable.name for variable in model._layout.family_of} and 0.0 in values.values()


def test_a_key_that_no_variable_has_is_told_with_those_there_are() -> None:
    variables = schedgap.model(schedgap.generate("rar-ddls", seed=1)).variables
    for family, key, line in (
        ("start", ("j0", 99), "start['j0', 99]: no such variable; start has job 'j0', 'j1', 'j2', slot 1 to 10"),
        ("makespan", 3, "makespan[3]: no such variable; makespan has the key () alone"),
    ):
        with pytest.raises(KeyError) as told:
            variables[family][key]
        assert str(told.value) == line and isinstance(told.value, schedgap.InputError)
        assert variables[family].get(key) is None and key not in variables[family]
    with pytest.raises(KeyError, match=r"variables: no family 'strat', one of: .*; did you mean 'start'"):
        variables["strat"]


def test_values_of_any_solver_become_a_checked_solution(tmp_path: Path) -> None:
    """By name in the file, by name here, by variable; what is 0 left out, and rounded where it is whole."""
    instance = schedgap.generate("rar-ddls", "contended", seed=3, jobs=2, singles=1, horizon=6)
    model = schedgap.model(instance)
    model.add(model.variables["start"]["j0", 1] == 0, name="not_in_slot_1")
    result = model.solve("highs")
    assert result.solution is not None
    point = {v: value * (1 - 1e-7) for v, value in model.point(result.solution).items() if value}
    files = model.write(tmp_path / "m.mps")
    by_file = {files[v.name]: value for v, value in point.items()} | {"objective_constant": 1}
    for values in (point, {v.name: value for v, value in point.items()}, by_file):
        assert model.solution(values) == result.solution
    assert schedgap.check(instance, model.solution(point)).objective == result.objective
    first = next(v for v in point if v.name.startswith("start[j0,"))
    for values, message in (
        ({**point, first: 0.5}, rf"values: {re.escape(first.name)}: must be a whole number, got 0.5"),
        ({**point, first: 2}, r"must be in 0 to 1, got 2"),
        ({**point, first: float("nan")}, r"must be a number, got nan"),
        ({"start[j0,99]": 1}, r"values: start\[j0,99\] is not a variable of this model; did you mean 'start\[j0,"),
        ([1, 2], r"values: must be by variable, or by its name, got list"),
        ({}, r"values: solution: placement\.j0: must have at least 1 item"),
    ):
        with pytest.raises(InputError, match=message):
            model.solution(values)  # type: ignore[arg-type]


def test_values_that_break_a_row_or_the_problem_are_rejected_with_the_schedule() -> None:
    instance = schedgap.generate("rar-ddls", seed=1)
    free, bound = schedgap.model(instance), schedgap.model(instance)
    best = free.solve("highs").solution
    assert best is not None
    bound.add(bound.variables["start"]["j0", best["start"]["j0"]] == 0, name="elsewhere")
    point = {variable.name: value for variable, value in free.point(best).items()}
    with pytest.raises(RejectedSolution, match="values: the schedule is rejected: elsewhere: 1 == 0") as told:
        bound.solution(point)
    assert told.value.solution == best
    nowhere = {name: 0.0 if name.startswith("gpus[") else value for name, value in point.items()}
    with pytest.raises(RejectedSolution, match=r"values: solution: placement\.j0: must have at least 1 item"):
        free.solution(nowhere)
    at_once = {
        name: float("[" in name and name.endswith(",1]")) if name.startswith("start[") else value
        for name, value in point.items()
    }
    with pytest.raises(RejectedSolution, match="values: the schedule is rejected: ") as told:
        free.solution(at_once)
    assert schedgap.check(instance, told.value.solution).violations
    with pytest.raises(InputError, match="are no schedules"):
        schedgap.model(schedgap.generate("hadar", seed=1), "P3").solution({})


@pytest.mark.parametrize("problem", schedgap.problems())
def test_every_problems_main_form_takes_its_own_values_back(problem: str) -> None:
    instance = schedgap.generate(problem, seed=2)
    model = schedgap.model(instance)
    quick = find_problem(problem).quick(instance) or schedgap.solve(instance, confirm=False).solution
    assert quick is not None
    back, own = (schedgap.check(instance, one) for one in (model.solution(dict(model.point(quick))), quick))
    assert back.feasible and back.objective == pytest.approx(own.objective, rel=1e-9)


def test_a_row_in_picoseconds_is_as_exact_as_one_in_seconds() -> None:
    instance = schedgap.load(Path(__file__).parents[1] / "data" / "gate" / "ddl-cluster-picoseconds.json")
    earliest = schedgap.solve(instance, "srsf-1").solution
    assert earliest is not None and earliest["finish"]["j0"] > 1.2e-12
    model = schedgap.model(instance)
    model.add(model.variables["end"]["j0", 0] <= 1.1e-12, name="soon")
    (broken,) = model.check(earliest).violations
    assert broken.message == "soon: 1.30000006006e-12 <= 1.1e-12"
    found = model.solve("highs").solution
    assert found is not None and found["finish"]["j0"] < 1.1e-12


def test_an_objective_that_is_not_whole_is_not_said_to_be() -> None:
    """Engines round the bounds of whole ones: a mean of five whole numbers was proven to be 6 where 5.8 was there."""
    problem = pulp.LpProblem("mean", pulp.LpMinimize)
    x = pulp.LpVariable("x", 0, 9, cat=pulp.LpInteger)
    problem.setObjective(0.2 * x)
    with pytest.raises(ValueError, match=r"objective_is_integral: one more of x changes it by 0\.2"):
        DeclarativeModel(problem, lambda value: {}, 1, objective_is_integral=True)
    assert not DeclarativeModel(problem, lambda value: {}, 1).objective_is_integral

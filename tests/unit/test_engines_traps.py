"""One test for each thing that PuLP, HiGHS, CBC or CP-SAT gets wrong when it is trusted as it comes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import highspy
import pulp
import pytest
from support.work import PATIENCE, wait_until, with_growing_limit

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import EngineMissing, InputError, ModelRefused
from schedgap.solvers.engines import NAMES, engine, installed_engines, watch
from schedgap.solvers.result import Deadline, SolveOptions, Status, Termination
from schedgap.tools.testing.small_models import ModelMaker, enumerate_optimum, knapsacks, market_split

ONE = SolveOptions(threads=1)
EVERY = (*NAMES, *installed_engines())


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter, without the warnings of PuLP about its next version."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=PATIENCE
    )


# --- one process, two copies of libhighs -------------------------------------------------------------------


@pytest.mark.parametrize("first", ["highspy", "ortools"])
def test_highspy_and_ortools_in_one_process_in_either_order(first: str) -> None:
    """Both ship libhighs.so.1. Solving with each, not only importing, must work whichever loads first."""
    imports = {
        "highspy": "import highspy, pulp\nfrom ortools.sat.python import cp_model",
        "ortools": "from ortools.sat.python import cp_model\nimport highspy, pulp",
    }[first]
    done = run_python(f"""
{textwrap.indent(imports, " " * 0)}
h = highspy.Highs()
h.setOptionValue("output_flag", False)
h.addVar(0, 4); h.changeColCost(0, -1.0); h.run()
m = cp_model.CpModel(); x = m.new_int_var(0, 7, "x"); m.maximize(x)
s = cp_model.CpSolver(); s.solve(m)
print(h.getInfo().objective_function_value, s.objective_value, pulp.HiGHS(msg=False).available())
""")
    # 1.16 says who it is whenever a Highs is made; ours does not, see test_solving_prints_nothing
    assert done.stdout.split()[-3:] == ["-4.0", "7.0", "True"], done.stderr


@pytest.mark.parametrize("order", [("highs", "cpsat"), ("cpsat", "highs")])
def test_our_engines_in_either_order(order: tuple[str, str]) -> None:
    done = run_python(f"""
        import pathlib, sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from schedgap.tools.testing.small_models import knapsacks
        from schedgap.solvers.engines import engine
        from schedgap.solvers.result import SolveOptions
        print(*[engine(n).solve(knapsacks(3, 9, 1), SolveOptions(threads=1)).objective for n in {order!r}])
    """)
    values = done.stdout.split()
    assert len(values) == 2, done.stderr
    assert values[0] == values[1]


# --- engines that are not there ----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "package"), [("highs", "highspy"), ("cpsat", "ortools")])
def test_a_missing_engine_is_one_clear_line(name: str, package: str) -> None:
    done = run_python(f"""
        import sys
        sys.modules[{package!r}] = None  # importing it now fails
        from schedgap.solvers.engines import engine
        from schedgap.formulations.common.errors import EngineMissing
        try:
            engine({name!r})
        except EngineMissing as error:
            print(error.exit_status, error)
    """)
    assert done.stdout.startswith(f"2 engine {name}: ") and done.stdout.count("\n") == 1
    assert package in done.stdout


def test_a_missing_cbc_program_is_one_clear_line() -> None:
    done = run_python("""
        import os, shutil
        from schedgap.solvers.engines import engine
        from schedgap.formulations.common.errors import EngineMissing
        os.access = lambda *_: False
        try:
            engine("cbc").version()
        except EngineMissing as error:
            print(error)
    """)
    assert done.stdout.startswith("engine cbc: no CBC program found") and done.stdout.count("\n") == 1


def test_an_engine_that_does_not_exist() -> None:
    with pytest.raises(InputError, match=r"none called 'gurobi' \(engines: cbc, highs, cpsat.*\)"):
        engine("gurobi")


def test_engines_are_loaded_only_when_asked_for() -> None:
    done = run_python("""
        import sys
        import schedgap.solvers.engines as engines
        print(engines.NAMES, sorted(m for m in ("highspy", "ortools", "pulp", "numpy") if m in sys.modules))
    """)
    assert done.stdout.strip() == "('cbc', 'highs', 'cpsat') []"


def test_versions_are_stated() -> None:
    found = {name: engine(name).version() for name in EVERY}
    assert all(v and v[0].isdigit() for v in found.values())


# --- statuses ----------------------------------------------------------------------------------------------


def test_every_native_status_is_mapped_and_others_raise() -> None:
    import highspy
    from ortools.sat.python import cp_model

    from schedgap.solvers.engines import cbc, cpsat, highs

    for name in highspy.HighsModelStatus.__members__:
        status, termination = highs.ENGINE.native_meaning(name)
        assert (status is not None) or termination is not Termination.PROVEN
    for value in (
        cp_model.UNKNOWN,
        cp_model.MODEL_INVALID,
        cp_model.FEASIBLE,
        cp_model.INFEASIBLE,
        cp_model.OPTIMAL,
    ):
        cpsat.native_meaning(cp_model.CpSolver().status_name(value))
    assert cbc.native_meaning("Optimal - objective value 3.00000000") == (None, Termination.PROVEN)
    assert cbc.native_meaning("Optimal (within gap tolerance) - objective value 3") == (None, Termination.GAP_LIMIT)
    assert cbc.native_meaning("Integer infeasible - objective value 3")[0] is Status.INFEASIBLE
    stopped = "Stopped on time (no integer solution - continuous used) - objective value -2714.05577902"
    assert cbc.native_meaning(stopped) == (None, Termination.TIME_LIMIT)
    for meaning in (highs.ENGINE.native_meaning, cpsat.native_meaning, cbc.native_meaning):
        with pytest.raises(RuntimeError, match="not mapped"):
            meaning("Something new")


# --- PuLP's own hand-offs, for the record: what our engines must not inherit --------------------------------


def test_pulp_calls_an_unbounded_model_infeasible_where_we_do_not() -> None:
    def problem() -> DeclarativeModel:
        maker = ModelMaker(-1)
        x, y = maker.var(0), maker.var(0)
        maker.minimise([(x, 1.0), (y, 1.0)])
        maker.row([(x, 1.0), (y, -1.0)], "<=", 3)
        return maker.model()

    model = problem()
    model.problem.solve(pulp.HiGHS(msg=False))
    assert pulp.LpStatus[model.problem.status] == "Infeasible"
    assert engine("highs").solve(problem(), ONE).status is Status.UNBOUNDED


def test_pulp_calls_a_time_limit_optimal_where_we_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    model = market_split(5, 40, 1, slack=True)

    def pulps(deadline: Deadline) -> str:
        # HiGHS does not run with another number of threads than before in one thread; ours runs in new ones
        highspy.Highs.resetGlobalScheduler(True)
        model.problem.solve(pulp.HiGHS(msg=False, timeLimit=deadline.remaining(), threads=1))
        return str(pulp.LpStatus[model.problem.status])

    assert with_growing_limit(pulps, lambda status: status == "Optimal") == "Optimal"
    monkeypatch.setattr(watch, "ABANDON_AFTER", PATIENCE)
    answer = with_growing_limit(
        lambda deadline: engine("highs").solve(model, SolveOptions(deadline=deadline, threads=1)),
        lambda answer: answer.values is not None,
    )
    assert (answer.status, answer.termination) == (Status.FEASIBLE, Termination.TIME_LIMIT)


def test_highs_default_gap_of_1e_4_is_not_used() -> None:
    """Two values 1e-5 apart, relatively: with a gap limit of 1e-4 the first one found will do."""
    for seed in range(6):
        model = knapsacks(6, 30, seed, constant=-1_000_000.0)
        answers = [engine(name).solve(model, ONE) for name in ("highs", "cpsat")]
        assert answers[0].status is Status.OPTIMAL
        assert answers[0].objective == answers[1].objective


# --- HiGHS 1.13.1 ------------------------------------------------------------------------------------------


def test_highs_fractional_bound_of_an_integer_variable() -> None:
    """Its presolve leaves x1 at its bound 0.5 and calls the model optimal; 3 x0 + 2 x1 <= 1 has no solution."""
    maker = ModelMaker(-1)
    x0, x1 = maker.var(0), maker.var(0.5)
    maker.minimise([(x0, 1.0), (x1, 0.1)])
    maker.row([(x1, -1.0)], "<=", 7)
    maker.row([(x0, 3.0), (x1, 2.0)], "<=", 1)
    assert engine("highs").solve(maker.model(), ONE).status is Status.INFEASIBLE


def test_highs_presolve_that_ends_in_a_solve_error() -> None:
    """Presolve reduces it to nothing and postsolve gives x0 = 10 > 4; it has no solution."""
    maker = ModelMaker(-1)
    x0, x1, x2, x3, x4 = maker.var(1, 4.5), maker.var(0, 3), maker.var(1, 3), maker.var(0), maker.var(-2)
    maker.minimise([(x0, -1.5), (x2, -1.5), (x3, 2.0), (x4, 1.0)])
    maker.row([(x1, 1.0), (x2, 2.0), (x3, 1.0), (x4, 0.1)], "<=", 2.5)
    maker.row([(x0, 0.1), (x1, 3.0), (x2, 1.0), (x3, 1.0), (x4, 1.0)], "==", 0)
    for name in EVERY:
        assert engine(name).solve(maker.model(), ONE).status is Status.INFEASIBLE


def test_highs_optimum_of_an_unbounded_model() -> None:
    """It returns (8, 6, 4) as optimal, and its presolve calls the relaxation infeasible; x0 and x1 can grow."""
    maker = ModelMaker()
    x0, x1, x2 = maker.var(None), maker.var(0), maker.var(1, 4.5)
    maker.minimise([(x0, -1.0), (x1, -1.0), (x2, -1.5)])
    maker.row([(x0, 2.0), (x1, -2.0)], ">=", 2.5)
    maker.row([(x0, 0.1), (x1, 3.0), (x2, -2.0)], ">=", 0.3)
    maker.row([(x0, 1.0), (x1, -1.0), (x2, 1.0)], "<=", 7)
    for name in ("highs", "cbc"):
        assert engine(name).solve(maker.model(), ONE).status is Status.UNBOUNDED


def test_highs_refuses_coefficients_that_it_would_drop() -> None:
    maker = ModelMaker()
    x = maker.var(0, 4)
    maker.minimise([(x, 1.0)])
    maker.row([(x, 1e-13)], ">=", 1.5e-13)  # over integers it is restated: x >= 2
    assert engine("highs").solve(maker.model(), ONE).objective == 2
    maker = ModelMaker()
    x, y = maker.var(0, 4, integer=False), maker.var(0, 4, integer=False)
    maker.minimise([(x, 1.0)])
    maker.row([(x, 1e-13), (y, 1.0)], ">=", 0, "faint")
    with pytest.raises(ModelRefused, match=r"row faint: coefficient 1e-13 of x0"):
        engine("highs").solve(maker.model(), ONE)
    maker = ModelMaker()
    x = maker.var(0, 1e12, integer=False)
    maker.minimise([(x, 1.0)])
    maker.row([(x, 1e-10)], ">=", 2)  # below HiGHS's default threshold of 1e-9: it would find this infeasible
    assert engine("highs").solve(maker.model(), ONE).objective == pytest.approx(2e10)


# --- HiGHS from 1.14.0 on ----------------------------------------------------------------------------------


def test_highs_row_with_one_whole_variable() -> None:
    """1.14.0 calls 15 optimal (ERGO-Code/HiGHS#3043); 1.16.0, left alone, 8.999999, which breaks the row by 5e-7."""
    maker = ModelMaker()
    x, z = maker.var(0, 10, integer=False), maker.var(0, 10)
    maker.minimise([(x, 2.0), (z, 3.0)])
    maker.row([(x, 1.0), (z, 1.0)], ">=", 4.5)
    answer = engine("highs").solve(maker.model(), ONE)
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(9, rel=1e-9) and answer.bound is not None and answer.bound <= 9


def test_highs_optimum_that_is_the_worse_start() -> None:
    """Presolve solves it; 1.16.0 then returns the start, which costs 2, as optimal with the objective 1."""
    maker = ModelMaker()
    a, b = maker.var(0, 1), maker.var(0, 1)
    x2, x3, x4, x5 = (maker.var(0, 2) for _ in range(4))
    maker.minimise([(a, 1.0), (b, 1.0)])
    maker.row([(x5, 1.0), (x3, 1.0)], "<=", 2)
    for x, used in ((x5, a), (x3, a), (x4, b)):
        maker.row([(x, 1.0), (used, -2.0)], "<=", 0)
    maker.row([(x2, 4.0), (x5, 5.0), (x3, 5.0), (x4, 5.0)], ">=", 15)
    model = maker.model()
    start = {v.name: value for v, value in zip(maker.variables, (1, 1, 0, 0, 1, 2), strict=True)}
    answer = engine("highs").solve(model, SolveOptions(threads=1, start=start))
    assert (answer.status, answer.objective, answer.bound) == (Status.OPTIMAL, 1, 1)
    assert answer.value(a) + answer.value(b) == 1


# --- CBC 2.10.3 --------------------------------------------------------------------------------------------


def test_cbc_preprocessing_that_returns_a_wrong_optimum() -> None:
    """With its preprocessing CBC proves -0.4; the optimum is -1.3."""
    maker = ModelMaker()
    bounds = [(0, 1), (0, 3), (0, 1), (0.5, 1), (-2, 1), (0, 1), (1, 5), (0, 1), (1, 3)]
    x1, x2, x3, x5, x6, x8, x0, x4, x7 = (maker.var(low, high) for low, high in bounds)
    maker.minimise([(x1, 0.1), (x2, -1.0), (x3, 1.0), (x5, -1.5), (x6, 0.1), (x8, 2.0)])
    maker.row([(x0, 2.0), (x2, -2.0), (x3, -1.0), (x4, -1.0), (x7, 1.0), (x8, 1.0)], ">=", 7)
    maker.row([(x1, -2.0), (x2, 3.0), (x3, -1.0), (x4, 1.0), (x5, -1.0), (x6, -1.0), (x7, 0.1), (x8, 1.0)], "<=", -3)
    model = maker.model()
    assert enumerate_optimum(model) == pytest.approx(-1.3)
    for name in EVERY:
        assert engine(name).solve(model, ONE).objective == pytest.approx(-1.3)


def test_cbc_preprocessing_that_calls_a_feasible_model_infeasible() -> None:
    maker = ModelMaker(-1)
    x0, x1, x3 = maker.var(1, 1), maker.var(1, 4.5), maker.var(-2, 4.5)
    x2, x4 = maker.var(-2, 1, integer=False), maker.var(0, 3, integer=False)
    maker.minimise([(x0, 2.0), (x1, 1.0), (x2, 0.1), (x3, -3.0), (x4, 0.1)])
    maker.row([(x0, 0.5), (x1, -2.0), (x2, 1.0), (x3, 0.5), (x4, 0.5)], "<=", 0)
    for name in ("cbc", "highs"):
        assert engine(name).solve(maker.model(), ONE).objective == pytest.approx(12.4)


def test_cbc_unbounded_column_without_rows() -> None:
    """CBC calls it infeasible; x0 is free, improves the objective and is in no row."""
    maker = ModelMaker(-1)
    x0, x1 = maker.var(None), maker.var(0.5)
    maker.minimise([(x0, 1.0), (x1, -3.0)], -3.0)
    maker.row([(x1, -2.0)], "<=", -3)
    maker.row([(x1, 0.1)], ">=", -3)
    for name in EVERY:
        assert engine(name).solve(maker.model(), ONE).status is Status.UNBOUNDED


def test_cbc_infeasible_that_means_unbounded() -> None:
    """ "Problem is infeasible", says CBC; (4, y, 14, 4, 0) is feasible for every large y."""
    maker = ModelMaker()
    x0, x1, x2 = maker.var(0.5, 4.5), maker.var(None), maker.var(-2)
    x3, x4 = maker.var(1, 5), maker.var(0, 5)
    maker.minimise([(x0, 2.0), (x1, -1.5), (x2, -3.0), (x3, 0.1), (x4, -1.5)])
    maker.row([(x0, 0.1), (x1, 3.0), (x2, 3.0), (x4, 1.0)], ">=", 4)
    maker.row([(x0, 0.1), (x2, 0.5)], ">=", 7)
    maker.row([(x0, 2.0), (x3, -2.0)], "<=", 2.5)
    for name in EVERY:
        assert engine(name).solve(maker.model(), ONE).status is Status.UNBOUNDED


def test_cbc_exit_without_a_solution_file() -> None:
    """x1 = 5/2 over integers: CBC says "tightenPrimalBounds!" and exits."""
    maker = ModelMaker(-1)
    x0, x1 = maker.var(0.5, 3), maker.var(1, 4.5)
    maker.minimise([(x0, 1.0), (x1, -1.0)], -3.0)
    maker.row([(x1, 1.0)], "==", 2.5)
    maker.row([(x0, 1.0), (x1, 1.0)], "<=", 20)
    for name in EVERY:
        assert engine(name).solve(maker.model(), ONE).status is Status.INFEASIBLE


def test_cbc_small_improvements_count() -> None:
    """Objectives 1e-6 apart: CBC's increment must not hide the better one."""
    maker = ModelMaker(-1)
    x, y = maker.var(0, 1), maker.var(0, 1)
    maker.minimise([(x, 1.0), (y, 1.00001)])
    maker.row([(x, 1.0), (y, 1.0)], "<=", 1)
    answer = engine("cbc").solve(maker.model(), ONE)
    assert answer.value(y) == 1.0


# --- what no engine is given -------------------------------------------------------------------------------


def test_special_ordered_sets_are_refused_not_dropped() -> None:
    maker = ModelMaker()
    x, y = maker.var(0, 1), maker.var(0, 1)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.problem.sos1[0] = {x: 1, y: 2}
    for name in EVERY:
        with pytest.raises(ModelRefused, match="special ordered sets"):
            engine(name).solve(maker.model(), ONE)


def test_numbers_that_are_none_are_refused_by_name() -> None:
    for spoil, message in (
        (lambda m, x: m.row([(x, float("nan"))], "<=", 1, "bad"), "row bad: coefficient of x0 is nan"),
        (lambda m, x: m.minimise([(x, float("inf"))]), "cost of x0 is inf"),
        (lambda m, x: x.bounds(float("nan"), 3), "bounds of x0 are nan"),
        (lambda m, x: x.bounds(float("inf"), None), "bounds of x0 are inf"),
    ):
        maker = ModelMaker()
        x = maker.var(0, 4)
        maker.minimise([(x, 1.0)])
        maker.row([(x, 1.0)], "<=", 3)
        spoil(maker, x)
        for name in EVERY:
            with pytest.raises(ModelRefused, match=message):
                engine(name).solve(maker.model(), ONE)


def test_a_sense_that_contradicts_the_problem_is_refused() -> None:
    model = knapsacks(2, 4, 1, sense=-1)
    wrong = DeclarativeModel(model.problem, model.extract, sense=1)
    with pytest.raises(ModelRefused, match=r"sense is \+1, its PuLP problem says -1"):
        engine("highs").solve(wrong, ONE)


def test_engine_missing_is_an_input_error() -> None:
    assert issubclass(EngineMissing, InputError)


# --- processes ---------------------------------------------------------------------------------------------


def test_cbc_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    """Even when that is killed with SIGKILL: a benchmark that is cut short leaves no program running."""
    code = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from schedgap.tools.testing.small_models import market_split
        from schedgap.solvers.engines import engine
        from schedgap.solvers.result import Deadline, SolveOptions
        options = SolveOptions(deadline=Deadline.after(3600), threads=1, log=lambda line: print(line, flush=True))
        engine("cbc").solve(market_split(5, 40, 1, slack=True), options)
    """
    parent = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert parent.stdout is not None
    for line in parent.stdout:
        if line.startswith("Continuous objective value"):
            break
    assert _programs_of(tmp_path) == 2
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: _programs_of(tmp_path) == 0)
    if hasattr(os, "memfd_create"):
        assert not list(tmp_path.iterdir()), "files of CBC are in memory"


def _programs_of(folder: Path) -> int:
    """How many running programs have `folder` as their TMPDIR."""
    count = 0
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit():
                count += f"TMPDIR={folder}".encode() in (process / "environ").read_bytes().split(b"\0")
        except OSError:  # gone meanwhile, or not ours
            continue
    return count

"""Packages to begin with: a heuristic or a problem of one's own that passes its own tests."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from schedgap.benchmarks.evaluation.evaluators import fresh, new_evaluator
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_text

_PROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "NAME"
version = "0.1.0"
dependencies = ["schedgap"]

[project.entry-points."GROUP"]
ENTRY

[tool.pytest.ini_options]
pythonpath = ["src"]
addopts = "--import-mode=importlib"
"""
_HEURISTIC = '''"""A heuristic for rar-ddls. Change `NAME`; the tests say whether it still is one."""

from schedgap.formulations.rar_ddls.dynamics import simulate


def NAME(instance, *, seed: int):
    """In every slot the jobs that still find room, the shortest first, each on the servers with most idle GPUs.

    Further keywords with a type and a default, such as ``kappa: int = 4``, are options: ``--set kappa=8``.
    All randomness must come from `seed`. None means that nothing was found.
    """
    start, placement, ends, now = {}, {}, {}, 1
    waiting = sorted(instance.jobs, key=lambda job: (job.iterations, job.id))
    while waiting:
        idle = {server.id: server.gpus for server in instance.servers}
        for job, placed in placement.items():
            for server, gpus in placed.items():
                idle[server] -= gpus if ends[job] >= now else 0
        for job in list(waiting):
            if job.gpus <= sum(idle.values()):
                waiting.remove(job)
                start[job.id], placement[job.id], left = now, {}, job.gpus
                for server in sorted(idle, key=lambda server: -idle[server]):
                    if taken := min(left, idle[server]):
                        placement[job.id][server] = taken
                        idle[server] -= taken
                        left -= taken
        ends = simulate(instance, start, placement).completion
        if None in ends.values() or max(ends.values()) > instance.horizon:
            return None
        now = min((end for end in ends.values() if end >= now), default=instance.horizon) + 1
    return {"start": start, "placement": placement}
'''
_HEURISTIC_TEST = """import schedgap
from NAME import NAME


@schedgap.parametrize_with_checks([NAME], "rar-ddls")
def test_it_is_a_scheduler(check):
    check()


def test_it_is_never_better_than_the_optimum():
    instance = schedgap.generate("rar-ddls", "tiny", seed=0, ample=True)
    best = schedgap.solve(instance, "cp").objective
    report = schedgap.check(instance, NAME(instance, seed=0))
    assert report.feasible and report.objective >= best
"""
_PROBLEM = '''"""A problem of one's own: jobs of whole lengths on identical machines. Change it part by part.

Begin with `Machines` (what is given) and `check` (what counts); then the model, from which engines, `schedgap model`,
`export` and a confirmation of every proof come.
"""

import itertools
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

import numpy as np
import pulp
from pydantic import Field

from schedgap.benchmarks.figures.timeline import Timeline
from schedgap.catalogue.method import ENGINES, Kind, Method
from schedgap.catalogue.problem import ProblemOf
from schedgap.catalogue.workload import Preset, Workload
from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Count, Instance
from schedgap.formulations.common.layout import Layout, RowFamily, VariableFamily
from schedgap.heuristics.common.guarantee import Guarantee, at_most, not_applicable
from schedgap.solvers.result import Result, Status, Termination


class Machines(Instance):
    """What is given: the number of machines and the lengths of the jobs."""

    problem_id: ClassVar[str] = "NAME"
    problem: Literal["NAME"]
    machines: Annotated[int, Field(ge=1, le=4)]
    jobs: Annotated[tuple[Count, ...], Field(min_length=1, max_length=7)]


def generate(seed: int) -> Machines:
    """Five random lengths on two machines."""
    lengths = [int(length) for length in np.random.default_rng(seed).integers(1, 10, 5)]
    return Machines.parse({"problem": "NAME", "name": f"NAME-{seed}", "machines": 2, "jobs": lengths})


def check(instance, solution) -> CheckReport:
    """Judge a solution, whoever made it: every broken constraint, and the objective as an exact number."""
    on = solution.get("machine")
    if not isinstance(on, list) or len(on) != len(instance.jobs):
        raise InputError("solution: machine: must be a list with a machine for every job")
    wrong = [Violation("machine", f"job {j}: there is no machine {m}") for j, m in enumerate(on)
             if m not in range(instance.machines)]
    if wrong:
        return CheckReport(tuple(wrong), None)
    loads = [0] * instance.machines
    for length, machine in zip(instance.jobs, on, strict=True):
        loads[machine] += length
    return CheckReport((), Fraction(max(loads)))


VARIABLES = {"on": VariableFamily("job, machine", "1 where the job runs there"), "end": VariableFamily("", "makespan")}
ROWS = {"once": RowFamily("job", "(1)", "sum_m on[j,m] = 1"), "ends": RowFamily("machine", "(2)", "its load <= end")}


def model(instance, tighten: bool = False) -> DeclarativeModel:
    """The problem as an integer program; its rows by name are what `schedgap model` prints."""
    named = Layout(pulp.LpProblem("NAME", pulp.LpMinimize), VARIABLES, ROWS, "makespan")
    jobs, machines = range(len(instance.jobs)), range(instance.machines)
    on = [[named.variable("on", j, m) for m in machines] for j in jobs]
    end = named.variable("end", high=None, integer=False)
    for j in jobs:
        named.row("once", (j,), [(on[j][m], 1) for m in machines], "==", 1)
    for m in machines:
        named.row("ends", (m,), [*((on[j][m], instance.jobs[j]) for j in jobs), (end, -1)], "<=", 0)
    named.problem.setObjective(1 * end)

    def solution(value):
        return {"machine": [max(machines, key=lambda m: value(on[j][m])) for j in jobs]}

    def values(solution):
        loads = [sum(p for p, there in zip(instance.jobs, solution["machine"]) if there == m) for m in machines]
        return {on[j][m]: int(solution["machine"][j] == m) for j in jobs for m in machines} | {end: max(loads)}

    return DeclarativeModel(named.problem, solution, 1, values, True, layout=named, tightened=False)


def draw(instance, solution):
    """The figure: machines over time."""
    chart = Timeline(instance.machines, 0.4, 0, float(check(instance, solution).objective), unit="slots")
    loads = [0] * instance.machines
    for j, (length, m) in enumerate(zip(instance.jobs, solution["machine"], strict=True)):
        chart.box(j, (loads[m], loads[m] + length, m + 0.05, m + 0.95), f"job {j}")
        loads[m] += length
    for m in range(instance.machines):
        chart.label(m, m + 1, f"machine {m}")
    return chart.figure


def graham(case):
    """The claim on one run: its left and its right side."""
    if case.objective is None or case.optimum is None:
        return not_applicable("needs a schedule and the optimum")
    return at_most(case.objective, (2 - 1 / case.instance.machines) * case.optimum)


GUARANTEE = Guarantee(
    "NAME-graham", "NAME", "Graham (1966)", "makespan <= (2 - 1/m) OPT", "none", graham, "list",
    ratio_bound=lambda case: 2 - 1 / case.instance.machines,
)


def exhaustive(instance, options) -> Result:
    """The exact method: every assignment."""
    every = itertools.product(range(instance.machines), repeat=len(instance.jobs))
    value, on = min((float(check(instance, {"machine": list(one)}).objective), list(one)) for one in every)
    return Result(Status.OPTIMAL, value, value, {"machine": on}, Termination.PROVEN)


def listed(instance, *, seed: int):
    """A heuristic: each job on the machine with the least to do."""
    loads, on = [0] * instance.machines, []
    for length in instance.jobs:
        on.append(loads.index(min(loads)))
        loads[on[-1]] += length
    return {"machine": on}


def functions():
    """The methods by id; imported when one is needed."""
    return {"exhaustive": exhaustive, "list": listed}


class Problem(ProblemOf[Machines]):
    """What schedgap knows of it."""

    id = "NAME"
    title = "jobs on identical machines"
    source = "ours"
    sense = 1
    objective_name = "makespan"
    unit = "slots"
    instance_class = Machines
    methods = (
        Method("exhaustive", "every assignment", Kind.EXACT, functions),
        Method("list", "list scheduling", Kind.HEURISTIC, functions),
        *ENGINES,
    )
    forms = (Form("assignment", "jobs to machines", "ours", model, tightens=True),)

    def check(self, instance, solution):
        return check(instance, solution)

    def bound(self, instance):
        """A certified bound at any size."""
        return float(max(max(instance.jobs), -(-sum(instance.jobs) // instance.machines)))

    def workload(self):
        return Workload(presets=(Preset("random", "five random lengths", generate),), figure=lambda: draw)

    def guarantees(self):
        return (GUARANTEE,)


PROBLEM = Problem()
'''
_PROBLEM_TEST = """import pytest
import schedgap
from NAME import GUARANTEE, PROBLEM, generate, listed
from schedgap.catalogue.run import run_method
from schedgap.heuristics.common.guarantee import Case
from schedgap.solvers.result import SolveOptions


@schedgap.parametrize_with_checks([listed], PROBLEM)
def test_the_heuristic_is_a_scheduler(check):
    check()


@pytest.mark.parametrize("seed", range(5))
def test_bound_optimum_and_heuristic_are_in_order(seed):
    instance = generate(seed)
    best = run_method(PROBLEM, instance, "exhaustive", SolveOptions()).objective
    found = run_method(PROBLEM, instance, "list", SolveOptions()).objective
    engine = run_method(PROBLEM, instance, "highs", SolveOptions())
    assert PROBLEM.bound(instance) <= best <= found and engine.objective == engine.bound == best


def test_the_model_has_every_schedule_and_the_figure_is_drawn(tmp_path):
    instance = generate(1)
    values = PROBLEM.model(instance, tighten=False).assign(listed(instance, seed=0))
    assert len(values) == 2 * 5 + 1
    PROBLEM.workload().figure()(instance, {"machine": [0, 1, 0, 1, 0]}).savefig(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 1000


@pytest.mark.parametrize("seed", range(20))
def test_the_guarantee_holds(seed):
    instance = generate(seed)
    best = run_method(PROBLEM, instance, "exhaustive", SolveOptions()).objective
    found = run_method(PROBLEM, instance, "list", SolveOptions()).objective
    assert GUARANTEE.on(Case(instance, found, {}, best, best)).verdict == "held"
"""
_ENTRIES = {
    "heuristic": ("schedgap.methods", '"rar-ddls/NAME" = "NAME:NAME"', _HEURISTIC, _HEURISTIC_TEST),
    "problem": ("schedgap.problems", 'NAME = "NAME:Problem"', _PROBLEM, _PROBLEM_TEST),
}


def new_package(
    kind: Literal["heuristic", "problem", "evaluator"],
    name: str,
    folder: Path | None = None,
    problem: str | None = None,
) -> list[Path]:
    """Write a package that passes its own tests, into a new folder of its name; or an evaluator of candidates.

    Parameters
    ----------
    kind : what it holds; a heuristic is one for rar-ddls
    name : of package, folder and method or problem: small letters, digits and _
    folder : where the new folder goes, of an evaluator the folder itself; the working directory where not given
    problem : of an evaluator

    Returns
    -------
    The files.

    Raises
    ------
    InputError
        Not a name, one that is taken, or a folder that is there already.
    """
    if kind == "evaluator":
        return new_evaluator(name, problem, folder)
    if kind not in _ENTRIES:
        raise InputError(f"new: must be heuristic, problem or evaluator, got {kind!r}")
    if problem is not None:
        raise InputError("--problem: only with new evaluator")
    if not (name.isidentifier() and name.islower() and name.isascii()) or name in ("schedgap", "tests"):
        raise InputError(f"new: the name must be of small letters, digits and _, beginning with a letter, got {name!r}")
    home = fresh((folder or Path()) / name)
    group, entry, module, test = _ENTRIES[kind]
    readme = f"# {name}\n\n    pip install -e .        # then it is in: schedgap list\n    python -m pytest\n" + (
        f"    schedgap evaluate {name}:{name} --problem rar-ddls\n" if kind == "heuristic" else ""
    )
    texts = {
        "pyproject.toml": _PROJECT.replace("GROUP", group).replace("ENTRY", entry),
        f"src/{name}/__init__.py": module,
        f"tests/test_{name}.py": test,
        "README.md": readme,
    }
    written = []
    for place, text in texts.items():
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        written.append(write_text(home / place, text.replace("NAME", name)))
    return written

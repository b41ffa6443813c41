"""Every method from the command line, on presets and on the pages' instances, with and without a limit of time.

An answer may be that nothing was found. It is never an internal error, and its exit status says what it is.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import random
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from support.pages import instances_shown

from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.method import Kind
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_method, find_problem, problem_ids, read_instance
from schedgap.cli.main import main
from schedgap.formulations.common.instance import Instance

ENDS = {"optimal": 0, "feasible": 0, "infeasible": 3, "unbounded": 3, "unknown": 4}
"""The exit status of each status of an answer."""
REFUSED = (
    "job-pair: needs an instance of two jobs, got ",
    "CP-SAT solves integer models only",
    "this method needs every placement given",
)
"""Parts of the error lines of methods that are not for every instance of their problem."""
SECONDS = 1.0
"""The limit of time of a command that has one, in seconds."""
PRESETS = ("tiny", "small")


class Question(NamedTuple):
    """A ``generate`` command, a method, and the limit of time in seconds."""

    made: tuple[str, ...]
    method: str
    limit: float | None

    def __str__(self) -> str:
        limit = "" if self.limit is None else f" --time-limit {self.limit:g}"
        return f"{' '.join(self.made)}; solve --method {self.method}{limit}"


def questions(seeds: Sequence[int], problems: Sequence[str] | None = None, *, pages: bool = True) -> list[Question]:
    """What is asked: presets of every seed, then the instances that pages name.

    Exact methods have a limit on all but `tiny`, where each is asked with and without one.
    """
    return [
        Question(made, method.id, limit)
        for made in _instances(seeds, pages)
        if problems is None or made[1] in problems
        for method in find_problem(made[1]).methods
        for limit in ((SECONDS, None) if "tiny" in made or method.kind is Kind.HEURISTIC else (SECONDS,))
    ]


def _instances(seeds: Sequence[int], pages: bool) -> Iterator[tuple[str, ...]]:
    for problem, preset, seed in ((p, preset, seed) for p in problem_ids() for preset in PRESETS for seed in seeds):
        if any(preset == one.id for one in workload_of(find_problem(problem)).presets):
            yield ("generate", problem, "--preset", preset, "--seed", str(seed), "--out", "instance.json")
    if pages:
        yield from instances_shown()


def fault_of(question: Question) -> str:
    """What is wrong with the answer to a question, asked in a folder of its own; "" where nothing is."""
    warnings.filterwarnings("ignore")
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="gate-") as folder:
        os.chdir(folder)
        try:
            return _fault(question)
        finally:
            os.chdir(before)


def _ran(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(arguments))
    return status, out.getvalue(), err.getvalue()


def _fault(question: Question) -> str:
    status, _, err = _ran(*question.made)
    if status:
        return f"generate ends with {status}: {err}"
    file = question.made[question.made.index("--out") + 1]
    limit = [] if question.limit is None else ["--time-limit", str(question.limit)]
    status, out, err = _ran("solve", file, "--method", question.method, *limit, "--no-confirm", "--json")
    if status == 2 and any(reason in err for reason in REFUSED):
        return ""
    if status not in ENDS.values() or "Traceback" in err or "internal error" in err:
        return f"exit {status}: {err[-400:]}"
    problem, instance = read_instance(file)
    answer = json.loads(out)
    if status != ENDS[answer["status"]] or (answer["solution"] is None) != (status != 0):
        return f"exit {status} with status {answer['status']} and solution {answer['solution']}"[:400]
    return _score(problem, question.method, instance, answer) if answer["solution"] is not None else ""


def _score(problem: Problem, name: str, instance: Instance, answer: Mapping[str, Any]) -> str:
    method = find_method(problem, name)
    if method.outside_model or method.checker is not None:
        return ""
    report = problem.check(instance, answer["solution"])
    if report.feasible and report.value == answer["objective"]:
        return ""
    return f"objective {answer['objective']}, the checker says {report.value} {report.violations[:1]}"


def run(asked: Sequence[Question], workers: int) -> int:
    """Ask all of them, print what is wrong, and count it."""
    order, faults = random.Random(0).sample(list(asked), len(asked)), 0
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for question, fault in zip(order, pool.imap(fault_of, order), strict=True):
            if fault:
                faults += 1
                print(f"FAULT {question}: {fault}", flush=True)
    return faults

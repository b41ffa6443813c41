"""Whether the rows that certificates are checked against could be what engines solve, in place of our models.

python -m studies.rows_as_model gpu-sharing:tiny:10 gang-placement:tiny:10 g-vne:small:10 ddljs:small:5

Both statements of an instance go through the same adapter of each engine, one after the other, one thread each. The
table tells how many each decides with an answer that the engine is believed on, and the processor seconds of all.
Answers that contradict each other end it with an error.
"""

from __future__ import annotations

import sys

import pulp

from schedgap.benchmarks.instances import make_instance
from schedgap.benchmarks.text import fixed, table
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.layout import Layout, RowFamily, VariableFamily
from schedgap.formulations.common.numbers import agrees
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.content import plain
from schedgap.solvers.engines import NAMES, engine
from schedgap.solvers.engines.answer import EngineAnswer
from schedgap.solvers.result import Deadline, SolveOptions, Status
from studies.engines import processor_seconds

DECIDED = (Status.OPTIMAL, Status.INFEASIBLE)
LIMIT = 30.0
"""Seconds of each run."""


def model_of_rows(instance: Instance) -> DeclarativeModel:
    """The rows of the certificates' form ``rows``, with the objective, as a declarative model."""
    rows = checker.model_of(plain(instance), "rows", {})
    kinds = {name.partition("[")[0] for name in rows.names}
    laws = {name.partition("[")[0] for name in rows.rows}
    layout = Layout(
        pulp.LpProblem("rows", pulp.LpMaximize if rows.sense < 0 else pulp.LpMinimize),
        {kind: VariableFamily("name", "a variable of the rows") for kind in kinds},
        {law: RowFamily("", "a row of the certificates") for law in laws},
    )
    columns = [
        layout.variable(name.partition("[")[0], name, low=float(low), high=float(high), integer=whole)
        for name, low, high, whole in zip(rows.names, rows.low, rows.high, rows.whole, strict=True)
    ]
    costs = zip(columns, rows.cost, strict=True)
    layout.objective([(x, float(cost) * rows.sense) for x, cost in costs if cost], float(rows.constant) * rows.sense)
    for name, row in rows.rows.items():
        terms = [(columns[place], float(factor)) for place, factor in row.terms.items()]
        layout.row(name.partition("[")[0], (name,), terms, "==" if row.equal else ">=", float(row.right))
    return DeclarativeModel(layout.problem, lambda _: {}, rows.sense, layout=layout)


def answer_of(model: DeclarativeModel, by: str) -> tuple[EngineAnswer | str, float]:
    """The engine's answer, or why it refuses the model; processor seconds."""
    began = processor_seconds()
    try:
        answer: EngineAnswer | str = engine(by).solve(model, SolveOptions(Deadline.after(LIMIT), threads=1))
    except InputError as refused:
        answer = str(refused)
    return answer, processor_seconds() - began


def compare(problem_id: str, preset: str, seeds: int) -> list[list[str]]:
    """One line of the table for each engine."""
    problem, lines = find_problem(problem_id), []
    for by in NAMES:
        believed, seconds, refused = [0, 0], [0.0, 0.0], ["", ""]
        for seed in range(seeds):
            instance = make_instance(problem, preset, seed)
            ours, values = problem.model(instance), list[float | None]()
            assert ours is not None
            for which, model in enumerate((ours, model_of_rows(instance))):
                answer, spent = answer_of(model, by)
                seconds[which] += spent
                if isinstance(answer, str):
                    refused[which] = answer
                elif answer.status in DECIDED:
                    believed[which] += not answer.doubt
                    values.append(answer.objective)
            known = [value for value in values if value is not None]
            if len(known) not in (0, len(values)) or not all(agrees(known[0], value) for value in known):
                raise ValueError(f"{problem_id} {preset} {seed}: {values}")
        shown = [f"{count}, {fixed(spent, 1)}" for count, spent in zip(believed, seconds, strict=True)]
        lines.append([f"{problem_id} `{preset}`", str(seeds), by, *shown, refused[1]])
    return lines


def main() -> int:
    """The command."""
    asked = [given.split(":") for given in sys.argv[1:]]
    rows = [line for problem, preset, seeds in asked for line in compare(problem, preset, int(seeds))]
    print(table(["models", "of", "engine", "model: believed, s", "rows: believed, s", "refused"], rows, "lrlrrl"))
    return 0


if __name__ == "__main__":
    sys.exit(main())

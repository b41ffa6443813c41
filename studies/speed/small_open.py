"""Small instances of every problem on seeds that nobody tuned on: how many are proven, and how far the rest is open.

``python -m studies.speed.small_open [--limit 60] [--families NAME,...] [--rivals]`` prints a table.
With ``--work`` our methods end by counts in place of the clock, so that the load of the machine does not decide; the
seconds are then those of the processor.

Rivals are asked for gangs that never contend: a plain CP-SAT model with one cumulative row, the same with the row that
the area gives, and PyJobShop where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from ortools.sat.python import cp_model

from schedgap.benchmarks.instances import make_instance
from schedgap.benchmarks.text import fixed, table
from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.solvers.result import Deadline, SolveOptions, Status
from studies.library.sources import GANGS, WEIGHTS, one_server

SEEDS = range(100, 110)
GPUS = 32
"""GPUs of the server on which gangs never contend."""
Pieces = list[tuple[int, int]]
"""GPUs and slots of each job."""


@dataclass(frozen=True)
class Family:
    """Instances of one preset, or of gangs where it is empty."""

    problem: str
    preset: str
    settings: dict[str, int | bool]


FAMILIES = {
    "rar-ddls, rings that cross, 20 x 6": Family("rar-ddls", "small", {"jobs": 20, "servers": 6}),
    "rar-ddls, 12 jobs": Family("rar-ddls", "small", {"jobs": 12}),
    "rar-ddls, paper, 10 servers": Family("rar-ddls", "paper", {"servers": 10}),
    "rar-ddls, gangs, 80 to 150 jobs on 32 GPUs": Family("rar-ddls", "", {}),
    "hadar, 16 x 20": Family("hadar", "small", {"jobs": 16, "horizon": 20}),
    "gpu-sharing, small": Family("gpu-sharing", "small", {}),
    "gpu-sharing, 8 slots 12 arrivals": Family("gpu-sharing", "small", {"slots": 8, "arrivals": 12}),
    "comm-contention, 10 tasks": Family("comm-contention", "small", {"tasks": 10}),
    "ddl-cluster, small": Family("ddl-cluster", "small", {}),
    "g-vne, small": Family("g-vne", "small", {}),
    "ddljs, small": Family("ddljs", "small", {}),
}


def gangs(seed: int) -> Pieces:
    """80 to 150 jobs of a cluster's gang sizes and 1 to 30 slots, all there at once."""
    drawn = random.Random(seed)
    return [(drawn.choices(GANGS, WEIGHTS)[0], drawn.randint(1, 30)) for _ in range(drawn.randint(80, 150))]


@dataclass(frozen=True)
class Answer:
    """What one method says of one instance, and after how many seconds: by the clock, with a work limit processor's."""

    proven: bool
    value: float | None
    bound: float | None
    seconds: float


def _processor() -> float:
    """Seconds of the processor, with those of searches in processes of their own that have ended."""
    return sum(os.times()[:4])


def ask_ours(family: Family, seed: int, limit: float, *, work: bool) -> Answer:
    """The default method, for so many seconds or so much work."""
    problem = find_problem(family.problem)
    if family.preset:
        instance = make_instance(problem, family.preset, seed, family.settings)
    else:
        instance = RarDdlsInstance.parse(one_server(f"gangs-{seed}", GPUS, gangs(seed)))
    clock = _processor if work else time.monotonic
    began = clock()
    limits = SolveOptions(work_limit=limit, seed=seed) if work else SolveOptions(Deadline.after(limit), seed=seed)
    result = run_method(problem, instance, problem.default_method(instance), limits)
    return Answer(result.status is Status.OPTIMAL, result.objective, result.bound, clock() - began)


def ask_cumulative(pieces: Pieces, limit: float, *, area: bool) -> Answer:
    """A plain CP-SAT model: intervals, one cumulative row, and the row of the area where asked."""
    model, horizon = cp_model.CpModel(), sum(slots for _, slots in pieces)
    starts = [model.new_int_var(0, horizon - slots, "") for _, slots in pieces]
    end = model.new_int_var(0, horizon, "end")
    intervals = [
        model.new_fixed_size_interval_var(start, slots, "") for start, (_, slots) in zip(starts, pieces, strict=True)
    ]
    model.add_cumulative(intervals, [need for need, _ in pieces], GPUS)
    for start, (_, slots) in zip(starts, pieces, strict=True):
        model.add(end >= start + slots)
    if area:
        model.add(GPUS * end >= sum(need * slots for need, slots in pieces))
    model.minimize(end)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = limit, 2
    began = time.monotonic()
    status = solver.solve(model)
    found = solver.objective_value if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
    bound = solver.best_objective_bound
    return Answer(status == cp_model.OPTIMAL, found, bound, time.monotonic() - began)


def ask_pyjobshop(pieces: Pieces, limit: float) -> Answer:
    """The same in PyJobShop, on CP-SAT."""
    import pyjobshop

    model = pyjobshop.Model()
    room = model.add_renewable(capacity=GPUS)
    for need, slots in pieces:
        model.add_mode(task=model.add_task(), resources=[room], duration=slots, demands=[need])
    began = time.monotonic()
    result = model.solve(solver="ortools", time_limit=limit, display=False, num_workers=2)
    proven = result.status.name == "OPTIMAL"
    return Answer(proven, float(result.objective), float(result.lower_bound), time.monotonic() - began)


def row_of(name: str, who: str, answers: Iterable[Answer]) -> list[str]:
    """Proven, median seconds of those, and the mean and the worst value over bound of the others."""
    every = list(answers)
    seconds = sorted(answer.seconds for answer in every if answer.proven)
    ratios = [
        max(answer.value, answer.bound) / min(answer.value, answer.bound)
        for answer in every
        if not answer.proven and answer.value and answer.bound
    ]
    unknown = sum(not answer.proven for answer in every) - len(ratios)
    return [
        name,
        who,
        f"{len(seconds)} of {len(every)}",
        fixed(seconds[len(seconds) // 2], 1) if seconds else "-",
        fixed(sum(ratios) / len(ratios)) if ratios else "-",
        fixed(max(ratios)) if ratios else "-",
        str(unknown),
    ]


def main() -> None:
    """The table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds each, by the clock")
    parser.add_argument("--work", action="store_true", help="the limit is of work, not of seconds")
    parser.add_argument("--families", help="parts of names, after commas; all where not given")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="the first so many")
    parser.add_argument("--rivals", action="store_true")
    given = parser.parse_args()
    wanted = given.families.split(",") if given.families else [""]
    rows: list[list[str]] = []
    for name, family in FAMILIES.items():
        if not any(part in name for part in wanted):
            continue
        seeds = SEEDS[: given.seeds]
        methods: dict[str, Callable[[int], Answer]] = {
            "schedgap": partial(ask_ours, family, limit=given.limit, work=given.work)
        }
        if given.rivals and not family.preset:
            methods["CP-SAT, cumulative"] = lambda seed: ask_cumulative(gangs(seed), given.limit, area=False)
            methods["CP-SAT, cumulative and area"] = lambda seed: ask_cumulative(gangs(seed), given.limit, area=True)
            if importlib.util.find_spec("pyjobshop"):
                methods["PyJobShop"] = lambda seed: ask_pyjobshop(gangs(seed), given.limit)
        for who, ask in methods.items():
            rows.append(row_of(name, who, map(ask, seeds)))
            print("  ".join(rows[-1]), flush=True)
    heads = ["family", "method", "proven", "median s", "open: mean value / bound", "worst", "neither"]
    print(table(heads, rows, "llrrrrr"))


if __name__ == "__main__":
    main()

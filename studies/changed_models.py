"""How long a changed model of rar-ddls takes: eight jobs on three servers, one change of a list of eleven at a time.

``python -m studies.changed_models [SECONDS]`` prints a table for docs/models.md: seconds of the processor until the
optimum is proven, for the instance's own model and for each change, with the default (``cp``) and with an engine.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable

import pulp

import schedgap
from schedgap.formulations.common.instance import Instance
from schedgap.solvers.model import Model

HORIZON = 60
JOBS = (
    ("a", 4, 100), ("b", 6, 50), ("c", 2, 200), ("d", 3, 80), ("e", 5, 60), ("f", 2, 90), ("g", 4, 70), ("h", 1, 120),
)  # fmt: skip
"""Id, GPUs and iterations."""


def instance() -> Instance:
    """Eight jobs, three servers of 4, 4 and 2 GPUs."""
    built = schedgap.instance("rar-ddls").name("eight jobs").horizon(HORIZON)
    for server, gpus in (("s0", 4), ("s1", 4), ("s2", 2)):
        built = built.server(server, gpus=gpus)
    built = built.network(
        inter_bandwidth=10, intra_bandwidth=100, contention_scale=1, contention_penalty=0.2, server_overhead=0.0
    ).reduce_speed(1000)
    for job, gpus, iterations in JOBS:
        built = built.job(
            job, gpus=gpus, iterations=iterations, gradient_size=0.5, batch_size=1, forward_time=0.0, backward_time=0.05
        )
    return built.build()


SERVERS = ("s0", "s1", "s2")
SLOTS = range(1, HORIZON + 1)


def _first(model: Model, job: str) -> pulp.LpAffineExpression:
    return pulp.lpSum(t * model.variables["start"][job, t] for t in SLOTS)


def _end(model: Model, job: str) -> pulp.LpAffineExpression:
    return pulp.lpSum(t * model.variables["end"][job, t] for t in SLOTS)


def _apart(model: Model) -> None:
    uses = model.variables["uses"]
    for s in SERVERS:
        model.add(uses["a", s] + uses["c", s] <= 1)


def _closed(model: Model) -> None:
    held = model.variables["held"]
    model.add(pulp.lpSum(held[job, "s2", t] for job, _, _ in JOBS for t in (5, 6)) == 0)


CHANGES: dict[str, Callable[[Model], None]] = {
    "a and c share no server": _apart,
    "b is not on s0": lambda m: m.add(m.variables["gpus"]["b", "s0"] == 0),
    "d is on one server": lambda m: m.add(m.variables["width"]["d", 1] == 1),
    "c starts in slot 6 or later": lambda m: m.add(_first(m, "c") >= 6),
    "a is complete before e starts": lambda m: m.add(_end(m, "a") + 1 <= _first(m, "e")),
    "g is complete by slot 12": lambda m: m.add(_end(m, "g") <= 12),
    "f is on two servers": lambda m: m.add(m.variables["width"]["f", 2] == 1),
    "s2 is closed in slots 5 and 6": _closed,
    "two jobs at most start in slot 1": lambda m: m.add(
        pulp.lpSum(m.variables["start"][job, 1] for job, _, _ in JOBS) <= 2
    ),
    "d and f start together": lambda m: m.add(_first(m, "d") == _first(m, "f")),
    "the sum of completions instead": lambda m: m.minimise(pulp.lpSum(_end(m, job) for job, _, _ in JOBS)),
}


def _processor() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def main() -> None:
    """Print the table."""
    limit = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    given = instance()
    engines = [None, *sys.argv[2:]]
    schedgap.model(given).solve(time_limit=5.0)  # compiles
    print(
        "| change | "
        + " | ".join(f"{name or 'default'}: value, bound, s, s of the processor" for name in engines)
        + " |"
    )
    print("|---" * (len(engines) + 1) + "|")
    for name, change in {"none": lambda m: None, **CHANGES}.items():
        cells = []
        for engine in engines:
            model = schedgap.model(given)
            change(model)
            before = _processor()
            result = model.solve(engine, time_limit=limit)
            spent = _processor() - before
            seconds = result.seconds or 0.0
            cells.append(f"{result.objective}, {result.bound}, {seconds:.1f}, {spent:.1f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

"""The two physical-cluster traces of gavel under rar-ddls: optima, heuristics, certified bounds.

Writes docs/results-gavel.md:

    python -m studies.gavel_rar FOLDER --out docs/results-gavel.md

FOLDER holds small_test.trace, minimize_makespan.trace and simulation_throughputs.json of
stanford-futuredata/gavel.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedgap.benchmarks.importers import import_instance
from schedgap.benchmarks.report.compare import Comparison, MethodRuns, compare
from schedgap.benchmarks.text import fixed, number
from schedgap.catalogue.rar_ddls import PROBLEM as RAR_DDLS
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import InputError, SchedgapError
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MINIMISE, better
from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.solvers.result import Deadline, SolveOptions, Status

THROUGHPUTS = "simulation_throughputs.json"


@dataclass(frozen=True)
class Setting:
    """One trace on one cluster.

    Attributes
    ----------
    trace : file name
    settings : settings of the importer
    """

    trace: str
    settings: Mapping[str, Any]


_SMALL = {"jobs": 12, "slot_length": 10.0, "slack": 3.0}
_LARGE = {"jobs": 12, "slot_length": 1800.0, "slack": 3.0}
PROVEN = (
    Setting("small_test.trace", {"servers": 2, "gpus": 2, **_SMALL}),
    Setting("small_test.trace", {"servers": 3, "gpus": 2, **_SMALL}),
    Setting("minimize_makespan.trace", {"servers": 3, "gpus": 2, **_LARGE}),
    Setting("minimize_makespan.trace", {"servers": 5, "gpus": 2, **_LARGE}),
)
"""12 jobs of each trace, those of more than one GPU first, on servers of 2 GPUs: to proven optimality."""

MEETING = (
    Setting("minimize_makespan.trace", {"servers": 3, "gpus": 3, **_LARGE}),
    Setting("minimize_makespan.trace", {"servers": 4, "gpus": 3, **_LARGE}),
)
"""The same on servers of 3 GPUs, on which two rings of 4 GPUs fit side by side only by sharing a server."""

WHOLE = (
    Setting("minimize_makespan.trace", {"servers": 10, "gpus": 2, "slot_length": 600.0, "slack": 4.0}),
    Setting("minimize_makespan.trace", {"servers": 6, "gpus": 4, "slot_length": 600.0, "slack": 8.0}),
    Setting("minimize_makespan.trace", {"servers": 4, "gpus": 3, "slot_length": 600.0, "slack": 4.0}),
)
"""The whole trace of 100 jobs: against the certified bound."""


@dataclass(frozen=True)
class Meeting:
    """What rings do in a schedule: how many cross, and how often they meet.

    Attributes
    ----------
    crossing : jobs on more than one server
    rings : jobs of more than one GPU
    slowed : crossing jobs that share a server with another crossing ring at some time
    most : the most rings on one server at a time
    slots : slots in which rings share a server
    """

    crossing: int
    rings: int
    slowed: int
    most: int
    slots: int


def meeting(instance: RarDdlsInstance, solution: Solution) -> Meeting:
    """Count crossings and contention in a schedule."""
    schedule = simulate(instance, solution["start"], solution["placement"])
    contended: set[int] = set()
    slowed, most = 0, 0
    for segments in schedule.segments.values():
        shared = [segment for segment in segments if segment.contention >= 2]
        slowed += bool(shared)
        most = max([most, *(segment.contention for segment in segments)])
        for segment in shared:
            contended.update(range(segment.first, (segment.last or segment.first) + 1))
    return Meeting(
        crossing=sum(len(places) > 1 for places in solution["placement"].values()),
        rings=sum(job.gpus > 1 for job in instance.jobs),
        slowed=slowed,
        most=most,
        slots=len(contended),
    )


def with_contention(instance: RarDdlsInstance, xi_1: float, alpha: float) -> RarDdlsInstance:
    """The instance with another law of sharing."""
    data = instance.to_dict()
    data["network"].update(contention_scale=xi_1, contention_penalty=alpha)
    return RarDdlsInstance.parse(data, instance.name)


def optimum(instance: RarDdlsInstance, limit: float) -> float | None:
    """The proven optimum by method cp, or None within `limit` seconds."""
    result = run_method(RAR_DDLS, instance, "cp", SolveOptions(deadline=Deadline.after(limit)))
    return result.objective if result.status is Status.OPTIMAL else None


def proven_section(folder: Path, setting: Setting, limit: float, seed: int) -> list[str]:
    """Optimum, what contention does to it, and every heuristic beside it."""
    instance, messages = imported(folder, setting)
    found = compare(RAR_DDLS, instance, None, SolveOptions(deadline=Deadline.after(limit), seed=seed))
    best = found.rows[0].results[0]
    if best.solution is None:
        raise InputError(f"{instance.name}: no schedule within {limit:g} s")
    rings = meeting(instance, best.solution)
    free = optimum(with_contention(instance, 1e-6, 0.0), limit)
    apart = optimum(with_contention(instance, 1.0, 1e9), limit)
    lines = [
        *_head(instance, setting, messages),
        f"- Optimum by `cp`: **{number(best.objective)} slots**, {best.status}, bound {number(best.bound)}.",
        f"- If sharing a server cost nothing: {number(free)}. If rings that share one stood still: {number(apart)}.",
        f"- In the schedule found {rings.crossing} of {rings.rings} rings cross servers, {rings.slowed} meet another "
        f"ring (at most {rings.most} on a server), in {rings.slots} slots.",
        "",
    ]
    return [*lines, *_table(instance, found, "optimum"), ""]


def whole_section(folder: Path, setting: Setting, limit: float, seed: int, repeat: int) -> list[str]:
    """Every heuristic on the whole trace against the certified bound."""
    instance, messages = imported(folder, setting)
    heuristics = [method.id for method in RAR_DDLS.methods if method.kind == "heuristic"]
    found = compare(
        RAR_DDLS, instance, heuristics, SolveOptions(deadline=Deadline.after(limit), seed=seed), repeat=repeat
    )
    bound = found.agreement.bound
    lines = [
        *_head(instance, setting, messages),
        f"- Certified lower bound: **{number(bound)} slots**"
        + (", which a heuristic meets: the optimum." if found.agreement.optimum is not None else "."),
        "",
    ]
    return [*lines, *_table(instance, found, "bound"), ""]


def imported(folder: Path, setting: Setting) -> tuple[RarDdlsInstance, list[str]]:
    """The instance of a setting, with the rates of the file."""
    files = [folder / setting.trace]
    instance, messages = import_instance(RAR_DDLS, "gavel", files, folder / THROUGHPUTS, setting.settings)
    assert isinstance(instance, RarDdlsInstance)
    return instance, messages


def _head(instance: RarDdlsInstance, setting: Setting, messages: Sequence[str]) -> list[str]:
    settings = " ".join(f"{name}={value:g}" for name, value in setting.settings.items())
    gangs = sorted({job.gpus for job in instance.jobs})
    sizes = ", ".join(f"{sum(job.gpus == g for job in instance.jobs)} of {g}" for g in gangs)
    servers = len(instance.servers)
    return [
        f"### {setting.trace}: {len(instance.jobs)} jobs on {servers} servers of {instance.servers[0].gpus} GPUs",
        "",
        f"- `schedgap import gavel {setting.trace} --throughputs {THROUGHPUTS} --problem rar-ddls --set {settings}`",
        f"- GPUs of the jobs: {sizes}; horizon {instance.horizon} slots.",
        *(f"- {message}." for message in messages),
    ]


def _table(instance: RarDdlsInstance, found: Comparison, to: str) -> list[str]:
    rows = ["| method | status | makespan | ratio | rings that cross | that meet | guarantees on this instance |"]
    rows.append("|---|---|---|---|---|---|---|")
    for row in found.rows:
        solution = row.results[0].solution if row.results else None
        rings = None if solution is None else meeting(instance, solution)
        shown = "-" if row.ratio is None else f"{fixed(row.ratio)} to {row.ratio_to}"
        if row.ratio is not None and row.worst_ratio is not None and better(row.ratio, row.worst_ratio, MINIMISE):
            shown += f", worst {fixed(row.worst_ratio)}"
        cells = [
            f"`{row.method.id}`",
            str(row.status),
            number(row.objective),
            shown,
            "-" if rings is None else f"{rings.crossing} of {rings.rings}",
            "-" if rings is None else str(rings.slowed),
            _claims(row),
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def _claims(row: MethodRuns) -> str:
    """The ratio bounds among the guarantees, with their verdicts."""
    shown = [
        f"{judged.guarantee.id} <= {fixed(judged.ratio_bound)}: {judged.verdict}"
        for judged in row.judgements
        if judged.ratio_bound is not None
    ]
    return "; ".join(shown) or "-"


def page(folder: Path, limit: float = 600.0, seed: int = 0, repeat: int = 5) -> str:
    """The whole page.

    Parameters
    ----------
    folder : holds the traces and the rates
    limit : seconds for each method
    seed, repeat : seed and number of runs of the heuristics
    """
    lines = [*_INTRODUCTION, "## 12 jobs on servers of 2 GPUs, solved to proven optimality", "", *_ABOUT_TWO]
    for setting in PROVEN:
        lines += proven_section(folder, setting, limit, seed)
    lines += ["## 12 jobs on servers of 3 GPUs: rings that have to meet", "", *_ABOUT_THREE]
    for setting in MEETING:
        lines += proven_section(folder, setting, limit, seed)
    lines += ["## The whole trace, against the certified bound", ""]
    lines += [f"Heuristics run with {repeat} seeds; makespan and ratio are means.", ""]
    for setting in WHOLE:
        lines += whole_section(folder, setting, limit, seed, repeat)
    return "\n".join(_without_end(lines)) + "\n"


_INTRODUCTION = [
    "# Two real traces: gavel under rar-ddls",
    "",
    "Written by `studies/gavel_rar.py FOLDER --out docs/results-gavel.md`, where FOLDER",
    "holds the two traces of physical clusters and the measured rates (V100) of",
    "<https://github.com/stanford-futuredata/gavel>. What the import takes from them, and what it has to assume",
    "(above all how rings share a link), is told in [importing.md](importing.md).",
    "",
]


_ABOUT_TWO = [
    "The jobs are those of more than one GPU first, in the order of the trace. Rings of 4 GPUs have to cross here.",
    "They do not have to meet another ring: jobs of 2 and 4 GPUs can always take whole servers of 2. Two further",
    "optima tell what contention costs: one where sharing a server costs nothing, one where rings that share a",
    "server stand still. Where both equal the optimum, contention plays no part in it.",
    "Heuristics run with seed 0.",
    "",
]

_ABOUT_THREE = [
    "Two rings of 4 GPUs run side by side on three servers of 3 only when they share one. An optimum strictly",
    "between the two further optima pays for contention, and less than avoiding it would cost.",
    "",
]


def _without_end(lines: Iterable[str]) -> list[str]:
    found = list(lines)
    while found and not found[-1]:
        found.pop()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; 2 on bad input."""
    parser = argparse.ArgumentParser(prog="gavel_rar", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: standard output")
    parser.add_argument("--limit", type=float, default=600.0, metavar="S", help="seconds for each method")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    given = parser.parse_args(arguments)
    try:
        text = page(given.folder, given.limit, given.seed)
        if given.out is None:
            print(text, end="")
        else:
            write_text(given.out, text)
    except SchedgapError as error:
        print(f"gavel_rar: error: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())

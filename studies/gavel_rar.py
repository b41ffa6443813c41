"""The two physical-cluster traces of gavel under rar-ddls: optima, heuristics, certified bounds.

Writes docs/notes/results-gavel.md:

    python -m studies.gavel_rar FOLDER --out docs/notes/results-gavel.md

FOLDER holds small_test.trace, minimize_makespan.trace and simulation_throughputs.json of
stanford-futuredata/gavel.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedgap.benchmarks.importers import import_instance
from schedgap.benchmarks.report.compare import MethodRuns, compare
from schedgap.benchmarks.text import fixed, markdown_table, number
from schedgap.catalogue.rar_ddls import PROBLEM as RAR_DDLS
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import InputError, SchedgapError
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Solution
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


def proven_row(folder: Path, number_of: int, setting: Setting, limit: float, seed: int) -> list[str]:
    """Optimum, what contention does to it, and the ratio of every heuristic to it."""
    instance, _ = imported(folder, setting)
    found = compare(RAR_DDLS, instance, None, SolveOptions(deadline=Deadline.after(limit), seed=seed))
    best = found.rows[0].results[0]
    if best.solution is None:
        raise InputError(f"{instance.name}: no schedule within {limit:g} s")
    rings = meeting(instance, best.solution)
    free = optimum(with_contention(instance, 1e-6, 0.0), limit)
    apart = optimum(with_contention(instance, 1.0, 1e9), limit)
    value = number(best.objective) if best.status is Status.OPTIMAL else f"{number(best.objective)}, not proven"
    cells = [str(number_of), value, number(free), number(apart)]
    cells.append(f"{rings.crossing}, {rings.slowed} of {rings.rings}")
    return [*cells, *map(_ratio, found.rows[1:])]


def whole_row(folder: Path, number_of: int, setting: Setting, limit: float, seed: int, repeat: int) -> list[str]:
    """The certified bound on the whole trace, and the mean ratio of every heuristic to it."""
    instance, _ = imported(folder, setting)
    heuristics = [method.id for method in RAR_DDLS.methods if method.kind == "heuristic"]
    found = compare(
        RAR_DDLS, instance, heuristics, SolveOptions(deadline=Deadline.after(limit), seed=seed), repeat=repeat
    )
    bound = found.agreement.bound
    value = number(bound) + (", which a heuristic meets" if found.agreement.optimum is not None else "")
    return [str(number_of), value, *map(_ratio, found.rows)]


def imported(folder: Path, setting: Setting) -> tuple[RarDdlsInstance, list[str]]:
    """The instance of a setting, with the rates of the file."""
    files = [folder / setting.trace]
    instance, messages = import_instance(RAR_DDLS, "gavel", files, folder / THROUGHPUTS, setting.settings)
    assert isinstance(instance, RarDdlsInstance)
    return instance, messages


def _command(setting: Setting) -> str:
    settings = " ".join(f"{name}={value:g}" for name, value in setting.settings.items())
    rates = f"--throughputs {THROUGHPUTS}"
    return f"schedgap import gavel {setting.trace} {rates} --problem rar-ddls --set {settings}"


def _ratio(row: MethodRuns) -> str:
    """Its ratio, and the proven bound on it where it has one."""
    if row.ratio is None:
        return "-"
    bounds = [
        judged.ratio_bound
        for judged in row.judgements
        if judged.ratio_bound is not None and judged.guarantee.id == REPAIRED
    ]
    return fixed(row.ratio) + (f" (at most {fixed(bounds[0])})" if bounds else "")


def page(folder: Path, limit: float = 600.0, seed: int = 0, repeat: int = 5) -> str:
    """The whole page.

    Parameters
    ----------
    folder : holds the traces and the rates
    limit : seconds for each method
    seed, repeat : seed and number of runs of the heuristics
    """
    heuristics = [f"`{method.id}`" for method in RAR_DDLS.methods if method.kind == "heuristic"]
    proven = [*PROVEN, *MEETING]
    lines = [_INTRODUCTION, "", "## Settings", ""]
    lines += [f"{k}. `{_command(setting)}`" for k, setting in enumerate([*proven, *WHOLE], 1)]
    rows = [proven_row(folder, k, setting, limit, seed) for k, setting in enumerate(proven, 1)]
    head = ["setting", "optimum", "sharing free", "sharers stand still", "rings that cross, that meet", *heuristics]
    lines += ["", "## Proven optima", "", _ABOUT_PROVEN, "", markdown_table(head, rows)]
    rows = [whole_row(folder, k, setting, limit, seed, repeat) for k, setting in enumerate(WHOLE, len(proven) + 1)]
    lines += ["", "## The whole trace", "", _ABOUT_WHOLE.format(repeat=repeat), ""]
    lines.append(markdown_table(["setting", "certified bound", *heuristics], rows))
    return "\n".join(lines) + "\n"


REPAIRED = "000-theorem-5-repaired"
"""The proven bound that stands beside the ratio of `sjf-bco+`."""
_INTRODUCTION = """# Two real traces: gavel under rar-ddls

`python -m studies.gavel_rar FOLDER --out docs/notes/results-gavel.md` writes this page. FOLDER holds the two traces of
physical clusters and the measured rates (V100) of <https://github.com/stanford-futuredata/gavel>. What the import takes
from them, and what it assumes of shared links, is told in [Your job log](../importing.md)."""
_ABOUT_PROVEN = """Makespans in slots, ratios to the optimum, seed 0. The 12 jobs are those of more than one GPU
first. On servers of 2 GPUs rings of 4 GPUs have to cross, but need not meet another ring. On servers of 3 GPUs
two rings of 4 GPUs run side by side only when they share a server. Two further optima tell what contention
costs: one where sharing a server costs nothing, and one where rings that share a server stand still. An optimum
strictly between the two pays for contention."""
_ABOUT_WHOLE = """100 jobs, mean ratios to the certified bound over {repeat} seeds."""


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

"""Whether time limits and memory budgets are kept: every exact method on every preset, and very large instances.

``python -m studies.robustness.limits [--problem P] [--limits 2,5,10] [--memory-limit GB]
[--large]``. Every method runs in a process of its own, warm before the clock; a longer limit is tried where the last
one was used up. Prints one JSON object a run; ``--table FILE ...`` reads such objects and prints what they come to.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from schedgap.benchmarks.instances import make_instance, workload_of
from schedgap.benchmarks.sweep.warm import warm_once
from schedgap.catalogue.method import Kind
from schedgap.catalogue.registry import all_problems, find_method, find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.instance import Json
from schedgap.solvers.budget import used_bytes
from schedgap.solvers.result import Deadline, SolveOptions

Case = tuple[str, str, dict[str, str], tuple[str, ...]]

LARGE: tuple[Case, ...] = (
    ("rar-ddls", "large", {}, ("cp", "highs", "theta", "sjf-bco", "lpt-colocate")),
    ("ddljs", "paper", {"jobs": "10000"}, ("cpsat", "highs", "cbc", "gadget")),
    ("ddljs", "paper", {"jobs": "30000"}, ("highs",)),
    ("g-vne", "racks", {"jobs": "30000"}, ("colgen", "highs", "greedy", "lp-rs-mde")),
    ("g-vne", "racks", {"jobs": "100000"}, ("colgen", "greedy")),
    ("hadar", "small", {"jobs": "3000", "horizon": "300"}, ("colgen", "highs", "hadar-online")),
    ("gpu-sharing", "table-iii", {"jobs": "1000"}, ("cp", "highs", "sjf-bsbf")),
    ("comm-contention", "small", {"tasks": "3000"}, ("bb", "highs", "srsf-1")),
    ("ddl-cluster", "large", {}, ("cp", "job-shop", "placement", "ada-srsf")),
)
"""Problem, preset, settings, methods."""
SHARE, GRACE = 0.1, 1.0
"""A limit is kept where a run takes at most this share and so many seconds more."""
WATCH = 0.02
LAST = 300.0
"""Seconds beyond all limits after which a run counts as endless."""


def runs_of(
    problem: str, preset: str, settings: dict[str, str], method: str, limits: Sequence[float], memory: float
) -> Iterable[Json]:
    """The runs of one method on one instance, in this process."""
    desk = find_problem(problem)
    instance = make_instance(desk, preset, 0, settings)
    chosen = find_method(desk, method)
    warm_once(desk, chosen, {})
    for limit in limits:
        before, peak, over = used_bytes() or 0, 0, threading.Event()

        def watch(over: threading.Event = over) -> None:
            nonlocal peak
            while not over.wait(WATCH):
                peak = max(peak, used_bytes() or 0)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        worked, began = _processor(), time.monotonic()
        options = SolveOptions(deadline=Deadline.after(limit), memory_limit=round(memory * 1e9))
        result = run_method(desk, instance, chosen, options)
        took = time.monotonic() - began
        over.set()
        watcher.join()
        yield {
            "problem": problem, "preset": preset, "settings": settings, "method": method, "limit": limit,
            "seconds": round(took, 3), "processor": round(_processor() - worked, 3), "load": os.getloadavg()[0],
            "memory": round(max(0, peak - before) / 1e9, 3), "memory limit": memory, "status": result.status.value,
            "termination": result.termination.value, "found": result.solution is not None,
            "bound": result.bound is not None,
        }  # fmt: skip
        if took < 0.8 * limit:
            return


def _processor() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def kept(run: Json) -> bool:
    """Whether a run kept its limit of time."""
    return bool(run["seconds"] <= (1 + SHARE) * run["limit"] + GRACE)


def table(runs: Sequence[Json]) -> str:
    """What the runs of each problem come to, and every run that did not keep a limit."""
    lines = [
        "| problem | runs | used up | time kept | most beyond | memory kept | most GB | refused |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for problem in dict.fromkeys(run["problem"] for run in runs):
        refused = sum(run["problem"] == problem and "refused" in run for run in runs)
        own = [run for run in runs if run["problem"] == problem and "refused" not in run]
        ended = [run for run in own if "seconds" in run]
        used = [run for run in ended if run["seconds"] >= 0.8 * run["limit"]]
        beyond = max((run["seconds"] - run["limit"] for run in used), default=0.0)
        memory = sum(run["memory"] <= run["memory limit"] for run in ended)
        lines.append(
            f"| {problem} | {len(own)} | {len(used)} | {sum(map(kept, ended))} | {beyond:.2f} s | {memory} | "
            f"{max((run['memory'] for run in ended), default=0.0):.2f} | {refused} |"
        )
    wrong = [r for r in runs if "seconds" not in r or not kept(r) or r["memory"] > r["memory limit"]]  # or refused
    return "\n".join([*lines, "", *(json.dumps(run) for run in wrong)])


def main() -> None:
    """Run, or read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", help="only this one")
    parser.add_argument("--limits", default="2,5,10")
    parser.add_argument("--memory-limit", type=float, default=4.0)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--one", nargs=4, metavar=("PROBLEM", "PRESET", "SETTINGS", "METHOD"))
    parser.add_argument("--table", nargs="+", type=Path)
    chosen = parser.parse_args()
    limits = [float(text) for text in chosen.limits.split(",")]
    if chosen.table:
        lines = [line for path in chosen.table for line in path.read_text(encoding="utf-8").splitlines()]
        print(table([json.loads(line) for line in lines]))
        return
    if chosen.one:
        problem, preset, settings, method = chosen.one
        for run in runs_of(problem, preset, json.loads(settings), method, limits, chosen.memory_limit):
            print(json.dumps(run), flush=True)
        return
    cases: Iterable[Case] = LARGE if chosen.large else [
        (problem, preset.id, {}, tuple(m.id for m in desk.methods if m.kind is not Kind.HEURISTIC))
        for problem, desk in all_problems().items()
        for preset in workload_of(desk).presets
    ]  # fmt: skip
    for problem, preset, given, methods in cases:
        if chosen.problem in (None, problem):
            for method in methods:
                _apart(problem, preset, given, method, chosen)


def _apart(problem: str, preset: str, settings: dict[str, str], method: str, chosen: argparse.Namespace) -> None:
    """One method in a process of its own; what it says goes on, and how it ended where that is not well."""
    command = [sys.executable, "-m", "studies.robustness.limits", "--limits", chosen.limits]
    command += ["--memory-limit", str(chosen.memory_limit), "--one", problem, preset, json.dumps(settings), method]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=LAST, check=False)
        out, failed = ended.stdout, ended.returncode and (ended.stderr.strip().splitlines() or [""])[-1]
    except subprocess.TimeoutExpired as error:
        out, failed = (
            (error.stdout or b"").decode() if isinstance(error.stdout, bytes) else error.stdout or "",
            "endless",
        )
    print(out, end="")
    if failed:
        refused = "InputError" in failed or "ModelRefused" in failed
        about = {"problem": problem, "preset": preset, "settings": settings, "method": method}
        print(json.dumps({**about, "refused" if refused else "error": failed}))
    sys.stdout.flush()


if __name__ == "__main__":
    main()

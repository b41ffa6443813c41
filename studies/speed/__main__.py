"""Measures how far each exact method gets, and how much faster than the naive forms the methods are.

``python -m studies.speed [NAME ...] [--seed N] [--scale F] [--time-limit S] [--out FOLDER]`` prints
a table for each; without names it lists them. Nothing else should run beside it.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schedgap.benchmarks.figures.style import save
from schedgap.benchmarks.records import plain
from schedgap.benchmarks.text import number, table
from schedgap.formulations.common.instance import Json
from studies.engine_handoff import handoff_rows
from studies.speed import comm_contention, ddl_cluster, g_vne, gpu_sharing, hadar, rar_ddls
from studies.speed.charts import round_time_figure, trap_figure
from studies.speed.rar_ddls_reach import cp_reach, method_reach

Row = Mapping[str, Json]


@dataclass(frozen=True)
class Measurement:
    """A function of rows, ``f(*, seed, scale, time_limit, **settings)``, which names of these what it has a use for."""

    title: str
    function: Callable[..., Sequence[Row]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    figure: Callable[[Sequence[Row]], Any] | None = None

    def run(self, **given: object) -> list[Row]:
        """Its rows."""
        takes = inspect.signature(self.function).parameters
        used = {name: value for name, value in given.items() if name in takes and value is not None}
        return [plain(row) for row in self.function(**used, **self.settings)]


_LARGER = {"jobs": 30, "servers": 8, "instances": 6}
_SIXTEEN = {"instances": 10, "sizes": ((16, 20),), "methods": ("colgen",)}
MEASUREMENTS: Mapping[str, Measurement] = {
    "cp-20x6": Measurement("rar-ddls: cp on 20 jobs x 6 servers with contention, 60 s on 2 threads", cp_reach),
    "cp-30x8": Measurement("rar-ddls: cp on 30 jobs x 8 servers with contention, 60 s on 2 threads", cp_reach, _LARGER),
    "reach": Measurement("rar-ddls: every exact method on growing contended instances, 10 s each", method_reach),
    "literal-speedup": Measurement("rar-ddls: SJF-BCO against its literal form, paper scale", rar_ddls.literal_speedup),
    "large": Measurement("rar-ddls: heuristics on 10,000 jobs and 10,000 GPUs", rar_ddls.large_times),
    "large-from-start": Measurement(
        "rar-ddls: SJF-BCO on 10,000 jobs and 10,000 GPUs, start-up included", rar_ddls.large_from_start
    ),
    "growth": Measurement("rar-ddls: seconds of SJF-BCO as jobs and GPUs grow together", rar_ddls.running_times),
    "handoff": Measurement("engines: a model from PuLP to HiGHS, PuLP's way and ours", handoff_rows),
    "hadar-reach": Measurement(
        "hadar: how far each exact method gets in 60 s, and the ratio to the plain time-indexed program", hadar.reach
    ),
    "hadar-proofs": Measurement(
        "hadar: colgen on 10 instances of 16 jobs x 20 slots on 6 devices, 60 s each", hadar.reach, _SIXTEEN
    ),
    "hadar-rounds-growth": Measurement(
        "hadar: seconds of one scheduling round, 32 to 2,048 waiting jobs (Figure 5)",
        hadar.round_times,
        figure=round_time_figure,
    ),
    "hadar-block-bound": Measurement(
        "hadar: the block-price bound on the paper's workload, iteration by iteration", hadar.bound_history
    ),
    "g-vne-bounds": Measurement("g-vne: ratio of plain, augmented and capped LP to the optimum", g_vne.bounds),
    "g-vne-augmented": Measurement(
        "g-vne: the augmented LP by columns and as arc flows, 20 nodes and 10 jobs", g_vne.augmented, {"instances": 3}
    ),
    "g-vne-trees": Measurement(
        "g-vne: colgen on rack trees of 400 servers and 200 jobs, to a gap of 1e-4", g_vne.trees
    ),
    "g-vne-graphs": Measurement("g-vne: colgen on random graphs of 50 servers and 20 jobs", g_vne.graphs),
    "sharing-proofs": Measurement("gpu-sharing: cp on 16 jobs, 8 GPUs, horizon 48", gpu_sharing.proofs),
    "sharing-policies": Measurement("gpu-sharing: policies on 480 jobs and 64 GPUs", gpu_sharing.policy_times),
    "sharing-decision": Measurement(
        "gpu-sharing: one decision with 1,000 waiting jobs on 1,024 GPUs", gpu_sharing.decision_times
    ),
    "ddl-policies": Measurement(
        "ddl-cluster: 160 jobs on 64 GPUs, with and without fast-forward", ddl_cluster.policy_times
    ),
    "ddl-large": Measurement("ddl-cluster: 1,000 jobs on 512 GPUs", ddl_cluster.large_times),
    "contention-proofs": Measurement("comm-contention: bb on 8 tasks, 10 seeds, 60 s each", comm_contention.proofs),
    "contention-growth": Measurement(
        "comm-contention: bb and the program over event positions on growing instances", comm_contention.growth
    ),
    "contention-trap": Measurement(
        "comm-contention: AdaDUAL's ratio on its trap is at least this", comm_contention.trap_ratios, figure=trap_figure
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.speed", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(MEASUREMENTS)}; or all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the number of instances")
    parser.add_argument("--time-limit", type=float, help="seconds for each solve")
    parser.add_argument("--out", type=Path, help="a folder for the rows (JSON) and the figures")
    asked = parser.parse_args(arguments)
    chosen = list(MEASUREMENTS) if asked.names == ["all"] else asked.names
    if unknown := [name for name in chosen if name not in MEASUREMENTS]:
        parser.error(f"unknown measurement {unknown[0]!r}, one of: {', '.join(MEASUREMENTS)}")
    if not chosen:
        print("\n".join(f"{name:<20} {part.title}" for name, part in MEASUREMENTS.items()))
    for name in chosen:
        part = MEASUREMENTS[name]
        rows = part.run(seed=asked.seed, scale=asked.scale, time_limit=asked.time_limit)
        head = list(dict.fromkeys(key for row in rows for key in row))
        print(f"{part.title}\n{table(head, [[_cell(row.get(key)) for key in head] for row in rows])}\n", flush=True)
        if asked.out is not None:
            asked.out.mkdir(parents=True, exist_ok=True)
            (asked.out / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
            if part.figure is not None:
                save(part.figure(rows), asked.out / f"{name}.svg")
    return 0


def _cell(value: Json) -> str:
    if value is None or isinstance(value, bool):
        return {None: "-", True: "yes", False: "no"}[value]
    return number(value, 4) if isinstance(value, int | float) else str(value)


if __name__ == "__main__":
    sys.exit(main())

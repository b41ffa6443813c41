"""What FGD, BestFit, DotProduct and Random allocate of openb's GPUs, and what no policy exceeds: the published table.

Source: Weng et al., Beware of Fragmentation, USENIX ATC 2023; openb's lists of nodes and pods, and the table
analysis_allo_discrete.csv of hkust-adsl/kubernetes-scheduler-simulator, whose column 100 is a load of 100%.

As the simulator's code has it (commit 5b6b304, pkg/simulator and scripts/generate_config_and_run.py): pods of the list
in random order, then drawn from it, until they ask for all GPUs that there are; shapes of fragmentation by processors
and GPU, the most frequent 95% of the pods; nodes in an order drawn once a run, of which the first wins where scores are
equal. A GPU that is asked for is worth 1 in the bound, which leaves out pods without one.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.instance import Json
from schedgap.formulations.gang_placement.instance import WHOLE, GangPlacementInstance
from schedgap.formulations.gang_placement.scale import decode
from schedgap.solvers.result import SolveOptions
from schedgap.tools.judge.draft import Draft
from schedgap.tools.judge.openb import openb

POPULAR = 0.95
"""Share of the pods that the shapes of fragmentation cover, the most frequent first."""

PUBLISHED = {"random-fit": "01-Random", "dot-product": "02-DotProd", "best-fit": "05-BestFit", "fgd": "06-FGD"}


def published(path: Path, workload: str) -> dict[str, list[float]]:
    """For each policy the percentages of GPUs that are allocated at a load of 100%, a seed each."""
    found: dict[str, list[float]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["workload"] == workload:
                found.setdefault(row["sc_policy"], []).append(float(row["100"]))
    return found


def instance_of(draft: Draft, seed: int, *, gpus_only: bool = False) -> GangPlacementInstance:
    """The pods of one draw, each a gang, in their order; nodes in an order that is drawn, too."""
    rng = np.random.default_rng(seed)
    nodes = [node for node in draft.nodes if node["gpus"]]
    nodes = [nodes[n] for n in np.random.default_rng([seed, 1]).permutation(len(nodes))]
    total = WHOLE * sum(len(node["gpus"]) for node in nodes)
    gangs = []
    asked = 0
    for at, which in enumerate(_draw(rng, len(draft.gangs))):
        if asked >= total:
            break
        (pod,) = draft.gangs[which]["pods"]
        asked += pod["gpu"]
        if pod["gpu"] or not gpus_only:
            worth = pod["gpu"] / WHOLE or 1.0
            gangs.append({"id": f"p{at}", "weight": worth, "arrival": float(at), "pods": [pod]})
    data: dict[str, Json] = {"nodes": nodes, "gangs": gangs, "shapes": typical(draft), "objectives": ["weight"]}
    return GangPlacementInstance.parse({"problem": "gang-placement", "name": f"openb-{seed}", **data})


def typical(draft: Draft) -> list[Json]:
    """The most frequent shapes of the list, of equal ones the larger first."""
    counted = Counter((gang["pods"][0]["request"]["cpu"], gang["pods"][0]["gpu"]) for gang in draft.gangs)
    shapes: list[Json] = []
    seen = 0
    for (cpu, gpu), number in sorted(counted.items(), key=lambda pair: (pair[1], pair[0]), reverse=True):
        if seen < POPULAR * len(draft.gangs):
            shapes.append({"gpu": gpu, "request": {"cpu": cpu}, "share": float(number)})
        seen += number
    return shapes


def _draw(rng: np.random.Generator, pods: int) -> Iterator[int]:
    yield from rng.permutation(pods).tolist()
    while True:
        yield int(rng.integers(pods))


def allocated(instance: GangPlacementInstance, method: str, seed: int) -> float:
    """Per cent of the GPUs that a rule allocates."""
    solution = run_method(find_problem("gang-placement"), instance, method, SolveOptions(seed=seed)).solution
    assert solution is not None
    gpu = {gang.id: gang.pods[0].gpu for gang in instance.gangs}
    return 100 * sum(gpu[name] for name in solution["placement"]) / _total(instance)


def bound(instance: GangPlacementInstance) -> float:
    """Per cent of the GPUs that no policy exceeds, by the certified bound."""
    most = find_problem("gang-placement").bound(instance)
    assert most is not None
    return 100 * WHOLE * float(decode(instance, int(most))[0]) / _total(instance)


def _total(instance: GangPlacementInstance) -> int:
    return sum(sum(node.gpus) for node in instance.nodes)


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line for each rule and seed, then the ranges beside the published ones."""
    parser = argparse.ArgumentParser(prog="openb_allocation", description=__doc__.splitlines()[0])
    for name in ("nodes", "pods", "table"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--methods", nargs="+", choices=[*PUBLISHED, "bound"], default=[*PUBLISHED, "bound"])
    args = parser.parse_args(argv)
    draft = openb(args.pods, args.nodes)
    told = published(args.table, args.pods.stem)
    for method in args.methods:
        found = []
        for seed in range(args.seeds):
            began = time.process_time()
            instance = instance_of(draft, seed, gpus_only=method == "bound")
            found.append(bound(instance) if method == "bound" else allocated(instance, method, seed))
            print(f"{method} seed {seed}: {found[-1]:.2f}% ({time.process_time() - began:.0f} s)", flush=True)
        theirs = told.get(PUBLISHED.get(method, ""), [])
        lines = [
            f"{who} {min(x):.1f} to {max(x):.1f}, mean {np.mean(x):.1f}"
            for who, x in (("ours", found), ("published", theirs))
            if x
        ]
        print(f"{method}: {'; '.join(lines)}", flush=True)


if __name__ == "__main__":
    main()

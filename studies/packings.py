"""Bin packing and perfect packings as rar-ddls on one server: how many `cp` proves, family by family.

``python -m studies.packings [--seeds 10] [--limit 60]`` prints a table.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.solvers.exact.rar_ddls.cp import solve_cp
from schedgap.solvers.result import Deadline, SolveOptions, Status
from studies.library.sources import one_server, packing

Pieces = list[tuple[int, int]]
"""GPUs and slots of each job."""


def perfect(pieces: int, side: int, draw: random.Random) -> Pieces:
    """A square of `side` GPUs and slots cut into so many pieces, most often the largest across its longer side."""
    cut = [(side, side)]
    while len(cut) < pieces:
        place = max(range(len(cut)), key=lambda k: cut[k][0] * cut[k][1] * draw.uniform(0.3, 1.0))
        width, height = cut.pop(place)
        if draw.random() * (width + height) < width and width > 1:
            part = draw.randint(max(1, width // 5), max(1, width - max(1, width // 5)))
            cut += [(part, height), (width - part, height)]
        elif height > 1:
            part = draw.randint(max(1, height // 5), max(1, height - max(1, height // 5)))
            cut += [(width, part), (width, height - part)]
        else:
            cut.append((width, height))
    return cut


def uniform(items: int, low: int, high: int, draw: random.Random) -> Pieces:
    """Items of sizes between two numbers, one slot each."""
    return [(draw.randint(low, high), 1) for _ in range(items)]


FAMILIES: dict[str, tuple[int, Callable[[random.Random], Pieces]]] = {
    "perfect packings, 25 pieces of 200 x 200": (200, lambda draw: perfect(25, 200, draw)),
    "perfect packings, 49 pieces of 200 x 200": (200, lambda draw: perfect(49, 200, draw)),
    "120 items of 150 to 200 into 1,000 (Schwerin)": (1000, lambda draw: uniform(120, 150, 200, draw)),
    "50 items of 1 to 100 into 100 (Scholl)": (100, lambda draw: uniform(50, 1, 100, draw)),
    "100 items of 1 to 100 into 120 (Scholl)": (120, lambda draw: uniform(100, 1, 100, draw)),
    "100 items of 20 to 100 into 150 (Scholl)": (150, lambda draw: uniform(100, 20, 100, draw)),
    "120 items of 1 to 800 into 1,000 (as Hard28, with 120 items)": (1000, lambda draw: uniform(120, 1, 800, draw)),
    "100 items of 1 to 5,000 into 10,000 (as Waescher)": (10000, lambda draw: uniform(100, 1, 5000, draw)),
}
"""Capacity and pieces, after the generators of the families named; drawn anew, not the published files."""


def instances(seed: int) -> dict[str, RarDdlsInstance]:
    """One instance of each family."""
    found = {
        "triplets, 60 items (Falkenauer)": RarDdlsInstance.parse({**packing("triplets", 60, seed)}),
        "triplets, 120 items (Falkenauer)": RarDdlsInstance.parse({**packing("triplets", 120, seed)}),
        "uniform, 120 items (Falkenauer)": RarDdlsInstance.parse({**packing("uniform", 120, seed)}),
    }
    for family, (capacity, pieces) in FAMILIES.items():
        data = one_server(f"{family} {seed}", capacity, pieces(random.Random(seed)))
        found[family] = RarDdlsInstance.parse(data)
    return found


def main() -> None:
    """The table, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds each")
    given = parser.parse_args()
    rows: dict[str, list[tuple[bool, float]]] = {}
    for seed in range(given.seeds):
        for family, instance in instances(seed).items():
            began = time.monotonic()
            result = solve_cp(instance, SolveOptions(deadline=Deadline.after(given.limit), seed=seed))
            rows.setdefault(family, []).append((result.status is Status.OPTIMAL, time.monotonic() - began))
    print("| family | proven | most seconds of those |\n|---|---|---|")
    for family, runs in rows.items():
        proven = [seconds for optimal, seconds in runs if optimal]
        print(f"| {family} | {len(proven)} of {len(runs)} | {max(proven, default=0.0):.1f} |")


if __name__ == "__main__":
    main()

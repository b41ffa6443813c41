"""Rules by which cluster schedulers place gangs, against the certified optimum: four families, one table, one picture.

``python -m studies.placement_rules [--seeds 30] [--scale 1.0] [--out DIR]`` writes ``placement-rules.md`` and
``placement-rules.svg``. Every decision is of one moment: what waits, and what is free. A rule's share is the weight
that it places over the optimum, or over a bound where that is not proven, so that no share is too large; differences
are paired by instance, from the best rule of the family.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

from schedgap.benchmarks.figures.style import canvas, save
from schedgap.benchmarks.intervals import interval, plus_minus
from schedgap.benchmarks.text import markdown_table
from schedgap.catalogue.gang_placement import PROBLEM
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.instance import Json
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.gang_placement.scale import components, decode
from schedgap.solvers.result import Deadline, SolveOptions, Status

Data = dict[str, Json]
RULES: Mapping[str, tuple[str, Data]] = {
    "Kueue, BestFit": ("kueue-best-fit", {}),
    "Kueue, LeastFreeCapacity": ("kueue-least-free", {}),
    "Kueue, MostFreeCapacity (until 0.13)": ("kueue-most-free", {}),
    "kube-scheduler, LeastAllocated": ("kube-least-allocated", {}),
    "kube-scheduler, MostAllocated": ("kube-most-allocated", {}),
    "kube-scheduler, KEP-5732, all domains scored": ("kube-topology", {}),
    "kube-scheduler, KEP-5732, a tenth scored": ("kube-topology", {"scored": 0.1}),
    "KAI-Scheduler, two levels": ("kai-two-level", {}),
    "Ray, PACK": ("ray-pack", {}),
    "Ray, SPREAD": ("ray-spread", {}),
    "FGD": ("fgd", {}),
    "first fit": ("first-fit", {}),
}
"""Names of rules in the table, each with its method and settings."""


def _instance(name: str, nodes: Sequence[Data], gangs: Sequence[Data], levels: Sequence[str] = ()) -> Data:
    waiting = [gang | {"id": f"g{g}", "arrival": g} for g, gang in enumerate(gangs)]
    made = {"problem": "gang-placement", "name": name, "levels": [*levels], "nodes": [*nodes], "gangs": waiting}
    return made | {"objectives": ["weight"]}


def _until(total: float, draw: Callable[[], Data]) -> list[Data]:
    """Gangs, drawn one after another, until they weigh so much."""
    gangs: list[Data] = []
    while sum(gang["weight"] for gang in gangs) < total:
        gangs.append(draw())
    return gangs


def racks(rng: random.Random, scale: float) -> Data:
    """Racks of 20 whole nodes, 50 at scale 1; gangs of 1 to 16 nodes, each in one rack; as much as there is."""
    number = max(2, round(50 * scale))
    nodes = [{"id": f"r{r}n{n}", "domain": [f"r{r}"], "gpus": [1000]} for r in range(number) for n in range(20)]

    def draw() -> Data:
        size = rng.choice((1, 2, 4, 8, 16, 12, 6, 3))
        return {"weight": size, "required": "rack", "pods": [{"count": size, "gpu": 1000}]}

    return _instance("racks", nodes, _until(20 * number, draw), ["rack"])


def hosts(rng: random.Random, scale: float) -> Data:
    """Nodes of 8 GPUs, 64 at scale 1, of which 0, 2 or 4 are busy; gangs of 1 to 8 GPUs, each on one node."""
    nodes = [{"id": f"n{n}", "gpus": [1000] * (8 - rng.choice((0, 0, 2, 4)))} for n in range(max(2, round(64 * scale)))]

    def draw() -> Data:
        size = rng.choice((1, 1, 2, 2, 3, 4, 4, 6, 8))
        return {"weight": size, "required": "node", "pods": [{"count": size, "gpu": 1000}]}

    return _instance("hosts", nodes, _until(sum(len(node["gpus"]) for node in nodes), draw))


def parts(rng: random.Random, scale: float) -> Data:
    """Nodes of 4 GPUs, 16 at scale 1; single pods with a part of one; they ask for 1.05 of what there is."""
    nodes = [{"id": f"n{n}", "gpus": [1000] * 4} for n in range(max(2, round(16 * scale)))]

    def draw() -> Data:
        gpu = rng.choice((200, 250, 300, 350, 400, 450, 500, 600, 700, 1000))
        return {"weight": gpu / 1000, "pods": [{"count": 1, "gpu": gpu}]}

    return _instance("parts", nodes, _until(1.05 * 4 * len(nodes), draw))


def pods(rng: random.Random, scale: float) -> Data:
    """Equal nodes, 8 at scale 1, single pods of processors and memory in groups of 1 to 4, after arXiv 2511.08373."""
    number = max(2, round(8 * scale))
    asked: list[Data] = []
    while len(asked) < 8 * number:
        request = {"cpu": rng.randint(100, 1000), "memory": rng.randint(100, 1000)}
        asked += [request] * min(rng.randint(1, 4), 8 * number - len(asked))
    free = {name: sum(one[name] for one in asked) // number for name in ("cpu", "memory")}
    nodes = [{"id": f"n{n}", "free": free} for n in range(number)]
    return _instance("pods", nodes, [{"weight": 1, "pods": [{"count": 1, "request": one}]} for one in asked])


FAMILIES: Mapping[str, Callable[[random.Random, float], Data]] = {
    "racks": racks,
    "hosts": hosts,
    "parts": parts,
    "pods": pods,
}


def example() -> Data:
    """The example of Kueue's issue 10574: racks with 19, 10 and 10 GPUs, 20 that prefer a rack, 19 that require one."""
    sizes = (19, 10, 10)
    nodes = [
        {"id": f"r{r}n{n}", "domain": [f"r{r}"], "gpus": [1000]} for r, size in enumerate(sizes) for n in range(size)
    ]
    gangs = [
        {"weight": 20, "preferred": "rack", "pods": [{"count": 20, "gpu": 1000}]},
        {"weight": 19, "required": "rack", "pods": [{"count": 19, "gpu": 1000}]},
    ]
    return _instance("kueue-10574", nodes, gangs, ["rack"])


@dataclass
class Measured:
    """One family.

    Attributes
    ----------
    shares : shares of each rule, by instance
    proofs : what the references are: optima by level of proof, or bounds
    """

    shares: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in RULES})
    proofs: Counter[str] = field(default_factory=Counter)

    def best(self) -> str:
        """The rule with the largest mean share."""
        return max(self.shares, key=lambda name: float(np.mean(self.shares[name])))

    def rows(self) -> Iterator[list[str]]:
        """Mean share with its interval, worst share, optima reached, paired difference from the best; rules
        with the same figures share a row."""
        best = np.array(self.shares[self.best()])
        lines: dict[tuple[str, ...], list[str]] = {}
        for name, given in sorted(self.shares.items(), key=lambda pair: -float(np.mean(pair[1]))):
            values = 100 * np.array(given)
            apart = "-" if given == self.shares[self.best()] else plus_minus(interval(values - 100 * best))
            optima = sum(value >= 100 - 1e-9 for value in values)
            cells: tuple[str, ...] = (
                plus_minus(interval(values)),
                f"{values.min():.1f}",
                f"{optima} of {len(values)}",
                apart,
            )
            lines.setdefault(cells, []).append(name)
        for cells, names in lines.items():
            yield ["; ".join(names), *cells]


def weight_placed(instance: GangPlacementInstance, method: str, settings: Data, seed: int) -> Fraction:
    """The weight that a rule places."""
    result = run_method(PROBLEM, instance, method, SolveOptions(seed=seed), settings)
    assert result.solution is not None
    placed = {name for name, given in result.solution["placement"].items() if given}
    return sum((Fraction(str(gang.weight)) for gang in instance.gangs if gang.id in placed), Fraction(0))


def reference(instance: GangPlacementInstance, seconds: float) -> tuple[Fraction, str]:
    """The optimum, or a bound where it is not proven, and what it is.

    "certified": the bound by prices, which the stand-alone checker adds up, is reached.
    """
    result = run_method(PROBLEM, instance, "staged", SolveOptions(deadline=Deadline.after(seconds)))
    assert result.bound is not None and components(instance)[0].kind == "weight"
    value = decode(instance, int(result.bound))[0]
    if result.status is not Status.OPTIMAL:
        return value, "open (bound)"
    return value, "certified" if PROBLEM.bound(instance) == result.objective else "proven by the method's word"


def measured(family: str, seeds: int, scale: float, seconds: float) -> Measured:
    """All rules on all instances of a family."""
    result = Measured()
    for seed in range(1, seeds + 1):
        instance = GangPlacementInstance.parse(FAMILIES[family](random.Random(f"{family} {seed}"), scale))
        most, proof = reference(instance, seconds)
        result.proofs[proof] += 1
        for name, (method, settings) in RULES.items():
            result.shares[name].append(float(weight_placed(instance, method, settings, seed) / most))
    return result


def summary(results: Mapping[str, Measured]) -> str:
    """A row for each rule: mean share by family with its interval and, in brackets, the worst; as Markdown."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for name in RULES:
        shares = [100 * np.array(result.shares[name]) for result in results.values()]
        cells = tuple(f"{plus_minus(interval(found))} ({found.min():.1f})" for found in shares)
        lines.setdefault(cells, []).append(name)
    return markdown_table(("rule", *results), [("; ".join(names), *cells) for cells, names in lines.items()])


def page(results: Mapping[str, Measured], seeds: int) -> str:
    """The table of all families, the tables of each and the example, as Markdown."""
    lines = [summary(results), ""]
    for family, result in results.items():
        kept = ", ".join(f"{count} {proof}" for proof, count in result.proofs.most_common())
        text = (FAMILIES[family].__doc__ or "").strip()
        lines += [f"**{family}**: {text} {seeds} instances; references: {kept}.", ""]
        head = ("rule", "% of the optimum", "worst", "optimal", "from the best rule")
        lines += [markdown_table(head, result.rows()), ""]
    instance = GangPlacementInstance.parse(example())
    most, proof = reference(instance, 10.0)
    lines += [f"**Kueue #10574**: 39 GPUs in racks of 19, 10 and 10; optimum {most} ({proof}).", ""]
    decided: dict[Fraction, list[str]] = {}
    for name, (method, settings) in RULES.items():
        decided.setdefault(weight_placed(instance, method, settings, 1), []).append(name)
    told = [("; ".join(names), f"{placed} of {most}") for placed, names in sorted(decided.items(), reverse=True)]
    lines.append(markdown_table(("rules", "GPUs placed"), told))
    return "\n".join([*lines, ""])


def picture(results: Mapping[str, Measured], path: Path) -> None:
    """Mean shares with their intervals, a panel a family, rules in the order of the table's list."""
    figure = canvas(12, 4.5)
    figure.set_layout_engine("constrained")
    axes = figure.subplots(1, len(results), sharey=True)
    names = list(RULES)[::-1]
    for panel, (family, result) in zip(np.atleast_1d(axes), results.items(), strict=True):
        for y, name in enumerate(names):
            found = interval(100 * np.array(result.shares[name]))
            assert found is not None
            panel.errorbar(found.mean, y, xerr=found.half or 0.0, fmt="o", color="C0", markersize=4, capsize=2)
            panel.plot(100 * min(result.shares[name]), y, "|", color="C3", markersize=8)
        panel.axvline(100, color="0.6", linewidth=0.8)
        panel.set_title(family)
        panel.set_xlabel("% of the optimum")
        panel.set_yticks(range(len(names)), names)
    save(figure, path)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30, help="instances of each family")
    parser.add_argument("--scale", type=float, default=0.4, help="size of the clusters")
    parser.add_argument("--seconds", type=float, default=20.0, help="limit for each optimum")
    parser.add_argument("--out", type=Path, default=Path("results/placement-rules"))
    given = parser.parse_args(argv)
    results = {family: measured(family, given.seeds, given.scale, given.seconds) for family in FAMILIES}
    given.out.mkdir(parents=True, exist_ok=True)
    text = page(results, given.seeds)
    (given.out / "placement-rules.md").write_text(text, encoding="utf-8")
    picture(results, given.out / "placement-rules.svg")
    print(text)


if __name__ == "__main__":
    main()

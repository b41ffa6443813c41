"""Tables IV and V and Figures 4 to 6 of paper 001, regenerated over several seeds.

Writes docs/results-ada-srsf.md and the three figures beside it:

    python -m schedgap.benchmarks.studies.ada_srsf --out docs/results-ada-srsf.md
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from schedgap.benchmarks.figures.ddl_cluster import Distribution, distributions
from schedgap.benchmarks.figures.style import save
from schedgap.benchmarks.instances.ddl_cluster.random import paper
from schedgap.formulations.common.errors import SchedgapError
from schedgap.formulations.common.files import write_text
from schedgap.heuristics.ddl_cluster.policies import run_policy

Floats = NDArray[np.float64]

SEEDS = 10
METRICS = ("utilisation busy", "jct mean", "jct median", "jct 95th")
"""Columns of the tables, in the paper's order."""
COLUMNS = ("GPU utilisation", "mean JCT", "median JCT", "95th JCT")


@dataclass(frozen=True)
class Setting:
    """One row: a scheduling with a placement, and the paper's figures for it (%, s, s, s)."""

    label: str
    policy: str
    placement: str
    kappa: int = 1
    printed: tuple[float, float, float, float] | None = None


PLACEMENTS = (
    Setting("RAND", "ada-srsf", "rand", printed=(19.52, 2881.6, 680.3, 8910.9)),
    Setting("FF", "ada-srsf", "ff", printed=(26.76, 1921.1, 766.1, 6224.6)),
    Setting("LS", "ada-srsf", "ls", printed=(25.14, 2282.41, 749.9, 7224.9)),
    Setting("LWF-1", "ada-srsf", "lwf", printed=(42.78, 1098.57, 487.2, 4024.0)),
)
"""Table IV and Figure 4."""
SCHEDULINGS = (
    Setting("SRSF(1)", "srsf-1", "lwf", printed=(30.65, 1374.84, 459.0, 6283.1)),
    Setting("SRSF(2)", "srsf-2", "lwf", printed=(25.95, 1734.74, 477.0, 7658.6)),
    Setting("SRSF(3)", "srsf-3", "lwf", printed=(25.14, 1750.9, 520.7, 7578.7)),
    Setting("Ada-SRSF", "ada-srsf", "lwf", printed=(42.78, 1098.57, 487.2, 4024.0)),
)
"""Table V and Figure 6."""
KAPPAS = tuple(Setting(f"LWF-{kappa}", "ada-srsf", "lwf", kappa) for kappa in (1, 2, 4, 8, 16))
"""Figure 5; the paper prints no numbers for it."""


@dataclass(frozen=True)
class Sample:
    """The runs of one setting: by seed the metrics, pooled over seeds the JCTs and the GPUs' utilisations."""

    metrics: tuple[Mapping[str, Any], ...]
    jct: Floats
    utilisation: Floats

    def values(self, name: str) -> Floats:
        """One metric by seed."""
        return np.array([row[name] for row in self.metrics], dtype=float)


def samples(settings: Sequence[Setting], seed: int, seeds: int) -> dict[str, Sample]:
    """Every setting on the workloads of `seeds` consecutive seeds from `seed` on; conservation is checked."""
    found: dict[str, Sample] = {}
    for setting in settings:
        rows, flows, used = [], [], []
        for number in range(seed, seed + seeds):
            outcome = run_policy(paper(number), setting.policy, number, setting.placement, setting.kappa)
            rows.append(outcome.metrics)
            flows.append(outcome.flow)
            used.append(outcome.utilisation)
        found[setting.label] = Sample(tuple(rows), np.concatenate(flows), np.concatenate(used))
    return found


def interval(values: Floats) -> tuple[float, float]:
    """Mean, and half the width of its 95% confidence interval by Student's t."""
    if len(values) < 2:
        return float(values.mean()), float("nan")
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(half)


def table_rows(*, seed: int, table: str, seeds: int = 5) -> list[dict[str, Any]]:
    """Rows of Table "IV" or "V" for the suites: mean and half-width by column, and what the paper prints."""
    settings = PLACEMENTS if table == "IV" else SCHEDULINGS
    found = samples(settings, seed, seeds)
    rows = []
    for setting in settings:
        row: dict[str, Any] = {"method": setting.label, "seeds": seeds}
        for place, (metric, column) in enumerate(zip(METRICS, COLUMNS, strict=True)):
            mean, half = interval(found[setting.label].values(metric))
            row[column], row[f"{column} +-"] = mean, half
            printed = None if setting.printed is None else setting.printed[place]
            row[f"{column}, paper"] = printed / 100 if printed is not None and place == 0 else printed
        rows.append(row)
    return rows


def _cell(values: Floats, percent: bool) -> str:
    mean, half = interval(values)
    return f"{100 * mean:.1f} ± {100 * half:.1f} %" if percent else f"{mean:,.0f} ± {half:,.0f}"


def _table(settings: Sequence[Setting], found: Mapping[str, Sample]) -> str:
    """A Markdown table: ours with intervals, the paper's beside it."""
    lines = [
        "| method | GPU utilisation | paper | mean JCT (s) | paper | median JCT (s) | paper | 95th JCT (s) | paper |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for setting in settings:
        cells = [setting.label]
        for place, metric in enumerate(METRICS):
            cells.append(_cell(found[setting.label].values(metric), place == 0))
            printed = None if setting.printed is None else setting.printed[place]
            cells.append("-" if printed is None else f"{printed:.2f} %" if place == 0 else f"{printed:,.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _ratios(settings: Sequence[Setting], found: Mapping[str, Sample], base: str) -> str:
    """Mean JCT of `base` over that of each other setting, seed by seed."""
    lines = [
        f"| {base} against | ratio of mean JCT, 95% interval | smallest | largest | {base} better in | paper |",
        "|---|---|---|---|---|---|",
    ]
    printed = {setting.label: setting.printed for setting in settings}
    for setting in settings:
        if setting.label == base:
            continue
        ratio = found[base].values("jct mean") / found[setting.label].values("jct mean")
        mean, half = interval(ratio)
        ours, theirs = printed[base], setting.printed
        paper_ratio = "-" if ours is None or theirs is None else f"{ours[1] / theirs[1]:.3f}"
        better = f"{int((ratio < 1).sum())} of {len(ratio)}"
        cells = (setting.label, f"{mean:.3f} ± {half:.3f}", f"{ratio.min():.3f}", f"{ratio.max():.3f}", better)
        lines.append("| " + " | ".join((*cells, paper_ratio)) + " |")
    return "\n".join(lines)


_HEAD = """# Ada-SRSF and LWF-kappa: Tables IV and V, Figures 4 to 6 of paper 001

Written by `python -m schedgap.benchmarks.studies.ada_srsf --out docs/results-ada-srsf.md`, seeds {first} to
{last}. The workload is the preset `paper` of ddl-cluster: 160 jobs with the printed gang sizes on 16 servers of 4 V100,
arrivals over 1,200 s, models of Table III. The paper prints neither the shares of the models nor how iterations
are distributed within 1,000 to 6,000, and its workload is one draw; here both are uniform and every number is a
mean over {seeds} draws, with its 95% confidence interval (Student's t). Simulated in continuous time; conservation of
bytes, link time, GPU time and iterations was checked on every run. A GPU's utilisation is the time it computes
over the time from its first placement to its last finish; the paper does not say how it counts.
"""


def page(seed: int, seeds: int, folder: Path | None) -> str:
    """The page; figures are written to `folder` where it is given."""
    placements = samples(PLACEMENTS, seed, seeds)
    schedulings = {**samples(SCHEDULINGS[:-1], seed, seeds), "Ada-SRSF": placements["LWF-1"]}
    kappas = {**samples(KAPPAS[1:], seed, seeds), "LWF-1": placements["LWF-1"]}
    kappas = {setting.label: kappas[setting.label] for setting in KAPPAS}
    figures = (("4", "placements", placements), ("5", "kappa", kappas), ("6", "schedulings", schedulings))
    if folder is not None:
        for number, _, found in figures:
            shown = [
                Distribution(name, sample.jct, sample.utilisation, *interval(sample.values("jct mean")))
                for name, sample in found.items()
            ]
            save(distributions(shown), folder / f"ada-srsf-figure-{number}.svg")
    ada = placements["LWF-1"]
    contended = 100 * float(ada.values("contended").mean())
    different = [*placements.values(), *list(schedulings.values())[:-1], *list(kappas.values())[1:]]
    speed = max(float(sample.values("message speed").max()) for sample in different)
    messages = int(sum(sample.values("all-reduces").sum() for sample in different))
    parts = [
        _HEAD.format(first=seed, last=seed + seeds - 1, seeds=seeds),
        "## Table IV: placements under Ada-SRSF\n",
        _table(PLACEMENTS, placements) + "\n",
        _ratios(PLACEMENTS, placements, "LWF-1") + "\n",
        "## Table V: schedulings with LWF-1\n",
        _table(SCHEDULINGS, schedulings) + "\n",
        _ratios(SCHEDULINGS, schedulings, "Ada-SRSF") + "\n",
        "## Figure 5: kappa\n",
        _table(KAPPAS, kappas) + "\n",
        _ratios(KAPPAS, kappas, "LWF-1") + "\n",
        "## Figures\n",
        *(f"![Figure {number}: {what}](ada-srsf-figure-{number}.svg)\n" for number, what, _ in figures),
        "## Conservation\n",
        f"Of the {messages:,} all-reduces of these runs the fastest took {1 / speed:.6f} times latency + size b; under",
        f"Ada-SRSF with LWF-1 {contended:.1f}% of them met another one.\n",
    ]
    return "\n".join(parts)


MARK = "<!-- generated above, written below -->"
"""What follows this line in the page is kept when it is written again: the discussion of the numbers."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; 2 on bad input."""
    parser = argparse.ArgumentParser(prog="ada_srsf", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: standard output, without figures")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N")
    given = parser.parse_args(arguments)
    try:
        text = page(given.seed, given.seeds, None if given.out is None else given.out.parent)
        if given.out is None:
            print(text, end="")
            return 0
        kept = ""
        if given.out.exists():
            _, mark, kept = given.out.read_text(encoding="utf-8").partition(MARK)
            kept = mark + kept
        write_text(given.out, f"{text}\n{kept}" if kept else text)
    except SchedgapError as error:
        print(f"ada_srsf: error: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())

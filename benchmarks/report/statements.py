"""The first table and the first picture of a run: every statement of the papers beside what is measured of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from schedgap.benchmarks.figures.palette import GRID, INK
from schedgap.benchmarks.figures.style import hover, log_scale, new_figure, plain_axes
from schedgap.benchmarks.judging.ledger_verdicts import COUNTEREXAMPLES, ledger_verdict
from schedgap.benchmarks.judging.statement import Statement
from schedgap.benchmarks.report.sheet import Column, Marked, Sheet
from schedgap.benchmarks.text import significant

REFUTED, HELD = "#D55E00", "#0072B2"
UNBOUNDED = "inf on {}"
"""The worst ratio where the heuristic has value 0 where more is possible on so many instances."""
SHARES = 1e-3, 10.0
"""The range of shares that the picture shows; what lies outside is drawn at its end, as an arrow."""


def statement_sheet(rows: Sequence[Statement]) -> Sheet:
    """One line for each theorem, lemma and corollary, a repaired or other reading beneath the printed one."""
    columns = (
        Column("paper", right=False, heading=True),
        Column("statement", "ours: repaired; reading: the printed one, read in another way", right=False, width=32),
        Column("it says", right=False, page=True, plain="what it says"),
        Column("of", "the heuristic that it is about", right=False, plain="about"),
        Column("on", "instances to which it applies, of those drawn to meet its assumptions", plain="applies to"),
        Column("mean", "mean ratio to the proven optimum, without unbounded ones", plain="mean ratio"),
        Column("worst", "largest ratio; inf on k: value 0 on so many, where more is possible", plain="worst ratio"),
        Column("load", "largest load over capacity of answers that may exceed it, whose ratio may be below 1"),
        Column("bound", "the proven bound on the ratio, on the instance of the largest share", plain="bound there"),
        Column(
            "share",
            "the largest share of its bound that an instance uses (the ratio over the bound, or the left over the right"
            " side); more than 1 refutes the statement",
            plain="share of the bound used, worst",
        ),
        Column("verdict", "on these instances; what does not refute a statement has not proven it", right=False),
    )
    notes = [f"{row.id}: {row.measured}." for row in rows if row.measured]
    notes += [f"{row.id} was not tried: {row.missing}." for row in rows if row.missing]
    return Sheet("What is proven, and what is measured", columns, [_cells(row) for row in rows], tuple(notes))


def _cells(row: Statement) -> list[str]:
    ratios = [point.ratio for point in row.points if point.ratio is not None]
    finite = [ratio for ratio in ratios if math.isfinite(ratio)]
    loads = [point.load for point in row.points if point.load is not None]
    nearest = max(row.points, key=lambda point: -1.0 if point.share is None else point.share, default=None)
    each = f" x {row.per_sample}" if row.shape == "samples" and row.per_sample > 1 else ""
    link = f"{COUNTEREXAMPLES}/{row.id}.json" if ledger_verdict(row.id).counterexample is not None else ""
    kind = "refuted" if row.is_refuted else "held" if row.applied else ""
    return [
        f"{row.paper}: {row.problem}",
        _name(row),
        row.text,
        row.method or "-",
        "-" if row.shape == "measured" or row.missing else f"{row.applied} of {row.drawn}{each}",
        significant(math.fsum(finite) / len(finite)) if finite else "-",
        _worst(ratios),
        _top(loads) if loads else "-",
        "-" if nearest is None or nearest.bound is None else significant(nearest.bound),
        _top(row.shares) if row.shares else "-",
        Marked(row.verdict, kind, link),
    ]


def _worst(ratios: Sequence[float]) -> str:
    unbounded = sum(math.isinf(ratio) for ratio in ratios)
    return "-" if not ratios else UNBOUNDED.format(unbounded) if unbounded else _top(ratios)


def _top(values: Sequence[float]) -> str:
    return significant(max(values))


def _name(row: Statement) -> str:
    """Its name without the paper's number."""
    name = row.id.partition("-")[2]
    if row.kind == "printed" or name.endswith("repaired"):
        return name.replace("-repaired", ", ours")
    return f"{name}, {'ours' if row.kind == 'repaired' else row.kind}"


def statement_figure(rows: Sequence[Statement]) -> Figure | None:
    """A row for each statement, a dot for each instance at the share of its own bound that it uses, a line at 1.

    None where there is no share to draw.
    """
    shown = [row for row in rows if row.shares]
    if not shown:
        return None
    least, most = SHARES
    figure = new_figure(6.6, 0.2 * len(shown) + 1.2)
    axes = figure.add_axes((0.36, 0.8 / figure.get_figheight(), 0.61, 1 - 1.0 / figure.get_figheight()))
    plain_axes(axes)
    log_scale(axes, x=10)
    axes.set_xlim(0.8 * least, 1.25 * most)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.axvline(1.0, color=INK, linewidth=1.0)
    for place, row in enumerate(shown):
        axes.axhline(place, color=GRID, linewidth=0.5, zorder=0)
        known = [(point.where, point.share) for point in row.points if point.share is not None]
        for marker, inside in (("o", True), (">", False)):
            drawn = [(where, share) for where, share in known if (share <= most) is inside]
            colours = [REFUTED if share > 1 + 1e-9 else HELD for _, share in drawn]
            spots = [min(most, max(least, share)) for _, share in drawn]
            dots = axes.scatter(spots, [place] * len(spots), s=18, c=colours, alpha=0.7, marker=marker)
            hover(dots, [f"{row.id}, {where}: {significant(share)} of its bound" for where, share in drawn])
    axes.set_yticks(range(len(shown)), [f"{row.paper} {_name(row)}" for row in shown])
    axes.tick_params(axis="y", labelsize=7.5, length=0)
    axes.set_xlabel("share of its bound; beyond 1 the statement fails", fontsize=9)
    return figure

"""Figures of a report: ratios against the bounds, how fast exact methods prove, how soon they have good schedules."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from schedgap.benchmarks.anytime import TARGETS, curve_of, horizon, mean_descent, time_to_ratio
from schedgap.benchmarks.figures.palette import GRID, INK, MARK, PALETTE
from schedgap.benchmarks.figures.style import hover, new_figure, plain_axes, whole_numbers
from schedgap.benchmarks.report.aggregate import Block, Claim, blocks, claims, headline
from schedgap.benchmarks.text import number, seconds
from schedgap.catalogue.problem import Problem

REPAIRED = "#0072B2"
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = "osD^vPX*"
LOG = (1.0, 2.0, 5.0)
"""Ticks of a logarithmic axis, in each power of ten."""
PERCENT = FuncFormatter(lambda value, _: f"{100 * value:.0f}%")
LEAST_SECONDS = 1e-3
"""The left end of an axis of seconds: what came sooner is drawn there."""
SECONDS = "seconds, one thread, building included"
WRAP = 36
"""Characters of a line of a legend."""


def places_of(runs: pd.DataFrame) -> dict[str, int]:
    """A number for each method of a report, heuristics first: its colour and its line in every figure."""
    ordered = runs.assign(exact=~runs.heuristic).sort_values("exact", kind="stable")
    return {str(name): place for place, name in enumerate(dict.fromkeys(ordered.label))}


def ratio_figure(problem: Problem, runs: pd.DataFrame, places: Mapping[str, int] | None = None) -> Figure | None:
    """Every heuristic's ratios, one dot per instance, with the values of its proven bounds.

    Filled dots are ratios to a proven optimum, hollow ones to a bound. The thin bar spans the values that a
    proven bound takes on these instances: printed, or repaired. None where there is no ratio to draw.
    """
    mine = runs[runs.heuristic].assign(shown=runs.ratio.fillna(runs.own_ratio))
    rows = [(str(name), part) for name, part in mine.groupby("label", sort=False) if part.shown.notna().any()]
    if not rows:
        return None
    places = places or places_of(runs)
    bounds = claims(runs)
    heads = [claim for name, _ in rows for kind in ("printed", "repaired") if (claim := headline(bounds, name, kind))]
    least = [claim.least for claim in heads if claim.least is not None and math.isfinite(claim.least)]
    # Wide enough for every dot and for where each bound begins; a bound that goes on beyond is an arrow.
    finite = [value for _, part in rows for value in part.shown if math.isfinite(value)]
    largest = max([1.1, *(1.08 * v for v in finite), *(1.1 * b for b in least if b < 50)])
    height = 0.7 * len(rows) + 1.75
    figure = new_figure(9.0, height)
    names = [textwrap.fill(name, 24, break_on_hyphens=False) for name, _ in rows]
    left = max(0.16, 0.03 + 0.0085 * max(len(line) for name in names for line in name.splitlines()))
    axes = figure.add_axes((left, 0.95 / height, 0.9 - left, (height - 1.5) / height))
    for y, (name, part) in enumerate(rows):
        _draw_ratios(axes, y, part, largest, _line_colour(places[name]))
        _draw_bounds(axes, y, [headline(bounds, name, kind) for kind in ("printed", "repaired")], largest)
    axes.set_yticks(range(len(rows)), names, fontsize=10)
    axes.set_ylim(len(rows) - 0.35, -0.5)
    _ratio_axis(axes, largest)
    axes.axvline(1.0, color="#888888", linewidth=0.8, zorder=0)
    _named(axes, f"{problem.id}: ratio of each heuristic, one dot per instance", "ratio (1 is optimal)")
    dot: dict[str, Any] = {"linestyle": "", "color": INK, "markersize": 5}
    bar: dict[str, Any] = {"linewidth": 2.5, "marker": "|", "markersize": 8}
    kinds = {claim.guarantee.kind for claim in heads if claim.least is not None}
    handles = [
        Line2D([], [], marker="o", label="to optimum", **dot),
        Line2D([], [], marker="o", markerfacecolor="white", label="to bound", **dot),
        *([Line2D([], [], marker=">", label="earned nothing", **dot)] if (mine.shown == math.inf).any() else []),
        Line2D([], [], marker="|", markeredgewidth=2, label="mean, to optimum where known", **dot | {"markersize": 12}),
        *([Line2D([], [], color=MARK, label="printed bound", **bar)] if "printed" in kinds else []),
        *([Line2D([], [], color=REPAIRED, label="repaired bound", **bar)] if "repaired" in kinds else []),
    ]
    spacing = {"borderpad": 0.2, "columnspacing": 1.0, "handletextpad": 0.4}
    figure.legend(handles=handles, loc="lower center", ncols=6, fontsize=8, frameon=False, **spacing)
    return figure


def _draw_ratios(axes: Axes, y: int, mine: pd.DataFrame, largest: float, hue: str) -> None:
    """The dots of one heuristic, and its mean."""
    kinds = (mine.ratio_to == "optimum", mine.ratio_to == "bound", mine.ratio.isna())
    drawn = [mine.shown[kind].dropna() for kind in kinds]
    for filled, values in zip((True, False, False), drawn, strict=True):
        # Equal values fan out around the row's middle, so that none hides another.
        seen: dict[float, int] = {}
        xs, ys = [], []
        if (values == math.inf).any():  # beyond every ratio: an arrow at the end, no dot
            axes.plot([largest], [y - 0.05], ">", color=hue, markersize=7, markeredgecolor=INK, clip_on=False)
        told: list[str] = []
        finite = mine.assign(drawn=values)[["instance", "batch", "drawn"]].sort_values("drawn")
        for name, group, value in finite[finite.drawn < math.inf].itertuples(index=False):
            told.append(f"{name or group}: ratio {value:.4g}")
            key = round(value, 3)
            k = seen[key] = seen.get(key, -1) + 1
            xs.append(value)
            ys.append(y - 0.05 + min(0.2, 0.035 * ((k + 1) // 2)) * (1 if k % 2 else -1))
        dot: dict[str, Any] = {"markersize": 4.8, "markeredgecolor": INK, "markeredgewidth": 0.5, "alpha": 0.85}
        dot["markerfacecolor"] = hue if filled else "white"
        (dots,) = axes.plot(xs, ys, "o", zorder=3, **dot)
        hover(dots, told)
    # Never a mean of both kinds: of those to the optimum, where there are any. None over survivors only.
    first = next(values for values in drawn if len(values))
    mean = math.fsum(first) / len(first)
    failed = mine.objective.isna() & (~mine.infeasible | (mine.error != ""))
    if math.isfinite(mean) and not failed.any():
        axes.plot([min(mean, largest)], [y - 0.05], marker="|", markersize=17, markeredgewidth=2.2, color=INK, zorder=4)


def _draw_bounds(axes: Axes, y: int, bounds: Sequence[Claim | None], largest: float) -> None:
    """The values of each bound as a thin bar; what lies beyond the axis is told in words."""
    for claim, colour, offset in zip(bounds, (MARK, REPAIRED), (0.24, 0.4), strict=True):
        if claim is None or claim.least is None or claim.most is None:
            continue
        low, high, level = min(claim.least, largest), min(claim.most, largest), y + offset
        beyond = claim.most > largest
        axes.plot([low, high], [level, level], color=colour, linewidth=2.0, zorder=2, solid_capstyle="butt")
        axes.plot([low], [level], color=colour, marker="|", markersize=7, zorder=2)
        axes.plot([high], [level], color=colour, marker=">" if beyond else "|", markersize=5 if beyond else 7, zorder=2)
        words = [f"to {number(claim.most, 3)}"] if beyond else []
        words += ["refuted"] if claim.kind == "refuted" else []
        if words:
            beside: dict[str, Any] = {"xytext": (7, 0), "textcoords": "offset points", "annotation_clip": False}
            axes.annotate(", ".join(words), (high, level), fontsize=7.5, color=colour, va="center", **beside)


def _ratio_axis(axes: Axes, largest: float) -> None:
    """Linear up to 6, logarithmic beyond."""
    if largest > 6:
        _log_ticks(axes, (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if largest <= 50 else LOG if largest <= 1e4 else (1.0,))
        axes.set_xlim(0.97, largest)
    else:
        axes.set_xlim(1 - 0.03 * (largest - 1), largest)
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)


def profile_figures(problem: Problem, runs: pd.DataFrame, places: Mapping[str, int]) -> list[Figure]:
    """Performance profiles: the share of instances on which a method is within a factor of the best schedule known.

    One for each set of heuristics that ran on the same instances, those with a proven optimum and the others
    together. A method that found nothing, or has value 0 where more is possible, never counts.
    """
    groups: dict[tuple[str, ...], list[Block]] = {}
    for block in blocks(runs):
        if block.to != "own bound" and len(block.labels) > 1:
            groups.setdefault(block.labels, []).append(block)
    figures = []
    for labels, members in groups.items():
        names = dict.fromkeys(batch for block in members for batch in block.batches)
        where = f" ({', '.join(names)})" if len(groups) > 1 else ""
        pooled = pd.concat([block.to_best for block in members])
        to_best = dict(zip(labels, pooled.T.to_numpy().tolist(), strict=True))
        figures.append(_profile_figure(problem, to_best, where, places))
    return figures


def _profile_figure(
    problem: Problem, to_best: Mapping[str, Sequence[float]], where: str, places: Mapping[str, int]
) -> Figure:
    finite = [value for values in to_best.values() for value in values if math.isfinite(value)]
    largest = 1.05 * max([1.5, *finite])
    axes = _curves()
    for name, values in to_best.items():
        ordered = sorted(value for value in values if math.isfinite(value))
        xs = [1.0, *(max(1.0, value) for value in ordered), largest]
        ys = [0.0, *((k + 1) / len(values) for k in range(len(ordered))), len(ordered) / len(values)]
        _staircase(axes, places[name], xs, ys, f"{name} ({len(ordered)} of {len(values)} solved)")
    _ratio_axis(axes, largest)
    axes.set_xlim(1.0 if largest > 6 else 1 - 0.01 * (largest - 1), largest)
    axes.set_ylim(0, 1.03)
    axes.yaxis.set_major_formatter(PERCENT)
    factor = "factor of the best schedule known (the optimum where it is proven)"
    title = f"{problem.id}: instances solved within a factor of the best{where}"
    return _named(axes, title, factor, "share of instances")


def _staircase(axes: Axes, place: int, xs: Sequence[float], ys: Sequence[float], label: str) -> None:
    colour, line = _line_colour(place), LINES[place % len(LINES)]
    words = textwrap.fill(label, WRAP)
    (drawn,) = axes.step(xs, ys, where="post", color=colour, linestyle=line, linewidth=1.9, label=words)
    hover(drawn, [label])


def proof_figure(problem: Problem, runs: pd.DataFrame, places: Mapping[str, int]) -> Figure | None:
    """How many instances each exact method has proven within t seconds, building included.

    Only groups on which at least two exact methods ran are counted, each method on the same instances.
    None where there are none.
    """
    exact = runs[~runs.heuristic]
    exact = exact[exact.groupby("one").label.transform("size") > 1]
    proven = exact[exact.status.isin(["optimal", "infeasible"]) & exact.seconds.notna()]
    tried = exact.groupby("label", sort=False).size()
    times = {name: [max(s, 1e-3) for s in proven.seconds[proven.label == name]] for name in tried.index}
    if not any(times.values()):
        return None
    axes = _curves()
    slowest = max(value for values in times.values() for value in values)
    fastest = min(value for values in times.values() for value in values)
    for name, values in times.items():
        ordered = sorted(values)
        xs = [fastest * 0.8, *ordered, slowest * 1.3]
        ys = [0, *range(1, len(ordered) + 1), len(ordered)]
        _staircase(axes, places[name], xs, ys, f"{name} ({len(ordered)} of {tried[name]})")
    _log_ticks(axes, LOG)
    axes.set_xlim(fastest * 0.8, slowest * 1.3)
    axes.set_ylim(bottom=0)
    whole_numbers(axes.yaxis)
    title = f"{problem.id}: instances proven within t seconds by each exact method"
    return _named(axes, title, SECONDS, "instances proven")


def anytime_figure(problem: Problem, runs: pd.DataFrame, places: Mapping[str, int]) -> Figure | None:
    """The mean primal gap of each exact method and search after t seconds, where all of them ran.

    A method that proves early keeps what it has. None where fewer than two methods have curves on the same instances.
    """
    shared = shared_curves(runs)
    if shared.empty:
        return None
    least = LEAST_SECONDS
    until = max(least, horizon(shared.curve))
    axes = _curves()
    for name, mine in shared.groupby("label", sort=False):
        known = mean_descent(list(zip(mine.curve, mine.best, strict=True)))
        xs = [least, *(max(least, t) for t, _ in known), until]
        ys = [1.0, *(gap for _, gap in known), known[-1][1] if known else 1.0]
        integral = seconds(mine.primal_integral.mean())
        _staircase(axes, places[str(name)], xs, ys, f"{name} (integral {integral} s)")
    title = f"{problem.id}: how soon {shared.one.nunique()} instances had good schedules"
    return _shares_over_time(axes, title, "mean gap to the best schedule known")


def shared_curves(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with a `curve` over time, on instances where all methods that have any have one; none of one method."""
    curves = runs.assign(curve=runs.record.map(lambda record: curve_of(record.result)))
    curves = curves[curves.primal_integral.notna()].drop_duplicates(["one", "label"])
    labels = curves.label.nunique()
    shared: pd.DataFrame = curves[(curves.groupby("one").label.transform("size") == labels) & (labels > 1)]
    return shared


def times_to_ratios(problem: Problem, runs: pd.DataFrame) -> pd.DataFrame:
    """A row for each run with a curve and each of `TARGETS`: seconds until the ratio was at most so much, or empty."""
    return _times(problem, shared_curves(runs))


def _times(problem: Problem, shared: pd.DataFrame) -> pd.DataFrame:
    runs_of_all = zip(shared.instance, shared.label, shared.curve, shared.best, strict=True)
    rows = [
        (problem.id, instance, label, target, time_to_ratio(curve, float(best), problem.sense, target))
        for instance, label, curve, best in runs_of_all
        for target in TARGETS
    ]
    return pd.DataFrame(rows, columns=["problem", "instance", "method", "ratio", "seconds"])


def reaching_figure(problem: Problem, runs: pd.DataFrame, places: Mapping[str, int]) -> Figure | None:
    """The share of (instance, ratio) pairs that each exact method and search has reached after t seconds.

    An empirical distribution of run times over targets (N. Hansen and others, *COCO*, Optimization Methods and Software
    36, 2021): a pair that is never reached stays in the denominator. None where :func:`anytime_figure` is.
    """
    shared = shared_curves(runs)
    if shared.empty:
        return None
    times = _times(problem, shared)
    least = LEAST_SECONDS
    until = max(least, horizon(shared.curve))
    axes = _curves()
    for name, mine in times.groupby("method", sort=False):
        ordered = sorted(max(least, value) for value in mine.seconds.dropna())
        shares = [place / len(mine) for place in range(1, len(ordered) + 1)]
        xs, ys = [least, *ordered, until], [0.0, *shares, shares[-1] if shares else 0.0]
        _staircase(axes, places[str(name)], xs, ys, f"{name} ({len(ordered)} of {len(mine)})")
    title = f"{problem.id}: ratios of {TARGETS[0]:g} to {TARGETS[-1]:g} reached on {shared.one.nunique()} instances"
    return _shares_over_time(axes, title, "(instance, ratio) pairs reached")


def _shares_over_time(axes: Axes, title: str, what: str) -> Figure:
    """The figure of staircases in percent over seconds."""
    _log_ticks(axes, LOG)
    axes.set_ylim(-0.02, 1.02)
    axes.yaxis.set_major_formatter(PERCENT)
    return _named(axes, title, SECONDS, what)


def _curves() -> Axes:
    """The axes of a figure for staircases, whose names :func:`_named` puts beside them."""
    return new_figure(9.0, 3.9).add_subplot()


def _log_ticks(axes: Axes, subs: Sequence[float]) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=subs))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_axisbelow(True)


def _named(axes: Axes, title: str, along: str, up: str = "") -> Figure:
    """The figure with a title and names of its axes; the names of staircases right of them, which take what is left."""
    axes.set_title(title, fontsize=11, loc="left", color=INK)
    axes.set_xlabel(along, fontsize=10, color=INK)
    plain_axes(axes)
    figure = axes.get_figure(root=True)
    assert figure is not None
    if up:
        axes.grid(color=GRID, linewidth=0.8)
        axes.set_ylabel(up, fontsize=10, color=INK)
        legend = axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9, frameon=False)
        room = legend.get_window_extent().width / figure.bbox.width
        axes.set_position((0.09, 0.15, min(0.70, 0.89 - room), 0.74))
    return figure


def _line_colour(place: int) -> str:
    """Dark enough for a thin line: the palette without its yellow."""
    dark = [hue for hue in PALETTE if hue != "#F0E442"]
    order = (5, 1, 2, 4, 0, 3, 6)
    return dark[order[place % len(order)] % len(dark)]

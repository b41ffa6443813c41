"""A network with the rings that are embedded into it, link loads coloured."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Rectangle, Wedge

from schedgap.benchmarks.figures.node_layout import MOST_IN_A_ROW, layout
from schedgap.benchmarks.figures.palette import INK
from schedgap.benchmarks.figures.style import hover, ink_on, new_figure
from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.g_vne.instance import GVneInstance

LOAD = LinearSegmentedColormap.from_list("load", ["#e4e4e4", "#c9d7e4", "#f5c26b", "#d7301f"])
"""Colour of a link by its used share: grey is empty, red is full."""


OVER = "#54006e"
"""A server or link that more is asked of than it has, or a link that is not there (solutions that are not feasible)."""


JOBS = (
    *("#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#789600", "#694bd2", "#870f2d", "#693c00"),
    *("#ff7800", "#d20087", "#3ce178", "#5a3c78", "#ffa596", "#3ce1e1", "#2d4b0f", "#b42dff"),
    *("#a5d287", "#ff005a", "#a5a5ff", "#f087ff", "#ffb400", "#0000ff", "#00e100", "#ff00e1"),
)
"""Colours of jobs, repeated after the last: no greys, at least 26 apart in CIELAB, also from links and nodes."""


MOST_IN_LEGEND = len(JOBS)


MOST_NAMED = 12
"""Switches that are named although servers are too small for names."""


_WIDTH, _MARGIN, _PANEL = 11.0, 0.55, 2.3


def network(instance: GVneInstance, solution: Solution) -> Figure:
    """Draw the network of an instance and the rings of a solution.

    Each direction of a link is a line of its own, beside the middle on its right-hand side, coloured by the share
    of its bandwidth that is used. A job has one colour: its ring follows the links it uses, once for every use,
    and fills a part of each server that hosts its workers, as large as the part of the scarcest resource that they
    take. Switches are small squares.

    Parameters
    ----------
    instance : servers, links and jobs
    solution : ``{"rings": ...}``; it need not keep capacities
    """
    rings: Mapping[str, Any] = solution.get("rings", {})
    points = layout(instance)
    hosts = sum(1 for server in instance.servers if server.resources)
    wide = _WIDTH - _PANEL - 2 * _MARGIN
    flat = hosts <= MOST_IN_A_ROW and len({round(float(y), 9) for _, y in points}) <= 5
    tall = 4.2 if flat else wide
    figure = new_figure(_WIDTH, tall + 2 * _MARGIN)
    axes = figure.add_axes((0, 0, (_WIDTH - _PANEL) / _WIDTH, 1))
    axes.set_xlim(0, _WIDTH - _PANEL)
    axes.set_ylim(0, tall + 2 * _MARGIN)
    axes.set_aspect("equal")
    axes.set_axis_off()
    places = points * np.array([wide, tall]) + _MARGIN
    size = _node_size(places)
    uses = _uses(instance, rings)
    _draw_links(axes, instance, places, size, uses)
    _draw_rings(axes, instance, places, size, uses)
    _draw_nodes(axes, instance, places, size, rings)
    _panel(figure, tall + 2 * _MARGIN, instance, rings)
    return figure


def _job_colour(job: int) -> str:
    return JOBS[job % len(JOBS)]


def _node_size(places: Floats) -> float:
    """Radius of a server in inches: so that near ones do not touch, within limits."""
    if len(places) < 2:
        return 0.25
    distance = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))
    np.fill_diagonal(distance, np.inf)
    return float(min(0.22, max(0.035, 0.36 * np.quantile(distance.min(axis=1), 0.1))))


def _uses(instance: GVneInstance, rings: Mapping[str, Any]) -> dict[tuple[int, int], list[int]]:
    """The jobs that use each pair of nodes, once for each use."""
    where = instance.server_index
    found: dict[tuple[int, int], list[int]] = {}
    for name, ring in rings.items():
        for route in ring["routes"]:
            for a, b in itertools.pairwise(route):
                found.setdefault((where[a], where[b]), []).append(instance.job_index[name])
    return found


def _beside(places: Floats, pair: tuple[int, int], shift: float) -> list[tuple[float, float]]:
    """The segment between two nodes, moved to its right by `shift` inches."""
    a, b = places[pair[0]], places[pair[1]]
    length = max(1e-9, math.hypot(*(b - a)))
    right = np.array([(b - a)[1], -(b - a)[0]]) / length * shift
    return [tuple(a + right), tuple(b + right)]


def _draw_links(
    axes: Axes, instance: GVneInstance, places: Floats, size: float, uses: Mapping[tuple[int, int], list[int]]
) -> None:
    drawn = []
    for pair in [*instance.link_index, *(pair for pair in uses if pair not in instance.link_index)]:
        drawn.append((_share_of_link(instance, pair, uses), _beside(places, pair, 0.16 * size), pair))
    drawn.sort(key=lambda item: item[0])  # the fullest on top
    colours = [OVER if share > 1 + 1e-9 else LOAD(min(1.0, share)) for share, *_ in drawn]
    width = max(0.8, 72 * 0.2 * size)
    links = LineCollection([line for _, line, _ in drawn], colors=colours, linewidths=width, zorder=1, capstyle="butt")
    told = [f"{_ends(instance, pair)}: {_part(share)} of its bandwidth" for share, _, pair in drawn]
    axes.add_collection(hover(links, told))


def _draw_rings(
    axes: Axes, instance: GVneInstance, places: Floats, size: float, uses: Mapping[tuple[int, int], list[int]]
) -> None:
    """Each use of a link as a line of the job's colour; many uses of one link share a fixed width."""
    lines, colours, widths, told = [], [], [], []
    for pair, jobs in uses.items():
        step = min(0.17 * size, 0.75 * size / len(jobs))
        for place, job in enumerate(sorted(jobs)):
            lines.append(_beside(places, pair, 0.3 * size + step * (place + 0.5)))
            colours.append(_job_colour(job))
            widths.append(max(0.3, 72 * step * 0.75))
            told.append(f"{instance.jobs[job].id}: {_ends(instance, pair)}")
    rings = LineCollection(lines, colors=colours, linewidths=widths, zorder=2, capstyle="round")
    axes.add_collection(hover(rings, told))


def _part(share: float) -> str:
    return f"{share:.0%}" if math.isfinite(share) else "more than all"


def _ends(instance: GVneInstance, pair: tuple[int, int]) -> str:
    return " to ".join(instance.servers[node].id for node in pair)


def _draw_nodes(axes: Axes, instance: GVneInstance, places: Floats, size: float, rings: Mapping[str, Any]) -> None:
    """Servers as pies of the jobs they host, switches as squares, names where there is room."""
    hosted = _hosted(instance, rings)
    switches = sum(1 for server in instance.servers if not server.resources)
    room = min(8.0, size * 72 * 0.75)
    for node, server in enumerate(instance.servers):
        x, y = float(places[node][0]), float(places[node][1])
        if not server.resources:
            half = 0.6 * size
            square = Rectangle((x - half, y - half), 2 * half, 2 * half, facecolor="#555555", zorder=4)
            axes.add_patch(hover(square, [f"switch {server.id}"]))
        else:
            circle = Circle((x, y), size, facecolor="white", edgecolor="#444444", linewidth=0.8, zorder=3)
            axes.add_patch(hover(circle, [f"server {server.id}"]))
            if _overfilled(instance, node, hosted[node]):
                axes.add_patch(Circle((x, y), 1.12 * size, fill=False, edgecolor=OVER, linewidth=2.5, zorder=5))
            angle, dark = 90.0, 0.0
            for job, count in sorted(hosted[node].items()):
                share = _share(server.resources, instance.jobs[job].demand, count)
                end = angle - 360 * min(1.0, share)
                colours: dict[str, Any] = {"facecolor": _job_colour(job), "edgecolor": "#444444"}
                told = (
                    f"{instance.jobs[job].id}: {count} worker{'s' * (count > 1)} on {server.id}, {_part(share)} of it"
                )
                axes.add_patch(hover(Wedge((x, y), size, end, angle, linewidth=0.4, zorder=4, **colours), [told]))
                angle = end
                dark += share if ink_on(to_rgb(_job_colour(job))) != INK else 0.0
        letters = 7.0 if not server.resources and switches <= MOST_NAMED else room
        if letters >= 4:
            above = 0.0 if server.resources else size
            ink = "white" if server.resources and dark > 0.7 else INK
            place: dict[str, Any] = {"ha": "center", "va": "center" if server.resources else "bottom", "zorder": 5}
            axes.text(x, y + above, server.id[:10], fontsize=letters, color=ink, **place)


def _hosted(instance: GVneInstance, rings: Mapping[str, Any]) -> list[dict[int, int]]:
    """Workers by job on each node."""
    hosted: list[dict[int, int]] = [{} for _ in instance.servers]
    for name, ring in rings.items():
        for server in ring["workers"]:
            there, job = hosted[instance.server_index[server]], instance.job_index[name]
            there[job] = there.get(job, 0) + 1
    return hosted


def _overfilled(instance: GVneInstance, node: int, hosted: Mapping[int, int]) -> bool:
    """Whether a node hosts more than it has."""
    used: dict[str, float] = {}
    for job, count in hosted.items():
        for name, amount in instance.jobs[job].demand.items():
            used[name] = used.get(name, 0.0) + count * amount
    there = instance.servers[node].resources
    return any(amount > there.get(name, 0.0) * (1 + 1e-9) for name, amount in used.items())


def _share(resources: Mapping[str, float], demand: Mapping[str, float], count: int) -> float:
    """The largest part of one of a server's resources that `count` workers take."""
    parts = [count * amount / resources[name] for name, amount in demand.items() if resources.get(name, 0) > 0]
    return max(parts, default=1.0)


def _panel(figure: Figure, height: float, instance: GVneInstance, rings: Mapping[str, Any]) -> None:
    """The jobs' colours and ring sizes, what the marks mean, and the scale of the loads; `height` in inches."""
    named = [job.id for job in instance.jobs if job.id in rings]
    handles = []
    for name in named[:MOST_IN_LEGEND]:
        size, servers = len(rings[name]["workers"]), len(set(rings[name]["workers"]))
        label = f"{name[:14]}: {size} on {servers}"
        handles.append(Line2D([], [], color=_job_colour(instance.job_index[name]), linewidth=5, label=label))
    handles += [
        Line2D(
            [], [], marker="o", linestyle="", color="#444444", markerfacecolor="white", label="server: workers as a pie"
        ),
        Line2D([], [], marker="s", linestyle="", color="#555555", label="switch"),
    ]
    title = f"{len(named)} of {len(instance.jobs)} jobs embedded"
    if named:
        first = f", the first {MOST_IN_LEGEND}" if len(named) > MOST_IN_LEGEND else ""
        title += f"\n(workers on servers{first})"
    figure.legend(
        handles=handles,
        title=title,
        loc="upper left",
        bbox_to_anchor=((_WIDTH - _PANEL) / _WIDTH, 0.98),
        frameon=False,
        fontsize=7.5,
        title_fontsize=9,
        alignment="left",
        labelspacing=0.35,
    )
    bar = figure.add_axes(((_WIDTH - _PANEL + 0.2) / _WIDTH, 0.55 / height, 1.6 / _WIDTH, 0.12 / height))
    steps = np.linspace(0, 1, 128)[None]
    bar.imshow(steps, aspect="auto", cmap=LOAD, norm=Normalize(0, 1), extent=(0, 1, 0, 1))
    bar.set_yticks([])
    bar.set_xticks([0, 0.5, 1], ["0", "50%", "full"], fontsize=7.5)
    bar.set_title("bandwidth of a link in use", fontsize=8, color=INK)
    if _overloaded(instance, rings):
        bar.text(1.0, -2.6, "beyond capacity, or no link", color=OVER, fontsize=7.5, ha="right", va="top")


def _share_of_link(instance: GVneInstance, pair: tuple[int, int], uses: Mapping[tuple[int, int], list[int]]) -> float:
    """The part of a link's bandwidth that is used; infinite where a route goes along a link that there is not."""
    load = sum(instance.jobs[j].bandwidth for j in uses.get(pair, ()))
    if pair not in instance.link_index:
        return math.inf
    capacity = instance.links[instance.link_index[pair]].bandwidth
    return load / capacity if capacity > 0 else (math.inf if load > 0 else 0.0)


def _overloaded(instance: GVneInstance, rings: Mapping[str, Any]) -> bool:
    """Whether some server or link is asked for more than it has, or a link is not there."""
    if any(_overfilled(instance, node, jobs) for node, jobs in enumerate(_hosted(instance, rings))):
        return True
    uses = _uses(instance, rings)
    return any(_share_of_link(instance, pair, uses) > 1 + 1e-9 for pair in uses)

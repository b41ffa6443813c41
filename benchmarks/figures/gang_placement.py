"""The nodes of a cluster as rows of devices, coloured by the gang that gets them."""

from __future__ import annotations

import math
from collections import defaultdict

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from schedgap.benchmarks.figures.palette import FAINT, INK, PALETTE
from schedgap.benchmarks.figures.style import hover, new_figure
from schedgap.formulations.common.instance import Json, Solution
from schedgap.formulations.gang_placement.instance import WHOLE, GangPlacementInstance

_WIDTH = 11.0
_ROW = 0.28
"""Inches of a node."""
MOST_NODES = 400
MOST_IN_LEGEND = 24
_HATCHES = ("", "//", "..", "xx")

Taken = dict[tuple[str, int], list[tuple[int, int, str]]]
"""Gangs per (node, device): first and last thousandth that each holds, and its id."""


def devices(instance: GangPlacementInstance, solution: Solution) -> Figure:
    """Draw the devices of the nodes under a decision.

    A row is a node, a square a device: grey what runs takes, white what is free, a colour (with a hatch after eight) a
    gang, as much of the square as the part of the device. Nodes stand in columns, in the order of the instance, with
    the labels of their domains.

    Parameters
    ----------
    instance : the cluster; the first 400 nodes are drawn
    solution : ``{"placement": ...}``; it need not be feasible
    """
    nodes = instance.nodes[:MOST_NODES]
    columns = max(1, min(4, math.ceil(len(nodes) / 16)))
    rows = math.ceil(len(nodes) / columns)
    figure = new_figure(_WIDTH, max(2.0, _ROW * rows + 1.2))
    axes = figure.add_axes((0.01, 0.02, 0.84, 0.96))
    widest = max((len(node.gpus) for node in nodes), default=0)
    axes.set_xlim(0, columns * (widest + 7))
    axes.set_ylim(rows, 0)
    axes.set_axis_off()
    taken = _taken(instance, solution)
    for n, node in enumerate(nodes):
        x, y = (n // rows) * (widest + 7) + 6, n % rows
        axes.text(x - 0.2, y + 0.5, "/".join((*node.domain, node.id))[-22:], ha="right", va="center", size=7, color=INK)
        for d, free in enumerate(node.gpus):
            _device(axes, x + d, y, free, taken.get((node.id, d), []))
    placed = [g for g, gang in enumerate(instance.gangs) if solution.get("placement", {}).get(gang.id)]
    handles = [Patch(**_look(g), label=instance.gangs[g].id) for g in placed[:MOST_IN_LEGEND]]
    if len(placed) > MOST_IN_LEGEND:
        handles.append(Patch(facecolor="none", edgecolor="none", label=f"and {len(placed) - MOST_IN_LEGEND} more"))
    handles += [
        Patch(facecolor=FAINT, edgecolor=INK, label="runs"),
        Patch(facecolor="white", edgecolor=INK, label="free"),
    ]
    figure.legend(handles=handles, loc="center right", fontsize=7, frameon=False)
    return figure


def _taken(instance: GangPlacementInstance, solution: Solution) -> Taken:
    found: Taken = defaultdict(list)
    for g, gang in enumerate(instance.gangs):
        for pod in solution.get("placement", {}).get(gang.id, ()):
            for device in pod.get("devices", ()):
                found[pod["node"], device].append((g, min(gang.pods[pod["group"]].gpu, WHOLE), gang.id))
    return found


def _look(gang: int) -> dict[str, Json]:
    """Colour and hatch of a gang."""
    hatch = _HATCHES[gang // len(PALETTE) % len(_HATCHES)]
    return {"facecolor": PALETTE[gang % len(PALETTE)], "hatch": hatch, "edgecolor": INK}


def _device(axes: Axes, x: float, y: float, free: int, gangs: list[tuple[int, int, str]]) -> None:
    bottom = 0.0
    parts = [*((part / WHOLE, _look(g), name) for g, part, name in gangs)]
    for height, look, name in [*parts, ((WHOLE - free) / WHOLE, {"facecolor": FAINT}, "runs")]:
        if height:
            taken = Rectangle((x, y + 0.9 - 0.8 * (bottom + height)), 0.9, 0.8 * height, lw=0.4, **look)
            axes.add_patch(hover(taken, [f"{name}: {height:.0%} of the device"]))
            bottom += height
    axes.add_patch(Rectangle((x, y + 0.1), 0.9, 0.8, facecolor="none", edgecolor=INK, lw=0.6))

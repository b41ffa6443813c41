"""One picture of one or more solutions of an instance: a title, and a heading above each drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure, SubFigure

from schedgap.benchmarks.figures.style import INK, drawing_on, new_figure
from schedgap.catalogue.workload import Drawing
from schedgap.formulations.common.instance import Instance, Solution

TITLE, HEADING = 0.42, 0.32
"""Inches above all drawings, and above each."""


@dataclass(frozen=True)
class Part:
    """A solution and the line above its drawing: who made it, and its objective."""

    heading: str
    solution: Solution


def sheet(drawing: Drawing, instance: Instance, title: str, parts: Sequence[Part]) -> Figure:
    """Draw solutions of one instance, one above the other, with the same time axis.

    Parameters
    ----------
    drawing : the problem's figure, ``f(instance, solution)``; made with :func:`~.style.new_figure`
    title : the first line
    parts : at least one

    Returns
    -------
    Figure of its own (no pyplot state), as wide as the widest drawing.
    """
    sizes: list[tuple[float, float]] = []
    scratch = new_figure(1.0, 1.0)

    def measure(width: float, height: float) -> SubFigure:
        sizes.append((width, height))
        return scratch.add_subfigure(scratch.add_gridspec(1, 1)[0])

    for part in parts:
        before = len(sizes)
        with drawing_on(measure):
            own = drawing(instance, part.solution)
        if len(sizes) == before:  # a foreign drawing with a figure of its own: it cannot be placed on ours
            if len(parts) > 1:
                raise TypeError("this problem's figure makes a canvas of its own, two cannot be put on one page")
            own.suptitle(f"{title}: {part.heading}", fontsize=10)
            return own
    wide = max(width for width, _ in sizes)
    tall = TITLE + sum(HEADING + height for _, height in sizes)
    figure = new_figure(wide, tall)
    figure.text(0.15 / wide, 1 - 0.5 * TITLE / tall, title, fontsize=12, fontweight="bold", color=INK, va="center")
    ratios = [TITLE, *(part for _, height in sizes for part in (HEADING, height))]
    rows = figure.add_gridspec(len(ratios), 1, height_ratios=ratios, left=0, right=1, bottom=0, top=1, hspace=0)
    panels = []
    level = tall - TITLE
    for place, (part, (_, height)) in enumerate(zip(parts, sizes, strict=True)):
        figure.text(0.15 / wide, (level - 0.5 * HEADING) / tall, part.heading, fontsize=10.5, color=INK, va="center")
        level -= HEADING + height
        panel = figure.add_subfigure(rows[2 * place + 2])
        with drawing_on(lambda width, height, panel=panel: panel):  # type: ignore[misc]
            drawing(instance, part.solution)
        panels.append(panel)
    for together in zip(*(panel.axes for panel in panels), strict=False):
        limits = [axes.get_xlim() for axes in together]
        for axes in together:
            axes.set_xlim(min(low for low, _ in limits), max(high for _, high in limits))
    return figure

"""Rows over time, which every chart of a schedule is: blocks in their job's colour, names that fit, margins, legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.collections import PolyCollection
from matplotlib.patches import Rectangle

from schedgap.benchmarks.figures.palette import INK
from schedgap.benchmarks.figures.style import Colour, hover, ink_on, job_colour, new_figure, plain_axes, whole_numbers

WIDTH, SLIM = 10.0, 5.0
"""Inches of a chart; the second where a block of one slot has room for every name, which a phone then shows too."""
EDGE = "#444444"
HATCH = (0.0, 0.0, 0.0, 0.38)
NARROW = 0.09
"""Inches of a row below which frames are thin and there are no lines between rows."""
READABLE, SLIM_NAME = 4.5, 7.0
"""Points of the smallest name that is written, and of the smallest in a slim chart."""
LETTER = 0.62
"""Width of a letter, of its points."""
MOST_TITLES = 200
"""Largest number of blocks of one kind that have a title each: a page has to stay small."""
OBJECTIVE = "objective"
"""What marks the line of the objective."""
BESIDE = 0.3
"""Inches right of the rows."""

Box = tuple[float, float, float, float]
"""Begin, end, upper and lower edge: moments, and rows from the top."""


def short(text: str, most: int = 12) -> str:
    """A name that may be cut."""
    return text if len(text) <= most else text[: most - 1] + "…"


def row_height(rows: float, tall: float = 13.0, most: float = 0.42, least: float = 0.05) -> float:
    """Inches of a row: few rows hold names, many share `tall` inches."""
    return min(most, max(least, tall / rows))


class Timeline:
    """A figure with time to the right and rows from the top down.

    Parameters
    ----------
    rows, row : their number, which may be broken where they have gaps, and inches of one
    begin, end : first and last moment shown
    unit : name of the unit of time
    left, above, below : inches left of the rows, for their labels, above, and below for the axis and the legend
    names : ids of all jobs; where slots have room for them the chart is slim

    Attributes
    ----------
    figure, axes : a new figure, :data:`WIDTH` or :data:`SLIM` wide
    """

    def __init__(
        self,
        rows: float,
        row: float,
        begin: float,
        end: float,
        *,
        unit: str,
        left: float = 0.9,
        above: float = 0.25,
        below: float = 0.95,
        names: Sequence[str] = (),
    ) -> None:
        letters = max(map(len, names), default=99)
        self.slim = (SLIM - left - BESIDE) * 72 / (end - begin) >= SLIM_NAME * LETTER * letters
        self.row = row = min(row, 0.3) if self.slim else row
        self.unit = unit
        below += 0.15 * self.slim
        self.height = rows * row + above + below
        self.figure = new_figure(SLIM if self.slim else WIDTH, self.height)
        wide = max(SLIM if self.slim else WIDTH, self.figure.bbox.width / self.figure.dpi)  # beside a wider one
        inner = wide - left - BESIDE
        self.axes = self.figure.add_axes((left / wide, below / self.height, inner / wide, rows * row / self.height))
        self.points = inner * 72 / (end - begin)
        self.axes.set_xlim(begin, end)
        self.axes.set_ylim(rows, 0)
        self.axes.set_yticks([])
        self.axes.set_xlabel(unit, fontsize=10, color=INK)
        plain_axes(self.axes)
        self.axes.spines["left"].set_visible(False)
        if unit == "slot":
            whole_numbers(self.axes.xaxis)

    def box(self, job: int, box: Box, name: str = "", *, hatched: bool = False, largest: float = 9.0) -> None:
        """A job's block with its name, where there is room for it."""
        begin, end, low, high = box
        colour = job_colour(job)
        corner, width, height = (begin, low), end - begin, high - low
        hatch: dict[str, Any] = {"hatch": "//", "edgecolor": HATCH} if hatched else {"edgecolor": "none"}
        block = Rectangle(corner, width, height, facecolor=colour, linewidth=0, zorder=2, **hatch)
        self.axes.add_patch(hover(block, [self._told(name, begin, end)] if name else []))
        line = 0.3 if self.row <= NARROW else 1.0 if hatched else 0.6
        frame = Rectangle(corner, width, height, facecolor="none", edgecolor=EDGE, linewidth=line, zorder=2.1)
        self.axes.add_patch(frame)
        self.name(name, box, colour, hatched=hatched, largest=largest)

    def told(self, name: str, box: Box) -> None:
        """What a block tells that is drawn already: unseen, but not for the pointer."""
        begin, end, low, high = box
        unseen = Rectangle((begin, low), end - begin, high - low, facecolor="white", alpha=0.01, linewidth=0, zorder=5)
        self.axes.add_patch(hover(unseen, [self._told(name, begin, end)]))

    def _told(self, name: str, begin: float, end: float) -> str:
        """A block in words, for who points at it."""
        if self.unit == "slot":  # a slot is drawn around its number
            return f"{name}: slots {begin + 0.5:g} to {end - 0.5:g}"
        return f"{name}: {begin:g} to {end:g} {self.unit}"

    def name(self, name: str, box: Box, colour: Colour, *, hatched: bool = False, largest: float = 9.0) -> None:
        """A name in the middle of a block of this colour, as large as there is room; none that could not be read."""
        begin, end, low, high = box
        words = short(name, 14)
        size = min(
            largest, (high - low) * self.row * 72 * 0.75, (end - begin) * self.points / (LETTER * max(1, len(words)))
        )
        if size < READABLE or not words:
            return
        behind = {"facecolor": colour, "edgecolor": "none", "pad": 0.6} if hatched else None
        middle = (begin + end) / 2, (low + high) / 2
        style: dict[str, Any] = {"ha": "center", "va": "center", "clip_on": True}
        self.axes.text(*middle, words, fontsize=size, color=ink_on(colour), bbox=behind, zorder=3, **style)

    def boxes(self, boxes: Sequence[Box], colour: str | Colour, line: float = 0.0, name: str = "") -> None:
        """Many blocks of one colour, which tell their name and times to who points at them."""
        corners = [[(begin, low), (end, low), (end, high), (begin, high)] for begin, end, low, high in boxes]
        blocks = PolyCollection(corners, facecolors=[colour], edgecolors=EDGE, linewidths=line)
        told = [self._told(name, begin, end) for begin, end, *_ in boxes[: MOST_TITLES + 1] if name]
        self.axes.add_collection(hover(blocks, told if len(told) <= MOST_TITLES else [name]))

    def label(self, low: float, high: float, name: str, more: str = "") -> None:
        """The name of some rows left of them, with a second line where they are tall."""
        tall = (high - low) * self.row
        text = f"{short(name)}\n{more}" if more and tall > 0.3 else short(name)
        size = max(READABLE, min(9.0, tall * 72 * (0.4 if "\n" in text else 0.7)))
        place: dict[str, Any] = {"ha": "right", "va": "center", "transform": self.axes.get_yaxis_transform()}
        self.axes.text(-0.008, (low + high) / 2, text, fontsize=size, color=INK, **place)

    def mark(
        self, moment: float, colour: str, line: str | tuple[float, tuple[float, ...]], *, objective: bool = False
    ) -> None:
        """An upright line; where it is the `objective`, a page of several schedules shows what the worse ones lose."""
        gid = OBJECTIVE if objective else None
        self.axes.axvline(moment, color=colour, linewidth=1.3, linestyle=line, zorder=4, gid=gid)

    def legend(self, handles: Sequence[Artist], columns: int | None = None) -> None:
        """What colours and marks mean, below the rows."""
        longest = max(len(str(handle.get_label())) for handle in handles)
        self.figure.legend(
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(0.06, 0.04 / self.height),
            ncols=columns or (1 + (longest <= 26) if self.slim else len(handles)),
            fontsize=8 if columns is None else 7,
            frameon=False,
            handlelength=1.6,
            columnspacing=1.2,
        )

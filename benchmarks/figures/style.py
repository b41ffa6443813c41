"""Colours and sizes that every figure shares. Figures are made without pyplot, so nothing global is touched."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from schedgap.benchmarks.figures.palette import DARK, FORMATS, INK, LIGHT, PALETTE
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_bytes

matplotlib.rcParams["text.parse_math"] = False  # names may have dollar signs
for part in ("text.color", "axes.labelcolor", "xtick.color", "ytick.color"):
    matplotlib.rcParams[part] = INK  # what has no colour of its own would stay black on a dark page

LARGEST = 400
"""Inches of a picture: at 150 dots each what raster formats can hold."""
_HOVER, _APART = "hover:", "\u2063"
"""What marks an artist with titles, and stands between them."""


Shape = TypeVar("Shape", bound=Artist)
Colour = tuple[float, float, float]
Panel = Callable[[float, float], Figure | SubFigure]
"""Where a drawing goes instead of a figure of its own, for its width and height in inches."""
_panel: ContextVar[Panel | None] = ContextVar("panel", default=None)


@contextmanager
def drawing_on(panel: Panel) -> Iterator[None]:
    """Inside, :func:`new_figure` gives a part of a larger figure."""
    token = _panel.set(panel)
    try:
        yield
    finally:
        _panel.reset(token)


class Picture(Figure):
    """A figure that a notebook shows as the last value of a cell."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=100)
        return buffer.getvalue()


def new_figure(width: float, height: float) -> Figure:
    """An empty figure with its own canvas; sizes in inches. Inside :func:`drawing_on` it is a part of a larger one.

    Raises InputError: it is larger than LARGEST inches.
    """
    if not max(width, height) <= LARGEST:
        raise InputError(
            f"cannot be drawn: the picture would have {max(width, height):,.0f} inches, at most {LARGEST} do"
        )
    panel = _panel.get()
    if panel is not None:
        return cast(Figure, panel(width, height))  # a SubFigure takes axes, texts and legends as a Figure does
    return canvas(width, height)


def canvas(width: float, height: float) -> Picture:
    """An empty figure with its own canvas, also inside :func:`drawing_on`."""
    figure = Picture(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def job_colour(position: int) -> Colour:
    """A light, distinct colour for the job at this position; neighbours always differ."""
    hue = PALETTE[position % len(PALETTE)]
    red, green, blue = (int(hue[k : k + 2], 16) / 255 for k in (1, 3, 5))
    mix = (0.25, 0.55, 0.05, 0.4)[position // len(PALETTE) % 4]
    return (red + (1 - red) * mix, green + (1 - green) * mix, blue + (1 - blue) * mix)


def ink_on(colour: Colour) -> str:
    """Black or white, whichever can be read on `colour` (relative luminance)."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour)
    return DARK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.22 else LIGHT


def hover(artist: Shape, titles: Sequence[str]) -> Shape:
    """The artist; where the pointer rests on it, an SVG shows its line, or that of the part under the pointer."""
    if titles:
        artist.set_gid(_HOVER + _APART.join(titles))
    return artist


def _titled(svg: str) -> str:
    """The SVG with the titles in it that :func:`hover` gave."""
    first, *parts = svg.split(f'<g id="{_HOVER}')
    found = [first]
    for part in parts:
        words, rest = part.split('">', 1)
        titles = [f"<title>{words}</title>" for words in words.split(_APART)]
        if len(titles) == 1:
            found.append(f"<g>{titles[0]}{rest}")
        else:
            drawn = "use" if rest.lstrip().startswith("<defs>") else "path"  # shapes that are alike are named first
            shapes = iter(titles)
            whole = partial(lambda shape, kind, titles: f"<{kind} {shape[1]}>{next(titles)}</{kind}>", kind=drawn)
            fill = partial(whole, titles=shapes)
            found.append(f"<g>{re.sub(rf'<{drawn} ([^>]*)/>', fill, rest, count=len(titles))}")
    return "".join(found)


def plain_axes(axes: Axes) -> None:
    """Only the lines that help: no frame on top and at the right, faint ticks."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#888888")
    axes.tick_params(colors=INK, labelsize=9, width=0.6, length=3)


def log_scale(axes: Axes, x: int | None = None, *, y: bool = False) -> None:
    """Logarithmic axes with plain numbers: powers of `x` along x, 1, 2 and 5 times powers of ten along y."""
    plain = FuncFormatter(lambda value, _: f"{value:,.12g}")
    if x is not None:
        axes.set_xscale("log", base=x)
        axes.xaxis.set_major_formatter(plain)
        axes.xaxis.set_minor_formatter(NullFormatter())
    if y:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(plain)
        axes.yaxis.set_minor_formatter(NullFormatter())


def whole_numbers(axis: Axis) -> None:
    """Ticks at whole numbers alone, also where the axis shows a single one."""
    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def as_svg(figure: Figure) -> str:
    """The figure as SVG text for an HTML page, the same on every run: fixed ids, no date, text as text."""
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "schedgap", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = buffer.getvalue()[buffer.getvalue().index("<svg") :]
    # Of lengths in points two decimals are seen; what stands between the tags is text, with numbers of its own
    return re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d\d)\d+", r"\1", tag[0]), _titled(text))


def save(figure: Figure, path: str | Path) -> None:
    """Write the figure as its file name says: .svg, .png or .pdf.

    Raises InputError: another ending, or the file cannot be written.
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in FORMATS:
        raise InputError(f"{path}: a figure's name must end in {', '.join(FORMATS)}")
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[ending]
    drawn = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "schedgap"}):
        figure.savefig(drawn, dpi=150, metadata=metadata, format=ending[1:])
    content = drawn.getvalue()
    write_bytes(target, _titled(content.decode()).encode() if ending == ".svg" else content)

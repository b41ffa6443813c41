"""Self-contained HTML pages from templates: everything inline, nothing fetched, readable offline and on paper."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from matplotlib.figure import Figure

from schedgap.benchmarks.figures.palette import FAINT, GRID, INK
from schedgap.benchmarks.figures.style import as_svg
from schedgap.formulations.common.instance import Json

HEAVY = 150_000
"""A figure whose SVG is larger than this many characters goes in as a PNG."""


@cache
def templates() -> Environment:
    """The templates; what is put into them is text and never HTML, unless it is Markup."""
    folder = Path(__file__).with_name("templates")
    return Environment(loader=FileSystemLoader(folder), autoescape=True, trim_blocks=True, lstrip_blocks=True)


def render(template: str, title: str, **values: object) -> str:
    """A whole page.

    Parameters
    ----------
    template : its file in ``templates/``
    title : title of the page
    values : what it names
    """
    return templates().get_template(template).render(title=title, **values)


def packed(data: Json) -> str:
    """JSON that the page's script unpacks: compressed, in base64."""
    return base64.b64encode(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0)).decode("ascii")


def pack_figures(page: str) -> str:
    """The page with its figures compressed together, each place as large as its figure; the script puts them back."""
    drawn: list[Json] = []

    def place(found: re.Match[str]) -> str:
        drawn.append(found[0])
        size = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', found[0])
        shape = f"{size[1]} / {size[2]}" if size is not None else "2"
        return f'<span data-figure="{len(drawn) - 1}" style="aspect-ratio: {shape}"></span>'

    left = re.sub(r'<svg role="img".*?</svg>', place, page, flags=re.DOTALL)
    return left.replace("</main>", f'</main>\n<script type="application/gzip" id="figures">{packed(drawn)}</script>', 1)


PAPER = {"#ffffff": "--paper", INK: "--ink", GRID: "--line", FAINT: "--line", "#f7f7f7": "--tint"}
"""Colours of paper and ink, which follow the page; those of methods and jobs are the same in light and dark."""


def _on_paper(svg: str) -> str:
    """The figure on the page's own paper: white fills, ink and faint lines take the page's colours."""
    pattern = rf"(fill|stroke): ({'|'.join(PAPER)})\b"
    kept = {"stroke: #ffffff"}  # lines between blocks
    return re.sub(pattern, lambda one: one[0] if one[0] in kept else f"{one[1]}: var({PAPER[one[2]]})", svg)


@dataclass(frozen=True)
class Picture:
    """A figure on a page."""

    image: Markup  # HTML of the image
    caption: str  # below it


def picture(figure: Figure, caption: str) -> Picture:
    """A figure inline: as SVG, or where that would be heavy as a PNG with the titles of its parts over it."""
    svg = as_svg(figure)
    label = Markup('<svg role="img" aria-label="{}" ').format(caption)
    if len(svg) <= HEAVY:
        return Picture(Markup(_on_paper(svg).replace("<svg ", label, 1)), caption)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    shape = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', svg)
    assert shape is not None
    drawn = f'<image width="{shape[1]}" height="{shape[2]}" href="data:image/png;base64,{data}"/>{_unseen(svg)}'
    wide = f'width="{shape[1]}pt" height="{shape[2]}pt"'  # without it the style would squeeze it on a small screen
    return Picture(Markup(f"{label}{wide} {shape[0]}>{drawn}</svg>"), caption)


_NAMED = re.compile(
    r'<g><title>([^<]*)</title>(.*?)</g>|(<path d="[^"]*")[^>]*><title>([^<]*)</title></path>', re.DOTALL
)


def _unseen(svg: str) -> str:
    """The parts of a figure that have a title, unseen: a pointer finds them."""
    found = []
    for group, shapes, path, name in _NAMED.findall(svg):
        outline = " ".join(re.findall(r'<path d="([^"]*)"', shapes or path))
        if outline and "<use " not in shapes:  # such shapes stand elsewhere
            found.append(f'<path fill="transparent" d="{outline}"><title>{group or name}</title></path>')
    return "".join(found)

"""Self-contained HTML pages: everything inline, nothing fetched, readable offline and on paper."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence

from matplotlib.figure import Figure

from schedgap.benchmarks.figures.style import as_svg

HEAVY = 150_000
"""A figure whose SVG is larger than this many characters goes in as a picture."""

_STYLE = """
:root { --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --bad: #b2182b; --good: #1a7f37; --tint: #f6f8fa; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; color: var(--ink); background: white;
  max-width: 1120px; margin: 0 auto; padding: 24px 20px 64px; }
h1 { font-size: 26px; margin: 8px 0 4px; }
h2 { font-size: 21px; margin: 40px 0 8px; padding-top: 12px; border-top: 2px solid var(--ink); }
h3 { font-size: 16px; margin: 28px 0 6px; }
p { margin: 6px 0 10px; }
.soft { color: var(--soft); }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; margin: 16px 0 8px; }
.tile { border: 1px solid var(--line); border-radius: 6px; padding: 8px 14px; min-width: 128px; }
.tile b { display: block; font-size: 21px; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 6px 0 12px; font-size: 14px; }
th, td { padding: 4px 12px 4px 0; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; border-bottom: 1.5px solid var(--ink); white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.code, code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 12.5px; white-space: nowrap; }
.held { color: var(--good); } .refuted, .failed { color: var(--bad); font-weight: 600; }
.held a, .refuted a { color: inherit; }
figure { margin: 10px 0 18px; }
figure svg, figure img { width: 100%; height: auto; display: block; }
figcaption { color: var(--soft); font-size: 13px; margin-top: 2px; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 18px; align-items: start; }
@media (max-width: 800px) { .pair { grid-template-columns: 1fr; } }
details { margin: 6px 0; } summary { cursor: pointer; color: var(--soft); }
pre { background: var(--tint); padding: 10px; overflow-x: auto; font-size: 12.5px; }
nav a { margin-right: 14px; }
"""


def text(value: object) -> str:
    """`value` as text that HTML shows literally."""
    return html.escape(str(value), quote=True)


def page(title: str, body: Sequence[str]) -> str:
    """A whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def grid(head: Sequence[str], rows: Sequence[Sequence[object]], right: str = "") -> str:
    """A table.

    Parameters
    ----------
    head, rows : titles and cells; a cell that is :class:`Raw` is taken as HTML
    right : one letter per column: "r" right-aligned numbers, "c" code, anything else text
    """
    kinds = [
        {"r": ' class="n"', "c": ' class="code"'}.get(right[i] if i < len(right) else "", "") for i in range(len(head))
    ]
    titles = "".join(f"<th{'' if 'code' in k else k}>{text(h)}</th>" for h, k in zip(head, kinds, strict=True))
    lines = []
    for row in rows:
        padded = [*row, *[""] * (len(head) - len(row))]
        cells = (f"<td{k}>{c if isinstance(c, Raw) else text(c)}</td>" for c, k in zip(padded, kinds, strict=True))
        lines.append("<tr>" + "".join(cells) + "</tr>")
    return f'<div class="scroll"><table><thead><tr>{titles}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


class Raw(str):
    """Text that is HTML already."""

    __slots__ = ()


def verdict(words: str) -> Raw:
    """A verdict in its colour."""
    kind = words.split(" ")[0]
    return Raw(f'<span class="{kind}">{text(words)}</span>') if kind in ("held", "refuted") else Raw(text(words))


def tiles(pairs: Sequence[tuple[object, str]]) -> str:
    """Large numbers, each with what it counts."""
    cells = "".join(f'<div class="tile"><b>{text(value)}</b><span>{text(what)}</span></div>' for value, what in pairs)
    return f'<div class="tiles">{cells}</div>'


def folded(title: str, content: str) -> str:
    """Content that is closed until a reader opens it."""
    return f"<details><summary>{text(title)}</summary>{content}</details>"


def picture(figure: Figure, caption: str, describe: str = "") -> str:
    """A figure inline: as SVG, or as a PNG where the SVG would be heavy."""
    svg = as_svg(figure)
    label = text(describe or caption)
    if len(svg) <= HEAVY:
        inner = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    else:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
        data = base64.b64encode(buffer.getvalue()).decode("ascii")
        inner = f'<img alt="{label}" src="data:image/png;base64,{data}">'
    return f"<figure>{inner}<figcaption>{text(caption)}</figcaption></figure>"

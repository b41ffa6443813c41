"""The page of a paper: claims with verdicts, ours beside the printed numbers, figures; and its verdicts as data."""

from __future__ import annotations

import io
import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

from schedgap.benchmarks.intervals import interval, plus_minus
from schedgap.benchmarks.text import markdown_table, significant
from schedgap.formulations.common.files import write_bytes, write_text
from schedgap.tools.laboratory.data import Data
from schedgap.tools.laboratory.declare import MAIN, Item, Metric, Paper
from schedgap.tools.laboratory.draw import figure_of
from schedgap.tools.laboratory.rules import Answer
from schedgap.tools.laboratory.running import FIRST_SEED, Finding
from schedgap.tools.laboratory.verdicts import Judged

VERDICTS = "verdicts.json"
MARK = "<!-- generated above, written below -->"
"""What follows this line in a published page is kept when it is written again: the discussion of the numbers."""


def page_name(paper: Paper) -> str:
    """The page's file name."""
    return f"results-{paper.name}.md"


def write_page(paper: Paper, findings: Sequence[Finding], folder: Path) -> Path:
    """Write figures, verdicts and the page of a run into its folder; the page's path."""
    for finding in findings:
        drawn = figure_of(finding.item, finding.data)
        if drawn is not None:
            _save(drawn, folder / _figure_name(paper, finding.item))
    write_text(folder / VERDICTS, json.dumps(_verdicts(paper, findings), indent=1) + "\n")
    return write_text(folder / page_name(paper), _page(paper, findings))


def _save(figure: Figure, path: Path) -> None:
    """Write a figure as a small PNG, the same bytes for the same data."""
    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=100)
    Image.open(drawn).convert("RGB").quantize(128).save(small, format="png", optimize=True)
    write_bytes(path, small.getvalue())


def _figure_name(paper: Paper, item: Item) -> str:
    return f"{paper.name}-{item.id}.png"


def _verdicts(paper: Paper, findings: Sequence[Finding]) -> dict[str, Any]:
    """The verdicts of a run as data: docs/reproduction.md and the pages of papers in docs are made of it."""
    rows = [
        {
            "item": finding.item.id,
            "title": finding.item.title,
            "anchor": _anchor(finding.item),
            "section": judged.claim.section,
            "claim": judged.claim.text,
            "printed": judged.claim.printed,
            "verdict": str(judged.verdict),
            "depends_on": list(judged.depends_on),
            "cannot": judged.claim.cannot,
            "ours": judged.claim.ours,
            "draws": _draws(judged, finding.data),
            "choices": finding.item.choices_of(judged.claim),
            "answers": _answers(judged),
        }
        for finding in findings
        for judged in finding.judged
    ]
    return {
        "paper": paper.id,
        "name": paper.name,
        "title": paper.title,
        "page": page_name(paper),
        "workload": wrapped(paper.workload),
        "figures": {
            finding.item.title: _figure_name(paper, finding.item) for finding in findings if finding.item.panels
        },
        "missing": [item.title for item in paper.items if item.id not in {finding.item.id for finding in findings}],
        "short": [
            f"{finding.item.title} ({len(finding.data.seeds)} of {finding.item.max_seeds})"
            for finding in findings
            if len(finding.data.seeds) < finding.item.max_seeds and any(judged.undecided for judged in finding.judged)
        ],
        "claims": rows,
        "instead": {
            finding.item.title: " ".join(finding.item.instead.split()) for finding in findings if finding.item.instead
        },
        "processor": {finding.item.id: round(finding.processor, 1) for finding in findings},
        "without": dict(paper.without),
    }


def _answers(judged: Judged) -> list[dict[str, Any]]:
    """What was asked for a claim, what was found, and the states under the main choice and under the others."""
    if judged.claim.cannot:
        return []
    others = [choice for choice in judged.answers if choice != MAIN]
    return [
        {
            "asked": answer.question,
            "found": answer.evidence,
            "state": str(answer.state),
            "others": {choice: _state(judged.answers[choice][place]) for choice in others},
        }
        for place, answer in enumerate(judged.answers[MAIN])
    ]


def _state(answer: Answer) -> str:
    return f"{answer.state} ({answer.short})" if answer.short else str(answer.state)


def wrapped(text: str) -> str:
    """Paragraphs, each in lines of at most 118 characters."""
    return "\n\n".join(
        textwrap.fill(" ".join(part.split()), 118, break_on_hyphens=False) for part in text.strip().split("\n\n")
    )


def _page(paper: Paper, findings: Sequence[Finding]) -> str:
    some = "" if len(findings) == len(paper.items) else f" Only {len(findings)} of its {len(paper.items)} items ran."
    intro = (
        f"Written by `schedgap reproduce {paper.id}`, draws with seeds from {FIRST_SEED} on.{some} Every method "
        "runs on "
        "the same draws; differences are taken draw by draw, and ± is the half-width of a 95% confidence interval "
        "(Student's t). How a verdict is reached is said in [What reproduces](reproduction.md); claims are in our "
        "words. "
        "*Ratio to the bound* is the objective against a certified bound on the optimum, at least 1: what is left "
        "to gain."
    )
    parts = [f"# {paper.title}", wrapped(intro), "## Workload", wrapped(paper.workload), "## Verdicts"]
    rows = [
        (
            judged.claim.text,
            "ours" if judged.claim.ours else judged.claim.section,
            f"[{finding.item.title}](#{_anchor(finding.item)})",
            _draws(judged, finding.data),
            judged.text,
        )
        for finding in findings
        for judged in finding.judged
    ]
    parts.append(markdown_table(("claim", "where", "item", "draws", "verdict"), rows))
    for finding in findings:
        parts += _section(paper, finding)
    if paper.without:
        parts += ["## No experiment", markdown_table(("item", "why"), paper.without.items())]
    return "\n\n".join(part for part in parts if part) + "\n"


def _draws(judged: Judged, data: Data) -> str:
    """How many draws a verdict is from; nothing where no data decide it."""
    return str(len(data.seeds)) if judged.claim.parts else ""


def _anchor(item: Item) -> str:
    text = "".join(c for c in item.title.lower() if c.isalnum() or c in " -_")
    return text.replace(" ", "-")


def _section(paper: Paper, finding: Finding) -> list[str]:
    item, data = finding.item, finding.data
    parts = [f"## {item.title}", wrapped(item.plots), wrapped(item.instead), wrapped(item.left_open)]
    if item.series:
        count = len(data.seeds)
        parts.append(f"Draws: {count}." if count > 1 else "Deterministic: one draw.")
    if item.panels:
        parts.append(f"![{item.title}]({_figure_name(paper, item)})")
    for judged in finding.judged:
        parts += _claim(judged, item)
    if item.series and item.metrics:
        parts.append(_numbers(item, data))
        missing = _missing(item, data)
        parts.append(missing)
    parts += [wrapped(remark(data)) for remark in item.remarks]
    return parts


def _claim(judged: Judged, item: Item) -> list[str]:
    claim = judged.claim
    printed = f" Printed: {claim.printed}." if claim.printed else ""
    head = f"**{claim.text}** ({claim.section}){printed} Verdict: *{judged.text}*."
    if claim.cannot:
        return [wrapped(f"{head} {claim.cannot}")]
    rows = [(one["asked"], one["found"], one["state"], *one["others"].values()) for one in _answers(judged)]
    others = [choice for choice in judged.answers if choice != MAIN]
    return [wrapped(head), markdown_table(("asked", "found", "main choice", *others), rows)]


def _numbers(item: Item, data: Data) -> str:
    """Means with intervals by series and x, and the printed number in brackets where there is one.

    Of a single metric over many series, x stands at the top.
    """
    if item.axis is not None and len(item.metrics) == 1 and len(item.series) > len(item.points):
        (metric,) = item.metrics
        wide = [(one.label, *(_cell(item, data, metric, one.label, x) for x in item.points)) for one in item.series]
        columns = (f"{metric.title}, by {item.axis.label}", *(f"{x:g}" for x in item.points))
        return f"Means over the draws under the main choice.\n\n{markdown_table(columns, wide)}"
    axis = () if item.axis is None else (item.axis.label,)
    head = (*axis, "series", *(metric.title for metric in item.metrics))
    rows = []
    for x in item.points:
        for series in item.series:
            at = () if item.axis is None else (f"{x:g}" if isinstance(x, int | float) else str(x),)
            label = f"{series.label} (ours)" if series.ours else series.label
            rows.append((*at, label, *(_cell(item, data, metric, series.label, x) for metric in item.metrics)))
    note = " Printed numbers stand in brackets." if item.printed else ""
    return f"Means over the draws under the main choice.{note}\n\n{markdown_table(head, rows)}"


def _cell(item: Item, data: Data, metric: Metric, series: str, x: Any) -> str:
    text = plus_minus(interval(data.values(metric.name, series, x) * metric.factor))
    printed = item.printed.get((series, metric.name))
    return text if printed is None else f"{text} [{significant(printed)}]"


def _missing(item: Item, data: Data) -> str:
    """How many runs gave no value of the first metric; they enter no mean."""
    name, lost = item.metrics[0], []
    for choice, x, series in data.found:
        values = data.under(choice).values(name.name, series, x)
        gone = int((values != values).sum())
        if gone:
            where = f"{series}{'' if x is None else f' at {x}'}{'' if choice == MAIN else f' ({choice})'}"
            lost.append(f"{where} {gone} of {len(values)}")
    if not lost:
        return ""
    shown = "; ".join(lost[:12]) + (f"; and {len(lost) - 12} more" if len(lost) > 12 else "")
    return wrapped(f"Runs without a {name.label}, which enter no mean and no difference: {shown}.")

"""The judgement as one self-contained page: the verdict, the nodes as boxes under both decisions, what was lost."""

from __future__ import annotations

import html
from collections.abc import Iterable

from schedgap.benchmarks.snapshots.judge import Judgement
from schedgap.formulations.common.instance import Solution

MOST_NODES = 400
"""Nodes that are drawn."""
_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}
.nodes{display:flex;flex-wrap:wrap;gap:8px}.node{border:1px solid #999;padding:4px 6px;font-size:12px}
.gpu{display:inline-block;width:18px;height:18px;margin:1px;border:1px solid #666;vertical-align:middle}
pre{background:#f4f4f4;padding:1rem;overflow:auto}"""


def judgement_page(found: Judgement) -> str:
    """The page as HTML; it fetches nothing."""
    colours = {gang.id: f"hsl({137 * g % 360} 60% 60%)" for g, gang in enumerate(found.instance.gangs)}
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>schedgap judge</title>",
        f"<style>{_STYLE}</style><h1>One decision, judged</h1><p>{html.escape(found.verdict)}</p>",
        f"<pre>{html.escape(found.to_text())}</pre>",
    ]
    for title, solution in (("The scheduler", found.decision), ("The best decision", found.best.solution or {})):
        parts.append(f"<h2>{title}</h2><div class='nodes'>{''.join(_boxes(found, solution, colours))}</div>")
    parts.append("<p>Grey: taken by what runs. White: free. A colour: a gang, whose name a device tells.</p></html>\n")
    return "\n".join(parts)


def _boxes(found: Judgement, solution: Solution, colours: dict[str, str]) -> Iterable[str]:
    taken: dict[tuple[str, int], str] = {}
    for gang, pods in solution.get("placement", {}).items():
        for pod in pods:
            taken |= {(pod["node"], device): gang for device in pod.get("devices", [])}
    for node in found.instance.nodes[:MOST_NODES]:
        devices = "".join(_device(taken.get((node.id, d)), part, colours) for d, part in enumerate(node.gpus))
        place = html.escape(" / ".join((*node.domain, node.id)))
        yield f"<div class='node'>{place}<br>{devices or 'no GPU'}</div>"
    more = len(found.instance.nodes) - MOST_NODES
    if more > 0:
        yield f"<div class='node'>and {more} more</div>"


def _device(gang: str | None, free: int, colours: dict[str, str]) -> str:
    colour = "#bbb" if free == 0 else "#fff"
    told = f"{free / 1000:g} free"
    if gang is not None:
        colour, told = colours[gang], gang
    return f"<span class='gpu' style='background:{colour}' title='{html.escape(told)}'></span>"

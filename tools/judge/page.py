"""The judgement as one self-contained page: the verdict, the nodes as boxes under both decisions, what was lost."""

from __future__ import annotations

import html
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from schedgap.benchmarks.proving import compressed
from schedgap.formulations.common.files import write_bytes, write_text
from schedgap.formulations.common.instance import Json, Solution
from schedgap.formulations.gang_placement.instance import WHOLE
from schedgap.tools.judge.asking import NOTHING
from schedgap.tools.judge.judgement import Judgement

MOST_NODES = 400
"""Nodes that are drawn."""
MOST_NAMES = 60
"""Gangs whose colour is told below the boxes."""
_STYLE = """:root{--ink:#222;--paper:#fff;--tint:#f4f4f4;--line:#888;--busy:#bbb;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;--tint:#161b22;--line:#8b949e;--busy:#59636e}}
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:var(--ink);
background:var(--paper);overflow-wrap:anywhere}
.nodes{display:flex;flex-wrap:wrap;gap:8px}.node{border:1px solid var(--line);padding:4px 6px;font-size:12px}
.gpu{display:inline-block;width:18px;height:18px;margin:1px;border:1px solid var(--line);vertical-align:middle}
td{padding:2px 0 2px 1.2em;text-align:right}td:first-child{padding-left:0;text-align:left}
.notes{background:var(--tint);padding:.5rem 1rem;white-space:pre-wrap}"""

_Parts = Mapping[tuple[str, int], Sequence[tuple[str | None, int]]]
"""Who has how many thousandths of a device; None is what runs."""


def write_judgement(found: Judgement, folder: Path) -> None:
    """Everything that can be looked at, shared and checked again."""
    write_text(folder / "judge.html", judgement_page(found))
    parts: dict[str, Json] = {"judge": found.to_dict(), "instance": found.instance.to_dict()}
    parts |= {"decision": found.decision, "best": found.best.solution}
    for lost in found.lost:
        if lost.proof is not None:
            instance, certificate = lost.proof
            parts |= {lost.file.removesuffix(".cert"): instance.to_dict(), "nothing": NOTHING}
            write_bytes(folder / lost.file, compressed(certificate))
    for name, data in parts.items():
        write_text(folder / f"{name}.json", json.dumps(data, indent=1, allow_nan=False) + "\n")


def remove_former(record: Path) -> None:
    """Certificates that a run before names, with their files."""
    text = record.read_text(encoding="utf-8", errors="replace") if record.is_file() else ""
    names = re.findall(r'"certificate": "(lost-[0-9]+)\.cert"', text)
    for file in (
        *(f"{name}.{end}" for name in names for end in ("json", "cert")),
        *(["nothing.json"] if names else []),
    ):
        record.with_name(file).unlink(missing_ok=True)


def judgement_page(result: Judgement) -> str:
    """The page as HTML; it fetches nothing."""
    colours = {gang.id: f"hsl({137 * g % 360} 60% 60%)" for g, gang in enumerate(result.instance.gangs)}
    rows = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in result.table())
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>schedgap judge</title>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<style>{_STYLE}</style><h1>One decision, judged</h1><p>{html.escape(result.verdict)}</p>",
        f"<p>{html.escape(result.counts)}</p><table>{rows}</table>",
        f"<div class='notes'>{html.escape(chr(10).join(result.notes()))}</div>",
    ]
    drawn: dict[str, None] = {}
    for title, solution in (("The scheduler", result.decision), ("The best decision", result.best.solution or {})):
        parts.append(f"<h2>{title}</h2><div class='nodes'>{''.join(_boxes(result, solution, colours))}</div>")
        drawn |= dict.fromkeys(solution.get("placement", {}))
    kept = " or kept for pods with a nominated node" if result.snapshot.facts.nominated else ""
    parts.append(f"<p>Grey: taken by what runs{kept}. Empty: free.")
    parts.append(" A colour: a gang, as far as the device is filled.</p><p>")
    for gang in list(drawn)[:MOST_NAMES]:
        parts.append(f"<span class='gpu' style='background:{colours[gang]}'></span> {html.escape(gang)} &nbsp;")
    parts.append("and others" if len(drawn) > MOST_NAMES else "")
    return "\n".join([*parts, "</p></html>\n"])


def _parts(result: Judgement, solution: Solution) -> _Parts:
    """What is taken of each device, what runs first."""
    taken: dict[tuple[str, int], list[tuple[str | None, int]]] = defaultdict(list)
    runs = {pod.id: pod for pod in result.instance.running}
    gone: dict[tuple[str, int], int] = defaultdict(int)
    for name in (*solution.get("preempted", ()), *solution.get("moved", {})):
        for device, part in runs[name].devices.items():
            gone[runs[name].node, int(device)] += part
    for node in result.instance.nodes:
        for d, free in enumerate(node.gpus):
            taken[node.id, d].append((None, WHOLE - free - gone[node.id, d]))
    for name, seat in solution.get("moved", {}).items():
        for d, part in zip(seat.get("devices", []), runs[name].devices.values(), strict=False):
            taken[seat["node"], d].append((None, part))
    groups = {gang.id: gang.pods for gang in result.instance.gangs}
    for gang, pods in solution.get("placement", {}).items():
        for pod in pods:
            for device in pod.get("devices", []):
                taken[pod["node"], device].append((gang, min(groups[gang][pod["group"]].gpu, WHOLE)))
    return taken


def _boxes(result: Judgement, solution: Solution, colours: Mapping[str, str]) -> Iterable[str]:
    taken = _parts(result, solution)
    for node in result.instance.nodes[:MOST_NODES]:
        devices = "".join(_device(taken[node.id, d], colours) for d in range(len(node.gpus)))
        place = html.escape(" / ".join((*node.domain, node.id)))
        yield f"<div class='node'>{place}<br>{devices or 'no GPU'}</div>"
    more = len(result.instance.nodes) - MOST_NODES
    if more > 0:
        yield f"<div class='node'>and {more} more</div>"


def _device(parts: Sequence[tuple[str | None, int]], colours: Mapping[str, str]) -> str:
    """A box that is filled from below, each part in its colour."""
    stops, top, titles = [], 0, []
    for gang, part in parts:
        if part:
            colour = "var(--busy)" if gang is None else colours[gang]
            stops.append(f"{colour} {top / 10:g}% {(top + part) / 10:g}%")
            titles.append(f"{gang or 'what runs'}: {part / WHOLE:g}")
            top += part
    stops.append(f"transparent {top / 10:g}%")
    title = html.escape(", ".join(titles) or "free")
    return f"<span class='gpu' style='background:linear-gradient(to top,{','.join(stops)})' title='{title}'></span>"

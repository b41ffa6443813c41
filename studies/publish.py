"""Puts the pages of runs into a folder of documents, with the table of all verdicts and its headline.

python -m studies.publish docs results/reproduce-000 results/reproduce-001 ...
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schedgap.benchmarks.text import markdown_table
from schedgap.formulations.common.errors import InputError, SchedgapError
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Json
from schedgap.tools.laboratory.declare import Metric
from schedgap.tools.laboratory.page import MARK, VERDICTS, wrapped
from schedgap.tools.laboratory.papers import NAMES, find_paper
from schedgap.tools.laboratory.rules import (
    Agrees,
    LeadGrows,
    Quantity,
    Rule,
    ShareBelow,
    State,
    Trend,
    Turns,
    Value,
    Within,
)
from schedgap.tools.laboratory.verdicts import Verdict

PAGE = "reproduction.md"
DATA = "reproduction.json"
"""All verdicts as data, so that one paper can be published without running the others again."""
HEADLINE = "<!-- reproduction: written by studies/publish.py -->"
"""The line of README.md that the headline follows."""
_RULES = """Every table and figure of the five papers' evaluations is measured again. `schedgap reproduce PAPER [--item
ITEM]` writes a page with every number beside its run. The [papers' pages](#pages) list each claim, in our
words. Repaired variants, settings and readings of our own, and checks are marked *ours* beside the run; they
enter no count here.

**Draws.** Seeds start at 1000; settings were chosen on other seeds. Every item has at least 10 draws. An
undecided item goes on to 40 draws, a long one to 16 to 20. Every method runs on the same draws. A difference is
taken draw by draw, and its mean has a 95% confidence interval by Student's t. A difference *holds* when the
whole interval is on the claimed side of 0, *fails* when it is on the other side, and is *undecided* otherwise.
A trend holds when every step does. A printed number is itself one draw. It *agrees* with ours when it lies within
t s sqrt(1 + 1/n) of our mean, where s is the standard deviation of n draws; else it *differs*. Unfinished runs
enter no mean, and their number is told.

**Verdicts.** `tools/laboratory/running.py` computes them from the data. A claim *reproduces* when all its parts
hold. It reproduces *in part* when some parts hold. It *does not reproduce* when no part holds and some part
fails. It *cannot be decided* when every part is undecided or nothing can be measured. A comparison in which
every method reaches the bound in every draw is left out. No paper prints its whole workload, so absolute values
are shown and not judged. What was measured on machines is not judged either, nor are systems of other authors
that we only stand in for.

**Choices.** The main choice is what the paper prints, with its algorithm as published, wherever that runs in
the time there is. Second choices are what the paper leaves open, two readings of one sentence, and settings of
ours. The claim is judged under each choice, and its verdict *depends on* those under which it differs. Limits
that no paper prints (10%, 5 points) are ours, and the claims say so.

**Ratio to the bound.** Every run of a method inside the model has the ratio of its objective to a certified
bound on the optimum. The ratio is at least 1. No paper reports it."""


def publish(docs: Path, runs: Sequence[Path]) -> Path:
    """Copy the pages and figures of `runs` to `docs`, and write the table of all verdicts there.

    What stands below the mark in a page that is there already is kept, and so are the verdicts of papers that are not
    among the runs. Of a run of some items the page's other items keep what an earlier run found. Where the folder
    beside has a README.md with the headline's mark, the line after it is written anew.

    Raises
    ------
    InputError
        A run is not there.
    """
    kept = docs / DATA
    known = {str(paper["paper"]): paper for paper in (_read(kept) if kept.is_file() else ())}
    for run in runs:
        paper = _read(run / VERDICTS)
        before = known.get(str(paper["paper"]))
        known[str(paper["paper"])] = _with_earlier(paper, before) if before and paper["missing"] else paper
        for figure in run.glob(f"{paper['name']}-*.png"):
            shutil.copyfile(figure, docs / figure.name)
    papers = [known[number] for number in sorted(known)]
    for paper in papers:
        target = docs / str(paper["page"])
        write_text(target, _with_kept(_paper_page(paper), target))
    write_text(kept, json.dumps(papers, indent=1) + "\n")
    _write_headline(docs.parent / "README.md", headline(papers))
    return write_text(docs / PAGE, _with_kept(table(papers), docs / PAGE))


def _with_earlier(paper: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """A run of some items, with the verdicts of the others from an earlier run."""
    absent = set(paper["missing"])
    carried = [claim for claim in before["claims"] if claim["title"] in absent]
    earlier = list(dict.fromkeys(str(claim["title"]) for claim in carried))
    ran = list(dict.fromkeys(str(claim["title"]) for claim in paper["claims"]))
    number = str(paper["paper"])
    order = [item.title for item in find_paper(number).items] if number in NAMES else [*earlier, *ran]
    titles = [title for title in order if title in {*earlier, *ran}]

    def joined(key: str) -> dict[str, Any]:
        both = {**before.get(key, {}), **paper[key]}
        return {title: both[title] for title in titles if title in both}

    return {
        **paper,
        "claims": sorted([*carried, *paper["claims"]], key=lambda claim: titles.index(claim["title"])),
        "missing": [title for title in paper["missing"] if title not in earlier],
        "short": [*paper["short"], *(one for one in before["short"] if one.rpartition(" (")[0] in earlier)],
        "instead": joined("instead"),
        "figures": joined("figures"),
        "processor": {**before.get("processor", {}), **paper["processor"]},
    }


def _paper_page(paper: dict[str, Any]) -> str:
    """The page of a paper: its workload, every claim with what was measured and its verdict, and its figures."""
    intro = (
        f"`schedgap reproduce {paper['paper']}` measures the paper's claims, in our words, again "
        "([how](reproduction.md)). Our own claims, and variants of the algorithms, stand beside its run."
    )
    parts = [f"# {paper['title']}", wrapped(intro), "## Workload", paper["workload"], "## Claims"]
    simulated = {
        (claim["title"], claim["claim"].removeprefix(_SIMULATED)): claim
        for claim in paper["claims"]
        if claim["ours"] and claim["claim"].startswith(_SIMULATED)
    }
    merged = {(claim["title"], claim["claim"]) for claim in paper["claims"] if claim["cannot"]} & set(simulated)
    rows, unmeasured = [], []
    for claim in paper["claims"]:
        key = (claim["title"], claim["claim"].removeprefix(_SIMULATED))
        if claim["ours"]:
            continue
        section = str(claim["section"]).replace("section ", "")
        words = f"{claim['claim']} ({section})"
        if claim["cannot"] and key not in merged:
            unmeasured.append(f"- {words}" + (f" Printed: {claim['printed']}." if claim["printed"] else ""))
            continue
        judged = simulated[key] if key in merged else claim
        verdict = str(judged["verdict"])
        verdict += f"; depends on: {', '.join(judged['depends_on'])}" if judged["depends_on"] else ""
        rows.append(
            (
                str(claim["claim"]),
                section,
                f"{claim['verdict']}; our simulation: {verdict}" if judged is not claim else verdict,
                str(claim["printed"]),
                _measured(judged, _units(str(paper["paper"]), judged)),
                str(judged["draws"]),
            )
        )
    parts.append(markdown_table(("claim (section)", "verdict", "printed", "measured", "draws"), _share_rows(rows)))
    reasons: dict[str, list[str]] = {}
    for claim in paper["claims"]:
        if claim["cannot"] and claim["title"] not in paper["instead"]:
            reasons.setdefault(claim["cannot"], []).append(claim["title"])
    if reasons or paper["instead"] or paper["without"]:
        parts.append("## What could not be measured")
        if unmeasured:
            parts += ["These claims cannot be decided here:", "\n".join(unmeasured)]
        for title, why in [*paper["instead"].items(), *paper["without"].items()]:
            reasons.setdefault(why, []).append(title)
        told = [(", ".join(dict.fromkeys(t.partition(":")[0] for t in titles)), why) for why, titles in reasons.items()]
        parts.append(markdown_table(("item", "why, and what stands in"), told))
    if paper["figures"]:
        parts.append("## Figures")
        parts += [f"![{title}]({name})" for title, name in paper["figures"].items()]
    return "\n\n".join(parts) + "\n"


def _share_rows(rows: Sequence[tuple[str, str, str, str, str, str]]) -> list[tuple[str, str, str, str, str]]:
    """Rows of claims; those that differ in their sections alone share one."""
    sections: dict[tuple[str, ...], list[str]] = {}
    for claim, section, *rest in rows:
        sections.setdefault((claim, *rest), []).append(section)
    return [
        (f"{claim} ({', '.join(dict.fromkeys(named))})", verdict, printed, measured, draws)
        for (claim, verdict, printed, measured, draws), named in sections.items()
    ]


def _units(number: str, claim: dict[str, Any]) -> list[str]:
    """The unit of each number that a claim's parts found, in brackets; empty where its own words name it."""
    if number not in NAMES:
        return []
    item = next((one for one in find_paper(number).items if one.id == claim["item"]), None)
    parts = next((one.parts for one in item.claims if one.text == claim["claim"]), ()) if item else ()
    metrics = {metric.name: metric for metric in item.metrics} if item else {}
    return [_unit(part, metrics) for part in parts]


def _unit(part: Rule, metrics: Mapping[str, Metric]) -> str:
    if isinstance(part, Agrees | Within):
        value: Quantity = part.a if isinstance(part, Agrees) else part.value
        if (part.b if isinstance(part, Agrees) else part.over) is not None:
            return " (ratio)"
    elif isinstance(part, Trend | Turns):
        value = part.values[0]
    elif isinstance(part, LeadGrows):
        value = part.first[0]
    else:
        return ""
    if isinstance(value, ShareBelow):
        return " (share of jobs)"
    metric = metrics.get(value.metric) if isinstance(value, Value) else None
    if metric is None:
        return ""
    return f" (share: {metric.label})" if metric.unit == "%" else f" ({metric.unit or metric.label})"


def _measured(claim: dict[str, Any], units: Sequence[str]) -> str:
    """What was found for a claim: in full where at most two things were asked, else how many of them hold."""
    answers = claim["answers"]
    known = units if len(units) == len(answers) else [""] * len(answers)
    found = [_found(answer, unit) for answer, unit in zip(answers, known, strict=True)]
    if len(answers) <= 1:
        return "".join(found)
    if len(answers) == 2:
        return "; ".join(f"{answer['asked']}: {told}" for answer, told in zip(answers, found, strict=True))
    counts = Counter(str(answer["state"]) for answer in answers)
    if len(counts) == 1:
        return f"all {len(answers)} parts {_STATES[next(iter(counts))][1]}"
    told = ", ".join(f"{count} {_STATES[state][count > 1]}" for state, count in counts.items())
    return f"of {len(answers)} parts {told}"


def _found(answer: dict[str, Any], unit: str) -> str:
    """A number with its unit. A difference has a unit that differs by row: where its ratio is known, that alone."""
    found = str(answer["found"])
    _, ratio, rest = found.partition("; ratio ")
    if not ratio:
        return found + unit
    return f"ratio {rest}".replace("does not agree in size", "differs").replace("agrees in size", "agrees")


_SIMULATED = "In the simulation: "
"""How a claim of ours begins that asks of our simulation what a paper says of its machines."""
_STATES = {
    str(State.HOLDS): ("holds", "hold"),
    str(State.FAILS): ("fails", "fail"),
    str(State.UNDECIDED): ("is undecided", "are undecided"),
    str(State.NOTHING): ("has nothing left to gain", "have nothing left to gain"),
}


def _with_kept(text: str, page: Path) -> str:
    """The new text of a page, with what stands below the mark in the old one."""
    _, mark, below = page.read_text(encoding="utf-8").partition(MARK) if page.exists() else ("", "", "")
    return f"{text}\n{mark}{below}" if mark else text


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def headline(papers: Sequence[dict[str, Json]]) -> str:
    """How many claims the papers make, and how many have which verdict.

    Without those that are ours, and without papers whose claims have been declared anew since their run.
    """
    judged = [paper for paper in papers if _as_declared(paper)]
    old = [str(paper["paper"]) for paper in papers if paper not in judged]
    theirs = [claim for paper in judged for claim in paper["claims"] if not claim.get("ours")]
    counts = Counter(str(claim["verdict"]) for claim in theirs)
    told = ", ".join(f"{counts[verdict]} {_PLURAL[verdict]}" for verdict in Verdict)
    total = len(theirs)
    hang = sum(bool(claim["depends_on"]) for claim in theirs)
    names = ", ".join(str(paper["paper"]) for paper in judged)
    rest = (
        f" The verdicts of {', '.join(old)} are of a run before their claims were declared as they are now."
        if old
        else ""
    )
    return (
        f"Of {total} claims of the evaluations of papers {names}, {told}; {hang} of the {total} verdicts depend "
        f"on a choice that the paper leaves open ([every claim](docs/reproduction.md)).{rest}"
    )


_PLURAL = {
    Verdict.REPRODUCES: "reproduce",
    Verdict.PARTLY: "reproduce in part",
    Verdict.NOT: "do not reproduce",
    Verdict.UNDECIDED: "cannot be decided",
}


def table(papers: Sequence[dict[str, Json]]) -> str:
    """The page: rules, the counts, every claim with its verdict and a link, and what is no experiment."""
    parts = ["# What reproduces", wrapped(_RULES), wrapped(headline(papers).replace("docs/reproduction.md", "#pages"))]
    verdicts = [str(verdict) for verdict in Verdict]
    rows = []
    for paper in papers:
        theirs = [claim for claim in paper["claims"] if not claim.get("ours")]
        counts = Counter(str(claim["verdict"]) for claim in theirs)
        name = f"[{paper['paper']} {paper['name']}]({paper['page']})"
        seconds = paper.get("processor")
        minutes = f"{sum(seconds.values()) / 60:.0f}" if seconds else "-"
        rows.append((name, str(len(theirs)), *(str(counts[verdict]) for verdict in verdicts), minutes))
    parts += ["## Pages", markdown_table(("paper", "claims", *verdicts, "processor minutes of its runs"), rows)]
    absent = [f"{number} ({name})" for number, name in NAMES.items() if number not in {p["paper"] for p in papers}]
    if absent:
        text = f"No page is written yet for {', '.join(absent)}; `schedgap list` names their experiments."
        parts.append(wrapped(text))
    lacks = {"missing": "are declared and not measured yet", "short": "have fewer draws than they get when undecided"}
    for paper in papers:
        for key, what in lacks.items():
            if paper.get(key):
                parts.append(wrapped(f"These items of paper {paper['paper']} {what}: {'; '.join(paper[key])}."))
    return "\n\n".join(parts) + "\n"


def _as_declared(paper: dict[str, Json]) -> bool:
    """Whether the claims of a run are those that its paper has now; nothing is known of papers that are not ours."""
    if paper["paper"] not in NAMES:
        return True
    items = [item for item in find_paper(str(paper["paper"])).items if item.title not in paper["missing"]]
    declared = [(claim.text, claim.ours, item.choices_of(claim)) for item in items for claim in item.claims]
    return declared == [(claim["claim"], claim.get("ours"), claim.get("choices")) for claim in paper["claims"]]


def _write_headline(readme: Path, text: str) -> None:
    if not readme.is_file():
        return
    lines = readme.read_text(encoding="utf-8").splitlines()
    if HEADLINE in lines:
        place = lines.index(HEADLINE) + 1
        end = next((k for k in range(place, len(lines)) if not lines[k].strip()), len(lines))
        write_text(readme, "\n".join([*lines[:place], *wrapped(text).splitlines(), *lines[end:]]) + "\n")


def main(arguments: Sequence[str]) -> int:
    """Publish; 2 on bad input."""
    if not arguments:
        print("usage: python -m studies.publish DOCS [RUN ...]", file=sys.stderr)
        return 2
    try:
        print(publish(Path(arguments[0]), [Path(run) for run in arguments[1:]]))
    except SchedgapError as error:
        print(f"publish: error: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

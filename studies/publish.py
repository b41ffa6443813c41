"""Puts the pages of runs into a folder of documents, with the table of all verdicts and its headline.

python -m studies.publish docs results/reproduce-000 results/reproduce-001 ...
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from schedgap.formulations.common.errors import InputError, SchedgapError
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Json
from schedgap.tools.laboratory.page import MARK, VERDICTS, markdown_table, wrapped
from schedgap.tools.laboratory.papers import NAMES, find_paper
from schedgap.tools.laboratory.verdicts import Verdict

PAGE = "reproduction.md"
DATA = "reproduction.json"
"""All verdicts as data, so that one paper can be published without running the others again."""
HEADLINE = "<!-- reproduction: written by studies/publish.py -->"
"""The line of README.md that the headline follows."""
_RULES = """Every table and figure of the five papers' evaluations, measured again: `schedgap reproduce PAPER
[--item ITEM]`
writes the page of a paper, [papers' pages below](#pages). Claims are in our words. What no paper says is judged
beside them, marked *ours*, and is in no count: repaired variants, settings and readings of our own, checks.

**Draws.** Seeds from 1000 on; settings were chosen on others. At least 10 draws of every item; every claim below has
its number of draws. `schedgap reproduce` goes on where something is still undecided: to 40 draws,
16 to 20 of the long items, 10 of the longest. Every method runs on the same draws; a difference is taken draw by
draw, and its mean has a
95% confidence interval by Student's t. A difference *holds* when the whole interval is on the claimed side of 0,
*fails* when it is
on the other, and is *undecided* otherwise. A trend holds when every step does. A printed number is itself one draw:
it *agrees in size* when it lies where one more draw of ours would with 95%, within t s sqrt(1 + 1/n) of our mean
(s the standard deviation of n draws). Unfinished runs enter no mean, and their number
is told.

**Verdicts** are computed from the data by `tools/laboratory/running.py`. A claim *reproduces* when all that
it says holds, *in
part* when some of it holds, *does not reproduce* when nothing holds and something fails, and *cannot be decided*
when everything is
undecided or nothing can be measured. A comparison in which every method reaches the bound in every draw is left out:
nothing is left to lead by. No paper prints its whole workload, so absolute values are shown and not judged; nor is
what was measured on machines, or of systems of other authors, that we only stand in for.

**Choices.** The main choice is what the paper prints, with its algorithm as it is published, wherever that runs in the
time there is. What it leaves open, two readings of one sentence and settings of ours are second choices: the claim is
judged under each, and its verdict *depends on* those under which it differs.
Limits that no paper prints (10%, 5 points) are ours, and the claims say so.

**Ratio to the bound.** No paper reports how far its method is from the best schedule. Here every run of a method
inside the model has the ratio of its objective to a certified bound on the optimum, at least 1: what
is left to gain is at most that."""


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
        text = (run / str(paper["page"])).read_text(encoding="utf-8")
        target = docs / str(paper["page"])
        before = known.get(str(paper["paper"]))
        if before is not None and paper["missing"] and target.is_file():
            paper, text = _with_earlier(paper, text, before, target.read_text(encoding="utf-8").partition(MARK)[0])
        known[str(paper["paper"])] = paper
        write_text(target, _with_kept(text, target))
        for figure in run.glob(f"{paper['name']}-*.png"):
            shutil.copyfile(figure, docs / figure.name)
    papers = [known[number] for number in sorted(known)]
    write_text(kept, json.dumps(papers, indent=1) + "\n")
    _write_headline(docs.parent / "README.md", headline(papers))
    return write_text(docs / PAGE, _with_kept(table(papers), docs / PAGE))


def _with_earlier(paper: dict[str, Any], text: str, before: dict[str, Any], old: str) -> tuple[dict[str, Any], str]:
    """A run of some items and its page, with the sections and verdicts of the others from an earlier page."""
    absent = set(paper["missing"])
    carried = [claim for claim in before["claims"] if claim["title"] in absent]
    earlier = list(dict.fromkeys(str(claim["title"]) for claim in carried))
    ran = list(dict.fromkeys(str(claim["title"]) for claim in paper["claims"]))
    number = str(paper["paper"])
    order = [item.title for item in find_paper(number).items] if number in NAMES else [*earlier, *ran]
    titles = [title for title in order if title in {*earlier, *ran}]
    merged = {
        **paper,
        "claims": sorted([*carried, *paper["claims"]], key=lambda claim: titles.index(claim["title"])),
        "missing": [title for title in paper["missing"] if title not in earlier],
        "short": [*paper["short"], *(one for one in before["short"] if one.rpartition(" (")[0] in earlier)],
        "instead": {
            title: {**before["instead"], **paper["instead"]}[title]
            for title in titles
            if title in {**before["instead"], **paper["instead"]}
        },
        "processor": {**before.get("processor", {}), **paper["processor"]},
    }
    (head, *_), now, then = _sections(text)[""], _sections(text), _sections(old)
    note = f"Of an earlier run are: {'; '.join(earlier)}." if earlier else ""
    name, _, intro = head.partition("\n\n")
    intro = re.sub(r"Only \d+ of its \d+ items ran\.", note, " ".join(intro.split()))
    rows = [
        (
            str(claim["claim"]),
            "ours" if claim["ours"] else str(claim["section"]),
            f"[{claim['title']}](#{claim['anchor']})",
            str(claim["draws"]),
            str(claim["verdict"]) + (f" (depends on: {', '.join(claim['depends_on'])})" if claim["depends_on"] else ""),
        )
        for claim in merged["claims"]
    ]
    table_of = markdown_table(("claim", "where", "item", "draws", "verdict"), rows)
    parts = [name, wrapped(intro), *now["Workload"], f"## Verdicts\n\n{table_of}"]
    for title in titles:
        parts += now.get(title) or then.get(title, [])
    parts += now.get("No experiment", [])
    return merged, "\n\n".join(part.strip() for part in parts) + "\n"


def _sections(page: str) -> dict[str, list[str]]:
    """The page's text by heading of the second level, the heading with it; what is above the first one under ""."""
    parts: dict[str, list[str]] = {}
    for part in re.split(r"^(?=## )", page, flags=re.MULTILINE):
        title = part.partition("\n")[0].removeprefix("## ").strip() if part.startswith("## ") else ""
        parts.setdefault(title, []).append(part)
    return parts


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
        f"Of {total} claims of the evaluations of papers {names}, {told}; {hang} of these verdicts depend on a choice "
        f"that the paper leaves open ([every claim](docs/reproduction.md)).{rest}"
    )


_PLURAL = {
    Verdict.REPRODUCES: "reproduce",
    Verdict.PARTLY: "reproduce in part",
    Verdict.NOT: "do not reproduce",
    Verdict.UNDECIDED: "cannot be decided",
}


def table(papers: Sequence[dict[str, Json]]) -> str:
    """The page: rules, the counts, every claim with its verdict and a link, and what is no experiment."""
    parts = ["# What reproduces", wrapped(_RULES), wrapped(headline(papers).replace("docs/reproduction.md", "#claims"))]
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
                parts.append(wrapped(f"Of paper {paper['paper']} these {what}: {'; '.join(paper[key])}."))
    parts.append("## Claims")
    claims = [
        (
            str(paper["paper"]),
            "ours" if claim.get("ours") else str(claim["section"]),
            str(claim["claim"]),
            str(claim["printed"]),
            str(claim.get("draws", "")),
            str(claim["verdict"]),
            ", ".join(claim["depends_on"]),
            f"[{claim['title']}]({paper['page']}#{claim['anchor']})",
        )
        for paper in papers
        for claim in paper["claims"]
    ]
    parts.append(
        markdown_table(("paper", "where", "claim", "printed", "draws", "verdict", "depends on", "item"), claims)
    )
    cannot = [
        (str(paper["paper"]), str(claim["title"]), str(claim["cannot"]))
        for paper in papers
        for claim in paper["claims"]
        if claim["cannot"]
    ]
    instead = [(str(paper["paper"]), item, why) for paper in papers for item, why in paper.get("instead", {}).items()]
    head = ("paper", "item", "why, and what stands in")
    parts += ["## What cannot be repeated as the paper did it", markdown_table(head, instead)]
    parts += ["## What nothing here can decide", markdown_table(head, cannot)]
    without = [(str(paper["paper"]), item, why) for paper in papers for item, why in paper["without"].items()]
    parts += ["## No experiment", markdown_table(("paper", "item", "why"), without)]
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
    if len(arguments) < 2:
        print("usage: python -m studies.publish DOCS RUN ...", file=sys.stderr)
        return 2
    try:
        print(publish(Path(arguments[0]), [Path(run) for run in arguments[1:]]))
    except SchedgapError as error:
        print(f"publish: error: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

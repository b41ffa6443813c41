"""Every record of the library checks: instance, schedule, objective, bound, certificate, and who found them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from schedgap.benchmarks.figures.style import as_svg
from schedgap.benchmarks.instances import figure_of
from schedgap.catalogue.registry import all_problems
from schedgap.tools.library.collection import SHIPPED, Entry, about, entries, faults, find
from schedgap.tools.library.improve import FREE
from studies.library.sources import LOGS, sources

RECORDS = entries()


@pytest.mark.parametrize("entry", RECORDS, ids=lambda entry: entry.id)
def test_a_record_checks(entry: Entry) -> None:
    assert not faults(entry)


def test_there_are_some_forty_instances_a_problem_and_no_two_are_the_same() -> None:
    counts = Counter(entry.problem.id for entry in RECORDS)
    assert set(counts) == set(about()["problems"])
    assert set(all_problems()) == set(counts)
    assert all(37 <= number <= 55 for number in counts.values()), counts
    assert len({entry.known.hash for entry in RECORDS}) == len({entry.id for entry in RECORDS}) == len(RECORDS)
    kinds = {(entry.problem.id, entry.known.kind) for entry in RECORDS}
    for problem in counts:
        assert {(problem, "generated"), (problem, "hunted")} <= kinds
        no_trace_becomes_one = problem in ("comm-contention", "gang-placement")
        assert (problem, "imported-like") in kinds or no_trace_becomes_one


def test_no_certificate_is_left_without_its_record_and_the_collection_stays_small() -> None:
    named = {entry.certificate for entry in RECORDS}
    assert set(SHIPPED.rglob("*.cert")) == named - {None}
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*.*")) < 6_000_000


def test_versions_of_the_collection_and_of_its_citation_agree() -> None:
    citation = (Path(__file__).parents[3] / "CITATION.cff").read_text(encoding="utf-8")
    facts = about()
    assert facts["title"] in citation and f'version: "{facts["version"]}"' in citation and facts["license"] == "MIT"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"objective": 1.0}, "recorded, "),
        ({"bound": 1.0}, "the certificate proves"),
        ({"bound": 10.0**6}, "is better than the bound"),
        ({"status": "open"}, "recorded as open, but the bound meets"),
        ({"hash": "0" * 64}, "another hash"),
        ({"certificate": None}, "certified, and a certificate, go together"),
        ({"proof": None}, "a level of proof"),
        ({"solution": None}, "no schedule"),
    ],
)
def test_what_is_wrong_in_a_record_is_found(change: dict[str, object], told: str) -> None:
    entry = find("rar-ddls/tiny-1")
    assert entry.known.proof == "certified" and not faults(entry)
    assert any(told in line for line in faults(replace(entry, known=entry.known.model_copy(update=change))))


def test_instances_of_public_logs_name_their_terms() -> None:
    """Twelve, of five repositories; where the logs are, they are made of them again."""
    declared = {f"{problem}/{name}": terms for problem, rows in LOGS.items() for name, _, _, terms, _ in rows}
    shipped = {entry.id: entry.known for entry in RECORDS if entry.known.kind == "imported"}
    assert {name: (known.license, known.cite) for name, known in shipped.items()} == declared and len(declared) >= 12
    assert len(set(declared.values())) == 5 and {known.license for known in shipped.values()} <= {*FREE}
    logs = Path(__file__).parents[3].parent / "shared" / "data"
    if logs.is_dir():
        made = [one for problem in LOGS for one in sources(problem, logs) if one.kind == "imported"]
        assert {one.id: one.instance.content_hash() for one in made} == {id: one.hash for id, one in shipped.items()}


def test_what_is_drawn_is_drawn_again() -> None:
    """The declaration still makes the instances that are frozen; hunts may have found others since."""
    frozen = {entry.id: entry.known.hash for entry in RECORDS if entry.known.kind in ("generated", "imported-like")}
    drawn = {one.id: one.instance.content_hash() for problem in ("rar-ddls", "g-vne") for one in sources(problem)}
    assert sum(drawn[name] == frozen[name] for name in drawn.keys() & frozen.keys()) > 60
    assert all(drawn[name] == frozen[name] for name in drawn.keys() & frozen.keys())


@pytest.mark.parametrize("problem", sorted(all_problems()))
def test_a_picture_names_what_the_pointer_rests_on(problem: str) -> None:
    """Blocks, bars, links and servers: a title for each, which begins with a name of the instance."""
    entry = next(one for one in entries(problem) if one.known.solution is not None)
    assert entry.known.solution is not None
    svg = as_svg(figure_of(entry.problem)(entry.instance, entry.known.solution))
    titles = re.findall("<title>(.*?)</title>", svg)
    instance = vars(entry.instance)
    groups = [instance[key] for key in ("jobs", "tasks", "gangs") if key in instance]
    names = {one.id for group in groups for one in group}
    told = {re.split("[:, ]", title)[0] for title in titles}
    assert "hover:" not in svg and names & told and len(titles) >= len(names & told)
    others = {"server", "switch", "runs", *(server.id for server in instance.get("servers", ()))}
    assert told <= names | others

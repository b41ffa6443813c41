"""The library as a folder of static pages that any server hosts, with one JSON file of everything and its schema."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from schedgap.benchmarks.instances import figure_of, workload_of
from schedgap.benchmarks.report.page import picture, render
from schedgap.benchmarks.report.sheet import Marked, Sheet
from schedgap.benchmarks.sweep.progress import Progress, Sink
from schedgap.benchmarks.text import number
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import SchedgapError
from schedgap.formulations.common.files import check_folder, write_bytes, write_text
from schedgap.formulations.common.instance import Json, Part
from schedgap.solvers.engines.lp import write_model
from schedgap.solvers.result import package_version
from schedgap.tools.library.collection import KEY, BestKnown, Credit, Entry, Past, about, plain_record
from schedgap.tools.library.standings import Outcome, Standing, outcome_row, standings, standings_sheet

LARGEST_MODEL = 20_000
"""Nonzeros of a model that is written as a file; ``schedgap export`` writes the others."""
EVERYTHING, SCHEMA = "library.json", "library.schema.json"


class Published(BestKnown):
    """A record with its instance."""

    instance: dict[str, Json]


class Everything(Part):
    """The content of ``library.json``.

    Attributes
    ----------
    hash : SHA-256 of this object without it, as JSON with sorted keys and no spaces
    schedgap : the version that wrote it
    records : every instance with what is known of it
    outcomes, standings : results of the methods that were run over them
    """

    title: str
    version: int
    license: str
    authors: str
    cite: str
    problems: list[str]
    schedgap: str
    records: list[Published]
    outcomes: list[Outcome] = Field(default=[])
    standings: list[Standing] = Field(default=[])
    hash: str


def schema() -> dict[str, Json]:
    """The JSON Schema of ``library.json``; a record's own is ``$defs/Published`` in it, without its instance."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Everything.model_json_schema()}


def everything(entries: Sequence[Entry], outcomes: Sequence[Outcome] = ()) -> dict[str, Json]:
    """What ``library.json`` holds, its hash included."""
    records = [
        {**plain_record(entry.known.model_dump(mode="json", exclude_none=True)), "instance": dict(entry.data)}
        for entry in entries
    ]
    found: dict[str, Json] = {
        **about(),
        "schedgap": package_version("schedgap") or "unknown",
        "records": records,
        "outcomes": [plain_record(one.model_dump(mode="json", exclude_none=True)) for one in outcomes],
        "standings": [one.model_dump(mode="json", exclude_none=True) for one in standings(outcomes)],
    }
    return {**found, "hash": content_hash(found)}


def content_hash(found: Mapping[str, Json]) -> str:
    """The hash of ``library.json``, from everything else in it."""
    rest = {key: value for key, value in found.items() if key != "hash"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Site:
    """Pages of records and of methods that ran on them, in a folder.

    Attributes
    ----------
    folder : where they go
    outcomes : outcomes of the methods
    wrong : what does not hold in the records, by id
    """

    folder: Path
    outcomes: Sequence[Outcome]
    wrong: Mapping[str, Sequence[str]]

    def write(self, entries: Sequence[Entry], progress: Sink | None = None) -> Path:
        """Write everything; the first page last.

        Raises
        ------
        InputError
            The folder cannot be written.
        """
        problems = dict.fromkeys(entry.problem.id for entry in entries)
        for name in ("problems", "methods", *(f"instances/{name}" for name in problems)):
            check_folder(self.folder / name)
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        meter = Progress(len(entries), progress, "library site")
        for entry in entries:
            self._instance(entry)
            meter.step(entry.id)
        meter.finish()
        found = everything(entries, self.outcomes)
        write_text(self.folder / EVERYTHING, json.dumps(found, indent=1, sort_keys=True, allow_nan=False) + "\n")
        write_text(self.folder / SCHEMA, json.dumps(schema(), indent=1) + "\n")
        parts = [(find_problem(name), [one for one in entries if one.problem.id == name]) for name in problems]
        for problem, mine in parts:
            self._problem(problem, mine)
        return self._page(
            "home",
            "index",
            "schedgap library",
            count=len(entries),
            parts=parts,
            tables={problem.id: self._standings(problem, "") for problem, _ in parts},
            facts=about(),
            digest=found["hash"],
            wrong=self.wrong,
        )

    def _problem(self, problem: Problem, entries: Sequence[Entry]) -> None:
        """The pages of a problem and of its methods."""
        table = self._standings(problem, "../")
        self._page("problem", f"problems/{problem.id}", problem.id, problem=problem, entries=entries, sheet=table)
        rows: dict[str, list[list[str]]] = {}
        known = {entry.id: entry for entry in entries}
        for one in self.outcomes:
            if one.id in known:
                name = Marked(one.id, "", f"../instances/{one.id}.html")
                rows.setdefault(one.method, []).append([name, *outcome_row(known[one.id], one)])
        for method, mine in rows.items():
            self._page("method", method_page(problem.id, method), method, problem=problem.id, rows=mine)

    def _page(self, kind: str, name: str, title: str, **more: object) -> Path:
        above = "../" * name.count("/")
        page = render(f"library_{kind}.html", title, above=above, number=number, **more)
        return write_text(self.folder / f"{name}.html", page)

    def _standings(self, problem: Problem, above: str) -> Sheet:
        """The table of a problem's methods, each with a link to its page."""
        found = [one for one in standings(self.outcomes) if one.problem == problem.id]
        return standings_sheet(found, [_linked(one, above) for one in found])

    def _instance(self, entry: Entry) -> None:
        """The page of an instance, with its picture and its files."""
        known, problem, wrong = entry.known, entry.problem, self.wrong.get(entry.id, ())
        name = f"instances/{entry.id}"
        drawn = None
        if known.solution is not None and not wrong and workload_of(problem).figure is not None:
            figure = figure_of(problem)(entry.instance, known.solution)
            told = f"The best schedule known: {problem.objective_name} {number(known.objective)}"
            drawn = picture(figure, told)
        self._page(
            "instance",
            name,
            entry.id,
            entry=entry,
            wrong=wrong,
            runs=[[_linked(one, "../../"), *outcome_row(entry, one)] for one in self.outcomes if one.id == entry.id],
            drawn=drawn,
            no_model=self._files(entry, self.folder / name),
            history=_history(known),
        )

    def _files(self, entry: Entry, path: Path) -> str:
        """The instance with its record, its schedule, certificate and model; why there is no model."""
        record = entry.known.model_dump(mode="json", exclude_none=True)
        for ending, part in (("", {**entry.data, KEY: record}), (".solution", entry.known.solution)):
            write_text(path.with_name(f"{path.name}{ending}.json"), json.dumps(part, indent=1) + "\n")
        if entry.certificate is not None and entry.certificate.is_file():
            write_bytes(path.with_name(entry.certificate.name), entry.certificate.read_bytes())
        return _model_file(entry, path.with_name(f"{path.name}.mps.gz"))


def _model_file(entry: Entry, path: Path) -> str:
    """Write the paper's own model of an instance; otherwise why there is none."""
    problem = entry.problem
    try:
        size = problem.model_size(entry.instance)
        if size is not None and size > LARGEST_MODEL:
            return f"it would have {size:,} nonzeros; schedgap export INSTANCE --format mps --out FILE writes it"
        model = problem.model(entry.instance, tighten=False)
        if model is None or model.abstract:
            return "the problem has no model in rows"
        with tempfile.TemporaryDirectory() as folder:
            plain = Path(folder) / "model.mps"
            write_model(model, plain, "mps")
            write_bytes(path, gzip.compress(plain.read_bytes(), mtime=0))
    except SchedgapError as error:
        return str(error)
    return ""


def _history(known: BestKnown) -> list[tuple[str, float | None, str, Credit]]:
    """What the record was and is by day: what, its value, level of proof, who."""
    rows: list[tuple[str, float | None, str, Credit]] = []
    steps: list[Past | BestKnown] = [*known.history, known]
    for step in steps:
        if step.found is not None:
            rows.append(("schedule", step.objective, "", step.found))
        if step.proven is not None:
            rows.append(("bound", step.bound, step.proof or "", step.proven))
    return sorted(rows, key=lambda row: row[3].date)


def _linked(one: Outcome | Standing, above: str) -> Marked:
    """The name of its method with a link to its page."""
    return Marked(one.method, "", f"{above}{method_page(one.problem, one.method)}.html")


def method_page(problem: str, method: str) -> str:
    """The page of a method, without its ending."""
    return f"methods/{problem}-{re.sub(r'[^A-Za-z0-9_.+-]+', '-', method)}"

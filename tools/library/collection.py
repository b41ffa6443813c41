"""The library's records: frozen instances with the best schedule and bound known, one JSON file each.

``collection/<problem>/<name>.json`` is the instance itself with a ``reference_record`` beside it, which readers of
instances ignore; a certificate of its bound is ``<name>-<digest>.cert``. A folder of one's own has the same form, and
its records stand before the shipped ones of the same id.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from schedgap.benchmarks.proving import compressed, read_certificate, with_certificate
from schedgap.benchmarks.records import plain_number
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, find_problem, parse_instance
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.files import check_folder, read_bytes, write_bytes, write_text
from schedgap.formulations.common.instance import Instance, Json, Line, Part, Solution, read_json, validated
from schedgap.formulations.common.numbers import agrees
from schedgap.solvers.incumbent import contradicts, optimal
from schedgap.solvers.result import Proof

SHIPPED = Path(__file__).parent / "collection"
ABOUT = "collection.json"
KEY = "reference_record"
LARGEST = 20_000
"""Letters of an instance that methods are scored on: larger ones take longer to judge than a search has."""
Kind = Literal["generated", "imported", "imported-like", "hunted", "reference"]


class Credit(Part):
    """Who found a schedule or a bound, by what, and when (a day, as 2026-01-31)."""

    by: Annotated[str, Field(min_length=1, max_length=200)]
    method: str | None = None
    settings: dict[str, Json] = Field(default={})
    seed: int | None = None
    engine: str | None = None
    engine_version: str | None = None
    schedgap: str
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]


class Past(Part):
    """What left a record when something better came: a schedule's objective, or a bound, with who had it."""

    objective: float | None = None
    found: Credit | None = None
    bound: float | None = None
    proof: Annotated[Proof | None, Field(strict=False)] = None
    proven: Credit | None = None


class BestKnown(Part):
    """What is known of an instance: the content of ``reference_record``.

    Attributes
    ----------
    id : ``<problem>/<name>``
    kind, made : where the instance comes from, and exactly how
    license, cite : terms and citation of the log that it was imported from; None where everything is the project's own
    hash : hash of the instance
    status : ``optimal`` where the bound meets the schedule, otherwise ``open``
    objective, solution, found : the best schedule, and who found it; None where none is known
    bound, proof, proven : the best bound, how far it is proven, and who did
    certificate : file of the certificate, where `proof` is certified
    accepted : checkers of others that accepted it, with their versions; ours did where there is one
    history : what was known before, the oldest first
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]+/[A-Za-z0-9_.+-]+$")]
    kind: Kind
    made: dict[str, Json]
    license: Annotated[str | None, Field(min_length=1, max_length=60)] = None
    cite: Annotated[str | None, Field(min_length=1, max_length=400)] = None
    hash: str
    status: Literal["optimal", "open"] = "open"
    objective: float | None = None
    found: Credit | None = None
    bound: float | None = None
    proof: Annotated[Proof | None, Field(strict=False)] = None
    proven: Credit | None = None
    certificate: Annotated[str, Field(pattern=r"^[A-Za-z0-9_+][A-Za-z0-9_.+-]*\.cert$")] | None = None
    accepted: list[Line] = Field(default=[])
    history: list[Past] = Field(default=[])
    solution: dict[str, Json] | None = None


@dataclass(frozen=True)
class Entry:
    """An instance of the library with what is known of it."""

    known: BestKnown  # the record
    data: Mapping[str, Json]  # the instance as a JSON object
    path: Path | None = None  # its file; None before it is written

    @property
    def id(self) -> str:
        """``<problem>/<name>``."""
        return self.known.id

    @property
    def problem(self) -> Problem:
        """The problem of the instance."""
        return find_problem(self.id.partition("/")[0])

    @cached_property
    def instance(self) -> Instance:
        """The instance, validated."""
        return parse_instance(self.data, str(self.path or self.id))[1]

    @cached_property
    def frozen(self) -> bool:
        """Whether it is one of those that methods are scored on: small, and with a bound."""
        return self.known.bound is not None and len(json.dumps(self.data)) <= LARGEST

    @property
    def certificate(self) -> Path | None:
        """The file of the certificate, where the bound has one."""
        name = self.known.certificate
        return None if name is None or self.path is None else self.path.parent / name

    def ratio(self, objective: float | None) -> tuple[float | None, str]:
        """Its ratio to the best possible, and to what: "optimum", "bound", or "" where unknown."""
        if self.known.bound is None:
            return None, ""
        if self.known.status == "optimal":
            return self.problem.ratio(self.instance, objective, self.known.objective), "optimum"
        return self.problem.ratio(self.instance, objective, self.known.bound), "bound"

    def write(self, folder: Path, certificate: Mapping[str, Json] | str | None = None) -> Entry:
        """Write the record into a library, the certificate first; what it replaces goes last.

        Parameters
        ----------
        folder : folder of the library
        certificate : certificate of the bound; where it is not given and the record has one, that is copied
        """
        problem, _, name = self.id.partition("/")
        home = folder / problem.replace("-", "_")
        check_folder(home)
        home.mkdir(parents=True, exist_ok=True)
        known, path = self.known, home / f"{name}.json"
        if known.proof is Proof.CERTIFIED:
            content = None if self.certificate is None else read_bytes(self.certificate)
            if certificate is not None:
                whole = json.loads(certificate) if isinstance(certificate, str) else certificate
                content = compressed(whole)
            if content is None:
                raise InputError(f"{self.id}: a certified bound without its certificate")
            file = f"{name}-{hashlib.sha256(content).hexdigest()[:8]}.cert"
            accepted = known.accepted if file == known.certificate else []  # another one nobody else has seen
            known = known.model_copy(update={"certificate": file, "accepted": accepted})
            write_bytes(home / file, content)
        elif known.certificate is not None or known.accepted:
            known = known.model_copy(update={"certificate": None, "accepted": []})
        record = known.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        record = plain_record({**record, "status": known.status})
        write_text(path, _text({**self.data, KEY: record}))
        for old in home.glob(f"{name}-????????.cert"):
            if old.name != known.certificate:
                old.unlink()
        if folder.resolve() == SHIPPED.resolve():
            _shipped.cache_clear()
        return replace(self, known=known, path=path)


def plain_record(record: dict[str, Json]) -> dict[str, Json]:
    """A record, or a run on one, whose whole numbers become ints."""
    for key in record.keys() & {"objective", "bound"}:
        record[key] = plain_number(record[key])
    return record


def _text(data: Mapping[str, Json]) -> str:
    """JSON with a line for each part of the instance and of the record."""

    def lines(part: Mapping[str, Json], indent: str) -> str:
        rows = [f"{indent}{json.dumps(key)}: {inner(key, value)}" for key, value in part.items()]
        return "{\n" + ",\n".join(rows) + "\n" + indent[1:] + "}"

    def inner(key: str, value: Json) -> str:
        return lines(value, "  ") if key == KEY else json.dumps(value, allow_nan=False, separators=(",", ":"))

    return lines(data, " ") + "\n"


def read(path: Path) -> Entry:
    """The record in a file.

    Raises InputError: it is not an instance with a record; one line that names the place.
    """
    data = read_json(path)
    if not isinstance(data, Mapping) or KEY not in data:
        raise InputError(f"{path}: {KEY}: is missing")
    known = validated(BestKnown, data[KEY], f"{path}: {KEY}")
    problem, _, name = known.id.partition("/")
    if problem not in all_problems() or (problem.replace("-", "_"), name) != (path.parent.name, path.stem):
        raise InputError(f"{path}: {KEY}.id: does not belong to this file, got {known.id!r}")
    return Entry(known, {key: value for key, value in data.items() if key != KEY}, path)


@cache
def _shipped() -> dict[str, Entry]:
    return _within(SHIPPED)


def _within(folder: Path, malformed: Callable[[str], None] | None = None) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for path in sorted(folder.glob("*/*.json")):
        try:
            entry = read(path)
        except InputError as error:
            if malformed is None:
                raise
            malformed(str(error))
        else:
            found[entry.id] = entry
    return found


def entries(
    problem: str | None = None, folder: str | Path | None = None, malformed: Callable[[str], None] | None = None
) -> tuple[Entry, ...]:
    """The records of the library.

    Raises InputError: an unknown problem, or, where nobody is told, a file that is not a record.

    Parameters
    ----------
    problem : only this one
    folder : a library of one's own, whose records stand before the shipped ones of the same id, and beside them
    malformed : told of each file in it that is no record, in one line; the others are read
    """
    if problem is not None:
        find_problem(problem)
    known = dict(_shipped())
    if folder is not None:
        if Path(folder).exists() and not Path(folder).is_dir():
            raise InputError(f"{folder}: is not a folder")
        known |= _within(Path(folder), malformed)
    order = list(all_problems())
    places = {name: number for number, name in enumerate(order)}
    chosen = [entry for entry in known.values() if problem in (None, entry.id.partition("/")[0])]

    def place(entry: Entry) -> tuple[int, str]:
        owner = entry.id.partition("/")[0]
        return places.get(owner, len(order)), entry.id

    return tuple(sorted(chosen, key=place))


def with_instances(among: tuple[Entry, ...], malformed: Callable[[str], None] | None) -> tuple[Entry, ...]:
    """The records whose instance is one; `malformed` is told of each other in one line. All where nobody is told."""
    if malformed is None:
        return among
    found = []
    for entry in among:
        try:
            _ = entry.instance
        except InputError as error:
            malformed(str(error))
        else:
            found.append(entry)
    return tuple(found)


def find(name: str, among: Sequence[Entry] | None = None) -> Entry:
    """The record of this id, among the shipped ones where no others are given.

    Raises InputError: there is none.
    """
    known = {entry.id: entry for entry in (entries() if among is None else among)}
    if name not in known:
        raise InputError(f"library: unknown record {name!r} (see: schedgap library list){near(name, known)}")
    return known[name]


def about() -> Mapping[str, Json]:
    """The collection's version, licence and citation."""
    found: Mapping[str, Json] = read_json(SHIPPED / ABOUT)
    return found


def judged(entry: Entry, solution: Solution, certificate: Path | str | None) -> tuple[CheckReport, float | None]:
    """What the problem's checker says of a schedule, and what a certificate proves.

    Returns the report, with ``details["certificate"]``, and the certified bound; None where there is none. Raises
    InputError: the certificate cannot be read.

    Parameters
    ----------
    certificate : its file, or its JSON text
    """
    report = entry.problem.check(entry.instance, solution)
    if certificate is None:
        return report, None
    text = certificate if isinstance(certificate, str) else read_certificate(certificate)
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise InputError(f"the certificate of {entry.id} is not JSON: {fault}") from None
    if not isinstance(given, Mapping):
        raise InputError(f"the certificate of {entry.id} must be a JSON object, got {type(given).__name__}")
    report, verdict = with_certificate(entry.problem, entry.instance, solution, report, given)
    return report, None if verdict is None or verdict.bound is None else float(verdict.bound)


def faults(entry: Entry) -> list[str]:
    """What does not hold in a record; empty where everything does. All is computed anew, nothing is believed."""
    known, problem = entry.known, entry.problem
    found = []
    if entry.instance.content_hash() != known.hash:
        found.append("the instance is not the one that was recorded: another hash")
    if len({known.kind == "imported", known.license is not None, known.cite is not None}) > 1:
        found.append("imported, and the license and citation of the log, go together")
    if (known.bound is None) != (known.proof is None) or (known.bound is None) != (known.proven is None):
        found.append("a bound has a level of proof and who proved it, nothing else has")
    if (known.proof is Proof.CERTIFIED) != (known.certificate is not None):
        found.append("certified, and a certificate, go together")
    if known.accepted and known.certificate is None:
        found.append("a certificate is accepted by checkers of others, but there is none")
    if known.solution is None or known.objective is None or known.found is None:
        return [*found, "there is no schedule with its objective and who found it"]
    report, bound = judged(entry, known.solution, entry.certificate)
    found += [f"{one.constraint}: {one.message}" for one in report.violations]
    if report.objective is None or not agrees(report.value, known.objective):
        found.append(f"{problem.objective_name} {known.objective:.12g} recorded, {report.objective} recomputed")
    if contradicts(known.objective, known.bound, problem.sense):
        found.append(f"the schedule's {known.objective:.12g} is better than the bound {known.bound:.12g}")
    if known.certificate is not None and (bound is None or known.bound is None or not agrees(bound, known.bound)):
        found.append(f"bound {known.bound} recorded, the certificate proves {bound}")
    closed = report.details.get("certificate", {}).get("optimal") if known.proof is Proof.CERTIFIED else None
    met = optimal(known.objective, known.bound, problem.sense) if closed is None else closed
    if (known.status == "optimal") != met:
        found.append(f"recorded as {known.status}, but the bound {'meets' if met else 'does not meet'} the schedule")
    return found

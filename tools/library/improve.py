"""How a record gets better: a strictly better schedule, a strictly better bound, or a higher level of proof."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from schedgap.benchmarks.text import number
from schedgap.catalogue.agreement import DISAGREEMENTS, write_disagreement
from schedgap.formulations.common.check import Violation
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.instance import Instance, Json, Solution, validated
from schedgap.formulations.common.numbers import agrees, better
from schedgap.solvers.incumbent import contradicts, optimal
from schedgap.solvers.result import Proof, package_version
from schedgap.tools.library.collection import BestKnown, Credit, Entry, Past, entries, judged

FREE = ("MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC-BY-4.0", "CC0-1.0")
"""Licenses of logs that may be part of the collection."""


@dataclass(frozen=True)
class Offer:
    """What somebody has of an instance."""

    credit: Credit  # who has it, and from where
    solution: Solution | None = None  # a schedule
    certificate: str | None = None  # JSON text
    # bound, proof: without a certificate; the library's own runs alone may say so
    bound: float | None = None
    proof: Proof | None = None
    claimed: float | None = None  # the objective that is said to be the schedule's; None where nothing is said


@dataclass(frozen=True)
class Judged:
    """What came of an offer."""

    # before, after: the record; the same object where nothing got better
    before: Entry
    after: Entry
    # what is wrong with the schedule or with the certificate; then nothing was taken
    violations: tuple[Violation, ...] = ()
    gains: tuple[str, ...] = ()  # a line for each part that got better
    lacks: tuple[str, ...] = ()  # a line for each part that was offered and is correct, but no better
    certificate: str | None = None  # JSON text of the bound that was taken, where it has one

    @property
    def improved(self) -> bool:
        """Whether the record got better."""
        return bool(self.gains)

    def write(self, folder: Path) -> Entry:
        """Write the record, where it got better."""
        return self.after.write(folder, self.certificate) if self.improved else self.before

    def to_dict(self) -> dict[str, Json]:
        """The object that ``library submit --json`` prints."""
        known = self.after.known
        return {
            "id": self.before.id,
            "accepted": not self.violations,
            "improved": self.improved,
            "gains": list(self.gains),
            "lacks": list(self.lacks),
            "violations": [f"{one.constraint}: {one.message}" for one in self.violations],
            "status": known.status,
            "objective": known.objective,
            "bound": known.bound,
            "proof": known.proof,
            "file": None if self.after.path is None else str(self.after.path),
        }

    def to_text(self) -> str:
        """What came of it, for a person."""
        lines = [f"{one.constraint}: {one.message}" for one in self.violations]
        if self.violations:
            return "\n".join([*lines, f"{self.before.id}: refused, the record stays as it is"])
        lines = [*self.gains, *self.lacks]
        if not self.improved:
            return "\n".join([*lines, f"{self.before.id}: correct, but no improvement: the record stays as it is"])
        return "\n".join(
            [*lines, f"{self.before.id}: improved, {self.after.known.status}; written to {self.after.path}"]
        )


def credit(by: str, **facts: Json) -> Credit:
    """The credit of today and of this version of schedgap.

    Raises InputError: nobody is named, or the name is too long.
    """
    if not by.strip() or len(by) > 200 or not by.isprintable():
        raise InputError(f"by: must be a name of 1 to 200 characters on one line, got {by[:60]!r}")
    given = {key: value for key, value in facts.items() if value is not None}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Credit(by=by.strip(), schedgap=package_version("schedgap") or "unknown", date=today, **given)


def new_entry(
    name: str,  # ``<problem>/<name>``, which no record has
    instance: Instance,
    file: str,  # what it was read from
    # license, cite: terms and citation of the log
    license: str | None,
    cite: str | None,
    # the library it is for; None for the shipped collection, which takes only :data:`FREE` licenses
    folder: str | Path | None,
) -> Entry:
    """An imported instance before anything is known of it.

    Raises InputError: the id or the instance is there already or does not fit, or the terms are missing or not free.
    """
    where = f"library submit {name}"
    problem = instance.problem_id
    if license is None or cite is None:
        raise InputError(f"{where}: a new record needs --license and --cite: the terms of the log")
    if folder is None and license not in FREE:
        free = ", ".join(FREE)
        raise InputError(f"--license: the collection takes only what may be handed on ({free}), got {license!r}")
    if not name.startswith(f"{problem}/"):
        raise InputError(f"{where}: the instance is of {problem}: its id is {problem}/NAME")
    data = {
        "id": name,
        "kind": "imported",
        "made": {"file": file},
        "license": license,
        "cite": cite,
        "hash": instance.content_hash(),
    }
    known = validated(BestKnown, data, where)
    for entry in entries(folder=folder):
        if name == entry.id or known.hash == entry.known.hash:
            raise InputError(f"{where}: {entry.id} is there already; improve it without --instance")
    return Entry(known, instance.to_dict())


def judge(entry: Entry, offer: Offer, disagreements: Path = DISAGREEMENTS) -> Judged:
    """What an offer adds to a record; nothing is written.

    Parameters
    ----------
    entry : the record as it is
    offer : what somebody has; everything in it is checked, but for a bound without a certificate
    disagreements : the folder an instance is written to when parts disagree

    Raises
    ------
    InputError
        The solution cannot be read, or there is nothing to judge.
    Disagreement
        A schedule that the checker accepts is better than a bound that is proven: the instance and the schedule are
        in a file.
    """
    known, problem = entry.known, entry.problem
    solution = offer.solution if offer.solution is not None else known.solution
    if solution is None or (offer.solution is None and offer.certificate is None and offer.bound is None):
        raise InputError(f"{entry.id}: nothing is offered that could improve the record")
    report, _ = judged(entry, solution, None)
    if report.violations or report.objective is None:
        return Judged(entry, entry, report.violations)
    objective = report.value
    if offer.claimed is not None and not agrees(objective, offer.claimed):
        said = f"{number(offer.claimed, 12)} is claimed, the checker computes {number(objective, 12)}"
        return Judged(entry, entry, (Violation("objective", said),))
    if contradicts(objective, known.bound, problem.sense):
        at_hand = {"solution": solution, "objective": objective}
        what = f"the bound in the record is {number(known.bound, 12)} ({known.proof})"
        raise _conflict(entry, at_hand, what, disagreements)
    gains, lacks = [], []
    left: dict[str, Json] = {}
    change: dict[str, Json] = {}
    if offer.solution is not None:
        name = problem.objective_name
        if known.objective is None or better(objective, known.objective, problem.sense):
            change |= {"solution": offer.solution, "objective": objective, "found": offer.credit}
            left |= {"objective": known.objective, "found": known.found}
            gains.append(f"{name} {number(objective, 12)}, {number(known.objective, 12)} was known")
        else:
            beside = "the same as" if agrees(objective, known.objective) else "worse than"
            lacks.append(f"{name} {number(objective, 12)}, {beside} the {number(known.objective, 12)} that is known")
    best = known.model_copy(update=change)
    assert best.solution is not None and best.objective is not None  # one was offered or known
    bound, proof, text = offer.bound, offer.proof, None
    if offer.certificate is not None:
        report, certified = judged(entry, best.solution, offer.certificate)
        if certified is None and "certificate" in report.details:  # accepted
            raise _conflict(entry, best.model_dump(), "a certificate proves that there is none", disagreements)
        if certified is None:
            return Judged(entry, entry, report.violations)
        bound, proof = certified, Proof.CERTIFIED
    if contradicts(best.objective, bound, problem.sense):
        what = f"the bound that is offered is {number(bound, 12)} ({proof})"
        raise _conflict(entry, best.model_dump(), what, disagreements)
    if report.violations:  # a certificate that is off by no more than the tolerance of objectives
        return Judged(entry, entry, report.violations)
    meets = known.bound is not None and _meets(entry, best, entry.certificate)
    if bound is not None and proof is not None:
        offered = best.model_copy(update={"bound": bound, "proof": proof, "proven": offer.credit, "certificate": None})
        closes = _meets(entry, offered, offer.certificate)
        was = "none was known" if known.bound is None else f"{number(known.bound, 12)}, {known.proof}, is known"
        if _stronger(known, meets, offered, closes, problem.sense):
            best, meets, text = offered, closes, offer.certificate
            left |= {"bound": known.bound, "proof": known.proof, "proven": known.proven}
            gains.append(f"bound {number(bound, 12)}, {proof}; {was}")
        else:
            lacks.append(f"bound {number(bound, 12)}, {proof}: no better; {was}")
    if not gains:
        return Judged(entry, entry, (), (), tuple(lacks))
    past = [Past(**left)] if any(value is not None for value in left.values()) else []
    status = "optimal" if meets else "open"
    best = best.model_copy(update={"status": status, "history": [*known.history, *past]})
    return Judged(entry, Entry(best, entry.data, entry.path), (), tuple(gains), tuple(lacks), text)


def _stronger(known: BestKnown, meets: bool, offered: BestKnown, closes: bool, sense: int) -> bool:
    """Whether a bound is better than the known one; or as good, and it meets the schedule, or is proven further."""
    if known.bound is None or known.proof is None or offered.bound is None or offered.proof is None:
        return known.bound is None
    if agrees(offered.bound, known.bound):
        return (closes, -list(Proof).index(offered.proof)) > (meets, -list(Proof).index(known.proof))
    return sense * offered.bound > sense * known.bound


def _meets(entry: Entry, known: BestKnown, certificate: Path | str | None) -> bool:
    """Whether the bound meets the schedule: as the certificate proves it where there is one, otherwise to 1e-9."""
    if certificate is None or known.solution is None:
        return optimal(known.objective, known.bound, entry.problem.sense)
    report, _ = judged(entry, known.solution, certificate)
    return bool(report.details.get("certificate", {}).get("optimal"))


def _conflict(entry: Entry, known: Mapping[str, Json], what: str, folder: Path) -> Disagreement:
    """What is raised where a schedule that the checker accepts contradicts a proof; both go to a file."""
    text = f"{entry.id}: a schedule of {number(known['objective'], 12)} is accepted by the checker, but {what}"
    path = write_disagreement(entry.instance, folder, message=text, solution=known["solution"])
    return Disagreement(f"{text}; instance and schedule are in {path}", solution=known["solution"])

"""What a file of VIPR states before its derivations, and whether a file states what the instance says."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.content import plain
from schedgap.solvers.certificates.linear import Model, Rejected, reject
from schedgap.solvers.certificates.rows_only import NO_ROWS

_NOTE = "% schedgap "
_END = b"\n"
_PLAIN = bytes(range(32, 127)) + _END


def head(instance: Mapping[str, Any], certificate: Mapping[str, Any]) -> Iterator[str]:
    """The file up to its derivations: a note of what it is about, variables, objective, rows and what is to be proven.

    The objective is minimised: of a problem that maximises it is minus the value. Its constant is in the note.
    Of the certificate the form, the options and the claim are read, which are also what the note says.

    Raises Rejected: they are none.
    """
    model, claim = stated(instance, certificate)
    about = {
        "instance": checker.digest(instance),
        "problem": instance["problem"],
        "form": certificate["form"],
        "options": dict(checker.options_of(certificate)),
        "claim": "infeasible" if claim is None else str(claim),
        "constant": str(model.constant),
        "sense": model.sense,
    }
    yield _NOTE + json.dumps(about, default=str)
    for j, name in enumerate(model.names):
        yield f"% x{j} = {json.dumps(name)}"
    count, whole = len(model.names), [str(j) for j, integral in enumerate(model.whole) if integral]
    yield from ("VER 1.0", f"VAR {count}", *(f"x{j}" for j in range(count)))
    yield from (f"INT {len(whole)}", " ".join(whole), "OBJ min", sum_of(dict(enumerate(model.cost))))
    yield f"CON {len(model.rows) + 2 * count} 0"
    for line, row in enumerate(model.rows.values()):
        yield f"C{line} {'E' if row.equal else 'G'} {row.right} {sum_of(row.terms)}"
    for j, (low, high) in enumerate(domains(model)):
        line = len(model.rows) + 2 * j
        yield f"C{line} G {low} 1 {j} 1"
        yield f"C{line + 1} L {high} 1 {j} 1"
    yield "RTP infeas" if claim is None else f"RTP range {model.sense * claim - model.constant} inf"
    yield "SOL 0"


def sum_of(terms: Mapping[int, Fraction]) -> str:
    """The left side of a row, as a file of VIPR has it."""
    there = [(j, a) for j, a in terms.items() if a]
    return " ".join([str(len(there)), *(f"{j} {a}" for j, a in there)])


def domains(model: Model) -> Sequence[tuple[Any, Any]]:
    """Bounds of the variables; those of whole ones are whole."""
    return [
        (math.ceil(low), math.floor(high)) if whole else (low, high)
        for low, high, whole in zip(model.low, model.high, model.whole, strict=True)
    ]


def stated(instance: Mapping[str, Any], certificate: Mapping[str, Any]) -> tuple[Model, Fraction | None]:
    """(the rows that a certificate or the note of a file is about, its claim), refused as the checker refuses them."""
    form, options = certificate.get("form"), checker.options_of(certificate)
    others = getattr(checker.rules_of(instance["problem"]), "AS_ROWS", {})
    model = checker.model_of(instance, form, options, "AS_ROWS" if form in others else "FORMS")
    if model.price is not None:
        reject(f'certificates in form "{form}" are {NO_ROWS[str(form)]}')
    return model, checker.claimed(certificate, model)


def about(instance: Mapping[str, Any], path: str | Path) -> tuple[str, Fraction | None]:
    """What a file of VIPR says of an instance: its form, and its claim, None where that is that there is no schedule.

    Everything before the derivations is compared with what :func:`head` writes for the instance. Whether the
    derivations prove it is for a checker of VIPR to say.

    Bytes are compared, since others end lines elsewhere: there is no control character in the file but line feeds.

    Raises
    ------
    Rejected
        The file is not about this instance; the message names the first line that differs.
    OSError
        It cannot be read.
    """
    raw = checker.content(str(path))
    if strange := raw.translate(None, _PLAIN):
        at = raw.index(strange[:1])
        reject(f"{path}: line {raw.count(_END, 0, at) + 1}: has the byte {strange[0]:#04x}, which is no plain text")
    first = raw.partition(_END)[0].decode()
    if not first.startswith(_NOTE):
        reject(f"{path}: line 1: is not the note of schedgap, got {first[:60]!r}")
    note = checker.parse(first[len(_NOTE) :])
    if not isinstance(note, dict):
        reject(f"{path}: line 1: is not the note of schedgap, got {first[:60]!r}")
    with checker.refusing():
        at = 0
        for place, expected in enumerate(head(instance, note), start=1):
            line = expected.encode() + _END
            if not raw.startswith(line, at):
                got = raw[at : at + 60].partition(_END)[0].decode()
                reject(f"{path}: line {place}: {expected[:60]!r} by the instance, got {got!r}")
            at += len(line)
        if not raw.startswith(b"DER ", at):
            got = raw[at : at + 60].partition(_END)[0].decode()
            reject(f"{path}: line {place + 1}: the derivations should begin, got {got!r}")
    claim = note["claim"]
    return note["form"], None if claim == "infeasible" else Fraction(claim)


def with_vipr(problem: Problem, instance: Instance, report: CheckReport, path: str | Path) -> CheckReport:
    """The report with what a file of VIPR says of the instance.

    Whether that is proven, a checker of VIPR says. A violation is a file whose variables, rows or aim are not those
    of the instance, or whose claim the solution refutes. ``details["vipr"]`` has the form and the claim.
    """
    found = list(report.violations)
    try:
        form, claim = about(plain(instance), path)
    except Rejected as fault:
        found.append(Violation("vipr", f"rejected: {fault}"))
        return CheckReport(tuple(found), report.objective, report.details)
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"{path}: cannot be read as a file of VIPR: {why}") from None
    value = report.objective
    if not found and value is not None and (told := _refuted(problem, value, claim)):
        message = f"the file claims that {told}; here is one of {float(value):.12g}"
        found.append(Violation("vipr", message))
    stated = None if claim is None else str(claim)
    details = {**report.details, "vipr": {"form": form, "claim": stated}}
    return CheckReport(tuple(found), value, details)


def _refuted(problem: Problem, value: Fraction, claim: Fraction | None) -> str:
    """What is claimed and refuted by a schedule of a value; empty where nothing is."""
    if claim is None:
        return "there is no schedule"
    return f"none is better than {claim}" if problem.sense * (value - claim) < 0 else ""

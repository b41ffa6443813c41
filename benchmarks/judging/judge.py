"""Guarantees on runs: which claims a method has, a user's among them, and what they and the ledger say of an answer.

A comparison of two sides is decided in ``heuristics/common/guarantee.py`` (`at_most`), the verdict of a claim over all
its trials in ``rows.py`` (`Tally`).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from schedgap.catalogue.agreement import Agreement
from schedgap.catalogue.method import Method, full_settings, last_line_of, one_line, users_code, users_file
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Instance, Json, read_json
from schedgap.heuristics.common.guarantee import OWN, READING, Case, Evaluation, Guarantee, Verdict, not_applicable

# The ledger's verdicts as they ship: what the last whole ``verify`` found, so that no table contradicts it.


LEDGER_FILE = Path(__file__).with_name("ledger_verdicts.json")
COUNTEREXAMPLES = "counterexamples"
"""Where a report keeps the counterexamples that it links to."""


@dataclass(frozen=True)
class LedgerVerdict:
    """One row of the ledger."""

    verdict: str  # "held", "refuted", "measured" or "not applicable"
    words: str  # the same with its counts
    # the instance that refutes it, as its file holds it; None where there is none
    counterexample: Mapping[str, Any] | None = None


NO_VERDICT = LedgerVerdict("", "not in the ledger")


@cache
def all_verdicts() -> Mapping[str, LedgerVerdict]:
    """Every row of the ledger that ships."""
    rows = read_json(LEDGER_FILE.name, LEDGER_FILE.read_text(encoding="utf-8"))["verdicts"]
    return {name: LedgerVerdict(**row) for name, row in rows.items()}


def ledger_verdict(guarantee: str) -> LedgerVerdict:
    """What the ledger says of a guarantee; :data:`NO_VERDICT` for one it does not have."""
    return all_verdicts().get(guarantee, NO_VERDICT)


def run_verdict(held: int, refuted: int) -> str:
    """What runs say of a claim, with their number."""
    if not held + refuted:
        return "not applicable"
    return f"refuted ({refuted} of {held + refuted})" if refuted else f"not refuted here ({held})"


def verdict_kind(refuted: bool, ledger: LedgerVerdict) -> str:
    """Refuted where this run or the ledger refutes it, held where the ledger says so, else empty: a colour's name."""
    if refuted or ledger.verdict == "refuted":
        return "refuted"
    return "held" if ledger.verdict == "held" else ""


def write_counterexamples(folder: Path, guarantees: Iterable[str]) -> None:
    """The counterexamples of those guarantees as instance files in ``folder/counterexamples``."""
    for name in dict.fromkeys(guarantees):
        data = ledger_verdict(name).counterexample
        if data is not None:
            (folder / COUNTEREXAMPLES).mkdir(exist_ok=True)
            write_text(folder / COUNTEREXAMPLES / f"{name}.json", json.dumps(data, indent=1) + "\n")


# Claims of a user's own: a Python file with ``CLAIMS``, tried beside those of the papers.


CLAIMS_VARIABLE = "SCHEDGAP_CLAIMS"
"""Names the file in the environment, so that worker processes have the same claims."""


@contextmanager
def claims_from(path: str | Path | None) -> Iterator[tuple[Guarantee, ...]]:
    """While this lasts, here and in new processes, the claims of a file count with those of their problems.

    Raises InputError: the file cannot be read or imported, or has no ``CLAIMS`` of :class:`Guarantee`.
    """
    if path is None:
        yield ()
        return
    before = os.environ.get(CLAIMS_VARIABLE)
    os.environ[CLAIMS_VARIABLE] = str(Path(path).resolve())
    try:
        yield users_claims()
    finally:
        if before is None:
            del os.environ[CLAIMS_VARIABLE]
        else:
            os.environ[CLAIMS_VARIABLE] = before


def users_claims() -> tuple[Guarantee, ...]:
    """The claims of the file that is in use, none where there is none."""
    path = os.environ.get(CLAIMS_VARIABLE)
    return _load(path) if path else ()


def claims_of(problem: Problem) -> tuple[Guarantee, ...]:
    """The guarantees of a problem, a user's own claims about it last.

    Raises InputError: a claim of one's own has the id of another.
    """
    own = tuple(claim for claim in users_claims() if claim.problem == problem.id)
    known = problem.guarantees()
    for claim in own:
        if any(claim.id == other.id for other in known):
            raise InputError(f"claims: {claim.id!r} is already the id of a guarantee of {problem.id}")
    return (*known, *own)


@cache
def _load(path: str) -> tuple[Guarantee, ...]:
    try:
        with users_code(Path(path)):
            module = users_file(Path(path))
    except (Exception, SystemExit) as error:
        raise InputError(f"{path}: cannot be imported: {one_line(error)}") from error
    _pickled_by_value(module)
    found = getattr(module, "CLAIMS", None)
    if not isinstance(found, list | tuple) or not found:
        raise InputError(f"{path}: must have CLAIMS, a list of Guarantee objects")
    for position, claim in enumerate(found):
        if not isinstance(claim, Guarantee):
            raise InputError(f"{path}: CLAIMS[{position}]: must be a Guarantee, got {type(claim).__name__}")
    ids = [claim.id for claim in found]
    for claim_id in ids:
        if ids.count(claim_id) > 1:
            raise InputError(f"{path}: CLAIMS: the id {claim_id!r} is used twice")
    return tuple(replace(claim, kind=OWN) for claim in found)


def _pickled_by_value(module: ModuleType) -> None:
    """Worker processes cannot import it by its name: what they are sent brings its functions along."""
    try:
        cloudpickle = import_module("joblib.externals.cloudpickle")  # where joblib ships it
    except ImportError:
        cloudpickle = import_module("cloudpickle")
    cloudpickle.register_pickle_by_value(module)


KINDS = ("printed", READING, "repaired")
"""In the order of tables; a user's own last."""


@dataclass(frozen=True)
class Judgement:
    """A guarantee on one run."""

    guarantee: Guarantee  # the claim
    evaluation: Evaluation  # its verdict here with both sides
    ratio_bound: float | None  # the proven bound on the ratio for this case, where the claim is one

    @property
    def verdict(self) -> Verdict:
        """HELD, REFUTED or NOT_APPLICABLE on this run."""
        return self.evaluation.verdict

    @property
    def ledger(self) -> str:
        """What the ledger that ships says of the claim."""
        return ledger_verdict(self.guarantee.id).words

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        return {
            "id": self.guarantee.id,
            "kind": self.guarantee.kind,
            "statement": self.guarantee.statement,
            "verdict": str(self.verdict),
            "left": finite(self.evaluation.left),
            "right": finite(self.evaluation.right),
            "ratio_bound": finite(self.ratio_bound),
            "reason": self.evaluation.reason,
            "outside": self.evaluation.outside,
        }


def guarantees_of(problem: Problem, method: str) -> tuple[Guarantee, ...]:
    """The claims about runs of one method, printed ones first, then readings; not those measured in their own way."""
    every = claims_of(problem)
    rows = [g for g in every if g.method == method and g.measure is None and g.sample is None]
    return tuple(sorted(rows, key=lambda g: KINDS.index(g.kind) if g.kind in KINDS else len(KINDS)))


def unjudged(problem: Problem, method: Method, reason: str) -> tuple[Judgement, ...]:
    """Every guarantee of a method that did not run, not applicable for this reason."""
    return tuple(Judgement(g, not_applicable(reason), None) for g in guarantees_of(problem, method.id))


def judge(
    problem: Problem,
    method: Method,
    settings: Mapping[str, object],  # the options the run was given; the others count with their defaults
    instance: Instance,
    # objective, info: the checker's objective (None: nothing found) and what the heuristic told of its run
    objective: float | None,
    info: Mapping[str, object],
    agreement: Agreement,  # what is proven about the instance
    sides: bool = False,  # both sides of a claim on the ratio outside of its assumptions too, where it can be
) -> tuple[Judgement, ...]:
    """Every guarantee of `method` on one of its runs."""
    rows = guarantees_of(problem, method.id)
    if not rows:
        return ()
    options = full_settings(method, settings)
    case = Case(instance, objective, info, agreement.optimum, agreement.bound, options)
    return tuple(evaluate(guarantee, case, sides) for guarantee in rows)


def evaluate(guarantee: Guarantee, case: Case, sides: bool = False) -> Judgement:
    """One guarantee on one case; `sides` as in :func:`judge`.

    Raises InputError: a user's own claim raised.
    """
    try:
        evaluation = guarantee.on(case, sides)
        applies = evaluation.verdict is not Verdict.NOT_APPLICABLE or evaluation.right is not None
        bound = guarantee.ratio_bound(case) if guarantee.ratio_bound is not None and applies else None
    except Exception as error:
        if guarantee.kind != OWN:
            raise
        raise InputError(f"claim {guarantee.id}: raised {one_line(error)}{last_line_of(error)}") from error
    return Judgement(guarantee, evaluation, bound)


def finite(value: float | None) -> float | str | None:
    """A number as JSON can hold it: infinity becomes the text "inf"."""
    if value is None or math.isfinite(value):
        return value
    return "inf" if value > 0 else "-inf"

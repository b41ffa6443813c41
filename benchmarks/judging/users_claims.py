"""Claims of a user's own: a Python file with ``CLAIMS``, tried beside those of the papers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from schedgap.catalogue.method import one_line, users_code, users_file
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError
from schedgap.heuristics.common.guarantee import OWN, Guarantee

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

"""An attacker of certificates: moves the numbers of a leaf, keeps what claims more, and looks for a false bound.

Its instances are those of ``support.small_scope``, whose optima are known. It begins at the best leaves of the class,
so that few steps lie between it and a false bound, and leaves the grids of the class: other numbers, signs and kinds
of values, keys and rows that come and go.
"""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from support.small_scope import FORMS, Case, bound_of

from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.linear import GRID

TEXTS = ("0", "-1", "1/3", "2/3", "1/2", "1", "3/2", "2", "1/7", "5/7")
STRANGE = (None, True, False, "", "0", -1, 0, 1, 10**30, 0.5, [], {})
LEAVES = 60
"""Leaves of the class that are looked at for a beginning."""


@dataclass
class Attack:
    """What came of one form.

    Attributes
    ----------
    tries, accepted : leaves, and those that are certificates
    tight : instances on which the optimum itself was reached
    false : instances and leaves with a bound that is better than the optimum
    """

    instances: int = 0
    tries: int = 0
    accepted: int = 0
    tight: int = 0
    false: list[Any] = field(default_factory=list)
    seconds: float = 0.0

    def line(self, form: str) -> str:
        """One row of a table."""
        counts = f"{self.instances:>5} {self.tries:>8} {self.accepted:>8} {self.tight:>5} {len(self.false):>3}"
        return f"{form:26} {counts} {self.seconds:>7.1f} s"


def attack(form: str, seed: int, instances: int, steps: int) -> Attack:
    """Attack the certificates of a form on some instances of its class, so many steps on each."""
    rng, found, began = random.Random(f"{form} {seed}"), Attack(), time.process_time()
    cases = [case for case in FORMS[form]() if case.optimum is not None]
    for case in rng.sample(cases, min(instances, len(cases))):
        found.instances += 1
        found.tight += _climb(case, rng, steps, found)
    found.seconds = time.process_time() - began
    return found


def _climb(case: Case, rng: random.Random, steps: int, found: Attack) -> bool:
    """Whether a bound that is the optimum was seen."""
    assert case.optimum is not None
    best, prover = case.model.sense * case.optimum, checker.Prover(case.model, None)
    leaves = list(case.leaves)
    leaves = rng.sample(leaves, min(LEAVES, len(leaves)))
    cover = rng.choice(case.covers)
    valued = [(bound, leaf) for leaf in leaves if isinstance(bound := bound_of(prover, leaf, cover), Fraction)]
    if not valued:
        return False
    value, leaf = max(valued, key=lambda pair: pair[0])
    reached = value == best
    for _ in range(steps):
        changed = copy.deepcopy(leaf)
        for _ in range(rng.choice((1, 1, 2, 3))):
            changed = _changed(changed, case, rng)
        found.tries += 1
        bound = bound_of(prover, changed, cover)
        if bound is None:
            continue
        found.accepted += 1
        if bound == "empty" or bound > best + abs(best) * case.near:
            found.false.append((case.instance, changed, cover, bound, best))
            continue
        reached |= bound == best
        if bound >= value:
            value, leaf = bound, changed
    return reached


def _changed(leaf: Any, case: Case, rng: random.Random) -> Any:
    """The leaf with one place changed; where it is of rows, one more row may come."""
    if case.model.price is None and isinstance(leaf, dict) and rng.random() < 0.4:
        return {**leaf, rng.choice(list(case.model.rows)): rng.choice(TEXTS)}
    places = list(_places(leaf))
    if not places:
        return rng.choice(STRANGE)
    owner, key = rng.choice(places)
    kind = rng.random()
    if kind < 0.05:
        owner[key] = rng.choice(STRANGE)
    elif kind < 0.12:
        del owner[key]
    elif kind < 0.2 and isinstance(owner, dict):
        owner[rng.choice((f"{rng.randrange(-1, 9)}", f" {key}", f"0{key}"))] = copy.deepcopy(owner[key])
    elif kind < 0.2:
        owner.insert(key, copy.deepcopy(rng.choice(owner)))
    else:
        owner[key] = _moved(owner[key], rng)
    return leaf


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in it, as what holds it and its key there."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


def _moved(value: Any, rng: random.Random) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        near = (value + 1, value - 1, value + rng.randrange(-GRID, GRID)) if abs(value) > 99 else (value + 1, value - 1)
        return rng.choice((*near, 2 * value, value // 2, value * 3 // 2, value * 7 // 8, -value, 0))
    if isinstance(value, str):
        try:
            return str(Fraction(value) * rng.choice((2, Fraction(1, 2), Fraction(9, 8), Fraction(7, 8), -1)))
        except ValueError:
            return rng.choice(TEXTS)
    if isinstance(value, list):
        return rng.sample(value, len(value))
    if isinstance(value, dict):
        keys = list(value)
        return dict(zip(keys, rng.sample(list(value.values()), len(keys)), strict=True))
    return value

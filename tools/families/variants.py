"""Other regular instances of the same value: what one size leaves open, the next may settle."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from schedgap.benchmarks.hunt.shrink import Tried
from schedgap.benchmarks.hunt.target import Probe
from schedgap.formulations.common.errors import InputError
from schedgap.tools.families.forms import (
    Form,
    forms_of,
    fraction,
    instance_of,
    numbers_of,
    with_numbers,
)
from schedgap.tools.families.generator import MOST_CONTINUED, places

CHANGES = (1, -1)
"""What is added to a number of a form."""


MOST_TRIED = 250
"""Instances tried around one."""


def variants(found: Probe, tried: Tried) -> list[Probe]:
    """Instances of the same runs and value, in which one or two numbers of a run, or of the rest, are one more or less.

    A budget of 3 for a demand of 2 may be one that grows with the demand or one that stays: at this size nothing tells,
    and shrinking keeps but one of them.

    Parameters
    ----------
    tried : evaluates an instance; None where the value is lower than it has to be
    """
    met: dict[str, Probe] = {}
    seen: set[str] = set()
    for form in forms_of(found.data)[:MOST_CONTINUED]:
        single = [change for change in _singles(form) if _take(form, [change], tried, met, seen)]
        for two in itertools.combinations(single, 2):
            if two[0][0] != two[1][0]:
                _take(form, two, tried, met, seen)
    return list(met.values())


Change = tuple[int, int]
"""The position of a number in a form, and what is added."""


def _singles(form: Form) -> Iterator[Change]:
    for k, (path, value) in enumerate(places(form)):
        if value is not None and not (path[0] == "lists" and path[-1] == "count"):
            yield from ((k, change) for change in CHANGES)


def _take(form: Form, changes: Sequence[Change], tried: Tried, met: dict[str, Probe], seen: set[str]) -> bool:
    """Whether the form with these changes writes an instance that is accepted; `met` and `seen` learn it."""
    added = dict(changes)
    values = [None if v is None else fraction(v) + added.get(k, 0) for k, v in enumerate(numbers_of(form))]
    try:
        data = instance_of(with_numbers(form, iter(values)))
    except InputError:
        return False
    key = str(data)
    if key in met:
        return True
    if key in seen or len(seen) > MOST_TRIED:
        return False
    seen.add(key)
    found = tried(data)
    if found is not None:
        met[key] = found
    return found is not None

"""One change of a JSON document, one damage of a text."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from schedgap.formulations.common.instance import Json

NUMBERS = (
    0,
    -1,
    1,
    2,
    10**9,
    10**9 + 1,
    10**15,
    10**18,
    2**63,
    0.5,
    1 / 3,
    1e-9,
    1e-15,
    5e-324,
    1e9,
    1e15,
    1.8e308,
    -0.0,
)
OTHERS: tuple[Json, ...] = (None, True, "", "x", "\n", "a\u2028b", "$\\frac{$", "=1+1", "\ud800", [], {}, [[]], {"": 0})
TOKENS = ("NaN", "Infinity", "-Infinity", "1e999", "7" * 5000, "nul", "{", "]", ",", '"', "\x00", "\\u12", "0x1", "01")


def places(data: Json, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place of a JSON document, the whole left out."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*at, key)
        yield from places(value, (*at, key))


def change(data: Json, rng: random.Random) -> tuple[Json, bool]:
    """A copy with one change, and whether what came in is of another type than what was there."""
    data = json.loads(json.dumps(data))
    at = rng.choice(list(places(data)))
    owner = data
    for key in at[:-1]:
        owner = owner[key]
    last, old = at[-1], owner[at[-1]]
    number = isinstance(old, int | float) and not isinstance(old, bool)
    what = rng.randrange(8)
    if what <= 3 and number:
        owner[last] = rng.choice(NUMBERS)
    elif what == 4 and isinstance(owner, dict):
        owner[rng.choice((f"{last} ", "x", "", "\n", "__class__"))] = owner.pop(last) if rng.random() < 0.5 else old
    elif what == 5:
        del owner[last]
    elif what == 6 and isinstance(owner, list):
        owner.insert(rng.randrange(len(owner) + 1), json.loads(json.dumps(rng.choice(owner))))
    elif what == 7:
        other = rng.choice(list(places(data)))
        found = data
        for key in other:
            found = found[key]
        owner[last] = json.loads(json.dumps(found))
        return data, False
    else:
        owner[last] = json.loads(json.dumps(rng.choice(OTHERS)))
        return data, _type(owner[last]) != _type(old)
    return data, False


def _type(value: Json) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if number else type(value).__name__


def damage(text: str, rng: random.Random) -> str:
    """A text with one damage."""
    at = rng.randrange(len(text) + 1)
    to = min(len(text), at + rng.choice((0, 1, 1, 3, 20, 1000)))
    what = rng.randrange(6)
    if what == 0:
        return text[:at]
    if what == 1:
        return text[:at] + text[to:]
    if what == 2:
        return text[:at] + text[at:to] * rng.choice((2, 2, 50)) + text[to:]
    if what == 3:
        return text[:at] + rng.choice(TOKENS) + text[to:]
    if what == 4:
        return text[:at] + chr(rng.choice((0, 9, 10, 13, 34, 44, 45, 48, 0xA0, 0x2028, 0xFEFF, 0x1F600))) + text[to:]
    lines = text.splitlines(keepends=True)
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return "".join(lines)

"""The errors a user can meet, each with the exit status of the command line.

The line of a wrong value in an instance (file, place, value) is made in ``instance.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

_UNUSUAL = re.compile("[^ -~]")
LONGEST = 10_000
"""Letters of a message: what a stranger sends may be named in it."""


class SchedgapError(Exception):
    """Base of every error schedgap raises on purpose; its message is one clear line."""

    exit_status = 5

    def __init__(self, message: str = "") -> None:
        super().__init__(brief(message))


def brief(text: str) -> str:
    """:func:`printable`; in the middle of a text of more than :data:`LONGEST` letters something is left out."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} [...] {text[-LONGEST // 4 :]}"
    return printable(text)


def printable(text: str, keep: str = "") -> str:
    """The text in one line; JSON's escape stands for every letter that cannot be shown or that a terminal obeys.

    Parameters
    ----------
    keep : letters that stay whatever they are, the line break of a text of many lines for one
    """

    def escaped(match: re.Match[str]) -> str:
        letter = match[0]
        return letter if letter.isprintable() or letter in keep else json.dumps(letter)[1:-1].replace("\x7f", "\\u007f")

    return _UNUSUAL.sub(escaped, text)


class InputError(SchedgapError):
    """Bad input or usage: the message names the file, the place in it and the value."""

    exit_status = 2


class RejectedSolution(InputError):
    """The checker rejects the solution of a user's own heuristic.

    Parameters
    ----------
    solution : what was returned
    """

    def __init__(self, message: str, solution: dict[str, object]) -> None:
        super().__init__(message)
        self.solution = solution


class EngineMissing(InputError):
    """An engine's package is not installed, or cannot be loaded here."""


class ModelRefused(InputError):
    """An engine cannot solve this model truthfully (a continuous variable on CP-SAT, say)."""


class ModelTooLarge(ModelRefused):
    """A model is larger than its builder writes: only what is known without it is left."""


class Disagreement(SchedgapError):
    """Two parts that must agree do not: engines, checker, or a heuristic better than a proven optimum.

    The instance is written to a file that the message names.

    Parameters
    ----------
    message : one line that says what disagrees, with the numbers
    solution : the solution at issue, where there is one
    details : what else helps to reproduce it (engine, objective, bound, violations), JSON-compatible
    accepted : the best solution known that the checker accepts
    """

    exit_status = 5

    def __init__(
        self,
        message: str,
        *,
        solution: dict[str, object] | None = None,
        details: Mapping[str, object] | None = None,
        accepted: dict[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.solution = solution
        self.accepted = accepted
        self.details: dict[str, Any] = dict(details or {})


LEAST_PART = 3
"""Letters that a part of a name has at least for the whole name to be meant."""


def near(name: object, known: Iterable[str]) -> str:
    """``; did you mean 'sjf-bco'?`` where one of the known names is close to `name`, otherwise empty."""
    names = {one.lower(): one for one in known}
    if not isinstance(name, str):
        return ""
    close = get_close_matches(name.lower(), names, 1)
    if not close and len(name) >= LEAST_PART:
        close = [whole for whole in names if name.lower() in whole][:1]
    return f"; did you mean {names[close[0]]!r}?" if close else ""

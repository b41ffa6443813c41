"""What tests measure instead of seconds: looks at a deadline, calls of functions; and waiting as long as it takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from schedgap.solvers.result import Deadline

T = TypeVar("T")

PATIENCE = 600.0
"""Seconds after which a test that waits gives up: so long that only what hangs comes to it, on any machine."""
PASSED = Deadline(0.0)
"""A deadline that has passed."""


class Looks(Deadline):
    """A deadline that passes after so many looks at it, whatever the clock says."""

    def __init__(self, looks: int) -> None:
        object.__setattr__(self, "moment", None)
        object.__setattr__(self, "looks", looks)

    @property
    def passed(self) -> bool:
        """Whether there are no looks left; takes one."""
        object.__setattr__(self, "looks", self.looks - 1)  # type: ignore[attr-defined]
        return self.looks < 0  # type: ignore[attr-defined]

    def remaining(self) -> float | None:
        """An hour, or nothing; takes a look."""
        return 0.0 if self.passed else 3600.0


def calls(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> int:
    """How many calls (of Python and of C functions) a call makes: its work, the same on every machine.

    Call it once before where the first call compiles or fills a cache.
    """
    count = 0

    def counted(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        function(*arguments, **keywords)
    finally:
        sys.setprofile(before)
    return count


def with_growing_limit(attempt: Callable[[Deadline], T], enough: Callable[[T], bool], first: float = 0.5) -> T:
    """What `attempt` returns within the first wall-clock limit, each four times the last, that is enough.

    For engines that only know the clock: how far one comes within half a second depends on the machine, that it comes
    far enough within some limit does not.
    """
    seconds = first
    while True:
        found = attempt(Deadline.after(seconds))
        if enough(found) or seconds > PATIENCE / 4:
            return found
        seconds *= 4


def wait_until(condition: Callable[[], bool], alive: Callable[[], bool] = lambda: True) -> None:
    """Wait for something another process does; fails where it is no longer `alive`, or nothing comes."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert alive(), "the process is over"
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)

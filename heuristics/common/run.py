"""The form of a heuristic's answer and of its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution


@dataclass(frozen=True)
class HeuristicRun:
    """What a heuristic returns.

    Attributes
    ----------
    solution : the bare solution, or None where the heuristic found nothing
    info : what its guarantees need to know of the run (JSON-compatible): limits, parameters, realised values
    bound : a bound the algorithm itself certifies (a dual value), or None
    """

    solution: Solution | None
    info: Mapping[str, Any] = field(default_factory=dict)
    bound: float | None = None


Heuristic = Callable[..., "HeuristicRun | Solution | None"]
"""``heuristic(instance, *, seed, **options)``; a user's own may return the bare solution."""


@dataclass(frozen=True)
class Option:
    """One option of a method, as in ``--set kappa=4``.

    Attributes
    ----------
    kind : int, float, bool or str
    default : the default value, shown by ``schedgap list``
    help : one line
    choices : the allowed values, where they are few
    minimum : the smallest allowed number, where there is one
    exclusive : the minimum itself is not allowed
    """

    kind: type
    default: Any
    help: str
    choices: tuple[Any, ...] = ()
    minimum: float | None = None
    exclusive: bool = False

    def parse(self, name: str, text: str) -> Any:
        """The value that `text` means.

        Raises
        ------
        InputError
            One line that names the option and the value.
        """
        value: Any
        try:
            if self.kind is bool:
                value = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
            else:
                value = self.kind(text)
        except (ValueError, KeyError):
            raise InputError(f"option {name}: must be {self.kind.__name__}, got {text!r}") from None
        if self.choices and value not in self.choices:
            allowed = ", ".join(str(c) for c in self.choices)
            raise InputError(f"option {name}: must be one of {allowed}, got {text!r}")
        if isinstance(value, float) and not abs(value) < 1e15:
            raise InputError(f"option {name}: must be finite, got {text!r}")
        if self.minimum is not None:
            low = value <= self.minimum if self.exclusive else value < self.minimum
            if low:
                relation = "greater than" if self.exclusive else "at least"
                raise InputError(f"option {name}: must be {relation} {self.minimum:g}, got {text!r}")
        return value

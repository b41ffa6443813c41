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
    maximum : the largest allowed number, where there is one
    """

    kind: type
    default: Any
    help: str
    choices: tuple[Any, ...] = ()
    minimum: float | None = None
    exclusive: bool = False
    maximum: float | None = None

    def parse(self, name: str, text: Any) -> Any:
        """The value that `text` means; a value that is not text must have the option's kind already.

        An int is taken for a float; None is the default.

        Raises
        ------
        InputError
            One line that names the option and the value.
        """
        value: Any
        if text is None:
            return self.default
        try:
            if not isinstance(text, str):
                value = self._of_kind(text)
            elif self.kind is bool:
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
        if self.maximum is not None and value > self.maximum:
            raise InputError(f"option {name}: must be at most {self.maximum:g}, got {text!r}")
        return value

    def _of_kind(self, value: Any) -> Any:
        """`value` itself where it has this option's kind; ValueError otherwise."""
        if self.kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if not isinstance(value, self.kind) or (isinstance(value, bool) and self.kind is not bool):
            raise ValueError(f"not {self.kind.__name__}")
        return value

    @property
    def range_text(self) -> str:
        """The allowed values in words: ``int >= 1``, ``float in (0, 1]``, ``one of a, b``."""
        if self.choices:
            return "one of " + ", ".join(str(choice) for choice in self.choices)
        name = self.kind.__name__
        if self.minimum is not None and self.maximum is not None:
            return f"{name} in {'(' if self.exclusive else '['}{self.minimum:g}, {self.maximum:g}]"
        if self.minimum is not None:
            return f"{name} {'>' if self.exclusive else '>='} {self.minimum:g}"
        return name if self.maximum is None else f"{name} <= {self.maximum:g}"


def parse_settings(options: Mapping[str, Option], given: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Every option in `given`, as text or as a value, validated; the others are left out.

    Parameters
    ----------
    options : the options there are
    given : the chosen ones, values as text (``--set``) or typed
    what : what they belong to, for the message: ``method sjf-bco``

    Raises
    ------
    InputError
        An unknown name (the line lists the options there are) or a value out of range.
    """
    result: dict[str, Any] = {}
    for name, value in given.items():
        if name not in options:
            known = ", ".join(options) or "none"
            raise InputError(f"{what}: unknown option {name!r} (options: {known})")
        result[name] = options[name].parse(name, value)
    return result

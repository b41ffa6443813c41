"""Options from signatures: what ``--set`` accepts is what a function's annotated keywords say."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from keyword import iskeyword
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Json

OptionValue: TypeAlias = bool | int | float | str | None
"""What an option can be, parsed."""
GIVEN = frozenset({"seed", "deadline", "throughputs"})
"""Keywords that the caller fills in itself, unless they are annotated like options."""
_TOO_LARGE = 1e15
_F = TypeVar("_F", bound=Callable[..., object])


@dataclass(frozen=True)
class Option:
    """One option of a method, a preset or an importer, as in ``--set kappa=4``."""

    name: str  # name in the users' spelling
    annotation: object  # its type with its range, ``Annotated[int, Field(ge=1, description="...")]``
    default: Any  # the value where it is not given
    help: str  # one line

    @property
    def kind(self) -> type:
        """int, float, bool or str; of a choice, the type of its members."""
        base, _ = _parts(self.annotation)
        if get_origin(base) is Literal:
            return type(get_args(base)[0])
        return base if isinstance(base, type) else str

    @property
    def choices(self) -> tuple[OptionValue, ...]:
        """The allowed values, where they are few."""
        base, _ = _parts(self.annotation)
        return get_args(base) if get_origin(base) is Literal else ()

    @property
    def least(self) -> int:
        """The smallest whole number in its range; 1 where there is no smallest."""
        _, metadata = _parts(self.annotation)
        return next((int(m.ge) for m in metadata if isinstance(m, Ge)), 1)  # type: ignore[call-overload]

    def parse(self, given: object) -> Json:
        """The value that `given`, as text or typed, means; None is the default.

        Raises InputError: one line that names the option, what is allowed and the value.
        """
        if given is None:
            return self.default
        adapter = _adapter(self.annotation)
        text = isinstance(given, str) and self.kind is not str
        try:
            if isinstance(given, bool) and self.kind is not bool:
                raise ValueError(f"not {self.kind.__name__}")
            if self.kind is float and not abs(float(given)) < _TOO_LARGE:  # type: ignore[arg-type]
                raise InputError(f"option {self.name}: must be finite, got {given!r}")
            if text:
                found = adapter.validate_strings(given)
            else:
                found = adapter.validate_python(given, strict=not isinstance(given, int) or self.kind is not float)
            return found or 0.0 if isinstance(found, float) else found  # -0.0 is not what numpy takes for 0
        except ValidationError as error:
            needed = self._needed(error)
        except (ValueError, TypeError):
            needed = self.kind.__name__
        meant = near(given, map(str, self.choices))
        raise InputError(f"option {self.name}: must be {needed}, got {given!r}{meant}")

    def _needed(self, error: ValidationError) -> str:
        """What a refused value would have to be."""
        first = error.errors()[0]
        words = {"greater_than_equal": "at least", "greater_than": "greater than", "less_than_equal": "at most"}
        if first["type"] in words:
            return f"{words[first['type']]} {next(iter(first['ctx'].values())):g}"
        return self.range_text if self.choices else self.kind.__name__

    @property
    def range_text(self) -> str:
        """The allowed values in words: ``int >= 1``, ``float in (0, 1]``, ``one of a, b``."""
        if self.choices:
            return "one of " + ", ".join(str(choice) for choice in self.choices)
        _, metadata = _parts(self.annotation)
        low = next(
            ((m.ge if isinstance(m, Ge) else m.gt, isinstance(m, Gt)) for m in metadata if isinstance(m, Ge | Gt)), None
        )
        high = next((m.le for m in metadata if isinstance(m, Le)), None)
        name = self.kind.__name__
        if low and high is not None:
            return f"{name} in {'(' if low[1] else '['}{low[0]:g}, {high:g}]"
        if low:
            return f"{name} {'>' if low[1] else '>='} {low[0]:g}"
        return name if high is None else f"{name} <= {high:g}"


@cache
def _adapter(annotation: object) -> TypeAdapter[object]:
    return TypeAdapter(annotation)  # type: ignore[arg-type]


def _parts(annotation: object) -> tuple[Any, tuple[Any, ...]]:
    """The bare type of an annotation, without None, and what is said about it."""
    metadata: tuple[Any, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *extra = get_args(annotation)
        for one in extra:
            metadata += tuple(one.metadata) if isinstance(one, FieldInfo) else (one,)
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(arg for arg in get_args(annotation) if arg is not type(None))
        base, inner = _parts(annotation)
        return base, metadata + inner
    return annotation, metadata


def _help(annotation: object) -> str:
    if get_origin(annotation) is not Annotated:
        return ""
    return next((m.description or "" for m in get_args(annotation)[1:] if isinstance(m, FieldInfo)), "")


@cache
def options_of(function: Callable[..., object]) -> Mapping[str, Option]:
    """The options of a function: its keyword-only parameters but those in :data:`GIVEN`.

    A parameter with a type and a default is an option; ``Annotated[..., Field(ge=1, description="...")]`` adds a
    range and one line of help. ``lambda_`` is written ``lambda``. Raises InputError: the annotation of a keyword names
    what is not there.

    Examples
    --------
    >>> def heuristic(instance, *, seed: int, kappa: int = 4): ...
    >>> options_of(heuristic)["kappa"].parse("7")
    7
    """
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        annotation = _read(function, name, parameter.annotation)
        if name in GIVEN and get_origin(annotation) is not Annotated:
            continue
        default = None if parameter.default is parameter.empty else parameter.default
        label = name.removesuffix("_")
        found[label] = Option(label, annotation, default, _help(annotation))
    for other in getattr(function, "passes_on_to", ()):
        found |= options_of(other)
    return found


def _read(function: Callable[..., object], name: str, annotation: object) -> object:
    """The annotation of a parameter, evaluated where it is text; str where there is none."""
    if annotation is inspect.Parameter.empty:
        return str

    def holder() -> None: ...

    holder.__annotations__ = {name: annotation}
    bare = function.func if isinstance(function, partial) else function
    if isinstance(bare, type):
        names = vars(sys.modules[bare.__module__])
    else:
        names = getattr(inspect.unwrap(bare if inspect.isroutine(bare) else type(bare).__call__), "__globals__", {})
    try:
        return typing.get_type_hints(holder, names, include_extras=True)[name]
    except Exception as error:  # it names what is not there
        whose = getattr(bare, "__qualname__", type(bare).__name__)
        raise InputError(f"{whose}: the annotation of {name} cannot be read: {type(error).__name__}: {error}") from None


def passes_on_to(*others: Callable[..., object]) -> Callable[[_F], _F]:
    """Decorator of a function that hands its further keywords on to `others`: their options are its options too."""

    def mark(function: _F) -> _F:
        function.passes_on_to = others  # type: ignore[attr-defined]
        return function

    return mark


def parse_settings(options: Mapping[str, Option], given: Mapping[str, object], what: str) -> dict[str, Json]:
    """Every option in `given`, as text or as a value, validated; the others are left out.

    Raises InputError: an unknown name (the line lists the options there are) or a value out of range.

    Parameters
    ----------
    options : the options there are
    given : the chosen ones, values as text (``--set``) or typed
    what : what they belong to, for the message: ``method sjf-bco``
    """
    for name in given:
        if name not in options:
            known = ", ".join(options) or "none"
            raise InputError(f"{what}: unknown option {name!r} (options: {known}){near(name, options)}")
    return {name: options[name].parse(value) for name, value in given.items()}


def keywords(settings: Mapping[str, Json]) -> dict[str, Json]:
    """Settings under the names that the function's parameters have: ``lambda`` is ``lambda_`` there."""
    return {f"{name}_" if iskeyword(name) else name: value for name, value in settings.items()}

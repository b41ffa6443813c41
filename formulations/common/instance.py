"""Instances: immutable, validated as a whole, JSON in and out.

Every problem's instance is a subclass of :class:`Instance`. A file that does not fit gives one line that
names the file, the place in it and the value.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeAlias, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import decoded, read_bytes

Json: TypeAlias = Any
"""Decoded JSON (null, truth value, number, text, list or object), which the type checker follows no further."""


Solution = dict[str, Json]
"""A bare solution object, as in a solution file."""


LARGEST = 1e15


SMALLEST = 1e-15


LARGEST_MOMENT = 1e12


LARGEST_COUNT = 10**9


MOST_JOBS = 100_000


MOST_SERVERS = 100_000


MOST_GPUS = 1_000_000
"""What an instance may have, all servers together; 100,000 jobs of the presets make files of 14 to 35 MB."""


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def _readable(text: str) -> str:
    if any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in text):
        raise ValueError(f"must have no control characters, got {json.dumps(text)[:60]}")
    return text


def _not_tiny(value: float) -> float:
    if value < SMALLEST:
        raise ValueError(f"must be at least {SMALLEST:g}, got {value!r}")
    return value


Line = Annotated[str, AfterValidator(_readable)]
"""Text without control characters, which may be empty."""


Identifier = Annotated[Line, Field(min_length=1, max_length=200), AfterValidator(_not_blank)]
"""A name of 1 to 200 characters, not blank, without control characters."""


Count = Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
"""A whole number from 1 to 10^9: GPUs, iterations, slots."""


NonNegative = Annotated[float, Field(ge=0, le=LARGEST)]


Positive = Annotated[float, Field(gt=0, le=LARGEST), AfterValidator(_not_tiny)]
"""From 1e-15 to 1e15."""


Moment = Annotated[float, Field(ge=0, le=LARGEST_MOMENT)]
"""Seconds from 0 to 1e12: sums of them with durations are still numbers that a solution may have."""


class FrozenDict(dict[Any, Any]):
    """A dict that refuses to change; unlike MappingProxyType it can be pickled to a worker."""

    _hash: int | None = None

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("an instance is immutable")

    __setitem__ = __delitem__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse
    __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)

    def __hash__(self) -> int:  # type: ignore[override]
        if self._hash is None:  # tables are kept by instance: one look-up must not read a matrix again
            self._hash = hash(frozenset(self.items()))
        return self._hash


_K = TypeVar("_K")


_V = TypeVar("_V")


Frozen = Annotated[dict[_K, _V], AfterValidator(FrozenDict)]
"""A mapping field of an instance: ``Frozen[str, int]``."""


class Part(BaseModel):
    """A part of an instance (a job, a server): frozen, strict types, no unknown keys, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


PartT = TypeVar("PartT", bound=Part)


def validated(form: type[PartT], data: object, source: str) -> PartT:
    """`data`, a decoded JSON object, as a `form`.

    Raises InputError: one line: the source, the path in it, what is wrong and the value.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"{source}: must be a JSON object, got {_shown(data)}")
    try:
        return form.model_validate(dict(data))
    except ValidationError as error:
        errors = error.errors(include_url=False)
        errors.sort(key=lambda one: one["type"] != "missing")
        more = _in_later_entries(form, data, errors) if errors[0]["type"] == "missing" else []
        raise InputError(f"{source}: {_first_error([*errors, *more])}") from None


class Instance(Part):
    """An instance of a problem; subclasses add ``problem: Literal["<id>"]`` and their fields."""

    problem_id: ClassVar[str]
    name: Annotated[Line, Field(max_length=200)] = ""
    version: Annotated[int, Field(ge=1, le=1)] = 1

    def __repr__(self) -> str:
        """Problem, name and sizes on one line; ``model_dump()`` has everything."""
        sizes = [f"{len(v)} {k}" for k, v in self if isinstance(v, tuple)]
        return f"<{self.problem_id} {self.name!r}: {', '.join(sizes)}>"

    __str__ = __repr__

    def __dir__(self) -> list[str]:
        """Its own names, not those of pydantic."""
        theirs = {n for n in dir(BaseModel) if n[0] != "_"}
        return sorted({*super().__dir__()} - theirs)

    @classmethod
    def parse(cls, data: Json, source: str = "instance") -> Self:
        """Validate `data` (a decoded JSON object) as a whole.

        Top-level keys that begin with "reference" or are called "note" are ignored.

        Raises
        ------
        InputError
            One line: the source, the path in it, what is wrong and the value.
        """
        if isinstance(data, Mapping):
            for name, most in _longest(cls).items():  # before anything is made of them
                if isinstance(data.get(name), list | tuple) and len(data[name]) > most:
                    text = f"has {len(data[name]):,} entries, at most {most:,} are supported"
                    raise InputError(f"{source}: {name}: {text}")
            data = _as_tuples({k: v for k, v in data.items() if not (str(k).startswith("reference") or k == "note")})
        return validated(cls, data, source)

    def to_dict(self) -> dict[str, Json]:
        """The instance as a JSON object; ``parse(instance.to_dict())`` gives an equal instance."""
        data: dict[str, Any] = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        data.pop("version", None)
        return data

    def to_json(self, indent: int | None = 1) -> str:
        """The instance as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def content_hash(self) -> str:
        """SHA-256 of the canonical JSON without name, note, version and reference*: its identity."""
        data = self.to_dict()
        data.pop("name", None)
        text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()


@cache
def _longest(form: type[Instance]) -> dict[str, int]:
    """How many entries a list may have, by field."""
    every = ((name, getattr(rule, "max_length", None)) for name, f in form.model_fields.items() for rule in f.metadata)
    return {name: most for name, most in every if most is not None}


class JobsInstance(Instance):
    """An instance with jobs; subclasses declare the field."""

    if TYPE_CHECKING:
        jobs: tuple[Any, ...]

    @cached_property
    def job_index(self) -> dict[str, int]:
        """Position of each job by id."""
        return {job.id: position for position, job in enumerate(self.jobs)}


def count_gpus(sizes: Iterable[tuple[str, int]]) -> None:
    """Raise ValueError where there are more than MOST_GPUS.

    Parameters
    ----------
    sizes : GPUs of each server (or part of one), with its place in the file
    """
    counted = 0
    for place, gpus in sizes:
        counted += gpus
        if counted > MOST_GPUS:
            text = f"{gpus} GPUs make {counted} with the servers before, at most {MOST_GPUS} are supported"
            raise ValueError(f"{place}: {text}")


class GpuServer(Part):
    """A server and its number of GPUs."""

    id: Identifier
    gpus: Count


class ClusterInstance(JobsInstance):
    """An instance with jobs and servers of GPUs; subclasses declare the fields."""

    if TYPE_CHECKING:
        servers: tuple[GpuServer, ...]

    @model_validator(mode="after")
    def _of_a_size(self) -> Self:
        count_gpus((f"servers[{position}].gpus", server.gpus) for position, server in enumerate(self.servers))
        return self

    @cached_property
    def total_gpus(self) -> int:
        """N, the GPUs of the cluster."""
        return sum(server.gpus for server in self.servers)

    @cached_property
    def server_index(self) -> dict[str, int]:
        """Position of each server by id."""
        return {server.id: position for position, server in enumerate(self.servers)}


def unique_ids(items: Iterable[Json], what: str) -> None:
    """Raise ValueError (which pydantic turns into an error line) when an id is used twice.

    The message names both positions: ``jobs[2].id: "j0" is already the id of jobs[0]``.
    """
    seen: dict[str, int] = {}
    for position, item in enumerate(items):
        if item.id in seen:
            raise ValueError(f'{what}[{position}].id: "{item.id}" is already the id of {what}[{seen[item.id]}]')
        seen[item.id] = position


def read_json(path: str | Path, text: str | None = None) -> Json:
    """Decode a JSON file strictly: NaN, infinities and a key that is given twice are refused.

    Raises InputError: the file cannot be read, has more than LARGEST_FILE bytes, or is not JSON (with line and column).

    Parameters
    ----------
    path : the file, named in error messages
    text : its content, where it was read already (standard input)
    """
    if text is None:
        text = decoded(read_bytes(path), path)

    def refuse_constant(name: str) -> Any:
        raise InputError(f"{path}: {place(name)}: {name} is not allowed, every number must be finite")

    def place(token: str) -> str:
        """Where a number or word stands, outside of strings."""
        at = next((m.start() for m in _TOKENS.finditer(text) if m[0] == token or m[0].lstrip("-") == token), 0)
        return _line_and_column(text, at)

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in items:
            if key in result:
                said = json.dumps(key, ensure_ascii=False)
                raise InputError(f"{path}: {_second_key(text, key)}: the key {said} is given twice in one object")
            result[key] = value
        return result

    def finite(literal: str) -> float:
        value = float(literal)
        if math.isinf(value):
            shown = literal if len(literal) <= 40 else f"{literal[:37]}..."
            raise InputError(f"{path}: {place(literal)}: {shown} is too large, every number must be finite")
        return value

    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=pairs, parse_float=finite)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    except ValueError as error:  # an integer of more digits than Python converts
        long = max(re.findall(r"\d+", text), key=len)
        raise InputError(f"{path}: {place(long)}: {str(error).split(';')[0]}") from None


_TOKENS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}]|[-+.\w]+', re.DOTALL)
"""Strings, braces, numbers and words of a JSON text."""


_COLON = re.compile(r"[ \t\r\n]*:")


def _line_and_column(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"


def _second_key(text: str, key: str) -> str:
    """Where a key is first given again in its object."""
    open_objects: list[set[str]] = []
    for token in _TOKENS.finditer(text):
        if token[0] == "{":
            open_objects.append(set())
        elif token[0] == "}":
            open_objects.pop()
        elif token[0][0] == '"' and open_objects and _COLON.match(text, token.end()):
            name = json.loads(token[0], strict=False)
            if name == key and name in open_objects[-1]:
                return _line_and_column(text, token.start())
            open_objects[-1].add(name)
    return "line 1"


def _as_tuples(value: Any) -> Any:
    """Lists as tuples: strict validation wants the immutable type that the instance keeps."""
    if isinstance(value, Mapping):
        return {k: _as_tuples(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_as_tuples(v) for v in value)
    return value


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, default=repr)
    except (TypeError, ValueError):  # no JSON: keys that are tuples, a number of too many digits
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def location(parts: Iterable[str | int]) -> str:
    """A path in a JSON document as a person writes it: ``jobs[2].gpus``."""
    text = ""
    for part in parts:
        if part == "[key]" or str(part).startswith("function-"):
            continue
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


_PLAIN = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be text",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "tuple_type": "must be a list",
}
"""What pydantic says of these types, in words of JSON."""


def _in_later_entries(form: type[Part], data: Mapping[str, Any], errors: Sequence[Any]) -> list[Any]:
    """What other entries of a list lack, whose reading ends at the first wrong one."""
    later: list[Any] = []
    for field, failed in {error["loc"][0]: error["loc"][1] for error in errors if len(error["loc"]) > 2}.items():
        for place in range(failed + 1, len(data[field])) if isinstance(failed, int) else ():
            try:
                form.model_validate({field: (data[field][place],)})
            except ValidationError as error:
                for one in error.errors(include_url=False):
                    if one["loc"][:2] == (field, 0):
                        later.append({**one, "loc": (field, place, *one["loc"][2:])})
    return later


def _places(missing: Iterable[Sequence[str | int]]) -> list[str]:
    """Places of fields; those of several entries of a list as one: ``jobs[0-9].gpus``."""
    by_field: dict[tuple[str | int, ...], list[int]] = {}
    for field, *rest in missing:
        entry = [int(rest.pop(0))] if len(rest) > 1 and isinstance(rest[0], int) else []
        by_field.setdefault((field, *rest), []).extend(entry)
    places = []
    for (field, *rest), entries in by_field.items():
        all_between = len(entries) > 1 and entries[-1] - entries[0] == len(entries) - 1
        span = f"{entries[0]}-{entries[-1]}" if all_between else ", ".join(map(str, entries))
        places.append(location([f"{field}[{span}]" if entries else field, *rest]))
    return places


def _first_error(errors: Sequence[Any]) -> str:
    first = errors[0]
    where = location(first["loc"])
    kind = first["type"]
    wrong = {e["loc"][0] for e in errors if len(e["loc"]) > 1}
    others = [e for e in errors[1:] if e["type"] != "too_short" or e["loc"][0] not in wrong]
    more = len(others)
    if kind == "extra_forbidden":
        text = f"{where}: unknown key"
    elif kind == "missing":
        absent = _places(e["loc"] for e in errors if e["type"] == kind)
        values = [e for e in others if e["type"] != kind]
        more = len(absent[40:])
        text = f"{absent[0]}: is missing" + f", and so are {', '.join(absent[1:40])}" * (len(absent) > 1)
        if values:
            return f"{text}{f' (and {more} more)' * (more > 0)}; {_first_error(values)}"
    elif kind == "value_error":
        message = str(first.get("ctx", {}).get("error", first["msg"]))
        text = f"{where}: {message}" if where else message
    else:
        words = re.sub(r" after validation, not \d+", "", first["msg"].replace("tuple", "list"))
        words = _PLAIN.get(kind) or re.sub(r"^\w+ should", "must", words)
        text = f"{where}: {words[0].lower()}{words[1:]}, got {_shown(first['input'])}"
    return text + (f" (and {more} more)" if more else "")


InstanceT = TypeVar("InstanceT", bound=Instance)


Value = TypeVar("Value")


def once_per_instance(function: Callable[[InstanceT], Value]) -> Callable[[InstanceT], Value]:
    """A function of an instance that is computed once per instance object and kept with it."""
    key = f"_{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def kept(instance: InstanceT) -> Value:
        owner, found = instance.__dict__.get(key, (None, None))
        if owner != id(instance):  # a copy inherits the dict of what it was copied from
            found = function(instance)
            instance.__dict__[key] = (id(instance), found)
        return cast(Value, found)

    return kept

"""An instance in Python, part by part: ``instance("rar-ddls", horizon=20).server("s0", gpus=4).job(...).build()``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem, parse_instance
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Instance, Json


class Builder:
    """Collects an instance; each call gives the builder back, so that calls follow each other.

    A list of the instance has a method by the singular of its name, whose first argument may be the id:
    ``server("s0", gpus=4)`` adds to ``servers``. Any other field has one by its own name:
    ``network(inter_bandwidth=1.0, ...)``, ``horizon(20)``. Nothing is checked before :meth:`build`.
    """

    def __init__(self, problem: Problem, fields: dict[str, Json]) -> None:
        self._problem = problem
        self._data: dict[str, Json] = {"problem": problem.id, **fields}
        self._parts: dict[str, tuple[str, bool]] = {}
        self._named: set[str] = set()
        for name, rule in problem.instance_class.model_json_schema(by_alias=True)["properties"].items():
            listed = "array" in (rule.get("type"), *(one.get("type") for one in rule.get("anyOf", ())))
            self._parts[name.removesuffix("s") if listed else name] = (name, listed)
            if listed and "$ref" in str(rule):  # a list of objects, which have ids
                self._named.add(name)
        self._parts.pop("problem")

    def __getattr__(self, name: str) -> Callable[..., Self]:
        """What adds a part, or sets a field."""
        parts = self.__dict__.get("_parts", {})
        if name not in parts:
            raise AttributeError(f"instance of {self._problem.id}: no part {name!r}, one of: {', '.join(parts)}")
        field, listed = parts[name]

        def add(*value: object, **given: object) -> Self:
            if len(value) > 1 or (value and given and not listed):
                raise TypeError(f"{name}: takes one value, or keywords")
            if value and (given or (field in self._named and isinstance(value[0], str))):
                given = {"id": value[0], **given}
            part = given or (value[0] if value else {})
            if listed:
                self._data[field] = [*self._data.get(field, ()), part]
            else:
                self._data[field] = part
            return self

        return add

    def __dir__(self) -> list[str]:
        """The parts that there are."""
        return sorted([*self._parts, "build"])

    def __repr__(self) -> str:
        """What is there so far."""
        counts = [f"{len(part)} {name}" for name, part in self._data.items() if isinstance(part, list)]
        return f"<{self._problem.id} being built: {', '.join(counts) or 'nothing yet'}>"

    def build(self) -> Instance:
        """The instance, validated.

        Raises
        ------
        InputError
            One line with every field that is missing; otherwise the first that is wrong.
        """
        return parse_instance(self._data, "instance", self._problem)[1]


def instance(problem: str, **fields: object) -> Builder:
    """Begin an instance in Python.

    Parameters
    ----------
    problem : its id
    fields : of the instance, as in its file: ``horizon=20``

    Returns
    -------
    Builder
        With a method for each part; ``build()`` gives the instance.

    Raises
    ------
    InputError
        An unknown problem or field.

    Examples
    --------
    >>> link = instance("comm-contention").link(latency=0.0, seconds_per_unit=0.5, contention_penalty=0.1)
    >>> link.task("t0", release=0.0, size=2.0).task("t1", release=1.0, size=1.0).build()
    <comm-contention '': 2 tasks>
    """
    chosen = find_problem(problem)
    builder = Builder(chosen, dict(fields))
    known = [name for name, _ in builder._parts.values()]
    unknown = next((name for name in fields if name not in known), None)
    if unknown is not None:
        raise InputError(
            f"instance of {problem}: no field {unknown!r}, one of: {', '.join(known)}{near(unknown, known)}"
        )
    return builder

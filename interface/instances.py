"""Instances: read, validated, generated, made of files of other formats; what solves them, and their models."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgap.catalogue.method import Method
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, find_problem, parse_instance
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Instance, Json
from schedgap.reading import InstanceLike, Text, as_instance, read_instance

if TYPE_CHECKING:
    import networkx

    from schedgap.solvers.model import Model


def problems() -> tuple[str, ...]:
    """Ids of all problems.

    Examples
    --------
    >>> "rar-ddls" in problems()
    True
    """
    return tuple(all_problems())


def methods(problem: str) -> tuple[Method, ...]:
    """The methods of a problem, in the order of ``schedgap list PROBLEM``; the first exact one is the default.

    Raises
    ------
    InputError
        There is no such problem.

    Examples
    --------
    >>> methods("rar-ddls")[0].id
    'cp'
    """
    return find_problem(problem).methods


def load(path: str | Path | Text) -> Instance:
    """Read an instance file.

    Raises
    ------
    InputError
        The file cannot be read, is not JSON, or is not a valid instance; one line that names the place.
    """
    return as_instance(path)


def parse(data: Mapping[str, object], source: str = "instance") -> Instance:
    """Validate a decoded JSON object as an instance; `source` names it in error messages.

    Raises
    ------
    InputError
        One line: the source, the path in it, what is wrong and the value.
    """
    return parse_instance(data, source)[1]


def generate(problem: str, preset: str | None = None, seed: int = 0, **settings: object) -> Instance:
    """A random instance; the same arguments always give the same one.

    Parameters
    ----------
    problem : its id, or the file of a family that ``schedgap hunt --family`` wrote, with ``n=12``
    preset : one of its presets; the first where not given
    seed : a whole number >= 0
    settings : options of the preset (``schedgap list PROBLEM`` shows them)

    Raises
    ------
    InputError
        An unknown problem, preset or option, or a value out of range.

    Examples
    --------
    >>> generate("rar-ddls", "contended", seed=1, jobs=2, singles=0).total_gpus
    6
    """
    return make(problem, preset, seed, settings)


def make(problem: str, preset: str | None, seed: int, settings: Mapping[str, object]) -> Instance:
    """The instance of :func:`generate`, with the settings as one mapping; they may be text."""
    if problem.endswith(".json"):
        from schedgap.reading import of_tools

        member: Callable[[str, str | None, Mapping[str, object]], Instance] = of_tools("member")
        return member(problem, preset, settings)
    from schedgap.benchmarks.instances import make_instance

    return make_instance(find_problem(problem), preset, seed, settings)


def import_trace(
    form: str,
    files: str | Path | Sequence[str | Path],
    problem: str,
    throughputs: str | Path | None = None,
    **settings: object,
) -> tuple[Instance, list[str]]:
    """An instance made of a trace of somebody else's format, and messages about what could not be used as it is.

    Parameters
    ----------
    form : the format, ``gavel``
    files : one file, or several in the order that the format wants
    problem : the problem whose instance is wanted
    throughputs : a file of measured rates, for formats that take one
    settings : options of the importer

    Raises
    ------
    InputError
        An unknown format or option, or a file that does not fit.
    """
    paths = [files] if isinstance(files, str | Path) else list(files)
    return convert(form, paths, problem, throughputs, settings)


def convert(
    form: str,
    files: Sequence[str | Path],
    problem: str,
    throughputs: str | Path | None,
    settings: Mapping[str, object],
) -> tuple[Instance, list[str]]:
    """The instance of :func:`import_trace`, with the settings as one mapping; they may be text."""
    from schedgap.benchmarks.importers import import_instance

    return import_instance(find_problem(problem, "--problem"), form, files, throughputs, settings)


def to_networkx(instance: InstanceLike) -> networkx.DiGraph[str]:
    """The network of an instance of g-vne or ddljs: nodes have ``resources``, edges a ``bandwidth``.

    Raises
    ------
    InputError
        The problem has no network.

    Examples
    --------
    >>> graph = to_networkx(generate("g-vne", "tiny", seed=1))
    >>> graph.is_directed()
    True
    """
    problem, given = read_instance(instance)
    if not hasattr(given, "to_networkx"):
        raise InputError(f"problem {problem.id}: its instances have no network")
    graph: networkx.DiGraph[str] = given.to_networkx()
    return graph


def from_networkx(graph: networkx.Graph[Hashable], problem: str, name: str = "network", **fields: object) -> Instance:
    """An instance of g-vne or ddljs on the network that a graph describes; :func:`to_networkx` gives it back.

    Parameters
    ----------
    graph : nodes with ``resources`` (by name; none: a switch), edges with a ``bandwidth``; an edge of an undirected
        graph is a link in either direction, parallel edges are one link of their sum
    problem : its id
    name : name of the instance
    fields : the other keys of an instance file, such as ``jobs``

    Raises
    ------
    InputError
        The problem has no network, an edge has no bandwidth, or a field is wrong.

    Examples
    --------
    >>> import networkx
    >>> graph = networkx.Graph([("s0", "s1", {"bandwidth": 10.0})])
    >>> networkx.set_node_attributes(graph, {"gpu": 2}, "resources")
    >>> job = {"id": "j0", "demand": {"gpu": 1}, "bandwidth": 1.0, "utility": [1.0, 3.0]}
    >>> len(from_networkx(graph, "g-vne", jobs=[job]).links)
    2
    """
    row = find_problem(problem)
    if not hasattr(row.instance_class, "parts_of"):
        raise InputError(f"problem {row.id}: its instances have no network")
    return parse({"problem": row.id, "name": name, **row.instance_class.parts_of(graph), **fields}, source=name)


def schema(problem: str) -> dict[str, Json]:
    """The JSON Schema of a problem's instances, or of its solutions.

    Parameters
    ----------
    problem : its id, or ``solution:ID``

    Raises
    ------
    InputError
        There is no such problem, or it is installed from elsewhere and does not say what its solutions look like.
    """
    name = problem.removeprefix("solution:")
    row = find_problem(name)
    form = row.instance_class if name == problem else row.solution_class
    if form is None:
        raise InputError(f"problem: {name} has no schema of its solutions")
    found: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    found.update(form.model_json_schema(by_alias=True))
    for part in [found, *found.get("$defs", {}).values()]:
        if "description" in part:  # the docstring's first paragraph says what it is
            part["description"] = " ".join(part["description"].split("\n\n")[0].split())
    if name == problem:
        found["properties"] = {**found["properties"], "note": {"description": "ignored"}}
        found["patternProperties"] = {"^reference": {"description": "ignored"}}
    return found


def model(instance: InstanceLike, form: str | None = None, tighten: bool = False, **settings: object) -> Model:
    """A declarative model of an instance, to read, change, solve and write.

    Parameters
    ----------
    instance : an instance, its JSON object, or the path of its file
    form : one of the problem's forms (``schedgap list PROBLEM``); otherwise the first with the wanted variant
    tighten : what the solvers use, which keeps an optimum of its own objective only and cannot be changed; otherwise
        the paper's own constraints and rows that cut no schedule: every schedule is a point, and any row may be added
    settings : options of the form, such as ``theta``, ``rho_hat`` and ``u`` of rar-ddls' ``theta``

    Raises
    ------
    InputError
        The problem has no such form, or the form no such variant or option.

    Examples
    --------
    >>> model = schedgap.model("two-jobs.json")  # doctest: +SKIP
    >>> model.add(model.variables["start"]["j0", 3] == 0, name="not_in_slot_3")  # doctest: +SKIP
    >>> model.solve("highs").objective  # doctest: +SKIP
    """
    problem, given = read_instance(instance)
    declarative = problem.model(given, form, tighten, settings)
    if declarative is None:
        raise InputError(f"problem {problem.id}: has no declarative model")
    from schedgap.catalogue.changing import aids_of
    from schedgap.solvers.model import Model

    default = problem.default_form(tighten)
    name = default.id if form is None and default is not None else form
    title = f"{problem.id}, form {name}"
    return Model(
        declarative, lambda solution: problem.check(given, solution), title, aids_of(problem, given, name, tighten)
    )


def export(instance: InstanceLike, out: str | Path, form: str = "mps") -> None:
    """Write the untightened model of an instance to a file: ``model(instance).write(out, form)``.

    Raises
    ------
    InputError
        The problem has no such model, or the file cannot be written.
    """
    model(instance).write(out, form)


class Builder:
    """Collects an instance; each call gives the builder back, so that calls follow each other.

    A keyword may end in ``_``, since ``from`` is Python's own word.
    A list of the instance has a method by the singular of its name, whose first argument may be the id:
    ``server("s0", gpus=4)`` adds to ``servers``. Any other field has one by its own name:
    ``network(inter_bandwidth=1.0, ...)``, ``horizon(20)``. Nothing is checked before :meth:`build`, which fills in
    what nobody has in their head (``Problem.assumed``; printing the builder shows what that will be).
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

    def __getattr__(self, name: str) -> Callable[..., Builder]:
        """What adds a part, or sets a field."""
        parts = self.__dict__.get("_parts", {})
        if name not in parts:
            raise AttributeError(f"instance of {self._problem.id}: no part {name!r}, one of: {', '.join(parts)}")
        return partial(self._add, name)

    def _add(self, name: str, *value: object, **given: object) -> Builder:
        field, listed = self._parts[name]
        if len(value) > 1 or (value and given and not listed):
            raise TypeError(f"{name}: takes one value, or keywords")
        given = {key.removesuffix("_"): one for key, one in given.items()}  # ``from_``, which Python keeps for itself
        part = self._part(field, next(iter(value), None), given)
        self._data[field] = [*self._data.get(field, ()), part] if listed else part
        return self

    def _part(self, field: str, value: object, given: Mapping[str, object]) -> object:
        """An object of its keywords, with its id first; or the value itself."""
        if value is None:
            return given
        named = given or (field in self._named and isinstance(value, str))
        return {"id": value, **given} if named else value

    def __dir__(self) -> list[str]:
        """The parts that there are."""
        return sorted([*self._parts, "build"])

    def __repr__(self) -> str:
        """What is there so far."""
        counts = [f"{len(part)} {name}" for name, part in self._data.items() if isinstance(part, list)]
        assumed = _listed(self._filled()[1])
        return f"<{self._problem.id} being built: {', '.join(counts) or 'nothing yet'}{assumed}>"

    def _filled(self) -> tuple[dict[str, Json], dict[str, Json]]:
        """The object with what is assumed where nothing is said, and that alone, by its place."""
        data, assumed = dict(self._data), dict[str, Json]()
        for part, fields in self._problem.assumed.items():
            if not part:
                new = {name: value for name, value in fields.items() if name not in data}
                data |= new
                assumed |= new
                continue
            listed = any(name == part and many for name, many in self._parts.values())
            values = data.get(part, [] if listed else {})
            if not isinstance(values, list if listed else Mapping):
                continue  # a wrong value, which is told
            members = values if listed else [values]
            for member in members:
                if isinstance(member, Mapping):
                    assumed |= {f"{part}.{name}": value for name, value in fields.items() if name not in member}
            filled = [{**fields, **member} if isinstance(member, Mapping) else member for member in members]
            data[part] = filled if listed else filled[0]
            if listed and not filled:
                del data[part]
        return data, assumed

    def build(self) -> Instance:
        """The instance, validated.

        Raises
        ------
        InputError
            One line with every field that is missing and not assumed; otherwise the first that is wrong.
        """
        return parse_instance(self._filled()[0], "instance", self._problem)[1]


def _listed(assumed: Mapping[str, Json]) -> str:
    return f"; assumed: {', '.join(f'{name} {value}' for name, value in assumed.items())}" if assumed else ""


def instance(problem: str, **fields: object) -> Builder:
    """Begin an instance in Python.

    Parameters
    ----------
    problem : its id
    fields : fields of the instance, named as in its file: ``horizon=20``

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

"""The named parts of a declarative model: sets, families of variables, families of rows."""

from __future__ import annotations

import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NoReturn, TypeAlias

import pulp

from schedgap.formulations.common.errors import InputError, SchedgapError, near

Key: TypeAlias = str | int | tuple[str | int, ...]
Term: TypeAlias = tuple[pulp.LpVariable, float]
Terms: TypeAlias = list[Term]
Value: TypeAlias = Callable[[pulp.LpVariable], float]

_RELATIONS = {"<=": pulp.LpConstraintLE, "==": pulp.LpConstraintEQ, ">=": pulp.LpConstraintGE}


_QUIET = dict.fromkeys({"_skip_v4_deprecation"} & set(inspect.signature(pulp.LpVariable).parameters), True)
"""What LpProblem.add_variable passes, too: PuLP 3.3.2 warns of PuLP 4 otherwise, once for every variable."""


class NamedVariable(pulp.LpVariable):  # type: ignore[misc]
    """A PuLP variable that keeps its name as it is; files get names of their own (``solvers/engines/names.py``)."""

    name = ""

    def __init__(self, name: str, low: float | None, high: float | None, category: str) -> None:
        super().__init__(name, low, high, category, **_QUIET)


class NamedRow(pulp.LpConstraint):  # type: ignore[misc]
    """A PuLP row that keeps its name as it is."""

    name = ""


@dataclass(frozen=True)
class VariableFamily:
    """Variables of one kind."""

    index: str  # what its keys are, such as ``job, slot``
    meaning: str  # what a variable says
    free: bool = False  # a schedule does not determine it, so no row and no objective of a user may be about it
    at_least: bool = False  # the model may have more of it than the schedule it stands for, never less
    decision: bool = False  # with the other families so marked it fixes the schedule; all else follows


class Role(StrEnum):
    """What a family of rows cuts off, and so when it may stay in a model that a user changes."""

    DEFINING = "defining"
    """The model itself: a point that breaks it is no schedule. It always stays."""
    VALID = "valid"
    """Fractional points and no schedule. It stays whatever a user adds."""
    DOMINANCE = "dominance"
    """Schedules, but no less than one optimum of the problem's own objective stays: any change may want the others."""
    SYMMETRY = "symmetry"
    """Schedules that differ from one that stays by equals in each other's place: until a change tells these apart."""


@dataclass(frozen=True)
class RowFamily:
    """Rows of one kind.

    Raises
    ------
    ValueError
        It cuts off something beside what defines the model, and does not say why that may be.
    """

    equation: str  # the paper's, such as ``(1)``, or "objective"; "" for rows that are ours
    meaning: str  # the row as a formula or in words
    role: Role = Role.DEFINING
    why: str = ""  # the reason why it cuts off no more than its role says; the equation is that of a defining one

    def __post_init__(self) -> None:
        if (self.role is Role.DEFINING) == bool(self.why):
            raise ValueError(f"row family {self.meaning!r}: a reason is what every role but defining needs")

    def prefix(self, name: str) -> str:
        """How the rows of the family called `name` begin."""
        number = "".join(c for c in self.equation if c.isalnum() or c == "-")
        return f"eq{number}_{name}" if self.equation.startswith("(") else name


class Missing(InputError, KeyError):
    """No variable has this key; the line says which keys there are."""

    __str__ = SchedgapError.__str__


class Family(dict[Key, pulp.LpVariable]):
    """The variables of a family by key; a wrong key is told with the range of those there are."""

    def __init__(self, name: str, index: str) -> None:
        super().__init__()
        self.name, self.index = name, index

    def __missing__(self, key: Key) -> NoReturn:
        columns = zip(*(one if isinstance(one, tuple) else (one,) for one in self), strict=True)
        named = zip(self.index.split(","), columns, strict=False)  # the one key () has no columns
        known = ", ".join(f"{name.strip()} {_span(list(dict.fromkeys(column)))}" for name, column in named)
        shown = ", ".join(map(repr, key)) if isinstance(key, tuple) else repr(key)
        there = known or "the key () alone"
        raise Missing(f"{self.name}[{shown}]: no such variable; {self.name} has {there}")


class Families(dict[str, dict[Key, pulp.LpVariable]]):
    """Families of variables by name."""

    def __missing__(self, name: object) -> NoReturn:
        raise Missing(f"variables: no family {name!r}, one of: {', '.join(self)}{near(name, self)}")


def _span(members: Sequence[str | int]) -> str:
    """``0 to 9`` of whole numbers without a gap, otherwise the first of them."""
    numbers = [one for one in members if isinstance(one, int)]
    if len(numbers) > 1 and len(numbers) == len(members) == max(numbers) - min(numbers) + 1:
        return f"{min(numbers)} to {max(numbers)}"
    return ", ".join(map(repr, members[:FEW])) + (", ..." if len(members) > FEW else "")


FEW = 8
"""Keys that a message shows."""


@dataclass(frozen=True)
class Ordering:
    """One row of the role symmetry: it orders two equals, and stays until a change of the model tells them apart."""

    kind: str  # index of the variables, such as ``job``
    # first, second: the two members of that index
    first: str
    second: str
    name: str
    terms: Sequence[Term]  # at most 0 in sum


@dataclass
class Layout:
    """A PuLP problem with its parts by name; builders add to it, users look things up."""

    problem: pulp.LpProblem  # the PuLP problem
    kinds: Mapping[str, VariableFamily]  # families of variables, by name
    laws: Mapping[str, RowFamily]  # families of rows, by name
    objective_text: str = ""  # what the objective is
    sets: dict[str, Sequence[str | int]] = field(default_factory=dict)  # the index sets with their members
    # by family, then by key: ids and numbers, a tuple where there are several
    variables: dict[str, dict[Key, pulp.LpVariable]] = field(default_factory=Families)
    rows: dict[str, list[str]] = field(default_factory=dict)  # names of the rows of each family
    family_of: dict[pulp.LpVariable, str] = field(default_factory=dict)
    orderings: list[Ordering] = field(default_factory=list)  # rows that are not in the problem before it is solved
    _names: set[str] = field(default_factory=set)

    def variable(
        self, family: str, *key: str | int, low: float | None = 0, high: float | None = 1, integer: bool = True
    ) -> pulp.LpVariable:
        """A new variable of a declared family, 0/1 unless said otherwise, called ``family[key]``."""
        if family not in self.kinds:
            raise KeyError(f"variable family {family!r} is not declared")
        category = pulp.LpInteger if integer else pulp.LpContinuous
        made = NamedVariable(self._name(family, key), low, high, category)
        if family not in self.variables:
            self.variables[family] = Family(family, self.kinds[family].index)
        self.variables[family][_key(key)] = made
        self.family_of[made] = family
        return made

    def row(self, family: str, key: Sequence[str | int], terms: Iterable[Term], relation: str, right: float) -> None:
        """A new row of a declared family: the sum of `terms` is ``<=``, ``==`` or ``>=`` to `right`."""
        given = list(terms)
        expression = pulp.LpAffineExpression(given)
        if len(expression) < len(given):  # PuLP keeps the last of several terms of one variable
            expression = pulp.LpAffineExpression(_summed(given))
        name = self._name(self.laws[family].prefix(family), key)
        self.problem.addConstraint(NamedRow(expression, _RELATIONS[relation], None, float(right)), name)
        self.rows.setdefault(family, []).append(name)

    def numbered(self, family: str, terms: Iterable[Term], relation: str, right: float) -> None:
        """A new row whose key is its number in the family."""
        self.row(family, (len(self.rows.get(family, ())) + 1,), terms, relation, right)

    def order(self, family: str, kind: str, first: str, second: str, terms: Iterable[Term]) -> None:
        """Two equal members of an index: the sum of `terms` is at most 0, as long as nothing tells them apart."""
        name = self._name(self.laws[family].prefix(family), (first, second))
        self.orderings.append(Ordering(kind, first, second, name, tuple(terms)))

    def impossible(self, key: Sequence[str | int], family: str = "impossible") -> None:
        """A row that nothing meets; the families ``impossible`` must be declared."""
        nothing = self.variable("impossible", *key, low=0, high=0)
        self.row(family, key, [(nothing, 1.0)], ">=", 1)

    def objective(self, terms: Iterable[Term], constant: float = 0.0) -> None:
        """Set the objective; its sense is the problem's."""
        given = list(terms)
        expression = pulp.LpAffineExpression(given, constant=float(constant))
        if len(expression) < len(given):  # as in rows
            expression = pulp.LpAffineExpression(_summed(given), constant=float(constant))
        self.problem.setObjective(expression)

    def listing(self, rows: int) -> list[str]:
        """Sets, variables with their ranges and rows by family, for people; `rows` are there in all."""
        lines = ["", "sets"]
        lines += [f"  {name:<10} {len(members):>6}  {_members(members)}" for name, members in self.sets.items()]
        lines += ["", f"variables ({len(self.family_of)})"]
        shown = [(f"{f}[{self.kinds[f].index}]" if self.kinds[f].index else f, f) for f in self.variables]
        width = max((len(text) for text, _ in shown), default=0)
        for text, family in shown:
            members = list(self.variables[family].values())
            lines += _wrapped(
                f"  {text:<{width}}  {len(members):>6}  {_range(members):<16}", self.kinds[family].meaning
            )
        lines += ["", f"rows ({rows})"]
        prefixes = {family: self.laws[family].prefix(family) for family in self.rows}
        width = max((len(p) for p in prefixes.values()), default=0)
        for family, names in self.rows.items():
            law = self.laws[family]
            reason = f" ({law.role}: {law.why})" if law.why else ""
            lines += _wrapped(
                f"  {prefixes[family]:<{width}}  {len(names):>6}  {law.equation:<11}", law.meaning + reason
            )
        return lines

    def _name(self, family: str, key: Sequence[str | int]) -> str:
        plain = f"{family}[{','.join(map(str, key))}]" if key else family
        name = plain
        if plain in self._names:  # ids with commas can make two keys look alike
            name = next(n for n in (f"{plain}#{i}" for i in itertools.count(2)) if n not in self._names)
        self._names.add(name)
        return name


IMPOSSIBLE = VariableFamily("what", "always 0: the instance is infeasible")
NEVER = RowFamily("", "impossible >= 1: the instance is infeasible, and so is the model")


def _summed(terms: Iterable[Term]) -> list[Term]:
    sums: dict[pulp.LpVariable, float] = {}
    for variable, coefficient in terms:
        sums[variable] = sums.get(variable, 0.0) + coefficient
    return list(sums.items())


def _key(key: tuple[str | int, ...]) -> Key:
    return key[0] if len(key) == 1 else key


def _members(members: Sequence[str | int]) -> str:
    if isinstance(members, range):
        return f"{members[0]} .. {members[-1]}" if members else ""
    return textwrap.shorten(", ".join(map(str, members)), 60, placeholder=" ...")


def _range(members: list[pulp.LpVariable]) -> str:
    low = [v.lowBound for v in members]
    high = [v.upBound for v in members]
    least = None if None in low else min(low)
    most = None if None in high else max(high)
    if members[0].cat == pulp.LpInteger and (least, most) == (0, 1):
        return "binary"
    shown = f"{'-inf' if least is None else f'{least:g}'}..{'inf' if most is None else f'{most:g}'}"
    return f"{'integer' if members[0].cat == pulp.LpInteger else 'real'} {shown}"


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(f"{head} {text}", 118, subsequent_indent=" " * (len(head) + 1), drop_whitespace=True) or [head]

"""Certificates in form rows, and of area, as files of VIPR 1.0, which checkers of others read.

Cheung, Gleixner and Steffy, "Verifying integer programming results" (IPCO 2017); format and checker: scipopt/vipr. The
file states the rows of the model, its bounds, what is to be proven, and one derivation a step: sums of rows (``lin``),
sums that are rounded because a variable is whole (``rnd``), a case (``asm``), and both cases together (``uns``).

That the rows are those of the instance is no part of such a proof. So the part before the derivations is written from
the instance alone (:mod:`~schedgap.tools.vipr.stating`), which compares it with a file, byte by byte.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from schedgap.formulations.common.instance import Instance
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.content import plain
from schedgap.solvers.certificates.linear import Box, Rejected, number, reject
from schedgap.tools.vipr.stating import domains, head, stated, sum_of

ABSURD = "0"
"""The left side of 0 >= 1, from which everything follows."""


class Bound(NamedTuple):
    """A bound of a variable, and the number of the line that says so."""

    value: Any
    line: int


_PROVEN_HERE = {"weights", "factor"}
"""Parts of a leaf of area that are no part of the rows."""
_MOST_STEPS = 2_000_000

Terms = Sequence[tuple[int, "Fraction | None"]]
"""Lines with their factors, None for cases."""


class Step(NamedTuple):
    """A derivation: what it says, how, and the lines that it rests on, found out for steps that are needed."""

    sense: str
    right: Any
    left: str
    rule: str
    rests_on: Callable[[], Terms]


@dataclass(frozen=True)
class Bounds:
    """What is known of all variables at a node, with the lines that say so."""

    low: dict[int, Bound]
    high: dict[int, Bound]

    @property
    def empty(self) -> int | None:
        """A variable without a value, None where there is none."""
        return next((j for j, low in self.low.items() if low.value > self.high[j].value), None)

    def within(self, j: int, *, low: Bound | None = None, high: Bound | None = None) -> Bounds:
        """The same with another bound of one variable."""
        return Bounds(
            self.low if low is None else {**self.low, j: low},
            self.high if high is None else {**self.high, j: high},
        )


class Writer:
    """Writes one certificate as derivations.

    Raises Rejected: the form is not one of rows.

    Parameters
    ----------
    instance, certificate : values of :func:`~schedgap.solvers.certificates.checker.parse`
    """

    def __init__(self, instance: Mapping[str, Any], certificate: Mapping[str, Any]) -> None:
        self.instance, self.certificate = instance, certificate
        self.model, self.claim = stated(instance, certificate)
        target = None if self.claim is None else self.model.sense * self.claim
        self.prover = checker.Prover(self.model, target)
        self.target = None if target is None else target - self.model.constant
        self.rows = {name: line for line, name in enumerate(self.model.rows)}
        self.given = len(self.rows) + 2 * len(self.model.names)
        self.steps: list[Step] = []
        self.tree = certificate["tree"]
        self._last: tuple[Any, tuple[dict[int, int], int, int]] = None, ({}, 0, 1)
        self.rows_of: list[list[str]] = [[] for _ in self.model.names]
        self.whole_rows: dict[str, list[tuple[int, list[tuple[int, int]], int]]] = {}
        for name, row in self.model.rows.items():
            scale = math.lcm(row.right.denominator, *(a.denominator for a in row.terms.values()))
            self.whole_rows[name] = [
                (factor, [(j, int(a * factor)) for j, a in row.terms.items()], int(row.right * factor))
                for factor in ((scale, -scale) if row.equal else (scale,))
            ]
            for j in row.terms:
                self.rows_of[j].append(name)

    def lines(self) -> Iterator[str]:
        """The file.

        Raises Rejected: the certificate does not prove what it claims.
        """
        last = self._node(self.tree, self._bounds(), narrowing=False)
        yield from head(self.instance, self.certificate)
        yield from self._needed(last)

    def _bounds(self) -> Bounds:
        """The bounds of the model."""
        low, high = {}, {}
        for j, (least, most) in enumerate(domains(self.model)):
            line = self.given + 2 * (j - len(self.model.names))
            low[j], high[j] = Bound(least, line), Bound(most, line + 1)
        return Bounds(low, high)

    def _needed(self, last: int) -> Iterator[str]:
        """The derivations that the last one rests on, numbered anew."""
        needed: dict[int, Terms] = {}
        waiting = {last}
        for line in range(last, self.given - 1, -1):
            if line in waiting:
                needed[line] = self.steps[line - self.given].rests_on()
                waiting.update(other for other, _ in needed[line] if other >= self.given)
        place = {line: self.given + k for k, line in enumerate(sorted(needed))}
        yield f"DER {len(needed)}"
        for line in sorted(needed):
            step = self.steps[line - self.given]
            parts = [
                f"{place.get(other, other)}" + ("" if factor is None else f" {factor}")
                for other, factor in needed[line]
            ]
            count = [str(len(parts))] if step.rule in ("lin", "rnd") else []
            reason = " ".join([step.rule, *count, *parts])
            yield f"D{place[line]} {step.sense} {step.right} {step.left} {{ {reason} }} -1"

    def _add(self, sense: str, right: Any, left: str, rule: str, rests_on: Callable[[], Terms] = list) -> int:
        self.steps.append(Step(sense, right, left, rule, rests_on))
        return self.given + len(self.steps) - 1

    def _node(self, node: Any, at: Bounds, *, narrowing: bool) -> int:
        """The line that says what is to be proven at a node."""
        if (j := at.empty) is not None:
            return self._no_value(at, j)
        if "narrow" in node:
            inside, absurd = self._narrow(at, self.rows)
            return absurd if absurd is not None else self._node(node["narrow"], inside, narrowing=True)
        if "fix" in node:
            return self._fixed(node, at, narrowing=narrowing)
        if "split" in node:
            j, k = self.model.index[node["split"]], node["at"]
            sides = []
            for sense, value, side in (("L", k, node["low"]), ("G", k + 1, node["high"])):
                case, part = self._case(at, j, sense, value)
                proof = None
                if narrowing and part.empty is None:
                    part, proof = self._narrow(part, self.rows_of[j])
                if proof is None:
                    proof = self._node(side, part, narrowing=narrowing)
                sides.append((proof, case))
            low, high = sides
            return self._both(low, high)
        ((kind, multipliers),) = node.items()
        if kind == "bound":
            return self._at_least(multipliers, at)
        right, terms = self._combined(multipliers, at, use_cost=False)
        return self._add("G", right, ABSURD, "lin", terms)

    def _case(self, at: Bounds, j: int, sense: str, value: int) -> tuple[int, Bounds]:
        """The assumption that a variable is at most, or at least, a value; and what is known then."""
        case = self._add(sense, value, f"1 {j} 1", "asm")
        bound = Bound(value, case)
        if sense == "L":
            return case, at.within(j, high=min(at.high[j], bound, key=lambda known: known.value))
        return case, at.within(j, low=max(at.low[j], bound, key=lambda known: known.value))

    def _both(
        self,
        one: tuple[int, int],
        other: tuple[int, int],
        aim: tuple[Any, str] | None = None,
    ) -> int:
        """What is proven in two cases of which one holds: the target, where no other aim is given."""
        lines: Terms = [(line, None) for pair in (one, other) for line in pair]
        if aim is not None:
            return self._add("G", *aim, "uns", lambda: lines)
        if self.target is None:
            return self._add("G", 1, ABSURD, "uns", lambda: lines)
        return self._add("G", self.target, "OBJ", "uns", lambda: lines)

    def _no_value(self, at: Bounds, j: int) -> int:
        low, high = at.low[j], at.high[j]
        terms: Terms = [(low.line, Fraction(1)), (high.line, Fraction(-1))]
        return self._add("G", low.value - high.value, ABSURD, "lin", lambda: terms)

    def _combined(
        self, multipliers: Mapping[str, Any], at: Bounds, *, use_cost: bool
    ) -> tuple[Fraction, Callable[[], Terms]]:
        """What multiples of rows and of bounds add up to, and which: their left sides are the objective, or nothing."""
        if self._last[0] is not multipliers:
            self._last = multipliers, self.prover.adder.combined(multipliers, use_cost)
        left, right, below = self._last[1]
        bounds = [(at.low[j] if whole > 0 else at.high[j], whole) for j, whole in left.items() if whole]
        total = right + sum(whole * bound.value for bound, whole in bounds)

        def terms() -> Terms:
            rows = ((self.rows[name], number(value, name)) for name, value in multipliers.items())
            return [
                *((line, factor) for line, factor in rows if factor),
                *((bound.line, Fraction(whole, below)) for bound, whole in bounds),
            ]

        return Fraction(total) / below, terms

    def _at_least(self, multipliers: Mapping[str, Any], at: Bounds) -> int:
        """The objective is at least the target: by a sum, and where that is less, because it is a multiple of a step.

        Raises Rejected: neither shows it.
        """
        assert self.target is not None
        right, terms = self._combined(multipliers, at, use_cost=True)
        line = self._add("G", right, "OBJ", "lin", terms)
        if right >= self.target:
            return line
        step = self.model.step
        priced = [(j, c) for j, c in enumerate(self.model.cost) if c]
        if not step or any(not self.model.whole[j] or (c / step).denominator != 1 for j, c in priced):
            reject(f"the multiples of {step} that values are do not follow from the rows: VIPR cannot say it")
        steps = math.ceil(right / step)
        if steps * step < self.target:
            reject(f"a leaf proves {float(steps * step):.12g} only")
        scaled = f"{len(priced)} " + " ".join(f"{j} {c / step}" for j, c in priced)
        multiple = self._add("G", steps, scaled, "rnd", lambda: [(line, 1 / step)])
        return self._add("G", steps * step, "OBJ", "lin", lambda: [(multiple, step)])

    def _fixed(self, node: Mapping[str, Any], at: Bounds, *, narrowing: bool) -> int:
        """Values that cost too much by the multipliers are cases of their own, each with the same sum."""
        whole = [j for j, integral in enumerate(self.model.whole) if integral]
        box: Box = {self.model.names[j]: (at.low[j].value, at.high[j].value) for j in whole}
        less = self.prover.narrowed(node["fix"], box, "")
        cases: list[tuple[tuple[int, int], int]] = []
        changed = []
        for j in whole:
            low, high = less[self.model.names[j]]
            if low > at.low[j].value:
                out, beyond = self._case(at, j, "L", low - 1)
                case, at_next = self._case(at, j, "G", low)
            elif high < at.high[j].value:
                out, beyond = self._case(at, j, "G", high + 1)
                case, at_next = self._case(at, j, "L", high)
            else:
                continue
            cases.append(((self._at_least(node["fix"], beyond), out), case))
            changed.append(j)
            at = at_next
        line: int | None = None
        if narrowing and changed:
            at, line = self._narrow(at, dict.fromkeys(name for j in changed for name in self.rows_of[j]))
        if line is None:
            line = self._node(node["then"], at, narrowing=narrowing)
        for beyond_case, case in reversed(cases):
            line = self._both((line, case), beyond_case)
        return line

    def _narrow(self, at: Bounds, names: Iterable[str]) -> tuple[Bounds, int | None]:
        """What the rows leave of the bounds, each a rounded sum; and the line that says that nothing is left, if so.

        The checker narrows in another order; what is left in the end is the same.
        """
        low, high = dict(at.low), dict(at.high)
        todo = deque(names)
        waiting = set(todo)
        while todo:
            name = todo.popleft()
            waiting.remove(name)
            for factor, row, right in self.whole_rows[name]:
                tops = [high[j] if a > 0 else low[j] for j, a in row]
                slack = sum(a * top.value for (_, a), top in zip(row, tops, strict=True)) - right
                if slack < 0:
                    lines = [(top.line, Fraction(-a)) for (_, a), top in zip(row, tops, strict=True)]
                    absurd: Callable[[], Terms] = partial(list, [(self.rows[name], Fraction(factor)), *lines])
                    return Bounds(low, high), self._add("G", -slack, ABSURD, "lin", absurd)
                for (j, a), top in zip(row, tops, strict=True):
                    if not self.model.whole[j] or abs(a) * (high[j].value - low[j].value) <= slack:
                        continue
                    rests_on = partial(self._narrowing, name, factor, row, tops, j)
                    room = math.floor(slack / abs(a)) if isinstance(slack, Fraction) else slack // abs(a)
                    if a > 0:
                        low[j] = Bound(top.value - room, self._add("G", top.value - room, f"1 {j} 1", "rnd", rests_on))
                    else:
                        high[j] = Bound(top.value + room, self._add("L", top.value + room, f"1 {j} 1", "rnd", rests_on))
                    again = [other for other in self.rows_of[j] if other not in waiting]
                    todo.extend(again)
                    waiting.update(again)
        return Bounds(low, high), None

    def _narrowing(self, name: str, factor: int, row: list[tuple[int, int]], tops: list[Bound], j: int) -> Terms:
        """A row, and what its other terms are at most: divided by the factor of x_j, they leave x_j alone."""
        own = next(a for k, a in row if k == j)
        others = [(top.line, Fraction(-a, own)) for (k, a), top in zip(row, tops, strict=True) if k != j]
        return [(self.rows[name], Fraction(factor, own)), *others]


class AreaWriter(Writer):
    """Writes a certificate of area, in the rows that its rules have for it (``periods``).

    Where weights are not a multiple of the gangs, the most that those in a slot weigh
    is derived, by cases of how many gangs of a size are there.
    """

    def __init__(self, instance: Mapping[str, Any], certificate: Mapping[str, Any]) -> None:
        leaf = certificate["tree"]["prices"]
        options = {"horizon": certificate["options"]["horizon"]}
        options |= {k: leaf[k] for k in leaf.keys() - _PROVEN_HERE}
        weights: dict[int, int] = {}
        if "weights" in leaf:
            gangs = {job["gpus"] for job in instance["jobs"]}
            weights = {g: leaf["weights"].get(str(g), 0) for g in gangs}
            options["slots"] = len({Fraction(w, g) for g, w in weights.items()}) > 1
        super().__init__(instance, {**certificate, "form": "periods", "options": options})
        if weights:
            total = sum(server["gpus"] for server in instance["servers"])
            factors = self._periods(weights, _heaviest(weights, total), slots=options["slots"])
        elif "gang" in leaf:
            factors = self._one_or_two(instance["jobs"], leaf["gang"], Fraction(leaf["factor"]))
        else:
            factors = {"run": Fraction(1)}
        rows = self.model.rows
        late = sum(y * rows[name].terms.get(0, 0) for name, y in factors.items())
        scale = self.model.cost[0] / late
        self.tree = {"bound": {name: str(y * scale) for name, y in factors.items() if y}}

    def _periods(self, weights: Mapping[int, int], most: int, *, slots: bool) -> dict[str, Fraction]:
        """The factor of each row: of the work of each size of gang, and of what is held in each period."""
        factors = {f"work[{g}]": Fraction(w) for g, w in weights.items()}
        at = self._bounds()
        index = self.model.index
        for name in [name for name in self.rows if name.startswith("gpus[")]:
            if not slots:
                gang, weight = next(iter(weights.items()))
                factors[name] = Fraction(weight, gang)
                continue
            p = name[5:-1]
            terms = [(f"held[{g},{p}]", w) for g, w in weights.items() if w]
            heavy = f"weigh[{p}]"
            self.rows[heavy] = self._weighed(name, {index[x]: w for x, w in terms}, most, at)
            self.model.row(heavy, terms, "<=", most)
            factors[heavy] = Fraction(1)
        return factors

    def _one_or_two(self, jobs: Any, gang: int, factor: Fraction) -> dict[str, Fraction]:
        """The factor of each row, where large gangs on one server count for more."""
        factors = {"gpus": Fraction(1), "large": factor}
        for j, job in enumerate(jobs):
            wide = job["gpus"] + (factor if job["gpus"] >= gang else 0)
            factors[f"runs[one,{j}]"] = wide
            factors[f"runs[two,{j}]"] = Fraction(job["gpus"])
        return {name: y for name, y in factors.items() if name in self.rows}

    def _weighed(self, name: str, weights: Mapping[int, int], most: int, at: Bounds) -> int:
        """The line that says that the gangs of a slot weigh no more than `most`.

        Parameters
        ----------
        name : the row of the slot's GPUs
        weights : weight of each variable
        """
        row = self.model.rows[name]
        sizes = {j: -a for j, a in row.terms.items()}
        left = sum_of({j: Fraction(-w) for j, w in weights.items()})
        tops = {j: at.low[j].value for j in sizes}
        free = -row.right - sum(size * tops[j] for j, size in sizes.items())
        if free < 0:
            too_many: Terms = [
                (self.rows[name], Fraction(1)),
                *((at.low[j].line, size) for j, size in sizes.items()),
            ]
            return self._add("G", -free, ABSURD, "lin", lambda: too_many)
        price, torn = Fraction(0), None
        for j in sorted(weights, key=lambda j: -weights[j] / sizes[j]):  # the heaviest a GPU first
            room = at.high[j].value - at.low[j].value
            more = min(free / sizes[j], room)
            free -= more * sizes[j]
            tops[j] += more
            if more < room:
                price = weights[j] / sizes[j]
                torn = j if more.denominator > 1 else None
                break
        over = {j: price * size - weights.get(j, 0) for j, size in sizes.items()}
        bounds = [(at.low[j] if c > 0 else at.high[j], c) for j, c in over.items() if c]
        total = price * row.right + sum(c * bound.value for bound, c in bounds)
        if math.ceil(total) >= -most:
            terms = [(bound.line, c) for bound, c in bounds]
            if price:
                terms.append((self.rows[name], price))
            return self._add("G", math.ceil(total), left, "rnd", lambda: terms)
        if torn is None or len(self.steps) > _MOST_STEPS:
            reject("what gangs weigh together takes too many cases to derive")
        k = math.floor(tops[torn])
        sides = []
        for sense, value in (("L", k), ("G", k + 1)):
            case, part = self._case(at, torn, sense, value)
            sides.append((self._weighed(name, weights, most, part), case))
        low, high = sides
        return self._both(low, high, (-most, left))


def _heaviest(weights: Mapping[int, int], total: int) -> int:
    """The most that gangs weigh that are held together."""
    best = [0] * (total + 1)
    for size in range(1, total + 1):
        best[size] = max([best[size - 1], *(best[size - g] + w for g, w in weights.items() if g <= size)])
    return best[total]


def vipr_text(instance: Mapping[str, Any], certificate: Mapping[str, Any]) -> str:
    """A certificate that our own checker accepts as the text of a file of VIPR.

    Raises Rejected: the certificate proves nothing, or is of a form that VIPR cannot say.

    Parameters
    ----------
    instance, certificate : values of :func:`~schedgap.solvers.certificates.checker.parse`
    """
    checker.check(instance, certificate)
    kind = AreaWriter if certificate["form"] == "area" else Writer
    try:
        return "\n".join(kind(instance, certificate).lines()) + "\n"
    except RecursionError:
        raise Rejected("the tree is too deep") from None


def as_vipr(instance: Instance, certificate: Mapping[str, Any]) -> str:
    """A certificate as the text of a file of VIPR 1.0.

    Raises Rejected: the certificate proves nothing, or is of a form that VIPR cannot say.
    """
    return vipr_text(plain(instance), checker.parse(json.dumps(certificate)))

"""A claim about a heuristic, tried: drawn instances, a hunt among their like, the smallest counterexample in a file."""

from __future__ import annotations

import inspect
import json
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Literal, ParamSpec

import numpy as np

from schedgap.benchmarks.hunt.edits import Data, fitted
from schedgap.benchmarks.hunt.limits import Space
from schedgap.benchmarks.hunt.mutate import mutated
from schedgap.benchmarks.hunt.shrink import lowered, shrunk, size
from schedgap.benchmarks.hunt.target import Probe
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Json
from schedgap.tools.claims.shape import WRAP, Shape, data_of, jointly, shape_of, small_data, value_of

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Number = int | float | Fraction
Value = Callable[[Json], "Number | None"]
Draw = Callable[[random.Random], Json] | Callable[[np.random.Generator], Json]
Arguments = ParamSpec("Arguments")
TOLERANCE = Fraction(1, 10**9)
"""Relative, where a side of the claim was computed in floats; whole numbers and fractions are compared exactly."""
SHAPED = 500
"""Drawn instances, at least, that show what all have in common; the claim is tried on the first of them."""
KEPT, OF_A_NICHE = 48, 6
"""Instances near failing that the hunt changes, and how many of them may be alike."""
SHORT, SPREAD = 5, 3
"""Small instances, which a hunt tries first: entries of a list, and how far numbers are above their least."""
RESTARTS = 500
"""Small instances that shrinking tries where it can go no further by itself."""
PATIENCE = 5
"""Changes, for each instance that may be tried, after which a hunt ends that finds nothing new."""


class Refuted(AssertionError):
    """A claim that fails on an instance."""


class Impossible(AssertionError):
    """A heuristic better than the exact value, or a relaxation worse: the exact value or they are wrong."""


@dataclass(frozen=True)
class Trial:
    """A claim on one instance."""

    instance: Json
    value: Number | None  # the heuristic's; None where the claim does not apply
    exact: Number | None
    # left, right: of the claim, left <= right
    left: Fraction
    right: Fraction
    fails: bool
    impossible: str = ""  # what cannot be, in words
    changed: bool = False  # a small or changed one that the generator did not draw

    @property
    def share(self) -> float:
        """Left over right: 1 is tight, more refutes; infinite where the right side is 0 and the left is not."""
        if self.right > 0:
            return float(self.left / self.right)
        return float("inf") if self.left > self.right else 0.0


@dataclass(frozen=True)
class Tried:
    """What became of a claim."""

    name: str
    drawn: int  # instances of the generator to which it applies
    hunted: int  # small and changed instances to which it applies
    outside: int  # instances to which it does not apply
    raised: int  # hunted instances on which a function raised, which are left out
    tightest: Trial | None  # the trial with the largest share; the smallest counterexample where it is refuted
    path: Path | None = None  # the counterexample's file
    as_found: Trial | None = field(default=None, repr=False)  # the counterexample before it was shrunk

    @property
    def refuted(self) -> bool:
        """Whether an instance contradicts it."""
        return self.tightest is not None and self.tightest.fails

    @property
    def power(self) -> float:
        """The largest share: with the right side times anything smaller one of the trials refutes the claim."""
        return 0.0 if self.tightest is None else self.tightest.share

    def to_text(self) -> str:
        """A few lines for a person."""
        outside = f", {self.outside} more to which it does not apply" if self.outside else ""
        raised = f", {self.raised} more left out on which a function raised" if self.raised else ""
        count = f"{self.drawn} drawn, {self.hunted} hunted{outside}{raised}"
        if self.tightest is None:
            return f"{self.name}: says nothing of any instance ({count})"
        sides = f"{_words(self.tightest.left)} {'>' if self.tightest.fails else '<='} {_words(self.tightest.right)}"
        values = f"heuristic {_words(self.tightest.value)}, exact {_words(self.tightest.exact)}"
        instance = f"on {_dumped(self.tightest.instance)}"
        if self.refuted:
            return f"{self.name}: refuted ({count}): {sides} ({values})\n  {instance}{_place(self.tightest, self.path)}"
        power = f"power: the right side times anything below {self.power:.4g} is refuted here"
        return f"{self.name}: holds ({count}); nearest to failing: {sides} ({values})\n  {instance}\n  {power}"


def brute_force(
    solutions: Callable[[Json], Iterable[Json]],
    value: Callable[[Json, Json], Number],
    sense: Literal["min", "max"] = "min",
) -> Value:
    """An exact value by enumeration: the best ``value(instance, solution)`` over ``solutions(instance)``; None
    where there is no solution."""
    best = min if sense == "min" else max
    return lambda instance: best((value(instance, one) for one in solutions(instance)), default=None)


def try_claim(
    draw: Draw | SearchStrategy[Json],
    exact: Value,
    heuristic: Value,
    bound: Number | Value = 1,
    *,
    plus: Number | Value = 0,
    sense: Literal["min", "max"] = "min",
    relaxations: Value | Sequence[Value] = (),
    draws: int = 200,
    hunt: int = 1000,
    seed: int = 0,
    valid: Callable[[Json], bool] | None = None,
    smaller: Callable[[Json], Iterable[Json]] | None = None,
    name: str = "claim",
    out: str | Path | None = "counterexamples",
) -> Tried:
    """Try that a heuristic is never worse than a factor of the exact value.

    The claim is ``heuristic <= bound * exact + plus`` where values are costs, ``exact <= bound * heuristic + plus``
    where they are gains. Drawn instances come first, then small ones and changes of those nearest to failing, which
    keep the types, ranges, lengths and simple relations that all drawn ones have (sorted, as long as, at most). A
    counterexample is shrunk as long as it stays one, and written. Unasked: no heuristic may beat the exact value, and
    no relaxation may be on the wrong side of it.

    Parameters
    ----------
    draw : a function of a ``random.Random``, or of a ``numpy.random.Generator`` where its parameter is annotated as
        one; or a hypothesis strategy. Instances are dicts, lists, tuples, numbers (fractions too) and words
    exact : the optimum of an instance; None where it has no solution, so that nothing is claimed of it
    heuristic : the value of the heuristic's answer
    bound : a factor, or a function of the instance; a function that returns None says nothing of that instance
    plus : an addend, or a function of the instance
    sense : "min" where values are costs, "max" where they are gains
    relaxations : functions that claim lower bounds on the exact value ("max": upper bounds)
    draws, hunt : numbers of instances
    seed : seed of all randomness
    valid : whether a changed instance is one, where that is more than the drawn ones show
    smaller : further instances that shrinking tries; used where they have fewer entries or rounder numbers
    name : in messages, and of the file
    out : folder for the counterexample; one that lies there under the same name is tried first. None writes nothing

    Returns
    -------
    Tried
        Refuted with its smallest counterexample, or how near the claim came to failing. A claim that is not refuted
        is not proven.

    Raises
    ------
    Impossible
        The heuristic beats the exact value, or a relaxation does not bound it; the instance is shrunk and written.
    InputError
        A function raised on a drawn instance, returned no number, or the generator returned no plain data.

    Notes
    -----
    At most ``draws + hunt`` calls of each function, and some hundred to shrink; deterministic for a seed. Whole
    numbers and fractions are compared exactly, floats with a relative tolerance of 1e-9.
    """
    relaxed = (relaxations,) if callable(relaxations) else tuple(relaxations)
    claim = _Claim(exact, heuristic, bound, plus, sense, relaxed, name)
    instances = list(_drawn(draw, max(draws, SHAPED), seed))
    shape = shape_of(instances)
    search = _Search(claim, shape, valid, smaller, None if out is None else Path(out) / f"{name}.json")
    search.recall()
    for instance in instances[:draws]:
        search.look(data_of(shape.schema, {WRAP: instance}), "drawn", strict=True)
    search.hunt(hunt, np.random.default_rng(seed))
    return search.told()


def _raising(function: Callable[Arguments, Tried]) -> Callable[Arguments, Tried]:
    @wraps(function)
    def check(*args: Arguments.args, **options: Arguments.kwargs) -> Tried:
        """:func:`try_claim` for a test: raises :class:`Refuted`, with the counterexample, where the claim fails."""
        result = function(*args, **options)
        if result.refuted:
            raise Refuted(result.to_text())
        return result

    check.__name__ = check.__qualname__ = "check_claim"
    return check


check_claim = _raising(try_claim)


@dataclass(frozen=True)
class _Claim:
    exact: Value
    heuristic: Value
    bound: Number | Value
    plus: Number | Value
    sense: str
    relaxations: tuple[Value, ...]
    name: str

    def on(self, instance: Json) -> Trial:
        """The claim on one instance."""
        exact = self._ask("exact", self.exact, instance)
        bound = self._ask("bound", self.bound, instance)
        plus = self._ask("plus", self.plus, instance)
        if exact is None or bound is None or plus is None:
            return Trial(instance, None, exact, Fraction(0), Fraction(0), False)
        value = self._ask("heuristic", self.heuristic, instance)
        if value is None:
            raise InputError(f"{self.name}: heuristic: returned nothing, on {_dumped(instance)}")
        minimal = self.sense == "min"
        impossible = ""
        better, worse = (value, exact) if minimal else (exact, value)
        if _below(better, worse):
            impossible = f"the heuristic's {_words(value)} beats the exact {_words(exact)}"
        for relaxation in self.relaxations:
            claimed = self._ask(_called(relaxation), relaxation, instance)
            if claimed is not None and (_below(exact, claimed) if minimal else _below(claimed, exact)):
                side = "above" if minimal else "below"
                impossible = f"the bound {_words(claimed)} of {_called(relaxation)} is {side} the exact {_words(exact)}"
        left, right = (value, exact) if minimal else (exact, value)
        inexact = any(isinstance(number, float) for number in (value, exact, bound, plus))
        limit = _exact(bound) * _exact(right) + _exact(plus)
        fails = _exact(left) > limit + (TOLERANCE * max(abs(_exact(left)), abs(limit)) if inexact else 0)
        return Trial(instance, value, exact, _exact(left), limit, fails, impossible)

    def _ask(self, what: str, function: Number | Value, instance: Json) -> Number | None:
        if not callable(function):
            return function
        try:
            answer = function(instance)
        except Exception as error:
            raise InputError(
                f"{self.name}: {what}: raised {type(error).__name__}: {error}, on {_dumped(instance)}"
            ) from error
        answer = answer.item() if isinstance(answer, np.generic) else answer
        if isinstance(answer, bool) or not isinstance(answer, int | float | Fraction | None):
            raise InputError(f"{self.name}: {what}: must return a number, got {answer!r}, on {_dumped(instance)}")
        if isinstance(answer, float) and not np.isfinite(answer):
            raise InputError(f"{self.name}: {what}: must be finite, got {answer!r}, on {_dumped(instance)}")
        return answer


class _Search:
    """What has been tried, and the instances nearest to failing."""

    def __init__(
        self,
        claim: _Claim,
        shape: Shape,
        valid: Callable[[Json], bool] | None,
        smaller: Callable[[Json], Iterable[Json]] | None,
        path: Path | None,
    ) -> None:
        self.claim, self.shape, self.valid, self.smaller, self.path = claim, shape, valid, smaller, path
        self.seen: dict[str, Trial | None] = {}
        self.drawn: set[str] = set()
        self.nearest: list[tuple[Trial, Data, Hashable]] = []  # with their niches, the nearest first
        self.counts = {"drawn": 0, "hunted": 0, "outside": 0, "raised": 0}

    def trial(self, data: Data, strict: bool = False) -> Trial | None:
        """The claim on an instance that is one; None on others and, unless `strict`, where a function raised."""
        key = json.dumps(data, sort_keys=True, default=str)
        if strict:
            self.drawn.add(key)
        if key not in self.seen or strict:
            self.seen[key] = None
            instance = value_of(self.shape.schema, data)[WRAP]
            if strict or (self.shape.admits(data) and (self.valid is None or self.valid(instance))):
                try:
                    self.seen[key] = replace(self.claim.on(instance), changed=key not in self.drawn)
                except InputError:
                    if strict:
                        raise
                    self.counts["raised"] += 1
        return self.seen[key]

    def look(self, data: Data, how: str, strict: bool) -> None:
        """Try an instance and remember it where it is near failing; the first that cannot be ends everything."""
        trial = self.trial(data, strict)
        if trial is None:
            return
        if trial.impossible:
            smallest = self._shrunk(data, trial, lambda other: bool(other.impossible))
            raise Impossible(self._impossible(smallest))
        if trial.value is None:
            self.counts["outside"] += 1
            return
        self.counts[how] += 1
        self.nearest.append((trial, data, self.shape.niche(data)))
        self.nearest.sort(key=lambda entry: -entry[0].share)
        alike = Counter[Hashable]()
        for place, (_, _, niche) in enumerate(self.nearest):
            alike[niche] += 1
            if alike[niche] > OF_A_NICHE or place == KEPT:
                del self.nearest[place]
                break

    @property
    def worst(self) -> tuple[Trial, Data] | None:
        """The instance nearest to failing."""
        return self.nearest[0][:2] if self.nearest else None

    def hunt(self, budget: int, rng: np.random.Generator) -> None:
        """Change instances near failing until one fails, or so many have been tried."""
        before = sum(self.counts.values())
        for data in self._small(budget // 4, rng, SHORT, SPREAD):
            if self.worst is not None and self.worst[0].fails:
                return
            self.look(data, "hunted", strict=False)
        for _ in range(PATIENCE * budget):
            if self.worst is None or self.worst[0].fails or sum(self.counts.values()) >= before + budget:
                return
            parent, partner = (self.nearest[int(len(self.nearest) * rng.random() ** 2)][1] for _ in range(2))
            changed = mutated(parent, self.shape.space, rng, partner)
            if changed is not None and json.dumps(changed, sort_keys=True, default=str) not in self.seen:
                self.look(changed, "hunted", strict=False)

    def _small(self, count: int, rng: np.random.Generator, longest: int, spread: int) -> Iterator[Data]:
        """Random small instances of the shape; none where it does not say enough."""
        for _ in range(count):
            try:
                yield small_data(self.shape.schema, rng, longest, spread)
            except LookupError:
                return

    def told(self) -> Tried:
        """The outcome; a counterexample is shrunk and written."""
        if self.worst is None:
            return self._tried(None)
        trial, data = self.worst
        if not trial.fails:
            return self._tried(trial)
        smallest = self._shrunk(data, trial, lambda other: other.fails)
        self._write(smallest, "refuted")
        return replace(self._tried(smallest), path=self.path, as_found=trial)

    def _tried(self, tightest: Trial | None) -> Tried:
        drawn, hunted, outside, raised = self.counts.values()
        return Tried(self.claim.name, drawn, hunted, outside, raised, tightest)

    def recall(self) -> None:
        """Try the counterexample of an earlier run, where it is within the ranges that instances have now."""
        if self.path is None or not self.path.is_file():
            return
        schema = self.shape.schema
        try:
            data = data_of(schema, {WRAP: json.loads(self.path.read_text(encoding="utf-8"))["instance"]})
            instance = value_of(schema, data)[WRAP]
            if fitted(data, self.shape.space) == data and (self.valid is None or self.valid(instance)):
                self.look(data, "hunted", strict=True)
        except (ValueError, KeyError, TypeError, OSError, AttributeError, InputError):
            return  # of another generator, or changed by hand

    def _shrunk(self, data: Data, trial: Trial, keeps: Callable[[Trial], bool]) -> Trial:
        def accepted(changed: Json) -> Probe | None:
            other = self.trial(dict(changed))
            return Probe(changed, {}, other.share) if other is not None and keeps(other) else None

        def given(now: Data, _: Space) -> Iterator[Data]:
            schema = self.shape.schema
            for instance in self.smaller(value_of(schema, now)[WRAP]) if self.smaller is not None else ():
                yield data_of(schema, {WRAP: instance})

        space = self.shape.space
        smallest = shrunk(Probe(data, {}, trial.share), space, accepted, more=(jointly, lowered, given))
        for other in self._small(RESTARTS, np.random.default_rng(0), SHORT, SPREAD):
            if size(other, space) < size(smallest.data, space) and accepted(other) is not None:
                smallest = shrunk(Probe(other, {}, 0.0), space, accepted, more=(jointly, lowered, given))
        return self.trial(dict(smallest.data)) or trial

    def _impossible(self, trial: Trial) -> str:
        self._write(trial, "impossible")
        return f"{self.claim.name}: {trial.impossible}\n  on {_dumped(trial.instance)}{_place(trial, self.path)}"

    def _write(self, trial: Trial, verdict: str) -> None:
        if self.path is None:
            return
        numbers = {name: _words(getattr(trial, name)) for name in ("value", "exact", "left", "right")}
        content = {"claim": self.claim.name, "verdict": verdict, **numbers, "instance": trial.instance}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, json.dumps(content, indent=1, default=str) + "\n")


def _drawn(draw: Draw | SearchStrategy[Json], count: int, seed: int) -> Iterator[Json]:
    """Instances of a generator, each from a seed of its own; of a strategy as hypothesis draws them."""
    if not callable(draw):
        yield from _of_strategy(draw, count, seed)
        return
    kinds = [str(parameter.annotation) for parameter in inspect.signature(draw).parameters.values()]
    of_numpy = bool(kinds) and "Generator" in kinds[0]
    for number in range(count):
        yield draw(np.random.default_rng([seed, number]) if of_numpy else random.Random(f"{seed}-{number}"))  # type: ignore[arg-type]


def _of_strategy(strategy: SearchStrategy[Json], count: int, seed: int) -> list[Json]:
    import hypothesis

    drawn: list[Json] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def collect(instance: Json) -> None:
        drawn.append(instance)

    collect()
    return drawn


def _exact(number: Number) -> Fraction:
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def _below(low: Number, high: Number) -> bool:
    """Whether `low` is below `high`, by more than rounding where one of them is a float."""
    inexact = isinstance(low, float) or isinstance(high, float)
    slack = TOLERANCE * max(abs(_exact(low)), abs(_exact(high))) if inexact else 0
    return _exact(low) + slack < _exact(high)


def _called(function: Value) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _place(trial: Trial, path: Path | None) -> str:
    """The file, and how to say that a changed instance is none."""
    file = f"; in {path}" if path is not None else ""
    return (
        f"{file}\n  (not drawn, but alike in all that drawn ones share; if it is no instance, say so with valid=...)"
        if trial.changed
        else file
    )


def _dumped(instance: Json) -> str:
    return json.dumps(instance, default=str)


def _words(number: Number | None) -> str:
    return "-" if number is None else f"{number:.12g}" if isinstance(number, float) else str(number)

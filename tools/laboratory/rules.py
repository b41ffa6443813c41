"""The rules of the verdicts: each looks at paired values over the draws and holds, fails, or stays undecided.

A difference *holds* on one side of a limit when its whole 95% interval lies there, *fails* when the whole interval
lies on the other side, and is *undecided* otherwise. Differences are taken draw by draw. With a single draw there is
no interval: then the value itself decides, which only deterministic items use. A printed number is a draw itself, not
a mean: it *agrees in size* when it lies where one more draw would (``data.prediction``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from schedgap.benchmarks.intervals import Interval, interval, plus_minus, prediction
from schedgap.benchmarks.text import significant
from schedgap.formulations.common.arrays import Floats
from schedgap.tools.laboratory.data import Data


class State(StrEnum):
    """What a rule says of the data."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"
    NOTHING = "nothing left to gain"
    """Every method reaches the bound: no lead is left to have, and the question is left out of the verdict."""


@dataclass(frozen=True)
class Answer:
    """What a rule found: its state, what was asked, the numbers that say so, and the first of them alone."""

    state: State
    question: str
    evidence: str
    short: str = ""


class Rule(Protocol):
    """A question with a stated way to decide it."""

    def judge(self, data: Data) -> Answer:
        """The answer that the data give."""


class Quantity(Protocol):
    """Something that every draw has a value of."""

    def of(self, data: Data) -> Floats:
        """Values of the draws; NaN where unknown."""


@dataclass(frozen=True)
class Value:
    """A metric of a series at an x, by draw."""

    # metric, series, at: what to look at
    metric: str
    series: str
    at: Any = None
    name: str = ""  # for people; the series and the x where empty

    def of(self, data: Data) -> Floats:
        """Values of the draws; NaN where unknown."""
        return data.values(self.metric, self.series, self.at)

    def __str__(self) -> str:
        return self.name or (self.series if self.at is None else f"{self.series} at {self.at}")


@dataclass(frozen=True)
class ShareBelow:
    """Share of a series' jobs whose time is below a printed limit, scaled to our mean.

    No paper prints its durations, so that a limit in seconds says nothing of a drawn workload. The limit is read
    relative to the mean that the paper prints for the same series: of each draw, the share of jobs whose time is
    below ``limit / printed_mean`` times the draw's own mean.
    """

    series: str
    limit: float  # in the unit of printed_mean
    printed_mean: float
    metric: str = "jct"  # a list of times, one a job

    def of(self, data: Data) -> Floats:
        """Values of the draws; NaN where unknown."""
        shares = []
        for row in data.draws(self.series):
            times = np.array(row.get(self.metric) or [], dtype=float)
            scaled = times.mean() * self.limit / self.printed_mean if len(times) else np.nan
            shares.append(float((times < scaled).mean()) if len(times) else np.nan)
        return np.array(shares)

    def __str__(self) -> str:
        return f"{self.series}: share below {self.limit:g}, mean scaled to the printed {self.printed_mean:g}"


def side(found: Interval | None, limit: float, below: bool) -> State:
    """Whether a mean lies below (or above) a limit, by its interval."""
    if found is None:
        return State.UNDECIDED
    if found.low == found.high == limit:
        return State.FAILS
    inside, outside = (found.high < limit, found.low >= limit) if below else (found.low > limit, found.high <= limit)
    return State.HOLDS if inside else State.FAILS if outside else State.UNDECIDED


def every(states: Sequence[State]) -> State:
    """A chain holds when every link does, and fails when one does; where nothing is left to gain no link is."""
    links = [state for state in states if state is not State.NOTHING]
    if State.FAILS in links:
        return State.FAILS
    if states and not links:
        return State.NOTHING
    return State.UNDECIDED if State.UNDECIDED in links or not links else State.HOLDS


def _ratio(a: Floats, b: Floats) -> Floats:
    found = np.full(len(a), np.nan)
    known = np.isfinite(a) & np.isfinite(b) & (b != 0)
    found[known] = a[known] / b[known]
    return found


@dataclass(frozen=True)
class Less:
    """Is `a` smaller than `b`, draw by draw?"""

    a: Quantity
    b: Quantity
    what: str = ""
    # the ratio `a` / `b` that the paper prints; whether it agrees in size is told and decides nothing
    printed: float | None = None
    word: str = "smaller"
    ratios: tuple[Quantity, ...] = ()  # to the bound; where all of them are 1 in every draw nothing is left to gain

    def judge(self, data: Data) -> Answer:
        """A judgement by the interval of the mean of a - b."""
        a, b = self.a.of(data), self.b.of(data)
        difference, ratio = interval(a - b), interval(_ratio(a, b))
        text = f"{plus_minus(difference)}; ratio {plus_minus(ratio)}"
        if self.printed is not None and ratio is not None:
            agrees = _sized(prediction(_ratio(a, b)), self.printed) is State.HOLDS
            text += f" (printed {self.printed:g}: {'agrees' if agrees else 'does not agree'} in size)"
        state = side(difference, 0.0, self.word != "larger")
        if self.ratios and all((one.of(data) <= 1 + _AT_BOUND).all() for one in self.ratios):
            state, text = State.NOTHING, f"{text}; every method at the bound in every draw"
        return Answer(state, self.what or f"{self.a} {self.word} than {self.b}", text, plus_minus(difference))


_AT_BOUND = 1e-6
"""How far above 1 a ratio to the bound may be and still count as 1."""


def More(
    a: Quantity, b: Quantity, what: str = "", printed: float | None = None, ratios: tuple[Quantity, ...] = ()
) -> Less:
    """Is `a` larger than `b`, draw by draw?"""
    return Less(a, b, what, printed, "larger", ratios)


@dataclass(frozen=True)
class Trend:
    """Do the values fall (or rise) from each x to the next? Every neighbouring pair has to hold."""

    values: tuple[Value, ...]
    falling: bool = True
    what: str = ""
    # where values cannot go on: a step that every draw begins and ends there is left out, unless all steps do
    end: float | None = None

    def judge(self, data: Data) -> Answer:
        """A judgement by the paired differences of neighbours; the last against the first stands beside."""
        arrays = [value.of(data) for value in self.values]
        steps = [interval(later - earlier) for earlier, later in pairwise(arrays)]
        ended = [
            bool(self.end is not None and all((one == self.end).all() for one in pair)) for pair in pairwise(arrays)
        ]
        states = [
            side(step, 0.0, self.falling) for step, over in zip(steps, ended, strict=True) if not over or all(ended)
        ]
        whole = interval(arrays[-1] - arrays[0])
        text = f"steps {', '.join(plus_minus(s) for s in steps)}; last minus first {plus_minus(whole)}"
        if any(ended):
            text += f"; {self.end:g} is reached before"
        word = "falls" if self.falling else "rises"
        ends = f"{self.values[0].series} {word} from {self.values[0].at} to {self.values[-1].at}, at every step"
        return Answer(every(states), self.what or ends, text, plus_minus(whole))


@dataclass(frozen=True)
class Turns:
    """Is there a fall that holds between neighbours, after it a rise, after it a fall, and so on, as in `pattern`?"""

    values: tuple[Value, ...]
    pattern: tuple[str, ...] = ("fall", "rise", "fall")
    what: str = ""

    def judge(self, data: Data) -> Answer:
        """It holds when the steps that hold contain the pattern, fails when even undecided steps cannot complete it."""
        arrays = [value.of(data) for value in self.values]
        steps = [interval(later - earlier) for earlier, later in pairwise(arrays)]
        state = State.FAILS
        for sure, outcome in ((False, State.UNDECIDED), (True, State.HOLDS)):
            wanted = list(self.pattern)
            for step in steps:
                found = side(step, 0.0, wanted[0] == "fall") if wanted else State.FAILS
                if found is State.HOLDS or (found is State.UNDECIDED and not sure):
                    wanted.pop(0)
            if not wanted:
                state = outcome
        text = "steps " + ", ".join(plus_minus(step) for step in steps)
        return Answer(state, self.what or f"{self.values[0].series}: {', then '.join(self.pattern)}", text)


@dataclass(frozen=True)
class LeadGrows:
    """Is the lead of `a` over `b` larger at the second x than at the first? A lead is b - a, or a - b of a gain."""

    first: tuple[Value, Value]
    second: tuple[Value, Value]
    gain: bool = False
    what: str = ""

    def judge(self, data: Data) -> Answer:
        """A judgement by the difference of differences, draw by draw."""
        sign = 1.0 if self.gain else -1.0
        leads = [sign * (a.of(data) - b.of(data)) for a, b in (self.first, self.second)]
        grown = interval(leads[1] - leads[0])
        text = f"lead {plus_minus(interval(leads[0]))}, then {plus_minus(interval(leads[1]))}; "
        text += f"difference {plus_minus(grown)}"
        a, b = self.second
        default = f"lead of {a.series} over {b.series} larger at {a.at} than at {self.first[0].at}"
        return Answer(side(grown, 0.0, below=False), self.what or default, text, plus_minus(grown))


@dataclass(frozen=True)
class Within:
    """Does a mean lie within limits: the value, its difference to `minus`, or its ratio to `over`?"""

    value: Quantity
    low: float | None = None
    high: float | None = None
    over: Quantity | None = None
    minus: Quantity | None = None
    what: str = ""

    def judge(self, data: Data) -> Answer:
        """It holds when the whole interval lies within, fails when the whole interval lies beyond one limit."""
        values = self.value.of(data)
        if self.minus is not None:
            values = values - self.minus.of(data)
        if self.over is not None:
            values = _ratio(values, self.over.of(data))
        found = interval(values)
        states = []
        if self.low is not None:
            states.append(_reaches(found, self.low, below=False))
        if self.high is not None:
            states.append(_reaches(found, self.high, below=True))
        return Answer(every(states), self.what or self._question(), plus_minus(found), plus_minus(found))

    def _question(self) -> str:
        name = str(self.value)
        if self.minus is not None:
            name += f" minus {self.minus}"
        if self.over is not None:
            name += f" over {self.over}"
        if self.low is None or self.high is None:
            return f"{name} at most {self.high:g}" if self.low is None else f"{name} at least {self.low:g}"
        return f"{name} within {self.low:g} to {self.high:g}"


def _reaches(found: Interval | None, limit: float, below: bool) -> State:
    """The side of the limit, which is itself inside."""
    if found is None:
        return State.UNDECIDED
    inside, outside = (found.high <= limit, found.low > limit) if below else (found.low >= limit, found.high < limit)
    return State.HOLDS if inside else State.FAILS if outside else State.UNDECIDED


def _sized(found: Interval | None, printed: float, to: float | None = None) -> State:
    """Whether a printed number lies, or a printed range begins to lie, in a prediction interval."""
    if found is None or found.half is None:
        return State.UNDECIDED
    return State.HOLDS if found.low <= (printed if to is None else to) and printed <= found.high else State.FAILS


@dataclass(frozen=True)
class Agrees:
    """Is the printed number a draw like ours: of the ratio `a` / `b`, or of `a` itself without `b`?"""

    a: Quantity
    b: Quantity | None
    # printed, to: the number; with `to` it is printed as a range, and some of it has to lie where a draw would
    printed: float
    what: str = ""
    to: float | None = None
    averaged: int = 1  # how many draws the paper averaged

    def judge(self, data: Data) -> Answer:
        """A judgement by the prediction interval of the mean of further draws; undecided only without one."""
        values = self.a.of(data) if self.b is None else _ratio(self.a.of(data), self.b.of(data))
        further = prediction(values, self.averaged)
        name = str(self.a) if self.b is None else f"{self.a} over {self.b}"
        range_ = f"{self.printed:g}" if self.to is None else f"{self.printed:g} to {self.to:g}"
        text = plus_minus(interval(values))
        if further is not None and further.half is not None:
            drawn = "a draw" if self.averaged == 1 else f"a mean of {self.averaged} draws"
            text += f"; {drawn} {significant(further.low, 3)} to {significant(further.high, 3)}"
        return Answer(_sized(further, self.printed, self.to), self.what or f"{name} is {range_}", text, text)


@dataclass(frozen=True)
class Fact:
    """A question about the data of a deterministic item: a function answers it, with the numbers that say so."""

    what: str
    test: Callable[[Data], tuple[bool | None, str]]

    def judge(self, data: Data) -> Answer:
        """True holds, False fails, None is undecided."""
        found, evidence = self.test(data)
        state = State.UNDECIDED if found is None else State.HOLDS if found else State.FAILS
        return Answer(state, self.what, evidence)


@dataclass(frozen=True)
class All:
    """Do all these rules hold? It fails when one does; the evidence counts them."""

    rules: tuple[Rule, ...]
    what: str

    def judge(self, data: Data) -> Answer:
        """A judgement by the states of the rules."""
        states = [rule.judge(data).state for rule in self.rules]
        counts = [f"{states.count(state)} {word}" for state, word in _COUNTED.items() if state in states]
        return Answer(every(states), self.what, ", ".join(counts))


_COUNTED = {
    State.HOLDS: "hold",
    State.FAILS: "fail",
    State.UNDECIDED: "undecided",
    State.NOTHING: "with nothing left to gain",
}


@dataclass(frozen=True)
class Some:
    """Does one of these rules hold? It fails when all of them do."""

    rules: tuple[Rule, ...]
    what: str

    def judge(self, data: Data) -> Answer:
        """A judgement by the states of the rules; the evidence names each."""
        answers = [rule.judge(data) for rule in self.rules]
        states = [answer.state for answer in answers]
        state = every([_OPPOSITE[one] for one in states])
        return Answer(_OPPOSITE[state], self.what, "; ".join(f"{a.question}: {a.evidence}" for a in answers))


_OPPOSITE = {
    State.HOLDS: State.FAILS,
    State.FAILS: State.HOLDS,
    State.UNDECIDED: State.UNDECIDED,
    State.NOTHING: State.NOTHING,
}


@dataclass(frozen=True)
class MeanRatio:
    """A metric of one series over that of another, averaged over the points of x, by draw: a :class:`Value`."""

    metric: str
    a: str
    b: str
    points: tuple[Any, ...]

    def of(self, data: Data) -> Floats:
        """Values of the draws; NaN where a point is unknown."""
        found = [_ratio(*(data.values(self.metric, series, at) for series in (self.a, self.b))) for at in self.points]
        return np.asarray(np.mean(found, axis=0), dtype=np.float64)

    def __str__(self) -> str:
        return f"{self.a} over {self.b}, mean over {self.points[0]} to {self.points[-1]}"

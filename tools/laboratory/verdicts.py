"""A claim's verdict from what its rules say of the data, under the main choice and under every second one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from schedgap.tools.laboratory.data import Data
from schedgap.tools.laboratory.declare import MAIN, Claim, Item
from schedgap.tools.laboratory.rules import Answer, State


class Verdict(StrEnum):
    """What the data say of a claim."""

    REPRODUCES = "reproduces"
    PARTLY = "reproduces in part"
    NOT = "does not reproduce"
    UNDECIDED = "cannot be decided"


def verdict_of(states: Sequence[State]) -> Verdict:
    """The rule of the verdict.

    Every part holds: it reproduces. Some part holds and another does not: in part. None holds and at least one
    fails: it does not. None holds and none fails, or there is no part: it cannot be decided. Parts in which nothing
    is left to gain are no parts.
    """
    states = [state for state in states if state is not State.NOTHING]
    if states and all(state is State.HOLDS for state in states):
        return Verdict.REPRODUCES
    if State.HOLDS in states:
        return Verdict.PARTLY
    return Verdict.NOT if State.FAILS in states else Verdict.UNDECIDED


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict."""

    claim: Claim  # what was judged
    answers: dict[str, tuple[Answer, ...]]  # answers of its rules, by choice

    def under(self, choice: str) -> Verdict:
        """The verdict under one choice."""
        return verdict_of([answer.state for answer in self.answers.get(choice, ())])

    @property
    def verdict(self) -> Verdict:
        """The verdict under the main choice."""
        return self.under(MAIN)

    @property
    def depends_on(self) -> tuple[str, ...]:
        """Second choices under which the verdict is another one."""
        return tuple(choice for choice in self.answers if self.under(choice) is not self.verdict)

    @property
    def undecided(self) -> bool:
        """Whether more draws could decide something, under any choice."""
        return any(answer.state is State.UNDECIDED for answers in self.answers.values() for answer in answers)

    @property
    def text(self) -> str:
        """The verdict, and what it depends on."""
        rest = ", ".join(self.depends_on)
        return f"{self.verdict} (depends on: {rest})" if rest else str(self.verdict)


def judge(item: Item, data: Data) -> tuple[Judged, ...]:
    """Every claim of an item, judged from its data."""
    return tuple(_judge(claim, item, data) for claim in item.claims)


def _judge(claim: Claim, item: Item, data: Data) -> Judged:
    names = (MAIN, *item.choices_of(claim))
    return Judged(claim, {name: tuple(rule.judge(data.under(name)) for rule in claim.parts) for name in names})

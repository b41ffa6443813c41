"""The answer of ``judge``: what waits, what could run, what the scheduler placed, what is known of lost gangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from schedgap.benchmarks.judging.judge import finite
from schedgap.benchmarks.records import plain_number
from schedgap.benchmarks.text import number, significant
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.instance import Json, Solution
from schedgap.formulations.gang_placement.instance import WHOLE, GangPlacementInstance
from schedgap.formulations.gang_placement.scale import components, score
from schedgap.solvers.exact.gang_placement.bound import ratio_of
from schedgap.solvers.result import Proof, Result, Status
from schedgap.tools.judge.asking import NOTHING
from schedgap.tools.judge.lost import ASIDE, BARRED, COULD, FITS, MAY, UNDECIDED, Lost, many
from schedgap.tools.judge.reading import Snapshot

MOST_LOST = 100
"""Lost gangs that the text tells one by one; the JSON object has all."""
NOTHING_WAITS = "no gang waits in what was read"
ROWS = {
    "split": "gangs split over domains of the level they prefer",
    "domains": "domains beyond one a gang, over all levels",
    "fragmentation": "fragmentation, in thousandths of GPUs",
    "moves": "price of moves and endings",
}
"""Rows of the table in words."""


@dataclass(frozen=True)
class Judgement:
    """What the judge says of one decision.

    Attributes
    ----------
    instance : cluster in which nothing is relaxed, with the objectives that were asked for
    report : the checker's on the scheduler's decision in it
    world : the same in the instance in which nothing is restricted: what breaks a rule there breaks it in the world
    limit : GPUs that no decision places more of; gangs where nothing that waits asks for GPUs
    """

    snapshot: Snapshot
    instance: GangPlacementInstance
    report: CheckReport
    world: CheckReport
    best: Result  # the best decision that was found, with its bound and proof
    best_values: Mapping[str, Fraction]
    bound_values: Mapping[str, Fraction] | None  # None where none was ready in the time
    limit: Fraction | None
    limit_proven: bool  # an optimum of some instance shows the limit
    lost: tuple[Lost, ...]  # gangs that the scheduler did not place
    unread: Mapping[str, int]  # what the snapshot says beyond what was understood, counted
    seconds: float

    @property
    def decision(self) -> Solution:
        """What the scheduler placed."""
        return self.snapshot.decision

    @property
    def values(self) -> dict[str, Fraction]:
        """The vector of the scheduler's decision."""
        return {name: Fraction(text) for name, text in self.report.details["components"].items()}

    @property
    def proof(self) -> str:
        """How far the best is proven; of nothing, nothing is."""
        if not self.snapshot.outward.gangs:
            return "none"
        if self.best.status is not Status.OPTIMAL:
            return "none"
        return (self.best.proof or Proof.CLAIMED).value

    @property
    def proof_of_limit(self) -> str:
        """How far it is proven that no more could run: where readings differ, by one program at most."""
        if not self.snapshot.apart:
            return self.proof
        return "claimed" if self.limit_proven else "none"

    @property
    def deciding(self) -> tuple[str, Fraction, Fraction, bool] | None:
        """(component, the scheduler's value, the best, whether more is better) of the first component that differs."""
        for entry in components(self.instance):
            mine, best = self.values[entry.name], self.best_values[entry.name]
            if mine != best:
                return entry.name, mine, best, entry.maximise
        return None

    @property
    def ratio(self) -> tuple[float | None, str]:
        """The ratio in the first component that differs, at least 1, and what it is to: "optimum" or "bound".

        None where the decision breaks a rule, nothing is judged, readings differ, or no bound was ready.
        """
        optimal = self.best.status is Status.OPTIMAL
        best = self.best_values if optimal else self.bound_values
        if best is None or not self.report.feasible or not self.instance.gangs or self.snapshot.apart:
            return None, "optimum" if optimal else "bound"
        mine, other = (score(self.instance, list(vector.values())) for vector in (self.values, best))
        return ratio_of(self.instance, mine, other), "optimum" if optimal else "bound"

    # -- amounts of the world --------------------------------------------------------------------------------------

    @property
    def unit(self) -> str:
        """What amounts are counted in."""
        gpus = any(group.gpu for gang in self.snapshot.outward.gangs for group in gang.pods)
        barred = any(one.barred and one.gpus for one in self.snapshot.asides)
        return "GPU" if gpus or barred else "gang"

    def _amount(self, instance: GangPlacementInstance, decision: Solution) -> Fraction:
        if self.unit == "GPU":
            return gpus_of(instance, decision)
        return Fraction(sum(bool(pods) for pods in decision["placement"].values()))

    @property
    def waiting(self) -> Fraction:
        """GPUs, or gangs, that wait and are judged."""
        barred = [item for item in self.snapshot.asides if item.barred]
        if self.unit == "gang":
            return Fraction(len(self.snapshot.outward.gangs) + len(barred))
        gangs = sum(
            (
                Fraction(str(gang.weight))
                for gang in self.snapshot.outward.gangs
                if any(group.gpu for group in gang.pods)
            ),
            Fraction(0),
        )
        if self.snapshot.form == "own":
            gangs = sum(
                (
                    Fraction(group.thousandths * group.count, WHOLE)
                    for gang in self.instance.gangs
                    for group in gang.pods
                ),
                Fraction(0),
            )
        return gangs + sum((item.gpus or Fraction(0) for item in barred), Fraction(0))

    @property
    def reached(self) -> Fraction:
        """GPUs, or gangs, that the best decision places."""
        return self._amount(self.instance, self.best.solution or NOTHING)

    @property
    def placed(self) -> Fraction:
        """GPUs, or gangs, that the scheduler placed."""
        return self._amount(self.snapshot.outward, self.snapshot.outward_decision)

    @property
    def most(self) -> Fraction | None:
        """The limit in the same unit, never below what is reached."""
        if not self.snapshot.apart and self.best.status is Status.OPTIMAL:
            return self.reached
        return None if self.limit is None else max(self.limit, self.reached)

    @property
    def reading(self) -> str:
        """ "kept" where one instance says all that was read; else "apart": reached and limit are of two."""
        return "apart" if self.snapshot.apart else "kept"

    # -- forms -----------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Json]:
        """The object that ``judge --json`` prints."""
        value, to = self.ratio
        return {
            "problem": self.instance.problem,
            "verdict": self.verdict,
            "unit": self.unit,
            "waiting": float(self.waiting),
            "placed": float(self.placed),
            "reached": float(self.reached),
            "limit": None if self.most is None else float(self.most),
            "proof": self.proof_of_limit,
            "reading": self.reading,
            "nodes": len(self.instance.nodes),
            "gangs": len(self.snapshot.outward.gangs),
            "running": len(self.snapshot.outward.running),
            "decision": {
                "feasible": self.world.feasible,
                "violations": [violation.message for violation in self.world.violations],
                "placed": self.world.details["placed"],
                "components": {name: float(value) for name, value in self.values.items()},
                "score": None if self.report.objective is None else plain_number(self.report.value),
            },
            "best": {
                "status": self.best.status.value,
                "proof": self.proof,
                "components": {name: float(value) for name, value in self.best_values.items()},
                "bound": self.bound_values and {name: float(value) for name, value in self.bound_values.items()},
                "placed": sorted((self.best.solution or NOTHING)["placement"]),
                "solution": self.best.solution,
            },
            "ratio": finite(value),
            "ratio_to": to,
            "lost": [lost.to_dict() for lost in self.lost],
            "not_judged": [{"gang": one.gang, "reason": one.reason} for one in self.snapshot.asides if not one.barred],
            "not_read": dict(self.unread),
            "seconds": round(self.seconds, 3),
        }

    def to_text(self) -> str:
        """The verdict, the two decisions beside each other, and each gang that was lost."""
        rows = self.table()
        wide = max([24, *(len(row[0]) for row in rows)])
        table = [f"{row[0]:<{wide}} " + " ".join(f"{cell:>12}" for cell in row[1:]) for row in rows]
        return "\n".join([self.verdict, self.counts, "", *([*table, ""] if self.instance.gangs else []), *self.notes()])

    @property
    def counts(self) -> str:
        """How much there is."""
        gangs = len(self.snapshot.outward.gangs) + len(self.snapshot.asides)
        there = ", ".join((many(len(self.instance.nodes), "node"), many(gangs, "gang")))
        leaving = len(self.snapshot.facts.leaving)
        told = f", {leaving} of them being deleted" if leaving else ""
        return f"{there}, {many(len(self.snapshot.outward.running), 'pod')} running{told}"

    def table(self) -> list[tuple[str, ...]]:
        """A head, a row for each component, and how many gangs are placed.

        Where readings differ all is of the one that relaxes nothing: the limit of the other is in the verdict.
        """
        state = "optimal" if self.best.status is Status.OPTIMAL else "best found"
        heads = ("reached", "its bound") if self.snapshot.apart else (state, "bound")
        result: list[tuple[str, ...]] = [("", "scheduler", *heads)]
        for name, value in self.values.items():
            bound = "unknown" if self.bound_values is None else number(float(self.bound_values[name]))
            shown = ROWS.get(name, name)
            result.append((shown, *(number(float(cell)) for cell in (value, self.best_values[name])), bound))
        best = len((self.best.solution or NOTHING)["placement"])
        return [*result, ("gangs placed", str(len(self.report.details["placed"])), str(best))]

    def notes(self) -> list[str]:
        """What is proven, what is broken, what was lost and what was not read, by line."""
        lines = [f"{self.distance}proof: {self.proof_of_limit}{self._read_as()}; {self.seconds:.1f} s"]
        lines += [f"  {violation.constraint}: {violation.message}" for violation in self.world.violations]
        lost = [item for item in self.lost if item.fate != ASIDE]
        if lost:
            lines += ["", "not placed by the scheduler:", *(f"  {item.line()}" for item in lost[:MOST_LOST])]
        if len(lost) > MOST_LOST:
            fit = sum(item.fits for item in lost[MOST_LOST:])
            lines += [f"  and {len(lost) - MOST_LOST} more, of which the best decision places {fit}"]
        asides = [item for item in self.lost if item.fate == ASIDE]
        if asides:
            lines += ["", "not judged:", *(f"  {item.line()}" for item in asides[:MOST_LOST])]
        if len(asides) > MOST_LOST:
            lines += [f"  and {len(asides) - MOST_LOST} more"]
        if self.unread:
            lines += ["", "not read or left out:", *(f"  {what}: {count}" for what, count in self.unread.items())]
        return lines

    def _read_as(self) -> str:
        return ", of the limit in the reading in which nothing is restricted" if self.snapshot.apart else ""

    @property
    def distance(self) -> str:
        """The first component that differs, with its ratio."""
        if self.deciding is None or not self.report.feasible:
            return ""
        name, mine, best, more = self.deciding
        value, to = self.ratio
        head = f"{name}: {number(float(mine))} where {number(float(best))} is possible; "
        if value is None:
            late = to == "bound" and self.bound_values is None and not self.snapshot.apart
            return f"{head}{'the time was over before a bound was known; ' if late else ''}"
        if value == float("inf"):
            return f"{head}{'the scheduler reached none of it' if more else 'none of it is needed'}; "
        return f"{head}ratio to the {to}: {significant(value)}; "

    @property
    def verdict(self) -> str:
        """One line."""
        if not self.world.feasible:
            rules = many(len(self.world.violations), "rule")
            return f"the decision breaks {rules} of the problem; it has no ratio"
        rest = self._rest()
        head = self._could()
        if not self.snapshot.outward.gangs and not any(one.barred for one in self.snapshot.asides):
            return f"{NOTHING_WAITS}{': ' if rest else ''}{rest}"
        return f"{head}{'; ' if head.startswith('the decision') else ': '}{rest}" if rest else head

    def _could(self) -> str:
        """How much of what waits could run now, and what the scheduler placed of it."""
        low, limit, total = self.reached, self.most, number(float(self.waiting))
        what = f"of {total} waiting {self.unit}{'' if self.waiting == 1 else 's'}"
        optimal = low == limit and self.best.status is Status.OPTIMAL
        word = " by one solver alone" if self.proof_of_limit == "claimed" else ""
        if optimal and self.deciding is None and self.placed == low and self.report.feasible:
            if low == self.waiting:
                every = what.removeprefix("of ")
                return f"the decision is optimal{word}: the scheduler placed {'' if low == 1 else 'all '}{every}"
            return f"the decision is optimal{word}: {number(float(low)) if low else 'none'} {what} can run now"
        placed = f"{self._leaving}, the scheduler placed {number(float(self.placed))}"
        if low == limit:
            return f"{number(float(low))} {what} could run now{placed}"
        if limit is None:
            return f"at least {number(float(low))} {what} could run now{placed}"
        return f"{number(float(low))} to {number(float(limit))} {what} could run now{placed}"

    @property
    def _leaving(self) -> str:
        """How many running pods the best decision ends and moves."""
        best = self.best.solution or NOTHING
        ended, moved = len(best.get("preempted", ())), len(best.get("moved", {}))
        parts = [f"ending {many(ended, 'running pod')}"] if ended else []
        if moved:
            parts.append(f"moving {moved if ended else many(moved, 'running pod')}")
        return f" after {' and '.join(parts)}" if parts else ""

    def _rest(self) -> str:
        """What became of the gangs that the scheduler did not place, by kind."""
        counted = Counter(one.fate for one in self.lost)
        reasons: dict[str, list[str]] = {MAY: [], ASIDE: []}
        for one in self.lost:
            if one.fate in reasons:
                reasons[one.fate] += [text for text in one.reasons if text not in reasons[one.fate]]
        clauses = []
        for fate, words in (
            (FITS, "1 more gang fits|{} more gangs fit"),
            (COULD, "{} could be placed in another's place|{} could be placed in others' place"),
            (MAY, "{}|{}"),
            (BARRED, "{} cannot be placed by anyone now|{} cannot be placed by anyone now"),
            (UNDECIDED, "{} is undecided in the time|{} are undecided in the time"),
            (ASIDE, "{} is not judged|{} are not judged"),
        ):
            count = counted[fate]
            if not count:
                continue
            single, several = words.split("|")
            text = (single if count == 1 else several).format(count if fate == FITS else many(count, "gang"))
            if fate == FITS and self.unit == "GPU" and not any(lost.gpus for lost in self.lost if lost.fate == FITS):
                text += ", not counted in GPUs"
            helped = [lost.waits for lost in self.lost if lost.fate == fate == BARRED and lost.moves]
            ways = ["its scheduler ends running pods"] if any(lost.may_be_ended for lost in self.lost) else []
            ways = ways if fate == BARRED else []
            for waits, way in (
                (False, "running pods are moved or ended"),
                (True, "pods that are being deleted have gone"),
            ):
                if some := helped.count(waits):
                    ways.append(way if some == count else f"{way} ({some} of these)")
            text += f" unless {' or '.join(ways)}" if ways else ""
            why = "; ".join(reasons.get(fate, [])[:3])
            why = why.replace("fits but", "fit but") if count > 1 else why
            clauses.append(f"{text} {why}" if fate == MAY else f"{text}: {why}" if fate == ASIDE else text)
        if self.snapshot.facts.unlisted and any(lost.fate in (FITS, COULD, MAY) for lost in self.lost):
            clauses.append(self.snapshot.facts.unlisted)
        assumed = sum(lost.gang in self.snapshot.facts.assumed for lost in self.lost if lost.fate in (FITS, COULD))
        if assumed:
            clauses.append(f"whether the queue of {many(assumed, 'gang')} has a limit is not told")
        return "; ".join(clauses)


def gpus_of(instance: GangPlacementInstance, decision: Solution) -> Fraction:
    """Devices that a decision gives to pods."""
    groups = {gang.id: gang.pods for gang in instance.gangs}
    return Fraction(
        sum(groups[name][pod["group"]].thousandths for name, pods in decision["placement"].items() for pod in pods),
        WHOLE,
    )

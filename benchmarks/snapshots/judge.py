"""One decision of a live cluster: how far it was from the best, which gangs it lost, why, and what would admit them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from schedgap.benchmarks.judging.judge import finite
from schedgap.benchmarks.records import plain_number
from schedgap.benchmarks.snapshots.draft import WHOLLY
from schedgap.benchmarks.snapshots.reading import Snapshot, read_snapshot
from schedgap.benchmarks.text import number, significant
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.files import check_folder
from schedgap.formulations.common.instance import Json, Solution
from schedgap.formulations.gang_placement.instance import WHOLE as WHOLE
from schedgap.formulations.gang_placement.instance import Gang, GangPlacementInstance, Group, Selector
from schedgap.formulations.gang_placement.scale import components, decode, score
from schedgap.heuristics.gang_placement.cluster import prefix
from schedgap.heuristics.gang_placement.rules import best_fit, fgd
from schedgap.heuristics.gang_placement.stream import streams
from schedgap.solvers.budget import Budget, OutOfBudgetError
from schedgap.solvers.certificates.make import Effort, prove
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.exact.gang_placement.bound import ratio_of
from schedgap.solvers.exact.gang_placement.staged import EngineName, solve_staged
from schedgap.solvers.result import Deadline, Proof, Result, SolveOptions, Status

NOTHING: Solution = {"placement": {}}
"""The decision that places no gang."""
LEVEL = "its required level"
CLOSED = "nodes that do not take it (selector, partition, taint, closed, or outside the domain where it runs)"
PODS = "would fit, but the nodes' own limit of pods is reached"
TOGETHER = "together: its GPUs alone would fit, not with all else"
REQUEST = "its request for"

MOST_LOST = 100
"""Lost gangs that the text tells one by one; the JSON object has all."""


@dataclass(frozen=True)
class Lost:
    """A gang that the scheduler did not place."""

    gang: str
    pods: int
    gpus: Fraction
    fits: bool  # the best decision places it
    alone: bool | None  # it could be placed if nothing else waited; None where that was not decided in time
    # what keeps it out where it cannot: the one thing without which it could be placed, or what is short
    reasons: tuple[str, ...] = ()
    # the cheapest moves and preemptions that admit it, as a solution has them; None where none is known
    # Of a gang that could be placed alone, beside all that the best decision places
    moves: Json = None
    price: Fraction | None = None  # of these, proven to be least where `moves_proven`
    moves_proven: bool = False
    best_moves: bool = False  # the best decision moves or ends something itself, which counts among the moves
    # that nothing admits it: the gang alone, and a certificate that the best decision about it places nothing
    proof: tuple[GangPlacementInstance, Mapping[str, Json]] | None = None
    file: str = ""  # of it in the folder, if any; the instance beside it ends in ``.json``

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible."""
        return {
            "gang": self.gang,
            "pods": self.pods,
            "gpus": float(self.gpus),
            "placed_in_best": self.fits,
            "placeable_alone": self.alone,
            "reasons": list(self.reasons),
            "moves": self.moves,
            "price": None if self.price is None else float(self.price),
            "least_price_proven": self.moves_proven,
            "certified": self.proof is not None,
            "certificate": self.file or None,
        }

    def line(self) -> str:
        """What a person reads."""
        head = f"{self.gang} ({_many(self.pods, 'pod')}, {_many(float(self.gpus), 'GPU')})"
        if self.fits:
            return f"{head}: fits, the best decision places it"
        told = "; ".join(self.reasons) or "undecided in the time"
        return f"{head}: {told}{self._admission()}"

    def _admission(self) -> str:
        """What would admit it, as far as that is known."""
        where = " beside what the best decision places" if self.alone else ""
        if self.moves is not None:
            return self._moved(where)
        if not self.moves_proven:
            return ""
        certified = f"certified by {self.file}" if self.file else "certified"
        shown = "as one engine proves" if self.proof is None else certified
        return f"; no moves and preemptions admit it{where}, {shown}"

    def _moved(self, where: str) -> str:
        """The moves and preemptions that do, with their price."""
        done = [f"{name} to {seat['node']}" for name, seat in self.moves["moved"].items()]
        if not done and not self.moves["preempted"]:
            return f"; it fits{where} without moves"
        told = f"; admitted{where}" + (", its own moves included," if self.best_moves else "")
        told += f" by moving {', '.join(done)}" if done else ""
        told += f" by ending {', '.join(self.moves['preempted'])}" if self.moves["preempted"] else ""
        proven = "the least, as one engine proves" if self.moves_proven else "not proven to be the least"
        return f"{told}, price {number(float(self.price or 0))} ({proven})"


@dataclass(frozen=True)
class Judgement:
    """What the judge says of one decision."""

    instance: GangPlacementInstance  # what was decided about
    decision: Solution  # of the scheduler; `report` is the checker's on it
    report: CheckReport
    best: Result  # the best decision that was found, with its bound and proof
    best_values: Mapping[str, Fraction]
    bound_values: Mapping[str, Fraction] | None  # None where none was ready in the time
    lost: tuple[Lost, ...]  # gangs that the scheduler did not place
    unread: Mapping[str, int]  # what the snapshot says beyond what was understood, counted
    seconds: float

    @property
    def values(self) -> dict[str, Fraction]:
        """The vector of the scheduler's decision."""
        return {name: Fraction(text) for name, text in self.report.details["components"].items()}

    @property
    def proof(self) -> str:
        """How far the best is proven."""
        if self.best.status is not Status.OPTIMAL:
            return "none"
        return (self.best.proof or Proof.CLAIMED).value

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
        """Of the first component that differs, at least 1, and what it is to: "optimum" or "bound".

        None where the decision breaks a rule, or no bound was ready.
        """
        optimal = self.best.status is Status.OPTIMAL
        best = self.best_values if optimal else self.bound_values
        if best is None or not self.report.feasible:
            return None, "optimum" if optimal else "bound"
        mine, other = (score(self.instance, list(vector.values())) for vector in (self.values, best))
        return ratio_of(self.instance, mine, other), "optimum" if optimal else "bound"

    def to_dict(self) -> dict[str, Json]:
        """The object that ``judge --json`` prints."""
        value, to = self.ratio
        return {
            "problem": self.instance.problem,
            "nodes": len(self.instance.nodes),
            "gangs": len(self.instance.gangs),
            "running": len(self.instance.running),
            "decision": {
                "feasible": self.report.feasible,
                "violations": [violation.message for violation in self.report.violations],
                "placed": self.report.details["placed"],
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
            "not_read": dict(self.unread),
            "seconds": round(self.seconds, 3),
        }

    def to_text(self) -> str:
        """The verdict, the two decisions beside each other, and each gang that was lost."""
        table = [f"{row[0]:<24} " + " ".join(f"{cell:>12}" for cell in row[1:]) for row in self.table()]
        return "\n".join([self.counts, self.verdict, "", *table, "", *self.notes()])

    @property
    def counts(self) -> str:
        """How much there is."""
        there = ", ".join((_many(len(self.instance.nodes), "node"), _many(len(self.instance.gangs), "gang")))
        return f"{there}, {_many(len(self.instance.running), 'pod')} running"

    def table(self) -> list[tuple[str, ...]]:
        """A head, a row for each component, and how many gangs are placed."""
        state = "optimal" if self.best.status is Status.OPTIMAL else "best found"
        found: list[tuple[str, ...]] = [("", "scheduler", state, "bound")]
        for name, value in self.values.items():
            bound = "unknown" if self.bound_values is None else number(float(self.bound_values[name]))
            found.append((name, *(number(float(cell)) for cell in (value, self.best_values[name])), bound))
        best = len((self.best.solution or NOTHING)["placement"])
        return [*found, ("gangs placed", str(len(self.report.details["placed"])), str(best))]

    def notes(self) -> list[str]:
        """What is proven, what is broken, what was lost and what was not read, by line."""
        lines = [f"proof: {self.proof}; {self.seconds:.1f} s"]
        lines += [f"  {violation.constraint}: {violation.message}" for violation in self.report.violations]
        if self.lost:
            lines += ["", "not placed by the scheduler:", *(f"  {lost.line()}" for lost in self.lost[:MOST_LOST])]
        if len(self.lost) > MOST_LOST:
            fit = sum(lost.fits for lost in self.lost[MOST_LOST:])
            lines += [f"  and {len(self.lost) - MOST_LOST} more, of which the best decision places {fit}"]
        if self.unread:
            lines += ["", "not read or left out:", *(f"  {what}: {count}" for what, count in self.unread.items())]
        return lines

    @property
    def verdict(self) -> str:
        """One line."""
        if not self.report.feasible:
            return f"the decision breaks {_many(len(self.report.violations), 'rule')} of the problem; it has no ratio"
        if self.deciding is None:
            optimal = self.best.status is Status.OPTIMAL
            return f"the decision is {'optimal' if optimal else 'as good as the best that was found'}"
        name, mine, best, _ = self.deciding
        value, to = self.ratio
        shown = "infinite" if value is None or value == float("inf") else significant(value)
        distance = f"ratio to the {to}: {shown}"
        if to == "bound" and self.bound_values is None:
            distance = "the time was over before a bound was known"
        return f"{name}: {number(float(mine))} where {number(float(best))} is possible; {distance}"


def judge(
    snapshot: str | Path,
    nodes: str | Path | None = None,
    *,
    form: str | None = None,
    objectives: Sequence[str] | None = None,
    gang_label: str | None = None,
    names: bool = False,
    time_limit: float = 40.0,
    seed: int = 0,
    out: str | Path | None = None,
) -> Judgement:
    """How far was one decision of a live cluster from the best, which gangs did it lose, and why?

    Parameters
    ----------
    snapshot : ``kubectl get nodes,pods -A -o json``, an instance of gang-placement with ``reference_decision``, or what
        Slurm (``squeue --json``), Ray (``ray list placement-groups --format json --detail``) or openb list
    nodes : the listing of nodes, where that is a file of its own: always of slurm, ray and openb
    form : own, kubernetes, slurm, ray or openb; told by the file where not given
    objectives : weight, topology, fragmentation, moves, in lexicographic order; the instance's own where not given
    gang_label : a label or annotation of pods that names their gang, beside those that are known
    names : keep the names of nodes, pods and gangs; otherwise they are numbers, so that the result can be shared
    time_limit : seconds for all after reading: half at most for the best decision, half of what is
        left for each other engine that confirms it, the rest for why gangs are lost
    seed : of all randomness
    out : folder for ``judge.html``, ``judge.json``, ``instance.json``, ``decision.json``, ``best.json``, certificates

    Returns
    -------
    Judgement
        ``verdict`` is one line, ``to_text()`` the whole, ``to_dict()`` a JSON form; docs/judging.md checks it again.

    Raises
    ------
    InputError
        A snapshot that cannot be read, a decision that names what it does not have.
    """
    folder = None if out is None else Path(out)
    if folder is not None:
        check_folder(folder)
    read = read_snapshot(snapshot, form, nodes=nodes, gang_label=gang_label, names=names)
    found = _Judge(read, objectives, time_limit, seed).run()
    if folder is None:
        return replace(found, lost=tuple(replace(lost, file="") for lost in found.lost))
    from schedgap.benchmarks.snapshots.page import remove_former, write_judgement

    folder.mkdir(parents=True, exist_ok=True)
    remove_former(folder / "judge.json")
    write_judgement(found, folder)
    return found


class _Judge:
    """One judgement."""

    def __init__(self, snapshot: Snapshot, objectives: Sequence[str] | None, time_limit: float, seed: int) -> None:
        self.snapshot = snapshot
        self.problem: Problem = find_problem("gang-placement")
        changed = {} if objectives is None else {"objectives": list(objectives)}
        self.instance = GangPlacementInstance.parse({**snapshot.instance.to_dict(), **changed}, "snapshot")
        self.time_limit = time_limit
        self.open = 0  # questions that wait for a part of the time, of which each has an equal one
        self.seed = seed

    def run(self) -> Judgement:
        """Check the decision, find the best, ask why of each gang that was lost."""
        began = time.monotonic()
        self.deadline = Deadline.after(self.time_limit)
        report = self.problem.check(self.instance, self.snapshot.decision)
        best = self._best(report)
        assert best.solution is not None  # to place nothing is always feasible
        values = self.problem.check(self.instance, best.solution).details["components"]
        bound = None
        if best.bound is not None:
            top = decode(self.instance, int(best.bound))
            bound = {entry.name: value for entry, value in zip(components(self.instance), top, strict=True)}
        found = {name: Fraction(text) for name, text in values.items()}
        lost = tuple(self._lost(best))
        seconds = time.monotonic() - began
        return Judgement(
            self.instance, self.snapshot.decision, report, best, found, bound, lost, self.snapshot.unread, seconds
        )

    def _options(self, part: float = 1.0) -> SolveOptions:
        """With so much of the time that is left."""
        deadline = self.deadline.capped(part * (self.deadline.remaining() or 0.0))
        return SolveOptions(deadline=deadline, seed=self.seed)

    def _share(self) -> SolveOptions:
        """With the part of the time that one of the open questions has; there is one fewer then."""
        part = 1.0 / max(1, self.open)
        self.open -= 1
        return self._options(part)

    def _best(self, report: CheckReport) -> Result:
        """The best decision; an optimum that two engines agree on is told so.

        The search starts from the scheduler's decision, or from what the compiled rules make of many
        single pods at once: a bound alone may take all the time there.
        """
        starts = [self.snapshot.decision if report.feasible else NOTHING]
        if streams(self.instance):
            starts += [rule(self.instance).solution or NOTHING for rule in (best_fit, fgd)]
        values = [self.problem.check(self.instance, start).value for start in starts]
        value, start = max(zip(values, starts, strict=True), key=lambda pair: pair[0])
        best = run_method(self.problem, self.instance, "staged", replace(self._options(0.5), start=start))
        if best.objective is None:  # it was ended before it had looked at its start
            best = replace(best, solution=start, objective=value, status=Status.FEASIBLE)
        return best if best.status is not Status.OPTIMAL or not self._confirmed(best) else best.proven(Proof.AGREED)

    def _confirmed(self, best: Result) -> bool:
        """Whether the others of two makes prove it, without bound and heuristics."""

        def agrees(engine: EngineName) -> bool:
            options = replace(self._options(0.5), stages=frozenset({"programs"}))
            found = solve_staged(self.instance, options, engine=engine)
            return found.status is Status.OPTIMAL and found.objective == best.objective

        makes: tuple[EngineName, ...] = ("cpsat", "highs")
        return all(agrees(engine) for engine in makes if engine != best.engine)

    def _lost(self, found: Result) -> list[Lost]:
        """Reasons of all first, then what admits them, then certificates."""
        best = found.solution or NOTHING
        placed = {name for name, pods in self.snapshot.decision["placement"].items() if pods}
        gangs = [gang for gang in self.instance.gangs if gang.id not in placed]
        seats = best["placement"]
        kept = [_first(gang, len(seats[gang.id])) for gang in self.instance.gangs if gang.id in seats]
        ahead = 2 * sum(gang.id not in seats for gang in gangs)  # why, and what would admit it
        lost = []
        for gang in gangs:
            self.open = ahead
            ahead -= gang.id not in seats
            gpus = Fraction(sum(group.gpu * group.count for group in gang.pods), WHOLE)
            facts: dict[str, Any] = {"alone": True} if gang.id in seats else self._why(gang, found)
            lost.append(Lost(gang.id, gang.size, gpus, gang.id in seats, **facts))
        own = bool(best.get("moved") or best.get("preempted"))
        self.open = sum(not one.fits and one.alone is not None for one in lost) + sum(
            one.alone is False for one in lost
        )
        admitted = [self._with_moves(one, gang, kept, own) for one, gang in zip(lost, gangs, strict=True)]
        self.open = sum(_unproven(one) for one in admitted)
        return [self._with_proof(one) for one in admitted]

    def _with_moves(self, lost: Lost, gang: Gang, kept: list[Gang], own: bool) -> Lost:
        if lost.fits or lost.alone is None:
            return lost
        mine = [_first(gang, gang.fewest)]
        if not any(pod.movable for pod in self.instance.running):
            return replace(lost, moves_proven=not lost.alone)
        return replace(lost, best_moves=own and lost.alone, **self._admit(kept + mine if lost.alone else mine))

    def _with_proof(self, lost: Lost) -> Lost:
        proof = self._certified(lost)
        if proof is None:
            return lost
        number = [gang.id for gang in self.instance.gangs].index(lost.gang)
        return replace(lost, proof=proof, file=f"lost-{number}.cert")

    def _certified(self, lost: Lost) -> tuple[GangPlacementInstance, Mapping[str, Json]] | None:
        """That no moves and preemptions admit the gang, where that is so."""
        if not _unproven(lost) or self.deadline.passed:
            return None
        deadline = self._share().deadline
        (gang,) = (one for one in self.instance.gangs if one.id == lost.gang)
        made = self._with([gang], ["weight", "moves"])
        value = self.problem.check(made, NOTHING).objective
        budget = Budget(deadline)
        try:
            with budget:
                return made, prove(made, value, NOTHING, Effort(deadline))
        except (Unproven, OutOfBudgetError):
            budget.end()
            return None

    def _why(self, gang: Gang, best: Result) -> dict[str, Any]:
        """What keeps a gang out of the best decision."""
        gang = _first(gang, gang.fewest)
        alone = self._placeable(gang)
        reasons = [self._rival(best)] if alone else []
        if alone is False:
            reasons = self._relaxed(gang)
            rests = self.snapshot.rests.get(gang.id)
            by_request = any(text == TOGETHER or text.startswith(f"would fit without {REQUEST}") for text in reasons)
            reasons += [rests] if rests == WHOLLY or (rests and by_request) else []
        return {"alone": alone, "reasons": tuple(reasons)}

    def _rival(self, best: Result) -> str:
        """Why the best decision does not place a gang that could be placed alone."""
        first = self.instance.objectives[0]
        if first != "weight":
            return f"could be placed alone, but {first} counts before weight"
        if best.status is Status.OPTIMAL:
            return "others are worth more"
        return "could be placed alone; the best decision that was found, not proven, does without it"

    def _relaxed(self, gang: Gang) -> list[str]:
        """What it would fit without, one thing at a time; last, what of these is undecided."""
        asked = {what: gang.model_copy(update=changes) for what, changes in self._changes(gang).items()}
        asked = {what: changed for what, changed in asked.items() if changed != gang}
        reasons, undecided = [], []
        self.open += len(asked) + 1  # and what is short
        for what, changed in asked.items():
            fits = self._placeable(changed)
            if fits:
                reasons.append(self._wider(gang, what))
            elif fits is None:
                undecided.append(f"on {CLOSED}" if what == CLOSED else f"without {what}")
        reasons = reasons or [self._short(gang)]
        return [*reasons, *([f"undecided in the time: {', '.join(undecided)}"] if undecided else [])]

    def _changes(self, gang: Gang) -> dict[str, dict[str, Any]]:
        """What could be dropped; of a gang that runs in part, a level and the domain in which it does together."""
        plain = {"pods": tuple(group.model_copy(update={"selector": Selector()}) for group in gang.pods)}
        tied = gang.required is not None and gang.id in self.snapshot.seated
        changes: dict[str, dict[str, Any]] = {LEVEL: {"required": None}, CLOSED: plain}
        if tied:
            changes = {f"{LEVEL} and on {CLOSED}": {"required": None, **plain}}
        changes |= {"its quota": {"queue": None}, "its limit of pods a node": {"per_node": None}}
        for name in {name: None for group in gang.pods for name in group.request}:
            changes[f"{REQUEST} {name}"] = {"pods": tuple(_without(group, name) for group in gang.pods)}
        return changes

    def _wider(self, gang: Gang, what: str) -> str:
        """Where a gang would fit without a condition; of a level in which wider one, the narrowest."""
        depth = self.instance.depth(gang.required) if what == LEVEL else 1
        for level in self.instance.levels[: depth - 1][::-1]:
            fits = self._placeable(gang.model_copy(update={"required": level}))
            if fits:
                return f"would fit in one {level}, but not in one {gang.required}"
            if fits is None:
                return f"would fit without {LEVEL}, in one {level} undecided in the time"
        if what == CLOSED:
            return f"would fit on {what}"
        return PODS if what == f"{REQUEST} pods" else f"would fit without {what}"

    def _with(self, gangs: Sequence[Gang], objectives: Sequence[str]) -> GangPlacementInstance:
        data = self.instance.to_dict()
        kept = {
            "objectives": list(objectives),
            "gangs": [gang.model_dump(mode="json", exclude_none=True) for gang in gangs],
        }
        return GangPlacementInstance.parse({**data, **kept}, "snapshot")

    def _placeable(self, gang: Gang) -> bool | None:
        """Whether the gang could be placed if nothing else waited; None where the time is over."""
        options = self._share()
        if self.deadline.passed:
            return None
        result = run_method(self.problem, self._with([gang], ["weight"]), "staged", options)
        if result.solution is not None and result.solution["placement"]:
            return True
        return False if result.status is Status.OPTIMAL else None

    def _short(self, gang: Gang) -> str:
        """Whether GPUs are too few, in pieces, or would fit alone, as far as shown."""
        wanted = sum(group.gpu * group.count for group in gang.pods)
        selectors = [group.selector for group in gang.pods]
        nodes = [node for node in self.instance.nodes if any(selector.takes(node) for selector in selectors)]
        free = sum(sum(node.gpus) for node in nodes)
        where = " where it may go" if len(nodes) < len(self.instance.nodes) else ""
        sums = f"{free / WHOLE:g} GPUs are free{where}, {wanted / WHOLE:g} are wanted"
        if free < wanted:
            return f"capacity: {sums}"
        pods = tuple(group.model_copy(update={"request": {}}) for group in gang.pods)
        fits = self._placeable(
            gang.model_copy(update={"pods": pods, "required": None, "queue": None, "per_node": None})
        )
        if fits is None:
            return f"{sums}; what keeps it out is undecided in the time"
        return f"fragmentation: {sums}, in no such pieces" if not fits else TOGETHER

    def _admit(self, gangs: Sequence[Gang]) -> dict[str, Any]:
        """The cheapest moves and preemptions with which all of the gangs are placed."""
        options = self._share()
        if self.deadline.passed:
            return {}
        made = self._with(gangs, ["weight", "moves"])
        result = run_method(self.problem, made, "staged", options)
        proven = result.status is Status.OPTIMAL
        if result.solution is None or len(result.solution["placement"]) < len(gangs):
            return {"moves_proven": proven}
        price = Fraction(self.problem.check(made, result.solution).details["components"].get("moves", 0))
        moves = {name: result.solution.get(name, default) for name, default in (("preempted", []), ("moved", {}))}
        return {"moves": moves, "price": price, "moves_proven": proven}


def _unproven(lost: Lost) -> bool:
    """Whether one engine proves that nothing admits the gang, and no certificate does yet."""
    return lost.alone is False and lost.moves is None and lost.moves_proven


def _without(group: Group, name: str) -> Group:
    """The pods without what they ask of a resource."""
    request = {key: amount for key, amount in group.request.items() if key != name}
    return group.model_copy(update={"request": request})


def _first(gang: Gang, number: int) -> Gang:
    """The gang with its first pods alone."""
    pods = tuple(gang.pods[k].model_copy(update={"count": count}) for k, count in prefix(gang, number))
    return gang.model_copy(update={"pods": pods, "least": None})


def _many(count: float, what: str) -> str:
    return f"{number(count)} {what}{'' if count == 1 else 's'}"

"""One decision of a live cluster: how far it was from the best, which gangs it lost, why, and what would admit them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.files import check_folder
from schedgap.formulations.gang_placement.instance import WHOLE, Gang, GangPlacementInstance
from schedgap.formulations.gang_placement.scale import components, decode
from schedgap.heuristics.gang_placement.rules import best_fit, fgd
from schedgap.heuristics.gang_placement.stream import streams
from schedgap.solvers.exact.gang_placement.staged import EngineName, solve_staged
from schedgap.solvers.result import Deadline, Proof, Result, SolveOptions, Status
from schedgap.tools.judge.asking import NOTHING, Asking, first_pods, with_gangs
from schedgap.tools.judge.cures import Cure, Cures
from schedgap.tools.judge.judgement import Judgement, gpus_of
from schedgap.tools.judge.leaving import loosely_movable, sure_to_leave
from schedgap.tools.judge.lost import ASIDE, BARRED, COULD, FITS, MAY, UNDECIDED, Lost
from schedgap.tools.judge.reading import Snapshot, read_snapshot
from schedgap.tools.judge.reasons import KEPT_ROOM, Reasons

NOMINATED = "fits but may be about to start on the nominated node"
KEPT = f"fits but for {KEPT_ROOM}"
"""What is said of gangs whose answer depends on pods with a nominated node: of their own gang, and of another one."""


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
    time_limit : seconds for all, reading included: of what is left after reading half at most for the best decision,
        half of what is left for each other engine that confirms it, the rest for why gangs are lost
    seed : seed of all randomness
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
    began = time.monotonic()
    deadline = Deadline.after(time_limit)
    folder = None if out is None else Path(out)
    if folder is not None:
        check_folder(folder)
    read = read_snapshot(snapshot, form, nodes=nodes, gang_label=gang_label, names=names, deadline=deadline)
    result = replace(_Judge(read, objectives, deadline, seed).run(), seconds=time.monotonic() - began)
    if folder is None:
        return replace(result, lost=tuple(replace(lost, file="") for lost in result.lost))
    from schedgap.tools.judge.page import remove_former, write_judgement

    folder.mkdir(parents=True, exist_ok=True)
    remove_former(folder / "judge.json")
    write_judgement(result, folder)
    return result


class _Judge:
    """One judgement."""

    def __init__(self, snapshot: Snapshot, objectives: Sequence[str] | None, deadline: Deadline, seed: int) -> None:
        self.problem: Problem = find_problem("gang-placement")
        asked = snapshot.instance
        if objectives is not None:
            changed = {**asked.to_dict(), "objectives": list(objectives)}
            asked = GangPlacementInstance.parse(changed, "snapshot")
        self.read = snapshot
        self.instance = sure_to_leave(asked, snapshot)
        self.snapshot = snapshot if self.instance is asked else replace(snapshot, instance=self.instance)
        self.asking = Asking(self.problem, deadline, seed)

    def run(self) -> Judgement:
        """Check the decision, find the best, ask why of each gang that was lost."""
        snapshot = self.snapshot
        report = self.problem.check(self.instance, snapshot.decision)
        world = self.problem.check(snapshot.outward, snapshot.outward_decision) if snapshot.apart else report
        best = self._best(report)
        assert best.solution is not None  # to place nothing is always feasible
        bound = None
        if best.bound is not None:
            top = decode(self.instance, int(best.bound))
            bound = {entry.name: value for entry, value in zip(components(self.instance), top, strict=True)}
        limit, proven = self._limit(best, bound)
        found = self.asking.values(self.instance, best.solution)
        lost = tuple(self._lost(best))
        return Judgement(
            snapshot, self.instance, report, world, best, found, bound, limit, proven, lost, snapshot.unread, 0.0
        )

    def _options(self, part: float) -> SolveOptions:
        """With so much of the time that is left."""
        whole = self.asking.whole
        return SolveOptions(deadline=whole.capped(part * (whole.remaining() or 0.0)), seed=self.asking.seed)

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
        if not self.instance.gangs:
            return Result(Status.OPTIMAL, solution=start, objective=value, bound=value).proven(Proof.AGREED)
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

    def _limit(self, best: Result, bound: Mapping[str, Fraction] | None) -> tuple[Fraction | None, bool]:
        """(GPUs that no decision places more of, or gangs where none asks for GPUs; whether an optimum proves it).

        Where nothing was relaxed and the best is proven, it is what the best places.
        """
        snapshot = self.snapshot
        if not snapshot.apart and best.status is Status.OPTIMAL:
            return gpus_of(self.instance, best.solution or NOTHING), True
        outward = snapshot.outward
        unit = any(group.gpu for gang in outward.gangs for group in gang.pods)
        weights = {gang.id: _gpus(gang) if unit else Fraction(1) for gang in outward.gangs}
        gangs = [
            gang.model_copy(update={"weight": float(weights[gang.id])}) for gang in outward.gangs if weights[gang.id]
        ]
        if not gangs:
            return Fraction(0), True
        total = sum(weights.values(), Fraction(0))
        if self.asking.whole.passed:
            return self._capacity(unit, total), False
        made = with_gangs(outward, gangs, ["weight"], flat=True)
        if self.instance.with_moves:
            made = loosely_movable(made, self.read)
        found = run_method(self.problem, made, "staged", self._options(0.3))
        if found.bound is None:
            return self._capacity(unit, total), False
        top = decode(made, int(found.bound))[0] if components(made) else total
        return min(top, self._capacity(unit, total)), found.status is Status.OPTIMAL

    def _capacity(self, unit: bool, total: Fraction) -> Fraction:
        """All GPUs that wait, or that are free where these are fewer."""
        free = Fraction(sum(sum(node.gpus) for node in self.snapshot.outward.nodes), WHOLE)
        return min(total, free) if unit and not self.instance.with_moves else total

    # -- what was lost -------------------------------------------------------------------------------------------

    def _lost(self, best: Result) -> Iterable[Lost]:
        """Why first, for every gang; then what admits those that do not fit, then certificates."""
        snapshot, asking = self.snapshot, self.asking
        self.reasons = Reasons(asking, snapshot, self.instance, best)
        self.cures = Cures(asking, self.read, self.instance)
        placed = {name for name, pods in snapshot.outward_decision["placement"].items() if pods}
        gangs = [gang for gang in snapshot.outward.gangs if gang.id not in placed]
        inner = {gang.id: gang for gang in self.instance.gangs}
        seats = (best.solution or NOTHING)["placement"]
        kept = [first_pods(gang, len(seats[gang.id])) for gang in self.instance.gangs if gang.id in seats]
        by_name = {gang.id: gang for gang in gangs}
        self.numbers = {gang.id: number for number, gang in enumerate(snapshot.outward.gangs)}
        answers: dict[str, Lost] = {}
        same: dict[str, Lost] = {}
        for turn, gang in enumerate(gangs):
            mine = inner.get(gang.id)
            key = self._alike(gang, mine)
            if key in same and gang.id not in seats:
                answers[gang.id] = replace(same[key], gang=gang.id)
                continue
            asking.turn_to(2 * (len(gangs) - turn))
            answers[gang.id] = found = self._why(gang, mine, gang.id in seats)
            if gang.id not in seats:
                same[key] = found
        asked = [item for item in answers.values() if item.fate in (BARRED, COULD)]
        cured: dict[str, Lost] = {}
        for turn, item in enumerate(asked):
            gang = by_name[item.gang]
            key = self._alike(gang, inner.get(gang.id))
            asking.turn_to(len(asked) - turn)
            if key not in cured:
                cured[key] = self._cured(item, gang, inner.get(gang.id), kept)
            answers[item.gang] = replace(cured[key], gang=item.gang, file=cured[key].file and self._file(item.gang))
        yield from answers.values()
        for aside in snapshot.asides:
            if not aside.placed:
                fate = BARRED if aside.barred else ASIDE
                yield Lost(aside.gang, aside.pods, aside.gpus, fate, 0, (aside.reason,))

    def _alike(self, gang: Gang, mine: Gang | None) -> str:
        """What gangs with the same answers have in common, in both readings."""
        facts = self.snapshot.facts
        own = gang.id if gang.id in facts.seated else ""
        by_gang = facts.relaxed, facts.rests, facts.assumed, facts.words, facts.gentle, facts.lowest, facts.required
        closed = [one.kind for one in facts.closed.get(gang.id, ())]
        rest = (own, closed, *(fact.get(gang.id) for fact in by_gang))
        both = [one.model_dump_json(exclude={"id", "arrival"}) for one in (gang, mine) if one is not None]
        return f"{both} {rest}"

    def _file(self, name: str) -> str:
        return f"lost-{self.numbers[name]}.cert"

    def _why(self, gang: Gang, mine: Gang | None, fits: bool) -> Lost:
        """What became of a gang, and the reason."""
        snapshot, facts = self.snapshot, self.snapshot.facts
        shown = mine or gang
        made = Lost(gang.id, shown.size, _gpus(shown), FITS, shown.fewest)
        assumed = tuple(text for text in (facts.assumed.get(gang.id),) if text)
        rests = (*(text for text in (facts.rests.get(gang.id),) if text), *assumed)
        if fits and mine is not None:
            return replace(made, reasons=(self.reasons.instead(mine),), rests=assumed)
        outer = first_pods(gang, gang.fewest)
        alone, _ = self.asking.placed_alone(snapshot.outward, outer)
        if alone is None:
            return replace(made, fate=UNDECIDED)
        if alone is False:
            return replace(made, fate=BARRED, reasons=tuple(self.reasons.short(gang)))
        if mine is not None and snapshot.apart:
            alone, _ = self.asking.placed_alone(snapshot.instance, first_pods(mine, mine.fewest))
        if mine is not None and alone:
            return replace(made, fate=COULD, reasons=(self.reasons.rival(mine),), rests=rests)
        if mine is not None and alone is None:
            return replace(made, fate=UNDECIDED)
        rules = facts.relaxed.get(gang.id, ())
        if rules:
            return replace(made, fate=MAY, reasons=(f"fits but for {unread_rules(rules)}",), rests=rests)
        if facts.nominated:
            own = gang.id in facts.nominated.values()
            return replace(made, fate=MAY, reasons=(NOMINATED if own else KEPT,), rests=rests)
        return replace(made, fate=MAY, reasons=(f"may fit: {rests[0] if rests else 'amounts are rounded'}",))

    def _cured(self, item: Lost, gang: Gang, mine: Gang | None, kept: Sequence[Gang]) -> Lost:
        """What would admit a gang, alone and beside the best decision."""
        fixed = self.cures.fixed
        if not self.asking.ready:
            return item
        if fixed:
            return self._fixed(item, gang, fixed)
        asked = mine or gang
        if item.fate == COULD:
            return replace(item, beside=self.cures.of(asked, kept))
        cure = self.cures.of(asked)
        ends_nothing = self.cures.ends_nothing(asked) if self.snapshot.facts.preempts else ""
        made = replace(item, cure=cure, unended=ends_nothing)
        if cure.moves is not None and kept:
            made = replace(made, beside=self.cures.of(asked, kept))
        proof = self.cures.certified(cure)
        return made if proof is None else replace(made, proof=proof, file=self._file(item.gang))

    def _fixed(self, item: Lost, gang: Gang, fixed: str) -> Lost:
        """Whether nobody can place a gang beside what runs, with a certificate where the time is enough."""
        if item.fate != BARRED:
            return replace(item, fixed=fixed)
        alone = self.asking.build(self.snapshot.outward, [first_pods(gang, gang.fewest)], ["weight"])
        cure = Cure(least=True, instance=alone)
        proof = self.cures.certified(cure)
        made = replace(item, fixed=fixed, cure=cure)
        return made if proof is None else replace(made, proof=proof, file=self._file(item.gang))


def unread_rules(rules: Sequence[str]) -> str:
    """Rules that are not read, with the verb in their number: that of the first noun where there is one rule."""
    head = re.split(" (?:of|to|that|for) ", rules[0])[0]
    return f"{', '.join(rules)}, which {'are' if len(rules) > 1 or head.endswith('s') else 'is'} not read"


def _gpus(gang: Gang) -> Fraction:
    """Devices that all pods of a gang ask for."""
    return Fraction(sum(group.thousandths * group.count for group in gang.pods), WHOLE)

"""What would admit a gang: the cheapest moves and preemptions that its scheduler may do, or that there are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from schedgap.benchmarks.text import number
from schedgap.formulations.common.instance import Json, Solution
from schedgap.formulations.gang_placement.instance import Gang, GangPlacementInstance, Group, Running, Selector
from schedgap.solvers.budget import Budget, OutOfBudgetError
from schedgap.solvers.certificates.make import Effort, prove
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.result import Status
from schedgap.tools.judge.asking import NOTHING, Asking, first_pods, without_labels
from schedgap.tools.judge.draft import GOES, INSIDE
from schedgap.tools.judge.reading import Snapshot

MOST_NAMED = 6
"""Pods that one cure names."""
ELSEWHERE = "elsewhere"
"""A label of the nodes outside the domain in which a gang runs."""
NOTHING_RUNS = "nothing runs"
OBJECTIVES = ("weight", "moves")


@dataclass(frozen=True)
class Cure:
    """Moves and preemptions.

    Attributes
    ----------
    moves : ``preempted`` and ``moved`` as a solution has them; None where none is known
    leaving : pods that must have gone first, and are being deleted
    least : no moves and preemptions that the scheduler may do are cheaper, or there are none at all
    bound : price below which nothing admits it, where that is known and `moves` cost more
    instance : where nothing admits it, the instance whose optimum is to place nothing
    """

    moves: Json = None
    price: Fraction | None = None
    leaving: tuple[str, ...] = ()
    least: bool = False
    bound: Fraction | None = None
    instance: GangPlacementInstance | None = None


class Cures:
    """Cures of the gangs of one snapshot."""

    def __init__(self, asking: Asking, snapshot: Snapshot, instance: GangPlacementInstance) -> None:
        self.asking, self.snapshot, self.instance = asking, snapshot, instance
        self.facts = snapshot.facts
        self.inner = {gang.id: gang for gang in snapshot.instance.gangs}
        self.own = snapshot.form == "own"
        self.lowest_that_runs = min(self.facts.priorities.values(), default=0)
        self.members: Counter[str] = Counter(self.facts.owners.values())

    @cached_property
    def fixed(self) -> str:
        """Why nothing that runs may leave, as far as is read; empty where something may."""
        runs = [pod for pod in self.instance.running if pod.id not in self.facts.nominated]
        if not runs:
            return NOTHING_RUNS
        movable = any(pod.movable for pod in runs)
        return self.facts.fixed or ("" if movable else "nothing that runs may be moved or ended")

    def may_end(self, gang: Gang, pod: Running) -> bool:
        """Whether the scheduler may end a pod for a gang: of another gang, and of lower priority where it has one."""
        if pod.id in self.facts.nominated:
            return self.facts.nominated[pod.id] == gang.id
        if self.own or not self.facts.preempts or pod.id in self.facts.leaving:
            return pod.preemptible
        if gang.id in self.facts.gentle:
            return False
        own = self.facts.owners.get(pod.id) == gang.id
        return pod.preemptible and not own and self.facts.priorities[pod.id] < gang.priority

    def ends_nothing(self, gang: Gang) -> str:
        """Why nothing that runs is ended for a gang; empty where something may be."""
        if gang.id in self.facts.gentle:
            return self.facts.gentle[gang.id]
        apart = self.facts.leaving | self.facts.nominated.keys()
        stay = (pod for pod in self.instance.running if pod.id not in apart)
        lower = self.lowest_that_runs < gang.priority and any(self.may_end(gang, pod) for pod in stay)
        return "" if lower else "nothing of lower priority runs"

    def of(self, gang: Gang, others: Sequence[Gang] = ()) -> Cure:
        """The cheapest cure of a gang, beside others that are to be placed, too.

        What no rule of a gang that runs forbids is asked first: its price is a bound, and where there is none at all,
        nothing admits the gang. Its own pods that run stay in their domain, or all leave it.
        """
        if not self.asking.ready:
            return Cure()
        stays, leaves = self._loosely(gang, others, False), self._loosely(gang, others, True)
        proven = stays.proven and leaves.proven and not self.facts.anchored
        prices = [result.price for result in (stays, leaves) if result.price is not None]
        bound = min(prices) if proven and prices else None
        if not prices:
            certified = stays.instance if proven and not others and leaves.instance is None else None
            return Cure(least=proven, instance=certified)
        result = []
        for loose in (stays.solution, None):
            result += [self._kept(gang, others, loose)] if loose is not None else [self._solved(gang, others)]
            if result[-1][0] is not None and result[-1][0] == bound:
                break
        else:
            result += [self._other_gangs_ended(gang, others), self._moved_as_a_whole(gang, others)]
        priced = [(price, moves) for price, moves in result if price is not None]
        if not priced:
            return Cure(bound=bound)
        price, moves = min(priced, key=lambda pair: pair[0])
        going = self.facts.leaving
        leaving = tuple(name for name in moves["preempted"] if name in going)
        stay = going | self.facts.nominated.keys()
        moves["preempted"] = [name for name in moves["preempted"] if name not in stay]
        least, goes = price == bound, Fraction(str(GOES))
        bound = None if bound is None else max(Fraction(0), bound - len(going) * goes)
        return Cure(moves, price - len(leaving) * goes, leaving, least, bound)

    def _loosely(self, gang: Gang, others: Sequence[Gang], leaves: bool) -> _Loose:
        """The cheapest cure where rules of other gangs that run do not count."""
        if leaves:
            made, price = self._joined(self.snapshot.outward, gang, others, True)
            if made is None:
                return _Loose(None, True)
        else:
            made, price = self._made(self.snapshot.outward, gang, others, True), Fraction(0)
        result = self.asking.solved(made)
        if result is None:
            return _Loose(made, False)
        proven = result.status is Status.OPTIMAL
        if result.solution is None or len(result.solution["placement"]) < len(others) + 1:
            return _Loose(made, proven)
        return _Loose(made, proven, price + self._price(made, result.solution), result.solution)

    def _made(
        self, instance: GangPlacementInstance, gang: Gang, beside: Sequence[Gang], loose: bool
    ) -> GangPlacementInstance:
        """The instance of one question: `loose` allows every move and ending that some rule of others may forbid."""
        running = [self._pod(gang, pod, loose) for pod in instance.running]
        asked = [*self._others(instance, beside), self._asked(instance, gang)]
        return self.asking.build(instance, asked, OBJECTIVES, running=running, flat=True)

    def _asked(self, instance: GangPlacementInstance, gang: Gang) -> Gang:
        """The fewest pods of a gang, as the instance has them."""
        mine = {one.id: one for one in instance.gangs}.get(gang.id, gang)
        return first_pods(mine, min(mine.fewest, gang.fewest))

    @staticmethod
    def _others(instance: GangPlacementInstance, beside: Sequence[Gang]) -> list[Gang]:
        """Other gangs with so many pods, as the instance has them."""
        there = {one.id: one for one in instance.gangs}
        return [first_pods(there.get(one.id, one), min(there.get(one.id, one).size, one.size)) for one in beside]

    def _pod(self, gang: Gang, pod: Running, loose: bool) -> dict[str, Any]:
        made: dict[str, Any] = pod.model_dump(mode="json", exclude_none=True)
        if self.own:
            return made
        owner = self.facts.owners.get(pod.id, "")
        end = self.may_end(gang, pod) and (loose or self._spare(owner) > 0)
        if loose and owner != gang.id:
            labels = made.get("selector", {}).get("labels", {})
            made["selector"]["labels"] = {name: value for name, value in labels.items() if not name.startswith(INSIDE)}
        if not end:
            made.pop("price", None)
        made["movable"] = "price" in made or "move_price" in made
        return made

    def _spare(self, owner: str) -> int:
        """Pods that may be ended of a gang one by one: all of a pod alone, none where each counts."""
        fewest = self.facts.lowest.get(owner)
        return 1 if fewest is None else 0

    def _price(self, instance: GangPlacementInstance, solution: Solution) -> Fraction:
        return self.asking.values(instance, solution).get("moves", Fraction(0))

    def _kept(self, gang: Gang, beside: Sequence[Gang], loose: Solution) -> tuple[Fraction | None, Json]:
        """The loose answer itself, where it keeps every rule."""
        made = self._made(self.snapshot.instance, gang, beside, False)
        if gang.id not in self.inner:
            return None, None
        own = [name for name, owner in self.facts.nominated.items() if owner == gang.id]
        loose = {**loose, "preempted": [*loose.get("preempted", ()), *own]}
        report = self.asking.problem.check(made, loose)
        return (self._price(made, loose), _moves(loose)) if report.feasible else (None, None)

    def _solved(self, gang: Gang, others: Sequence[Gang]) -> tuple[Fraction | None, Json]:
        """With pods of gangs that need them not ended, each moved inside its domain."""
        if gang.id not in self.inner:
            return None, None
        made = self._made(self.snapshot.instance, gang, others, False)
        found = self.asking.solved(made)
        if found is None or found.solution is None or len(found.solution["placement"]) < len(others) + 1:
            return None, None
        return self._price(made, found.solution), _moves(found.solution)

    def _other_gangs_ended(self, gang: Gang, others: Sequence[Gang]) -> tuple[Fraction | None, Json]:
        """Endings as they are cheapest, and of each gang that this leaves with too few pods all the others."""
        if gang.id not in self.inner:
            return None, None
        running = [self._pod(gang, pod, False) for pod in self.snapshot.instance.running]
        prices = {pod.id: pod.price for pod in self.snapshot.instance.running if self.may_end(gang, pod)}
        for made in running:
            if made["id"] in prices and not self.own:
                made |= {"price": prices[made["id"]], "movable": True}
        asked = first_pods(self.inner[gang.id], gang.fewest)
        instance = self.asking.build(self.snapshot.instance, [*others, asked], OBJECTIVES, running=running, flat=True)
        result = self.asking.solved(instance)
        if result is None or result.solution is None or len(result.solution["placement"]) < len(others) + 1:
            return None, None
        ended = set(result.solution.get("preempted", ()))
        for owner in {self.facts.owners.get(name, "") for name in ended}:
            mine = {name for name, other in self.facts.owners.items() if other == owner and name in prices}
            left = self.members[owner] - len(mine & ended)
            if owner in self.facts.lowest and left < self.facts.lowest[owner]:
                if len(mine) < self.members[owner]:
                    return None, None  # some of its pods may not be ended
                ended |= mine
        moved = {name: seat for name, seat in (result.solution.get("moved") or {}).items() if name not in ended}
        solution = {**result.solution, "preempted": sorted(ended), "moved": moved}
        report = self.asking.problem.check(instance, solution)
        return (self._price(instance, solution), _moves(solution)) if report.feasible else (None, None)

    def _joined(
        self, instance: GangPlacementInstance, gang: Gang, others: Sequence[Gang], loose: bool
    ) -> tuple[GangPlacementInstance | None, Fraction]:
        """(the instance in which the pods of a gang that run join those that wait, in another domain, their price)."""
        mine = [pod for pod in instance.running if self.facts.owners.get(pod.id) == gang.id]
        if not mine or gang.required is None or not all(pod.migratable for pod in mine):
            return None, Fraction(0)
        nodes = {node["id"]: node for node in instance.to_dict()["nodes"]}
        price = sum((Fraction(str(pod.move_price)) for pod in mine), Fraction(0))
        depth = instance.depth(gang.required)
        there = {instance.domain(instance.node_index[pod.node], depth) for pod in mine}
        for n, node in enumerate(nodes.values()):
            if instance.domain(n, depth) not in there:
                node.setdefault("labels", {})[ELSEWHERE] = "yes"
        for pod in mine:
            for device, part in pod.devices.items():
                nodes[pod.node]["gpus"][int(device)] += part
            for name, given in pod.request.items():
                nodes[pod.node]["free"][name] = nodes[pod.node]["free"].get(name, 0) + given
        groups = [Group(count=1, gpu=pod.gpu or 0, request=pod.request, selector=pod.selector) for pod in mine]
        rest = self._asked(instance, gang)
        whole = _each_without(rest.model_copy(update={"pods": (*groups, *rest.pods)}), INSIDE)
        moved = [group.model_copy(update={"selector": _also(group.selector)}) for group in whole.pods]
        whole = whole.model_copy(update={"pods": tuple(moved)})
        running = [self._pod(gang, pod, loose) for pod in instance.running if pod not in mine]
        asked = [*self._others(instance, others), whole]
        return self.asking.build(
            instance, asked, OBJECTIVES, nodes_as=list(nodes.values()), running=running, flat=True
        ), price

    def _moved_as_a_whole(self, gang: Gang, others: Sequence[Gang]) -> tuple[Fraction | None, Json]:
        """The pods of a gang that run leave their domain together and start with those that wait in another one."""
        if gang.id not in self.inner:
            return None, None
        made, price = self._joined(self.snapshot.instance, gang, others, False)
        result = None if made is None else self.asking.solved(made)
        if made is None or result is None or result.solution is None:
            return None, None
        if len(result.solution["placement"]) < len(others) + 1:
            return None, None
        mine = [pod for pod in self.snapshot.instance.running if self.facts.owners.get(pod.id) == gang.id]
        moved: dict[str, Any] = dict(result.solution.get("moved") or {})
        for pod in result.solution["placement"][gang.id]:
            if pod["group"] < len(mine):
                moved[mine[pod["group"]].id] = {"node": pod["node"], "devices": pod.get("devices", [])}
        return price + self._price(made, result.solution), {
            "preempted": list(result.solution.get("preempted", ())),
            "moved": moved,
        }

    def certified(self, cure: Cure) -> tuple[GangPlacementInstance, Mapping[str, Json]] | None:
        """The proof that nothing admits the gang, where one engine finds it: the instance and a certificate."""
        if cure.instance is None or self.asking.deadline.passed:
            return None
        deadline = self.asking.options(0.5).deadline
        value = self.asking.problem.check(cure.instance, NOTHING).objective
        budget = Budget(deadline)
        try:
            with budget:
                return cure.instance, prove(cure.instance, value, NOTHING, Effort(deadline))
        except (Unproven, OutOfBudgetError):
            budget.end()
            return None


@dataclass(frozen=True)
class _Loose:
    """The answer to a question in which rules of gangs that run do not count."""

    instance: GangPlacementInstance | None
    proven: bool
    price: Fraction | None = None
    solution: Solution | None = None


def _also(selector: Selector) -> Selector:
    """The selector of nodes outside the domain in which a gang runs."""
    return selector.model_copy(update={"labels": {**selector.labels, ELSEWHERE: "yes"}})


def _moves(solution: Solution) -> Json:
    return {name: solution.get(name, default) for name, default in (("preempted", []), ("moved", {}))}


def _each_without(gang: Gang, word: str) -> Gang:
    return gang.model_copy(update={"pods": tuple(without_labels(group, word) for group in gang.pods)})


def told_moves(cure: Cure) -> str:
    """The moves and preemptions of a cure, with their price; "by ...", "once ...", or both."""
    names = _some(cure.leaving)
    many = len(cure.leaving) > 1
    once = f"once {names} {'have' if many else 'has'} gone, which {'are' if many else 'is'} being deleted"
    if cure.leaving and not (cure.moves["moved"] or cure.moves["preempted"]):
        return once
    return f"by {_moved(cure)}{f', {once}' if cure.leaving else ''}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


def _moved(cure: Cure) -> str:
    moves: Mapping[str, Any] = cure.moves
    done = [f"{name} to {seat['node']}" for name, seat in moves["moved"].items()]
    parts = []
    for word, names in (("moving", done), ("ending", list(moves["preempted"]))):
        if names:
            parts.append(f"{word} {_some(names)}")
    proven = "the least, as one engine proves" if cure.least else "not proven to be the least"
    if not cure.least and cure.bound is not None and cure.bound > 0:
        proven = f"at least {number(float(cure.bound))}"
    return f"{' and '.join(parts)}, price {number(float(cure.price or 0))} ({proven})"

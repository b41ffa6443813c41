"""The online loop on the other problems: policies that never look ahead give the schedules of their heuristics."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import schedgap
from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.ddl_cluster.clock import clock_of
from schedgap.formulations.hadar.tables import tables
from schedgap.heuristics.ddl_cluster.policies import ada_srsf
from schedgap.heuristics.ddljs.gadget import gadget
from schedgap.heuristics.hadar.baselines import srpt, tiresias
from schedgap.heuristics.hadar.online import hadar_online
from schedgap.heuristics.hadar.online_prices import price_ends
from schedgap.heuristics.hadar.rounds import hadar_rounds
from schedgap.tools.online import ddljs as on_ddljs
from schedgap.tools.online import hadar as on_hadar
from schedgap.tools.online.ddl_cluster import AdaSrsf
from schedgap.tools.online.replay import Estimates, Refused, Replay, World, replay_here, world_of


def in_order(problem: str, seeds: int) -> Iterator[Any]:
    """Of all families, their jobs in order of arrival, so that ties by position are ties by arrival."""
    form = find_problem(problem).instance_class
    for make in workload_of(find_problem(problem)).trials().values():
        for seed in range(seeds):
            data = make(seed)[0].to_dict()
            yield form.parse({**data, "jobs": sorted(data["jobs"], key=lambda job: job["arrival"])})


def world(instance: Instance, estimates: Estimates = "exact", **given: Any) -> World:
    made = world_of(find_problem(instance.problem_id), instance, estimates=estimates, seed=1, **given)
    assert made is not None
    return made


def run(instance: Instance, policy: Any, estimates: Estimates = "exact") -> Replay:
    return replay_here(world(instance, estimates, preempts=getattr(policy, "preempts", False)), policy)


def admits(umin: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any], Estimates]:
    """With the ends of prices that the paper takes as known."""

    def policy(instance: Any) -> Any:
        try:
            ends = price_ends(instance, tables(instance), umin, "printed")
        except InputError:
            ends = None  # there are none: the heuristic finds nothing
        return on_hadar.HadarOnline(instance.horizon, ends)

    return policy, lambda instance: hadar_online(instance, umin=umin), "exact"  # type: ignore[arg-type]


HADAR = list(in_order("hadar", 5))
HADAR_PAIRS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Estimates]] = {
    "hadar-rounds": (lambda one: on_hadar.HadarRounds(one.horizon), hadar_rounds, "exact"),
    "hadar-online": admits("printed"),
    "hadar-online, direct": admits("direct"),
    "tiresias": (lambda one: on_hadar.Tiresias(), tiresias, "none"),
    "srpt": (lambda one: on_hadar.Srpt(), srpt, "exact"),
}


@pytest.mark.parametrize("name", HADAR_PAIRS)
def test_a_policy_of_hadar_gives_the_schedule_of_the_heuristic(name: str) -> None:
    policy, heuristic, estimates = HADAR_PAIRS[name]
    same = 0
    for instance in HADAR:
        mine, theirs = run(instance, policy(instance), estimates), heuristic(instance)
        solution = theirs.solution or theirs.partial
        if solution is None:  # jobs that must finish did not, or there are no prices
            assert not mine.report.feasible or theirs.info["stopped"] == "no prices"
            continue
        assert mine.solution == solution, instance.name
        assert mine.report.feasible
        same += bool(solution["allocation"])
    assert same > 10


DDLJS = [one for one in in_order("ddljs", 2) if len(one.jobs) * one.horizon <= 20]


@pytest.mark.parametrize("inner", ["colgen", "greedy", "lp-rs-mde"])
def test_gadget_gives_the_schedule_of_the_heuristic(inner: str) -> None:
    """Algorithm 2 draws: its seeds are the slots in both."""
    ran = 0
    for instance in DDLJS:
        mine = run(instance, on_ddljs.Gadget(inner, horizon=instance.horizon))
        theirs = gadget(instance, inner=inner).solution  # type: ignore[arg-type]
        assert theirs is not None and mine.solution["slots"] == theirs["slots"], instance.name
        assert mine.report.feasible
        ran += any(slot["rings"] for slot in theirs["slots"])
    assert ran > 10


DDL_CLUSTER = [
    *(one for one in in_order("ddl-cluster", 3) if len(one.jobs) < 50),
    *(schedgap.generate("ddl-cluster", "small", seed=seed) for seed in range(3, 15)),
]


def test_ada_srsf_gives_the_schedule_of_the_heuristic() -> None:
    held = 0
    for instance in DDL_CLUSTER:
        mine, theirs = run(instance, AdaSrsf()).solution, ada_srsf(instance).solution
        assert theirs is not None and mine["finish"] == theirs["finish"], instance.name
        assert {job: sorted(gpus) for job, gpus in mine["placement"].items()} == {
            job: sorted(gpus) for job, gpus in theirs["placement"].items()
        }
        held += "release" in mine
    assert held > 3  # somebody waits


def one_of(problem: str) -> Any:
    """An instance in which somebody arrives later."""
    return next(one for one in in_order(problem, 5) if one.jobs[0].arrival < one.jobs[-1].arrival)


class Script:
    """Gives these actions at its first decision, and none later."""

    preempts = True

    def __init__(self, *actions: Any) -> None:
        self.actions = actions

    def decide(self, state: Any) -> Any:
        given, self.actions = self.actions, ()
        return given


LATE = "it does not wait"
CHEATS: list[tuple[str, Any, str]] = [
    ("hadar", ("start", 99), LATE),
    ("hadar", ("start", 0, [[0, 0, 10**9]]), "are not free|it needs"),
    ("hadar", ("start", 0, [[0, 0, -1]]), "must be \\[machine, type, devices\\]"),
    ("hadar", ("start", 0, [[7, 0, 1]]), "must be \\[machine, type, devices\\]"),
    ("hadar", ("start", 0, []), "it needs"),
    ("hadar", ("move", 0, [[0, 0, 1]]), "it does not run"),
    ("ddl-cluster", ("start", 99), LATE),
    ("ddl-cluster", ("start", 0, [0] * 64), "different GPUs|are given"),
    ("ddl-cluster", ("start", 0, "all"), "must be a list of numbers"),
    ("ddl-cluster", ("preempt", 0), "jobs run through"),
    ("ddljs", ("start", 99, {"workers": ["s0"], "routes": []}), LATE),
    ("ddljs", ("start", 0, {"workers": ["s0"] * 500, "routes": [["s0"]] * 500}), "at most"),
    ("ddljs", ("start", 0, {"workers": ["nowhere"], "routes": []}), "must be"),
    ("ddljs", ("start", 0), "must be"),
]


@pytest.mark.parametrize(("problem", "action", "line"), CHEATS)
def test_what_is_impossible_is_refused(problem: str, action: Any, line: str) -> None:
    with pytest.raises(Refused, match=f"slot .*: {action[0]} of job {action[1]}: .*({line})"):
        run(one_of(problem), Script(action))


def test_devices_are_given_once() -> None:
    """Two gangs on the same devices: the second is refused, in the slot of the first."""
    instance = one_of("hadar")
    taken = [("start", 0), ("preempt", 0), ("start", 0), ("start", 0)]
    with pytest.raises(Refused, match=LATE):
        run(instance, Script(*taken))


class Erratic:
    """Starts, stops, moves and waits at random, twice in a slot too, on places that are often none."""

    preempts = True

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def place(self, state: Any, job: Any) -> Any:
        if self.draw.random() < 0.03:
            return self.draw.choice(["x", [[]], {}, [None], [10**30], [[0, 0, 10**30]], -1, [float("nan")], [[0, 0]]])
        if "links" in state.cluster:
            ring = [server["id"] for server in self.draw.choices(state.cluster["servers"], k=min(2, job.gpus))]
            return {"workers": ring, "routes": [] if len(ring) == 1 else [ring, ring[::-1]]}
        return None if self.draw.random() < 0.7 else self.draw.sample(range(sum(state.servers)), job.gpus)

    def decide(self, state: Any) -> Iterator[Any]:
        waiting, running = set(state.waiting), set(state.running)
        for number, job in list(state.jobs.items()) * 2:
            verb = self.draw.choice(["start", "start", "preempt", "move", ""])
            if verb == "start" and number in waiting:
                waiting.discard(number)
                running.add(number)
                yield "start", number, self.place(state, job)
            elif verb in ("preempt", "move") and number in running and state.preempts:
                yield ("preempt", number) if verb == "preempt" else ("move", number, self.place(state, job))
                if verb == "preempt":
                    running.discard(number)
                    waiting.add(number)
        if self.draw.random() < 0.3:
            yield "wake", state.slot + 2 ** self.draw.randint(0, 20)


@pytest.mark.parametrize("problem", ["gpu-sharing", "hadar", "ddl-cluster", "ddljs"])
def test_whatever_a_policy_does_is_refused_or_what_the_checker_computes(problem: str) -> None:
    """Nothing else comes out of the loop: no other error, no completion that the checker computes differently."""
    ended = {"refused": 0, "judged": 0}
    for seed, instance in enumerate(itertools.islice(in_order(problem, 4), 40)):
        if len(instance.jobs) > 12:
            continue
        for preempts in (False, True):
            made = world_of(find_problem(problem), instance, preempts=preempts, estimates="user", seed=seed)
            if made is None:
                continue
            try:
                replay_here(made, Erratic(seed))
                ended["judged"] += 1
            except Refused:
                ended["refused"] += 1
    assert ended["refused"] > 5 and ended["judged"] > (problem in ("hadar", "ddljs")), ended


class Late(AdaSrsf):
    """Ada-SRSF that sleeps until a tick first."""

    def __init__(self, tick: int) -> None:
        self.tick = tick

    def decide(self, state: Any) -> Any:
        return super().decide(state) if state.slot >= self.tick else [("wake", self.tick)]


def test_a_policy_of_ddl_cluster_may_sleep_as_long_as_the_instance_may_last() -> None:
    data = schedgap.generate("ddl-cluster", "small", seed=0).to_dict()
    data["jobs"] = [{**job, "iterations": 100 * job["iterations"]} for job in data["jobs"]]
    instance = find_problem("ddl-cluster").instance_class.parse(data)
    clock, most = clock_of(instance), instance.longest_run
    found = run(instance, Late(tick := 2**54))
    assert tick < most * 10**clock.digits and found.report.feasible
    assert all(seconds >= clock.seconds(tick) * (1 - 1e-15) for seconds in found.solution["release"].values())
    for tick in (math.ceil(most * 10**clock.digits) + 100, 2**62 - 1):
        with pytest.raises(
            Refused, match=rf"slot {tick}: start of job \d+: all jobs one after another end by [\d.]+ s"
        ):
            run(instance, Late(tick))
    with pytest.raises(Refused, match=f"wake-up in slot {2**62}: must be later, and before {2**62}"):
        run(instance, Late(2**62))


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InputError, match="seed: must be at least 0, got -1"):
        world_of(find_problem("hadar"), HADAR[0], estimates="user", seed=-1)


class Notes:
    """Writes down everything that it is told, and does nothing."""

    preempts = True

    def __init__(self) -> None:
        self.seen: list[str] = []

    def decide(self, state: Any) -> Any:
        self.seen.append(repr((state, state.jobs)))
        return [("start", job) for job in state.waiting] if not state.cluster else []


@pytest.mark.parametrize(("problem", "field"), [("hadar", "epochs"), ("ddl-cluster", "iterations")])
def test_hidden_lengths_are_in_no_message(problem: str, field: str) -> None:
    """Jobs that differ in their lengths alone look the same, and so does a longer horizon."""
    seen = []
    instance = one_of(problem)
    for factor in (1, 3):
        data = instance.to_dict()
        for job in data["jobs"]:
            job[field] *= factor
        if "horizon" in data:
            data["horizon"] += 7 * factor
        made = world(type(instance).parse(data), "none")
        if problem == "ddl-cluster":  # how fine its ticks are depends on everything
            made.clock = world(instance).clock  # type: ignore[attr-defined]
        seen.append([made.opening(), made.advance(made.next_slot() or 0)])
    assert seen[0] == seen[1] and "'arrived': [[0" in repr(seen[0])


@pytest.mark.parametrize("problem", ["hadar", "ddljs", "ddl-cluster"])
def test_figures_of_service_are_those_by_hand(problem: str) -> None:
    """From the checker's completions alone, where there are some."""
    policy = {"hadar": on_hadar.Srpt, "ddljs": lambda: on_ddljs.Gadget("greedy"), "ddl-cluster": AdaSrsf}[problem]()
    found = run(one_of(problem), policy)
    service, instance = found.service, one_of(problem)
    if problem == "hadar":
        ends = {name: end for name, end in found.report.details["completion"].items() if end is not None}
        jct = [end - job.arrival + 1 for job in instance.jobs if (end := ends.get(job.id)) is not None]
        assert service["unfinished"] == len(instance.jobs) - len(jct)
        assert service["jct"] == pytest.approx(sum(jct) / len(jct))
    if problem == "ddl-cluster":
        made = world(instance)
        length = made.opening()["slot_length"]
        assert (
            service["jct"] * length == pytest.approx(float(found.report.objective or 0)) and not service["unfinished"]
        )
    assert service["unfinished"] < len(instance.jobs)
    assert service["wait"] is None or 0 <= service["wait"] < service["jct"]
    assert service["jain"] is None or 1 / len(instance.jobs) <= service["jain"] <= 1 + 1e-9


class Starts:
    """Starts each job as it comes, and asks to be woken in every slot to 99, also after the horizon."""

    preempts = True

    def __init__(self, place: Any = None) -> None:
        self.place = place

    def decide(self, state: Any) -> Iterator[Any]:
        assert "horizon" not in repr(state)
        for number in state.arrived:
            yield ("start", number) if self.place is None else ("start", number, self.place)
        if state.slot < 99:
            yield "wake", state.slot + 1


def test_the_horizon_of_hadar_binds_and_is_not_told() -> None:
    """By hand: 9 units at 4 a slot take three slots; with two it is worth nothing, and nobody is asked later."""
    data = schedgap.generate("hadar", "tiny", seed=1).to_dict()
    job = {**data["jobs"][0], "arrival": 3}
    for horizon, end in ((4, None), (5, 5), (6, 5)):
        instance = type(HADAR[0]).parse({**data, "jobs": [job], "horizon": horizon})
        found = run(instance, Starts([[1, 1, 1]]))
        assert found.report.feasible and found.report.details["completion"] == {"j0": end}
        assert (found.report.value or 0) > 0 if end else found.report.value == 0
        assert found.service["unfinished"] == (0 if end else 1) and max(found.slots) <= horizon


def test_the_horizon_of_ddljs_binds_and_is_not_told() -> None:
    """By hand: one worker from slot 2 on, until the budget of 5 is used up."""
    data = schedgap.generate("ddljs", "tiny", seed=1).to_dict()
    form = find_problem("ddljs").instance_class
    for horizon, slots in ((3, 2), (5, 4), (6, 5), (9, 5)):
        instance = form.parse({**data, "jobs": data["jobs"][:1], "horizon": horizon})
        found = run(instance, Starts({"workers": ["s0"], "routes": []}))
        assert found.report.feasible and found.report.details["worker_slots"] == {"j0": slots}
        assert found.service["unfinished"] == (slots < 5) and max(found.slots) <= horizon


def test_the_last_start_that_ddl_cluster_allows() -> None:
    """It has no horizon: jobs start as late as all could last one after another, and not a tick later."""
    instance = one_of("ddl-cluster")
    last = math.floor(instance.longest_run * 10 ** clock_of(instance).digits)
    found = run(instance, Late(last))
    assert found.report.feasible and max(found.solution["release"].values()) <= instance.longest_run
    with pytest.raises(Refused, match=f"slot {last + 1}: start of job .* end by"):
        run(instance, Late(last + 1))


@pytest.mark.parametrize("problem", ["hadar", "ddljs", "ddl-cluster"])
def test_an_arrival_and_an_end_in_one_slot_are_one_event(problem: str) -> None:
    """Who comes in the slot after an end finds what was held free, and is told of both at once."""
    data = schedgap.generate(problem, "tiny", seed=1).to_dict()
    form, seen = find_problem(problem).instance_class, []
    first = data["jobs"][0]
    place = {"hadar": [[1, 1, 1]], "ddljs": {"workers": ["s0"], "routes": []}, "ddl-cluster": None}[problem]

    class Notes(Starts):
        def decide(self, state: Any) -> Iterator[Any]:
            seen.append((list(state.ended), list(state.arrived)))
            yield from (action for action in super().decide(state) if action[0] != "wake")

    alone = run(form.parse({**data, "jobs": [first], **({"horizon": 99} if "horizon" in data else {})}), Notes(place))
    seen.clear()
    length = int(alone.service["jct"])
    after = first["arrival"] + (alone.report.details["finish"]["j0"] if problem == "ddl-cluster" else length)
    jobs = [first, {**first, "id": "j1", "arrival": after}]
    found = run(form.parse({**data, "jobs": jobs, **({"horizon": 99} if "horizon" in data else {})}), Notes(place))
    assert found.report.feasible and seen == [([], [0]), ([0], [1])] and found.service["wait"] == 0

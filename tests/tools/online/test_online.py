"""The online loop: policies see only what has arrived, and give the schedules of heuristics that never look ahead."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import schedgap
from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance, Job
from schedgap.heuristics.gpu_sharing.exclusive_policies import easy, fifo, sjf
from schedgap.heuristics.gpu_sharing.preemptive import tiresias
from schedgap.heuristics.gpu_sharing.sharing import sjf_bsbf
from schedgap.tools.online.gpu_sharing import SjfBsbf
from schedgap.tools.online.policies import Easy, Fifo, Las, Sjf, Srtf
from schedgap.tools.online.replay import Estimates, Refused, Replay, replay_here, world_of
from schedgap.tools.online.state import Action, State

PROBLEM = find_problem("gpu-sharing")


def jobs_of(rows: Sequence[tuple[int, int, int]], gpus: int, horizon: int = 1000) -> GpuSharingInstance:
    """Jobs of (arrival, GPUs, slots) on one server."""
    jobs = [
        {
            **{"id": f"j{n}", "arrival": arrival, "gpus": size, "iterations": slots, "batch_size": 1, "overlap": 1.0},
            "compute": {"fixed": 1.0, "per_sample": 0.0},
            "communication": {"latency": 0.0, "per_unit": 0.0, "message": 0.0},
            "memory": {"fixed": 1.0, "per_sample": 0.0},
        }
        for n, (arrival, size, slots) in enumerate(rows)
    ]
    data = {"problem": "gpu-sharing", "name": "by-hand", "horizon": horizon, "slot_length": 1.0, "jobs": jobs}
    servers = [{"id": "s0", "gpus": gpus}]
    return GpuSharingInstance.parse({**data, "servers": servers, "gpu_memory": 1.0, "max_jobs_per_gpu": 1})


def in_order(instance: GpuSharingInstance) -> GpuSharingInstance:
    """The same jobs in order of arrival, so that ties by position are ties by arrival."""
    data = instance.to_dict()
    return GpuSharingInstance.parse({**data, "jobs": sorted(data["jobs"], key=lambda job: job["arrival"])})


def run(
    instance: GpuSharingInstance, policy: Any, estimates: Estimates = "exact", restart: float | None = None
) -> Replay:
    preempts = getattr(policy, "preempts", False)
    return replay_here(
        world_of(PROBLEM, instance, preempts=preempts, estimates=estimates, seed=1, restart=restart), policy
    )


def drawn() -> Iterator[GpuSharingInstance]:
    """Of all families, small ones and those of the paper's size; one of each family with hundreds of jobs."""
    for make in workload_of(PROBLEM).trials().values():
        for seed in range(6):
            instance = in_order(make(seed)[0])  # type: ignore[arg-type]
            yield instance
            if len(instance.jobs) > 200:
                break
    for preset, seed in (("table-ii", 0), ("table-ii", 1), ("table-iii", 0)):
        yield in_order(schedgap.generate("gpu-sharing", preset, seed=seed))  # type: ignore[arg-type]


INSTANCES = list(drawn())
PAIRS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Estimates]] = {
    "fifo": (Fifo, fifo, "none"),
    "sjf": (Sjf, sjf, "exact"),
    "easy": (Easy, easy, "exact"),
    "las": (Las, tiresias, "none"),
    "sjf-bsbf": (SjfBsbf, sjf_bsbf, "exact"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_policy_gives_the_schedule_of_the_heuristic(name: str) -> None:
    policy, heuristic, estimates = PAIRS[name]
    waited = 0
    for instance in INSTANCES:
        mine, theirs = run(instance, policy(), estimates), heuristic(instance)
        if theirs.solution is None:  # it ends after the horizon, which no online policy knows
            assert [violation.constraint for violation in mine.report.violations][-1:] == ["horizon"]
            continue
        assert mine.solution == theirs.solution
        assert mine.report.feasible
        waited += theirs.info["queuing all"] > 0
    assert len(INSTANCES) > 30 and waited > 10  # somebody waits, so that orders matter


@pytest.mark.parametrize("seed", range(8))
def test_seats_are_taken_again(seed: int) -> None:
    """Jobs come and go that slow each other down: the heuristic's schedule, in tables no larger than the queue was."""
    draw = random.Random(seed)
    drawn = schedgap.generate("gpu-sharing", "table-ii", seed=seed).to_dict()
    jobs = [{**draw.choice(drawn["jobs"]), "id": f"j{n}", "arrival": 1 + 150 * n} for n in range(120)]
    names = [job["id"] for job in jobs]
    slowdown = {one: {other: draw.uniform(1, 2) for other in draw.sample(names, 60) if other != one} for one in names}
    instance = GpuSharingInstance.parse({**drawn, "jobs": jobs, "interference": slowdown, "horizon": 10**7})
    policy = SjfBsbf()
    assert run(instance, policy).solution == sjf_bsbf(instance).solution
    ends = run(instance, SjfBsbf()).report.details["completion"]
    here = max(sum(one["arrival"] <= job["arrival"] <= ends[one["id"]] for one in jobs) for job in jobs)
    assert here <= len(policy.jobs) <= 2 * here and len(policy.jobs) < len(jobs)


def by_enumeration(rows: Sequence[tuple[int, int, int]]) -> int:
    """The least sum of JCT on one GPU with preemption at slot ends, from every choice in every slot."""
    best = {tuple(slots for *_, slots in rows): 0}
    slot = 1
    while any(any(left) for left in best):
        after: dict[tuple[int, ...], int] = {}
        for left, cost in best.items():
            here = [j for j, (arrival, *_) in enumerate(rows) if left[j] and arrival <= slot]
            paid = cost + len(here)
            for j in here or [None]:
                rest = tuple(amount - (k == j) for k, amount in enumerate(left))
                after[rest] = min(paid, after.get(rest, paid))
        best, slot = after, slot + 1
    return min(best.values())


@pytest.mark.parametrize("seed", range(25))
def test_srtf_is_optimal_on_one_gpu(seed: int) -> None:
    draw = random.Random(seed)
    rows = [(draw.randint(1, 8), 1, draw.randint(1, 6)) for _ in range(5)]
    found = run(jobs_of(rows, 1), Srtf(), restart=0.0)
    assert found.report.feasible and found.report.objective is not None
    assert found.report.objective * len(rows) == by_enumeration(rows)
    world = world_of(PROBLEM, jobs_of(rows, 1), preempts=True, restart=0.0)
    assert world is not None and 0 < (world.bound() or 0) <= float(found.report.objective)


def test_the_bound_of_the_model_does_not_bound_preemption() -> None:
    """Preempted at once the long job costs less than any run through: the two worlds have bounds of their own."""
    instance = jobs_of([(1, 1, 40), *((slot, 1, 1) for slot in range(2, 42, 2))], 1)
    preempted = run(instance, Srtf(), restart=0.0).report.objective
    through, paused = (world_of(PROBLEM, instance, preempts=preempts, restart=0.0) for preempts in (False, True))
    assert through is not None and paused is not None and preempted is not None
    assert (paused.bound() or 0) <= float(preempted) < (through.bound() or 0)


def test_fifo_is_optimal_for_the_largest_flow_time_on_one_gpu() -> None:
    rows = [(1, 1, 5), (2, 1, 4), (3, 1, 1), (3, 1, 2)]

    def largest(replayed: Replay) -> int:
        ends = replayed.report.details["completion"]
        return max(ends[f"j{n}"] - arrival + 1 for n, (arrival, *_) in enumerate(rows))

    def flow(order: Sequence[int]) -> int:
        now, worst = 1, 0
        for n in order:
            now = max(now, rows[n][0]) + rows[n][2]
            worst = max(worst, now - rows[n][0])
        return worst

    best = min(flow(order) for order in itertools.permutations(range(4)))
    assert largest(run(jobs_of(rows, 1), Fifo())) == best < largest(run(jobs_of(rows, 1), Sjf()))


def flows(instance: GpuSharingInstance, order: Sequence[Job]) -> int:
    """The sum of JCT of jobs one after another."""
    now, total = 1, 0
    for job in order:
        now = max(now, job.arrival) + job.iterations
        total += now - job.arrival
    return total


def test_regret_without_preemption_grows_with_the_number_of_jobs() -> None:
    """A job of n^2 slots at an idle GPU, then n of one slot: a policy that starts it has no constant ratio."""
    last = 1.0
    for n in (2, 3, 8, 32):
        instance = jobs_of([(1, 1, n * n), *((2, 1, 1) for _ in range(n))], 1, horizon=2 * n * n + n)
        found = run(instance, Sjf()).report.objective
        # by hand: the k-th short one waits for the long one and k - 1 others; better are the short ones first
        ours = n * n + sum(n * n + k - 1 for k in range(1, n + 1))
        best = sum(range(1, n + 1)) + (n + 1 + n * n)
        assert found == pytest.approx(ours / (n + 1))
        if n <= 3:
            assert best == min(flows(instance, order) for order in itertools.permutations(instance.jobs))
        assert ours / best > max(last, n / 2)
        last = ours / best


def test_the_hunt_found_that_the_ratio_grows() -> None:
    """The instances that an adversary ended with, of at most 2 to 16 jobs on one GPU, as in the table of the docs."""
    data = Path(__file__).parents[2] / "data" / "online-growth.json"
    ratios = []
    for row in json.loads(data.read_text()):
        instance = GpuSharingInstance.parse(row)
        assert instance.total_gpus == 1
        world = world_of(find_problem("gpu-sharing"), instance)
        assert world is not None
        report = replay_here(world, Sjf()).report
        assert report.feasible and report.objective is not None
        ratios.append(float(report.objective) / (world.bound() or 1))
    assert [round(ratio, 2) for ratio in ratios] == [1.62, 2.42, 3.44, 5.31, 7.17, 13.06]


class Answers:
    """Gives these actions, one list a decision."""

    def __init__(self, *answers: Any, preempts: bool = False) -> None:
        self.answers, self.preempts = list(answers), preempts

    def decide(self, state: State) -> Sequence[Action]:
        return self.answers.pop(0) if self.answers else []


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ([("start", 5)], "slot 1: start of job 5: it does not wait"),
        ([("start", 1)], "slot 1: start of job 1: it does not wait"),  # it has not arrived
        ([("start", -1)], "slot 1: start of job -1: it does not wait"),
        ([("start", 0), ("start", 0)], "slot 1: start of job 0: it does not wait"),
        ([("preempt", 0)], "slot 1: preempt of job 0: jobs run through; a policy that preempts says preempts = True"),
        ([("start", 0, [0, 0])], "slot 1: start of job 0: it needs 2 different GPUs, 1 are named"),
        ([("start", 0, [0, 2])], "slot 1: start of job 0: there is no GPU 2, they go from 0 to 1"),
        ([("start", 0, [0, -1])], "slot 1: start of job 0: there is no GPU -1, they go from 0 to 1"),
        *(
            ([("wake", slot)], f"slot 1: wake-up in slot {slot}: must be later, and before {2**53}")
            for slot in (1, 2**53, 10**400)
        ),
        ([("move", 0)], "slot 1: no action: ('move', 0)"),
        ([("start", 0, 1, 2)], "slot 1: no action: ('start', 0, 1, 2)"),
        ([("start", True)], "slot 1: no action: ('start', True)"),
        ([("start", 0.0)], "slot 1: no action: ('start', 0.0)"),
        ([("start", math.nan)], "slot 1: no action: ('start', nan)"),
        ([("start", 10**30)], f"slot 1: start of job {10**30}: it does not wait"),
        ([("start", 0, [0, 10**30])], f"slot 1: start of job 0: there is no GPU {10**30}, they go from 0 to 1"),
        ([("start", 0, [0, math.inf])], "slot 1: start of job 0: must be a list of numbers: [0, inf]"),
        ([("wake", 0)], f"slot 1: wake-up in slot 0: must be later, and before {2**53}"),
        ([], "slot 3: 2 jobs wait for ever: none runs, none comes, no wake-up"),
    ],
)
def test_what_is_impossible_is_refused_with_slot_and_job(answer: Any, line: str) -> None:
    with pytest.raises(Refused) as error:
        run(jobs_of([(1, 2, 2), (3, 1, 1)], 2), Answers(answer))
    assert str(error.value) == line


@pytest.mark.parametrize("preempts", [False, True])
def test_an_arrival_and_an_end_in_one_slot_are_one_event(preempts: bool) -> None:
    """The first job's last slot is 4: who comes in slot 5 finds its GPU free, and the policy is asked once."""
    seen: list[tuple[int, list[int], list[int], int]] = []

    class Watches(Fifo):
        def decide(self, state: State) -> Iterator[Action]:
            seen.append((state.slot, list(state.ended), list(state.arrived), state.free))
            yield from super().decide(state)

    policy = Watches()
    policy.preempts = preempts  # type: ignore[attr-defined]
    found = run(jobs_of([(1, 1, 4), (5, 1, 2), (7, 1, 1)], 1), policy)
    assert seen == [(1, [], [0], 1), (5, [0], [1], 1), (7, [1], [2], 1)]
    assert found.report.details["completion"] == {"j0": 4, "j1": 6, "j2": 7}


def test_a_gang_does_not_start_on_fewer_gpus() -> None:
    with pytest.raises(Refused, match=r"slot 3: start of job 1: it needs 2 GPUs, 1 are free"):
        run(jobs_of([(1, 1, 9), (3, 2, 1)], 2), Answers([("start", 0)], [("start", 1)]))
    with pytest.raises(Refused, match=r"slot 3: start of job 1: GPU 0 is not free"):
        run(jobs_of([(1, 1, 9), (3, 1, 1)], 2), Answers([("start", 0, [0])], [("start", 1, [0])]))


def test_gpus_may_be_named_and_a_wake_up_is_a_decision() -> None:
    policy = Answers([("start", 0, [1]), ("wake", 9)], [("wake", 7), ("wake", 8)], [("start", 1, [1])])
    found = run(jobs_of([(1, 1, 2), (1, 1, 2)], 2), policy)
    assert found.solution["gpus"] == {"j0": [["s0", 1]], "j1": [["s0", 1]]}
    assert found.solution["start"] == {"j0": 1, "j1": 7} and len(found.seconds) == 3


def test_a_preempted_job_loses_its_restart() -> None:
    found = run(
        jobs_of([(1, 1, 4), (3, 1, 2)], 1),
        Answers([("start", 0)], [("preempt", 0), ("start", 1)], [("start", 0)], preempts=True),
        restart=3.0,
    )
    # by hand: 2 of 4 slots, two for the other, then 3 of restart and 2 of work
    assert found.solution["segments"] == {"j0": [[1, 2, 1], [5, 9, 1]], "j1": [[3, 4, 1]]}
    assert found.report.feasible and found.preemptions == 1
    assert found.report.objective == pytest.approx((9 + 2) / 2)


class Watcher:
    """Notes down everything that it is told."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.first: dict[int, int] = {}

    def decide(self, state: State) -> Iterator[Action]:
        for job in state.jobs.values():
            assert job.arrival <= state.slot
            self.first.setdefault(job.id, state.slot)
        self.seen.append(repr(state))
        free = state.free
        for job in state.waiting.values():
            if job.gpus <= free:
                free -= job.gpus
                yield "start", job.id


def test_nothing_is_told_before_its_time() -> None:
    """Two futures that differ only after a slot look the same until then; and without estimates, in lengths too."""
    known = [(1, 1, 4), (2, 2, 7), (3, 1, 9)]
    seen = []
    for rest in ([(9, 1, 3)], [(9, 2, 30), (9, 1, 1), (11, 1, 2)]):
        watcher = Watcher()
        run(jobs_of([*known, *rest], 4, horizon=500 + len(rest)), watcher, "exact")
        assert watcher.first == {n: arrival for n, (arrival, *_) in enumerate([*known, *rest])}
        seen.append(watcher.seen[:4])
    assert seen[0] == seen[1] and "slot=5" in seen[0][3]
    hidden = []
    for slots in (7, 70):
        watcher = Watcher()
        run(jobs_of([(1, 1, 4), (2, 2, slots), (3, 1, 9)], 4), watcher, "none")
        hidden.append([line for line in watcher.seen if "slot=5," in line or "slot=3," in line])
    assert hidden[0] == hidden[1] and hidden[0]


def test_messages_hold_no_more_than_the_state_needs() -> None:
    """A peeker finds nothing, since nothing is sent: every message, as text."""
    instance = jobs_of([(1, 1, 4321), (2, 1, 1234)], 1, horizon=99999)
    world = world_of(PROBLEM, instance, estimates="none", seed=3)
    sent = [json.dumps(world.opening()), json.dumps(world.advance(1))]
    assert sent == [
        '{"servers": [1], "slot_length": 1.0, "preempts": false, "restart": 0, "seed": 3}',
        '{"slot": 1, "ended": [], "arrived": [[0, 1, null, null]]}',
    ]


def test_users_ask_for_at_least_what_it_takes() -> None:
    instance = INSTANCES[-1]
    told = {}
    for seed in (1, 1, 2):
        world = world_of(PROBLEM, instance, estimates="user", seed=seed)
        rows = []
        while len(rows) < len(instance.jobs):
            slot = world.next_slot()
            assert slot is not None
            rows += world.advance(slot)["arrived"]
        told.setdefault(seed, []).append(rows)
    exact = world_of(PROBLEM, instance, estimates="exact", seed=1)
    true = [row for slot in sorted({job.arrival for job in instance.jobs}) for row in exact.advance(slot)["arrived"]]
    assert told[1][0] == told[1][1] != told[2][0]
    ratios = [asked[3] / slots[3] for asked, slots in zip(told[1][0], true, strict=True)]
    assert all(asked[2] >= work[2] for asked, work in zip(told[1][0], true, strict=True))
    assert min(ratios) >= 1 and max(ratios) <= 5.5 and 2.5 < sum(ratios) / len(ratios) < 3.5


def test_estimates_are_not_divided_out_by_the_seed_that_is_told() -> None:
    """Draws that came of the seed alone gave away every length: estimate / (1 + 4 draw)."""
    world = world_of(PROBLEM, INSTANCES[-1], estimates="user", seed=3)
    assert world is not None and world.opening()["seed"] == 3
    for seed in range(100):
        draws = np.random.default_rng(seed).random(len(world.factors))
        assert (abs(world.factors - 1 - 4 * draws) > 1e-3).any()


def test_limits_of_a_log_are_what_users_ask_for() -> None:
    data = jobs_of([(1, 1, 10), (1, 1, 10), (1, 1, 10)], 1).to_dict()
    data["jobs"][0]["limit"], data["jobs"][1]["limit"] = 25.0, 4.0
    told = {}
    for estimates in ("user", "exact"):
        world = world_of(PROBLEM, GpuSharingInstance.parse(data), estimates=estimates, seed=1)  # type: ignore[arg-type]
        assert world is not None
        told[estimates] = [row[3] for row in world.advance(1)["arrived"]]
    assert told["exact"] == [10, 10, 10]
    assert told["user"][0] in (25, 26) and told["user"][1] == 10 and 10 <= told["user"][2] <= 50


def test_a_policy_that_needs_lengths_says_so() -> None:
    with pytest.raises(ValueError, match="--estimates exact or user"):
        run(INSTANCES[-1], Sjf(), "none")


def test_a_problem_without_a_loop_is_named() -> None:
    instance = schedgap.generate("rar-ddls", "tiny", seed=0)
    with pytest.raises(InputError, match="no online loop for rar-ddls"):
        world_of(find_problem("rar-ddls"), instance)

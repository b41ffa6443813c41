"""Methods `lns` of ddl-cluster and ddljs, and the search where not every gain is checked at once."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schedgap.benchmarks.instances.ddl_cluster.random import small as trained
from schedgap.benchmarks.instances.ddl_cluster.random import tiny as placed
from schedgap.benchmarks.instances.ddljs.random import paper, small, tiny
from schedgap.catalogue.ddl_cluster import PROBLEM as DDL_CLUSTER
from schedgap.catalogue.ddljs import PROBLEM as DDLJS
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import simulate_plain
from schedgap.heuristics.common.improving import from_best
from schedgap.heuristics.ddl_cluster.policies import srsf_1
from schedgap.heuristics.ddljs.baselines import fifo
from schedgap.solvers.exact.ddl_cluster.block_orders import blocks_of, order_of, total_of, walk
from schedgap.solvers.exact.ddl_cluster.gangs import Block, Gangs
from schedgap.solvers.exact.ddl_cluster.lns import solve_lns as solve_gangs
from schedgap.solvers.exact.ddljs.lns import solve_lns as solve_workers
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.neighbourhoods import SHOWN, Neighbourhoods, NeighbourhoodSearch, StepOutcome, searched
from schedgap.solvers.result import Deadline, Result, SolveOptions, Status, Termination
from studies import best_known

# -- the search: gains that are proposed now and then ------------------------------------------------------------------


class Counted(Neighbourhoods):
    """Counts down from 100 by one a step; checks are counted."""

    kinds = ("any",)
    parts = 10

    def __init__(self, incumbent: Incumbent, interrupt: int = 0) -> None:
        self.incumbent, self.left, self.interrupt = incumbent, 100, interrupt

    def freed(self, kind: str, size: int, rng: np.random.Generator) -> Collection[int]:
        return [int(j) for j in rng.permutation(10)[:5]]

    def solve(self, parts: Collection[int], most_work: float) -> StepOutcome:
        if self.left == self.interrupt:
            raise KeyboardInterrupt
        self.left -= 1
        self.incumbent.work += 0.1
        return StepOutcome(better=True, complete=True)

    def value(self) -> float:
        return float(self.left)

    def solution(self) -> Solution:
        return {"left": self.left}


def _counted(**options: object) -> tuple[Incumbent, list[int]]:
    checked: list[int] = []

    def check(solution: Solution) -> CheckReport:
        checked.append(solution["left"])
        return CheckReport((), solution["left"])

    return Incumbent(MINIMISE, SolveOptions(start={"left": 100}, **options), check), checked  # type: ignore[arg-type]


def test_gains_are_checked_now_and_then_and_at_the_end() -> None:
    incumbent, checked = _counted(work_limit=6.0)
    result = searched(incumbent, lambda: Counted(incumbent))
    assert checked == [100, 100 - SHOWN, 100 - 2 * SHOWN, 40] and result.objective == 40
    assert [row[4] for row in result.info["events"]] == list(range(99, 39, -1))


def test_a_gain_that_meets_the_bound_is_checked_at_once() -> None:
    incumbent, checked = _counted(work_limit=60.0)
    incumbent.tighten(93)
    incumbent.propose({"left": 100})
    NeighbourhoodSearch(Counted(incumbent), incumbent).run()
    assert checked == [100, 93] and incumbent.proven


def test_an_interrupt_keeps_a_gain_that_was_not_checked_yet() -> None:
    incumbent, checked = _counted(work_limit=60.0)
    result = searched(incumbent, lambda: Counted(incumbent, interrupt=90))
    assert result.objective == 90 and result.termination is Termination.INTERRUPTED and checked == [100, 90]


def test_the_start_is_the_best_by_what_solutions_say_and_only_that_is_checked() -> None:
    def worse(instance: object, *, seed: int) -> Solution:
        return {"left": 70}

    def better(instance: object, *, seed: int) -> Solution:
        return {"left": 60}

    def check(instance: object, solution: Solution) -> CheckReport:
        raise AssertionError("the method that starts from it checks it")

    def improve(instance: object, options: SolveOptions) -> Result:
        return Result(Status.FEASIBLE, 0.0, None, options.start, info={})

    method = from_best(lambda: [worse, better], check, MINIMISE, improve, lambda solution: float(solution["left"]))
    instance = placed(0)
    found = method(instance, SolveOptions(start={"left": 65}))
    assert found.solution == {"left": 60} and found.info["start by"] == "better"
    assert method(instance, SolveOptions(start={"left": 50})).solution == {"left": 50}


def test_a_slow_heuristic_leaves_time_to_those_after_it_and_seconds_count_them_all() -> None:
    given: list[float] = []

    def slow(instance: object, *, seed: int, deadline: Deadline) -> None:
        left = deadline.remaining()
        assert left is not None
        given.append(left)

    def improve(instance: object, options: SolveOptions) -> Result:
        return Result(Status.UNKNOWN, solve_seconds=1000.0)

    def check(instance: object, solution: Solution) -> CheckReport:
        raise AssertionError("there is none")

    method = from_best(lambda: [slow, slow, slow], check, MINIMISE, improve)
    found = method(placed(0), SolveOptions(deadline=Deadline.after(4000.0)))
    assert given[0] <= 1000 and given[1] <= 1500 and given[2] <= 3000
    assert found.seconds is not None and found.seconds > 1000


def test_the_study_writes_as_it_goes_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def apart(name: Sequence[str]) -> best_known.Row:
        if len(asked) == 3:
            asked.append("interrupted")
            raise KeyboardInterrupt
        asked.append(name[3])
        return dict(zip(best_known.SAME, name, strict=True)) | dict.fromkeys(best_known.COLUMNS[5:])

    monkeypatch.setattr(best_known, "_apart", apart)
    out = tmp_path / "rows.csv"
    command = ["rar-ddls", "--seeds", "2", "--limit", "5", "--out", str(out)]
    with pytest.raises(KeyboardInterrupt):
        best_known.main(command)
    best_known.main(command)
    assert asked == ["0", "1", "0", "interrupted", "1"]
    best_known.main(command)
    assert len(asked) == 5 and len(out.read_text(encoding="utf-8").splitlines()) == 1 + 4


# -- ddl-cluster: jobs that are held back ------------------------------------------------------------------------------

LINK = {"latency": 0.0, "seconds_per_unit": 1.0, "contention_penalty": 0.5}
SERVERS = [{"id": "s0", "gpus": 1}, {"id": "s1", "gpus": 1}]
JOB = {"arrival": 0.0, "gpus": 2, "iterations": 2, "memory": 1.0}
ONE = {**JOB, "id": "a", "forward": 1.0, "backward": 2.0, "message": 4.0}
OTHER = {**JOB, "id": "b", "forward": 1.0, "backward": 3.0, "message": 2.0}
DATA: dict[str, Any] = {
    "problem": "ddl-cluster",
    "gpu_memory": 10.0,
    "servers": SERVERS,
    "link": LINK,
    "jobs": [ONE, OTHER],
}
TWO = DdlClusterInstance.parse(DATA)
BOTH = [["s0", 0], ["s1", 0]]
HELD: dict[str, Any] = {
    "placement": {"a": BOTH, "b": BOTH},
    "policy": "srsf-1",
    "finish": {"a": 14.0, "b": 26.0},
    "release": {"b": 14.0},
}
"""By hand: a takes 2 (1 + 2 + 4) by itself, b 2 (1 + 3 + 2)."""


def test_a_job_that_is_held_back_counts_from_its_arrival() -> None:
    report = DDL_CLUSTER.check(TWO, HELD)
    assert report.feasible and report.objective == 20 and report.details["audited"]
    late = copy.deepcopy(HELD)
    late["release"]["b"] = 15.5
    assert {violation.constraint for violation in DDL_CLUSTER.check(TWO, late).violations} == {"finish"}
    early = copy.deepcopy(HELD)
    early["release"] = {"a": -3.0}  # before its arrival: as if it were not there
    early["finish"] = srsf_1(TWO).solution["finish"]  # type: ignore[index]
    assert DDL_CLUSTER.check(TWO, early).feasible


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"release": {"z": 1.0}}, 'release: the instance has no job "z"'),
        ({"release": {"a": 1e9}}, "release.a: all jobs one after another end by"),
        ({"release": {"a": "1"}}, 'release.a: must be a number, got "1"'),
        ({"policy": None, "schedule": {}}, "release: only a policy holds jobs back"),
    ],
)
def test_releases_that_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DDL_CLUSTER.check(TWO, HELD | change)


# -- ddl-cluster: gangs ------------------------------------------------------------------------------------------------


def test_two_jobs_that_share_take_what_the_checker_says_they_take() -> None:
    gangs = Gangs(TWO)
    ends = gangs.pair(0, 1)
    assert ends is not None and gangs.pair(1, 0) == (ends[1], ends[0])
    finish = dict(zip("ab", map(gangs.clock.seconds, ends), strict=True))
    solution = HELD | {"finish": finish, "release": None}
    report = DDL_CLUSTER.check(TWO, solution)
    assert report.feasible and report.details["finish"] == solution["finish"]
    assert sum(solution["finish"].values()) < 14 + 26  # 12 + 26, one after the other, the shorter first, is 38


@pytest.mark.parametrize(
    ("change", "memory"), [({}, 1.5), ({"placement": BOTH}, 10.0), ({"gpus": 1}, 10.0), ({"message": 400.0}, 10.0)]
)
def test_jobs_that_do_not_share(change: dict[str, Any], memory: float) -> None:
    """No room for both, GPUs that are given, another width, a link that is busy anyway."""
    jobs = [ONE | ({"message": 400.0} if "message" in change else {}), OTHER | change]
    assert Gangs(DdlClusterInstance.parse(DATA | {"jobs": jobs, "gpu_memory": memory})).pair(0, 1) is None


@pytest.mark.parametrize("seed", range(4))
def test_laid_blocks_finish_when_the_checker_says_they_do(seed: int) -> None:
    """On servers of different sizes, with jobs that share, and jobs whose GPUs are given, on links that they share."""
    data = trained(seed, jobs=10).to_dict()
    data["servers"] += [{"id": "wide", "gpus": 3}]
    data["jobs"][3] |= {"gpus": 2, "placement": [["s0", 0], ["wide", 1]]}
    data["jobs"][4] |= {"gpus": 2, "placement": [["s0", 1], ["wide", 0]]}
    for job in data["jobs"][5:7]:
        job["gpus"] = 5
    instance = DdlClusterInstance.parse(data)
    gangs = Gangs(instance)
    rng = np.random.default_rng(seed)
    for groups in ([(j,) for j in range(10)], gangs.matched()):
        moments = rng.uniform(0, 4e10, len(groups)).astype(int).tolist()
        drawn = gangs.lay(Block(own, start) for own, start in zip(groups, moments, strict=True))
        for laid in (drawn, gangs.listed(groups)):
            solution = gangs.solution(laid)
            report = DDL_CLUSTER.check(instance, solution)
            assert report.feasible and report.details["finish"] == pytest.approx(solution["finish"], rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_a_walk_adds_up_what_laying_the_blocks_gives_and_repeats_itself(seed: int) -> None:
    data = trained(seed, jobs=14).to_dict()
    data["servers"] += [{"id": "wide", "gpus": 3}]
    for job in data["jobs"][:8]:
        job["gpus"] = 4
    data["jobs"][9]["gpus"] = 9
    gangs = Gangs(DdlClusterInstance.parse(data))
    tables = gangs.tables()
    rng = np.random.default_rng(seed)
    groups = gangs.matched()
    assert any(len(own) == 2 for own in groups)
    blocks = [groups[place] for place in rng.permutation(len(groups))]
    free = np.zeros((5, 4), dtype=np.int64)
    order = order_of(blocks, 14)
    assert blocks_of(order) == blocks
    drawn = gangs.lay(Block(own, place) for place, own in enumerate(blocks)).total
    assert total_of(tables, order, free) == drawn
    found = []
    for _ in range(2):
        best, now, trial = (order_of(blocks, 14) for _ in range(3))
        least = walk(tables, best, now, trial, free, 3000, 0.01 * drawn, np.array([seed]))
        found.append(blocks_of(best))
        assert sorted(j for own in found[-1] for j in own) == list(range(14))
        assert least == gangs.lay(Block(own, place) for place, own in enumerate(found[-1])).total < drawn
    assert found[0] == found[1]


@pytest.mark.parametrize("message", [1.00003e-10, 3.3e-8, 123.456789])
def test_a_job_by_itself_takes_the_simulators_ticks(message: float) -> None:
    """The simulators let go of a thousandth of a tick, with messages of a tick as well."""
    instance = DdlClusterInstance.parse(DATA | {"jobs": [ONE | {"message": message, "iterations": 7}]})
    gangs = Gangs(instance)
    placement = [[(0, 0), (1, 0)]]
    assert gangs.alone == list(simulate_plain(instance, placement, "srsf-1").finish_ticks)


def test_coarse_ticks_and_many_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    years = [job | {"iterations": 10**6, "forward": 40.0} for job in (ONE, OTHER)]
    gangs = Gangs(DdlClusterInstance.parse(DATA | {"jobs": years}))
    assert gangs.clock.digits < 10 and not gangs.pairs and gangs.matched() == [(0,), (1,)]
    assert Gangs(TWO).pairs
    monkeypatch.setattr("schedgap.solvers.exact.ddl_cluster.gangs.MOST_PAIRED", 1)
    assert not Gangs(TWO).pairs


def _gangs(seed: int) -> tuple[DdlClusterInstance, Result]:
    instance = trained(seed, jobs=10, seconds=1.0)
    start = srsf_1(instance).solution
    return instance, solve_gangs(instance, SolveOptions(work_limit=0.1, threads=1, seed=seed, start=start))


def test_ddl_cluster_improves_and_repeats_itself() -> None:
    instance, first = _gangs(0)
    _, second = _gangs(0)
    assert first.info == second.info and first.solution == second.solution
    assert first.info["events"] and first.objective < first.info["start"]  # type: ignore[operator]
    assert float(DDL_CLUSTER.check(instance, first.solution or {}).objective or 0) == first.objective
    assert first.info["events"][-1][4] == pytest.approx(first.objective, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_ddl_cluster_is_never_worse_than_the_start_and_keeps_given_placements(seed: int) -> None:
    instance = placed(seed)
    proven = run_method(DDL_CLUSTER, instance, "cp", SolveOptions(work_limit=5.0, threads=1))
    found = run_method(DDL_CLUSTER, instance, "lns", SolveOptions(work_limit=0.2, threads=1))
    assert proven.objective is not None and found.objective is not None
    assert proven.objective * (1 - 1e-9) <= found.objective <= found.info["start"]


# -- ddljs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_ddljs_reaches_the_optimum_of_tiny_instances(seed: int) -> None:
    instance = tiny(seed)
    proven = run_method(DDLJS, instance, "cpsat", SolveOptions(work_limit=20.0, threads=1))
    found = run_method(DDLJS, instance, "lns", SolveOptions(work_limit=0.3, threads=1))
    assert proven.status is Status.OPTIMAL and found.objective == pytest.approx(proven.objective, rel=1e-9)


def _workers(seed: int) -> Result:
    instance = small(seed, jobs=8, horizon=8)
    start = fifo(instance, seed=seed).solution
    return solve_workers(instance, SolveOptions(work_limit=0.3, threads=1, seed=seed, start=start))


def test_ddljs_improves_on_links_that_hold_few_rings_and_repeats_itself() -> None:
    first, second = _workers(1), _workers(1)
    assert first.info == second.info and first.solution == second.solution
    assert first.info["events"] and first.objective > first.info["start"]  # type: ignore[operator]


def test_ddljs_is_proven_where_no_job_misses_anything() -> None:
    instance = paper(0, jobs=10, servers=20, horizon=40, steepness=0.01)
    found = run_method(DDLJS, instance, "lns", SolveOptions(work_limit=0.3, threads=1))
    assert found.status is Status.OPTIMAL and found.objective == pytest.approx(found.bound, rel=1e-9)


def test_ddljs_where_nothing_can_run() -> None:
    data = tiny(0).to_dict()
    for server in data["servers"]:
        server["resources"] = dict.fromkeys(server["resources"], 0.0)
    instance = DDLJS.instance_class.parse(data)
    found = run_method(DDLJS, instance, "lns", SolveOptions(work_limit=0.3, threads=1))
    assert found.solution is not None and found.objective == found.info["start"]

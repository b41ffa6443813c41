"""What a stranger answers costs a checker work in proportion to its size: lines that are run are counted, no time.

The judge of a scheduler checks whatever comes within the bounds of an answer, without a limit of time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from schedgap.benchmarks.instances import make_instance
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.ddl_cluster import check_schedule
from schedgap.formulations.gpu_sharing import check as gpu_sharing
from schedgap.formulations.rar_ddls import check as rar_ddls

Case = Callable[[dict[str, Any], int], dict[str, Any]]


def copies(data: dict[str, Any], key: str, count: int, **changes: object) -> list[str]:
    """Put so many of the first job or task in place of all; their names."""
    first = data[key][0]
    data[key] = [{**first, "id": f"x{k}", **changes} for k in range(count)]
    return [one["id"] for one in data[key]]


def all_on_all_gpus(data: dict[str, Any], n: int) -> dict[str, Any]:
    """Every job on every GPU of gpu-sharing, one after another, for long."""
    jobs = copies(data, "jobs", n, arrival=1, iterations=10**6)
    data["interference"] = {}
    gpus = [[server["id"], k] for server in data["servers"] for k in range(server["gpus"])]
    start = {job: 1 + k for k, job in enumerate(jobs)}
    return {"start": start, "gpus": dict.fromkeys(jobs, gpus), "accumulation": dict.fromkeys(jobs, 1)}


def all_on_all_servers(data: dict[str, Any], n: int) -> dict[str, Any]:
    """Rings of rar-ddls that all cross all servers."""
    jobs = copies(data, "jobs", n, gpus=2, iterations=10**6)
    placed = {server["id"]: 1 for server in data["servers"]}
    return {"start": {job: 1 + k for k, job in enumerate(jobs)}, "placement": dict.fromkeys(jobs, placed)}


def all_transfers_at_once(data: dict[str, Any], n: int) -> dict[str, Any]:
    """All-reduces of ddl-cluster of all iterations of a job, which begin while all others are active."""
    data["servers"] = [{"id": name, "gpus": 1} for name in "ab"]
    jobs = copies(data, "jobs", 2, arrival=0.0, gpus=2, iterations=n, placement=None, message=100.0)
    none = [[0.0, 0.0]] * n
    times = {"forward": none, "backward": none, "allreduce": [k / 977 for k in range(n)]}
    placed = {job: [["a", 0], ["b", 0]] for job in jobs}
    return {"placement": placed, "finish": dict.fromkeys(jobs, 1.0), "schedule": dict.fromkeys(jobs, times)}


def all_jobs_in_one_memory(data: dict[str, Any], n: int) -> dict[str, Any]:
    """Jobs of ddl-cluster that all hold the same GPU's memory."""
    jobs = copies(data, "jobs", n, arrival=0.0, gpus=1, iterations=1, placement=None, memory=data["gpu_memory"])
    gpu = [[data["servers"][0]["id"], 0]]
    times = {job: {"forward": [[k / 7]], "backward": [[1e6]]} for k, job in enumerate(jobs)}
    return {"placement": dict.fromkeys(jobs, gpu), "finish": dict.fromkeys(jobs, 1.0), "schedule": times}


def a_ring_of_many(data: dict[str, Any], n: int) -> dict[str, Any]:
    """A ring whose workers and routes go to and fro."""
    ends = [server["id"] for server in data["servers"][:2]] * n
    return {data["jobs"][0]["id"]: {"workers": ends, "routes": [ends] + [ends[:2]] * (2 * n - 1)}}


def rings(data: dict[str, Any], n: int) -> dict[str, Any]:
    """One of many workers, of g-vne."""
    return {"rings": a_ring_of_many(data, n)}


def rings_by_slot(data: dict[str, Any], n: int) -> dict[str, Any]:
    """The same in every slot of ddljs."""
    return {"slots": [{"rings": a_ring_of_many(data, n)}] * data["horizon"]}


def many_runs(data: dict[str, Any], n: int) -> dict[str, Any]:
    """Runs of every job of hadar in slots far beyond the horizon."""
    machine = data["machines"][0]
    devices = [{"machine": machine["id"], "type": kind, "gpus": 10**9} for kind in machine["gpus"]]
    return {"allocation": {job["id"]: [[k, k, devices] for k in range(1, n)] for job in data["jobs"]}}


def many_starts(data: dict[str, Any], n: int) -> dict[str, Any]:
    """Transfers of comm-contention that each interrupt all before, none of them released."""
    return {"start": {task: k / 1e6 for k, task in enumerate(copies(data, "tasks", n, release=1.0, size=1.0))}}


def many_pods(data: dict[str, Any], n: int) -> dict[str, Any]:
    """Pods of gang-placement that are not asked for, on devices that are not there."""
    node = data["nodes"][0]["id"]
    pods = [{"group": 0, "node": node, "devices": list(range(5))}] * n
    return {"placement": {gang["id"]: pods for gang in data["gangs"]}}


CASES: dict[str, tuple[str, Case]] = {
    "gpu-sharing": ("gpu-sharing", all_on_all_gpus),
    "rar-ddls": ("rar-ddls", all_on_all_servers),
    "ddl-cluster, transfers": ("ddl-cluster", all_transfers_at_once),
    "ddl-cluster, memory": ("ddl-cluster", all_jobs_in_one_memory),
    "g-vne": ("g-vne", rings),
    "ddljs": ("ddljs", rings_by_slot),
    "hadar": ("hadar", many_runs),
    "comm-contention": ("comm-contention", many_starts),
    "gang-placement": ("gang-placement", many_pods),
}


def work_of(problem_id: str, case: Case, n: int) -> tuple[int, int]:
    """Lines that the checker runs for an answer, and letters of all that it says."""
    problem = find_problem(problem_id)
    data = make_instance(problem, "tiny").to_dict()
    solution = case(data, n)
    instance = problem.instance_class.parse(data)
    lines = 0

    def count(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        said = [violation.message for violation in problem.check(instance, solution).violations]
    except InputError as refused:
        said = [str(refused)]
    finally:
        sys.settrace(before)
    assert said, "each of these breaks something"
    return lines, sum(map(len, said))


@pytest.mark.parametrize("name", CASES)
def test_twice_the_answer_is_about_twice_the_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds for what lies on each other are lowered, so that small answers meet them."""
    monkeypatch.setattr(gpu_sharing, "MOST_BEYOND", 2_000)
    monkeypatch.setattr(rar_ddls, "MOST_BEYOND", 2_000)
    monkeypatch.setattr(check_schedule, "LONGEST_REPLAY", 2_000)
    problem, case = CASES[name]
    work_of(problem, case, 2)  # what is imported and kept at first
    (once, told), (twice, told_twice) = (work_of(problem, case, n) for n in (40, 80))
    assert twice < 2.8 * once and told_twice < 2.8 * told


def test_what_is_beyond_a_capacity_is_told_also_where_it_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever breaks it so often that the checker gives up reads which rule, and there is no objective."""
    monkeypatch.setattr(gpu_sharing, "MOST_BEYOND", 100)
    monkeypatch.setattr(rar_ddls, "MOST_BEYOND", 100)
    for problem_id, case, rule in (
        ("gpu-sharing", all_on_all_gpus, "cap"),
        ("rar-ddls", all_on_all_servers, "capacity"),
    ):
        problem = find_problem(problem_id)
        data = make_instance(problem, "tiny").to_dict()
        solution = case(data, 40)
        report = problem.check(problem.instance_class.parse(data), solution)
        assert report.objective is None and rule in {violation.constraint for violation in report.violations}

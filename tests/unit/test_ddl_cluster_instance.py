"""Bad instances of ddl-cluster: one line that names the place and the value."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.ddl_cluster.clock import LARGEST_TICK, clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance

BASE: dict[str, Any] = {
    "problem": "ddl-cluster",
    "name": "v100",
    "gpu_memory": 16384,
    "servers": [{"id": "s0", "gpus": 4}, {"id": "s1", "gpus": 4}],
    "link": {"latency": 6.69e-4, "seconds_per_unit": 8.53e-4, "contention_penalty": 2.6e-4},
    "jobs": [
        {
            "id": "j0",
            "arrival": 0.0,
            "gpus": 8,
            "iterations": 3000,
            "forward": 0.0358,
            "backward": 0.0537,
            "message": 526.4,
            "memory": 4527,
        },
        {
            "id": "j1",
            "arrival": 1.5,
            "gpus": 2,
            "iterations": 2,
            "forward": 0.025,
            "backward": 0.0374,
            "message": 99.2,
            "memory": 3213,
            "placement": [["s0", 0], ["s1", 3]],
        },
    ],
}

Change = Callable[[dict[str, Any]], None]


def _set(*path: Any, value: Any) -> Change:
    def change(data: dict[str, Any]) -> None:
        place: Any = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


BAD: list[tuple[Change, str]] = [
    (_set("jobs", 0, "gpus", value=9), 'jobs[0] ("j0"): needs 9 GPUs, the cluster has 8'),
    (_set("jobs", 0, "gpus", value=0), "jobs[0].gpus: "),
    (_set("jobs", 0, "gpus", value=1.5), "jobs[0].gpus: "),
    (_set("jobs", 0, "memory", value=20000), 'jobs[0] ("j0"): needs 20000 MB on each GPU, a GPU has 16384'),
    (_set("jobs", 0, "memory", value=-1.0), "jobs[0].memory: "),
    (_set("jobs", 0, "forward", value=0.0), "jobs[0].forward: "),
    (_set("jobs", 0, "backward", value=0), "jobs[0].backward: "),
    (_set("jobs", 0, "message", value=0.0), "jobs[0].message: "),
    (_set("jobs", 0, "message", value=float("nan")), "jobs[0].message: "),
    (_set("jobs", 0, "arrival", value=-0.5), "jobs[0].arrival: "),
    (_set("jobs", 0, "arrival", value=float("inf")), "jobs[0].arrival: "),
    (_set("jobs", 0, "iterations", value=0), "jobs[0].iterations: "),
    (_set("jobs", 0, "iterations", value=True), "jobs[0].iterations: "),
    (_set("jobs", 0, "priority", value=1), "jobs[0].priority: unknown key"),
    (_set("jobs", 1, "id", value="j0"), 'jobs[1].id: "j0" is already the id of jobs[0]'),
    (_set("jobs", value=[]), "jobs: "),
    (_set("servers", 1, "id", value="s0"), 'servers[1].id: "s0" is already the id of servers[0]'),
    (_set("servers", 1, "gpus", value=0), "servers[1].gpus: "),
    (
        _set("servers", 1, "gpus", value=10**9),
        "servers[1].gpus: 1000000000 GPUs make 1000000004 with the servers before, at most 1000000 are supported",
    ),
    (_set("servers", 1, "gpus", value=999_997), "servers[1].gpus: 999997 GPUs make 1000001"),
    (_set("gpu_memory", value=0), "gpu_memory: "),
    (_set("link", "seconds_per_unit", value=0), "link.seconds_per_unit: "),
    (_set("link", "latency", value=-1e-9), "link.latency: "),
    (_set("link", "contention_penalty", value=float("nan")), "link.contention_penalty: "),
    (_set("jobs", 1, "placement", value=[["s0", 0]]), 'jobs[1] ("j1").placement: 1 GPUs given, needs 2'),
    (_set("jobs", 1, "placement", value=[]), "jobs[1].placement: "),
    (_set("jobs", 1, "placement", 1, value=["s2", 0]), 'jobs[1].placement[1]: there is no server "s2"'),
    (_set("jobs", 1, "placement", 1, value=["s1", 4]), "jobs[1].placement[1]: server s1 has GPUs 0 to 3, got 4"),
    (_set("jobs", 1, "placement", 1, value=["s1", -1]), "jobs[1].placement[1][1]: "),
    (_set("jobs", 1, "placement", 1, value=["s1", 0.5]), "jobs[1].placement[1][1]: "),
    (_set("jobs", 1, "placement", 1, value=["s1"]), "jobs[1].placement[1]"),
    (_set("jobs", 1, "placement", 1, value=["s0", 0]), "GPU 0 of s0 is already at jobs[1].placement[0]"),
    (_set("jobs", 0, "forward", value=1e9), "jobs: all tasks one after another take"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message for _, message in BAD])
def test_a_bad_instance_is_one_line(change: Change, message: str) -> None:
    data = copy.deepcopy(BASE)
    change(data)
    with pytest.raises(InputError) as error:
        DdlClusterInstance.parse(data, "file.json")
    text = str(error.value)
    assert text.startswith("file.json: ")
    assert message in text
    assert "\n" not in text


def test_there_and_back() -> None:
    instance = DdlClusterInstance.parse(BASE)
    assert DdlClusterInstance.parse(instance.to_dict()) == instance
    assert instance.given == (None, ((0, 0), (1, 3)))
    assert (instance.total_gpus, instance.first_gpu) == (8, (0, 4))


def test_the_clock_is_exact_where_decimals_are_short() -> None:
    clock = clock_of(DdlClusterInstance.parse(BASE))
    assert clock.digits == 12
    assert clock.arrival == (0, 15 * 10**11)
    assert clock.forward == (358 * 10**8, 250 * 10**8)
    assert clock.latency == 669_000_000
    assert clock.solo == (669_000_000 + 449_019_200_000, 669_000_000 + 84_617_600_000)
    assert clock.seconds(clock.solo[0]) == 0.4496882 + 0.0002 - 0.0002


def test_the_clock_coarsens_only_for_years() -> None:
    data = copy.deepcopy(BASE)
    data["jobs"][0]["arrival"] = 9.9e10
    instance = DdlClusterInstance.parse(data)
    clock = clock_of(instance)
    assert clock.digits == 7
    assert instance.longest_run * 10**clock.digits < LARGEST_TICK
    assert clock.forward[0] == 358_000


def test_durations_are_rounded_up() -> None:
    data = copy.deepcopy(BASE)
    data["jobs"][0]["forward"] = 1e-14
    data["jobs"][0]["backward"] = 0.1234567890123
    clock = clock_of(DdlClusterInstance.parse(data))
    assert clock.digits == 12
    assert (clock.forward[0], clock.backward[0]) == (1, 123_456_789_013)

"""``schedgap judge`` of what Slurm, Ray and openb list: read, judged, and what is wrong refused in one line."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import schedgap
from schedgap.benchmarks.importers import rows, slurm
from schedgap.cli.main import main
from schedgap.tools.judge.reading import read_snapshot
from schedgap.tools.judge.slurm.queue import EVEN

NODE = (
    "NodeName={name} CoresPerSocket=1\n   CPUAlloc=0 CPUTot=32\n   Gres=gpu:{kind}:8(S:0-1)\n   RealMemory={memory}"
    " AllocMem=0\n   State={state}\n   Partitions=gpu \n\n"
)


def slurm_nodes(*, state: str = "IDLE", memory: str = "1000") -> str:
    kinds = {"n1": "v100", "n2": "v100", "n3": "a100", "n4": "a100"}
    return "".join(
        NODE.format(name=name, kind=kind, memory=memory, state=state if name == "n4" else "MIXED+CLOUD")
        for name, kind in kinds.items()
    )


def job(number: int, state: str, gpus: int, nodes: int = 1, where: str = "", kind: str = "", **more: Any) -> Any:
    """As ``squeue --json`` of Slurm 22.05 writes it; newer ones wrap numbers and list states."""
    tres = f"cpu={nodes},mem={nodes}M,node={nodes},billing=1,gres/gpu={gpus}" + (
        f",gres/gpu:{kind}={gpus}" if kind else ""
    )
    told = {
        "job_id": number,
        "job_state": state,
        "nodes": where,
        "node_count": nodes,
        "cpus": nodes,
        "partition": "gpu",
    }
    told |= {"priority": 1000 - number, "tres_req_str": tres, "tres_alloc_str": tres if where else ""}
    return told | {"excluded_nodes": "", "required_nodes": "", "features": "", "dependency": "", "licenses": ""} | more


def squeue() -> Any:
    return {
        "meta": {},
        "jobs": [
            job(1, "RUNNING", 2, where="n1"),
            job(2, "CONFIGURING", 4, where="n2"),
            job(3, "PENDING", 16, 2),
            {**job(4, "PENDING", 8, kind="a100"), "job_state": ["PENDING"], "priority": {"set": True, "number": 996}},
            job(5, "PENDING", 1, required_nodes="n1"),
            job(6, "PENDING", 1, excluded_nodes="n[1-3]"),
            job(7, "COMPLETED", 1),
        ],
    }


def written(folder: Path, data: Any, nodes: Any, suffix: str = "json") -> list[str]:
    paths = [folder / f"snapshot.{suffix}", folder / "nodes"]
    for path, content in zip(paths, (data, nodes), strict=True):
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return [str(path) for path in paths]


def test_slurm(tmp_path: Path) -> None:
    """The large jobs take the three whole nodes, so the job that may only go to n4 is lost."""
    snapshot, nodes = written(tmp_path, squeue(), slurm_nodes())
    read = read_snapshot(snapshot, nodes=nodes, names=True)
    assert read.form == "slurm" and read.unread == {"jobs that are COMPLETED": 1}
    assert [sum(node.gpus) for node in read.instance.nodes] == [6000, 8000, 8000, 8000]
    assert [(g.id, g.size, g.pods[0].gpu, g.per_node) for g in read.instance.gangs[:3]] == [
        ("2", 1, 4000, None),
        ("3", 2, 8000, 1),
        ("4", 1, 8000, None),
    ]
    assert read.decision == {"placement": {"2": [{"group": 0, "node": "n2", "devices": [0, 1, 2, 3]}]}}
    found = schedgap.judge(snapshot, nodes, names=True)
    assert found.report.feasible and found.deciding == ("weight", 4, 29, True)
    assert {lost.gang: lost.fits for lost in found.lost} == {"3": True, "4": True, "5": True, "6": False}
    hidden = json.dumps(schedgap.judge(snapshot, nodes).to_dict())
    assert '"n1"' not in hidden and '"gang-0"' in hidden


def test_slurm_nodes_that_are_drained_take_nothing_new(tmp_path: Path) -> None:
    snapshot, nodes = written(tmp_path, squeue(), slurm_nodes(state="IDLE+DRAIN"))
    found = schedgap.judge(snapshot, nodes, names=True)
    assert found.unread["nodes that take no new jobs (down, drained, reserved)"] == 1
    lost = {one.gang: one for one in found.lost}
    assert lost["6"].alone is False and "would fit on nodes that do not take it" in lost["6"].line()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_a_person_wrote_about_a_node_does_not_count(end: str, tmp_path: Path) -> None:
    """Also with the line ends of Windows, which are no cut text."""
    told = "   {}=check Gres=gpu:v100:1 State=DOWN RealMemory=7\n"
    first = "NodeName=n0 CPUTot=8\n" + told.format("Comment") + "   Gres=gpu:v100:4 RealMemory=100\n   State=IDLE\n"
    first += told.format("Reason") + told.format("Extra") + "   Gres=gpu:v100:2\n\n"
    snapshot, nodes = written(tmp_path, squeue(), "")
    Path(nodes).write_bytes((first + slurm_nodes()).replace("\n", end).encode())
    read = read_snapshot(snapshot, nodes=nodes, names=True)
    assert [len(node.gpus) for node in read.instance.nodes] == [4, 8, 8, 8, 8]
    assert read.instance.nodes[0].free["memory"] == 100 and read.unread == {"jobs that are COMPLETED": 1}
    Path(nodes).write_bytes((first + slurm_nodes()).rstrip().replace("\n", end).encode())  # as after a paste
    assert read_snapshot(snapshot, nodes=nodes, names=True).instance == read.instance


FIELD = Path(__file__).parents[2] / "data" / "field"
LIVE = (str(FIELD / "squeue-22.05.json"), str(FIELD / "scontrol-nodes-live.txt"))
"""A real Slurm 22.05.8 while jobs ran and waited; tests/data/field/README.md says how it was made."""


def test_what_runs_on_a_real_slurm_is_what_its_nodes_say() -> None:
    """Also of a job that has four GPUs on one node and one on the other."""
    read = read_snapshot(LIVE[0], nodes=LIVE[1], names=True)
    taken = {
        line.split("gres/gpu=")[1].split(",")[0] for line in Path(LIVE[1]).read_text().split() if "AllocTRES" in line
    }
    assert taken == {"5", "7", "4"}  # n1 and n2 have five each
    assert [8000 - sum(node.gpus) for node in read.instance.nodes] == [5000, 5000, 7000, 4000]
    runs = {pod.id: sum(pod.devices.values()) for pod in read.instance.running}
    assert (runs["19 on n3"], runs["19 on n4"], runs["4 on n1"], runs["5"]) == (4000, 1000, 3000, 0)
    cpus = [32000 - node.free["cpu"] for node in read.instance.nodes]
    assert cpus == [9000, 1000, 6000, 2000]
    memory = [64000 - node.free["memory"] for node in read.instance.nodes]
    assert memory == [13000, 1000, 10000, 2000]


@pytest.mark.parametrize("parts", [(3, 5), (7, 1), (8, 0)])
def test_gpus_are_where_slurm_says_also_where_they_would_divide(parts: tuple[int, int], tmp_path: Path) -> None:
    """A job with 8 GPUs on two nodes was read as 4 and 4, and one that waits for 4 on the fuller one as fitting."""
    detail = [f"gpu:{part}(IDX:0)" for part in parts]
    runs = job(1, "RUNNING", 8, nodes=2, where="n[1-2]", gres_detail=detail)
    snapshot, nodes = written(tmp_path, {"jobs": [runs]}, slurm_nodes())
    read = read_snapshot(snapshot, nodes=nodes, names=True)
    assert [sum(pod.devices.values()) // 1000 for pod in read.instance.running] == list(parts) and not read.unread
    del runs["gres_detail"]
    read = read_snapshot(written(tmp_path, {"jobs": [runs]}, slurm_nodes())[0], nodes=nodes)
    assert read.unread == {"jobs that run and do not tell the GPUs on each node, taken as equal": 1}


@pytest.mark.parametrize(
    "state", ["COMPLETING", ["COMPLETED", "COMPLETING"], "SUSPENDED", ["RUNNING", "COMPLETING"], ["SUSPENDED"]]
)
def test_jobs_that_complete_or_are_suspended_hold_what_they_have(state: Any, tmp_path: Path) -> None:
    jobs = [{**job(1, "RUNNING", 8, where="n1"), "job_state": state}, job(9, "PENDING", 8, required_nodes="n1")]
    snapshot, nodes = written(tmp_path, {"jobs": jobs}, slurm_nodes())
    read = read_snapshot(snapshot, nodes=nodes, names=True)
    assert [pod.id for pod in read.instance.running] == ["1"] and sum(read.instance.nodes[0].gpus) == 0
    assert not read.unread and not read.decision["placement"]


def test_of_a_job_that_completes_the_nodes_that_are_left_hold_their_share(tmp_path: Path) -> None:
    jobs = [{**job(1, "COMPLETING", 15, nodes=3, where="n[1-3]"), "nodes": "n[1-2]"}]
    read = read_snapshot(written(tmp_path, {"jobs": jobs}, slurm_nodes())[0], nodes=tmp_path / "nodes", names=True)
    assert [sum(pod.devices.values()) for pod in read.instance.running] == [5000, 5000]


def test_a_job_that_is_being_configured_is_the_decision_in_newer_words(tmp_path: Path) -> None:
    jobs = [{**job(1, "", 8, where="n1"), "job_state": ["RUNNING", "CONFIGURING"]}]
    read = read_snapshot(written(tmp_path, {"jobs": jobs}, slurm_nodes())[0], nodes=tmp_path / "nodes", names=True)
    assert list(read.decision["placement"]) == ["1"] and not read.instance.running


def test_what_nodes_say_is_taken_counts_where_jobs_are_hidden(tmp_path: Path) -> None:
    """With PrivateData a user sees the own jobs alone; one that is being configured is the decision, not hidden."""
    jobs = [job(1, "RUNNING", 2, where="n1"), job(2, "CONFIGURING", 4, where="n2")]
    said = slurm_nodes().replace("CPUAlloc=0", "CPUAlloc=8 CPUEfctv=30").replace("AllocMem=0", "AllocMem=100")
    told = said.replace("Partitions=gpu", "Partitions=gpu\n   AllocTRES=cpu=8,mem=100M,gres/gpu=6,gres/gpu:v100=6")
    snapshot, nodes = written(tmp_path, {"jobs": jobs}, told)
    read = read_snapshot(snapshot, nodes=nodes, names=True)
    assert [sum(node.gpus) for node in read.instance.nodes] == [2000, 6000, 2000, 2000]
    assert read.unread == {"GPUs that nodes say are taken, and no job that is listed has": 18}
    assert [node.free for node in read.instance.nodes[:2]] == [
        {"cpu": 22000, "memory": 900},
        {"cpu": 23000, "memory": 901},
    ]


@pytest.mark.parametrize(("most", "fate"), [(0, "fits"), (2, "may"), (1, "barred")])
def test_gpus_of_a_whole_job_may_be_on_several_nodes(most: int, fate: str, tmp_path: Path) -> None:
    """``--gpus=9`` was one pod of nine devices, certified to fit nowhere; Slurm gives it two nodes."""
    asked = job(20, "PENDING", 9, tres_per_job="gres:gpu:9", max_nodes=most)
    snapshot, nodes = written(tmp_path, {"jobs": [asked]}, slurm_nodes())
    found = schedgap.judge(snapshot, nodes, names=True)
    assert found.lost[0].fate == fate
    assert found.snapshot.facts.relaxed == ({"20": ("how many nodes it may have",)} if fate == "may" else {})


@pytest.mark.parametrize(("nodes", "cpus", "rests"), [(4, 100, True), (1, 40, False)])
def test_what_rests_on_equal_shares_of_processors_says_so(nodes: int, cpus: int, rests: bool, tmp_path: Path) -> None:
    """25 processors a node do not fit where one node has 24; Slurm may give 24 there and more elsewhere."""
    few = slurm_nodes().replace("CPUTot=32", "CPUTot=24", 1)
    asked = job(20, "PENDING", nodes, nodes, cpus=cpus)
    snapshot, listed = written(tmp_path, {"jobs": [asked]}, few)
    (lost,) = schedgap.judge(snapshot, listed, names=True).lost
    if rests:
        assert lost.fate == "may" and lost.reasons == (f"may fit: {EVEN}",)
    else:
        assert lost.reasons == ("would fit without its request for cpu: 40 a pod of 1, at most 32 free on a node",)


def test_a_job_of_several_parts_is_left_out_as_a_whole(tmp_path: Path) -> None:
    """Of two parts, one with 3 GPUs on two nodes, the other was a gang of its own."""
    parts = [job(5, "PENDING", 2, het_job_id=5), job(6, "PENDING", 3, nodes=2, het_job_id=5), job(7, "PENDING", 1)]
    read = read_snapshot(written(tmp_path, {"jobs": parts}, slurm_nodes())[0], nodes=tmp_path / "nodes", names=True)
    assert [gang.id for gang in read.instance.gangs] == ["7"]
    assert read.unread == {"jobs whose GPUs are not as many on each node": 1}


@pytest.mark.parametrize(
    ("state", "opened_as"),
    [
        ("IDLE+PLANNED", "nodes that Slurm keeps for a planned job, read as open"),
        ("IDLE+CLOUD+POWERED_DOWN", "nodes that are powered down, read as open"),
        ("IDLE+PLANNED+DRAIN", None),
        ("IDLE+POWERING_DOWN", None),
    ],
)
def test_what_the_scheduler_itself_keeps_is_open(state: str, opened_as: str | None, tmp_path: Path) -> None:
    """A node that backfill plans for was closed, and the job that waits for it would fit."""
    jobs = [job(9, "PENDING", 8, required_nodes="n4")]
    snapshot, nodes = written(tmp_path, {"jobs": jobs}, slurm_nodes(state=state))
    found = schedgap.judge(snapshot, nodes, names=True)
    assert found.lost[0].fits is (opened_as is not None)
    assert found.unread == {opened_as or "nodes that take no new jobs (down, drained, reserved)": 1}


@pytest.mark.parametrize("asked", [{"exclusive": ["true"]}, {"shared": "none"}, {"shared": ["none"]}])
def test_jobs_that_ask_for_whole_nodes_fit_but_for_that(asked: Any, tmp_path: Path) -> None:
    jobs = [job(9, "PENDING", 1, **asked), job(8, "RUNNING", 1, where="n1", **asked), job(7, "PENDING", 1, shared=[])]
    read = read_snapshot(written(tmp_path, {"jobs": jobs}, slurm_nodes())[0], nodes=tmp_path / "nodes", names=True)
    assert read.facts.relaxed == {"9": ("a node for itself",)} and [gang.id for gang in read.instance.gangs] == ["7"]
    assert [gang.id for gang in read.outward.gangs] == ["7", "9"]


def test_nodes_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that they may come from a pipe."""
    reads: list[object] = []

    def counted(path: str | Path) -> Any:
        reads.append(path)
        return rows.opened(path)

    monkeypatch.setattr("schedgap.benchmarks.importers.slurm.opened", counted)
    assert [node[:3] for node in slurm.slurm_nodes(LIVE[1])] == [
        (f"n{n}", 8, "v100" if n < 3 else "a100") for n in range(1, 5)
    ]
    assert reads == [LIVE[1]]


@pytest.fixture
def at_the_head(tmp_path: Path) -> tuple[str, str]:
    """The real Slurm as if no job waited behind another one."""
    text = Path(LIVE[0]).read_text().replace('"Priority"', '"Resources"')
    (tmp_path / "squeue.json").write_text(text)
    return str(tmp_path / "squeue.json"), LIVE[1]


def test_what_waits_on_a_real_slurm(at_the_head: tuple[str, str]) -> None:
    read = read_snapshot(at_the_head[0], nodes=at_the_head[1], names=True)
    gangs = {gang.id: gang for gang in read.outward.gangs} | {gang.id: gang for gang in read.instance.gangs}
    assert not {"13", "14", "21"} & set(gangs)  # of another job, held, later
    assert [name for name in gangs if name.startswith("12")] == ["12_0", "12_1", "12_2", "12_3"]
    assert (gangs["16"].size, gangs["16"].pods[0].gpu, gangs["16"].per_node) == (2, 4000, 1)  # 2 to 3 nodes
    assert (gangs["18"].size, gangs["18"].pods[0].gpu, gangs["18"].per_node) == (12, 1000, None)  # GPUs by task
    assert (gangs["17"].size, gangs["20"].size, gangs["20"].pods[0].gpu) == (6, 9, 1000)  # --gpus of the whole job
    assert gangs["17"].pods[0].request == {"cpu": 667, "memory": 667}  # of 4 processors and 4000 MiB
    assert not gangs["20"].pods[0].request  # which may have two nodes: in no restricted reading
    assert [group.gpu for group in gangs["24"].pods] == [1000, 8000] and "25" not in gangs  # heterogeneous
    assert gangs["15"].pods[0].request["memory"] == 63000
    assert read.unread == {
        "nodes that take no new jobs (down, drained, reserved)": 1,
        "jobs that may not start yet (Dependency)": 1,
        "jobs that may not start yet (BeginTime)": 1,
        "jobs that may not start yet (JobHeldUser)": 1,
        "parts of heterogeneous jobs that may share a node": 1,
    }


def test_a_real_slurm_is_judged(at_the_head: tuple[str, str]) -> None:
    """Job 22 fits on n1 now; Slurm's backfill kept it waiting, since it would end after a larger one should begin.

    So does job 17, whose six GPUs may be on several nodes; job 20 wants nine, and eight are free where it may go.
    """
    kept = schedgap.judge(*LIVE, names=True)
    assert kept.verdict.startswith("0 to 8 of 129 waiting GPUs could run now, the scheduler placed 0: 2 gangs fit but")
    found = schedgap.judge(*at_the_head, names=True)
    assert found.deciding == ("weight", 0, 8, True) and found.best.status == "optimal"
    told = {lost.gang: lost.line() for lost in found.lost}
    assert [name for name, line in told.items() if "the best decision places it" in line] == ["17", "22"]
    assert "fragmentation: 8 GPUs are free where it may go, but not in pieces for 1 pod of 7 GPUs" in told["12_3"]
    assert "would fit on nodes that do not take it" in told["20"]
    assert "would fit on nodes that do not take it" in told["15"]  # on the node that is drained


@pytest.mark.parametrize(
    ("listed", "names", "counted"),
    [
        ("3,5-9:2%4", ["3_3", "3_5", "3_7", "3_9"], {}),
        ("1,2,...", ["3_1", "3_2"], {"job arrays whose tasks are not all listed": 1}),
        ("", ["3"], {}),
    ],
)
def test_each_waiting_task_of_an_array_is_a_job(
    listed: str, names: list[str], counted: dict[str, int], tmp_path: Path
) -> None:
    data = {"jobs": [{**job(3, "PENDING", 4), "array_task_string": listed}]}
    snapshot, nodes = written(tmp_path, data, slurm_nodes())
    read = read_snapshot(snapshot, nodes=nodes, names=True)
    assert [gang.id for gang in read.instance.gangs] == names and read.unread == counted


def test_a_waiting_job_whose_gpus_do_not_divide_is_left_out_and_counted(tmp_path: Path) -> None:
    data = {"jobs": [job(3, "PENDING", 9, nodes=2), job(4, "PENDING", 1)]}
    snapshot, nodes = written(tmp_path, data, slurm_nodes())
    read = read_snapshot(snapshot, nodes=nodes, names=True)
    assert [gang.id for gang in read.instance.gangs] == ["4"]
    assert read.unread == {"jobs whose GPUs are not as many on each node": 1}


TWO_TYPES = "NodeName=d State=IDLE CPUTot=16 RealMemory=64000 Gres=gpu:a100:4,gpu:3090:2 Partitions=gpu\n"


@pytest.mark.parametrize(
    ("asked", "fits"),
    [("gres/gpu:3090=2", True), ("gres/gpu:a100=1,gres/gpu:3090=1", True), ("gres/gpu:v100=2", False)],
)
def test_a_node_with_gpus_of_two_types_takes_jobs_of_both(asked: str, fits: bool, tmp_path: Path) -> None:
    """It was closed to every job that names a type, certified."""
    waiting = job(2, "PENDING", 2) | {"tres_req_str": f"cpu=1,node=1,gres/gpu=2,{asked}"}
    snapshot, nodes = written(tmp_path, {"jobs": [waiting]}, TWO_TYPES)
    found = schedgap.judge(snapshot, nodes, names=True)
    assert found.lost[0].fits is fits
    assert not found.unread


def test_a_job_in_a_reservation_is_left_out_and_counted(tmp_path: Path) -> None:
    """Which nodes its reservation has is not told; reserved nodes are closed to all others."""
    snapshot, nodes = written(tmp_path, {"jobs": [job(2, "PENDING", 4, resv_name="maint")]}, slurm_nodes())
    read = read_snapshot(snapshot, nodes=nodes)
    assert not read.instance.gangs and read.asides[0].reason == "it is in a reservation, whose nodes are not listed"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"tres_per_node": "gres:nvme:9"}, "its nvme"),
        ({"tres_req_str": "cpu=1,node=1,gres/gpu=1,gres/shard=3"}, "it asks for GPUs and parts of GPUs"),
        ({"required_switches": 1}, "its switches"),
        ({"contiguous": True}, "neighbouring nodes"),
        ({"licenses": "matlab:2"}, "its licenses"),
        ({"features": "a|b"}, "its features"),
        ({"gpu_topology_hint": "x"}, "gpu_topology_hint is not known"),
    ],
)
def test_what_a_job_asks_for_beside_gpus_is_told_of_the_job(asked: dict[str, Any], told: str, tmp_path: Path) -> None:
    plain = {"required_switches": 0, "contiguous": False, "tres_per_node": "gres:gpu:1"}
    jobs = [job(2, "PENDING", 1) | plain, job(3, "PENDING", 1) | plain | asked]
    snapshot, nodes = written(tmp_path, {"jobs": jobs}, slurm_nodes())
    read = read_snapshot(snapshot, nodes=nodes, names=True)
    assert [gang.id for gang in read.instance.gangs] == ["2"]
    assert (read.facts.relaxed.get("3") or tuple(one.reason for one in read.asides)) == (told,)


@pytest.mark.parametrize(
    ("pin", "fits"), [("node:10.0.0.2", False), ("node:x", True), ("accelerator_type:A100", False)]
)
def test_bundles_of_ray_stay_on_the_nodes_that_they_name(pin: str, fits: bool, tmp_path: Path) -> None:
    """``node:10.0.0.2`` and the A100 are on a node without GPUs; the name of a node is not in the answer."""
    bundles = [{"unit_resources": {"GPU": 1.0, pin: 0.001}, "node_id": None}]
    group = {"placement_group_id": "g", "state": "PENDING", "strategy": "PACK", "bundles": bundles}
    more = {"CPU": 8.0, "node:10.0.0.2": 1.0, "accelerator_type:A100": 1.0}
    there = [*ray_nodes(), {"node_id": "ff", "state": "ALIVE", "resources_total": more}]
    found = schedgap.judge(*written(tmp_path, [group], there))
    assert found.lost[0].fits is fits
    assert (pin in json.dumps(found.instance.to_dict())) is pin.startswith("accelerator")  # a model is no name


def ray_nodes() -> Any:
    sizes = {"aa": 4, "bb": 4, "cc": 8, "dd": 8}
    alive = [
        {
            "node_id": name,
            "state": "ALIVE",
            "resources_total": {"CPU": 1.0, "GPU": float(n), "memory": 2.0**30, "node:x": 1.0},
        }
        for name, n in sizes.items()
    ]
    return [*alive, {"node_id": "ee", "state": "DEAD", "resources_total": {}}]


def ray_groups() -> Any:
    """What Ray 2.60 did with groups of 4, 4, 8 and 8 (STRICT_PACK): the small ones went to the large nodes."""
    seats = ("cc", "dd", None, None)
    return [
        {
            "placement_group_id": f"g{number}",
            "state": "CREATED" if node else "PENDING",
            "strategy": "STRICT_PACK",
            "bundles": [{"unit_resources": {"GPU": float(size)}, "node_id": node}],
        }
        for number, (size, node) in enumerate(zip((4, 4, 8, 8), seats, strict=True))
    ]


def test_ray_placed_8_of_24(tmp_path: Path) -> None:
    groups = [*ray_groups(), {"placement_group_id": "old", "state": "REMOVED"}]
    snapshot, nodes = written(tmp_path, groups, ray_nodes())
    found = schedgap.judge(snapshot, nodes, names=True)
    assert found.deciding == ("weight", 8, 24, True) and found.ratio == (3.0, "optimum")
    assert found.unread == {"nodes that are not alive": 1, "placement groups that are REMOVED": 1}
    assert [node.id for node in found.instance.nodes] == ["aa", "bb", "cc", "dd"]


def test_a_table_of_placement_groups_tells_strategies(tmp_path: Path) -> None:
    """``json.dumps(placement_group_table())``; memory is text in the listing of nodes of Ray 2.60."""
    table = {
        group["placement_group_id"]: {
            "bundles": {"0": group["bundles"][0]["unit_resources"]},
            "bundles_to_node_id": {"0": group["bundles"][0]["node_id"] or ""},
            "strategy": "STRICT_PACK",
            "state": group["state"],
        }
        for group in ray_groups()
    }
    nodes = changed(ray_nodes(), 0, "resources_total", "memory", value="20.449 GiB")
    snapshot, second = written(tmp_path, table, nodes)
    read = read_snapshot(snapshot, nodes=second)
    assert read.instance.nodes[0].free["memory"] == 20449  # of 2^30 / 1000 bytes
    assert read.decision == read_snapshot(written(tmp_path, ray_groups(), nodes)[0], nodes=second).decision


def test_ray_groups_whose_strategy_is_not_told(tmp_path: Path) -> None:
    """All strategies ask for the same of one bundle; some forbid of several bundles what PACK allows."""
    groups = [{key: value for key, value in group.items() if key != "strategy"} for group in ray_groups()]
    groups[3]["bundles"] = [{"unit_resources": {"GPU": 4.0}, "node_id": None}] * 2
    read = read_snapshot(written(tmp_path, groups, ray_nodes())[0], nodes=tmp_path / "nodes", names=True)
    assert read.facts.relaxed == {"g3": ("its strategy",)} and {gang.required for gang in read.outward.gangs} == {None}
    assert [gang.id for gang in read.instance.gangs] == ["g0", "g1", "g2"] and len(read.outward.gangs) == 4


PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\na,1000,10,1,460,\nb,500,1,2,1000,T4|P100\nc,100,1,0,0,\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\nx,2000,100,2,T4\ny,2000,100,1,V100\n"


def test_openb(tmp_path: Path) -> None:
    snapshot, nodes = written(tmp_path, PODS, NODES, "csv")
    read = read_snapshot(snapshot, nodes=nodes, names=True)
    assert read.form == "openb" and read.decision == {"placement": {}}
    assert [(g.id, g.pods[0].gpu, g.pods[0].selector.models) for g in read.instance.gangs] == [
        ("a", 460, ()),
        ("b", 2000, ("T4", "P100")),
        ("c", 0, ()),
    ]
    found = schedgap.judge(snapshot, nodes)
    assert found.best.status == "optimal" and len(found.best.solution["placement"]) == 3  # type: ignore[index]


def changed(data: Any, *path: Any, value: Any) -> Any:
    data = copy.deepcopy(data)
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return data


BAD: list[tuple[Any, Any, str, str]] = [
    (
        {"jobs": [job(3, "PENDING", 4, array_task_string="0-9,0-9999999")]},
        slurm_nodes(),
        "json",
        "jobs[0].array_task_string: '0-9,0-9999999': more than 100000 jobs and tasks wait",
    ),
    (
        squeue(),
        slurm_nodes().replace("Partitions=gpu", "Partitions=gpu\n   AllocTRES=gres/gpu=x"),
        "json",
        "line 1: node n1: AllocTRES: 'gres/gpu=x': 'x' is no number of GPUs",
    ),
    (squeue(), "Hello", "json", "nodes: line 1: begins with no NodeName="),
    (squeue(), slurm_nodes()[40:], "json", "nodes: line 1: begins with no NodeName="),
    (
        squeue(),
        slurm_nodes()[:-8],
        "json",
        "node n4 is the last and has no Partitions=, as all others: the text was cut",
    ),
    (
        squeue(),
        slurm_nodes()[:-18],
        "json",
        "node n4 is the last and has no Partitions=, as all others",
    ),
    (squeue(), "NodeName=n1 CPUTot=8 Gres=gpu:8 RealMemory=1 State=IDLE Parti", "json", "the text was cut"),
    (squeue(), slurm_nodes().split("   State")[0] + "\n", "json", "node n1 has no State= with a word, got None"),
    (squeue(), slurm_nodes().split("   Gres")[0] + "\n", "json", "line 1: node n1 has no Gres="),
    (
        squeue(),
        slurm_nodes().replace("v100:8", "v100:x"),
        "json",
        "n1: Gres: 'gpu:v100:x(S:0-1)' does not say how many",
    ),
    (
        changed(squeue(), "jobs", 2, "tres_req_str", value="cpu=2,gres/gpu=x"),
        slurm_nodes(),
        "json",
        "jobs[2].tres_req_str: 'cpu=2,gres/gpu=x': 'x' is no number of GPUs",
    ),
    (
        changed(squeue(), "jobs", 0, "tres_alloc_str", value="mem=1X,gres/gpu=2"),
        slurm_nodes(),
        "json",
        "jobs[0].tres_alloc_str: mem='1X' is no amount of memory",
    ),
    (squeue(), slurm_nodes(memory="much"), "json", "line 1: node n1 has no RealMemory= with a number, got 'much'"),
    (squeue(), slurm_nodes() + slurm_nodes(), "json", "node 'n1' is there twice"),
    ({"jobs": 3}, slurm_nodes(), "json", "jobs: must be a list of objects"),
    (changed(squeue(), "jobs", 2, "cpus", value="many"), slurm_nodes(), "json", "jobs[2].cpus: must be a whole number"),
    (changed(squeue(), "jobs", 0, "nodes", value="n9"), slurm_nodes(), "json", "jobs[0].nodes: there is no node 'n9'"),
    (changed(squeue(), "jobs", 0, "nodes", value="n[2-"), slurm_nodes(), "json", "jobs[0].nodes"),
    (
        changed(squeue(), "jobs", 0, value=job(1, "RUNNING", 3, nodes=2, where="n[1-2]")),
        slurm_nodes(),
        "json",
        "jobs[0].tres_alloc_str: 3 GPUs on 2 nodes, and gres_detail does not tell how many on each",
    ),
    (changed(squeue(), "jobs", 6, "job_state", value=""), slurm_nodes(), "json", "jobs[6].job_state: is missing"),
    (ray_groups(), {}, "json", "must be a list of objects, as ray list"),
    (changed(ray_groups(), 0, "bundles", value=None), ray_nodes(), "json", "[0].bundles: must be a list"),
    (changed(ray_groups(), 0, "bundles", 0, "node_id", value="zz"), ray_nodes(), "json", "there is no node 'zz'"),
    (changed(ray_groups(), 0, "bundles", 0, "node_id", value=[3]), ray_nodes(), "json", "there is no node '[3]'"),
    (
        changed(ray_groups(), 1, "bundles", 0, "unit_resources", value={"GPU": "x"}),
        ray_nodes(),
        "json",
        "[1].bundles[0].unit_resources.GPU: must be a number from 0, got 'x'",
    ),
    (
        changed(ray_groups(), 1, "bundles", 0, "unit_resources", value={"GPU": 1.5}),
        ray_nodes(),
        "json",
        "[1].bundles[0].unit_resources.GPU: above 1 it must be whole, got 1.5",
    ),
    (PODS.replace("460", "x"), NODES, "csv", "line 2: gpu_milli: must be a whole number from 0, got 'x'"),
    (PODS.replace("2,1000", "2,500"), NODES, "csv", "line 3: gpu_milli: 2 GPUs of 500"),
    (PODS, NODES.replace("gpu,", "gpus,"), "csv", "nodes: line 1: there is no column 'gpu'"),
    (squeue(), slurm_nodes(memory="3²"), "json", "line 1: node n1 has no RealMemory= with a number, got '3²'"),
    (squeue(), slurm_nodes().replace(":8(", ":99999999999("), "json", "a node with 99999999999 GPUs, at most"),
    (ray_groups(), changed(ray_nodes(), 0, "resources_total", "GPU", value=1e15), "json", "GPUs, at most"),
    (
        {"g": {"bundles": {"0": {}}, "bundles_to_node_id": [3], "strategy": "PACK", "state": "PENDING"}},
        ray_nodes(),
        "json",
        "g.bundles_to_node_id: must be an object",
    ),
    (PODS, NODES.replace("2,T4", "999999999,T4"), "csv", "line 2: a node with 999999999 GPUs, at most"),
    (PODS, NODES + "z,1\n", "csv", "nodes: line 4: has not as many cells"),
]


@pytest.mark.parametrize(("data", "nodes", "suffix", "line"), BAD, ids=[line[:40] for *_, line in BAD])
def test_bad_listings_are_refused_in_one_line(
    data: Any, nodes: Any, suffix: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", *written(tmp_path, data, nodes, suffix)]) == 2
    told = capsys.readouterr().err.strip()
    assert "\n" not in told and line in told


def test_the_second_file_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for data, suffix in ((squeue(), "json"), (ray_groups(), "json"), (PODS, "csv")):
        assert main(["judge", written(tmp_path, data, "", suffix)[0]]) == 2
        assert "needs a second file with the nodes" in capsys.readouterr().err

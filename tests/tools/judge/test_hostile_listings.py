"""Listings of a megabyte that are made to cost: read or refused within two seconds of a processor and a gigabyte."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.kubectl import node, pod

import schedgap
from schedgap.formulations.common.errors import InputError

MEGABYTE = 10**6
SECONDS = 6.0
"""Seconds of a processor: thrice those of an idle machine, so that a busy one fails nothing."""
MEMORY = """
import re
from pathlib import Path
print(re.search(r"VmHWM:\\s*([0-9]+)", Path("/proc/self/status").read_text())[1])
"""
"""Its own memory in kB at most; what rusage tells begins with that of the process that started it."""
WORLD = Path(__file__).parents[2] / "data" / "world"
READ = """
import sys, time
from schedgap.tools.judge.reading import read_snapshot
from schedgap.formulations.common.errors import InputError
began = time.process_time()
try:
    read_snapshot(sys.argv[1], sys.argv[3] or None, nodes=sys.argv[2] or None)
    line = "read"
except InputError as error:
    line = str(error)
print(time.process_time() - began)
print(line)
"""
NODES = "NodeName=n1 CPUTot=8 Gres=gpu:a100:8 RealMemory=1000 State=IDLE Partitions=p\n\n"


def _job(**more: Any) -> dict[str, Any]:
    job = {"job_id": 1, "job_state": "PENDING", "nodes": "", "node_count": 1, "cpus": 1, "tasks": 1, "partition": "p"}
    return job | {"priority": 1, "tres_req_str": "cpu=1,node=1,gres/gpu=1", "tres_alloc_str": ""} | more


def _group(**more: Any) -> dict[str, Any]:
    bundles = [{"unit_resources": {"GPU": 1.0}, "node_id": None}]
    return {"placement_group_id": "p", "state": "PENDING", "strategy": "PACK", "bundles": bundles} | more


def _items(*items: Any) -> str:
    return json.dumps({"items": [node("n0", 8, "r"), *items]})


def _with(made: dict[str, Any], *path: str, value: Any) -> dict[str, Any]:
    inner: Any = made
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = value
    return made


def _workload(count: int) -> dict[str, Any]:
    spec = {"podSets": [{"name": "a", "count": count, "template": {"spec": {"containers": []}}}]}
    return {"kind": "Workload", "apiVersion": "kueue.x-k8s.io/v1beta1", "metadata": {"name": "w"}, "spec": spec}


def _podgroup(**spec: Any) -> dict[str, Any]:
    group = {"kind": "PodGroup", "apiVersion": "scheduling.volcano.sh/v1beta1", "metadata": {"name": "g"}}
    return group | {"spec": spec, "status": {"phase": "Pending"}}


def _task_groups(text: str) -> dict[str, Any]:
    notes = {"yunikorn.apache.org/task-group-name": "t", "yunikorn.apache.org/task-groups": text}
    return pod("p", 1, annotations=notes)


RAY = '[{"node_id": "n", "state": "ALIVE", "resources_total": {"GPU": 1.0}}]'
TEXT = "a" * MEGABYTE
CASES: dict[str, tuple[Callable[[], str], str, str]] = {
    "ray-colons": (lambda: (WORLD / "ray-colons.json").read_text(), (WORLD / "ray-nodes.json").read_text(), "ray"),
    "ray-colons-1MB": (lambda: json.dumps([_group(name=":" * MEGABYTE)]), RAY, "ray"),
    "ray-quotes": (lambda: json.dumps([_group(name='":"' * (MEGABYTE // 6))]), RAY, "ray"),
    "ray-a-billion-gpus": (lambda: json.dumps([_group(bundles=[{"unit_resources": {"GPU": 10**9}}])]), RAY, "ray"),
    "ray-digits": (
        lambda: (
            '[{"placement_group_id": "p", "state": "PENDING", "bundles": [{"unit_resources": {"GPU": 0.'
            + "1" * 10**6
            + "}}]}]"
        ),
        RAY,
        "ray",
    ),
    "k8s-deep": (lambda: '{"items": ' + "[" * 500_000 + "]" * 500_000 + "}", "", "kubernetes"),
    "k8s-deep-objects": (lambda: '{"items": ' + '{"a":' * 150_000 + "1" + "}" * 150_000 + "}", "", "kubernetes"),
    "k8s-repeated-keys": (lambda: '{"items": [{' + '"kind": "Pod", ' * 60_000 + '"a": 1}]}', "", "kubernetes"),
    "k8s-long-quantity": (
        lambda: _items(_with(pod("p", 1), "spec", "overhead", value={"cpu": "9" * MEGABYTE})),
        "",
        "",
    ),
    "k8s-long-exponent": (
        lambda: _items(_with(pod("p", 1), "spec", "overhead", value={"cpu": "1e" + "9" * MEGABYTE})),
        "",
        "",
    ),
    "k8s-long-number": (
        lambda: _items(_with(pod("p", 1), "spec", "priority", value=0)).replace(
            '"priority": 0', '"priority": ' + "9" * 10**6
        ),
        "",
        "",
    ),
    "k8s-wide-labels": (
        lambda: _items(_with(pod("p", 1), "metadata", "labels", value={f"gpu-{k}": "v" for k in range(40_000)})),
        "",
        "",
    ),
    "k8s-wide-spec": (
        lambda: _items(_with(pod("p", 1), "spec", "x", value=1) | {"spec": {f"x{k}": 1 for k in range(60_000)}}),
        "",
        "",
    ),
    "k8s-many-taints": (
        lambda: _items(
            _with(
                node("n1", 1, "r"),
                "spec",
                "taints",
                value=[{"key": f"k{k}", "effect": "NoSchedule"} for k in range(20_000)],
            ),
            pod("p", 1),
        ),
        "",
        "",
    ),
    "k8s-a-billion-pods": (lambda: _items(_workload(10**9)), "", ""),
    "k8s-a-billion-members": (
        lambda: _items(_podgroup(minMember=10**9, minResources={"nvidia.com/gpu": "1000000000"})),
        "",
        "",
    ),
    "k8s-a-billion-gpus": (
        lambda: _items(_with(node("n1", 10**9, "r"), "metadata", "labels", value={"nvidia.com/gpu.memory": "1"})),
        "",
        "",
    ),
    "k8s-register": (
        lambda: _items(
            _with(
                node("n1", 1, "r"),
                "metadata",
                "annotations",
                value={"hami.io/node-nvidia-register": "a,1," * 200_000 + ":" * 200_000},
            )
        ),
        "",
        "",
    ),
    "k8s-task-groups-deep": (lambda: _items(_task_groups("[" * 400_000)), "", ""),
    "k8s-task-groups-number": (
        lambda: _items(_task_groups('[{"name": "t", "minMember": ' + "9" * 10**6 + "}]")),
        "",
        "",
    ),
    "k8s-many-digits-in-units": (
        lambda: _items(
            *(_with(pod(f"p{k}", 1), "spec", "overhead", value={"cpu": f"0.{k:090d}1"}) for k in range(800))
        ),
        "",
        "",
    ),
    "slurm-long-array": (lambda: json.dumps({"jobs": [_job(array_task_string="0-9999999")]}), NODES, "slurm"),
    "slurm-array-parts": (lambda: json.dumps({"jobs": [_job(array_task_string="1," * 500_000)]}), NODES, "slurm"),
    "slurm-host-list": (
        lambda: json.dumps({"jobs": [_job(excluded_nodes="n[" + "1-9," * 200_000 + "1]")]}),
        NODES,
        "slurm",
    ),
    "slurm-hosts": (lambda: json.dumps({"jobs": [_job(excluded_nodes="n[0-999999999]")]}), NODES, "slurm"),
    "slurm-gres": (lambda: json.dumps({"jobs": [_job(tres_per_node="gres:gpu:" * 100_000)]}), NODES, "slurm"),
    "slurm-gres-parts": (lambda: json.dumps({"jobs": [_job(tres_per_node="gres/gpu:a=1," * 70_000)]}), NODES, "slurm"),
    "slurm-a-billion-nodes": (
        lambda: json.dumps({"jobs": [_job(node_count=10**9, tres_req_str="gres/gpu=1000000000")]}),
        NODES,
        "slurm",
    ),
    "slurm-a-billion-tasks": (
        lambda: json.dumps({"jobs": [_job(tasks=10**9, tres_per_task="gres/gpu:1")]}),
        NODES,
        "slurm",
    ),
    "slurm-detail": (
        lambda: json.dumps({"jobs": [_job(job_state="RUNNING", nodes="n1", gres_detail=["gpu:1(IDX:0-999999999)"])]}),
        NODES.replace("a100:8", "a100:8,shard:8"),
        "slurm",
    ),
    "slurm-shard-detail": (
        lambda: json.dumps(
            {
                "jobs": [
                    _job(
                        job_state="RUNNING",
                        nodes="n1",
                        tres_req_str="gres/shard=1",
                        gres_detail=["shard:1(" + "0/4," * 200_000 + "1/4)"],
                    )
                ]
            }
        ),
        NODES.replace("a100:8", "a100:8,shard:8"),
        "slurm",
    ),
    "slurm-node-text": (lambda: json.dumps({"jobs": [_job()]}), NODES + "a=" * 400_000, "slurm"),
    "slurm-many-node-names": (lambda: json.dumps({"jobs": [_job()]}), "NodeName=a b\n" * 70_000, "slurm"),
    "slurm-job-text": (lambda: "JobId=" * 150_000, NODES, "slurm"),
    "slurm-features": (lambda: json.dumps({"jobs": [_job(features="a&" * 400_000 + "|")]}), NODES, "slurm"),
    "sinfo-hosts": (
        lambda: json.dumps({"jobs": [_job()]}),
        '{"sinfo": [{"nodes": {"nodes": ["n[0-999999999]"]}}]}',
        "slurm",
    ),
    "openb-numbers": (
        lambda: "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\na," + "9" * 10**6 + ",1,1,1000,\n",
        "sn,cpu_milli,memory_mib,gpu,model\nx,1,1,999999999,T4\n",
        "openb",
    ),
    "own-a-billion": (
        lambda: json.dumps(
            {
                "problem": "gang-placement",
                "nodes": [{"id": "n"}],
                "gangs": [{"id": "g", "pods": [{"count": 10**9, "gpu": 1000}]}],
            }
        ),
        "",
        "own",
    ),
    "long-text": (lambda: json.dumps({"items": TEXT}), "", ""),
}


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_listing_costs_little(name: str, tmp_path: Path) -> None:
    made, nodes, form = CASES[name]
    snapshot, second = tmp_path / "snapshot.json", tmp_path / "nodes"
    snapshot.write_text(made())
    second.write_text(nodes)
    given = [str(snapshot), str(second) if nodes else "", form]
    program = READ + MEMORY
    done = subprocess.run(
        [sys.executable, "-c", program, *given], capture_output=True, text=True, check=False, preexec_fn=_limited
    )
    assert done.returncode == 0, done.stderr[-2000:]
    seconds, *line, kilobytes = done.stdout.strip().split("\n")
    assert float(seconds) < SECONDS and int(kilobytes) < 10**6
    assert len(line) == 1 and len(line[0]) < 600


def test_ten_thousand_pods_on_a_thousand_nodes_are_read_in_ten_seconds(tmp_path: Path) -> None:
    nodes = [node(f"n{k}", 8, f"rack{k // 16}") for k in range(1000)]
    pods = [pod(f"p{k}", 1 + k % 4, f"g{k // 8}") for k in range(10_000)]
    for k, made in enumerate(pods[:5000]):
        made["spec"] |= {"nodeName": f"n{k % 1000}", "nodeSelector": {"rack": f"rack{k % 1000 // 16}"}}
        made["status"]["phase"] = "Running"
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"items": [*nodes, *pods]}))
    done = subprocess.run([sys.executable, "-c", READ, str(path), "", ""], capture_output=True, text=True, check=True)
    seconds, line = done.stdout.split("\n")[:2]
    assert line == "read" and float(seconds) < 10
    with pytest.raises(InputError, match="11000 objects take about 7 s to read: give a longer --time-limit"):
        schedgap.judge(path, time_limit=2)

"""What ``kubectl get nodes,pods -o json`` would say of small clusters."""

from __future__ import annotations

from typing import Any

Data = dict[str, Any]


def node(name: str, gpus: int, rack: str, **spec: Any) -> Data:
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {"rack": rack, "nvidia.com/gpu.product": "A100", "disk": name}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "31850m", "memory": "128Gi", "pods": "110", "nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, gpus: int, gang: str = "", **more: Any) -> Data:
    labels = {"kueue.x-k8s.io/pod-group-name": gang} if gang else {}
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": str(gpus)}}
    made: Data = {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "labels": labels, "annotations": more.pop("annotations", {})},
        "spec": {"containers": [{"name": "c", "resources": resources}], **more},
        "status": {"phase": "Pending"},
    }
    return made


def running(name: str, gpus: int, where: str, **more: Any) -> Data:
    made = pod(name, gpus, nodeName=where, **more)
    made["status"]["phase"] = "Running"
    made["metadata"]["ownerReferences"] = [{"kind": "Job", "controller": True}]
    return made


def cluster() -> Data:
    """Two racks of two nodes of 4 GPUs, 6 of 16 taken, so that no rack has 6 free for the gang that wants one."""
    nodes = [node(f"node{n}", 4, f"rack{n // 2}") for n in range(4)]
    runs = [running("a", 3, "node0"), running("b", 3, "node2")]
    rack = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    waits = [pod(f"train-{i}", 2, "train", annotations=rack) for i in range(3)]
    alone = [pod("notebook", 1)]
    return {"apiVersion": "v1", "kind": "List", "items": [*nodes, *runs, *waits, *alone]}

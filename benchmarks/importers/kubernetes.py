"""Pods and nodes of Kubernetes, core v1: ``kubectl get pods,nodes -A -o json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from schedgap.benchmarks.importers.cells import NOT_ENDED, LeftOut, between, duration, moment, name, whole
from schedgap.benchmarks.importers.rows import Format, Notes, read_rows
from schedgap.formulations.common.instance import Json

RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915")
"""Extended resources that are GPUs."""
LABELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator", "accelerator")
"""Labels of nodes that name their GPUs, and node selectors of pods that ask for them."""

GANGS = (
    *("kueue.x-k8s.io/pod-group-name", "pod-group-name", "gang.scheduling.koordinator.sh/name"),
    *("scheduling.k8s.io/group-name", "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"),
    *("pod-group.scheduling.sigs.k8s.io/name", "volcano.sh/job-name", "grove.io/podgang"),
    *("leaderworkerset.sigs.k8s.io/group-key", "yunikorn.apache.org/app-id", "applicationId"),
)
"""Labels and annotations of pods that name the gang with which they start."""
NO_POD = "is a Node, no pod"


def _objects(value: Json, *path: str) -> Mapping[str, Json]:
    """The object at a path; empty where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _listed(value: Json) -> list[Mapping[str, Json]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _gpus(resources: Mapping[str, Json]) -> int:
    return sum(whole(str(resources[kind])) for kind in RESOURCES if kind in resources)


def _asked(container: Mapping[str, Json]) -> int:
    """GPUs of a container: Kubernetes wants limits and requests of extended resources to be equal."""
    return max(_gpus(_objects(container, "resources", part)) for part in ("limits", "requests"))


def _kind(labels: Mapping[str, Json]) -> str:
    return next((str(labels[label]) for label in LABELS if label in labels), "")


def _pod(item: Json) -> Sequence[str]:
    """Cells of a pod, in the order in which the fields name their columns first."""
    if not isinstance(item, Mapping) or not isinstance(item.get("metadata"), Mapping):
        raise ValueError("is no object of Kubernetes with metadata")
    if item.get("kind", "Pod") != "Pod":
        raise LeftOut(NO_POD if item["kind"] == "Node" else f"is a {item['kind']}, no pod")
    about, spec, status = item["metadata"], _objects(item, "spec"), _objects(item, "status")
    gpus = sum(map(_asked, _listed(spec.get("containers"))))
    gpus = max([gpus, *map(_asked, _listed(spec.get("initContainers")))])
    placed = [one for one in _listed(status.get("conditions")) if one.get("type") == "PodScheduled"]
    scheduled = next((str(one.get("lastTransitionTime", "")) for one in placed if one.get("status") == "True"), "")
    ends = []
    for one in _listed(status.get("containerStatuses")):
        ended = _objects(one, "state", "terminated")
        ends.append(str(ended.get("finishedAt") or ""))
    done = status.get("phase") in ("Succeeded", "Failed") and ends and all(ends)
    limit = spec.get("activeDeadlineSeconds")
    said = {**_objects(about, "annotations"), **_objects(about, "labels")}
    native = _objects(spec, "schedulingGroup").get("podGroupName") or _objects(spec, "workloadRef").get("name")
    gang = next((said[key] for key in GANGS if said.get(key)), native)
    return (
        f"{about.get('namespace', 'default')}/{about.get('name', '')}",
        str(gpus),
        str(about.get("creationTimestamp") or ""),
        scheduled,
        max(ends) if done else "",
        str(status.get("phase") or ""),
        str(spec.get("nodeName") or ""),
        "" if limit is None else str(limit),
        str(about.get("namespace", "default")),
        _kind(_objects(spec, "nodeSelector")),
        f"{about.get('namespace', 'default')}/{gang}"[:200] if gang else "",
    )


def _lasted(scheduled: str, finished: str) -> float:
    if not scheduled:
        raise LeftOut("was never scheduled")
    if not finished:
        raise LeftOut(NOT_ENDED)
    return between(scheduled, finished)


def _node_of(cell: str) -> tuple[tuple[str, None], ...]:
    return ((name(cell), None),)


KUBERNETES = Format(
    "kubernetes",
    "kubectl get pods,nodes -A -o json (core v1), in one file or two",
    {
        "id": (name, "name"),
        "gpus": (whole, "gpus"),
        "arrival": (moment, "creationTimestamp"),
        "duration": (_lasted, "scheduled", "finished"),
    },
    {
        "start": (moment, "scheduled"),
        "end": (moment, "finished"),
        "state": (name, "phase"),
        "nodes": (_node_of, "nodeName"),
        "limit": (duration, "activeDeadlineSeconds"),
        "tenant": (name, "namespace"),
        "asked": (name, "nodeSelector"),
        "gang": (name, "gang"),
    },
    objects=_pod,
    items="items",
    notes=("every pod is a job of its own, which holds its GPUs from when it is scheduled until its containers end",),
)


def _node(item: Json) -> Sequence[str]:
    if not isinstance(item, Mapping) or item.get("kind", "Node") != "Node":
        raise LeftOut("is no node")
    status = _objects(item, "status")
    there = _objects(status, "allocatable") or _objects(status, "capacity")
    labels = _objects(item, "metadata", "labels")
    ready = next((one.get("status") for one in _listed(status.get("conditions")) if one.get("type") == "Ready"), "True")
    out = "" if ready == "True" and not _objects(item, "spec").get("unschedulable") else "1"
    return str(_objects(item, "metadata").get("name", "")), str(_gpus(there)), _kind(labels), out


_NODES = Format(
    "kubernetes",
    "",
    {"id": (name, "name"), "gpus": (whole, "gpus")},
    {"kind": (name, "accelerator"), "out": (name, "out")},
    objects=_node,
    items="items",
)


def kubernetes_nodes(path: str | Path) -> Iterator[tuple[str, int, str | None, None, None, tuple[str, ...], bool]]:
    """Name, GPUs and type of every node with GPUs; processors, memory and partitions are not read."""
    for row in read_rows(_NODES, path, Notes()):
        yield row["id"], row["gpus"], row.get("kind"), None, None, (), "out" in row

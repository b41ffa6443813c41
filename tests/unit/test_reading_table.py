"""The table of what is read: every name of every listing here is in it, what it does not know is told, docs show it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.kubectl import cluster, node, pod

import schedgap
from schedgap.benchmarks.importers.slurm import NODE
from schedgap.tools.judge.reading import read_snapshot
from schedgap.tools.judge.table import RELEVANT, TABLES, UNREAD, row_of, tables, way_of

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
FOLDERS = (DATA / "world" / "judge", DATA / "world" / "reasons", DATA / "issues")
LISTINGS = [path for folder in FOLDERS if folder.is_dir() for path in sorted(folder.iterdir())]
LISTINGS += [*sorted((DATA / "field").glob("squeue*")), *sorted((DATA / "field").glob("scontrol*"))]


def _kubernetes(item: Any) -> Iterator[tuple[str, str]]:
    """(place, name) of all that an object of Kubernetes says where it bears on a placement."""
    kind, spec, meta = item["kind"], item.get("spec") or {}, item.get("metadata") or {}
    yield "kind", kind
    notes = [*(meta.get("labels") or {}), *(meta.get("annotations") or {})]
    if kind == "Pod":
        yield from (("pod", name) for name in spec if name != "affinity")
        yield from (("pod", f"affinity.{name}") for name in spec.get("affinity") or {})
        yield from (("note", name) for name in notes if RELEVANT.search(name))
        yield from (("scheduler", spec["schedulerName"]) for _ in [0] if spec.get("schedulerName"))
        for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
            for given in (container.get("resources") or {}).values():
                yield from (("resource", name) for name in given if isinstance(given, dict))
    if kind == "Node":
        yield from (("node", name) for name in spec)
        yield from (("node note", name) for name in meta.get("annotations") or {} if RELEVANT.search(name))
        yield from (("resource", name) for name in item["status"].get("allocatable") or {})
    if kind in ("PodGroup", "PodGang"):
        yield from (("group", name) for name in spec)
    if kind == "Workload":
        yield from (("workload", name) for name in spec)
        for part in spec.get("podSets") or []:
            yield from (("pod set", name) for name in part)
            yield from (("topology request", name) for name in part.get("topologyRequest") or {})


def _names(path: Path) -> Iterator[tuple[str, str, str]]:
    """(format, place, name) of all that a file says."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".json":
        for found in NODE.finditer(text):
            yield from (("slurm", "node", part.split("=")[0]) for part in found[0].split() if "=" in part)
        return
    data = json.loads(text)
    if isinstance(data, dict) and "items" in data:
        for item in data["items"]:
            yield from (("kubernetes", *one) for one in _kubernetes(item))
    elif isinstance(data, dict) and "jobs" in data:
        yield from (("slurm", "job", key) for job in data["jobs"] for key in job)
    elif isinstance(data, list):
        for part in data:
            yield from (("ray", "group" if "placement_group_id" in part else "node", key) for key in part)
            yield from (("ray", "bundle", key) for bundle in part.get("bundles") or [] for key in bundle)


def test_no_listing_has_a_name_that_no_table_has() -> None:
    unknown = {(path.name, *name) for path in LISTINGS for name in _names(path) if row_of(*name) is None}
    assert not unknown, unknown
    assert sum(1 for path in LISTINGS for _ in _names(path)) > 3_000


def test_every_row_of_a_table_says_why() -> None:
    for rows in TABLES.values():
        assert all(row.why and row.names.strip() for row in rows)
        assert all(row.way in ("kept", "relaxed", "restricted", "unread", "no bearing") for row in rows)


def test_the_site_shows_the_tables() -> None:
    """The site's hook writes them beneath a page of the reference; no line of a table is lost on the way."""
    hook = (ROOT / "mkdocs_hooks.py").read_text(encoding="utf-8")
    assert '"reference/reading.md": tables' in hook
    assert (ROOT / "docs" / "reference" / "reading.md").is_file()
    text = "\n".join(tables())
    assert all(f"`{row.names.split()[0]}`" in text or row.names in text for rows in TABLES.values() for row in rows)


NOTES = [
    "example.com/pod-group",
    "acme.io/gang-name",
    "x.dev/topology-level",
    "y.io/quota-name",
    "vendor.com/gpu-slices",
    "foo.bar/task-group",
    "scheduler.acme.io/spread",
    "z.com/numa-policy",
    "w.io/exclusive-node",
    "a.b/affinity-group",
    "c.d/reservation",
    "e.f/preemptible",
    "g.h/device-plan",
    "i.j/workload-name",
    "k.l/claim-name",
    "kueue.x-k8s.io/podset-new-topology",
    "scheduling.koordinator.sh/new-gpu-rule",
    "hami.io/new-gpu-mode",
    "volcano.sh/new-topology",
]
SPECS = ["schedulingHints", "gangPolicy", "deviceRequests", "podGroupRef", "futureField"]
RESOURCES = ["vendor.com/vgpu", "acme.io/gpu-mem", "tencent.com/vcuda-gpu-core", "x.y/mig-1g"]
SCHEDULERS = ["my-scheduler", "slinky", "poseidon"]


@pytest.mark.parametrize("names", [True, False])
def test_a_listing_with_thirty_unknown_keys_passes_over_none(names: bool, tmp_path: Path) -> None:
    items = [node("node0", 8, "r")]
    wanted: dict[str, str] = {}
    for k, name in enumerate([*NOTES, *SPECS, *RESOURCES, *SCHEDULERS]):
        made = pod(f"p{k}", 1)
        if name in NOTES:
            made["metadata"]["annotations" if k % 2 else "labels"][name] = "v"
        elif name in SPECS:
            made["spec"][name] = {"a": 1}
        elif name in RESOURCES:
            made["spec"]["containers"][0]["resources"]["requests"][name] = "1"
        else:
            made["spec"]["schedulerName"] = name
        wanted[f"ml/p{k}" if names else f"gang-{k}"] = name
        items.append(made)
    assert len(wanted) >= 30
    found = schedgap.judge(_written(tmp_path, {"items": [*items, pod("plain", 1)]}), names=names)
    told = {one.gang: one.line() for one in found.lost if one.fate == "not judged"}
    assert len(told) == len(wanted) and found.lost[0].fate == "fits" and len(found.snapshot.outward.gangs) == 1
    lines = sorted(told.values())
    assert all(any(f"{name} is not known" in line for line in lines) for name in wanted.values())
    assert found.verdict.startswith("1 of 1 waiting GPU could run now") and "31 gangs are not judged" in found.verdict


@pytest.mark.parametrize("group", ["scheduling.acme.io/v1", "batch.vendor.com/v1alpha1"])
def test_a_pod_group_of_an_unknown_api_takes_out_who_bears_its_name(group: str, tmp_path: Path) -> None:
    data = cluster()
    data["items"].append({"kind": "PodGroup", "apiVersion": group, "metadata": {"name": "team-7", "namespace": "ml"}})
    data["items"][-2]["metadata"]["labels"]["acme/set"] = "team-7"
    (aside,) = read_snapshot(_written(tmp_path, data), names=True).asides
    assert aside.gang == "ml/notebook" and "PodGroup of" in aside.reason


def test_what_is_unknown_and_looks_like_nothing_has_no_bearing() -> None:
    assert way_of("kubernetes", "note", "team/colour").way == "no bearing"
    assert way_of("kubernetes", "note", "team/gpu-colour").way == UNREAD
    assert way_of("kubernetes", "pod", "colour", closed=True).way == UNREAD


def _written(folder: Path, data: Any) -> Path:
    path = folder / "snapshot.json"
    path.write_text(json.dumps(data))
    return path

"""What Ray and openb list of a cluster as an instance and a decision; docs/judging.md says what is read."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from schedgap.benchmarks.importers.rows import opened
from schedgap.benchmarks.snapshots.draft import Draft
from schedgap.benchmarks.snapshots.kubernetes import quantity
from schedgap.benchmarks.snapshots.slurm import slurm
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json, read_json
from schedgap.formulations.gang_placement.instance import WHOLE

# -- Ray


def ray(data: Json, source: str, nodes: Path) -> Draft:
    """Placement groups on nodes, as ``ray list ... --format json --detail`` writes them.

    STRICT_PACK is one node, STRICT_SPREAD one bundle a node, PACK a preferred node. Where the listing does not tell the
    strategy, which depends on Ray's version, it is PACK, and counted.
    """
    draft = Draft(source)
    if isinstance(data, Mapping):
        data = [_of_table(name, group, source) for name, group in data.items()]
    groups = list(enumerate(_objects(data, source)))
    pins = _pins(data)
    for position, node in enumerate(_objects(read_json(nodes), str(nodes))):
        place = f"{nodes}: [{position}]"
        if node.get("state") != "ALIVE":
            draft.unread["nodes that are not alive"] += 1
            continue
        room = _ray_amounts(draft, node.get("resources_total"), f"{place}.resources_total", down=True)
        devices = room.pop("GPU", 0)
        model = next((name.partition(":")[2] for name in room if name.startswith("accelerator_type:")), None)
        kept = {name for name in room if ":" not in name or name in pins}
        free = {pins.get(name, name): room[name] for name in sorted(kept)}
        draft.node(str(node.get("node_id")), devices // WHOLE, model, free, place)
    draft.distinct((str(group.get("placement_group_id")), f"{source}: [{g}].placement_group_id") for g, group in groups)
    for position, group in sorted(groups, key=lambda one: _came(one[1])):
        _ray_group(draft, group, f"{source}: [{position}]", pins)
    return draft


def _pins(data: Json) -> dict[str, str]:
    """What bundles ask for of some nodes only, with what it is called here: names of nodes are not to be shared."""
    asked = re.findall(r'"([^"]*:[^"]*)": [0-9]', json.dumps(data))
    return {name: f"pin-{k}" for k, name in enumerate(asked)}


def _came(group: Mapping[str, Any]) -> int:
    """When the group was asked for, where the listing tells."""
    stats = group.get("stats")
    moment = str(stats.get("creation_request_received_ns", "")) if isinstance(stats, Mapping) else ""
    return int(moment) if moment.isdecimal() and len(moment) < 30 else 0


def _of_table(name: str, group: Json, source: str) -> Mapping[str, Any]:
    """A group of ``placement_group_table()`` as the listing has it."""
    parts: Mapping[str, Any] = group if isinstance(group, Mapping) else {}
    bundles: Any = parts.get("bundles")
    there: Any = parts.get("bundles_to_node_id") or {}
    for key, part in (("bundles", bundles), ("bundles_to_node_id", there)):
        if not isinstance(part, Mapping):
            raise InputError(f"{source}: {name[:60]}.{key}: must be an object, as placement_group_table() has it")
    made = [{"unit_resources": asked, "node_id": there.get(b)} for b, asked in bundles.items()]
    return {**parts, "placement_group_id": name, "bundles": made}


def _ray_group(draft: Draft, group: Mapping[str, Any], place: str, pins: Mapping[str, str]) -> None:
    if group.get("state") not in ("CREATED", "PENDING", "PREPARED", "RESCHEDULING"):
        draft.unread[f"placement groups that are {str(group.get('state'))[:20]}"] += 1
        return
    found: dict[tuple[tuple[str, int], ...], dict[str, Any]] = {}
    seats: list[tuple[int, int]] = []
    for b, bundle in enumerate(_objects(group.get("bundles"), f"{place}.bundles")):
        asked = _ray_amounts(draft, bundle.get("unit_resources"), f"{place}.bundles[{b}].unit_resources", down=False)
        gpu = asked.pop("GPU", 0)
        key = (("GPU", gpu), *sorted(asked.items()))
        request = {pins.get(name, name): amount for name, amount in asked.items()}
        pods = found.setdefault(key, {"count": 0, "gpu": gpu, "request": request})
        pods["count"] += 1
        if group["state"] == "CREATED":
            node = str(bundle.get("node_id"))
            if node not in draft.index:
                raise InputError(f"{place}.bundles[{b}].node_id: there is no node {node[:60]!r} that is alive")
            seats.append((list(found).index(key), draft.index[node]))
    strategy = str(group.get("strategy") or "").upper()
    draft.unread["placement groups whose strategy is not told, taken as PACK"] += not strategy
    draft.unread["placement groups that wish to be spread"] += strategy == "SPREAD"
    draft.wait(
        str(group.get("placement_group_id")),
        list(found.values()),
        seats,
        required="node" if strategy == "STRICT_PACK" else None,
        preferred="node" if strategy in ("", "PACK") else None,
        per_node=1 if strategy == "STRICT_SPREAD" else None,
    )


def _objects(data: Json, place: str) -> list[Mapping[str, Any]]:
    if not isinstance(data, list) or not all(isinstance(one, Mapping) for one in data):
        raise InputError(f"{place}: must be a list of objects, as ray list --format json --detail writes it")
    return data


def _ray_amounts(draft: Draft, given: Json, place: str, *, down: bool) -> dict[str, int]:
    """Resources in thousandths, memory in MiB; nodes rounded down, requests up."""
    if not isinstance(given, Mapping):
        raise InputError(f"{place}: must be an object, got {type(given).__name__}")
    found = {}
    for name, amount in given.items():
        text = re.fullmatch(r"(\d+(?:\.\d+)?) ([KMGT]i)?B", amount) if isinstance(amount, str) else None
        if text is not None:  # how the listing of nodes writes memory
            amount = float(quantity(text[1] + (text[2] or ""), f"{place}.{name}"))
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < 1e18:
            raise InputError(f"{place}.{name}: must be a number from 0, got {amount!r}")
        if name.startswith("object_store_memory"):
            continue
        exact = Fraction(str(amount)) * (Fraction(1, 2**20) if name == "memory" else WHOLE)
        found["cpu" if name == "CPU" else name] = math.floor(exact) if down else math.ceil(exact)
    return found


# -- openb


def openb(source: Path, nodes: Path) -> Draft:
    """Pods of the cluster trace openb, each a gang, on its nodes; nobody has placed one yet."""
    draft = Draft(str(source))
    for place, row in _table(nodes, ("sn", "cpu_milli", "memory_mib", "gpu", "model")):
        free = {"cpu": _count(row, "cpu_milli", place), "memory": _count(row, "memory_mib", place)}
        draft.node(row["sn"], _count(row, "gpu", place), row["model"] or None, free, place)
    pods = list(_table(source, ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")))
    draft.distinct((row["name"], f"{place}: name") for place, row in pods)
    for place, row in pods:
        gpus, part = _count(row, "num_gpu", place), _count(row, "gpu_milli", place)
        if gpus > 1 and part != WHOLE:
            raise InputError(f"{place}: gpu_milli: {gpus} GPUs of {part} thousandths each; several must be whole")
        request = {"cpu": _count(row, "cpu_milli", place), "memory": _count(row, "memory_mib", place)}
        models = [model for model in row["gpu_spec"].split("|") if model]
        group = {"count": 1, "gpu": gpus * part, "request": request}
        draft.wait(row["name"], [group | ({"selector": {"models": models}} if models else {})], ())
    return draft


def _table(path: Path, columns: Sequence[str]) -> Iterable[tuple[str, dict[str, str]]]:
    with opened(path) as file:
        rows = list(csv.DictReader(file.read().splitlines()))
    for name in columns:
        if not rows or name not in rows[0]:
            raise InputError(f"{path}: line 1: there is no column {name!r}, or no line below it")
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise InputError(f"{path}: line {line}: has not as many cells as line 1")
        yield f"{path}: line {line}", row


def _count(row: Mapping[str, str], name: str, place: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", row[name]):
        raise InputError(f"{place}: {name}: must be a whole number from 0, got {row[name][:40]!r}")
    return int(row[name])


LISTINGS: Mapping[str, Callable[..., Draft]] = {"slurm": slurm, "ray": ray, "openb": openb}
"""Formats that are two files, the second of nodes."""


def told(data: Json) -> str | None:
    """The format that a JSON value tells by itself."""
    if isinstance(data, Mapping) and "jobs" in data and "problem" not in data:
        return "slurm"
    groups = list(data.values()) if isinstance(data, Mapping) else data if isinstance(data, list) else []
    key = "strategy" if isinstance(data, Mapping) else "placement_group_id"
    return "ray" if groups and all(isinstance(x, Mapping) and key in x for x in groups) else None

"""What an instance must be before the rules of its problem mean anything: a part of the checker.

The standard library and nothing else. Types, ranges, ids that are there once, and what rules take for granted: arrivals
within the horizon, placements on GPUs that there are, intervals that are not empty. Upper limits of sizes are left to
those who read instances for other ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

try:
    from schedgap.solvers.certificates.linear import decimal, reject
except ImportError:  # the checker runs as a file
    from linear import decimal, reject  # type: ignore[import-not-found, no-redef]

Rule = Callable[[Any, str], None]
"""Rejects a value at a place that is not what it must be."""


def valid(instance: Mapping[str, Any]) -> None:
    """Reject an instance of a known problem that is none.

    Raises Rejected: one line with the place in the instance.
    """
    fields, further = PROBLEMS[instance["problem"]]
    kept = {k: v for k, v in instance.items() if k not in _BESIDE and not k.startswith("reference")}
    record(fields)(kept, "instance")
    if further is not None:
        further(instance)


_BESIDE = ("problem", "name", "note", "version")
_SHORT = 10**20


def number(low: Any = None, high: Any = None, *, open_low: bool = False) -> Rule:
    """A number within a range; `open_low`: more than `low`."""

    def rule(value: Any, place: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int | Fraction):
            reject(f"{place}: must be a number")
        if (low is not None and (value < low or (open_low and value == low))) or (high is not None and value > high):
            reject(f"{place}: {decimal(value)} is out of range")

    return rule


def whole(low: int, high: int | None = None) -> Rule:
    """A whole number within a range, written as one."""

    def rule(value: Any, place: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            reject(f"{place}: must be a whole number")
        if value < low or (high is not None and value > high):
            reject(f"{place}: {value if abs(value) < _SHORT else decimal(value)} is out of range")

    return rule


def text(value: Any, place: str) -> None:
    """An id."""
    if not isinstance(value, str) or not value:
        reject(f"{place}: must be text")


def flag(value: Any, place: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        reject(f"{place}: must be true or false")


def optional(rule: Rule) -> Rule:
    """The field may be missing or null."""

    def may(value: Any, place: str) -> None:
        if value is not None:
            rule(value, place)

    may.optional = True  # type: ignore[attr-defined]
    return may


def record(fields: Mapping[str, Rule]) -> Rule:
    """An object with these keys and no other."""

    def rule(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            reject(f"{place}: must be an object")
        for key in value:
            if key not in fields:
                reject(f"{place}.{str(key)[:60]}: unknown key")
        for key, own in fields.items():
            if key not in value and not hasattr(own, "optional"):
                reject(f"{place}.{key}: is missing")
            own(value.get(key), f"{place}.{key}")

    return rule


def table(rule: Rule) -> Rule:
    """An object whose values are alike."""

    def every(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            reject(f"{place}: must be an object")
        for key, one in value.items():
            rule(one, f"{place}.{key[:60]}")

    return every


def several(rule: Rule, *, ids: bool = False, least: int = 1) -> Rule:
    """A list; `ids`: of objects with an ``id`` that no other has."""

    def every(value: Any, place: str) -> None:
        if not isinstance(value, list) or len(value) < least:
            reject(f"{place}: must be a list of at least {least}")
        seen: set[str] = set()
        for position, one in enumerate(value):
            rule(one, f"{place}[{position}]")
            if ids:
                if one["id"] in seen:
                    reject(f"{place}[{position}].id: {one['id'][:60]!r} is there twice")
                seen.add(one["id"])

    return every


def choice(*names: str) -> Rule:
    """One of these words."""

    def rule(value: Any, place: str) -> None:
        if value not in names:
            reject(f"{place}: must be one of {', '.join(names)}")

    return rule


def arrivals(instance: Mapping[str, Any]) -> None:
    """No job comes after the horizon."""
    for j, job in enumerate(instance["jobs"]):
        if job["arrival"] > instance["horizon"]:
            reject(f"instance.jobs[{j}].arrival: {job['arrival']} is beyond the horizon {instance['horizon']}")


def _rar_ddls(instance: Mapping[str, Any]) -> None:
    net = instance["network"]
    if net["intra_bandwidth"] < net["inter_bandwidth"]:
        reject("instance.network.intra_bandwidth: is below inter_bandwidth")
    for j, job in enumerate(instance["jobs"]):
        sends = job["gradient_size"] and job["gpus"] > 1
        if not (job["forward_time"] or job["backward_time"] or net["server_overhead"] or sends):
            reject(f"instance.jobs[{j}]: an iteration takes no time")


def _hadar(instance: Mapping[str, Any]) -> None:
    arrivals(instance)
    for j, job in enumerate(instance["jobs"]):
        if (job["utility"]["kind"] == "linear") != (job["utility"].get("deadline") is not None):
            reject(f"instance.jobs[{j}].utility.deadline: only kind linear has one, and always")


def _gpu_sharing(instance: Mapping[str, Any]) -> None:
    ids = {job["id"] for job in instance["jobs"]}
    for j, job in enumerate(instance["jobs"]):
        link = job["communication"]
        sends = job["gpus"] > 1 and (link["latency"] or (link["per_unit"] and link["message"]))
        if not (job["compute"]["fixed"] or job["compute"]["per_sample"] or sends):
            reject(f"instance.jobs[{j}]: an iteration takes no time")
    for one, row in (instance.get("interference") or {}).items():
        if one not in ids or one in row or not set(row) <= ids:
            reject(f"instance.interference.{one[:60]}: must be about other jobs that there are")


def _rigid_jobs(instance: Mapping[str, Any]) -> None:
    sizes = {pool["id"]: pool["gpus"] for pool in instance["pools"]}
    every = sum(sizes.values())
    for j, job in enumerate(instance["jobs"]):
        usable = set(job.get("pools") or ())
        if not usable <= sizes.keys():
            reject(f"instance.jobs[{j}].pools: must be pools that there are")
        if job["gpus"] > (sum(sizes[pool] for pool in usable) if usable else every):
            reject(f"instance.jobs[{j}].gpus: more than its pools have")


def _ddl_cluster(instance: Mapping[str, Any]) -> None:
    sizes = {server["id"]: server["gpus"] for server in instance["servers"]}
    for j, job in enumerate(instance["jobs"]):
        place = f"instance.jobs[{j}]"
        if job["gpus"] > sum(sizes.values()) or job["memory"] > instance["gpu_memory"]:
            reject(f"{place}: needs more GPUs, or more memory, than there is")
        given = job.get("placement")
        if given is None:
            continue
        for gpu in given:
            text(gpu[0] if len(gpu) == 2 else None, f"{place}.placement")
            if gpu[0] not in sizes:
                reject(f"{place}.placement: there is no server {gpu[0][:60]!r}")
            whole(0, sizes[gpu[0]] - 1)(gpu[1], f"{place}.placement")
        if len(given) != job["gpus"] or len({tuple(gpu) for gpu in given}) != job["gpus"]:
            reject(f"{place}.placement: must be {job['gpus']} different GPUs")


def _network(instance: Mapping[str, Any]) -> None:
    nodes, seen = {server["id"] for server in instance["servers"]}, set()
    for e, link in enumerate(instance["links"]):
        pair = (link["from"], link["to"])
        if not set(pair) <= nodes or pair[0] == pair[1] or pair in seen:
            reject(f"instance.links[{e}]: must join two different nodes that there are, and be there once")
        seen.add(pair)
    for j, job in enumerate(instance["jobs"]):
        if not any(job["demand"].values()):
            reject(f"instance.jobs[{j}].demand: at least one must be positive")


def _ddljs(instance: Mapping[str, Any]) -> None:
    arrivals(instance)
    _network(instance)
    for j, job in enumerate(instance["jobs"]):
        shape = job["utility"]
        for name, kind in (("steepness", "sigmoid"), ("midpoint", "sigmoid"), ("least", "log")):
            if (shape.get(name) is not None) != (shape["kind"] == kind):
                reject(f"instance.jobs[{j}].utility: {name} belongs to kind {kind}")


def _gang_placement(instance: Mapping[str, Any]) -> None:
    levels = [*(instance.get("levels") or []), "node"]
    if len(set(levels)) != len(levels):
        reject("instance.levels: must be different, and none of them node")
    free = {node["id"]: list(node.get("gpus") or []) for node in instance["nodes"]}
    for n, node in enumerate(instance["nodes"]):
        if len(node.get("domain") or []) != len(levels) - 1:
            reject(f"instance.nodes[{n}].domain: must have a label for each level")
    for r, pod in enumerate(instance.get("running") or []):
        there = free.get(pod["node"], [])
        for device, part in (pod.get("devices") or {}).items():
            if (
                pod["node"] not in free
                or not device.isdigit()
                or device != str(int(device))
                or int(device) >= len(there)
            ):
                reject(f"instance.running[{r}]: there is no such device")
            there[int(device)] += part
            if there[int(device)] > 1000:
                reject(f"instance.running[{r}].devices.{device}: more than the device has")
        parts = list((pod.get("devices") or {}).values())
        several = len(parts) > 1 and any(part != 1000 for part in parts)
        if pod["node"] not in free or (pod.get("movable") and pod.get("move_price") is not None and several):
            reject(f"instance.running[{r}]: is on no node, or has parts of several devices and may be moved")
    queues = {queue["id"]: queue for queue in instance.get("queues") or []}
    for name, queue in queues.items():
        if not set(queue.get("borrow") or {}) <= set(queue.get("quota") or {}):
            reject(f"instance.queues.{name[:60]}: borrows what its quota does not name")
        flavours = queue.get("flavours") or []
        if len({entry["flavour"] for entry in flavours}) != len(flavours) or (flavours and queue.get("cohort")):
            reject(f"instance.queues.{name[:60]}: a flavour is there twice, or there are flavours in a cohort")
        if any(not entry["quota"] or set(entry["quota"]) != set(flavours[0]["quota"]) for entry in flavours):
            reject(f"instance.queues.{name[:60]}: flavours must all limit the same resources")
    shapes = [group for gang in instance["gangs"] for group in gang["pods"]] + (instance.get("shapes") or [])
    if any(shape.get("parts") and not 0 < (shape.get("gpu") or 0) < 1000 for shape in shapes):
        reject("instance: parts of several devices are 1 to 999 of each")
    for g, gang in enumerate(instance["gangs"]):
        subgroups = {one["id"]: one["required"] for one in gang.get("subgroups") or []}
        named = [gang[name] for name in ("required", "preferred") if gang.get(name) is not None]
        if any(level not in levels for level in (*named, *subgroups.values())):
            reject(f"instance.gangs[{g}]: there is no such level")
        chosen = [group.get("subgroups") or [] for group in gang["pods"]]
        if {name for names in chosen for name in names} != set(subgroups) or any(len({*x}) < len(x) for x in chosen):
            reject(f"instance.gangs[{g}]: a subgroup is not there, empty, or twice")
        if (gang.get("queue") is not None and gang["queue"] not in queues) or (gang.get("least") or 1) > sum(
            group["count"] for group in gang["pods"]
        ):
            reject(f"instance.gangs[{g}]: there is no such queue, or least is more than its pods")


def _gpu(value: Any, place: str) -> None:
    whole(0)(value, place)
    if value > 1000 and value % 1000:
        reject(f"{place}: must be 0, 1 to 999 or a multiple of 1000")


def _others(value: Any, place: str) -> None:
    table(whole(0))(value, place)
    if "gpu" in value:
        reject(f"{place}.gpu: GPUs are not a resource by name")


def _different(*names: str) -> Rule:
    def rule(value: Any, place: str) -> None:
        several(choice(*names))(value, place)
        if len(set(value)) != len(value):
            reject(f"{place}: one is there twice")

    return rule


COUNT, FROM_ZERO, POSITIVE = whole(1), number(0), number(0, open_low=True)
SERVER = record({"id": text, "gpus": COUNT})
LINK = record({"latency": optional(FROM_ZERO), "seconds_per_unit": POSITIVE, "contention_penalty": optional(FROM_ZERO)})
NODES = {
    "servers": several(record({"id": text, "resources": table(FROM_ZERO)}), ids=True),
    "links": several(record({"from": text, "to": text, "bandwidth": FROM_ZERO}), least=0),
}
SHAPE = {
    "gpu": optional(_gpu),
    "parts": optional(whole(2)),
    "request": optional(_others),
    "selector": optional(record({"labels": optional(table(text)), "models": optional(several(text, least=0))})),
}
RING = {"id": text, "demand": table(FROM_ZERO), "bandwidth": FROM_ZERO}

PROBLEMS: dict[str, tuple[dict[str, Rule], Callable[[Mapping[str, Any]], None] | None]] = {
    "rar-ddls": (
        {
            "horizon": COUNT,
            "network": record(
                {
                    "inter_bandwidth": POSITIVE,
                    "intra_bandwidth": POSITIVE,
                    "contention_scale": number(0, 1, open_low=True),
                    "contention_penalty": FROM_ZERO,
                    "server_overhead": FROM_ZERO,
                }
            ),
            "reduce_speed": POSITIVE,
            "servers": several(SERVER, ids=True),
            "jobs": several(
                record(
                    {"id": text, "gpus": COUNT, "iterations": COUNT, "batch_size": COUNT}
                    | dict.fromkeys(("gradient_size", "forward_time", "backward_time"), FROM_ZERO)
                ),
                ids=True,
            ),
        },
        _rar_ddls,
    ),
    "hadar": (
        {
            "horizon": COUNT,
            "slot_length": POSITIVE,
            "all_jobs_must_finish": optional(flag),
            "machines": several(record({"id": text, "gpus": table(COUNT)}), ids=True),
            "jobs": several(
                record(
                    {"id": text, "throughput": table(FROM_ZERO)}
                    | dict.fromkeys(("arrival", "workers", "epochs", "iterations_per_epoch"), COUNT)
                    | {
                        "utility": record(
                            {
                                "kind": choice("effective-throughput", "linear", "constant"),
                                "weight": FROM_ZERO,
                                "deadline": optional(POSITIVE),
                            }
                        )
                    }
                ),
                ids=True,
            ),
        },
        _hadar,
    ),
    "gpu-sharing": (
        {
            "horizon": COUNT,
            "slot_length": POSITIVE,
            "servers": several(SERVER, ids=True),
            "gpu_memory": POSITIVE,
            "max_jobs_per_gpu": whole(1, 2),
            "jobs": several(
                record(
                    {"id": text, "overlap": number(1), "limit": optional(POSITIVE)}
                    | dict.fromkeys(("arrival", "gpus", "iterations", "batch_size"), COUNT)
                    | dict.fromkeys(("compute", "memory"), record({"fixed": FROM_ZERO, "per_sample": FROM_ZERO}))
                    | {"communication": record(dict.fromkeys(("latency", "per_unit", "message"), FROM_ZERO))}
                ),
                ids=True,
            ),
            "interference": optional(table(table(number(1)))),
        },
        _gpu_sharing,
    ),
    "rigid-jobs": (
        {
            "objective": choice("jct", "area"),
            "pools": several(record({"id": text, "gpus": COUNT}), ids=True),
            "jobs": several(
                record(
                    {"id": text, "arrival": whole(0), "pools": optional(several(text))}
                    | dict.fromkeys(("length", "gpus"), COUNT)
                ),
                ids=True,
            ),
        },
        _rigid_jobs,
    ),
    "comm-contention": (
        {
            "link": LINK,
            "tasks": several(record({"id": text, "release": FROM_ZERO, "size": POSITIVE}), ids=True),
        },
        None,
    ),
    "ddl-cluster": (
        {
            "gpu_memory": POSITIVE,
            "servers": several(SERVER, ids=True),
            "link": LINK,
            "jobs": several(
                record(
                    {"id": text, "gpus": COUNT, "iterations": COUNT}
                    | dict.fromkeys(("arrival", "memory"), FROM_ZERO)
                    | dict.fromkeys(("forward", "backward", "message"), POSITIVE)
                    | {"placement": optional(several(several(lambda value, place: None)))}
                ),
                ids=True,
            ),
        },
        _ddl_cluster,
    ),
    "gang-placement": (
        {
            "levels": optional(several(text, least=0)),
            "nodes": several(
                record(
                    {"id": text, "domain": optional(several(text, least=0))}
                    | dict.fromkeys(("gpu_model", "flavour"), optional(text))
                    | {"gpus": optional(several(whole(0, 1000), least=0)), "free": optional(_others)}
                    | {"labels": optional(table(lambda value, place: None if value == "" else text(value, place)))}
                ),
                ids=True,
            ),
            "running": optional(
                several(
                    record(
                        {
                            "id": text,
                            "node": text,
                            "devices": optional(table(whole(1, 1000))),
                            "movable": optional(flag),
                        }
                        | {key: SHAPE[key] for key in ("request", "selector")}
                        | dict.fromkeys(("price", "move_price"), optional(FROM_ZERO))
                    ),
                    ids=True,
                    least=0,
                )
            ),
            "queues": optional(
                several(
                    record(
                        {"id": text, "cohort": optional(text)}
                        | dict.fromkeys(("quota", "borrow"), optional(table(whole(0))))
                        | {"flavours": optional(several(record({"flavour": text, "quota": table(whole(0))})))}
                    ),
                    ids=True,
                    least=0,
                )
            ),
            "gangs": several(
                record(
                    {"id": text, "weight": optional(POSITIVE)}
                    | {"pods": several(record({"count": COUNT, "subgroups": optional(several(text))} | SHAPE))}
                    | {"subgroups": optional(several(record({"id": text, "required": text}), ids=True))}
                    | {"priority": optional(whole(-(10**9))), "arrival": optional(FROM_ZERO)}
                    | dict.fromkeys(("queue", "required", "preferred"), optional(text))
                    | dict.fromkeys(("per_node", "least"), optional(COUNT))
                ),
                ids=True,
                least=0,
            ),
            "objectives": optional(_different("weight", "topology", "fragmentation", "moves")),
            "flat": optional(flag),
            "shapes": optional(several(record(SHAPE | {"share": POSITIVE}))),
        },
        _gang_placement,
    ),
    "g-vne": (NODES | {"jobs": several(record(RING | {"utility": several(number())}), ids=True)}, _network),
    "ddljs": (
        NODES
        | {
            "horizon": COUNT,
            "jobs": several(
                record(
                    RING
                    | {"arrival": COUNT, "max_workers": COUNT, "budget": table(FROM_ZERO), "efficiency": FROM_ZERO}
                    | {
                        "utility": record(
                            {
                                "kind": choice("linear", "sqrt", "log1p", "log", "energy", "sigmoid"),
                                "scale": FROM_ZERO,
                                "least": optional(POSITIVE),
                                "steepness": optional(FROM_ZERO),
                                "midpoint": optional(number()),
                            }
                        )
                    }
                ),
                ids=True,
            ),
        },
        _ddljs,
    ),
}
"""Fields of each problem, and what must hold between them."""

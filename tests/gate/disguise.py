"""The same instance under other names and in other units."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

Data = dict[str, Any]
Draw = random.Random

WORDS = (
    "gpus", "links", "slots", "horizon", "memory", "servers", "jobs", "start", "end", "rate", "total", "idle", "bound",
    "x[0,1]", "start[0,1]", "meet[0,0,1,3]", "finish", "0", "-1", "None", "nan", "true", "a b", "a,b", "é", "作业", "∞",
)  # fmt: skip
"""Ids that a program could take for something of its own."""


NAMED = ("resources", "demand", "budget", "gpus", "throughput", "interference")
"""Objects whose keys are ids."""


def renamed(draw: Draw, data: Data) -> Data:
    """The same instance with other ids; jobs and servers may have the same ones."""
    names: dict[str, str] = {}
    kinds = {name for machine in data.get("machines", ()) for name in machine["gpus"]}
    kinds |= (
        {name for server in data["servers"] for name in server.get("resources", ())} if "servers" in data else set()
    )
    groups = [[one["id"] for one in data.get(key, ())] for key in ("servers", "machines", "jobs", "tasks")]
    for ids in (*groups, sorted(kinds)):
        words = WORDS[: max(8, len(ids))] if draw.random() < 0.5 else WORDS
        names.update(zip(ids, draw.sample(words, len(ids)), strict=True))

    def walk(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            # `gpu` is a resource here and a count there: only where resources are named does it change
            own = names if key in (*NAMED, *names) else {}
            return {own.get(name, name): walk(part, name) for name, part in value.items()}
        if isinstance(value, list):
            return [walk(part, key) for part in value]
        text = isinstance(value, str) and key not in ("problem", "name", "kind")
        return names.get(value, value) if text else value

    renewed: Data = walk(data)
    return renewed


def scaled(data: Data, power: int, *paths: str) -> None:
    """Multiply numbers by a power of ten, as decimals; `*` in a path is every part."""
    for path in paths:
        _scale(data, power, path.split("."))


def _scale(data: Any, power: int, path: Sequence[str]) -> None:
    first, *rest = path
    keys = list(data) if isinstance(data, dict) else range(len(data))
    for key in keys if first == "*" else [first]:
        if isinstance(data, Mapping) and key not in data:
            continue
        if rest:
            _scale(data[key], power, rest)
        elif data[key] is not None:
            data[key] = float(Decimal(repr(float(data[key]))).scaleb(power))


UNITS: dict[str, tuple[tuple[tuple[int, str], ...], ...]] = {
    "rar-ddls": (
        (
            (1, "network.inter_bandwidth"),
            (1, "network.intra_bandwidth"),
            (1, "reduce_speed"),
            (1, "jobs.*.gradient_size"),
        ),
    ),
    "gpu-sharing": (
        (
            (1, "slot_length"),
            (1, "jobs.*.compute.*"),
            (1, "jobs.*.communication.latency"),
            (1, "jobs.*.communication.per_unit"),
        ),
        ((1, "gpu_memory"), (1, "jobs.*.memory.*")),
    ),
    "hadar": (
        ((1, "slot_length"), (1, "jobs.*.utility.deadline"), (-1, "jobs.*.throughput.*")),
        ((1, "jobs.*.utility.weight"),),
    ),
    "g-vne": (
        ((1, "links.*.bandwidth"), (1, "jobs.*.bandwidth")),
        ((1, "servers.*.resources.*"), (1, "jobs.*.demand.*")),
        ((1, "jobs.*.utility.*"),),
    ),
    "ddljs": (
        ((1, "links.*.bandwidth"), (1, "jobs.*.bandwidth")),
        ((1, "servers.*.resources.*"), (1, "jobs.*.demand.*"), (1, "jobs.*.budget.*")),
        ((1, "jobs.*.utility.scale"),),
    ),
    "comm-contention": (
        ((1, "link.latency"), (1, "link.seconds_per_unit"), (1, "link.contention_penalty"), (1, "tasks.*.release")),
        ((1, "tasks.*.size"), (-1, "link.seconds_per_unit"), (-1, "link.contention_penalty")),
    ),
    "ddl-cluster": (
        (
            (1, "link.latency"),
            (1, "link.seconds_per_unit"),
            (1, "link.contention_penalty"),
            (1, "jobs.*.arrival"),
            (1, "jobs.*.forward"),
            (1, "jobs.*.backward"),
        ),
        ((1, "jobs.*.message"), (-1, "link.seconds_per_unit"), (-1, "link.contention_penalty")),
        ((1, "gpu_memory"), (1, "jobs.*.memory")),
    ),
    "gang-placement": (((1, "gangs.*.weight"),), ((1, "running.*.price"), (1, "running.*.move_price"))),
}
"""Groups of numbers that share a unit, with its power."""


def disguised(draw: Draw, problem: str, data: Data) -> Data:
    """The same instance in other units, which changes decimals only, and with other ids."""
    data.pop("name", None)
    for group in UNITS[problem]:
        if draw.random() < 0.25:
            power = draw.randint(-4, 4) if draw.random() < 0.85 else draw.randint(-15, 9)
            for sign, path in group:
                scaled(data, sign * power, path)
    if draw.random() < 0.4:
        data = renamed(draw, data)
    return data

"""-- Ray"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from schedgap.benchmarks.importers.rows import shortened
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json, read_json
from schedgap.formulations.gang_placement.instance import WHOLE
from schedgap.tools.judge.draft import Counting, Draft, Words
from schedgap.tools.judge.kubernetes.listing import quantity
from schedgap.tools.judge.table import UNREAD, way_of


def ray(data: Json, source: str, nodes: Path, *, outward: bool = False) -> Draft:
    """Placement groups on nodes, as ``ray list ... --format json --detail`` writes them.

    STRICT_PACK is one node, STRICT_SPREAD one bundle a node, PACK a preferred node. Where the listing does not tell the
    strategy, which depends on Ray's version, a group of several bundles is read without one.
    """
    draft = Draft(source, outward=outward)
    draft.facts.fixed = "what runs is taken as fixed: Ray moves and ends no placement groups"
    draft.facts.unlisted = "what runs outside of placement groups is not listed"
    if isinstance(data, Mapping):
        data = [_of_table(name, group, source) for name, group in data.items()]
    groups = list(enumerate(_objects(data, source)))
    bundles = {g: _bundles(group, f"{source}: [{g}]") for g, group in groups if group.get("state") in WAITING}
    asked = {name for result in bundles.values() for amounts in result for name in amounts}
    rooms = []
    for position, node in enumerate(_objects(read_json(nodes), str(nodes))):
        place = f"{nodes}: [{position}]"
        if node.get("state") != "ALIVE":
            draft.unread["nodes that are not alive"] += 1
            continue
        room = _ray_amounts(node.get("resources_total"), f"{place}.resources_total")
        rooms.append((place, str(node.get("node_id")), room.pop("GPU", Fraction(0)), room))
    rest = [{name: amount for name, amount in room.items() if ":" not in name or name in asked} for *_, room in rooms]
    counting = Counting([*rest, *(_without_gpu(item) for result in bundles.values() for item in result)], outward)
    draft.apart |= counting.apart
    draft.facts.units = counting.units
    for (place, name, gpus, room), kept in zip(rooms, rest, strict=True):
        model = next((key.partition(":")[2] for key in room if key.startswith("accelerator_type:")), None)
        draft.node(name, int(gpus), model, counting.room(kept), place)
    draft.distinct((str(group.get("placement_group_id")), f"{source}: [{g}].placement_group_id") for g, group in groups)
    for position, group in sorted(groups, key=lambda item: _came(item[1])):
        if position in bundles:
            _ray_group(draft, group, f"{source}: [{position}]", bundles[position], counting)
        else:
            draft.unread[f"placement groups that are {str(group.get('state'))[:20]}"] += 1
    return draft


WAITING = ("CREATED", "PENDING", "PREPARED", "RESCHEDULING")
"""States of placement groups that are placed or to be placed."""
HOLDING = ("PREPARED", "RESCHEDULING")
"""States in which Ray keeps what it has reserved for some bundles."""


def _bundles(group: Mapping[str, Any], place: str) -> list[dict[str, Fraction]]:
    """What each bundle of a group asks for."""
    found = _objects(group.get("bundles"), f"{place}.bundles")
    return [
        _ray_amounts(one.get("unit_resources"), f"{place}.bundles[{b}].unit_resources") for b, one in enumerate(found)
    ]


def _without_gpu(amounts: Mapping[str, Fraction]) -> dict[str, Fraction]:
    return {name: amount for name, amount in amounts.items() if name != "GPU"}


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


def _ray_group(
    draft: Draft, group: Mapping[str, Any], place: str, bundles: Sequence[Mapping[str, Fraction]], counting: Counting
) -> None:
    result: dict[tuple[tuple[str, int], ...], dict[str, Any]] = {}
    seats: list[tuple[int, int]] = []
    listed = _objects(group.get("bundles"), f"{place}.bundles")
    for b, (bundle, asked) in enumerate(zip(listed, bundles, strict=True)):
        exact = asked.get("GPU", Fraction(0)) * WHOLE
        draft.apart |= exact.denominator > 1
        gpu = max(1, math.floor(exact)) if draft.outward and exact else math.ceil(exact)
        if gpu > WHOLE and gpu % WHOLE:
            raise InputError(
                f"{place}.bundles[{b}].unit_resources.GPU: above 1 it must be whole, got {float(asked['GPU']):g}"
            )
        request = counting.asked(_without_gpu(asked))
        key = (("GPU", gpu), *sorted(request.items()))
        pods = result.setdefault(key, {"count": 0, "gpu": gpu, "request": request})
        pods["count"] += 1
        if group["state"] == "CREATED" or (group["state"] in HOLDING and bundle.get("node_id")):
            node = str(bundle.get("node_id"))
            if node not in draft.index:
                raise InputError(f"{place}.bundles[{b}].node_id: there is no node {node[:60]!r} that is alive")
            seats.append((list(result).index(key), draft.index[node]))
    strategy = str(group.get("strategy") or "").upper()
    name = str(group.get("placement_group_id"))
    unread = [
        row.why
        for where, part in (("group", group), *(("bundle", bundle) for bundle in listed))
        for key, value in part.items()
        if value not in (None, "", {}, [], 0) and (row := way_of("ray", where, key)).way == UNREAD
    ]
    if group["state"] in HOLDING and len(seats) < len(bundles):
        unread.append(f"it is {group['state']}: what Ray has reserved for it is not all listed")
    if unread or not bundles:
        reason = "; ".join(dict.fromkeys(unread)) or "it has no bundles"
        draft.aside(
            name,
            len(bundles),
            sum((one.get("GPU", Fraction(0)) for one in bundles), Fraction(0)),
            reason,
            placed=bool(seats),
        )
        for k, n in seats:
            group_of = list(result.values())[k]
            draft.run(f"{name} on {draft.nodes[n]['id']}", n, group_of["gpu"] // WHOLE, group_of["request"])
        return
    draft.unread["placement groups that wish to be spread"] += strategy == "SPREAD"
    told = strategy in ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD") or len(bundles) == 1
    draft.wait(
        name,
        list(result.values()),
        seats,
        rules=[] if told else ["its strategy"],
        required="node" if strategy == "STRICT_PACK" else None,
        preferred="node" if strategy in ("", "PACK") else None,
        per_node=1 if strategy == "STRICT_SPREAD" else None,
    )
    draft.facts.words[shortened(name, draft.cut)] = Words("STRICT_PACK", "STRICT_SPREAD")


def _objects(data: Json, place: str) -> list[Mapping[str, Any]]:
    if not isinstance(data, list) or not all(isinstance(one, Mapping) for one in data):
        raise InputError(f"{place}: must be a list of objects, as ray list --format json --detail writes it")
    return data


def _ray_amounts(given: Json, place: str) -> dict[str, Fraction]:
    """Resources, memory in bytes."""
    if not isinstance(given, Mapping):
        raise InputError(f"{place}: must be an object, got {type(given).__name__}")
    result = {}
    for name, amount in given.items():
        text = re.fullmatch(r"([0-9]{1,20}(?:\.[0-9]{1,20})?) ([KMGT]i)?B", amount) if isinstance(amount, str) else None
        exact: Fraction | None = None
        if text is not None:  # how the listing of nodes writes memory
            exact = quantity(text[1] + (text[2] or ""), f"{place}.{name[:60]}")
        elif not isinstance(amount, bool) and isinstance(amount, int | float) and 0 <= amount < 1e18:
            exact = Fraction(str(amount))
        if exact is None:
            raise InputError(f"{place}.{name[:60]}: must be a number from 0, got {str(amount)[:40]!r}")
        if not name.startswith("object_store_memory"):
            result["cpu" if name == "CPU" else name] = exact
    return result

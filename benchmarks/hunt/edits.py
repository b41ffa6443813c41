"""Edits of an instance as a JSON object that keep what belongs together: entries, ids, lists as long as the horizon."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from schedgap.benchmarks.hunt.fields import Field, Group, fields_of, groups_of, put_at, value_at
from schedgap.benchmarks.hunt.limits import Space
from schedgap.formulations.common.instance import Json

Data = dict[str, Json]


def removed(data: Mapping[str, Json], group: Group, key: Json) -> Data:
    """`data` without one entry; where it had an id, whatever names that id goes too."""
    result: Data = copy.deepcopy(dict(data))
    item = value_at(result, (*group.path, key))
    del value_at(result, group.path)[key]
    if isinstance(item, Mapping) and isinstance(item.get("id"), str):
        _drop_references(result, item["id"])
    return result


def _drop_references(node: Any, name: str) -> None:
    """Drop keys equal to `name`, list entries equal to it, and objects in lists that refer to it."""
    if isinstance(node, dict):
        node.pop(name, None)
        for below in node.values():
            _drop_references(below, name)
    elif isinstance(node, list):
        node[:] = [one for one in node if not (one == name or (isinstance(one, dict) and _refers(one, name)))]
        for below in node:
            _drop_references(below, name)


def _refers(item: Mapping[str, Any], name: str) -> bool:
    return "id" not in item and any(value == name for value in item.values() if isinstance(value, str))


def duplicated(data: Mapping[str, Json], group: Group, item: Json, source: str | None = None) -> Data:
    """`data` with a copy of `item` at the end of a list, under a new id; what the old id had is copied too.

    Parameters
    ----------
    item : the entry; with an id where entries have one
    source : the id whose keys elsewhere are copied for the new entry; None copies nothing
    """
    result: Data = copy.deepcopy(dict(data))
    entries = value_at(result, group.path)
    new = copy.deepcopy(item)
    if isinstance(new, dict) and isinstance(new.get("id"), str):
        new["id"] = _fresh(new["id"], {one.get("id") for one in entries if isinstance(one, dict)})
        if source is not None:
            _copy_references(result, source, new["id"])
    entries.append(new)
    return result


def _fresh(name: str, taken: set[Any]) -> str:
    stem = name.rstrip("0123456789") or "x"
    return next(f"{stem}{k}" for k in range(len(taken) + 1) if f"{stem}{k}" not in taken)


def _copy_references(node: Any, old: str, new: str) -> None:
    """Give `new` a copy of everything that stands under the key `old`; links that name `old` get a twin."""
    if isinstance(node, dict):
        for below in node.values():
            _copy_references(below, old, new)
        if old in node:
            node[new] = copy.deepcopy(node[old])
    elif isinstance(node, list):
        for below in node:
            _copy_references(below, old, new)
        twins = [one for one in node if isinstance(one, dict) and _refers(one, old)]
        node += [{key: new if value == old else value for key, value in one.items()} for one in twins]


def with_number(data: Mapping[str, Json], leaf: Field, value: Json) -> Data:
    """`data` with another value in one place; lists as long as a changed horizon change their length with it."""
    result: Data = copy.deepcopy(dict(data))
    before = value_at(result, leaf.path)
    put_at(result, leaf.path, value)
    if leaf.path == ("horizon",):
        _resize(result, before, value)
        for job in result.get("jobs", []):
            if isinstance(job, dict) and isinstance(job.get("arrival"), int):
                job["arrival"] = min(job["arrival"], value)
    return result


def _resize(node: Any, before: int, after: int) -> None:
    if isinstance(node, dict):
        for below in node.values():
            _resize(below, before, after)
    elif isinstance(node, list):
        for below in node:
            _resize(below, before, after)
        if len(node) == before and node and not (isinstance(node[0], dict) and "id" in node[0]):
            node[:] = [copy.deepcopy(node[min(k, before - 1)]) for k in range(after)]


def fitted(data: Mapping[str, Json], space: Space) -> Data:
    """`data` cut down to the space: lists shortened from the end, numbers moved into their ranges."""
    result: Data = copy.deepcopy(dict(data))
    result.pop("name", None)
    for group in groups_of(space.schema, result):
        most = space.lengths.get(group.pattern)
        while most is not None and not group.keyed and len(value_at(result, group.path)) > most:
            result = removed(result, group, len(value_at(result, group.path)) - 1)
    for leaf in fields_of(space.schema, result):
        before = value_at(result, leaf.path)
        value: Json = None
        if leaf.kind in (int, float):
            value = space.clamp(leaf, before)
        elif leaf.pattern in space.words and before not in space.words[leaf.pattern]:
            value = space.words[leaf.pattern][0]
        if value is not None and value != before:
            result = with_number(result, leaf, value)
    return result

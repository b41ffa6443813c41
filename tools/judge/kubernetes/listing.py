"""What ``kubectl get nodes,pods -A -o json`` lists, by kind, with what pods ask for and nodes have."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from operator import add
from typing import Any

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.tools.judge.draft import MOST_WAITING, Amounts
from schedgap.tools.judge.table import IDLE, KEPT, UNREAD, row_of, way_of

FACTORS = {"": Fraction(1), "m": Fraction(1, 1000), "u": Fraction(1, 10**6), "n": Fraction(1, 10**9)}
FACTORS |= {letter: Fraction(1000) ** (n + 1) for n, letter in enumerate(("k", "M", "G", "T", "P", "E"))}
FACTORS |= {f"{letter}i": Fraction(1024) ** (n + 1) for n, letter in enumerate("KMGTPE")}
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,3})|([a-zA-Z]{0,2}))")
_MOST_CHARACTERS = 100
"""Most characters of a quantity."""
_RESOURCES = {"requests": dict, "limits": dict}
_TERM = {"matchExpressions": [{"values": [str]}], "matchFields": [{"values": [str]}]}
_AFFINITY = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]}}
_PODS: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": dict}]}
_TEXTS = {str: str}
_SPEC: dict[str, Any] = {
    **{"nodeName": str, "schedulerName": str, "priority": int, "nodeSelector": _TEXTS, "overhead": dict},
    **{name: [{"resources": _RESOURCES, "ports": [{}]}] for name in ("containers", "initContainers")},
    **{"volumes": [{}], "tolerations": [{}], "resources": _RESOURCES, "schedulingGates": [{}]},
    **{"topologySpreadConstraints": [{}], "schedulingGroup": dict, "workloadRef": dict},
    "affinity": {"nodeAffinity": _AFFINITY, "podAffinity": _PODS, "podAntiAffinity": _PODS},
}
_META = {
    "metadata": {
        "name": str,
        "namespace": str,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "ownerReferences": [{"kind": str}],
    }
}
CONTAINERS = ("initContainerStatuses", "containerStatuses")
_STATUS = {"conditions": [{}], "allocatable": dict, "capacity": dict}
_SUB = [{"name": str, "minMember": int, "minReplicas": int, "parent": str, "topologyConstraint": dict}]
_LEVELS = [{"podGroupNames": [str], "topologyConstraint": dict}]
_TEMPLATE = {"metadata": {"labels": _TEXTS, "annotations": _TEXTS}, "spec": _SPEC}
FORMS: dict[str, dict[str, Any]] = {
    "Node": {**_META, "spec": {"taints": [{}]}, "status": _STATUS},
    "Pod": {**_META, "spec": _SPEC, "status": {"phase": str, "nominatedNodeName": str}},
    "Topology": {**_META, "spec": {"levels": [{"nodeLabel": str}]}},
    "PodGroup": {
        **_META,
        "spec": {
            **{"minMember": int, "minResources": dict, "subGroups": _SUB, "topologyConstraint": dict},
            "schedulingPolicy": {"gang": {"minCount": int}},
            "schedulingConstraints": {"topology": [{"key": str}]},
        },
        "status": {"phase": str},
    },
    "PodGang": {**_META, "spec": {"podgroups": _SUB, "topologyConstraintGroupConfigs": _LEVELS}},
    "Workload": {
        **_META,
        "spec": {
            **{"queueName": str, "priority": int, "active": bool},
            "podSets": [{"name": str, "count": int, "minCount": int, "template": _TEMPLATE, "topologyRequest": dict}],
            "podGroups": [{"name": str, "policy": {"gang": {"minCount": int}}}],
        },
        "status": _STATUS,
    },
    "ClusterQueue": {**_META, "spec": {"resourceGroups": [{"flavors": [{"resources": [{"name": str}]}]}]}},
    "ResourceFlavor": {**_META, "spec": {"nodeLabels": dict, "nodeTaints": list, "tolerations": list}},
    "LocalQueue": {**_META, "spec": {"clusterQueue": str}},
    "Job": {**_META, "spec": {"suspend": bool}},
    "JobSet": {**_META, "spec": {"suspend": bool}},
}
"""What is read of each kind, with the type of each part; ``str`` as a key is every key."""
_TYPES = {dict: "an object", list: "a list", str: "a text", int: "a whole number", bool: "true or false"}


def quantity(text: object, place: str) -> Fraction:
    """A quantity as Kubernetes writes it: ``500m``, ``16Gi``, ``2``, ``1e3``.

    Raises InputError: it is none; the line names the place and the value.
    """
    value = _amount(text) if isinstance(text, str | int | float) else None
    if value is None:
        raise InputError(f"{place}: {str(text)[:40]!r} is no quantity, such as 500m or 16Gi")
    if not 0 <= value < 2**63:
        raise InputError(f"{place}: {str(text)[:40]} is not from 0 to 2^63 - 1")
    return value


@lru_cache(maxsize=10_000)
def _amount(text: str | int | float) -> Fraction | None:
    """A quantity; None where it is none."""
    found = _QUANTITY.fullmatch(str(text).strip())
    if found is None or len(found[1]) > _MOST_CHARACTERS or (found[3] or "") not in FACTORS:
        return None
    return Fraction(found[1]) * (Fraction(10) ** int(found[2]) if found[2] else FACTORS[found[3] or ""])


def _joined(how: Callable[[Fraction, Fraction], Fraction], one: Amounts, other: Amounts) -> dict[str, Fraction]:
    """Amounts of two, by resource; where they share none, any way to join them is to have both."""
    if one.keys().isdisjoint(other):
        return {**one, **other}
    none = Fraction(0)
    return {name: how(one.get(name, none), other.get(name, none)) for name in {**one, **other}}


def key_of(item: Mapping[str, Json]) -> str:
    """Namespace and name."""
    return f"{item['metadata'].get('namespace', 'default')}/{item['metadata']['name']}"


def note(item: Mapping[str, Json], name: str) -> str | None:
    """A label or annotation."""
    for part in ("labels", "annotations"):
        value = (item["metadata"].get(part) or {}).get(name)
        if value is not None:
            return str(value)
    return None


def leaves(item: Mapping[str, Json]) -> bool:
    """Whether it is being deleted: no scheduler places it any more, and what it holds is free soon."""
    return item["metadata"].get("deletionTimestamp") is not None


def waits(pod: Mapping[str, Json]) -> bool:
    """Whether none of its containers, those of the beginning among them, has started."""
    status = pod.get("status") or {}
    states = [one.get("state") or {} for part in CONTAINERS for one in status.get(part) or [] if isinstance(one, dict)]
    return status.get("phase") == "Pending" and not any("running" in one or "terminated" in one for one in states)


def api_group(item: Mapping[str, Json]) -> str:
    """The API group of an object; empty where it is not told, or the core's."""
    group, separator, _ = str(item.get("apiVersion") or "").partition("/")
    return group if separator else ""


class Kubernetes:
    """One listing, read once.

    Parameters
    ----------
    items : its nodes, pods, and what else is there

    Attributes
    ----------
    kinds : objects with their places, by kind
    pods : pods with their places; those that have ended, or are deleted before they had a node, are not among them
    unread : what was not understood or left out, counted
    """

    def __init__(self, items: Sequence[Json], source: str) -> None:
        self.source = source
        self.unread: Counter[str] = Counter()
        self.asked: dict[int, tuple[Mapping[str, Json], Amounts]] = {}  # by the identity of a pod, which it keeps alive
        self.kinds: dict[str, list[tuple[str, Json]]] = defaultdict(list)
        first: dict[tuple[str, str, str], int] = {}
        for position, item in enumerate(items):
            place = f"{source}: items[{position}]"
            if not isinstance(item, Mapping) or not isinstance(item.get("kind"), str):
                raise InputError(f"{place}.kind: is missing")
            kind = item["kind"]
            form = FORMS.get(kind, _META)
            _formed(item, form, place)
            if not (item.get("metadata") or {}).get("name"):
                raise InputError(f"{place}.metadata.name: is missing")
            name = item["metadata"]["name"] if kind == "Node" else key_of(item)
            there = first.setdefault((kind, api_group(item), name), position)
            if form is not _META and there != position:
                raise InputError(f"{place}.metadata.name: {name[:60]!r} is already the name of items[{there}]")
            self.kinds[kind].append((place, item))
        self.nodes = self.kinds["Node"]
        self.pods = [(place, pod) for place, pod in self.kinds["Pod"] if self._lives(pod)]
        if not self.nodes:
            raise InputError(f"{source}: items: there is no node: kubectl get nodes,pods -A -o json lists both")
        self.strange = [
            kind
            for kind in self.kinds
            if kind not in FORMS and row_of("kubernetes", "kind", kind) is None
            if way_of("kubernetes", "kind", kind).way == UNREAD
        ]
        """Kinds that no table knows and whose names bear on placement: what they say may keep any gang out."""
        for kind, found in self.kinds.items():
            if kind not in FORMS and way_of("kubernetes", "kind", kind).way not in (IDLE, KEPT):
                self.unread[f"objects of kind {kind[:80]}"] += len(found)

    def _lives(self, pod: Mapping[str, Json]) -> bool:
        over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        given_up = not over and leaves(pod) and (pod.get("spec") or {}).get("nodeName") is None
        self.unread["pods that have ended"] += over
        self.unread["pods that have no node and are being deleted"] += given_up
        return not over and not given_up

    def request(self, place: str, pod: Mapping[str, Json]) -> Amounts:
        """What a pod asks for: all that runs at a time, with sidecars from their turn among the init containers.

        What the pod as a whole asks for stands in place of its containers'.
        """
        if id(pod) not in self.asked:  # two readings ask the same
            self.asked[id(pod)] = pod, self._request(place, pod)
        return self.asked[id(pod)][1]

    def _request(self, place: str, pod: Mapping[str, Json]) -> Amounts:
        spec = pod.get("spec") or {}
        total: Amounts = {"pods": Fraction(1)}
        sidecars: Amounts = {}
        peak: Amounts = {}
        for at, container in enumerate(spec.get("containers") or []):
            total = _joined(add, total, self._requests(container, f"{place}.spec.containers[{at}]"))
        for at, container in enumerate(spec.get("initContainers") or []):
            asked = self._requests(container, f"{place}.spec.initContainers[{at}]")
            if container.get("restartPolicy") == "Always":
                total, sidecars = (_joined(add, before, asked) for before in (total, sidecars))
            else:
                peak = _joined(max, peak, _joined(add, sidecars, asked))
        overhead = spec.get("overhead") or {}
        more = {name: quantity(text, f"{place}.spec.overhead.{name}") for name, text in overhead.items()}
        every = {**_joined(max, total, peak), **self._requests(spec, f"{place}.spec")}
        return {name: amount for name, amount in _joined(add, every, more).items() if amount}

    def _requests(self, container: Mapping[str, Json], place: str) -> dict[str, Fraction]:
        """Requests of a container; a limit counts where there is no request, as Kubernetes has it."""
        resources = container.get("resources") or {}
        both = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        return {name: quantity(text, f"{place}.resources.requests.{name}") for name, text in both.items()}

    def room(self, place: str, node: Mapping[str, Json]) -> Amounts:
        """What a node has for pods."""
        status = node.get("status") or {}
        given = status.get("allocatable") or status.get("capacity")
        if not isinstance(given, Mapping):
            raise InputError(f"{place}.status.allocatable: is missing")
        room = {name: quantity(text, f"{place}.status.allocatable.{name}") for name, text in given.items()}
        self.unread["nodes that do not say how many pods they take"] += "pods" not in room
        return {"pods": Fraction(len(self.pods) + MOST_WAITING)} | room


def _formed(value: Any, form: Any, place: str) -> None:
    """Refuse a part that has another type than that which is read; what is absent or null is read as such."""
    kind = form if isinstance(form, type) else type(form)
    fits = type(value) is kind
    if not fits:
        raise InputError(f"{place}: must be {_TYPES[kind]}, got {str(value)[:40]!r}")
    if isinstance(form, list):
        for at, inner in enumerate(value):
            _formed(inner, form[0], f"{place}[{at}]")
    elif isinstance(form, dict):
        for key, part in form.items():
            for name in value if key is str else (key,):
                if value.get(name) is not None:
                    _formed(value[name], part, f"{place}.{name}")

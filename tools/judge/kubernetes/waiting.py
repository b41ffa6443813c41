"""What waits in Kubernetes without pods: Workloads of Kueue, PodGroups whose pods are not made yet, suspended Jobs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.tools.judge.draft import MOST_WAITING
from schedgap.tools.judge.kubernetes.gangs import JOINED, PREFERRED, REQUIRED, ROLE, SLICE_SIZE, SLICES, Gang, read_sets
from schedgap.tools.judge.kubernetes.listing import Kubernetes, api_group, key_of, leaves, note, quantity
from schedgap.tools.judge.table import RELAXED, UNREAD, way_of

WORKLOAD = "kueue.x-k8s.io/workload"
"""Annotation of a pod that names its Workload."""
REQUESTS = {
    "required": REQUIRED,
    "preferred": PREFERRED,
    "podSetGroupName": JOINED,
    "podSetSliceRequiredTopology": SLICES,
    "podSetSliceSize": SLICE_SIZE,
}
"""Fields of a pod set's topology request, with the annotations that say the same of pods."""


@dataclass
class Waiting:
    """A gang without pods, as pods that it would have."""

    gang: Gang
    place: str
    pods: list[Mapping[str, Json]] = field(default_factory=list)
    queue: str | None = None  # the LocalQueue, namespace and name
    sets: int = 1  # pod sets of the Workload
    order: tuple[int, str] = (0, "")  # turn in its queue: the highest priority first, then the oldest


class Workloads:
    """The Workloads of Kueue in a listing.

    Attributes
    ----------
    owners : (kind, namespace and name) of what is waiting as a Workload
    assigned : whether an admitted Workload has nodes by Kueue's topology, and no pods
    """

    def __init__(self, listing: Kubernetes) -> None:
        self.listing = listing
        self.found: list[Waiting] = []
        self.owners: set[tuple[str, str]] = set()
        self.assigned = any(self._without_its_pods(item) for _, item in listing.kinds["Workload"])
        remaining = MOST_WAITING
        for place, item in listing.kinds["Workload"]:
            if api_group(item) not in ("kueue.x-k8s.io", ""):
                continue
            space = item["metadata"].get("namespace", "default")
            owners = {
                (str(one.get("kind")), f"{space}/{one.get('name')}")
                for one in item["metadata"].get("ownerReferences") or []
            }
            self.owners |= owners
            if self._waits(item) and not any(kind == "Pod" for kind, _ in owners):
                made = self._read(place, item)
                remaining -= len(made.pods)
                if remaining < 0:
                    raise InputError(f"{place}.spec.podSets: more than {MOST_WAITING} pods wait in Workloads")
                self.found.append(made)

    @staticmethod
    def _waits(item: Mapping[str, Json]) -> bool:
        """Whether it has no quota yet and wants it; what is being deleted does not."""
        over = any(_holds(item, kind, "True") for kind in ("QuotaReserved", "Admitted", "Finished"))
        return not over and not leaves(item) and (item.get("spec") or {}).get("active") is not False

    def _without_its_pods(self, item: Mapping[str, Json]) -> bool:
        """Whether Kueue has assigned nodes to a Workload of which no pod is listed."""
        admission = (item.get("status") or {}).get("admission") or {}
        parts = admission.get("podSetAssignments") or []
        if _holds(item, "Finished", "True") or not any(part.get("topologyAssignment") for part in parts):
            return False
        owners = {str(one.get("name")) for one in item["metadata"].get("ownerReferences") or []}
        space = item["metadata"].get("namespace", "default")
        pods = [pod for _, pod in self.listing.pods if pod["metadata"].get("namespace", "default") == space]
        return not any(
            note(pod, WORKLOAD) == item["metadata"]["name"]
            or owners & {str(one.get("name")) for one in pod["metadata"].get("ownerReferences") or []}
            for pod in pods
        )

    def _read(self, place: str, item: Mapping[str, Json]) -> Waiting:
        spec = item.get("spec") or {}
        space = item["metadata"].get("namespace", "default")
        gang = Gang(key_of(item), "Kueue")
        made = Waiting(gang, place, queue=None if spec.get("queueName") is None else f"{space}/{spec['queueName']}")
        for name in spec:
            row = way_of("kubernetes", "workload", name, closed=True)
            gang.unread += [row.why] if row.way == UNREAD else []
        if _holds(item, "Requeued", "False"):
            gang.unread.append("Kueue has not put it into its queue again (Requeued is False)")
        fewest = 0
        sets = spec.get("podSets") or []
        made.sets = len(sets)
        made.order = -int(spec.get("priority") or 0), str(item["metadata"].get("creationTimestamp") or "")
        for at, part in enumerate(sets):
            count = part.get("count", 1)
            if not 0 <= count <= MOST_WAITING:
                raise InputError(f"{place}.spec.podSets[{at}].count: must be from 0 to {MOST_WAITING}, got {count}")
            fewest += part.get("minCount") or count
            made.pods += [self._pod(gang, item, part)] * count
        if len(sets) > 1 and fewest < len(made.pods):
            gang.unread.append("its sets have fewest pods of their own")
        gang.least = fewest if fewest < len(made.pods) else None
        if made.pods:
            notes = made.pods[0]["metadata"]["annotations"]
            gang.required, gang.preferred = notes.get(REQUIRED), notes.get(PREFERRED)
            read_sets(gang, made.pods)
        return made

    @staticmethod
    def _pod(gang: Gang, item: Mapping[str, Json], part: Mapping[str, Json]) -> Mapping[str, Json]:
        """A pod of a set, as it would be made."""
        template = part.get("template") or {}
        meta, spec = template.get("metadata") or {}, template.get("spec") or {}
        notes = dict(meta.get("annotations") or {})
        for name, value in (part.get("topologyRequest") or {}).items():
            row = way_of("kubernetes", "topology request", name, closed=True)
            if value and row.way == UNREAD:
                gang.unread.append(row.why)
            if value and row.way == RELAXED:
                gang.rules.append(row.why)
            if name in REQUESTS and value is not None:
                notes[REQUESTS[name]] = str(value)
        notes.setdefault(ROLE, str(part.get("name")))
        name = {"name": f"{item['metadata']['name']}-{part.get('name')}"}
        made = {**name, "namespace": item["metadata"].get("namespace", "default"), "labels": meta.get("labels") or {}}
        priority = {"priority": item["spec"]["priority"]} if item["spec"].get("priority") is not None else {}
        return {
            "metadata": {**made, "annotations": notes},
            "spec": {**spec, **priority},
            "status": {"phase": "Pending"},
        }

    def suspended(self) -> Iterator[str]:
        """Suspended Jobs and JobSets that no Workload describes."""
        for kind in ("Job", "JobSet"):
            for _, item in self.listing.kinds[kind]:
                if (item.get("spec") or {}).get("suspend") is True and not self._described(kind, item):
                    yield key_of(item)

    def _described(self, kind: str, item: Mapping[str, Json]) -> bool:
        """Whether a Workload is of a job: by its owner, or by the name that Kueue gives it."""
        name = f"{item['metadata'].get('namespace', 'default')}/{kind.lower()}-{item['metadata']['name']}"
        return (kind, key_of(item)) in self.owners or any(
            key_of(workload) == name or key_of(workload).startswith(f"{name}-")
            for _, workload in self.listing.kinds["Workload"]
        )


def _holds(item: Mapping[str, Json], kind: str, value: str) -> bool:
    """Whether a condition of an object has a value."""
    conditions = (item.get("status") or {}).get("conditions") or []
    return any((one.get("type"), one.get("status")) == (kind, value) for one in conditions)


Amounts = Mapping[str, Fraction]


class Left(NamedTuple):
    """What a ClusterQueue has left by resource, and by flavour where one of its groups has several."""

    name: str
    quota: Amounts
    flavours: Mapping[str, Amounts]


class Quotas:
    """What ClusterQueues have left, where that is a plain number for each resource, or for each flavour of one group.

    A group of several flavours is read where each has labels of its own that no node of another flavour has.
    Source: Kueue, concepts "ClusterQueue" and "ResourceFlavor": a pod set is assigned one flavour for a group's
    resources, and its pods go to nodes with the flavour's labels.

    Attributes
    ----------
    flavour : the one flavour whose labels a node has, by the node's position; None where it has those of none
    partial : flavours whose labels some node lacks
    """

    def __init__(self, listing: Kubernetes) -> None:
        self.local = {key_of(item): item.get("spec") or {} for _, item in listing.kinds["LocalQueue"]}
        self.cluster = {item["metadata"]["name"]: (place, item) for place, item in listing.kinds["ClusterQueue"]}
        self.labelled: dict[str, Mapping[str, str]] = {}
        self.partial: set[str] = set()
        labels = [(node["metadata"].get("labels") or {}).items() for _, node in listing.nodes]
        for _, item in listing.kinds["ResourceFlavor"]:
            name, spec = str(item["metadata"]["name"]), item.get("spec") or {}
            asked = spec.get("nodeLabels") or {}
            if not all(asked.items() <= has for has in labels):
                self.partial.add(name)
            if asked and not spec.get("nodeTaints") and not spec.get("tolerations"):
                self.labelled[name] = asked
        self.flavour: list[str | None] = []
        self.shared: set[str] = set()
        for has in labels:
            names = [name for name, asked in self.labelled.items() if asked.items() <= has]
            self.flavour.append(names[0] if names else None)
            self.shared.update(names if len(names) > 1 else ())

    def _cluster_queue(self, queue: str | None) -> tuple[str, Mapping[str, Json] | None]:
        """Place and object of the ClusterQueue of a LocalQueue; None where one of the two is not listed."""
        return self.cluster.get(str(self.local.get(queue or "", {}).get("clusterQueue")), ("", None))

    def waits_behind(self, waiting: Waiting, others: Sequence[Waiting]) -> bool:
        """Whether another Workload may have to be admitted first: in a ClusterQueue that is StrictFIFO.

        Source: Kueue, concepts "ClusterQueue": with `StrictFIFO` an older Workload that cannot be admitted blocks newer
        ones.
        """
        _, item = self._cluster_queue(waiting.queue)
        strict = ((item or {}).get("spec") or {}).get("queueingStrategy") == "StrictFIFO"
        same = [one for one in others if one is not waiting and self._cluster_queue(one.queue)[1] is item]
        return strict and any(one.order <= waiting.order for one in same)

    def rules(self, queue: str | None, asked: Collection[str]) -> tuple[list[str], list[str]]:
        """(rules of a LocalQueue and its ClusterQueue that are left out, why what waits in it cannot be judged).

        Source: Kueue, concepts "ClusterQueue": `namespaceSelector`, `admissionChecks`, `stopPolicy`; a Workload that
        asks for a resource outside `coveredResources` is not admitted.
        """
        _, item = self._cluster_queue(queue)
        spec = (item or {}).get("spec") or {}
        stopped = {str(one.get("stopPolicy") or "None") for one in (spec, self.local.get(queue or "", {}))}
        groups = spec.get("resourceGroups") or []
        covered = {str(name) for group in groups for name in group.get("coveredResources") or []}
        flavours = {str(flavor.get("name")) for group in groups for flavor in group.get("flavors") or []}
        rules = []
        if spec.get("namespaceSelector"):
            rules.append("the namespaces of its queue")
        if spec.get("admissionChecks") or spec.get("admissionChecksStrategy"):
            rules.append("the admission checks of its queue")
        if covered and not set(asked) <= covered:
            rules.append("a resource that its queue does not cover")
        if len(flavours) == 1 and flavours <= self.partial:
            rules.append("the nodes of its queue's flavour")
        return rules, [] if stopped == {"None"} else ["its queue is stopped (stopPolicy)"]

    def left(self, queue: str | None) -> Left | None:
        """What is left of the ClusterQueue of a LocalQueue; None where that is not read."""
        place, item = self._cluster_queue(queue)
        if item is None:
            return None
        spec, status = item.get("spec") or {}, item.get("status") or {}
        plain = not spec.get("cohort") and not spec.get("cohortName") and not spec.get("fairSharing")
        used = status.get("flavorsReservation") or status.get("flavorsUsage")
        groups = [group.get("flavors") or [] for group in spec.get("resourceGroups") or []]
        several = [flavors for flavors in groups if len(flavors) != 1]
        if not plain or used is None or len(several) > 1:
            return None
        taken = {str(flavor.get("name")): self._amounts(flavor, "total", f"{place}.status") for flavor in used}
        where = f"{place}.spec.resourceGroups"
        quota: dict[str, Fraction] = {}
        flavours: dict[str, Amounts] = {}
        for flavors in groups:
            for flavor in flavors:
                name = str(flavor.get("name"))
                given = self._amounts(flavor, "nominalQuota", where)
                there = taken.get(name, {})
                rest = {key: max(Fraction(0), amount - there.get(key, 0)) for key, amount in given.items()}
                if len(flavors) != 1:
                    flavours[name] = rest
                else:
                    quota |= rest
        named = {tuple(sorted(amounts)) for amounts in flavours.values()}
        if several and (len(named) != 1 or () in named or not flavours.keys() <= self.labelled.keys() - self.shared):
            return None
        return Left(str(item["metadata"]["name"]), quota, flavours)

    @staticmethod
    def _amounts(flavor: Mapping[str, Json], key: str, place: str) -> dict[str, Fraction]:
        """An amount of each resource of a flavour."""
        listed = flavor.get("resources") or []
        return {str(resource.get("name")): quantity(resource.get(key, 0), place) for resource in listed}


def pods_of_group(item: Mapping[str, Json], place: str) -> tuple[int, dict[str, Fraction]]:
    """(fewest pods, what they ask for together) of a PodGroup whose pods are not made yet."""
    spec = item.get("spec") or {}
    least = spec.get("minMember") or 1
    if not 1 <= least <= MOST_WAITING:
        raise InputError(f"{place}.spec.minMember: must be from 1 to {MOST_WAITING}, got {least}")
    given = spec.get("minResources") or {}
    return least, {name: quantity(text, f"{place}.spec.minResources.{name}") for name, text in given.items()}


def loosest(least: int, gpus: int) -> Sequence[tuple[int, int]]:
    """(pods, GPUs of each) that fit wherever any division of some GPUs over `least` pods does."""
    return [(gpus, 1)] if gpus else [(math.ceil(least), 0)]

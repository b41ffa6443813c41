"""Which gang a pod of Kubernetes belongs to, and what its scheduler asks of the gang: fewest pods, levels, groups.

Read are the gangs of Kueue, Volcano, coscheduling, KAI-Scheduler, YuniKorn, Koordinator, LeaderWorkerSet, Grove, and
those of kube-scheduler itself (``spec.schedulingGroup``, before that ``spec.workloadRef``).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from schedgap.formulations.common.instance import Json
from schedgap.tools.judge.kubernetes.listing import Kubernetes, api_group, key_of, note
from schedgap.tools.judge.kubernetes.taking import HOST
from schedgap.tools.judge.table import RELAXED, UNREAD, way_of

Pod = Mapping[str, Json]
KUEUE = "kueue.x-k8s.io/pod-group-name"
KUEUE_TOTAL = "kueue.x-k8s.io/pod-group-total-count"
REQUIRED, PREFERRED = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology"
SLICES, SLICE_SIZE = "kueue.x-k8s.io/podset-slice-required-topology", "kueue.x-k8s.io/podset-slice-size"
ROLE, JOINED = "kueue.x-k8s.io/role-hash", "kueue.x-k8s.io/podset-group-name"
"""Kueue's sets of pods: those of one role, each with a level of its own but where they are joined."""
TASK_GROUP, TASK_GROUPS = "yunikorn.apache.org/task-group-name", "yunikorn.apache.org/task-groups"
LWS = "leaderworkerset.sigs.k8s.io/"
LWS_LEVEL, LWS_INDEX = f"{LWS}subgroup-exclusive-topology", f"{LWS}subgroup-index"
KOORDINATOR = "gang.scheduling.koordinator.sh/"
SUBGROUP = {"KAI-Scheduler": "kai.scheduler/subgroup-name", "Grove": "grove.io/podclique", "YuniKorn": TASK_GROUP}
"""Labels that name a pod's group inside its gang."""

NAMES: tuple[tuple[str, str], ...] = (
    ("Kueue", KUEUE),
    ("KAI-Scheduler", "pod-group-name"),
    ("Koordinator", f"{KOORDINATOR}name"),
    ("Volcano", "scheduling.k8s.io/group-name"),
    ("coscheduling", "scheduling.x-k8s.io/pod-group"),
    ("coscheduling", "pod-group.scheduling.sigs.k8s.io"),
    ("coscheduling", "pod-group.scheduling.sigs.k8s.io/name"),
    ("Volcano", "volcano.sh/job-name"),
    ("Grove", "grove.io/podgang"),
)
"""Labels and annotations that name a pod's gang, by scheduler."""
NATIVE = "kube-scheduler"
API_GROUPS = {
    NATIVE: ("scheduling.k8s.io",),
    "KAI-Scheduler": ("scheduling.run.ai",),
    "Koordinator": ("scheduling.sigs.k8s.io", "scheduling.x-k8s.io"),
    "coscheduling": ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io"),
    "Volcano": ("scheduling.volcano.sh", "scheduling.incubator.k8s.io"),
    "Grove": ("scheduler.grove.io", "grove.io"),
}
"""Groups of the API in which a scheduler's PodGroup is."""
ALONE = "alone"
APART = "its kinds of pods have levels of their own"


@dataclass
class Gang:
    """One gang as its scheduler sees it."""

    key: str
    family: str  # the scheduler, or ALONE
    least: int | None = None  # its fewest pods; None: all
    total: int | None = None  # pods that must be there before any starts
    groups: dict[str, int] = field(default_factory=dict)  # fewest pods of each of its groups
    parents: dict[str, list[str]] = field(default_factory=dict)  # groups around each of them
    inner: dict[str, str] = field(default_factory=dict)  # levels that groups require for themselves
    spare: str | None = None  # the one group with more pods than it needs
    required: str | None = None  # label of a level
    preferred: str | None = None
    queue: str | None = None  # queue of its PodGroup
    resources: Mapping[str, Json] = field(default_factory=dict)  # minResources of its PodGroup
    wholly: bool = False  # its PodGroup is not listed
    unread: list[str] = field(default_factory=list)  # why it cannot be judged
    rules: list[str] = field(default_factory=list)  # what it asks for beyond what is kept

    @property
    def levels(self) -> set[str]:
        """Labels of the levels that it names."""
        return {level for level in (self.required, self.preferred, *self.inner.values()) if level is not None}

    def around(self, name: str) -> list[str]:
        """A group and those around it that require a level, the inner ones first."""
        passed, turn = [], [name]
        while turn:
            now = turn.pop(0)
            if now not in passed:
                passed.append(now)
                turn += self.parents.get(now, [])
        return [one for one in passed if one in self.inner]


class Gangs:
    """The gangs of one listing.

    Parameters
    ----------
    gang_label : a label or annotation that names gangs beside those that are known
    """

    def __init__(self, listing: Kubernetes, gang_label: str | None) -> None:
        self.listing = listing
        self.names = (*([("a label of yours", gang_label)] if gang_label else ()), *NAMES)
        self.objects: dict[tuple[str, str], tuple[str, Json]] = {}
        for kind in ("PodGroup", "PodGang", "Workload"):
            for place, item in listing.kinds[kind]:
                self.objects[api_group(item), key_of(item)] = (place, item)
        self.used: set[tuple[str, str]] = set()
        self.strange = {
            item["metadata"][
                "name"
            ]: f"the {item['kind']} of {api_group(item) or 'an API group'} that it names is not read"
            for kind, items in listing.kinds.items()
            for _, item in items
            if kind not in ("Node", "Pod") and self._strange(kind, item)
        }
        self.found: dict[str, Gang] = {}

    @staticmethod
    def _strange(kind: str, item: Json) -> bool:
        """Whether an object bears on gangs and is of no API group that is read; one without a group is."""
        group = api_group(item)
        if kind == "PodGroup":
            return bool(group) and all(group not in groups for groups in API_GROUPS.values())
        if kind == "Workload":
            return bool(group) and group not in ("kueue.x-k8s.io", "scheduling.k8s.io")
        return way_of("kubernetes", "kind", kind).way == UNREAD and not kind.startswith(("Resource", "Device"))

    def of(self, pod: Pod) -> Gang:
        """The gang of a pod; its own where it has none."""
        family, name = self._named(pod)
        space = pod["metadata"].get("namespace", "default")
        key = f"{space}/{name}"
        found = self.found.get(f"{family} {key}")
        if found is None:
            found = self.found[f"{family} {key}"] = Gang(key, family)
            self._read(found, pod)
        return found

    def _named(self, pod: Pod) -> tuple[str, str]:
        spec = pod.get("spec") or {}
        group = (spec.get("schedulingGroup") or {}).get("podGroupName")
        if group is not None and not self._each_for_itself(pod, str(group)):
            return NATIVE, str(group)
        reference = spec.get("workloadRef")
        if reference:
            parts = (reference.get("name"), reference.get("podGroup"), reference.get("podGroupReplicaKey"))
            return NATIVE, "/".join(str(part) for part in parts if part)
        for family, name in self.names:
            value = note(pod, name)
            if value is not None:
                return family, value
        application = note(pod, "applicationId") or note(pod, "yunikorn.apache.org/app-id")
        if note(pod, TASK_GROUP) is not None and application is not None:
            return "YuniKorn", application
        if note(pod, TASK_GROUP) is not None:
            return "YuniKorn", str(note(pod, TASK_GROUP))
        if note(pod, f"{LWS}name") is not None:
            return "LeaderWorkerSet", f"{note(pod, f'{LWS}name')} group {note(pod, f'{LWS}group-index')}"
        return ALONE, str(pod["metadata"]["name"])

    def _each_for_itself(self, pod: Pod, name: str) -> bool:
        """Whether pods of a group of kube-scheduler do not wait for each other, nor share a domain."""
        group = self._object(NATIVE, f"{pod['metadata'].get('namespace', 'default')}/{name}")
        spec = (group or {}).get("spec") or {}
        return _basic(spec) and not (spec.get("schedulingConstraints") or {}).get("topology")

    def _object(self, family: str, key: str) -> Json | None:
        """The PodGroup of a gang, marked as used; one without an API group is of any scheduler."""
        for group in (*API_GROUPS.get(family, ()), ""):
            if (group, key) in self.objects:
                self.used.add((group, key))
                return self.objects[group, key][1]
        return None

    def _read(self, gang: Gang, pod: Pod) -> None:
        """What the scheduler asks of a gang, by its first pod."""
        gang.required, gang.preferred = note(pod, REQUIRED), note(pod, PREFERRED)
        spec = pod.get("spec") or {}
        scheduler = spec.get("schedulerName") or "default-scheduler"
        if gang.family == ALONE:
            if way_of("kubernetes", "scheduler", scheduler, closed=True).way == UNREAD:
                gang.unread.append(f"its scheduler {scheduler[:60]} is not known")
            owners = pod["metadata"].get("ownerReferences") or []
            if scheduler == "kai-scheduler" and any(owner.get("controller") for owner in owners):
                gang.unread.append("the gang that KAI-Scheduler makes of its owner is not told")
            return
        plain = self.objects.get(("", gang.key)) if gang.family not in API_GROUPS else None
        if gang.family in API_GROUPS:
            self._podgroup(gang, spec)
        elif plain is not None:
            self.used.add(("", gang.key))
            self._group_spec(gang, plain[1].get("spec") or {})
        elif gang.family == "Kueue":
            total = note(pod, KUEUE_TOTAL)
            gang.total = int(total) if total is not None and total.isdecimal() and len(total) < 10 else None
        elif gang.family == "YuniKorn":
            self._task_groups(gang, pod)
        elif gang.family == "LeaderWorkerSet":
            size = note(pod, f"{LWS}size")
            gang.total = int(size) if size is not None and size.isdecimal() and len(size) < 10 else None
            gang.wholly = gang.total is None
            gang.required = gang.required or note(pod, f"{LWS}exclusive-topology")

    def _podgroup(self, gang: Gang, spec: Mapping[str, Json]) -> None:
        """What the PodGroup of a gang says."""
        reference = spec.get("workloadRef")
        if gang.family == NATIVE and reference:
            self._workload_group(gang, reference)
            return
        group = self._object(gang.family, gang.key)
        if group is None:
            gang.wholly = True
            return
        self._group_spec(gang, group.get("spec") or {})

    def _group_spec(self, gang: Gang, spec: Mapping[str, Json]) -> None:
        for name, value in spec.items():
            row = way_of("kubernetes", "group", name)
            if value and row.way == UNREAD:
                gang.unread.append(row.why)
            if value and row.way == RELAXED:
                gang.rules.append(row.why)
        policy = (spec.get("schedulingPolicy") or {}).get("gang") or {}
        gang.queue = str(spec["queue"]) if spec.get("queue") else None
        gang.resources = spec.get("minResources") or {}
        gang.least = 1 if _basic(spec) else spec.get("minMember") or policy.get("minCount") or gang.least
        constraints = (spec.get("schedulingConstraints") or {}).get("topology") or []
        if len(constraints) > 1:
            gang.unread.append("it shares domains of several levels")
        for constraint in constraints[:1]:
            gang.required = constraint.get("key") or gang.required
        self._topology(gang, spec.get("topologyConstraint") or {})
        self._inner_groups(gang, spec)

    def _inner_groups(self, gang: Gang, spec: Mapping[str, Json]) -> None:
        """Groups of KAI-Scheduler and Grove, which may be in other groups, with fewest pods and levels."""
        for part in [*(spec.get("subGroups") or []), *(spec.get("podgroups") or [])]:
            name = str(part.get("name"))
            gang.groups[name] = part.get("minMember") or part.get("minReplicas") or 0
            for key, value in part.items():
                row = way_of("kubernetes", "subgroup", key, closed=True)
                gang.unread += [row.why] if value and row.way == UNREAD else []
            if part.get("parent"):
                gang.parents.setdefault(name, []).append(str(part["parent"]))
            self._inner_level(gang, name, part.get("topologyConstraint") or {})
        for at, part in enumerate(spec.get("topologyConstraintGroupConfigs") or []):
            name = f"topologyConstraintGroupConfigs[{at}]"
            for member in part.get("podGroupNames") or []:
                gang.parents.setdefault(str(member), []).append(name)
            self._inner_level(gang, name, part.get("topologyConstraint") or {})
        for name in [name for names in gang.parents.values() for name in names]:
            if gang.groups.pop(name, 0):
                gang.unread.append("groups of its groups have fewest pods of their own")

    def _inner_level(self, gang: Gang, name: str, constraint: Mapping[str, Json]) -> None:
        required, preferred = self._levels_of(constraint)
        self.listing.unread["levels that groups of a gang prefer"] += preferred is not None
        if required is not None:
            gang.inner[name] = required

    def _topology(self, gang: Gang, constraint: Mapping[str, Json]) -> None:
        required, preferred = self._levels_of(constraint)
        gang.required, gang.preferred = required or gang.required, preferred or gang.preferred

    @staticmethod
    def _levels_of(constraint: Mapping[str, Json]) -> tuple[str | None, str | None]:
        """(required, preferred) level of KAI-Scheduler or of Grove."""
        pack = constraint.get("packConstraint") or {}
        required = constraint.get("requiredTopologyLevel") or pack.get("required")
        preferred = constraint.get("preferredTopologyLevel") or pack.get("preferred")
        return str(required) if required else None, str(preferred) if preferred else None

    def _workload_group(self, gang: Gang, reference: Mapping[str, Json]) -> None:
        """The policy of a pod group of a Workload of scheduling.k8s.io."""
        space = gang.key.partition("/")[0]
        found = self._object(NATIVE, f"{space}/{reference.get('name')}")
        groups = ((found or {}).get("spec") or {}).get("podGroups") or []
        policy = next((one.get("policy") for one in groups if one.get("name") == reference.get("podGroup")), None)
        if policy is None:
            gang.wholly = True
        elif "gang" in policy:
            gang.least = (policy.get("gang") or {}).get("minCount")
        else:
            gang.least = 1

    def _task_groups(self, gang: Gang, pod: Pod) -> None:
        """YuniKorn's groups; who stands in for another pod is not judged."""
        text = note(pod, TASK_GROUPS)
        if text is None:
            gang.wholly = True
            return
        try:
            groups = json.loads(text)
            gang.groups |= {str(one["name"]): int(one["minMember"]) for one in groups}
        except (ValueError, TypeError, KeyError, RecursionError):
            gang.unread.append("its task groups cannot be read")
            return
        known = {"name", "minMember", "minResource", "labels", "annotations"}
        if any(set(one) - known for one in groups):
            gang.unread.append("its task groups ask for nodes")

    # -- what the pods of a gang add -----------------------------------------------------------------------------

    def complete(self, gang: Gang, pods: Sequence[Pod]) -> None:
        """What all pods of a gang that are there tell of it: groups, fewest pods, names that are not known."""
        for pod in pods:
            for text in (
                *(pod["metadata"].get("labels") or {}).values(),
                *(pod["metadata"].get("annotations") or {}).values(),
            ):
                if text in self.strange:
                    gang.unread.append(self.strange[text])
            if note(pod, "yunikorn.apache.org/placeholder") == "true":
                gang.unread.append("pods stand in for others of it")
        if gang.family == "Koordinator":
            least = [note(pod, f"{KOORDINATOR}min-available") for pod in pods]
            counts = {int(one) for one in least if one is not None and one.isdecimal() and len(one) < 10}
            gang.least, gang.wholly = (max(counts), False) if counts else (gang.least, gang.wholly)
        if gang.groups:
            self._inner(gang, pods)
        read_sets(gang, pods)

    def _inner(self, gang: Gang, pods: Sequence[Pod]) -> None:
        """Fewest pods of a gang with groups: of each of them so many; all, where that is all of its pods."""
        label = SUBGROUP.get(gang.family)
        counted = Counter(str(note(pod, label)) for pod in pods if label is not None)
        wanted = sum(gang.groups.values())
        if any(counted[name] < least for name, least in gang.groups.items()):
            gang.total = max(wanted, len(pods) + 1)
        elif wanted == len(pods):
            gang.least = None
        elif len(gang.groups) == 1 and wanted and not gang.inner:
            gang.least = wanted
        else:
            larger = [name for name, count in counted.items() if count > gang.groups.get(name, 0)]
            if len(larger) == 1 and larger[0] in gang.groups and wanted:
                gang.least, gang.spare = wanted, larger[0]
            else:
                gang.unread.append("its groups have fewest pods of their own")


def _basic(spec: Mapping[str, Json]) -> bool:
    """Whether one pod of a group of kube-scheduler is enough."""
    policy = spec.get("schedulingPolicy") or {}
    return "basic" in policy and "gang" not in policy


def without_pods(gangs: Gangs) -> list[tuple[str, str, Json]]:
    """(scheduler, place, PodGroup) of every PodGroup that no listed pod names, in the order of the listing."""
    families = {group: family for family, groups in reversed(API_GROUPS.items()) for group in groups}
    return [
        (families.get(group, ""), place, item)
        for (group, key), (place, item) in gangs.objects.items()
        if item["kind"] in ("PodGroup", "PodGang") and (group, key) not in gangs.used
    ]


def read_sets(gang: Gang, pods: Sequence[Pod]) -> None:
    """Levels of Kueue's sets of pods, where every pod tells its set, and of subgroups of LeaderWorkerSet."""
    apart = gang.family == "Kueue" and named_sets(pods) and levels_apart(pods, [None] * len(pods))
    if apart:
        gang.required = gang.preferred = None
    if apart or (gang.family == "LeaderWorkerSet" and any(note(pod, LWS_LEVEL) is not None for pod in pods)):
        subgroups_of(gang, pods)


def subgroups_of(gang: Gang, pods: Sequence[Pod]) -> list[tuple[str, ...]]:
    """The groups with levels of their own that each pod is in; they are written down in the gang.

    Groups of KAI-Scheduler and Grove, sets of pods of Kueue, subgroups of LeaderWorkerSet.
    """
    if gang.family in SUBGROUP:
        return [tuple(gang.around(str(note(pod, SUBGROUP[gang.family])))) for pod in pods]
    sets: list[tuple[str, ...]] = []
    for pod in pods:
        if gang.family == "LeaderWorkerSet":
            name, level = f"subgroup {note(pod, LWS_INDEX)}", note(pod, LWS_LEVEL)
        else:
            name, level = f"set {note(pod, JOINED) or note(pod, ROLE)}", note(pod, REQUIRED)
        sets.append((name,) if level is not None else ())
        if level is not None and gang.inner.setdefault(name, level) != level:
            gang.unread.append(APART)
    return sets


def levels_apart(pods: Sequence[Pod], kinds: Sequence[object]) -> bool:
    """Whether pods of a gang require levels each kind for itself, as Kueue's sets of pods do."""
    levels = {note(pod, REQUIRED) for pod in pods}
    joined = {note(pod, JOINED) for pod in pods}
    roles = {note(pod, ROLE) or str(kind) for pod, kind in zip(pods, kinds, strict=True)}
    several = len(roles) > 1 and (None in joined or len(joined) > 1)
    return levels != {None} and (several or len(levels) > 1)


def named_sets(pods: Sequence[Pod]) -> bool:
    """Whether every pod tells which of Kueue's sets it is in."""
    return all(note(pod, JOINED) is not None or note(pod, ROLE) is not None for pod in pods)


def slices_of(pods: Sequence[Pod]) -> tuple[str | None, int]:
    """(level, size) of the slices that all pods of a gang are in; size 0 where it cannot be told."""
    found: dict[tuple[str | None, str | None], int] = defaultdict(int)
    for pod in pods:
        found[note(pod, SLICES), note(pod, SLICE_SIZE)] += 1
    if len(found) > 1:
        return HOST, 0
    level, size = next(iter(found))
    return level, int(size) if size is not None and size.isdecimal() and 0 < len(size) < 8 else 0

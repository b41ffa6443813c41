"""What ``kubectl get nodes,pods -A -o json`` says of a cluster, as an instance of gang-placement and a decision.

docs/judging.md says what is read. Which nodes take a pod (labels, affinity, taints,
cordons) is evaluated here: nodes get a label for each kind of pod, which its selector
asks for.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json

GANG_NAMES = (
    "kueue.x-k8s.io/pod-group-name",
    "scheduling.k8s.io/group-name",
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "volcano.sh/job-name",
)
"""Labels and annotations that name a pod's gang: of Kueue, Volcano (the second and the last) and coscheduling."""
TOPOLOGY = {
    "required": "kueue.x-k8s.io/podset-required-topology",
    "preferred": "kueue.x-k8s.io/podset-preferred-topology",
}
SLICES = "kueue.x-k8s.io/podset-slice-required-topology"
UNREAD = ("topologySpreadConstraints", "resourceClaims", "schedulingGates", "resources")
MODEL = "nvidia.com/gpu.product"
HOST = "kubernetes.io/hostname"
FACTORS = {"": Fraction(1), "m": Fraction(1, 1000), "u": Fraction(1, 10**6), "n": Fraction(1, 10**9)}
FACTORS |= {letter: Fraction(1000) ** (n + 1) for n, letter in enumerate(("k", "M", "G", "T", "P", "E"))}
FACTORS |= {f"{letter}i": Fraction(1024) ** (n + 1) for n, letter in enumerate("KMGTPE")}
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,3})|([a-zA-Z]{0,2}))")
_MOST_CHARACTERS = 100
"""Of a quantity."""
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_RESOURCES = {"requests": dict, "limits": dict}
_TERM = {"matchExpressions": [{"values": [str]}], "matchFields": [{"values": [str]}]}
_AFFINITY = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]}}
_TEXTS = {str: str}
READ = ("Node", "Pod", "PodGroup", "Topology")
FORM = {
    "metadata": {
        "name": str,
        "namespace": str,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "ownerReferences": [{"kind": str}],
    },
    "spec": {
        **{"nodeName": str, "priority": int, "nodeSelector": _TEXTS, "overhead": dict},
        **{name: [{"resources": _RESOURCES, "ports": [{}]}] for name in ("containers", "initContainers")},
        "volumes": [{}],
        **{"taints": [{}], "tolerations": [{}], "levels": [{"nodeLabel": str}]},
        "minMember": int,
        "affinity": {"nodeAffinity": _AFFINITY},
    },
    "status": {"conditions": [{}], "allocatable": dict, "capacity": dict},
}
"""What is read of nodes, pods and groups, with the type of each part; ``str`` is every key."""
_TYPES = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}
MOVE, END = 1, 10
"""Prices per pod of moving what runs and of ending it, where a controller would start it again."""


def quantity(text: object, place: str) -> Fraction:
    """A quantity as Kubernetes writes it: ``500m``, ``16Gi``, ``2``, ``1e3``.

    Raises InputError: it is none; the line names the place and the value.
    """
    found = _QUANTITY.fullmatch(str(text).strip()) if isinstance(text, str | int | float) else None
    if found is None or len(found[1]) > _MOST_CHARACTERS or (found[3] or "") not in FACTORS:
        raise InputError(f"{place}: {str(text)[:40]!r} is no quantity, such as 500m or 16Gi")
    value = Fraction(found[1]) * (Fraction(10) ** int(found[2]) if found[2] else FACTORS[found[3] or ""])
    if not 0 <= value < 2**63:
        raise InputError(f"{place}: {str(text)[:40]} is not from 0 to 2^63 - 1")
    return value


def _units(name: str) -> Fraction:
    """What one whole unit of a resource is worth: a thousandth of a processor, a MiB of memory, one of all else."""
    if name == "cpu":
        return Fraction(1, 1000)
    return Fraction(2**20) if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-") else Fraction(1)


def is_gpu(name: str) -> bool:
    return name.endswith("/gpu")


class Kubernetes:
    """One listing, read once.

    Parameters
    ----------
    items : its nodes, pods, and what else is there
    gang_label : a label or annotation that names gangs beside those that are known

    Attributes
    ----------
    unread : what was not understood or left out, counted
    """

    def __init__(self, items: Sequence[Json], source: str, gang_label: str | None = None) -> None:
        self.source = source
        self.names = (*([gang_label] if gang_label else []), *GANG_NAMES)
        self.unread: Counter[str] = Counter()
        kinds: dict[str, list[tuple[str, Json]]] = defaultdict(list)
        first: dict[tuple[str, str], int] = {}
        for position, item in enumerate(items):
            place = f"{source}: items[{position}]"
            if not isinstance(item, Mapping) or not isinstance(item.get("kind"), str):
                raise InputError(f"{place}.kind: is missing")
            _formed(item, FORM if item["kind"] in READ else {"metadata": FORM["metadata"]}, place)
            if not (item.get("metadata") or {}).get("name"):
                raise InputError(f"{place}.metadata.name: is missing")
            name = item["metadata"]["name"] if item["kind"] == "Node" else self._key(item)
            there = first.setdefault((item["kind"], name), position)
            if item["kind"] in READ and there != position:
                raise InputError(f"{place}.metadata.name: {name[:60]!r} is already the name of items[{there}]")
            kinds[item["kind"]].append((place, item))
        self.nodes = kinds.pop("Node", [])
        self.pods = [(place, pod) for place, pod in kinds.pop("Pod", []) if self._lives(pod)]
        self.groups = {self._key(group): (place, group) for place, group in kinds.pop("PodGroup", [])}
        self.topologies = kinds.pop("Topology", [])
        for kind, found in kinds.items():
            self.unread[f"objects of kind {kind}"] += len(found)
        if not self.nodes:
            raise InputError(f"{source}: items: there is no node: kubectl get nodes,pods -A -o json lists both")

    def _lives(self, pod: Mapping[str, Json]) -> bool:
        over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        self.unread["pods that have ended"] += over
        return not over

    @staticmethod
    def _key(item: Mapping[str, Json]) -> str:
        return f"{item['metadata'].get('namespace', 'default')}/{item['metadata']['name']}"

    @staticmethod
    def note(item: Mapping[str, Json], name: str) -> str | None:
        """A label or annotation."""
        for part in ("labels", "annotations"):
            value = (item["metadata"].get(part) or {}).get(name)
            if value is not None:
                return str(value)
        return None

    # -- amounts -------------------------------------------------------------------------------------------------

    def request(self, place: str, pod: Mapping[str, Json]) -> dict[str, int]:
        """What a pod asks for, in whole units: the sum of its containers, or its largest init container."""
        spec = pod.get("spec") or {}
        total: dict[str, Fraction] = defaultdict(Fraction)
        for at, container in enumerate(spec.get("containers") or []):
            for name, amount in self._requests(container, f"{place}.spec.containers[{at}]").items():
                total[name] += amount
        for at, container in enumerate(spec.get("initContainers") or []):
            asked = self._requests(container, f"{place}.spec.initContainers[{at}]")
            always = container.get("restartPolicy") == "Always"
            for name, amount in asked.items():
                total[name] = total[name] + amount if always else max(total[name], amount)
        for name, text in (spec.get("overhead") or {}).items():
            total[name] += quantity(text, f"{place}.spec.overhead.{name}")
        units = {name: int(-(-amount // _units(name))) for name, amount in total.items()}
        return {"pods": 1} | {name: amount for name, amount in units.items() if amount}

    def _requests(self, container: Mapping[str, Json], place: str) -> dict[str, Fraction]:
        """Requests of a container; a limit counts where there is no request, as Kubernetes has it."""
        resources = container.get("resources") or {}
        both = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        return {name: quantity(text, f"{place}.resources.requests.{name}") for name, text in both.items()}

    def room(self, place: str, node: Mapping[str, Json]) -> dict[str, int]:
        """What a node has for pods, in whole units."""
        status = node.get("status") or {}
        given = status.get("allocatable") or status.get("capacity")
        if not isinstance(given, Mapping):
            raise InputError(f"{place}.status.allocatable: is missing")
        room = {
            name: int(quantity(text, f"{place}.status.allocatable.{name}") // _units(name))
            for name, text in given.items()
        }
        self.unread["nodes that do not say how many pods they take"] += "pods" not in room
        return {"pods": len(self.pods)} | room

    # -- which nodes take a pod ----------------------------------------------------------------------------------

    def allowed(self, pod: Mapping[str, Json]) -> tuple[int, ...]:
        """Positions of the nodes that the pod's selector, affinity and tolerations allow."""
        spec = pod.get("spec") or {}
        self._count(spec)
        self.unread["pods in topology slices"] += self.note(pod, SLICES) is not None
        return tuple(n for n, (_, node) in enumerate(self.nodes) if self._takes(node, spec))

    def _count(self, spec: Mapping[str, Json]) -> None:
        """What is asked for and not read."""
        for part in UNREAD:
            self.unread[f"pods with {part}"] += bool(spec.get(part))
        affinity = spec.get("affinity") or {}
        for part in ("podAffinity", "podAntiAffinity"):
            self.unread[f"pods with {part}"] += bool(affinity.get(part))
        wishes = affinity.get("nodeAffinity") or {}
        wished = "preferredDuringSchedulingIgnoredDuringExecution" in wishes
        self.unread["pods with preferred node affinity"] += wished
        containers = spec.get("containers") or []
        ports = [port for part in containers for port in part.get("ports") or []]
        volumes = spec.get("volumes") or []
        for name, parts in (("hostPort", ports), ("persistentVolumeClaim", volumes)):
            self.unread[f"pods with {name}"] += any(part.get(name) for part in parts)

    def _takes(self, node: Mapping[str, Json], spec: Mapping[str, Json]) -> bool:
        labels = {HOST: node["metadata"]["name"], **(node["metadata"].get("labels") or {})}
        if any(labels.get(name) != value for name, value in (spec.get("nodeSelector") or {}).items()):
            return False
        affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        ) or {}
        terms = affinity.get("nodeSelectorTerms") or []
        if terms and not any(
            all(_expressed(labels, one) for one in term.get("matchExpressions") or [])
            and all(
                _expressed({"metadata.name": node["metadata"]["name"]}, one) for one in term.get("matchFields") or []
            )
            for term in terms
        ):
            return False
        taints = [*((node.get("spec") or {}).get("taints") or [])]
        if (node.get("spec") or {}).get("unschedulable"):
            taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
        if any(
            condition.get("type") == "Ready" and condition.get("status") != "True"
            for condition in (node.get("status") or {}).get("conditions") or []
        ):
            taints.append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})
        hard = [taint for taint in taints if taint.get("effect") in ("NoSchedule", "NoExecute")]
        tolerations = spec.get("tolerations") or []
        return all(any(_tolerates(one, taint) for one in tolerations) for taint in hard)

    # -- levels --------------------------------------------------------------------------------------------------

    def levels(self) -> list[str]:
        """Node labels that are levels, widest first: of a Topology object, else those that waiting pods name."""
        found: list[str] = []
        for _, topology in self.topologies[:1]:
            found = [str(level.get("nodeLabel")) for level in (topology.get("spec") or {}).get("levels") or []]
        if not found:
            named = {self.note(pod, note) for _, pod in self.pods for note in TOPOLOGY.values()} - {None}
            values = {
                str(name): {(node["metadata"].get("labels") or {}).get(name) for _, node in self.nodes}
                for name in named
            }
            found = sorted(values, key=lambda name: (len(values[name]), name))
        if len(set(found)) < len(found):
            raise InputError(f"{self.topologies[0][0]}.spec.levels: a label is there twice")
        self.unread["topologies beside the first"] += max(0, len(self.topologies) - 1)
        return [name for name in found if name != HOST]


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


def _expressed(labels: Mapping[str, str], one: Mapping[str, Json]) -> bool:
    """Whether labels meet one expression of a node affinity."""
    value, values = labels.get(str(one.get("key"))), one.get("values") or []
    operator = one.get("operator")
    if operator in ("In", "NotIn"):
        return (value in values) is (operator == "In")
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) is (operator == "Exists")
    both = [str(text) for text in (value, *values[:1])]
    numbers = [int(text) for text in both if _NUMBER.fullmatch(text)]
    if operator in ("Gt", "Lt") and len(numbers) == 2:
        left, right = numbers
        return left > right if operator == "Gt" else left < right
    return False


def _tolerates(toleration: Mapping[str, Json], taint: Mapping[str, Json]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and (toleration.get("value") or "") == (taint.get("value") or "")

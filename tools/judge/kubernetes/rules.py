"""What a Kubernetes pod asks for beyond room and nodes: rules that are left out, gates, claims, unknown names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from schedgap.formulations.common.instance import Json
from schedgap.tools.judge.kubernetes.listing import key_of
from schedgap.tools.judge.kubernetes.taking import HOST, matches
from schedgap.tools.judge.table import RELAXED, UNREAD, Row, way_of

Pod = Mapping[str, Json]
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def rows_of(pod: Pod, gang_label: str | None = None) -> Iterator[Row]:
    """The lines of the table for every name that a pod has, in its spec and its notes."""
    for name, value in (pod.get("spec") or {}).items():
        if value in (None, "", [], {}, False):
            continue
        if name == "tolerations":
            for toleration in value:
                yield from _unknown_operator(toleration, ("", "Equal", "Exists"), "its toleration")
        elif name == "affinity":
            for term in ((value.get("nodeAffinity") or {}).get(REQUIRED) or {}).get("nodeSelectorTerms") or []:
                for requirement in [*(term.get("matchExpressions") or []), *(term.get("matchFields") or [])]:
                    yield from _unknown_operator(requirement, OPERATORS, "its node affinity")
            for part in value:
                if part in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
                    if (value.get(part) or {}).get(REQUIRED) and part != "nodeAffinity":
                        yield way_of("kubernetes", "pod", f"affinity.{part}")
                else:
                    yield way_of("kubernetes", "pod", f"affinity.{part}", closed=True)
        elif name == "topologySpreadConstraints":
            if any(one.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule" for one in value):
                yield way_of("kubernetes", "pod", name)
        elif name == "volumes":
            if any(part.get("persistentVolumeClaim") or part.get("ephemeral") for part in value):
                yield way_of("kubernetes", "pod", name)
        elif name == "containers":
            if any(port.get("hostPort") for part in value for port in part.get("ports") or []):
                yield way_of("kubernetes", "pod", "hostPort")
            for field in {field for part in value for field in part}:
                yield way_of("kubernetes", "container", field, closed=True)
        else:
            yield way_of("kubernetes", "pod", name, closed=True)
    meta = pod["metadata"]
    for name in [*(meta.get("labels") or {}), *(meta.get("annotations") or {})]:
        if name == gang_label:
            continue
        yield way_of("kubernetes", "note", name)


def _unknown_operator(term: Mapping[str, Json], accepted: Sequence[str], where: str) -> Iterator[Row]:
    """A line for an operator that no version known here has."""
    operator = str(term.get("operator") or "")
    if operator not in accepted:
        yield Row("pod", operator, UNREAD, f"the operator {operator[:40]} of {where} is not known")


class Rules:
    """The rules of all pods of a listing, and whom those of others touch."""

    def __init__(self, pods: Sequence[Pod], gang_label: str | None) -> None:
        self.gang_label = gang_label
        self.pods = pods
        self.anti = [(pod, term) for pod in pods for term in _terms(pod, "podAntiAffinity")]
        self.spaces: dict[str, list[Pod]] = defaultdict(list)
        for pod in pods:
            self.spaces[pod["metadata"].get("namespace", "default")].append(pod)

    def of(self, gang: Sequence[Pod]) -> tuple[list[str], list[str], int | None]:
        """(rules that are left out, why it cannot be judged, most of its pods on a node where that is kept)."""
        rules: dict[str, None] = {}
        unread: dict[str, None] = {}
        per_node = 1 if self._one_a_node(gang) else None
        for pod in gang:
            for row in rows_of(pod, self.gang_label):
                if row.way == UNREAD:
                    unread[row.why] = None
                elif row.way == RELAXED and not (row.names == "affinity.podAntiAffinity" and per_node):
                    rules[row.why.partition(";")[0]] = None
            for gate in (pod.get("spec") or {}).get("schedulingGates") or []:
                unread[f"the scheduling gate {str(gate.get('name'))[:80]} holds it"] = None
        if any(self._kept_out(pod, gang) for pod in gang):
            rules["the anti-affinity of other pods to it"] = None
        return list(rules), list(unread), per_node

    def _one_a_node(self, gang: Sequence[Pod]) -> bool:
        """Whether its anti-affinity says that each of its pods is on a node of its own, and nothing else."""
        for pod in gang:
            for term in _terms(pod, "podAntiAffinity"):
                plain = set(term) <= {"labelSelector", "topologyKey"} and term.get("topologyKey") == HOST
                space = self.spaces[pod["metadata"].get("namespace", "default")]
                met = {
                    key_of(one)
                    for one in space
                    if matches(term.get("labelSelector"), one["metadata"].get("labels") or {})
                }
                if not plain or met != {key_of(one) for one in gang}:
                    return False
        return all(_terms(pod, "podAntiAffinity") for pod in gang)

    def _kept_out(self, pod: Pod, gang: Sequence[Pod]) -> bool:
        """Whether a pod of another gang keeps pods like this one out of its domain."""
        mine = {id(one) for one in gang}
        labels, space = pod["metadata"].get("labels") or {}, pod["metadata"].get("namespace", "default")
        return any(
            matches(term.get("labelSelector"), labels)
            and (
                term.get("namespaces")
                or term.get("namespaceSelector") is not None
                or space == other["metadata"].get("namespace", "default")
            )
            for other, term in self.anti
            if id(other) not in mine
        )


def _terms(pod: Pod, part: str) -> list[Mapping[str, Json]]:
    """The required terms of an affinity."""
    affinity = ((pod.get("spec") or {}).get("affinity") or {}).get(part) or {}
    return affinity.get(REQUIRED) or []

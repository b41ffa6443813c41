"""Which nodes of a Kubernetes listing take a pod, and why the others do not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from schedgap.formulations.common.instance import Json

HOST = "kubernetes.io/hostname"
_NUMBER = re.compile(r"-?[0-9]{1,18}")
Cause = tuple[str, str]
"""Why a node does not take a pod: in general, and with the names of the listing."""


class Taking:
    """Nodes that pods may go to by selector, affinity, taints, cordons and readiness; a kind of pods is tried once."""

    def __init__(self, nodes: Sequence[tuple[str, Mapping[str, Json]]]) -> None:
        self.nodes = [node for _, node in nodes]
        self.labels = [
            {HOST: node["metadata"]["name"], **(node["metadata"].get("labels") or {})} for node in self.nodes
        ]
        self.taints = [_taints(node) for node in self.nodes]
        self.known: dict[str, tuple[int, ...]] = {}

    def allowed(self, spec: Mapping[str, Json]) -> tuple[int, ...]:
        """Positions of the nodes that take a pod of this spec."""
        key = conditions_of(spec)
        if key not in self.known:
            self.known[key] = tuple(n for n in range(len(self.nodes)) if self.refusal(spec, n) is None)
        return self.known[key]

    def refusal(self, spec: Mapping[str, Json], n: int) -> Cause | None:
        """Why a node does not take a pod of this spec; None where it does."""
        labels = self.labels[n]
        for name, value in (spec.get("nodeSelector") or {}).items():
            if labels.get(name) != value:
                return "its nodeSelector", f"nodeSelector {name}={value}"
        affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        ) or {}
        terms = affinity.get("nodeSelectorTerms") or []
        fields = {"metadata.name": self.nodes[n]["metadata"]["name"]}
        if terms and not any(_matched(term, labels, fields) for term in terms):
            keys = {str(one.get("key")) for term in terms for one in term.get("matchExpressions") or []}
            return "its node affinity", f"node affinity on {', '.join(sorted(keys)) or 'its name'}"
        tolerations = spec.get("tolerations") or []
        for taint, cause in self.taints[n]:
            if not any(_tolerates(one, taint) for one in tolerations):
                return cause
        return None


def conditions_of(spec: Mapping[str, Json]) -> str:
    """All of a pod's spec that decides which nodes take it, as one text."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity")
    return json.dumps([spec.get("nodeSelector"), affinity, spec.get("tolerations")], sort_keys=True)


def _taints(node: Mapping[str, Json]) -> list[tuple[Mapping[str, Json], Cause]]:
    """Taints that keep pods out, those of cordons and of nodes that are not ready among them, each with its words."""
    result: list[tuple[Mapping[str, Json], Cause]] = []
    if (node.get("spec") or {}).get("unschedulable"):
        result.append(({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, ("cordoned", "cordoned")))
    for condition in (node.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "Ready" and condition.get("status") != "True":
            result.append(({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}, ("not ready", "not ready")))
    for taint in (node.get("spec") or {}).get("taints") or []:
        if taint.get("effect") in ("NoSchedule", "NoExecute"):
            value = f"={taint['value']}" if taint.get("value") else ""
            result.append((taint, ("a taint", f"taint {taint.get('key')}{value}")))
    return result


def matches(selector: Json, labels: Mapping[str, str]) -> bool:
    """Whether a label selector of pods takes these labels; an absent one takes none."""
    if not isinstance(selector, Mapping):
        return False
    equal = all(labels.get(name) == value for name, value in (selector.get("matchLabels") or {}).items())
    return equal and all(_expressed(labels, one) for one in selector.get("matchExpressions") or [])


def _matched(term: Mapping[str, Json], labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    """Whether a node meets all of one term of a node affinity; an empty term matches no node."""
    parts = ((labels, term.get("matchExpressions") or []), (fields, term.get("matchFields") or []))
    met = [_expressed(there, one) for there, expressions in parts for one in expressions]
    return bool(met) and all(met)


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

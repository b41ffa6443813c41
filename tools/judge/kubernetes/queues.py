"""Whether the queue of a gang may have a limit: of Volcano, KAI-Scheduler and YuniKorn, and quotas of a namespace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schedgap.formulations.common.instance import Json
from schedgap.tools.judge.kubernetes.gangs import Gang
from schedgap.tools.judge.kubernetes.listing import Kubernetes, api_group, note

LIMIT, QUOTA = "the limit of its queue", "the ElasticQuota of its namespace"
UNLISTED = "its queue is not listed and is read as without a limit"
KAI, VOLCANO, YUNIKORN = "kai-scheduler", "volcano", "yunikorn"
NAMES = {
    KAI: ("kai.scheduler/queue", "runai/queue"),
    VOLCANO: ("scheduling.volcano.sh/queue-name", "volcano.sh/queue-name"),
    YUNIKORN: ("yunikorn.apache.org/queue", "queue"),
}
"""Labels and annotations that name the queue of a pod, by its scheduler."""
API_GROUPS = {KAI: "scheduling.run.ai", VOLCANO: "scheduling.volcano.sh"}
DEFAULT = {VOLCANO: "default"}
"""Queue of what names none; Volcano makes it without a limit."""
ELASTIC = ("koord-scheduler", "scheduler-plugins-scheduler")
"""Schedulers that hold pods against the ElasticQuota of their namespace."""
FIXED_PRIORITY = 100
"""Priority from which KAI-Scheduler ends no pod and gives none more than its queue's quota."""


class QueueLimits:
    """Queues and quotas of one listing."""

    def __init__(self, listing: Kubernetes) -> None:
        self.queues = {(api_group(one), str(one["metadata"]["name"])): one for _, one in listing.kinds["Queue"]}
        volcano = [one.get("spec") for (group, _), one in self.queues.items() if group == API_GROUPS[VOLCANO]]
        self.guaranteed = any(isinstance(spec, Mapping) and spec.get("guarantee") for spec in volcano)
        self.elastic = {one["metadata"].get("namespace", "default") for _, one in listing.kinds["ElasticQuota"]}

    def of(self, gang: Gang, pods: Sequence[Mapping[str, Json]]) -> tuple[list[str], bool]:
        """(limits that are not read and that a gang may be held against, whether its queue is not listed)."""
        rules: dict[str, None] = {}
        unlisted = False
        for pod in pods:
            spec = pod.get("spec") or {}
            scheduler = str(spec.get("schedulerName") or "")
            if scheduler in ELASTIC and pod["metadata"].get("namespace", "default") in self.elastic:
                rules[QUOTA] = None
            named = [value for name in NAMES.get(scheduler, ()) if (value := note(pod, name))]
            name = gang.queue or (named[0] if named else DEFAULT.get(scheduler))
            if scheduler in NAMES and name:
                limited = self._limited(scheduler, name, int(spec.get("priority") or 0))
                unlisted |= limited is None
                if limited:
                    rules[LIMIT] = None
        return list(rules), unlisted

    def _limited(self, scheduler: str, name: str, priority: int) -> bool | None:
        """Whether a queue or one above it has a limit; None where one of these is not listed."""
        seen: set[str] = set()
        while name and name not in seen:
            seen.add(name)
            queue = self._queue(scheduler, name)
            if queue is None:
                return False if name in (DEFAULT.get(scheduler), "root") else None
            spec = queue.get("spec")
            spec = spec if isinstance(spec, Mapping) else {}
            if self._kai(spec, priority) if scheduler == KAI else self._volcano(queue, spec):
                return True
            name = str(spec.get("parentQueue" if scheduler == KAI else "parent") or "")
        return False

    def _queue(self, scheduler: str, name: str) -> Mapping[str, Json] | None:
        """A queue by its name; those of YuniKorn are in its configuration and in no listing."""
        group = API_GROUPS.get(scheduler)
        return None if group is None else self.queues.get((group, name)) or self.queues.get(("", name))

    @staticmethod
    def _kai(spec: Mapping[str, Json], priority: int) -> bool:
        """Limits of KAI-Scheduler; -1 is none."""
        given = spec.get("resources")
        parts = [given.get(kind) for kind in ("gpu", "cpu", "memory")] if isinstance(given, Mapping) else [None]
        keys = ("limit", "quota") if priority >= FIXED_PRIORITY else ("limit",)
        return any(not isinstance(part, Mapping) or any(part.get(key) != -1 for key in keys) for part in parts)

    def _volcano(self, queue: Mapping[str, Json], spec: Mapping[str, Json]) -> bool:
        """Limits of Volcano: a capability, another queue's guarantee, or that it is closed."""
        status = queue.get("status")
        state = status.get("state") if isinstance(status, Mapping) else None
        return bool(spec.get("capability")) or self.guaranteed or state not in (None, "", "Open")

"""Which running pods a decision may end or move, where moves are an objective of a listing's best decision."""

from __future__ import annotations

import math
from typing import Any

from schedgap.formulations.common.instance import Json
from schedgap.formulations.gang_placement.instance import GangPlacementInstance, Running
from schedgap.tools.judge.asking import with_gangs, without_labels
from schedgap.tools.judge.draft import INSIDE
from schedgap.tools.judge.reading import Snapshot


def sure_to_leave(instance: GangPlacementInstance, snapshot: Snapshot) -> GangPlacementInstance:
    """The instance in which a pod may be ended only where its scheduler may end it for every gang that waits.

    An instance cannot say for whom a pod is ended. So its priority must be lower than that of all that wait, it is of
    no gang that needs it, and of none that waits. The same object where nothing changes.
    """
    if snapshot.form == "own" or not instance.with_moves:
        return instance
    kept = _kept(instance, snapshot)
    if not kept:
        return instance
    running = [_unended(pod) if pod.id in kept else _json(pod) for pod in instance.running]
    return GangPlacementInstance.parse({**instance.to_dict(), "running": running}, "snapshot")


def loosely_movable(instance: GangPlacementInstance, snapshot: Snapshot) -> GangPlacementInstance:
    """The instance of a limit, with moves: what may be ended for some gang may be for any, and all may change domains.

    Moves and endings cost nothing in it.
    """
    if snapshot.form == "own":
        return with_gangs(instance, instance.gangs, ["weight", "moves"])
    top = max((gang.priority for gang in snapshot.outward.gangs if gang.id not in snapshot.facts.gentle), default=0)
    some = any(gang.id not in snapshot.facts.gentle for gang in snapshot.outward.gangs)
    running = []
    for pod in snapshot.outward.running:
        lower = snapshot.facts.preempts and snapshot.facts.priorities[pod.id] < top
        ended = pod.preemptible and some and lower and pod.id not in snapshot.facts.leaving
        made = _json(pod) if ended else _unended(pod)
        labels = made.get("selector", {}).get("labels", {})
        if labels:
            made["selector"]["labels"] = {name: value for name, value in labels.items() if not name.startswith(INSIDE)}
        running.append(made)
    gangs = [
        gang.model_copy(update={"pods": tuple(without_labels(group, INSIDE) for group in gang.pods)})
        for gang in instance.gangs
    ]
    return with_gangs(instance, gangs, ["weight", "moves"], running=running)


def _kept(instance: GangPlacementInstance, snapshot: Snapshot) -> set[str]:
    """Pods with a price that some gang which waits may not end, or that leave anyhow and are not gone yet."""
    facts = snapshot.facts
    waiting = {gang.id: gang.priority for gang in snapshot.outward.gangs}
    least = min(waiting.values(), default=math.inf)
    stay = facts.leaving | facts.nominated.keys()

    def sure(pod: Running) -> bool:
        owner = facts.owners.get(pod.id, "")
        lower = pod.id not in stay and facts.priorities[pod.id] < least
        return lower and owner not in facts.lowest and owner not in waiting

    nothing = not facts.preempts or bool(facts.gentle)
    return {pod.id for pod in instance.running if pod.preemptible and (nothing or not sure(pod))}


def _json(pod: Running) -> dict[str, Any]:
    made: dict[str, Json] = pod.model_dump(mode="json", exclude_none=True)
    return made


def _unended(pod: Running) -> dict[str, Any]:
    """The pod as one that may be moved at most."""
    made = _json(pod)
    made.pop("price", None)
    return made | {"movable": pod.movable and "move_price" in made}

"""Where pods and jobs that run with parts of devices sit, as far as a listing tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schedgap.formulations.gang_placement.instance import WHOLE
from schedgap.tools.judge.draft import Draft


@dataclass(frozen=True)
class Runs:
    """A pod that runs with a part of a device."""

    name: str
    low: int
    high: int
    request: Mapping[str, int]
    devices: tuple[int, ...]  # where it is, if that is told
    group: str | None  # of the pods that share its device, if that is told


def seat_parts(draft: Draft, n: int, runs: Sequence[Runs]) -> None:
    """Parts that run on a node get the devices that they have, as far as that can be told.

    Where it cannot, the outward reading leaves them out and the other one gives each a device for itself.
    """
    devices: list[int] = draft.nodes[n]["gpus"]
    groups: dict[str, int] = {}
    later = []
    for item in runs:
        told = item.devices and item.devices[0] < len(devices)
        at = item.devices[0] if told else groups.get(item.group or "")
        if at is None and item.group is not None:
            at = groups[item.group] = next((d for d, part in enumerate(devices) if part == WHOLE), 0)
        if at is None:
            later.append(item)
        else:
            _seat(draft, n, item, at)
    sizes = Counter(item.low for item in later)
    smallest = sorted(sizes.elements())[:2]
    busy = [WHOLE - part for part in devices if 0 < part < WHOLE]
    apart = len(devices) == 1 or (
        (len(smallest) < 2 or sum(smallest) > WHOLE) and all(smallest[0] + part > WHOLE for part in busy if smallest)
    )
    for item in later:
        free = next((d for d, part in enumerate(devices) if part == WHOLE), None)
        if apart or (free is None and len(devices) == 1):
            _seat(draft, n, item, 0 if len(devices) == 1 or free is None else free)
            continue
        draft.apart = True
        draft.unread["parts of GPUs that run on a device that is not told"] += 1
        parts = {} if draft.outward or free is None else {free: WHOLE}
        draft.run(item.name, n, 0, item.request, parts)


def _seat(draft: Draft, n: int, one: Runs, d: int) -> None:
    draft.apart |= one.low < one.high
    draft.run(
        one.name, n, 0, one.request, {d: one.low if draft.outward else one.high} if draft.nodes[n]["gpus"] else {}
    )

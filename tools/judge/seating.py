"""Where pods and jobs that run with parts of devices sit, as far as a listing tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schedgap.formulations.gang_placement.instance import WHOLE
from schedgap.tools.judge.draft import Draft

UNTOLD = "parts of GPUs that run on a device that is not told"


@dataclass(frozen=True)
class Runs:
    """A pod that runs with a part of a device, or of each of several."""

    name: str
    low: int
    high: int
    request: Mapping[str, int]
    devices: tuple[int, ...]  # where it is, if that is told
    groups: tuple[str, ...] = ()  # groups of the pods that share its devices, one a device, if that is told
    parts: int = 1  # devices that it has a part of


def seat_parts(draft: Draft, n: int, runs: Sequence[Runs]) -> None:
    """Parts that run on a node get the devices that they have, as far as that can be told.

    Where it cannot, the outward reading leaves them out and the other one gives each devices for itself.
    """
    devices: list[int] = draft.nodes[n]["gpus"]
    groups: dict[str, int] = {}
    later = []
    for item in runs:
        at = item.devices[:1] if item.parts == 1 and min(item.devices[:1], default=0) < len(devices) else ()
        if not at and len(item.groups) == item.parts:
            for name in item.groups:
                free = (d for d, part in enumerate(devices) if part == WHOLE and d not in groups.values())
                groups.setdefault(name, next(free, 0))
            at = tuple(dict.fromkeys(groups[name] for name in item.groups))
        if at:
            _seat(draft, n, item, at)
        else:
            later.append(item)
    _seat_untold(draft, n, later)


def _seat_untold(draft: Draft, n: int, later: Sequence[Runs]) -> None:
    """Parts that run on devices that are not told."""
    devices: list[int] = draft.nodes[n]["gpus"]
    sizes = Counter(item.low for item in later)
    smallest = sorted(sizes.elements())[:2]
    busy = [WHOLE - part for part in devices if 0 < part < WHOLE]
    apart = len(devices) == 1 or (
        (len(smallest) < 2 or sum(smallest) > WHOLE) and all(smallest[0] + part > WHOLE for part in busy if smallest)
    )
    for item in later:
        whole = [d for d, part in enumerate(devices) if part == WHOLE][: item.parts]
        if apart or (not whole and len(devices) == 1):
            _seat(draft, n, item, (0,) if len(devices) == 1 or not whole else tuple(whole))
            continue
        draft.apart = True
        draft.unread["parts of GPUs that run on a device that is not told"] += 1
        taken = dict.fromkeys(whole, WHOLE)
        if len(whole) < item.parts:  # it is on devices that others share: nobody may count on what is free of these
            taken = {d: part for d, part in enumerate(devices) if part} if item.parts > 1 else {}
        draft.run(item.name, n, 0, item.request, {} if draft.outward else taken)


def _seat(draft: Draft, n: int, one: Runs, at: Sequence[int]) -> None:
    draft.apart |= one.low < one.high
    part = one.low if draft.outward else one.high
    draft.run(one.name, n, 0, one.request, dict.fromkeys(at, part) if draft.nodes[n]["gpus"] else {})

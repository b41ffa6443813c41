"""Devices of Kubernetes nodes, and what pods ask for of them: whole ones, or a part of one or of several.

A part is told in thousandths of a device. Read are KAI-Scheduler's fractions, of several devices too, HAMi's and
Volcano's shares of a card's memory, Koordinator's shares; MIG slices that are made are resources like any other.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import MOST_GPUS, Json
from schedgap.formulations.gang_placement.instance import WHOLE
from schedgap.tools.judge.draft import Amounts
from schedgap.tools.judge.kubernetes.listing import note, quantity
from schedgap.tools.judge.table import RELAXED, UNREAD, way_of

NVIDIA, VENDORS = "nvidia.com/gpu", frozenset({"nvidia.com/gpu", "amd.com/gpu"})
"""Whole devices; where none of them is there, all that ends in ``/gpu``."""
HAMI, HAMI_SHARE = "nvidia.com/gpumem", "nvidia.com/gpumem-percentage"
VOLCANO, VOLCANO_MEMORY = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"
VOLCANO_SHARE, VOLCANO_CORES = "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores"
KOORDINATOR = ("koordinator.sh/gpu", "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio")
OF_PARTS = {HAMI, HAMI_SHARE, "nvidia.com/gpucores", VOLCANO, VOLCANO_MEMORY, VOLCANO_SHARE, VOLCANO_CORES}
OF_PARTS |= {*KOORDINATOR, "koordinator.sh/gpu-memory", "koordinator.sh/gpu.shared"}
"""Resources that tell parts of devices, which are not counted by node."""
REGISTERS = {"HAMi": "hami.io/node-nvidia-register", "Volcano": "volcano.sh/node-vgpu-register"}
MEMORY = "nvidia.com/gpu.memory"
RESERVING = ("kai-resource-reservation", "runai-reservation")
"""Namespaces in which KAI-Scheduler keeps a pod for each device that it shares out."""
SEVERAL = "it asks for parts of several GPUs"
DEVICES = "gpu-fraction-num-devices"
"""KAI-Scheduler's number of devices of which a pod has its ``gpu-fraction`` or ``gpu-memory`` each, after the manual of
Run:ai, "GPU fractions"."""


@dataclass(frozen=True)
class Ask:
    """What one pod asks for."""

    whole: int = 0  # devices
    low: int = 0  # thousandths of one device, rounded down
    high: int = 0  # the same rounded up
    parts: int = 1  # devices that it has such a part of, each
    rest: Amounts = field(default_factory=dict)  # all else
    nodes: frozenset[int] | None = None  # whose cards are large enough; None: any
    unread: str = ""  # why it cannot be told
    barred: str = ""  # why no node can ever take it
    rules: tuple[str, ...] = ()  # what is left out of `rest`

    @property
    def gpus(self) -> Fraction:
        """Devices, parts as such."""
        return self.whole + Fraction(self.parts * self.high, WHOLE)

    def devices(self, outward: bool) -> tuple[int, int]:
        """(thousandths of each device, devices) for an instance."""
        if not self.high:
            return (WHOLE, self.whole) if self.whole else (0, 0)
        return max(1, self.low) if outward else min(self.high, WHOLE), self.parts


@dataclass(frozen=True)
class Cards:
    """The devices of a node."""

    number: int
    family: str = ""  # HAMi, Volcano, or none
    memory: tuple[int, ...] = ()  # MiB of each; empty where it is not told
    names: tuple[str, ...] = ()
    unread: str = ""


class Devices:
    """Devices of one listing.

    Parameters
    ----------
    rooms, asked : amounts of every node and pod
    """

    def __init__(self, nodes: Sequence[Mapping[str, Json]], rooms: Sequence[Amounts], asked: Sequence[Amounts]) -> None:
        there = {name for amounts in (*rooms, *asked) for name, amount in amounts.items() if amount}
        gpus = {name for name in there if name.endswith("/gpu") and name not in KOORDINATOR}
        self.names = gpus & VENDORS or gpus
        self.several = len(self.names) > 1
        self.cards = [self._cards(node, room) for node, room in zip(nodes, rooms, strict=True)]

    def _cards(self, node: Mapping[str, Json], room: Amounts) -> Cards:
        for family, name in REGISTERS.items():
            text = note(node, name)
            if text is not None and (family == "HAMi" or VOLCANO in room):
                return _registered(family, text)
        if VOLCANO in room:
            cores, total = room.get(VOLCANO_CORES, Fraction(0)), room.get(VOLCANO_MEMORY, Fraction(0))
            number = int(cores // 100)
            if not number or cores % 100 or number > MOST_GPUS or total % number:
                return Cards(0, "Volcano", unread="a node does not tell its cards")
            return Cards(number, "Volcano", (int(total / number),) * number)
        number = sum(int(room.get(name, 0)) for name in self.names)
        shares = [int(room[name] // 100) for name in KOORDINATOR if name in room]
        number = max([number, *shares])
        told = (node["metadata"].get("labels") or {}).get(MEMORY, "")
        memory = (int(told),) * number if re.fullmatch(r"[1-9][0-9]{0,8}", told) and number <= MOST_GPUS else ()
        return Cards(number, memory=memory)

    def rest(self, amounts: Amounts) -> dict[str, Fraction]:
        """What is counted by node: all but devices and parts; of several vendors each one's devices, too."""
        out = OF_PARTS if self.several else OF_PARTS | self.names
        return {name: amount for name, amount in amounts.items() if name not in out}

    def ask(self, place: str, pod: Mapping[str, Json], amounts: Amounts) -> Ask:
        """What a pod asks for."""
        rest, unread, rules = self.rest(amounts), "", []
        for name in amounts:
            row = way_of("kubernetes", "resource", name)
            if row.way == UNREAD and name not in self.names:
                unread = row.why
            if row.way == RELAXED:
                rules.append(row.why)
                rest.pop(name, None)
        fraction, memory = note(pod, "gpu-fraction"), note(pod, "gpu-memory")
        if fraction is not None or memory is not None:
            result = self._kai(place, pod, fraction, memory)
        elif VOLCANO in amounts or VOLCANO_MEMORY in amounts:
            result = self._memory(amounts, "Volcano", VOLCANO, VOLCANO_MEMORY, VOLCANO_SHARE)
        elif any(name in amounts for name in KOORDINATOR):
            result = _koordinator(amounts)
        elif HAMI in amounts or HAMI_SHARE in amounts:
            result = self._memory(amounts, "HAMi", NVIDIA, HAMI, HAMI_SHARE)
        else:
            result = Ask(sum(int(amounts.get(name, 0)) for name in self.names))
        if self.several and result.high:
            unread = unread or "it asks for a part of a GPU where GPUs are of several vendors"
        return replace(result, rest=rest, unread=unread or result.unread, rules=tuple(rules))

    def _kai(self, place: str, pod: Mapping[str, Json], fraction: str | None, memory: str | None) -> Ask:
        """KAI-Scheduler's fraction of each of some devices, or memory in MiB where nodes tell theirs."""
        told = note(pod, DEVICES) or "1"
        if not re.fullmatch("[1-9][0-9]{0,3}", told) or int(told) > MOST_GPUS:
            raise InputError(f"{place}.metadata.annotations.{DEVICES}: must be a whole number from 1, got {told[:40]}")
        result = self._fraction(place, fraction, memory)
        many = int(told) if not result.barred else 1
        return replace(result, whole=many * result.whole, parts=many if result.high else 1)

    def _fraction(self, place: str, fraction: str | None, memory: str | None) -> Ask:
        if fraction is not None:
            share = quantity(fraction, f"{place}.metadata.annotations.gpu-fraction")
            if not 0 < share <= 1:
                raise InputError(
                    f"{place}.metadata.annotations.gpu-fraction: must be above 0 and at most 1, got {fraction[:40]}"
                )
            return _part(share, share)
        return self._of_memory(quantity(memory, f"{place}.metadata.annotations.gpu-memory"), "")

    def _memory(self, amounts: Amounts, family: str, number: str, memory: str, share: str) -> Ask:
        """A share of the memory of each of some cards; all of it where none is told."""
        count = int(amounts.get(number, Fraction(1)))
        if memory in amounts:
            result = self._of_memory(amounts[memory], family)
        else:
            percent = min(amounts.get(share, Fraction(100)), Fraction(100)) / 100
            result = _part(percent, percent)
        if count > 1 and result.high and not result.unread:
            return Ask(unread=SEVERAL)
        return replace(result, whole=count * result.whole) if result.whole else result

    def _of_memory(self, asked: Fraction, family: str) -> Ask:
        """A part of one card by memory, on the nodes whose cards have as much."""
        listed = [(n, card) for n, card in enumerate(self.cards) if card.family == family and card.number]
        if not listed or any(not card.memory for _, card in listed):
            return Ask(unread="the memory of the cards is not told")
        fitting = {n: min(card.memory) for n, card in listed if min(card.memory) >= asked}
        if any(len(set(card.memory)) > 1 for _, card in listed):
            return Ask(unread="the cards of a node are not alike")
        if not fitting:
            most = max(max(card.memory) for _, card in listed)
            return Ask(1, barred=f"it asks for {float(asked):g} MiB of a card, the largest has {most}")
        shares = [asked / size for size in fitting.values()]
        return replace(_part(min(shares), max(shares)), nodes=frozenset(fitting))

    def parts_of(self, pod: Mapping[str, Json], n: int) -> tuple[int, ...]:
        """The devices that a pod runs on, by number, where the listing tells; else empty."""
        names = {name: d for d, name in enumerate(self.cards[n].names)}
        text = note(pod, "hami.io/vgpu-devices-allocated") or note(pod, "volcano.sh/vgpu-ids-new") or ""
        result = [names[part.split(",")[0]] for part in re.split("[:;]", text) if part.split(",")[0] in names]
        told = note(pod, "scheduling.koordinator.sh/device-allocated")
        try:
            result += [int(one["minor"]) for one in json.loads(told)["gpu"]] if told else []
        except (ValueError, TypeError, KeyError, RecursionError):
            return ()
        return tuple(d for d in result if 0 <= d < self.cards[n].number)


def _part(low: Fraction, high: Fraction) -> Ask:
    """A part of one device, or all of it."""
    if low == 1:
        return Ask(1)
    return Ask(0, math.floor(WHOLE * low), math.ceil(WHOLE * high))


def _koordinator(amounts: Amounts) -> Ask:
    """Percents of a device: below 100 a part of one, else whole ones."""
    shares = [amounts[name] for name in KOORDINATOR if name in amounts]
    most = max(shares)
    if most % 100 == 0:
        return (
            Ask(int(most // 100)) if len(set(shares)) == 1 else Ask(unread="its shares of cores and of memory differ")
        )
    if most > 100:
        return Ask(unread=SEVERAL)
    return _part(min(shares) / 100, most / 100)


def _registered(family: str, text: str) -> Cards:
    """The cards that a node's annotation lists: JSON, or in older versions text with commas and colons."""
    try:
        listed = json.loads(text)
        cards = [(str(one["id"]), int(one["devmem"])) for one in listed if one.get("health", True)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        rows = [part.split(",") for part in text.split(":") if part]
        cards = [(row[0], int(row[2])) for row in rows if len(row) > 2 and row[2].isdecimal() and len(row[2]) < 10]
    if not cards:
        return Cards(0, family, unread="a node does not tell its cards")
    return Cards(len(cards), family, tuple(size for _, size in cards), tuple(name for name, _ in cards))

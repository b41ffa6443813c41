"""Every kind of reason and cure that ``judge`` tells, against exhaustive search on small listings of each format."""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from oracles.snapshots import Gang, Runs, World, drawn, kubernetes_listing, own_listing, ray_listing, slurm_listing

import schedgap
from schedgap.tools.judge.judgement import Judgement
from schedgap.tools.judge.lost import Lost

LISTINGS = int(os.environ.get("SCHEDGAP_LISTINGS", "25"))
"""Listings of each format; 300 take some minutes."""
KINDS: dict[str, set[str]] = {
    "kubernetes": {
        "fits",
        "barred",
        "could",
        "capacity",
        "level",
        "cpu",
        "closed",
        "cure",
        "leaving",
        "none",
        "worth more",
    },
    "own": {"fits", "barred", "could", "capacity", "cpu", "tie", "cure", "none"},
    "slurm": {"fits", "barred", "could", "capacity", "cpu", "fixed", "nodes", "may"},
    "ray": {"fits", "barred", "could", "capacity", "cpu", "spread", "tie"},
}
"""Kinds of answers that a few dozen listings of a format must meet, so that none goes untried."""


def _judged(world: World, form: str, folder: Path) -> Judgement:
    path, nodes = folder / "snapshot.json", folder / "nodes"
    if form in ("kubernetes", "own"):
        data = kubernetes_listing(world) if form == "kubernetes" else own_listing(world)
        path.write_text(json.dumps(data))
        return schedgap.judge(path, names=True, time_limit=60)
    listed, second = slurm_listing(world) if form == "slurm" else ray_listing(world)
    path.write_text(json.dumps(listed))
    nodes.write_text(second if isinstance(second, str) else json.dumps(second))
    return schedgap.judge(path, nodes, form=form, names=True, time_limit=60)


class _Tried:
    """One answer compared."""

    def __init__(self, world: World, form: str, found: Judgement, met: Counter[str]) -> None:
        self.world, self.form, self.found, self.met = world, form, found, met
        self.every = list(world.decisions())
        self.best = max(map(world.worth, self.every))

    def gang(self, name: str) -> Gang:
        plain = name.removeprefix("d/")
        return next(gang for gang in self.world.gangs if gang.name == plain or gang.name == f"g{plain}")

    def compare(self) -> None:
        values = self.found.best_values
        weights = [float(value) for name, value in values.items() if name.startswith("weight")]
        order = sorted({gang.priority for gang in self.world.gangs}, reverse=True)
        assert weights == list(self.best[: len(order)])
        assert len(self.found.lost) == len(self.world.gangs)
        for lost in self.found.lost:
            self.met[lost.fate] += 1
            gang = self.gang(lost.gang)
            alone = self.world.alone(gang)
            if lost.fate == "may":  # shares of several nodes: the other reading leaves processors out
                assert self.form == "slurm" and not alone and self.world.alone(gang, cpu=False)
                continue
            assert alone is (lost.fate in ("fits", "could")), lost.line()
            if lost.fate == "barred":
                self.reasons(gang, lost)
                self._cure(gang, lost)
            if lost.fate == "could":
                self._rival(gang, lost)

    def _rival(self, gang: Gang, lost: Lost) -> None:
        """What the best decision without it is worth, and the best with it."""
        mine = max(self.world.worth(one) for one in self.every if gang.name in one)
        (reason,) = lost.reasons
        tie = reason.startswith(("another decision of the same worth", "others are worth as much"))
        assert tie is (mine == self.best), lost.line()
        self.met["tie" if tie else "worth more"] += 1
        if not tie:
            different = next(k for k, (one, other) in enumerate(zip(mine, self.best, strict=True)) if one != other)
            order = sorted({one.priority for one in self.world.gangs}, reverse=True)
            higher = order[different % len(order)] > gang.priority
            assert ("gangs of higher priority" in reason) is higher, lost.line()

    def reasons(self, gang: Gang, lost: Lost) -> None:
        """Every condition without which it fits is named, and no other; else what is short."""
        world, text = self.world, "; ".join(lost.reasons)
        seated = gang.level and bool(world.racks_of(gang))
        ways = {
            "level": ("required level", gang.level and world.alone(gang, level=False)),
            "cpu": ("its request for cpu", world.alone(gang, cpu=False)),
            "closed": ("nodes that do not take it", world.alone(gang, closed=True)),
            "nodes" if self.form == "slurm" else "spread": (
                "that it asks for" if self.form == "slurm" else "STRICT_SPREAD",
                gang.apart and world.alone(gang, apart=False),
            ),
        }
        if self.form == "slurm" and gang.count > 1:
            ways.pop("cpu")  # of several nodes they are in no outward reading
        for kind, (words, true) in ways.items():
            assert (words in text) is true or "together" in text or (kind == "level" and seated), (kind, lost.line())
            self.met[kind] += true
        for node, _ in re.findall(r"(n\d): (cordoned)", text):
            assert next(one for one in world.nodes if one.name == node).closed
        asked = world.needed(gang) * gang.gpus
        racks = world.racks_of(gang) if gang.level else None
        there = [not node.closed and (racks is None or node.rack in racks) for node in world.nodes]
        free = sum(max(0, gpus) for (gpus, _), open_ in zip(world.free(), there, strict=True) if open_)
        if "capacity" in text:
            self.met["capacity"] += 1
            told = re.search(r"capacity: (\d+) GPUs? (?:is|are) free.*?, (\d+) (?:is|are) wanted", text)
            assert told is not None and (int(told[1]), int(told[2])) == (free, asked) and free < asked, lost.line()
        bare = world.alone(gang, cpu=False, level=False, apart=False)
        if "fragmentation" in text:
            self.met["fragmentation"] += 1
            assert gang.gpus and free >= asked and not bare, lost.line()
        if "together" in text:
            self.met["together"] += 1
            assert (bare or not gang.gpus) and not any(true for _, true in ways.values()), lost.line()

    def _cure(self, gang: Gang, lost: Lost) -> None:
        """Moves and preemptions that the scheduler may do, their least price, or none."""
        line = lost.line()
        if self.form in ("slurm", "ray"):
            assert lost.moves is None and ("what runs is taken as fixed" in line) is bool(self.world.runs)
            self.met["fixed"] += bool(self.world.runs)
            return
        cures = list(self.world.cures(gang, preempts=self.form == "kubernetes"))
        least = min((price for price, _ in cures), default=None)
        leaving = lost.to_dict()["being_deleted_first"]
        if lost.moves is None:
            if "admit it, " in line or "nobody can place it" in line:
                assert least is None, line
                self.met["none"] += 1
            return
        self.met["cure"] += 1
        seats: dict[str, Any] = {one.name: one.node for one in self.world.runs}
        index = {node.name: n for n, node in enumerate(self.world.nodes)}
        self.met["leaving"] += bool(leaving)
        for name in [*lost.moves["preempted"], *leaving]:
            seats[name.removeprefix("d/")] = None
        for name, seat in lost.moves["moved"].items():
            seats[name.removeprefix("d/")] = index[seat["node"]]
        price = next((price for price, made in cures if made == seats), None)
        told = (lost.price, len(leaving))
        assert price == told, line
        assert least is not None and (told == least if lost.moves_proven else told >= least), line


@pytest.mark.parametrize("form", KINDS)
def test_what_is_said_of_lost_gangs_is_true_of_them(form: str, tmp_path: Path) -> None:
    rng = random.Random(f"reasons {form}")
    met: Counter[str] = Counter()
    for _ in range(LISTINGS * 2 if form == "kubernetes" else LISTINGS):
        world = drawn(rng, form)
        _Tried(world, form, _judged(world, form, tmp_path), met).compare()
    print(form, dict(met))
    assert KINDS[form] <= {kind for kind, count in met.items() if count}, met


def test_a_nominated_pod_keeps_its_room(tmp_path: Path) -> None:
    """In `kept` a pod that stays has the room: what fits there is said to fit; what fits in no world never is."""
    rng = random.Random("nominated")
    met: Counter[str] = Counter()
    for _ in range(LISTINGS * 2):
        world = drawn(rng, "kubernetes")
        gang, n = rng.choice(world.gangs), rng.randrange(len(world.nodes))
        room = [max(0, min(pair)) for pair in zip((gang.gpus, gang.cpu), world.free()[n], strict=True)]
        kept = World(world.nodes, [*world.runs, Runs("kept", n, *room, priority=0, owned=False)], world.gangs)
        data = kubernetes_listing(world)
        (pod,) = [item for item in data["items"] if item["metadata"]["name"] == f"{gang.name}-0"]
        pod["status"]["nominatedNodeName"] = world.nodes[n].name
        (tmp_path / "snapshot.json").write_text(json.dumps(data))
        found = schedgap.judge(tmp_path / "snapshot.json", names=True, time_limit=60)
        best = max(map(kept.worth, kept.decisions()))
        weights = [float(value) for name, value in found.best_values.items() if name.startswith("weight")]
        assert weights == list(best[: len(weights)])
        if any(one.gpus for one in world.gangs):
            gpus = {one.name: one.gpus for one in world.gangs}
            most = max(sum(gpus[name] * count for name, count in made.items()) for made in world.decisions())
            assert found.most is not None and found.most >= most
        for lost in found.lost:
            mine = next(one for one in world.gangs if f"d/{one.name}" == lost.gang)
            fates = {"fits", "could"} if kept.alone(mine) else {"may"} if world.alone(mine) else {"barred"}
            assert lost.fate in fates, lost.line()
            met[f"{lost.fate} {mine is gang}"] += 1
            if lost.fate == "may":
                assert ("may be about to start" in lost.line()) is (mine is gang)
            if lost.fate == "barred":
                _Tried(world, "kubernetes", found, met).reasons(mine, lost)
            if lost.fate == "barred" and lost.moves is not None:
                cures = [price for price, _ in (world if mine is gang else kept).cures(mine)]
                told = (lost.price, len(lost.to_dict()["being_deleted_first"]))
                assert told in cures and (not lost.moves_proven or told == min(cures)), lost.line()
                met["cure"] += 1
    print(dict(met))
    assert {"may True", "may False", "barred True", "fits False", "cure"} <= met.keys()

"""Stage `merged nodes`: equal nodes and equal pods are one, and decisions are made of what that gives.

Idea: a model on counts is small. It is a relaxation: it does not say on which of equal nodes a pod lies. Source: ours.
Guarantee: its bound holds for the instance; a decision made of its counts is a heuristic's, which the checker scores.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from schedgap.formulations.common.instance import Json, Solution, once_per_instance
from schedgap.formulations.gang_placement.instance import WHOLE, GangPlacementInstance, Shape
from schedgap.formulations.gang_placement.models.merged import Merged, Mode, chosen
from schedgap.formulations.gang_placement.scale import capacities, components
from schedgap.solvers.certificates.linear import GRID
from schedgap.solvers.engines import engine
from schedgap.solvers.engines.answer import EngineAnswer
from schedgap.solvers.engines.arrays import model_arrays
from schedgap.solvers.linear_program import INFINITY, LinearProgram
from schedgap.solvers.result import SolveOptions

MOST_PATTERNS = 200
Price = tuple[int, int | str, int]
"""(node, size or resource, price in 2^-40)."""


def solve_merged(
    instance: GangPlacementInstance, held: Sequence[int], engine_name: str, options: SolveOptions
) -> tuple[EngineAnswer, Solution | None]:
    """The component after those held: the engine's answer about the relaxation, and a decision made of its point."""
    merged = Merged(instance, components(instance)[: len(held) + 1], held)
    answer = engine(engine_name).solve(merged.model(), replace(options, start=None, report=None, relative_gap=0.0))
    if answer.values is None:
        return answer, None
    return answer, _Seats(merged, answer).decision()


class _Seats:
    """Hands pods out to nodes and gangs."""

    def __init__(self, merged: Merged, answer: EngineAnswer) -> None:
        assert answer.values is not None
        self.instance, self.classes = merged.instance, merged.classes
        self.gangs, self.kinds = chosen(merged, answer.values)
        self.left = [list(node.gpus) for node in self.instance.nodes]
        self.free = [Counter(node.free) for node in self.instance.nodes]
        self.placement: dict[str, list[dict[str, object]]] = {}
        self.shapes = list(self.classes.kinds)
        self.slots: list[Counter[int]] = [Counter() for _ in self.shapes]
        self.devices: dict[tuple[int, int], list[list[int]]] = {}

    def decision(self) -> Solution:
        """Large items first, each on the node of its class with the least left that holds it; then gangs take slots.

        A gang that finds too few is left out.
        """
        items: list[tuple[int, int, int]] = [
            (self.shapes[j].thousandths, -1 - j, c) for (j, c), count in self.kinds.items() for _ in range(count)
        ]
        for g, (mode, counts) in self.gangs.items():
            if mode.node is not None:
                pods = self.instance.gangs[g].pods
                items.append((sum(group.thousandths * n for group, n in zip(pods, counts, strict=True)), g, mode.node))
        for _, what, c in sorted(items, reverse=True):
            nodes = sorted(self.classes.nodes[c], key=lambda n: sum(self.left[n]))
            if what < 0:
                self._slot(-1 - what, nodes)
            else:
                next((n for n in nodes if self._together(what, n)), None)
        spread = [(g, mode, counts) for g, (mode, counts) in self.gangs.items() if mode.node is None]
        for g, mode, counts in sorted(spread, key=lambda one: (-len(one[1].domain), -sum(one[2]))):
            self._gang(g, mode, counts)
        return {"placement": self.placement}

    def _take(self, shape: Shape, n: int) -> list[int] | None:
        """Devices of one pod, None where the node does not hold it."""
        left = self.left[n]
        if any(self.free[n][name] < amount for name, amount in shape.request.items()):
            return None
        if shape.gpu >= WHOLE:
            devices = [d for d, part in enumerate(left) if part == WHOLE][: shape.devices]
        else:
            fitting = [d for d, part in enumerate(left) if part >= shape.gpu] if shape.gpu else []
            devices = sorted(fitting, key=lambda d: left[d])[: shape.pieces]
        if len(devices) < shape.pieces:
            return None
        for d in devices:
            left[d] -= min(shape.gpu, WHOLE)
        self.free[n].subtract(shape.request)
        return devices

    def _give(self, shape: Shape, n: int, devices: Sequence[int]) -> None:
        for d in devices:
            self.left[n][d] += min(shape.gpu, WHOLE)
        self.free[n].update(shape.request)

    def _slot(self, j: int, nodes: Sequence[int]) -> None:
        for n in nodes:
            devices = self._take(self.shapes[j], n)
            if devices is not None:
                self.slots[j][n] += 1
                self.devices.setdefault((j, n), []).append(devices)
                return

    def _together(self, g: int, n: int) -> bool:
        """A gang on one node; whether it fits."""
        taken: list[tuple[int, Shape, list[int]]] = []
        for k, (group, count) in enumerate(zip(self.instance.gangs[g].pods, self.gangs[g][1], strict=True)):
            for _ in range(count):
                devices = self._take(group, n)
                if devices is None:
                    for _, shape, own in taken:
                        self._give(shape, n, own)
                    return False
                taken.append((k, group, devices))
        name = self.instance.nodes[n].id
        pods: list[dict[str, object]] = [{"group": k, "node": name, "devices": own} for k, _, own in taken]
        self.placement[self.instance.gangs[g].id] = pods
        return True

    def _gang(self, g: int, mode: Mode, counts: Sequence[int]) -> None:
        """Slots in the gang's domain: as few nodes, racks and blocks as going by the fullest gives."""
        gang = self.instance.gangs[g]
        pods: list[dict[str, object]] = []
        there: Counter[int] = Counter()
        for k, count in enumerate(counts):
            j = self.classes.kinds[gang.pods[k].shape]
            while count:
                n = self._best(j, mode, count, there, gang.per_node)
                if n is None:
                    self._back(g, pods)
                    return
                taken = min(count, self.slots[j][n], (gang.per_node or count) - (there[n] if gang.per_node else 0))
                count -= taken
                there[n] += taken
                self.slots[j][n] -= taken
                for _ in range(taken):
                    own = self.devices[j, n].pop()
                    pods.append({"group": k, "node": self.instance.nodes[n].id, "devices": own})
        self.placement[gang.id] = pods

    def _best(self, j: int, mode: Mode, wanted: int, there: Counter[int], per_node: int | None) -> int | None:
        """The node to take slots from next: near what the gang has, exactly what is wanted, else the most."""
        depth = len(mode.domain)
        near = {self.instance.nodes[n].domain[: d + 1] for n in there for d in range(len(self.instance.levels))}
        best, choice = None, None
        for n, slots in self.slots[j].items():
            domain = self.instance.nodes[n].domain
            room = slots if per_node is None else min(slots, per_node - there[n])
            if room <= 0 or domain[:depth] != mode.domain:
                continue
            close = sum(domain[: d + 1] in near for d in range(len(domain))) + (n in there)
            key = (close, room == wanted, min(room, wanted), -room)
            if best is None or key > best:
                best, choice = key, n
        return choice

    def _back(self, g: int, pods: Sequence[dict[str, object]]) -> None:
        for pod in pods:
            j = self.classes.kinds[self.instance.gangs[g].pods[int(str(pod["group"]))].shape]
            n = self.instance.node_index[str(pod["node"])]
            self.slots[j][n] += 1
            own = pod["devices"]
            assert isinstance(own, list)
            self.devices[j, n].append(own)


@once_per_instance
def node_prices(instance: GangPlacementInstance) -> tuple[dict[str, Json], ...]:
    """Leaves of form ``prices`` of the certificates: for each component of weight, prices on what nodes hold.

    They are duals of the relaxation without whole numbers; where pods take parts of devices, a second leaf has values
    of parts, of which no device holds more than of a whole one.
    """
    weights = [entry for entry in components(instance) if entry.kind == "weight"]
    values = _values(instance)
    leaves: list[dict[str, Json]] = []
    for given in ({}, values) if values else ({},):
        told = {gpu: value / GRID for gpu, value in given.items()}
        prices = [_duals(Merged(instance, [entry], values=told), float(entry.step)) for entry in weights]
        leaves.append({"weights": prices, "values": {str(gpu): value for gpu, value in given.items()}})
    return tuple(leaves)


def _values(instance: GangPlacementInstance) -> dict[int, int]:
    """Values of parts of devices in 2^-40, of which no device holds more than that of a whole one, 1000.

    Duals of the linear program of cutting stock: the most thousandths of the waiting parts and whole devices on the
    devices that are entirely free, by patterns of parts, which come by dynamic programming. Empty without parts.
    """
    counts: Counter[int] = Counter()
    for gang in instance.gangs:
        for group in gang.pods:
            counts[min(group.gpu, WHOLE)] += group.count * max(1, group.pieces)
    devices = sum(part == WHOLE for parts in capacities(instance) for part in parts)
    sizes = sorted(gpu for gpu in counts if 0 < gpu < WHOLE)
    if not sizes or not devices:
        return {}
    patterns = [{gpu: WHOLE // gpu} for gpu in sizes] + [{WHOLE: 1}]
    rows = [*sizes, WHOLE]
    program = _stock(rows, counts, patterns, devices)
    for _ in range(MOST_PATTERNS):
        solved = program.solve()
        assert solved is not None  # nothing at all is a point
        duals = np.abs(solved.duals)
        worth, one = dict(zip(rows, duals.tolist(), strict=False)), float(duals[-1])
        pattern = _best_pattern(sizes, worth)
        if one <= 0 or sum(worth[gpu] * n for gpu, n in pattern.items()) <= one * (1 + 1e-9):
            break
        taken = [rows.index(gpu) for gpu in pattern]
        column = np.array([*taken, len(rows)]), np.array([*map(float, pattern.values()), -1.0])
        program.add_columns(np.zeros(1), np.full(1, INFINITY), [column])
    if one <= 0:
        return {}
    whole = WHOLE * GRID
    values = {gpu: math.floor(min(1.0, worth[gpu] / one) * whole) for gpu in sizes}
    # Patterns may still be missing when the rounds end, and the duals are rounded: what a device holds at most is
    # found once more, exactly, and values are lowered until that is what a whole one is worth.
    most = _most(values)
    return {gpu: value * whole // max(most, whole) for gpu, value in values.items()} | {WHOLE: whole}


def _most(values: Mapping[int, int]) -> int:
    """What the parts that fit one device are worth together at most, in whole numbers."""
    best = [0] * (WHOLE + 1)
    for free in range(1, WHOLE + 1):
        best[free] = max(best[free - 1], *(best[free - gpu] + value for gpu, value in values.items() if gpu <= free), 0)
    return best[WHOLE]


def _stock(
    rows: Sequence[int], counts: Counter[int], patterns: Sequence[dict[int, int]], devices: int
) -> LinearProgram:
    """The program with these patterns; a row for each size, and one of devices."""
    program = LinearProgram()
    many, size = len(rows), len(rows) + len(patterns)
    entries = [(i, i, -1.0) for i in range(many)]
    for p, pattern in enumerate(patterns):
        entries += [(i, many + p, float(pattern[gpu])) for i, gpu in enumerate(rows) if gpu in pattern]
    entries += [(many, many + p, -1.0) for p in range(len(patterns))]
    places, columns, values = zip(*entries, strict=True)
    matrix = sparse.csc_matrix((values, (places, columns)), shape=(many + 1, size))
    cost, upper = np.zeros(size), np.full(size, INFINITY)
    for i, gpu in enumerate(rows):
        cost[i], upper[i] = -float(gpu), float(counts[gpu])
    low = np.zeros(many + 1)
    low[many] = -float(devices)
    program.set_matrix(matrix, cost, upper, low, np.full(many + 1, INFINITY))
    return program


def _best_pattern(sizes: Sequence[int], worth: Mapping[int, float]) -> dict[int, int]:
    """Parts of one device that are worth most together."""
    best, last = [0.0] * (WHOLE + 1), [0] * (WHOLE + 1)
    for free in range(1, WHOLE + 1):
        best[free] = best[free - 1]
        for gpu in sizes:
            if gpu <= free and best[free - gpu] + worth[gpu] > best[free] + 1e-12:
                best[free], last[free] = best[free - gpu] + worth[gpu], gpu
    pattern: Counter[int] = Counter()
    free = WHOLE
    while free:
        pattern[last[free]] += bool(last[free])
        free -= last[free] or 1
    return {gpu: n for gpu, n in pattern.items() if n}


def _duals(merged: Merged, step: float) -> list[Price]:
    arrays = model_arrays(merged.model())
    if arrays.contradiction or not len(arrays.names):
        return []
    shape = (len(arrays.names), len(arrays.variables))
    matrix = sparse.csr_matrix((arrays.coefficients, arrays.indices, arrays.starts), shape=shape).tocsc()
    program = LinearProgram()
    kinds = set(merged.kind.values())  # what a node holds alone is in rows, too, whose duals are the prices
    upper = np.where([variable in kinds for variable in arrays.variables], INFINITY, arrays.upper)
    rooms = set(merged.layout.rows.get("room", ()))
    row_upper = np.where([name in rooms for name in arrays.names], INFINITY, arrays.row_upper)
    program.set_matrix(matrix, arrays.sense * arrays.cost, upper, arrays.row_lower, row_upper)
    solved = program.solve()
    found: list[Price] = []
    for row, dual in zip(arrays.names, solved.duals if solved is not None else (), strict=solved is not None):
        price = round(abs(float(dual)) * step * GRID) if row in merged.rows else 0
        if price:
            c, size = merged.rows[row]
            found += [(n, size, price) for n in merged.classes.nodes[c]]
    return found

"""From devices by type to devices by machine, and to the solution object."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.solution import by_slot
from schedgap.formulations.hadar.tables import ProgressTables

Levels = Mapping[int, Mapping[int, int]]
"""The level of each job in each slot it runs in: ``levels[job][slot] = level``."""


def trimmed(table_levels: Levels, data: ProgressTables) -> dict[int, dict[int, int]]:
    """The same schedules without the jobs that do not finish and without slots after the work is done.

    Utilities do not increase with the finish slot, so the objective does not fall.
    """
    kept: dict[int, dict[int, int]] = {}
    for job, slots in table_levels.items():
        table = data.jobs[job]
        done = 0
        own: dict[int, int] = {}
        for slot in sorted(slots):
            if done >= table.target:
                break
            own[slot] = slots[slot]
            done += int(table.step[slots[slot]])
        if done >= table.target:
            kept[job] = own
    return kept


def levels_from(instance: HadarInstance, data: ProgressTables, solution: Solution) -> dict[int, dict[int, int]]:
    """The levels of a feasible solution object; a job that it does not name has none."""
    levels: dict[int, dict[int, int]] = {}
    for name, held in solution["allocation"].items():
        j = instance.job_index[name]
        allowed = data.jobs[j].allowed
        levels[j] = {
            slot: int(np.argmax(allowed[:, [data.types.index(e["type"]) for e in entries]].all(axis=1)))
            for slot, entries in by_slot(held).items()
            if entries
        }
    return levels


def devices_by_type(levels: Sequence[tuple[int, int]], data: ProgressTables) -> Ints | None:
    """Whole devices by type for the jobs that run in one slot, or None where they do not fit together.

    Parameters
    ----------
    levels : (job, level) for every job that runs in the slot

    Returns
    -------
    (len(levels), R) devices
        A transportation problem: job W_j devices among the types its level allows, at most the capacity of each
        type. Solved by augmenting paths over types, O(jobs W R^2).
    """
    free = data.capacity.copy()
    given = np.zeros((len(levels), len(free)), dtype=np.int64)
    # the least flexible first leaves little to reroute
    order = sorted(range(len(levels)), key=lambda i: int(data.jobs[levels[i][0]].allowed[levels[i][1]].sum()))
    masks = [data.jobs[job].allowed[level] for job, level in levels]
    for position in order:
        need = data.jobs[levels[position][0]].workers
        while need > 0:
            path = _augmenting_path(masks[position], masks, given, free)
            if path is None:
                return None
            need -= _push(path, position, given, free, need)
    return given


def _augmenting_path(
    mask: NDArray[np.bool_], masks: Sequence[NDArray[np.bool_]], given: Ints, free: Ints
) -> list[tuple[int, int]] | None:
    """Types and movers from the newcomer to a type with free devices: [(type, mover of that type or -1), ...]."""
    came: dict[int, tuple[int, int] | None] = {int(kind): None for kind in np.flatnonzero(mask)}
    queue = list(came)
    for kind in queue:
        if free[kind] > 0:
            path = [(kind, -1)]
            step = came[kind]
            while step is not None:
                path.append(step)
                step = came[step[0]]
            return path[::-1]
        for other in np.flatnonzero(given[:, kind] > 0):
            for target in np.flatnonzero(masks[int(other)]):
                if int(target) not in came:
                    came[int(target)] = (kind, int(other))
                    queue.append(int(target))
    return None


def _push(path: list[tuple[int, int]], newcomer: int, given: Ints, free: Ints, need: int) -> int:
    """Send as many devices as the path carries; each mover gives up its type for the next one."""
    amount = min(need, int(free[path[-1][0]]))
    for kind, mover in path[:-1]:
        amount = min(amount, int(given[mover, kind]))
    given[newcomer, path[0][0]] += amount
    for (kind, mover), (following, _) in itertools.pairwise(path):
        given[mover, kind] -= amount
        given[mover, following] += amount
    free[path[-1][0]] -= amount
    return amount


def solution_from_levels(instance: HadarInstance, data: ProgressTables, levels: Levels) -> Solution | None:
    """The solution object of schedules given by levels, or None where some slot does not fit.

    The problem has no locality, so devices of a type are handed out machine by machine; a job stays on the
    machine it had in the slot before where that costs nothing.
    """
    by_slot: dict[int, list[tuple[int, int]]] = {}
    for job, slots in levels.items():
        for slot, level in slots.items():
            by_slot.setdefault(slot, []).append((job, level))
    amounts: dict[int, dict[int, Ints]] = {}
    for slot, running in by_slot.items():
        given = devices_by_type(running, data)
        if given is None:
            return None
        amounts[slot] = {job: given[position] for position, (job, _) in enumerate(running)}
    return solution_from_types(instance, data, amounts)


def solution_from_types(
    instance: HadarInstance, data: ProgressTables, amounts: Mapping[int, Mapping[int, Ints]]
) -> Solution:
    """The solution object of ``amounts[slot][job]`` = (R,) devices by type, which fit in every slot."""
    allocation: dict[str, dict[str, list[dict[str, object]]]] = {}
    before: dict[int, Ints] = {}
    for slot in sorted(amounts):
        free = data.machine_capacity.copy()
        placed: dict[int, Ints] = {}
        for job, devices in amounts[slot].items():  # first what can stay where it was
            kept = np.minimum(before.get(job, np.zeros_like(free)), free)
            kept = np.minimum(kept, np.maximum(0, devices[None, :] - (np.cumsum(kept, axis=0) - kept)))
            placed[job] = kept
            free -= kept
        for job, devices in amounts[slot].items():
            missing = devices - placed[job].sum(axis=0)
            for kind in np.flatnonzero(missing > 0):
                for machine in np.flatnonzero(free[:, kind] > 0):
                    taken = min(int(missing[kind]), int(free[machine, kind]))
                    placed[job][machine, kind] += taken
                    free[machine, kind] -= taken
                    missing[kind] -= taken
                    if missing[kind] == 0:
                        break
        for job, grid in placed.items():
            entries = allocation.setdefault(instance.jobs[job].id, {})
            entries[str(slot)] = entries_of(instance, data, grid)
        before = placed
    return {"allocation": allocation}


def entries_of(instance: HadarInstance, data: ProgressTables, grid: Ints) -> list[dict[str, object]]:
    """The entries of one job in one slot from its (H, R) devices."""
    machines, kinds = np.nonzero(grid)
    held = zip(machines.tolist(), kinds.tolist(), grid[machines, kinds].tolist(), strict=True)
    return [{"machine": instance.machines[h].id, "type": data.types[r], "gpus": count} for h, r, count in held]

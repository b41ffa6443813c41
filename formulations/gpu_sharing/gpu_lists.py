"""From overlap counts to GPU lists: with a cap of 2 the counts are all that matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance


def placed(
    instance: GpuSharingInstance,
    start: Sequence[int],
    end: Sequence[int],
    overlap: Mapping[tuple[int, int], int],
    steps: Sequence[int],
) -> Solution:
    """A solution with GPU lists that realise the overlap counts.

    At a start, job j takes o_jk GPUs that only k holds, for every running k, and free GPUs for the rest. If sum_k o_jk
    <= G_j and sum G - sum o <= N hold over the running jobs of every slot, these exist whatever was chosen before: the
    running jobs' counts fix how many GPUs are free, held by one job, or by each pair. Returns the bare solution. Raises
    ValueError: the counts break one of the two conditions.

    Parameters
    ----------
    start, end : first and last slot of each job, by position
    overlap : o_jk for j < k, GPUs that the two share while both run; a pair that is not there shares none
    steps : accumulation steps of each job
    """
    names = [(server.id, index) for server in instance.servers for index in range(server.gpus)]
    holders: list[list[int]] = [[] for _ in names]
    held: dict[int, list[int]] = {}
    result: dict[int, list[int]] = {}
    for j in sorted(range(len(start)), key=lambda j: (start[j], j)):
        for k in [k for k in held if end[k] < start[j]]:
            for gpu in held.pop(k):
                holders[gpu].remove(k)
        mine: list[int] = []
        for k in sorted(held):
            need = overlap.get((min(j, k), max(j, k)), 0)
            mine += _take([gpu for gpu in held[k] if holders[gpu] == [k]], need, names, mine)
        free = [gpu for gpu, here in enumerate(holders) if not here]
        mine += _take(free, instance.jobs[j].gpus - len(mine), names, mine)
        if len(mine) != instance.jobs[j].gpus:
            raise ValueError(f"job {instance.jobs[j].id}: the overlap counts leave no {instance.jobs[j].gpus} GPUs")
        held[j] = mine
        for gpu in mine:
            holders[gpu].append(j)
        result[j] = sorted(mine)
    jobs = instance.jobs
    return {
        "start": {job.id: int(start[j]) for j, job in enumerate(jobs)},
        "gpus": {job.id: [[names[gpu][0], names[gpu][1]] for gpu in result[j]] for j, job in enumerate(jobs)},
        "accumulation": {job.id: int(steps[j]) for j, job in enumerate(jobs)},
    }


def _take(found: list[int], need: int, names: Sequence[tuple[str, int]], mine: Sequence[int]) -> list[int]:
    """`need` of the GPUs found, on few servers: those of servers already used first, then the fullest supply."""
    used = {names[gpu][0] for gpu in mine}
    supply: dict[str, int] = {}
    for gpu in found:
        supply[names[gpu][0]] = supply.get(names[gpu][0], 0) + 1
    found = sorted(found, key=lambda gpu: (names[gpu][0] not in used, -supply[names[gpu][0]], gpu))
    return found[: max(0, need)]

"""Which jobs share which GPUs, where every placement is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu


def given_placement(instance: DdlClusterInstance, method: str) -> list[tuple[Gpu, ...]]:
    """Each job's GPUs, where every job's are given.

    Raises ModelRefused: a job's are not; the line names `method`.
    """
    placement = []
    for job, given in zip(instance.jobs, instance.given, strict=True):
        if given is None:
            raise ModelRefused(
                f"{method}: job {job.id} has no placement; this method needs every placement given, "
                "the method placement and the policies (srsf-1, ada-srsf, ...) choose them"
            )
        placement.append(given)
    return placement


@dataclass(frozen=True)
class Sharing:
    """GPUs with more than one job, those that hold the same jobs taken as one.

    GPUs with the same jobs can follow the same schedule: copying that of one to another makes no barrier later.
    """

    jobs: tuple[tuple[int, ...], ...]  # the sets of jobs on GPUs with more than one, each once, in order
    workers: tuple[dict[tuple[int, ...], tuple[int, ...]], ...]  # workers of each job on GPUs of each set of jobs
    alone: tuple[bool, ...]  # whether a worker of each job has its GPU to itself

    @classmethod
    def of(cls, placement: Sequence[Sequence[Gpu]]) -> Sharing:
        """How the jobs of a placement share GPUs."""
        holders: dict[Gpu, list[int]] = {}
        for j, gpus in enumerate(placement):
            for gpu in gpus:
                holders.setdefault(gpu, []).append(j)
        workers: list[dict[tuple[int, ...], tuple[int, ...]]] = []
        for gpus in placement:
            own: dict[tuple[int, ...], tuple[int, ...]] = {}
            for w, gpu in enumerate(gpus):
                here = tuple(holders[gpu])
                if len(here) > 1:
                    own[here] = (*own.get(here, ()), w)
            workers.append(own)
        alone = tuple(any(len(holders[gpu]) == 1 for gpu in gpus) for gpus in placement)
        return cls(tuple(sorted({tuple(here) for here in holders.values() if len(here) > 1})), tuple(workers), alone)

"""Real networks as instances of g-vne: the file's servers and links, drawn jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from schedgap.benchmarks.importers.substrate_files import clos_substrate, gml_substrate
from schedgap.benchmarks.instances.g_vne.random import random_jobs
from schedgap.benchmarks.instances.substrates import Substrate
from schedgap.formulations.common.options import passes_on_to
from schedgap.formulations.g_vne.instance import GVneInstance


def _importer(
    read: Callable[..., tuple[Substrate, list[str]]], most_jobs: int, largest: int
) -> Callable[..., tuple[GVneInstance, list[str]]]:
    @passes_on_to(read)
    def import_network(
        files: Sequence[str | Path],
        *,
        jobs: Annotated[int, Field(ge=1, le=100000, description="jobs")] = most_jobs,
        workers: Annotated[int, Field(ge=1, le=1000, description="workers of the largest ring")] = largest,
        seed: Annotated[int, Field(ge=0, le=10**9, description="of what is drawn")] = 0,
        **network: Any,
    ) -> tuple[GVneInstance, list[str]]:
        made, messages = read(files, seed=seed, **network)
        parts = {
            "problem": "g-vne",
            "name": Path(files[0]).stem,
            "servers": made.servers,
            "links": made.links,
            "jobs": random_jobs(np.random.default_rng([seed, 1]), jobs, workers, memory=False),
        }
        drawn = f"{jobs} jobs are drawn (seed {seed}): the file has none"
        return GVneInstance.parse(parts, str(files[0])), [drawn, *messages]

    import_network.__doc__ = f"""The network of a file with drawn jobs.

    Parameters
    ----------
    files : exactly one
    jobs, workers : how many jobs, and the largest ring
    seed : of the jobs, and of the GPUs where `gpus` is not given
    network : see :func:`{read.__name__}`

    Returns
    -------
    (instance, messages)

    Raises
    ------
    InputError
        See :func:`{read.__name__}`.
    """
    return import_network


import_gml, import_clos = _importer(gml_substrate, 20, 5), _importer(clos_substrate, 200, 16)

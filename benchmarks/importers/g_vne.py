"""Real networks as instances of g-vne: the file's servers and links, drawn jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from schedgap.benchmarks.importers.substrate_files import clos_substrate, gml_substrate
from schedgap.benchmarks.instances.g_vne.random import random_jobs
from schedgap.benchmarks.instances.substrates import Substrate
from schedgap.formulations.common.options import passes_on_to
from schedgap.formulations.g_vne.instance import GVneInstance


@passes_on_to(gml_substrate)
def import_gml(
    files: Sequence[str | Path],
    *,
    jobs: Annotated[int, Field(ge=1, le=100000, description="jobs")] = 20,
    workers: Annotated[int, Field(ge=1, le=1000, description="workers of the largest ring")] = 5,
    seed: Annotated[int, Field(ge=0, le=10**9, description="of what is drawn")] = 0,
    **network: Any,
) -> tuple[GVneInstance, list[str]]:
    """The network of a GML file with drawn jobs.

    Parameters
    ----------
    files : exactly one
    jobs, workers : how many jobs, and the largest ring
    seed : of the jobs, and of the GPUs where `gpus` is not given
    network : see :func:`gml_substrate`

    Returns
    -------
    (instance, messages)

    Raises
    ------
    InputError
        See :func:`gml_substrate`.
    """
    return _with_jobs(files, gml_substrate(files, seed=seed, **network), jobs, workers, seed)


@passes_on_to(clos_substrate)
def import_clos(
    files: Sequence[str | Path],
    *,
    jobs: Annotated[int, Field(ge=1, le=100000, description="jobs")] = 200,
    workers: Annotated[int, Field(ge=1, le=1000, description="workers of the largest ring")] = 16,
    seed: Annotated[int, Field(ge=0, le=10**9, description="of what is drawn")] = 0,
    **network: Any,
) -> tuple[GVneInstance, list[str]]:
    """Hosts below three layers of switches with drawn jobs; see :func:`clos_substrate` and :func:`import_gml`."""
    return _with_jobs(files, clos_substrate(files, seed=seed, **network), jobs, workers, seed)


def _with_jobs(
    files: Sequence[str | Path], made: tuple[Substrate, list[str]], jobs: int, workers: int, seed: int
) -> tuple[GVneInstance, list[str]]:
    network, messages = made
    rng = np.random.default_rng([seed, 1])
    name = Path(files[0]).stem
    instance = GVneInstance.parse(
        {
            "problem": "g-vne",
            "name": name,
            "servers": network.servers,
            "links": network.links,
            "jobs": random_jobs(rng, jobs, workers, memory=False),
        },
        str(files[0]),
    )
    return instance, [f"{jobs} jobs are drawn (seed {seed}): the file has none", *messages]

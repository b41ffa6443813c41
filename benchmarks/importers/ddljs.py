"""Real networks as instances of ddljs: the file's servers and links, drawn jobs of paper 004, section VI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from schedgap.benchmarks.importers.substrate_files import clos_substrate, gml_substrate
from schedgap.benchmarks.instances.ddljs.random import on_substrate
from schedgap.benchmarks.instances.substrates import Substrate
from schedgap.formulations.common.options import passes_on_to
from schedgap.formulations.ddljs.instance import DdljsInstance


@passes_on_to(gml_substrate)
def import_gml(
    files: Sequence[str | Path],
    *,
    jobs: Annotated[int, Field(ge=1, le=100000, description="number of jobs")] = 50,
    horizon: Annotated[int, Field(ge=1, le=100000, description="slots")] = 100,
    seed: Annotated[int, Field(ge=0, le=10**9, description="of what is drawn")] = 0,
    **network: Any,
) -> tuple[DdljsInstance, list[str]]:
    """The network of a GML file with drawn jobs.

    Parameters
    ----------
    files : exactly one
    jobs, horizon : how many jobs and slots
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
    return _with_jobs(files, gml_substrate(files, seed=seed, **network), jobs, horizon, seed)


@passes_on_to(clos_substrate)
def import_clos(
    files: Sequence[str | Path],
    *,
    jobs: Annotated[int, Field(ge=1, le=100000, description="number of jobs")] = 50,
    horizon: Annotated[int, Field(ge=1, le=100000, description="slots")] = 100,
    seed: Annotated[int, Field(ge=0, le=10**9, description="of what is drawn")] = 0,
    **network: Any,
) -> tuple[DdljsInstance, list[str]]:
    """Hosts below three layers of switches with drawn jobs; see :func:`clos_substrate` and :func:`import_gml`."""
    return _with_jobs(files, clos_substrate(files, seed=seed, **network), jobs, horizon, seed)


def _with_jobs(
    files: Sequence[str | Path], made: tuple[Substrate, list[str]], jobs: int, horizon: int, seed: int
) -> tuple[DdljsInstance, list[str]]:
    network, messages = made
    instance = on_substrate(network, seed, jobs=jobs, horizon=horizon, name=Path(files[0]).stem)
    return instance, [f"{jobs} jobs are drawn (seed {seed}): the file has none", *messages]

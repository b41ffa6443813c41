"""Real networks as instances of ddljs: the file's servers and links, drawn jobs of paper 004, section VI."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from schedgap.benchmarks.importers.substrate_files import clos_substrate, gml_substrate
from schedgap.benchmarks.instances.ddljs.random import on_substrate
from schedgap.benchmarks.instances.substrates import Substrate
from schedgap.formulations.common.options import passes_on_to
from schedgap.formulations.ddljs.instance import DdljsInstance


def _importer(read: Callable[..., tuple[Substrate, list[str]]]) -> Callable[..., tuple[DdljsInstance, list[str]]]:
    @passes_on_to(read)
    def import_network(
        files: Sequence[str | Path],
        *,
        jobs: Annotated[int, Field(ge=1, le=100000, description="number of jobs")] = 50,
        horizon: Annotated[int, Field(ge=1, le=100000, description="slots")] = 100,
        seed: Annotated[int, Field(ge=0, le=10**9, description="of what is drawn")] = 0,
        **network: Any,
    ) -> tuple[DdljsInstance, list[str]]:
        made, messages = read(files, seed=seed, **network)
        instance = on_substrate(made, seed, jobs=jobs, horizon=horizon, name=Path(files[0]).stem)
        return instance, [f"{jobs} jobs are drawn (seed {seed}): the file has none", *messages]

    import_network.__doc__ = f"""The network of a file with drawn jobs.

    Parameters
    ----------
    files : exactly one
    jobs, horizon : how many jobs and slots
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


import_gml, import_clos = _importer(gml_substrate), _importer(clos_substrate)

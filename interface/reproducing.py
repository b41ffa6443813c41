"""The papers' experiments: which there are, and measuring them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from schedgap.interrupt import at_work

if TYPE_CHECKING:
    from schedgap.benchmarks.laboratory.running import Reproduction
    from schedgap.benchmarks.sweep.progress import Sink


def papers() -> Mapping[str, str]:
    """The papers by number, each with the name that :func:`reproduce` takes too."""
    from schedgap.benchmarks.laboratory.papers import NAMES

    return NAMES


def experiments() -> Mapping[str, Sequence[tuple[str, str]]]:
    """Every paper, "000 (sjf-bco)", with the id and title of each of its items."""
    from schedgap.benchmarks.laboratory.papers import NAMES, find_paper

    return {
        f"{number} ({name})": [(item.id, item.title) for item in find_paper(number).items]
        for number, name in NAMES.items()
    }


@at_work()
def reproduce(
    paper: str,
    *,
    items: Sequence[str] | None = None,
    seeds: int | None = None,
    scale: float = 1.0,
    resume: bool = False,
    out: str | Path | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Sink | None = None,
) -> Reproduction:
    """Measure a paper's tables and figures again, judge its claims, write the page.

    Parameters
    ----------
    paper : its number or name, "000" or "sjf-bco"
    items : ids; all where None
    seeds : draws of every item; None is the items' own number, raised where a verdict is undecided
    scale : factor on the number of draws
    resume : go on with the run in `out`
    out : the run's folder, by default ``results/reproduce-<paper>``; where it holds a run and `resume` is not asked
        for, a new one beside it
    workers : processes; None is one per core
    cluster : address of a Dask scheduler, whose workers are taken instead of processes of this machine
    progress : a stream or a function for lines; None is silent

    Raises
    ------
    InputError
        An unknown paper or item, a number out of range, a folder that cannot be written.
    """
    from schedgap.benchmarks.laboratory.page import write_page
    from schedgap.benchmarks.laboratory.papers import find_paper
    from schedgap.benchmarks.laboratory.running import reproduce as run

    found = find_paper(paper)
    folder = Path("results") / f"reproduce-{found.id}" if out is None else Path(out)
    return run(
        found,
        items=items,
        seeds=seeds,
        scale=scale,
        resume=resume,
        out=folder,
        workers=workers,
        cluster=cluster,
        progress=progress,
        write=write_page,
    )

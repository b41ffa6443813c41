"""One sweep: pieces of work on workers, each outcome handed over as it comes; and the run whose store keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from schedgap.benchmarks.sweep.cluster import RESUMES, pool_of
from schedgap.benchmarks.sweep.progress import Progress
from schedgap.benchmarks.sweep.store import FILE, Store, held, holds_a_run

_T = TypeVar("_T")
_R = TypeVar("_R")


def sweep(
    pieces: Sequence[_T],
    function: Callable[[_T], _R],
    done: Callable[[_T, _R], None],
    died: Callable[[_T, str, float], None],
    *,
    label: Callable[[_T], str],
    bar: Progress,
    workers: int,
    allowed: Callable[[_T], float | None] = lambda _: None,
    inside: bool = False,
    cluster: str | None = None,
    kept: str = RESUMES,
) -> None:
    """Do every piece of work; what runs is told on the bar, whose line ends with the work.

    Parameters
    ----------
    pieces, function : the work, in the order in which it is begun, and what does it
    done : told of each outcome, in this process; what it has kept is kept whatever ends the rest
    died : told of a piece whose worker died or hung, with the reason and its seconds
    label : one line for a piece
    workers : processes, at most one a piece
    allowed, inside, cluster, kept : see :func:`~schedgap.benchmarks.sweep.cluster.pool_of`

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C; every outcome before it was handed over.
    ClusterLost
        The Dask scheduler does not answer or went away.
    """
    try:
        if pieces:
            processes = max(1, min(workers, len(pieces)))
            with pool_of(function, processes, allowed, inside=inside, cluster=cluster, kept=kept) as pool:
                pool.run(pieces, done, died, tick=lambda now: bar.tick((label(piece), took) for piece, took in now))
    finally:
        bar.finish()


@contextmanager
def run_store(out: Path, resume: bool) -> Iterator[tuple[Path, Store, bool]]:
    """The folder of a run, held for this process alone, its store, and whether a run there goes on.

    Without `resume` it is a new folder beside one that holds a run; one in which nothing began is none.
    Raises StoreError: another process works on the
    run, or the folder cannot be written.
    """
    with held(out, holds_a_run, resume) as folder:
        goes_on = holds_a_run(folder)
        begun = True
        try:
            with Store(folder / FILE) as store:
                try:
                    yield folder, store, goes_on
                finally:
                    begun = bool(store.meta())
        finally:
            if not begun:  # what was asked for is wrong: the next run takes this place
                for path in folder.glob(f"{FILE}*"):
                    path.unlink()

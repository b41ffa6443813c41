"""What papers prove, tried; and the worst instances of heuristics and claims, searched for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schedgap.benchmarks.harness.progress import Sink
    from schedgap.benchmarks.hunt.result import Hunted
    from schedgap.benchmarks.ledger.rows import Ledger


def verify(
    guarantees: Sequence[str] | None = None,
    *,
    instances: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    progress: Sink | None = None,
    workers: int | None = None,
) -> Ledger:
    """Try guarantees on many instances; every verdict is computed.

    Parameters
    ----------
    guarantees : ids; all where not given
    instances : how many for each
    seed : of all instances
    out : the directory for counterexample files and the ledger as ``ledger.json`` and ``ledger.html``;
        ``counterexamples`` where not given
    progress : a stream, or a function that is told whole lines
    workers : processes; all cores where not given

    Returns
    -------
    Ledger
        One row per guarantee.

    Raises
    ------
    InputError
        An unknown guarantee.
    Disagreement
        A heuristic beat a proven optimum, or the checker rejected a solution.
    """
    from schedgap.benchmarks.ledger.page import write_ledger
    from schedgap.benchmarks.ledger.verify import OUT
    from schedgap.benchmarks.ledger.verify import verify as run

    folder = OUT if out is None else Path(out)
    ledger = run(guarantees, instances=instances, seed=seed, out=folder, progress=progress, workers=workers)
    write_ledger(ledger, folder)
    return ledger


def hunt(
    target: str | Callable[..., object],
    *,
    problem: str | None = None,
    limits: Mapping[str, object] | None = None,
    budget: float | None = None,
    seed: int = 0,
    workers: int = 1,
    resume: bool = False,
    out: str | Path | None = None,
    progress: Sink | None = None,
) -> Hunted:
    """Search for the instance on which a heuristic is furthest from the optimum, or a claim nearest to failing.

    Parameters
    ----------
    target : a guarantee's id, ``PROBLEM/HEURISTIC``, ``PROBLEM/package.module:function``, or a heuristic of
        your own: a callable ``(instance, *, seed) -> solution``
    problem : of a callable
    limits : ``{"jobs": 4, "jobs.gpus": 2, "evaluations": 500}``, see docs/hunting.md
    budget : seconds; by counts where not given, and then the result depends on the seed alone
    seed, workers : of all randomness; processes (1 works in this one)
    resume : go on with the hunt in `out`
    out : its folder; ``hunts/<target>`` where not given
    progress : a stream, or a function that is told whole lines

    Returns
    -------
    Hunted
        ``value`` the ratio (or left/right), ``worst.data`` the shrunk instance, ``path`` its file, for ``compare``;
        ``defects`` a line for each instance on which parts of schedgap disagreed.

    Raises
    ------
    InputError
        Bad input, or a heuristic of your own that raised; the line names the instance.

    Examples
    --------
    >>> hunt("rar-ddls/ff", limits={"jobs": 3, "evaluations": 100}).value  # doctest: +SKIP
    """
    from schedgap.benchmarks.hunt.run import hunt as run

    return run(
        target,
        problem=problem,
        limits=limits,
        budget=budget,
        seed=seed,
        workers=workers,
        resume=resume,
        out=None if out is None else Path(out),
        progress=progress,
    )

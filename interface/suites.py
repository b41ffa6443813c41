"""Many runs: as one table, as a report, exported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.interrupt import at_work
from schedgap.reading import InstanceLike

if TYPE_CHECKING:
    import pandas as pd

    from schedgap.benchmarks.sweep.progress import Sink


@at_work()
def run(
    instances: InstanceLike | Iterable[InstanceLike],
    methods: Sequence[str] | None = None,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    repeat: int = 1,
    threads: int | None = None,
    settings: Mapping[str, object] | None = None,
    progress: Sink | None = None,
) -> pd.DataFrame:
    """Every method on every instance, as one tidy table.

    Parameters
    ----------
    instances : one or several: instances, their JSON objects, or the paths of their files
    methods : ids, or ``file.py:function`` of your own; the strongest exact method and every heuristic where not given
    time_limit : seconds for each method on each instance
    seed, repeat : each heuristic runs with the seeds seed, ..., seed + repeat - 1
    threads : number of threads of exact methods
    settings : each option goes to every method that has it
    progress : a stream, or a function that is told whole lines

    Returns
    -------
    pandas.DataFrame
        A row for each run, with the columns problem, instance, instance_hash, method, kind, settings, seed, status,
        objective, bound, optimum and best_bound (of all methods together), ratio, ratio_to ("optimum" or "bound"),
        outside_model, proof, engine, seconds, error. What is not known is NaN.

    Raises
    ------
    InputError
        A malformed instance, an unknown method, or an option that none of them has.
    Disagreement
        Two answers cannot both be true.

    Examples
    --------
    >>> table = run([generate("rar-ddls", seed=s) for s in (0, 1)], ["cp", "lpt-colocate"])
    >>> table.groupby("method").ratio.mean()["cp"]
    np.float64(1.0)
    """
    from schedgap.benchmarks.report.frame import tidy
    from schedgap.benchmarks.sweep.progress import Progress
    from schedgap.solving import compare

    several = isinstance(instances, Iterable) and not isinstance(instances, str | Mapping | Instance)
    given = list(cast("Iterable[InstanceLike]", instances)) if several else [cast("InstanceLike", instances)]
    limits = {"time_limit": time_limit, "seed": seed, "repeat": repeat, "threads": threads, "settings": settings}
    bar = Progress(len(given), progress, "run")
    found = []
    for k, instance in enumerate(given, 1):
        with bar.at_work(f"instance {k}"):
            found.append(compare(instance, methods, **limits))  # type: ignore[arg-type]
        bar.step(found[-1].instance.name or f"instance {k}")
    bar.finish()
    return tidy(found)


def report(
    folder: str | Path,
    other: str | Path | None = None,
    *,
    csv: str | Path | None = None,
    parquet: str | Path | None = None,
    latex: str | Path | None = None,
    markdown: str | Path | None = None,
    progress: Sink | None = None,
) -> tuple[Path, ...]:
    """Write the report of a run, or of two beside each other, as ``schedgap report`` does.

    Parameters
    ----------
    folder : the run's directory
    other : a second run, to compare with
    csv, parquet : files for the records of the run; only where it is the only one. Beside csv stand
        ``comparisons.csv`` and ``.json``: means, 95% intervals and paired tests of the heuristics
    latex, markdown : files for the tables of heuristics, intervals and tests included
    progress : told of a run that is not finished

    Returns
    -------
    tuple of Path
        The files that were written, the report last.

    Raises
    ------
    InputError
        There is no run, a file cannot be written, two runs to export, or pyarrow is not installed.
    """
    from schedgap.benchmarks.report.export import check_form, export
    from schedgap.benchmarks.report.run_page import unfinished, write_report
    from schedgap.benchmarks.sweep.progress import Progress

    runs = [Path(folder), *([] if other is None else [Path(other)])]
    forms = {"csv": csv, "parquet": parquet, "latex": latex, "markdown": markdown}
    exports = {form: Path(path) for form, path in forms.items() if path is not None}
    for form, path in exports.items():
        if other is not None:
            raise InputError(f"--{form}: exports one run, got two")
        if path.is_dir():
            raise InputError(f"--{form}: {path} is a directory, must be a file")
        check_form(form)
    told = Progress(0, progress, "report")
    for run in runs:
        if missing := unfinished(run):
            told.say(f"schedgap: note: {run}: {missing}")
    written = [export(form, runs[0], path) for form, path in exports.items()]
    return (*written, write_report(runs[0], None if other is None else runs[1]))

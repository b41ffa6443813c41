"""What a worker process does: one item of a suite, whatever happens to it turned into a record."""

from __future__ import annotations

import os
import time
import traceback
from dataclasses import replace
from pathlib import Path

from schedgap.benchmarks.anytime import Recorder
from schedgap.benchmarks.records import Record, failed, plain
from schedgap.benchmarks.suites.plan import Item
from schedgap.benchmarks.sweep.warm import warm_once
from schedgap.catalogue.agreement import with_certificate
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.compiled import compiled_at_once
from schedgap.formulations.common.errors import Disagreement, SchedgapError
from schedgap.solvers.result import Deadline, Result, SolveOptions


def execute(item: Item, disagreements: Path) -> Record:
    """Do one item with one thread; an exception becomes a record with status ERROR.

    Before its clock starts, the process is warm for this work, see :func:`~schedgap.benchmarks.sweep.warm.warm_once`.

    Parameters
    ----------
    disagreements : folder for the instance of a disagreement
    """
    began = None
    record = item.record
    try:
        with compiled_at_once():
            warm_once(item.problem, item.method, record.settings, disagreements)
            began = time.monotonic()
            result = _solve(item, disagreements)
        record = replace(record, result=replace(result, solution=plain(result.solution), info=plain(result.info)))
    except SchedgapError as error:
        record = failed(record, str(error), isinstance(error, Disagreement))
    except Exception as error:  # the sweep goes on; the record tells what happened, with its traceback
        record = failed(record, f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
    took = None if began is None else time.monotonic() - began
    return replace(record, seconds=took, worker=os.getpid())


def _solve(item: Item, disagreements: Path) -> Result:
    limits, settings, recorder = item.record.limits, item.record.settings, Recorder(item.problem.sense)
    deadline, work = Deadline.after(limits["time"]), limits["work"]
    options = SolveOptions(deadline, seed=item.record.seed, threads=1, work_limit=work, report=recorder)
    result = run_method(item.problem, item.instance, item.method, options, settings, disagreements=disagreements)
    result = recorder.kept(item.method, result)
    certify = limits.get("certify") and item.method.proves
    return with_certificate(item.problem, item.instance, result) if certify else result

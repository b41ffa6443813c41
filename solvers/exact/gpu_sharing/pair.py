"""The job pair of Theorem 1 as a method on instances of two jobs: share now, or wait (method `job-pair`)."""

from __future__ import annotations

import time
from dataclasses import replace

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gpu_sharing.check import check
from schedgap.formulations.gpu_sharing.dynamics import tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.schedule import simulate
from schedgap.formulations.gpu_sharing.solution import GpuSharingSolution
from schedgap.solvers.result import Result, SolveOptions, Status


def solve_pair(instance: GpuSharingInstance, options: SolveOptions) -> Result:
    """The exact start of the second job beside the first, in continuous time, and the schedule that it means in slots.

    Both jobs have the first GPUs of the cluster. The second one starts when it arrives (share) or after the first has
    ended (wait), whichever Theorem 1 says; if the two do not fit a GPU together, it waits. Raises InputError: the
    instance has not two jobs, or they do not meet.

    Returns
    -------
    Result; FEASIBLE, or UNKNOWN where the schedule does not keep the horizon. ``info["pair"]``: the pair in seconds,
    the best kappa with its mean, what the rule says, and what the MILP (16) to (25) finds on HiGHS.
    """
    from schedgap.formulations.gpu_sharing.pair import best_start, pair_milp, pair_of, should_share
    from schedgap.solvers.engines import engine

    began = time.monotonic()
    pair = pair_of(instance)
    choice = best_start(pair)
    model = pair_milp(pair)
    answer = engine("highs").solve(model, replace(options, start=None, report=None))
    if answer.objective is None:
        raise InputError(f"job-pair: HiGHS says {answer.status} of the pair's program")
    info = {
        "pair": {
            "left": pair.left,
            "new": pair.new,
            "slow_running": pair.slow_running,
            "slow_new": pair.slow_new,
            "kappa": choice.kappa,
            "mean": choice.mean,
            "rule": "share" if should_share(pair) else "wait",
            "MILP kappa": model.extract(answer.value)["kappa"],
            "MILP mean": answer.objective,
        }
    }
    solution = _schedule(instance, choice.share)
    report = check(instance, GpuSharingSolution.parse(solution))
    seconds = time.monotonic() - began
    if report.violations or report.objective is None:
        return Result(Status.UNKNOWN, solve_seconds=seconds, info=info)
    return Result(
        Status.FEASIBLE, objective=float(report.objective), solution=solution, solve_seconds=seconds, info=info
    )


def _schedule(instance: GpuSharingInstance, share: bool) -> Solution:
    first = 0 if instance.jobs[0].arrival <= instance.jobs[1].arrival else 1
    one, other = instance.jobs[first], instance.jobs[1 - first]
    data = tables(instance)
    gpus = [[server.id, index] for server in instance.servers for index in range(server.gpus)]
    steps = data.steps[first][0]
    beside = data.smallest_fit(1 - first, first, steps) if instance.max_jobs_per_gpu > 1 else None
    start = {one.id: one.arrival, other.id: other.arrival}
    own = {one.id: steps, other.id: data.steps[1 - first][0]}
    places = {job.id: gpus[: job.gpus] for job in instance.jobs}
    if share and beside is not None:
        return {"start": start, "gpus": places, "accumulation": {**own, other.id: beside}}
    # alone: the other one starts after the horizon, out of the way
    late = {**start, other.id: instance.horizon + 1 + 10**6}
    ends = simulate(instance, {"start": late, "gpus": places, "accumulation": own}).completion[one.id]
    start[other.id] = max(other.arrival, int(ends) + 1)
    return {"start": start, "gpus": places, "accumulation": own}

"""The rivals of SJF-BCO in section 7 of paper 000: first fit, list scheduling, random.

Idea: `ff` takes the available GPUs of lowest index, `ls` the least loaded ones, `rand` draws them. Source: paper 000,
section 7. Our reading of their limits: `ff` and `ls` have a theta of their own, bisected as in SJF-BCO, and `rand`
takes theta = T.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from schedgap.formulations.common.options import options_of, parse_settings
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.running import build_workload
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.rar_ddls import passes
from schedgap.heuristics.rar_ddls.estimates import estimates, impossible, require_gpu_arrays
from schedgap.heuristics.rar_ddls.options import JobOrder, LargestTheta, Overestimate, Underestimate
from schedgap.heuristics.rar_ddls.sjf_bco import CompletedPass, Search, base_info, finished, make_plan, pass_facts
from schedgap.solvers.result import NO_DEADLINE, Deadline


def ff(
    instance: RarDdlsInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    T: LargestTheta = None,
    u: Overestimate = 1.0,
    l: Underestimate = 1.0,  # noqa: E741 (the paper's letter)
    order: JobOrder = "input",
) -> HeuristicRun:
    """First fit: jobs in input order, each on the available GPUs with the lowest indices.

    A GPU is available while it is idle and its load U_g has ``U_g + rho_hat_j / u <= theta``, with rho_hat_j
    the best contention-free duration; the job waits until there are G_j, and nobody overtakes it. theta is
    bisected in 1..T like that of SJF-BCO: down when the makespan improved, up otherwise. No guarantee is known. Raises
    InputError: an option out of range, or an instance too large for arrays over GPUs.

    Parameters
    ----------
    deadline : looked at between passes; the best so far is returned
    T : largest theta; the horizon where not given
    u : rho_hat / u is added to a GPU's load
    l : not used here
    order : ``input``, or ``smallest`` first, by (G_j, input order), as SJF-BCO takes jobs; the paper does not say

    Returns
    -------
    HeuristicRun; the solution is None where nothing was found within T and the horizon (``info["reason"]``).
    ``info``: T, u, l, N, n_g, rho_hat, ``theta_probes``, ``bisected`` as in ``sjf_bco.pass_facts``, and of it
    theta_tilde, W_max, makespan and phi; ``stopped`` = "time limit" where the deadline ended the bisection.

    Notes
    -----
    O(J N) for a theta, and the rings that contend.
    """
    return _search(instance, ff, passes.FIRST_FIT, (T, u, l), order, deadline=deadline)


def ls(
    instance: RarDdlsInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    T: LargestTheta = None,
    u: Overestimate = 1.0,
    l: Underestimate = 1.0,  # noqa: E741 (the paper's letter)
    order: JobOrder = "input",
) -> HeuristicRun:
    """List scheduling: jobs in input order, each on the available GPUs of least load, ties by index.

    As :func:`ff` but for the choice of GPUs; the same parameters, results and errors. O(sum_j G_j log N) for a
    theta that does not bind, O(J N) otherwise, and the rings that contend.
    """
    return _search(instance, ls, passes.LEAST_LOADED, (T, u, l), order, deadline=deadline)


def rand(
    instance: RarDdlsInstance,
    *,
    seed: int = 0,  # seed of the draws; the same seed gives the same schedule
    T: LargestTheta = None,
    u: Overestimate = 1.0,
    l: Underestimate = 1.0,  # noqa: E741 (the paper's letter)
    order: JobOrder = "input",
) -> HeuristicRun:
    """Random servers and GPUs: jobs in input order, theta = T.

    Each GPU of a job in turn: a server drawn uniformly among those with available GPUs left, then one of these
    drawn uniformly. Otherwise as :func:`ff`; the same parameters, results and errors.
    """
    return _search(instance, rand, passes.RANDOM, (T, u, l), order, seed)


def _search(
    instance: RarDdlsInstance,
    method: Callable[..., HeuristicRun],
    policy: int,
    estimate: tuple[int | None, float, float],
    job_order: str,
    seed: int | None = None,
    deadline: Deadline = NO_DEADLINE,
) -> HeuristicRun:
    given = {**dict(zip(("T", "u", "l"), estimate, strict=True)), "order": job_order}
    parse_settings(options_of(method), given, method.__name__)
    info = base_info(instance, *estimate)
    reason = impossible(instance)
    if reason is not None:
        return HeuristicRun(None, {**info, "reason": reason})
    require_gpu_arrays(instance)
    guess = estimates(instance, "best", estimate[1])
    work = build_workload(instance)
    gangs = work.jobs["gang"][:-1]
    order = np.argsort(gangs, kind="stable") if job_order == "smallest" else np.arange(gangs.size)
    order = order.astype(np.int64)
    largest: int = info["T"]
    # With kappa = n_g every job is placed by Algorithm 2, the least loaded GPUs.
    kappa = instance.largest_gang
    best: CompletedPass | None
    if policy == passes.RANDOM:
        plan = make_plan(work, guess.weights, order, 1.0, draws=2 * int(work.jobs["gang"].sum()), seed=seed or 0)
        search = Search(work, plan, guess, policy)
        best = search.one_pass(largest, kappa, largest + 1)
        probes = [[largest, largest + 1 if best is None else best.makespan]]
    else:
        search = Search(work, make_plan(work, guess.weights, order, 1.0), guess, policy, deadline=deadline)
        best, probes = search.bisect(largest, "improved", [kappa])
    if best is not None:
        best = replace(best, kappa=0)
    facts = pass_facts(instance, guess, best)
    info.update({"rho_hat": list(guess.rho_hat), "theta_probes": probes, "bisected": facts})
    if facts is not None:
        info["returned"] = "bisected"
        info["theta_tilde"] = facts["theta"]
        info.update({name: facts[name] for name in ("W_max", "makespan", "phi")})
    why = f"no pass ends within T = {largest} slots"
    if search.stopped:
        info["stopped"] = "time limit"
        why += " before the time limit"
    return finished(instance, best, info, why)

"""SJF-BCO, smallest job first with balanced contention and overhead: Algorithms 1 to 3 of paper 000.

``sjf-bco`` is the algorithm as published; ``sjf-bco+`` also compares one more pass, the probe, and has a proven ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from schedgap.formulations.common.options import options_of, parse_settings
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.running import FAR, build_workload
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.common.variant import variant
from schedgap.heuristics.rar_ddls.estimates import estimates, impossible, require_gpu_arrays
from schedgap.heuristics.rar_ddls.options import LargestTheta, Overestimate, Underestimate
from schedgap.heuristics.rar_ddls.search import Search, base_info, finished, make_plan, pass_facts
from schedgap.solvers.result import NO_DEADLINE, Deadline


def sjf_bco(
    instance: RarDdlsInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    T: LargestTheta = None,
    u: Overestimate = 1.0,
    l: Underestimate = 1.0,  # noqa: E741 (the paper's letter)
    lambda_: Annotated[float, Field(ge=1, description="lambda_j of Algorithm 3, for every job")] = 1.0,
    bisection: Annotated[Literal["improved", "feasible"], Field(description="what moves theta down")] = "improved",
    kappa: Annotated[int | None, Field(ge=1, description="only this kappa instead of 1..n_g")] = None,
    rho_hat: Annotated[
        Literal["best", "worst"] | Sequence[int] | Mapping[str, int],
        Field(description="estimated durations: alone, or on the most servers in the worst company"),
    ] = "best",
    probe: Annotated[
        bool, Field(description="also compare the pass with theta = infinity and kappa = n_g, as sjf-bco+ does")
    ] = False,
) -> HeuristicRun:
    """Schedule by SJF-BCO.

    Jobs are taken by (G_j, input order). The head job waits until enough idle GPUs have a load U_g with
    ``U_g + rho_hat_j / u <= theta``: of the whole cluster for G_j <= kappa (Algorithm 2), of the servers with
    the least average load and at least lambda G_j GPUs otherwise (Algorithm 3); it takes those of least
    load, ties by index. theta is bisected in 1..T and every kappa in 1..n_g is tried; real durations come
    from the dynamics.

    Guarantee with `probe` (ours, proven in docs/proofs-rar-ddls.md): with r_j the realised and d_j the best durations
    of the probe, and phi = max_j r_j / d_j,
    ``makespan <= (2 - 1/N) max(sum_j G_j r_j / N, max_j r_j) <= (2 - 1/N) phi T*``. Theorem 5 of the paper claims
    ``n_g phi (u/l) T*`` without it, which is refuted.

    Parameters
    ----------
    deadline : looked at between passes; it ends the bisection, a probe runs even then, so its guarantee stays
    T : largest theta, and the largest makespan that counts; the horizon where not given
    u, l : error of the estimates, u >= 1 and l in (0, 1]; l enters the guarantees only
    lambda_ : lambda >= 1 of Algorithm 3
    bisection : "improved" moves theta down when the makespan improved, as printed, "feasible" when some pass was
        feasible
    kappa : only this one, also for the probe; below n_g the guarantee does not hold
    rho_hat : estimated durations: "best", contention-free, "worst", on the most servers under the most contention,
        or slots per job, in input order or by id
    probe : compare the pass with theta = infinity and kappa = n_g as well (ours, not in the paper)

    Returns
    -------
    HeuristicRun; the solution is None where nothing was found within T and the horizon (``info["reason"]``).
    ``info``: T, u, l, lambda, bisection, N, n_g, rho_hat; ``theta_probes`` as [theta, makespan] (T + 1: not
    improved); ``bisected``, ``probe`` as in ``search.pass_facts``, None where there is none; ``returned``, which it is,
    and of it theta_tilde, kappa, W_max, makespan and phi; ``probe_within_T``; ``passes_run``;
    ``stopped`` = "time limit" where the deadline ended the bisection.

    Raises
    ------
    InputError
        An option out of range, or an instance too large for arrays over GPUs.

    Notes
    -----
    Without `probe` the schedule is that of the algorithm as printed, read as the table in docs/rar-ddls.md says. Not
    run: kappas between two job sizes, passes that cannot beat the best one, passes known from another theta. The
    printed algorithm takes O(n_g J N log N log T) (Theorem 6 of the paper).
    """
    given = {"T": T, "u": u, "l": l, "lambda": lambda_, "bisection": bisection, "kappa": kappa}
    parse_settings(
        options_of(sjf_bco), {**given, **({"rho_hat": rho_hat} if isinstance(rho_hat, str) else {})}, "sjf-bco"
    )
    info = base_info(instance, T, u, l)
    info.update({"lambda": lambda_, "bisection": bisection})
    reason = impossible(instance)
    if reason is not None:
        return HeuristicRun(None, {**info, "reason": reason})
    require_gpu_arrays(instance)
    guess = estimates(instance, rho_hat, u)
    work = build_workload(instance)
    order = np.argsort(work.jobs["gang"][:-1], kind="stable").astype(np.int64)
    search = Search(work, make_plan(work, guess.weights, order, lambda_), guess, deadline=deadline)
    # Between two job sizes every kappa means the same; the first of them stays, as in a loop over all.
    kappas = sorted({1, *work.jobs["gang"][:-1].tolist()}) if kappa is None else [kappa]
    bisected, probes = search.bisect(info["T"], bisection, kappas)
    unlimited = search.one_pass(math.inf, kappas[-1], FAR) if probe else None
    if unlimited is not None:
        # It may have been known from a pass whose theta did not bind.
        unlimited = replace(unlimited, theta=math.inf)
    best, returned = bisected, "bisected" if bisected is not None else None
    if unlimited is not None and unlimited.makespan < (info["T"] + 1 if best is None else best.makespan):
        best, returned = unlimited, "probe"
    facts = {"bisected": pass_facts(instance, guess, bisected), "probe": pass_facts(instance, guess, unlimited)}
    info.update(
        {
            "rho_hat": list(guess.rho_hat),
            "theta_probes": probes,
            "passes_run": search.passes_run,
            **facts,
            "probe_compared": probe and kappas[-1] >= instance.largest_gang,
            "probe_within_T": unlimited is not None and unlimited.makespan <= info["T"],
            "returned": returned,
        }
    )
    if search.stopped:
        info["stopped"] = "time limit"
    if returned is not None:
        chosen_pass = facts[returned] or {}
        info["theta_tilde"] = chosen_pass["theta"]
        info.update({name: chosen_pass[name] for name in ("kappa", "W_max", "makespan", "phi")})
    why = f"no pass ends within T = {info['T']} slots"
    if search.stopped:
        why += " before the time limit"
    if probe and unlimited is None:
        why += "; without a limit on loads, rings stall each other for ever"
    return finished(instance, best, info, why)


sjf_bco_plus = variant(
    sjf_bco,
    "sjf-bco+",
    "SJF-BCO repaired: the probe, the pass with theta = infinity and kappa = n_g, is compared too; "
    "``makespan <= (2 - 1/N) phi T*``, phi = max_j r_j / d_j over the probe's durations. See :func:`sjf_bco`.",
    fixed={"probe": True},
)

"""Section V-B of paper 004: q_i, from Problem (10) with its integers relaxed, as a bound on the workers of a ring."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.heuristics.common.guarantee import (
    Case,
    Evaluation,
    at_most,
    not_applicable,
)


def relaxed_workers(instance: GVneInstance) -> dict[str, float]:
    """q_i of every job: workers in an optimal solution of (10) with (2), (4) and (11) relaxed.

    Utilities are linear between whole numbers of workers; they have to be concave. Links are not in the relaxation.

    Notes
    -----
    A linear program with a variable for each job and server and one for each job and ring size. Where it has several
    optimal solutions, q is of one of them.
    """
    from scipy.optimize import linprog  # takes half a second, for a single claim

    jobs, servers = instance.jobs, [server for server in instance.servers if server.resources]
    steps = [(j, k) for j, job in enumerate(jobs) for k in range(job.max_workers)]
    hosted = len(jobs) * len(servers)
    gains = [jobs[j].utility[k] - (jobs[j].utility[k - 1] if k else 0.0) for j, k in steps]
    rows, right = [], []
    for s, server in enumerate(servers):
        for name in sorted({name for job in jobs for name in job.demand}):
            row = np.zeros(hosted + len(steps))
            for j, job in enumerate(jobs):
                row[j * len(servers) + s] = job.demand.get(name, 0.0)
            rows.append(row)
            right.append(server.resources.get(name, 0.0))
    equal = np.zeros((len(jobs), hosted + len(steps)))
    for j in range(len(jobs)):
        equal[j, j * len(servers) : (j + 1) * len(servers)] = 1.0
    for place, (j, _) in enumerate(steps):
        equal[j, hosted + place] = -1.0
    bounds = [(0, None)] * hosted + [(0, 1)] * len(steps)
    unit = max(map(abs, gains), default=0.0) or 1.0  # a program in other units is solved the same
    cost = np.concatenate([np.zeros(hosted), -np.array(gains, dtype=float) / unit])
    found = linprog(cost, np.array(rows) if rows else None, right or None, equal, np.zeros(len(jobs)), bounds)
    if found.status:
        raise ArithmeticError(found.message)
    return {job.id: float(found.x[j * len(servers) : (j + 1) * len(servers)].sum()) for j, job in enumerate(jobs)}


def ring_size_bound(case: Case) -> Evaluation:
    """``OPT <= OPT with rings of at most ceil(q_i) workers``, both solved exactly."""
    from schedgap.heuristics.g_vne.measured import optimum_of

    if case.optimum is None:
        return not_applicable("the optimum is not proven")
    instance = cast(GVneInstance, case.instance)
    most = {name: math.ceil(q - 1e-9) for name, q in relaxed_workers(instance).items()}
    data = instance.to_dict()
    data["jobs"] = [{**job, "utility": job["utility"][: most[job["id"]]]} for job in data["jobs"] if most[job["id"]]]
    fixed = optimum_of(GVneInstance.parse(data)) if data["jobs"] else 0.0
    if fixed is None:
        return not_applicable("the optimum with rings of at most ceil(q_i) workers is not proven")
    told = ", ".join(f"{name} {number}" for name, number in most.items())
    return at_most(case.optimum, fixed, f"OPT, and OPT with rings of at most ceil(q_i) workers: {told}")

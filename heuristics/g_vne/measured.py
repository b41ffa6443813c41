"""What the claims of paper 004 about one slot come out as: ratios, frequencies, growth."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.heuristics.common.growth import growth_exponent
from schedgap.heuristics.common.guarantee import Measured
from schedgap.heuristics.g_vne.lp_rs_mde import Plan
from schedgap.heuristics.g_vne.rounding_counts import Counts, Frequency, count_roundings, promised
from schedgap.solvers.result import SolveOptions


def two_racks(servers: int, jobs: int, seed: int, ring: int = 4) -> GVneInstance:
    """Servers of 1 or 2 GPUs below two switches and a core; links hold one or two rings.

    Parameters
    ----------
    servers, jobs, ring : how many, and the largest ring
    """
    rng = np.random.default_rng(seed)
    links: list[dict[str, Any]] = []

    def join(low: str, high: str, bandwidth: float) -> None:
        links.extend({"from": a, "to": b, "bandwidth": bandwidth} for a, b in ((low, high), (high, low)))

    for i in range(servers):
        join(f"s{i}", f"rack{i % 2}", float(rng.integers(2, 5)))
    for r in range(2):
        join(f"rack{r}", "core", float(rng.integers(2, 5)))
    hosts = [{"id": f"s{i}", "resources": {"gpu": int(rng.integers(1, 3))}} for i in range(servers)]
    parts = []
    for j in range(jobs):
        scale, power = float(rng.uniform(1, 10)), float(rng.uniform(0.7, 1.3))
        worth = [round(scale * k**power, 3) for k in range(1, int(rng.integers(2, ring + 1)) + 1)]
        parts.append({"id": f"j{j}", "demand": {"gpu": 1}, "bandwidth": float(rng.integers(1, 4)), "utility": worth})
    switches: list[dict[str, Any]] = [{"id": name, "resources": {}} for name in ("rack0", "rack1", "core")]
    return GVneInstance.parse(
        {
            "problem": "g-vne",
            "name": f"two-racks-{servers}-{jobs}-{seed}",
            "servers": [*hosts, *switches],
            "links": links,
            "jobs": parts,
        }
    )


def three_conflicts() -> GVneInstance:
    """One server with three resources, three jobs that need two of them each: any two jobs exclude each other.

    Two more servers are too small for any of the jobs; Theorem 8 assumes that there are three.
    """
    names = ("a", "b", "c")
    pairs = (("a", "b"), ("b", "c"), ("a", "c"))
    return GVneInstance.parse(
        {
            "problem": "g-vne",
            "name": "three-conflicts",
            "servers": [
                {"id": f"s{i}", "resources": dict.fromkeys(names, size)} for i, size in enumerate((1, 0.5, 0.5))
            ],
            "links": [],
            "jobs": [
                {"id": f"j{j}", "demand": dict.fromkeys(pair, 1), "bandwidth": 1.0, "utility": [1.0]}
                for j, pair in enumerate(pairs)
            ],
        }
    )


def thirds(seed: int) -> GVneInstance:
    """Roundings have a third of W about as seldom as Theorem 8's repair allows: 1 - e^(-2/3) against 1 - 3/(2e).

    One job is always embedded and worth a little less than W/3. It leaves two thirds of every resource to n jobs worth
    W each, of which the program takes 2/(3 n) each: job i needs all of every resource but a little less of the i-th,
    which makes equal weights the only optimum. None of the n is drawn with probability about e^(-2/3). Empty servers
    make V large. n is 20 to 28.
    """
    count, slack, share = 20 + 2 * (seed % 5), 0.05, 0.332
    names = [f"r{r}" for r in range(count)]
    # the duals: every resource costs 1 / (n - slack), so the first job is worth a little more than it costs
    first = round(share * count / (count - slack) + 2e-4, 6)
    jobs = [{"id": "always", "demand": dict.fromkeys(names, share), "bandwidth": 1.0, "utility": [first]}]
    for j in range(count):
        demand = {name: 1.0 - (slack if r == j else 0.0) for r, name in enumerate(names)}
        jobs.append({"id": f"j{j}", "demand": demand, "bandwidth": 1.0, "utility": [1.0]})
    servers: list[dict[str, Any]] = [{"id": "s0", "resources": dict.fromkeys(names, 1.0)}]
    servers += [{"id": f"s{i}", "resources": {}} for i in range(1, 40)]
    return GVneInstance.parse(
        {"problem": "g-vne", "name": f"thirds-{count}", "servers": servers, "links": [], "jobs": jobs}
    )


def with_sizes(instance: GVneInstance, sizes: dict[str, int]) -> GVneInstance:
    """The instance with one ring size per job: all others are worth less than leaving the job out.

    Parameters
    ----------
    sizes : ring size of each job; 0 or missing leaves it out
    """
    data = instance.to_dict()
    for job in data["jobs"]:
        kept = sizes.get(job["id"], 0)
        job["utility"] = [worth if k == kept else -1.0 for k, worth in enumerate(job["utility"], start=1)]
    return GVneInstance.parse(data, instance.name)


SELECTIONS = 24
"""Instances on which the selection of ring sizes is measured."""


PLANS = 12


ROUNDINGS = 2000
"""Instances and roundings of each on which Theorem 8 is measured."""


SIZES = (10, 20, 40, 80, 160)
"""Servers of the networks on which Theorem 9 is measured."""


def optimum_of(instance: GVneInstance) -> float | None:
    """The proven optimum, or None where the work limit ends the search."""
    from schedgap.solvers.exact.g_vne.colgen import solve_colgen

    result = solve_colgen(instance, SolveOptions(threads=1, work_limit=2.0))
    return result.objective if result.status == "optimal" else None


def selection_losses(seed: int) -> Measured:
    """What fixing the ring sizes costs the linear program and the optimum: Lemma 7.

    ``lp_mean``, ``lp_worst``: LP_fixed / LP; ``optimum_mean``, ``optimum_worst``: OPT_fixed / OPT, for the program as
    printed (``printed_``) and for the capped one (``capped_``), on networks of two racks.

    Parameters
    ----------
    seed : seed of the instances
    """
    from schedgap.heuristics.g_vne.lp_rs_mde import make_plan

    values: dict[str, float] = {}
    instances = [two_racks(5, 4, seed * 1000 + number) for number in range(SELECTIONS)]
    best = [optimum_of(instance) for instance in instances]
    for name, lp in (("printed", "augmented"), ("capped", "capped")):
        programs, optima = [], []
        for instance, optimum in zip(instances, best, strict=True):
            plan = make_plan(instance, lp=lp)
            sizes = {job.id: int(k) for job, k in zip(instance.jobs, plan.sizes, strict=True)}
            programs.append(plan.second.value / plan.first.value)
            fixed = optimum_of(with_sizes(instance, sizes))
            if optimum and fixed is not None:
                optima.append(fixed / optimum)
        values |= {
            f"{name}_lp_mean": float(np.mean(programs)),
            f"{name}_lp_worst": min(programs),
            f"{name}_optimum_mean": float(np.mean(optima)),
            f"{name}_optimum_worst": min(optima),
        }
    summary = "; ".join(
        f"{name} program: LP_fixed/LP {values[f'{name}_lp_mean']:.3f} (worst {values[f'{name}_lp_worst']:.3f}), "
        f"OPT_fixed/OPT {values[f'{name}_optimum_mean']:.3f} (worst {values[f'{name}_optimum_worst']:.3f})"
        for name in ("printed", "capped")
    )
    return Measured(values, f"{SELECTIONS} instances; {summary}")


def rounding_frequencies(seed: int) -> Measured:
    """Theorem 8 rounding by rounding, on rings that are embeddable alone.

    ``third``: utility at least a third of the first program's bound, and so of the optimum. ``printed_node``,
    ``printed_link``: a server's resource (a link) is loaded with at least beta (gamma) times its capacity, of all
    pairs of a rounding and a row; ``own_...``: with more than the factors of the rings at hand. ``..._low``,
    ``..._high``: limits that hold with confidence 0.99 each. ``conflict_third``: on three jobs of which any two
    exclude each other, where the program takes half of each.

    Parameters
    ----------
    seed : seed of the instances and of all roundings
    """
    from schedgap.heuristics.g_vne.lp_rs_mde import make_plan

    names = ("third", "within", "both", "printed_node", "printed_link", "own_node", "own_link")
    every: list[Counts] = []
    betas: dict[str, list[float]] = {}
    promise, nodes, links = [], [], []
    for number in range(PLANS):
        instance = two_racks(20, 12, seed * 1000 + number)
        plan = make_plan(instance)
        every.append(count_roundings(plan, plan.first.bound or plan.first.value, ROUNDINGS, seed * 1000 + number))
        for key, value in plan.factors.summary.items():
            if value is not None:
                betas.setdefault(key, []).append(value)
        promise.append(promised(instance))
        nodes.append(len(instance.servers))
        links.append(len(instance.links))
    values: dict[str, float] = {}
    for name in names:
        total = Frequency(0, 0)
        for counts in every:
            total = total.plus(getattr(counts, name))
        low, high = total.limits()
        values |= {name: total.value, f"{name}_low": low, f"{name}_high": high}
    values |= {key: float(np.mean(found)) for key, found in betas.items()}
    conflict = make_plan(three_conflicts())
    third = count_roundings(conflict, 1.0, ROUNDINGS, seed).third
    low, high = third.limits()
    values |= {
        "worst_share": max(counts.worst for counts in every),
        "promised": min(promise),
        "claimed_node": max(nodes) ** -4.0,
        "claimed_link": max(links) ** -4.0,
        "conflict_third": third.value,
        "conflict_third_low": low,
        "conflict_third_high": high,
    }
    show = {name: f"{value:.2e}" if value < 0.01 else f"{value:.4g}" for name, value in values.items()}
    summary = (
        f"{len(every)} instances x {ROUNDINGS} roundings: a third of the bound in {show['third']} of them "
        f"[{show['third_low']}, {show['third_high']}], on three jobs in conflict in {show['conflict_third']} "
        f"[{show['conflict_third_low']}, {show['conflict_third_high']}]; with all loads within the rings' own factors "
        f"in {show['both']} (at least {show['promised']} promised); loads of beta C: {show['printed_node']} (at most "
        f"{show['printed_node_high']}, claimed {show['claimed_node']}), of gamma C: {show['printed_link']} (at most "
        f"{show['printed_link_high']}); beyond the rings' own factors {show['own_node']} and {show['own_link']}; mean "
        f"beta {show['beta_printed']} printed, {show['beta_instance']} by the rings; gamma {show['gamma_printed']} and "
        f"{show['gamma_instance']}; largest load over capacity {show['worst_share']}"
    )
    return Measured(values, summary)


def augmented_variables(plan: Plan) -> int:
    """Variables of the augmented program with fixed ring sizes, written out with a copy for every root.

    A copy of job i for one of its H_i eligible servers has 1 + (kappa - 1) H_i placements and kappa E flows.
    """
    data = plan.first.subproblem.data
    total = 0
    for hosts, size in zip(data.eligible.sum(axis=1).tolist(), plan.sizes.tolist(), strict=True):
        copy = 1 + (size - 1) * hosts + size * len(data.tail) if size > 1 else size
        total += hosts * copy
    return total


def program_growth(seed: int) -> Measured:
    """How the augmented program of Step 4 grows with the network: Theorem 9.

    The printed count takes |I| |G_s| variables, G_s having V + E parts; the program has a copy for every root
    (:func:`augmented_variables`). ``exponent_variables`` and ``exponent_printed`` are slopes of
    log(variables) over log V for tree networks with ring sizes chosen by the first program; ``exponent_columns`` is
    that of the columns generated instead.

    Parameters
    ----------
    seed : seed of the instances
    """
    from schedgap.heuristics.g_vne.lp_rs_mde import make_plan

    real, printed, columns, servers = [], [], [], []
    for count in SIZES:
        instance = two_racks(count, 10, seed + count)
        plan = make_plan(instance, lp="augmented")
        nodes, links = len(instance.servers), len(instance.links)
        real.append(augmented_variables(plan))
        printed.append(len(instance.jobs) * (nodes + links))
        columns.append(len(plan.second.columns))
        servers.append(nodes)
    values = {
        "exponent_variables": growth_exponent(servers, real),
        "exponent_printed": growth_exponent(servers, printed),
        "exponent_columns": growth_exponent(servers, columns),
        "variables_last": float(real[-1]),
        "printed_last": float(printed[-1]),
        "columns_last": float(columns[-1]),
    }
    summary = (
        f"10 jobs on {servers[0]} to {servers[-1]} nodes: variables of the augmented program grow like "
        f"V^{values['exponent_variables']:.2f} ({real[-1]} at the end), the printed count like "
        f"V^{values['exponent_printed']:.2f} ({printed[-1]}); by columns V^{values['exponent_columns']:.2f} "
        f"({columns[-1]})"
    )
    return Measured(values, summary)

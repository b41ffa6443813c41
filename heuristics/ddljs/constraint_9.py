"""Constraint (9) of paper 004: what it says of the rings of a job, and what it forbids."""

from __future__ import annotations

from itertools import combinations, islice
from typing import TYPE_CHECKING, cast

from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.heuristics.common.guarantee import (
    Assumption,
    Case,
    Evaluation,
    at_most,
    claims,
    not_applicable,
)
from schedgap.solvers.result import SolveOptions, Status

if TYPE_CHECKING:
    import networkx as nx

WORK = 20.0
"""Repeatable limit of the second solve."""


PAIRS = 4
"""Servers of two rings of two."""


def ddljs_instance(case: Case) -> DdljsInstance:
    return cast(DdljsInstance, case.instance)


def _servers(instance: DdljsInstance) -> list[str]:
    """S: servers that have resources; switches only route."""
    return [server.id for server in instance.servers if server.resources]


def _hosts(case: Case) -> list[str]:
    """Servers that can host a worker of the first job, where it may have so many."""
    instance = ddljs_instance(case)
    job, caps = instance.jobs[0], instance.caps[0]
    known = _servers(instance)
    able = [server.id for server, cap in zip(instance.servers, caps, strict=True) if cap > 0 and server.id in known]
    return able if job.max_workers >= PAIRS else []


def few_hosts(case: Case) -> str | None:
    """Why the first job cannot have two rings of two servers: it needs four, and that is all there are."""
    return (
        None
        if len(_hosts(case)) == len(_servers(ddljs_instance(case))) == PAIRS
        else "not four servers that host a job of four"
    )


def one_cycle(case: Case) -> Evaluation:
    """Two pairs of servers, each joined by two different paths: (7) and (9) hold, and there are two rings."""
    instance = ddljs_instance(case)
    job, hosts = instance.jobs[0], _hosts(case)
    import networkx as nx

    network = nx.Graph()
    wide = {(link.source, link.target) for link in instance.links if link.bandwidth >= job.bandwidth}
    network.add_edges_from((a, b) for a, b in wide if (b, a) in wide)
    pairs = next(
        (
            (one, other)
            for one in combinations(hosts, 2)
            for other in [tuple(host for host in hosts if host not in one)]
            if all(_two_paths(network, *pair) for pair in (one, other))
        ),
        None,
    )
    if pairs is None:
        return not_applicable("no two pairs of servers with two paths each")
    chosen = [path for pair in pairs for path in _two_paths(network, *pair)]
    degree = {host: sum(host in (path[0], path[-1]) for path in chosen) for host in hosts}
    if set(degree.values()) != {2}:
        raise AssertionError("(9) does not hold")
    rings = nx.Graph((path[0], path[-1]) for path in chosen)
    return at_most(float(nx.number_connected_components(rings)), 1.0, f"rings {pairs}; every server has degree two")


def _two_paths(network: nx.Graph[str], one: str, other: str) -> list[list[str]]:
    """Two different simple paths between two servers, or none."""
    if one not in network or other not in network:
        return []
    import networkx as nx

    found = list(islice(nx.all_simple_paths(network, one, other), 2))
    return found if len(found) == 2 else []


def enough_workers(case: Case) -> str | None:
    """Why a job could be on every server at once."""
    instance = ddljs_instance(case)
    most = max(job.max_workers for job in instance.jobs)
    return None if most < len(_servers(instance)) else "a job may be on every server"


def idle_servers(case: Case) -> Evaluation:
    """``OPT <= OPT with (9)``: it asks degree two of servers without workers too, where (7) leaves no path.

    So a job on several servers has to be on all of them; where that takes more workers than it may have, rings stay
    on one server each, as on a network without links.
    """
    from schedgap.formulations.common.solution import parsed
    from schedgap.formulations.ddljs.check import check
    from schedgap.formulations.ddljs.models import build_ilp
    from schedgap.formulations.ddljs.solution import DdljsSolution
    from schedgap.solvers.engines.declarative import solve_declarative

    if case.optimum is None:
        return not_applicable("the optimum is not proven")
    apart = DdljsInstance.parse({**ddljs_instance(case).to_dict(), "links": []})
    options = SolveOptions(threads=1, work_limit=WORK)
    checker = parsed(check, DdljsSolution)
    found = solve_declarative(lambda: build_ilp(apart), "cpsat", options, lambda solution: checker(apart, solution))
    if found.status is not Status.OPTIMAL or found.objective is None:
        return not_applicable("the optimum with (9) is not proven")
    return at_most(case.optimum, found.objective, "the optimum, and the optimum with (9) for all servers")


_of_rings = claims("004", "ddljs")


CONSTRAINT_9 = (
    _of_rings(
        "one-cycle",
        "paper 004, after eq. (9)",
        "paths that satisfy (7) and (9) join all servers of a job: rings <= 1",
        (Assumption("(8) holds; four servers that host the job, as in Figure 2", few_hosts),),
        one_cycle,
        families=("square",),
    ),
    _of_rings(
        "idle-servers",
        "paper 004, eq. (9) for all s",
        "OPT <= OPT with (9): rings over several servers are feasible where other servers host none of them",
        (Assumption("no job has as many workers as there are servers", enough_workers),),
        idle_servers,
        families=("square", "triangle"),
    ),
)
"""What the paper says of (9), and what (9) says."""

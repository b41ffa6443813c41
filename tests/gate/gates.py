"""What is asked of each problem: its exhaustive search, its exact method and stages of it, how many instances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from oracles import (
    comm_contention,
    ddl_cluster,
    ddljs,
    g_vne,
    gang_placement,
    gpu_sharing,
    hadar,
    rar_ddls,
)

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gang_placement.check import check as check_gangs
from schedgap.formulations.gang_placement.instance import GangPlacementSolution
from schedgap.solvers.branch_and_price import BranchAndPrice
from schedgap.solvers.exact.comm_contention.branch_and_bound import solve_bb
from schedgap.solvers.exact.ddl_cluster.methods import solve_cp as solve_cluster
from schedgap.solvers.exact.ddl_cluster.placement import solve_placement
from schedgap.solvers.exact.g_vne.colgen import solve_colgen as solve_rings
from schedgap.solvers.exact.gang_placement.staged import solve_staged
from schedgap.solvers.exact.gpu_sharing import cp, dynamic_program
from schedgap.solvers.exact.gpu_sharing.cp import solve_cp as solve_sharing
from schedgap.solvers.exact.hadar.colgen import solve_colgen as solve_hadar
from schedgap.solvers.exact.rar_ddls.cp import solve_cp as solve_rar
from schedgap.solvers.result import Result, SolveOptions

Solve = Callable[[Any, SolveOptions], Result]
Truth = tuple[Fraction | None, Solution | None]
"""The optimum, None where there is no schedule; and a schedule that has it, where the search tells."""


def _rar_ddls(instance: Any) -> Truth:
    found = rar_ddls.brute_force(instance, 20_000)
    return (None, None) if found is None else (Fraction(found[0]), found[1])


def _gpu_sharing(instance: Any) -> Truth:
    found = gpu_sharing.brute_force(instance)
    jobs = len(instance.jobs)
    return None if found is None else Fraction(round(found * jobs), jobs), None


def _hadar(instance: Any) -> Truth:
    found = hadar.brute_force(instance, 3_000)
    return (None, None) if found is None else found


def _ddljs(instance: Any) -> Truth:
    return ddljs.brute_force(instance, 20_000)


def _ddl_cluster(instance: Any) -> Truth:
    placed = (ddl_cluster.placed(instance, placement) for placement in ddl_cluster.placements(instance))
    return min(map(ddl_cluster.exact_optimum, placed)), None


def _gangs(instance: Any) -> Truth:
    """The best vector is the search's own; its number is the checker's."""
    solution = gang_placement.brute_force(instance, 20_000)[1]
    return check_gangs(instance, GangPlacementSolution.parse(solution)).objective, solution


def _alone(instance: Any) -> tuple[frozenset[str], ...]:
    """The stages for gangs on one node each, and for whole devices, which sets in turn would ask too few of them."""
    alone = all(sum(group.count for group in gang.pods) == 1 or gang.required == "node" for gang in instance.gangs)
    whole = all(len(gang.pods) == 1 and gang.pods[0].gpu >= 1000 for gang in instance.gangs)
    both = {"merged nodes", "contents"}
    sets = ({"patterns"},) * alone + (both, {"bound", *both}) * whole
    return tuple(map(frozenset, sets))


def _cluster(instance: Any, options: SolveOptions) -> Result:
    if all(instance.given):
        return solve_cluster(instance, options)
    return solve_placement(instance, replace(options, stages=(options.stages or frozenset()) | {"placements"}))


class Open(NamedTuple):
    """Shares."""

    proofs: float
    certificates: float


@dataclass(frozen=True)
class Gate:
    """What is asked of one problem.

    Attributes
    ----------
    truth : the exhaustive search
    solve : the exact method, None for the engines alone
    stages : sets of its stages that are asked beside all of them, in turn
    complete : stages that settle every instance by themselves: a set with one of them owes a proof
    sets : how many of them an instance is asked
    near : relative, what claims in floats may be off by: 1e-9 is what this project calls equal
    gives_way : relative, how much better than the optimum a schedule may be to the checker, which allows 1e-9 of times;
        0 where schedules and exact proofs are compared in rationals
    count : instances of one run
    owes : stages that have to decide often enough on this problem
    always : sets of stages that are asked of an instance at every turn
    most_open : of the answers that owe a proof, and of the certificates that are asked, the share that may end with a
        reason instead
    """

    truth: Callable[[Any], Truth]
    solve: Solve | None
    stages: tuple[frozenset[str], ...]
    complete: frozenset[str]
    sets: int
    near: float
    gives_way: float
    count: int
    owes: tuple[str, ...]
    most_open: Open
    always: Callable[[Any], tuple[frozenset[str], ...]] = lambda instance: ()


def modest(change: Callable[[object, str, object], None] = setattr) -> None:
    """A tenth of the local search, so that others decide, and sooner; tables for tiny instances."""
    change(BranchAndPrice, "root_rounds", 40)
    change(cp, "_LARGEST_ROUNDS", 2_000)
    change(dynamic_program, "STATES", 20_000)


def _sets(*texts: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(text.split(" + ")) for text in texts)


GATES: dict[str, Gate] = {
    "rar-ddls": Gate(
        _rar_ddls,
        solve_rar,
        _sets(
            "interval model",
            "local search + slot packing",
            "slot packing + interval model",
            "packing without crossing + slot packing",
            "bound + local search",
            "bound + packing without crossing + interval model",
        ),
        frozenset({"interval model"}),
        sets=3,
        near=0.0,
        gives_way=0.0,
        count=2_600,
        owes=("local search", "slot packing", "packing without crossing", "interval model"),
        most_open=Open(proofs=0.0, certificates=0.15),
    ),
    "gpu-sharing": Gate(
        _gpu_sharing,
        solve_sharing,
        _sets(
            "cp-sat",
            "local search + linear programs",
            "dynamic program",
            "linear programs + dynamic program",
            "bound + local search",
        ),
        frozenset({"cp-sat"}),
        sets=2,
        near=0.0,
        gives_way=0.0,
        count=1_450,
        owes=("local search", "linear programs", "dynamic program", "cp-sat"),
        most_open=Open(proofs=0.0, certificates=0.1),
    ),
    "hadar": Gate(
        _hadar,
        solve_hadar,
        _sets(
            "branch and price",
            "cuts + local search",
            "cuts + branch and price",
            "linear program + integer master + branch and price",
            "compact program + branch and price",
        ),
        frozenset({"branch and price"}),
        sets=3,
        near=1e-9,
        gives_way=0.0,
        count=2_000,
        owes=("linear program", "cuts", "integer master", "compact program", "branch and price"),
        most_open=Open(proofs=0.01, certificates=0.05),
    ),
    "g-vne": Gate(
        lambda instance: g_vne.brute_force(instance, 300),
        solve_rings,
        _sets(
            "branch and price",
            "cuts + local search",
            "cuts + branch and price",
            "linear program + dive",
            "linear program + integer master + branch and price",
            "compact program + branch and price",
        ),
        frozenset({"branch and price"}),
        sets=3,
        near=1e-9,
        gives_way=0.0,
        count=2_000,
        owes=("linear program", "cuts", "dive", "integer master", "compact program", "branch and price"),
        most_open=Open(proofs=0.02, certificates=0.2),
    ),
    "ddljs": Gate(
        _ddljs,
        None,
        _sets("engine", "start + engine"),
        frozenset({"engine"}),
        sets=1,
        near=1e-9,
        gives_way=1e-30,
        count=600,
        owes=("engine",),
        most_open=Open(proofs=0.06, certificates=0.3),
    ),
    "comm-contention": Gate(
        comm_contention.brute_force,
        solve_bb,
        _sets("whole tree", "bound + first nodes", "bound + one at a time"),
        frozenset({"whole tree"}),
        sets=2,
        near=1e-9,
        gives_way=1e-9,
        count=800,
        owes=("first nodes", "one at a time", "whole tree"),
        most_open=Open(proofs=0.02, certificates=0.05),
    ),
    "ddl-cluster": Gate(
        _ddl_cluster,
        _cluster,
        _sets("bound + job shop", "bound + policies", "grid model", "policies + grid model"),
        frozenset({"grid model"}),
        sets=3,
        near=1e-9,
        gives_way=1e-9,
        count=620,
        owes=("policies", "job shop", "grid model", "placements"),
        most_open=Open(proofs=0.02, certificates=0.15),
    ),
    "gang-placement": Gate(
        _gangs,
        solve_staged,
        _sets(
            *("programs", "exchange", "bound + programs", "merged nodes", "exchange", "bound + merged nodes"),
            *("patterns", "exchange", "patterns + programs", "exchange + programs"),
        ),
        frozenset({"programs"}),
        sets=2,
        near=0.0,
        gives_way=0.0,
        count=1_300,
        owes=("programs", "merged nodes", "patterns", "exchange", "contents"),
        most_open=Open(proofs=0.0, certificates=0.15),
        always=_alone,
    ),
}

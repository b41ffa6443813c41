"""How fast g-vne's bounds and exact method are, how far they get, and what each bound is worth."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from schedgap.benchmarks.instances.g_vne.random import large_tree, racks, random, small, tiny
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.numbers import MAXIMISE, ratio
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.solvers.exact.g_vne.bound import ring_lp
from schedgap.solvers.exact.g_vne.colgen import solve_colgen
from schedgap.solvers.result import Deadline, Result, SolveOptions, Status
from studies.g_vne_relaxations import augmented_relaxation, plain_relaxation

Row = dict[str, Json]


def _load() -> float | None:
    """Processes that wanted a core during the last minute, where the system tells."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _warm_up() -> None:
    """Compile everything, or load it from the cache on disk."""
    for shape in ("tree", "general"):
        solve_colgen(small(0, shape=shape), SolveOptions())


def _fresh(instance: GVneInstance) -> GVneInstance:
    """A copy from which nothing has been computed yet."""
    return GVneInstance.parse(instance.to_dict(), instance.name)


def augmented(*, seed: int = 0, servers: int = 20, jobs: int = 10, instances: int = 1, repeat: int = 3) -> list[Row]:
    """The augmented LP by columns and as arc flows: equal values, and how much faster columns are.

    Parameters
    ----------
    seed : seed of the first instance, a random graph
    servers, jobs, instances : size and number
    repeat : the least of so many runs by columns counts; the arc flows run once

    Returns
    -------
    Rows with both values, their relative difference, seconds, the ratio of the seconds, and the sizes.
    """
    _warm_up()
    result: list[Row] = []
    for number in range(instances):
        instance = random(seed + number, servers=servers, jobs=jobs)
        columns: list[float] = []
        for _ in range(repeat):
            case = _fresh(instance)
            began = time.perf_counter()
            found = ring_lp(case, capped=False)
            columns.append(time.perf_counter() - began)
        case = _fresh(instance)
        began = time.perf_counter()
        flows = augmented_relaxation(case)
        seconds = time.perf_counter() - began
        result.append(
            {
                "nodes": servers,
                "jobs": jobs,
                "variables": flows.variables,
                "by_columns": found.value,
                "by_flows": flows.value,
                "difference": abs(found.value - flows.value) / max(1e-9, abs(flows.value)),
                "seconds_columns": min(columns),
                "seconds_flows": seconds,
                "times_faster": seconds / min(columns),
                "load": _load(),
            }
        )
    return result


def _solved(name: str, instance: GVneInstance, found: Result, seconds: float) -> Row:
    return {
        "instance": name,
        "servers": sum(bool(server.resources) for server in instance.servers),
        "jobs": len(instance.jobs),
        "status": str(found.status),
        "objective": found.objective,
        "bound": found.bound,
        "gap": found.gap,
        "lp_bound": found.info.get("lp_bound"),
        "lp_gap": found.info.get("lp_gap"),
        "columns": found.info.get("columns"),
        "nodes": found.info.get("nodes"),
        "lp_seconds": found.info.get("lp_seconds"),
        "seconds": seconds,
        "load": _load(),
    }


def _timed(instance: GVneInstance, limit: float, gap: float, root_tolerance: float) -> tuple[Result, float]:
    began = time.perf_counter()
    options = SolveOptions(deadline=Deadline.after(limit), relative_gap=gap)
    found = solve_colgen(instance, options, root_tolerance=root_tolerance)
    return found, time.perf_counter() - began


def trees(*, seed: int = 0, scale: float = 1.0, time_limit: float | None = None) -> list[Row]:
    """``colgen`` on rack trees of 400 servers and 200 jobs, to a relative gap of 1e-4.

    One tree has links on which rings compete (preset ``large-tree``), the other those of the paper (``racks``).
    ``lp_gap`` is between the bound and the value of the LP over the rings, which is what columns are generated to;
    ``gap`` is between the bound and the best choice of whole rings.

    Parameters
    ----------
    seed : seed of the instances
    scale : below 1 the trees shrink
    time_limit : seconds; 60 where not given
    """
    _warm_up()
    share = min(1.0, scale)
    servers, jobs = max(10, round(400 * share)), max(5, round(200 * share))
    cases: tuple[tuple[str, Callable[[], GVneInstance]], ...] = (
        ("large-tree", lambda: large_tree(seed, servers=servers, racks=max(2, round(20 * share)), jobs=jobs)),
        ("racks", lambda: racks(seed, servers=servers, racks=max(2, round(20 * share)), jobs=jobs)),
    )
    result = []
    for name, make in cases:
        instance = make()
        found, seconds = _timed(instance, 60.0 if time_limit is None else time_limit, 1e-4, 5e-5)
        result.append(_solved(name, instance, found, seconds))
    return result


def graphs(*, seed: int = 0, instances: int = 3, scale: float = 1.0, time_limit: float | None = None) -> list[Row]:
    """``colgen`` on random graphs of 50 servers and 20 jobs, with links of the preset and half as wide.

    Parameters
    ----------
    seed : seed of the first instance
    instances : number of instances of each kind, times `scale`
    time_limit : seconds for each; 10 where not given
    """
    _warm_up()
    result = []
    for tightness in (1.0, 2.0):
        for number in range(max(1, round(instances * scale))):
            instance = random(seed + number, tightness=tightness)
            found, seconds = _timed(instance, 10.0 if time_limit is None else time_limit, 0.0, 1e-9)
            result.append(_solved(f"{instance.name}, links / {tightness:g}", instance, found, seconds))
    return result


def bounds(*, seed: int = 0, instances: int = 40, scale: float = 1.0) -> list[Row]:
    """What each bound is worth: mean and worst ratio to the optimum, on instances that are solved to optimality.

    Parameters
    ----------
    seed : seed of the first instance of each kind
    instances : number of instances of each kind, times `scale`

    Returns
    -------
    Rows by kind and bound: plain relaxation of (12)-(19), augmented LP by columns, capped LP, capped LP with the
    cuts of ``colgen`` (which stop where they have closed the gap). Instances that are not proven within 20,000 nodes,
    or whose optimum is 0, are counted apart.
    """
    count = max(1, round(instances * scale))
    result: list[Row] = []
    kinds: tuple[tuple[str, Callable[[int], GVneInstance]], ...] = (
        ("tiny tree", lambda s: tiny(s, shape="tree")),
        ("tiny general", lambda s: tiny(s, shape="general")),
        ("small tree, tight", lambda s: small(s, shape="tree", tightness=2.0)),
        ("small general, tight", lambda s: small(s, shape="general", tightness=2.0)),
        ("small tree, two resources", lambda s: small(s, shape="tree", memory=True)),
    )
    for kind, make in kinds:
        ratios: dict[str, list[float]] = {"plain": [], "augmented": [], "capped": [], "with cuts": []}
        left_out = 0
        for number in range(count):
            instance = make(seed + number)
            found = solve_colgen(instance, SolveOptions(work_limit=20.0))
            if found.status is not Status.OPTIMAL or not found.objective:
                left_out += 1
                continue
            values = {
                "plain": plain_relaxation(instance).value,
                "augmented": ring_lp(instance, capped=False).value,
                "capped": ring_lp(instance).value,
            }
            values["with cuts"] = min(values["capped"], float(found.info.get("cut_bound", values["capped"])))
            for name, value in values.items():
                own = ratio(found.objective, value, MAXIMISE)
                assert own is not None
                ratios[name].append(own)
        result.extend(_summary(kind, ratios, left_out))
    return result


def _summary(kind: str, ratios: dict[str, list[float]], left_out: int) -> Sequence[Row]:
    return [
        {
            "instances": kind,
            "bound": name,
            "count": len(values),
            "left_out": left_out,
            "mean_ratio": sum(values) / len(values) if values else None,
            "worst_ratio": max(values) if values else None,
            "exact": sum(value <= 1 + 1e-6 for value in values),
        }
        for name, values in ratios.items()
    ]

"""Tiny classes of instances and certificates, one for each form: every certificate of a class is put to every instance.

Optima come from searches that share nothing with the rules: ``tests/oracles``, and for gang-placement one below,
because there a device has 4 parts in place of 1,000. A class is all combinations of small grids; `large` makes the
grids finer.
"""

from __future__ import annotations

import copy
import functools
import itertools
import json
import operator
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

from oracles import comm_contention, ddl_cluster, ddljs, g_vne, gpu_sharing, hadar, rar_ddls

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.linear import GRID, Box, Model, Rejected
from schedgap.solvers.certificates.rules import gang_placement
from schedgap.solvers.exact.gpu_sharing.cp import solve_cp as solve_sharing
from schedgap.solvers.result import SolveOptions

Data = dict[str, Any]
Row = TypeVar("Row")
NEAR = Fraction(1, 10**9)
"""Relative, what is known in floats may be off by."""
REFUSED = (Rejected, ValueError, LookupError, ArithmeticError, TypeError, AttributeError)
"""What the checker turns into a refusal."""


@dataclass(frozen=True)
class Case:
    """One instance, and the certificates that are put to it.

    Attributes
    ----------
    optimum : None where there is no schedule
    model : what the rules write
    leaves : contents of leaves
    covers : sets of boxes that cover all schedules; a certificate is a leaf below each of them
    points : schedules, with their values, as points of the model
    near : relative error of the optimum, where it is known in floats
    """

    instance: Data
    optimum: Fraction | None
    model: Model
    leaves: Iterable[Any]
    covers: Sequence[Sequence[Box]] = ((({}),),)
    points: Sequence[tuple[Fraction, Mapping[str, Any]]] = ()
    near: Fraction = Fraction(0)


@dataclass
class Count:
    """What came of one form.

    Attributes
    ----------
    pairs : pairs of an instance and a certificate
    tight : pairs whose bound is the optimum
    refused : certificates that are none
    false : instances and certificates with a bound that is better than the optimum
    """

    instances: int = 0
    pairs: int = 0
    tight: int = 0
    refused: int = 0
    points: int = 0
    false: list[Any] = field(default_factory=list)
    seconds: float = 0.0


def count_false(cases: Iterable[Case], stop: int = 1) -> Count:
    """Put every certificate to its instance; ends when `stop` of them are false."""
    found, began = Count(), time.process_time()
    for case in cases:
        found.instances += 1
        _points(case, found)
        prover = checker.Prover(case.model, None)
        for leaf in case.leaves:
            for cover in case.covers:
                found.pairs += 1
                bound = bound_of(prover, leaf, cover)
                if bound is None:
                    found.refused += 1
                elif case.optimum is None:
                    continue
                elif bound == "empty":
                    found.false.append((case.instance, leaf, "there is a schedule"))
                else:
                    best = case.model.sense * case.optimum
                    if bound > best + abs(best) * case.near:
                        found.false.append((case.instance, leaf, bound, best))
                    found.tight += bound == best
            if len(found.false) >= stop:
                break
        if len(found.false) >= stop:
            break
    found.seconds = time.process_time() - began
    return found


def bound_of(prover: checker.Prover, leaf: Any, cover: Sequence[Box]) -> Any:
    """What a leaf below each box proves, for minimisation; "empty": that there is nothing; None: it is refused."""
    model, values = prover.model, []
    try:
        for box in cover:
            value = model.price(leaf, box) if model.price is not None else prover.adder.bound(leaf, box, True)
            if value is not None:
                values.append(prover.reached(value))
    except REFUSED:
        return None
    return min(values, default="empty")


def _points(case: Case, found: Count) -> None:
    """A schedule that is a point of the rows, at its value, refutes every certificate in rows that is false there."""
    for value, point in case.points:
        found.points += 1
        try:
            told = checker.value_of(case.model, _Point(point), case.instance, {}, {})
        except Rejected as fault:
            found.false.append((case.instance, str(fault)))
            continue
        if told is not None and case.model.sense * told > case.model.sense * value:
            found.false.append((case.instance, point, told, value))


class _Point:
    """Stands for rules whose map gives one point."""

    def __init__(self, point: Mapping[str, Any]) -> None:
        self.given = point

    def point(self, *_: Any) -> dict[str, Any]:
        return dict(self.given)


def _kept(make: Callable[[bool], Iterator[Row]]) -> Callable[[bool], Iterator[Row]]:
    """Instances and optima are found once, as far as they are asked for: rules, whole or with a hole, have no say."""
    kept: dict[bool, Any] = {}

    @functools.wraps(make)
    def rows(large: bool) -> Iterator[Row]:
        if large not in kept:
            (kept[large],) = itertools.tee(make(large), 1)
        again: Iterator[Row] = copy.copy(kept[large])
        return again

    return rows


def as_read(data: Data) -> Data:
    """An instance as the checker reads it."""
    parsed: Data = checker.parse(json.dumps(data))
    return parsed


def multiples(model: Model, factors: Sequence[str], most: int = 2) -> Iterator[dict[str, str]]:
    """Multipliers of at most so many rows."""
    yield {}
    for size in range(1, most + 1):
        for names in itertools.combinations(model.rows, size):
            for values in itertools.product(factors, repeat=size):
                yield dict(zip(names, values, strict=True))


# gang-placement: a device has four parts

DEVICE = 4


def _with_rows(cases: Iterable[tuple[Data, Fraction, Data]]) -> Iterator[Case]:
    """Multiples of rows with a device of four parts; a best decision as a point."""
    for data, optimum, decision in cases:
        instance, model = as_read(data), Model()
        gang_placement.rows(instance, {}, model, DEVICE)
        model = model.finished()
        point = gang_placement.point(instance, decision, {}, DEVICE)
        yield Case(instance, optimum, model, multiples(model, ("1", "1/2")), points=[(optimum, point)])


def _with_prices(cases: Iterable[tuple[Data, Fraction, Data]], sized: set[int], large: bool) -> Iterator[Case]:
    """Prices of parts of those sizes of a device of four parts, as far as pods ask for them."""
    for data, optimum, _ in cases:
        instance, model = as_read(data), Model()
        gang_placement.prices(instance, {}, model, DEVICE)
        sizes = sorted({gang["pods"][0]["gpu"] for gang in data["gangs"]} & sized)
        yield Case(instance, optimum, model.finished(), list(_priced(len(data["nodes"]), sizes, large)))


def gang_prices(*, large: bool = False) -> Iterator[Case]:
    """Values of parts, prices of what devices hold and of whole ones; a value for pods that ask for nothing, too."""
    yield from _with_prices(_gangs(large), {0, 1, 2, 3}, large)


@_kept
def _gangs(large: bool) -> Iterator[tuple[Data, Fraction, Data]]:
    """Two gangs of one or two equal pods, on one to three devices."""
    clusters = [[[4]], [[3]], [[4, 4]], [[4, 2]], [[4], [4]]] + ([[[4, 4, 4]], [[4, 3], [2]]] if large else [])
    shapes = [(gpu, count) for gpu in (0, 1, 2, 3, 4, 8) for count in (1, 2)]
    for nodes in clusters:
        for pair in itertools.combinations_with_replacement(shapes, 2):
            for weights in ((1, 1), (2, 1)) if large else ((1, 1),):
                data = {
                    "problem": "gang-placement",
                    "nodes": [{"id": f"n{n}", "gpus": parts} for n, parts in enumerate(nodes)],
                    "gangs": [
                        {"id": f"g{g}", "pods": [{"gpu": gpu, "count": count}], "weight": weight}
                        for g, ((gpu, count), weight) in enumerate(zip(pair, weights, strict=True))
                    ],
                    "objectives": ["weight"],
                }
                yield data, *max(_decisions(data, nodes), key=operator.itemgetter(0))


def _decisions(data: Data, nodes: Sequence[Sequence[int]]) -> Iterator[tuple[Fraction, Data]]:
    """Sets of gangs that fit together: what they weigh, and where their pods are."""
    for size in range(3):
        for chosen in itertools.combinations(data["gangs"], size):
            pods = [gang["pods"][0]["gpu"] for gang in chosen for _ in range(gang["pods"][0]["count"])]
            seats = _packed(pods, nodes)
            if seats is not None:
                placement: dict[str, Any] = {gang["id"]: [] for gang in chosen}
                owners = [gang["id"] for gang in chosen for _ in range(gang["pods"][0]["count"])]
                for owner, (n, devices) in zip(owners, seats, strict=True):
                    placement[owner].append({"group": 0, "node": f"n{n}", "devices": list(devices)})
                yield Fraction(sum(gang["weight"] for gang in chosen)), {"placement": placement}


Seat = tuple[int, tuple[int, ...]]


def _packed(pods: Sequence[int], nodes: Sequence[Sequence[int]]) -> list[Seat] | None:
    """Where pods fit, each on a part of one device or on whole devices of one node; None where they do not."""
    if not pods:
        return []
    gpu = pods[0]
    for n, parts in enumerate(nodes):
        need = -(-gpu // DEVICE)
        for chosen in itertools.combinations(range(len(parts)), need):
            if all(parts[d] >= min(gpu, DEVICE) for d in chosen):
                left = [part - min(gpu, DEVICE) * (d in chosen) for d, part in enumerate(parts)]
                rest = _packed(pods[1:], [*nodes[:n], left, *nodes[n + 1 :]])
                if rest is not None:
                    return [(n, chosen), *rest]
    return None


def _priced(nodes: int, sizes: Sequence[int], large: bool) -> Iterator[Data]:
    own: list[list[Any]] = [["1", None] if size == 0 else [None, "0", "3", "6"] for size in sizes]
    prices = ["0", "1/6", "1/4", "1/3", "1/2", "1"] if large else ["0", "1/6", "1/3", "1/2", "1"]
    whole = ["0", "1/2", "1"] if large else ["0", "1/2"]
    for values in itertools.product(*own, [None, "6"]):
        given = {str(size): value for size, value in zip([*sizes, DEVICE], values, strict=True) if value is not None}
        for part, device in itertools.product(prices, whole):
            line = [[n, size, p] for n in range(nodes) for size, p in ((0, part), (1, device)) if p != "0"]
            yield {"weights": [line], "values": given}


# hadar

SLOTS = 3


def hadar_prices(*, large: bool = False) -> Iterator[Case]:
    """Prices by slot or between edges, payoffs exact or relaxed, without a split and with one."""
    shapes = [
        (1, 1, 1, {"a": 1}, {"kind": "constant", "weight": 2}),
        (1, 1, 2, {"a": 1, "b": 2}, {"kind": "linear", "weight": 4, "deadline": 4}),
        (2, 2, 4, {"a": 1, "b": 1}, {"kind": "effective-throughput", "weight": 1}),
        (1, 2, 3, {"a": 1}, {"kind": "constant", "weight": 3}),
        (2, 1, 3, {"a": 2, "b": 1}, {"kind": "linear", "weight": 5, "deadline": 3}),
    ]
    clusters = [{"a": 1}, {"a": 2}, {"a": 2, "b": 1}]
    for gpus, must in itertools.product(clusters, (False, True)):
        for pair in itertools.combinations_with_replacement(shapes, 2):
            data = {
                "problem": "hadar",
                "horizon": SLOTS,
                "slot_length": 1,
                "all_jobs_must_finish": must,
                "machines": [{"id": "m", "gpus": gpus}],
                "jobs": [
                    {
                        "id": f"j{j}",
                        "arrival": arrival,
                        "workers": workers,
                        "epochs": work,
                        "iterations_per_epoch": 1,
                        "throughput": rates,
                        "utility": utility,
                    }
                    for j, (arrival, workers, work, rates, utility) in enumerate(pair)
                ],
            }
            truth = hadar.brute_force(HadarInstance.parse(data), 100_000)
            model = checker.model_of(as_read(data), "prices", {})
            covers: list[list[Box]] = [[{}]]
            for k in range(1, SLOTS + 1, 1 if large else 2):
                covers.append([{"finish[0]": (1, k)}, {"finish[0]": (k + 1, SLOTS + 1)}])
            covers.append([{"at[0,2,0]": (0, 0)}, {"at[0,2,0]": (1, 1)}])
            optimum = None if truth is None else truth[0]
            yield Case(as_read(data), optimum, model, list(_slots(gpus, large)), covers)
            yield Case(as_read(data), optimum, model, list(_edges(gpus, large)))


def _slots(gpus: Data, large: bool) -> Iterator[Data]:
    prices = (0, GRID, 2 * GRID) if not large else (0, GRID // 2, GRID, 2 * GRID)
    for line in itertools.product(prices, repeat=SLOTS):
        for second in prices[:2] if "b" in gpus else (0,):
            blocks = [[t, {"a": p, **({"b": second} if second else {})}] for t, p in enumerate(line, start=1)]
            yield {"blocks": blocks}
            yield {"blocks": blocks, "fractions": True}
            yield {"blocks": blocks, "fractions": True, "whole": [1]}


def _edges(gpus: Data, large: bool) -> Iterator[Data]:
    prices = (0, GRID, 2 * GRID) if not large else (0, GRID // 2, GRID, 2 * GRID)
    for edges in ([1, 2, 3], [1, 3, 4], [2, 3, 4]):
        for line in itertools.product(prices, repeat=2):
            for finishes in (1, 3):
                yield {"edges": edges, "types": {"a": list(line)}, "finishes": finishes}
                if "b" in gpus:
                    yield {"edges": edges, "types": {"a": list(line), "b": [GRID, 0]}, "finishes": finishes}


# gpu-sharing


@_kept
def _sharing(large: bool) -> Iterator[tuple[Data, Fraction | None]]:
    shapes = [(1, 1, 1, 1), (1, 1, 2, 3), (2, 2, 2, 1), (1, 2, 3, 1), (2, 1, 1, 1), (1, 2, 1, 3)]
    if large:
        shapes += [(3, 1, 2, 1), (1, 1, 3, 2)]
    for shares, slow in ((1, (1, 1)), (2, (1, 1)), (2, (1.5, 1)), (2, (2, 1.5)), (2, (3, 3))):
        for pair in itertools.product(shapes, repeat=2):
            jobs = [
                {
                    "id": f"j{j}",
                    "arrival": arrival,
                    "gpus": gpus,
                    "iterations": iterations,
                    "batch_size": 1,
                    "compute": {"fixed": 1, "per_sample": 0},
                    "communication": {"latency": 0, "per_unit": 0, "message": 0},
                    "overlap": 1,
                    "memory": {"fixed": memory, "per_sample": 0},
                }
                for j, (arrival, gpus, iterations, memory) in enumerate(pair)
            ]
            data = {
                "problem": "gpu-sharing",
                "horizon": 8,
                "slot_length": 1,
                "servers": [{"id": "s", "gpus": 2}],
                "gpu_memory": 4,
                "max_jobs_per_gpu": shares,
                "jobs": jobs,
                "interference": {"j0": {"j1": slow[0]}, "j1": {"j0": slow[1]}},
            }
            value = gpu_sharing.brute_force(GpuSharingInstance.parse(data))
            yield data, None if value is None else Fraction(round(value * 2), 2)


def sharing_prices(*, large: bool = False) -> Iterator[Case]:
    """Prices of GPU work by bucket and class, or of what jobs do together."""
    leaves = list(_buckets(large))
    for data, optimum in _sharing(large):
        yield Case(as_read(data), optimum, checker.model_of(as_read(data), "prices", {}), leaves)


def _buckets(large: bool) -> Iterator[Data]:
    prices = (0, GRID // 2, GRID, 2 * GRID) if large else (0, GRID // 2, GRID)
    for edges in ([1, 2, 3], [1, 3, 5], [2, 3, 4]):
        for line in itertools.product(prices, repeat=2):
            for kind, weight, together in itertools.product(([], [0, 1]), ([], [GRID // 2, GRID]), (False, True)):
                own = [list(line), list(reversed(line))] if kind else [list(line)]
                yield {"edges": edges, "prices": own, "classes": kind, "weights": weight, "together": together}


def sharing_rows(*, large: bool = False) -> Iterator[Case]:
    """Multiples of rows."""
    for data, optimum in itertools.islice(_sharing(large), 0, None, 1 if large else 3):
        data = {**data, "horizon": 5}
        value = gpu_sharing.brute_force(GpuSharingInstance.parse(data))
        optimum = None if value is None else Fraction(round(value * 2), 2)
        instance = as_read(data)
        model = checker.model_of(instance, "rows", {})
        points = []
        if optimum is not None:
            solution = solve_sharing(GpuSharingInstance.parse(data), SolveOptions(threads=1)).solution
            point = checker.rules_of("gpu-sharing").point(instance, as_read(solution), {})
            points.append((optimum, point))
        leaves = multiples(model, ("1", "1/2"), 1 if not large else 2)
        yield Case(instance, optimum, model, leaves, points=points)


# comm-contention


@_kept
def _transfers(large: bool) -> Iterator[tuple[Data, Fraction]]:
    sizes, releases = ((1, 2, 4), (0, 1, 2)) if large else ((1, 4), (0, 1, 2))
    for count in (1, 2, 3):
        tasks = list(itertools.product(sizes, releases))
        for chosen in itertools.combinations_with_replacement(tasks, count):
            for latency, eta in itertools.product((0, 1), (0, 0.5, 2) if count < 3 else (0.5,)):
                data = {
                    "problem": "comm-contention",
                    "link": {"latency": latency, "seconds_per_unit": 1, "contention_penalty": eta},
                    "tasks": [
                        {"id": f"t{k}", "size": size, "release": release} for k, (size, release) in enumerate(chosen)
                    ],
                }
                yield data, comm_contention.brute_force(CommContentionInstance.parse(data))[0]


def transfers_alone(*, large: bool = False) -> Iterator[Case]:
    """The one certificate of form ``srpt``."""
    for data, optimum in _transfers(large):
        yield Case(as_read(data), optimum, checker.model_of(as_read(data), "srpt", {}), [{}])


def transfers_in_order(*, large: bool = False) -> Iterator[Case]:
    """Trees over the first events of a schedule: one level, two, ... of all tasks."""
    for data, optimum in _transfers(large):
        if len(data["tasks"]) > 2 and not large:
            continue
        model, tasks = checker.model_of(as_read(data), "orders", {}), len(data["tasks"])
        covers: list[list[Box]] = [[{}]]
        for depth in range(1, 1 + min(2 * tasks, 4 if large else 3)):
            names = model.names[:depth]
            events = range(int(model.high[0]) + 1)
            covers.append(
                [
                    {name: (event, event) for name, event in zip(names, chosen, strict=True)}
                    for chosen in itertools.product(events, repeat=depth)
                ]
            )
        yield Case(as_read(data), optimum, model, [{}], covers, near=NEAR)


# ddl-cluster

MOST_ORDERS = 300
"""The most events, each a linear program for the search: what has more is no part of the class."""


@_kept
def _clusters(large: bool) -> Iterator[tuple[Data, Fraction, list[list[list[Any]]]]]:
    """Two jobs on two servers of one GPU, or on one of two; with their best placements."""
    shapes = (
        [(0, 1, 1), (0, 2, 1), (1, 1, 2), (0, 2, 2)]
        if not large
        else [(0, 1, 1), (0, 2, 1), (1, 1, 2), (0, 2, 2), (2, 2, 1)]
    )
    for servers in ([1, 1], [2], [1, 1, 1]):
        for eta, latency in ((0, 0), (1, 0.5)):
            for pair in itertools.combinations_with_replacement(shapes, 2):
                data = {
                    "problem": "ddl-cluster",
                    "gpu_memory": 1,
                    "servers": [{"id": f"s{s}", "gpus": gpus} for s, gpus in enumerate(servers)],
                    "link": {"latency": latency, "seconds_per_unit": 1, "contention_penalty": eta},
                    "jobs": [
                        {
                            "id": f"j{j}",
                            "arrival": arrival,
                            "gpus": gpus,
                            "iterations": iterations,
                            "forward": 1,
                            "backward": 1,
                            "message": 1,
                            "memory": 0.5,
                        }
                        for j, (arrival, gpus, iterations) in enumerate(pair)
                    ],
                }
                instance = DdlClusterInstance.parse(data)
                placements = [ddl_cluster.placed(instance, own) for own in ddl_cluster.placements(instance)]
                if max(map(ddl_cluster.orders, placements)) > MOST_ORDERS:
                    continue
                values = [(ddl_cluster.exact_optimum(placed), placed) for placed in placements]
                best, placed = min(values, key=lambda pair: pair[0])
                yield data, best, placed.to_dict()["jobs"]  # the optimum is that of these jobs, too


def cluster_machines(*, large: bool = False) -> Iterator[Case]:
    """Shares of resources, prices of GPUs, prices of GPUs and links along iterations."""
    leaves = list(_machines(large))
    for data, optimum, jobs in _clusters(large):
        yield Case(as_read(data), optimum, checker.model_of(as_read(data), "machines", {}), leaves)
        given = as_read({**data, "jobs": jobs})
        yield Case(given, optimum, checker.model_of(given, "machines", {}), leaves)


def _machines(large: bool) -> Iterator[Data]:
    yield {}
    half, whole = 2**19, 2**20
    for names in (["gpus", "links"], [["s0", 0], ["s0"]]):
        for own in itertools.product((0, half, whole), repeat=4):
            shares = [[name, {"0": a, "1": b}] for name, (a, b) in zip(names, (own[:2], own[2:]), strict=True)]
            yield {"shares": shares}
    prices = (0, GRID // 4, GRID // 2, GRID) if large else (0, GRID // 2, GRID)
    for edges in ([0, 1, 2, 3], [0, 2, 4, 8], [1, 2, 4, 6]):
        for line in itertools.product(prices, repeat=3):
            for fineness in (0, 1) if large else (1,):
                yield {"fineness": fineness, "edges": edges, "prices": list(line)}
    ways = [(0, 0, 0), (0, GRID // 2, 0), (GRID // 2, GRID // 2, 0)]
    if large:
        ways = list(itertools.product(prices[:3], repeat=3))
    for gpus, links in itertools.product(itertools.product(prices, repeat=3), ways):
        for span in (1, 2):
            content = {"fineness": 1, "span": 2 * span, "first": 0, "gpus": list(gpus), "links": list(links)}
            yield {"paths": content}


def cluster_rows(*, large: bool = False) -> Iterator[Case]:
    """Multiples of rows, up to a cutoff at the optimum and beyond it."""
    for data, optimum, jobs in _clusters(large):
        given = as_read({**data, "jobs": jobs})
        for cutoff in (optimum, optimum + 1):
            model = checker.model_of(given, "rows", {"cutoff": str(cutoff)})
            yield Case(given, optimum, model, multiples(model, ("1", "1/2"), 1 if not large else 2))


# g-vne and ddljs

LINES: list[tuple[list[tuple[str, float]], list[tuple[int, int, float]]]] = [
    ([("a", 2)], []),
    ([("a", 1), ("b", 1)], [(0, 1, 1), (1, 0, 2)]),
    ([("a", 2), ("b", 1)], [(0, 1, 1)]),
    ([("a", 1), ("", 0), ("b", 2)], [(0, 1, 2), (1, 0, 2), (1, 2, 1), (2, 1, 1)]),
    ([("a", 1), ("b", 1), ("c", 1)], [(0, 1, 1), (1, 2, 1), (2, 0, 1)]),
]
"""Nodes with their GPUs ("" for a switch), and links: a line, one way, a switch between, a ring of one way."""


def _networks() -> Iterator[Data]:
    for nodes, links in LINES:
        names = [name or "x" for name, _ in nodes]
        yield {
            "servers": [
                {"id": name, "resources": {"gpu": n} if n else {}} for name, (_, n) in zip(names, nodes, strict=True)
            ],
            "links": [{"from": names[a], "to": names[b], "bandwidth": width} for a, b, width in links],
        }


@_kept
def _rings(large: bool) -> Iterator[tuple[Data, Fraction, Any]]:
    shapes = [(1, 1, [1, 3]), (1, 2, [2, 2]), (2, 0, [4]), (1, 1, [-1, 2, 3]), (1, 0, [0.5, 0.7])]
    if large:
        shapes += [(1, 2, [1, 2, 5]), (2, 1, [1, 9])]
    for network in _networks():
        for pair in itertools.combinations_with_replacement(shapes, 2):
            data = {
                "problem": "g-vne",
                **network,
                "jobs": [
                    {"id": f"j{j}", "demand": {"gpu": demand}, "bandwidth": width, "utility": utility}
                    for j, (demand, width, utility) in enumerate(pair)
                ],
            }
            value, solution = g_vne.brute_force(GVneInstance.parse(data))
            yield data, value, solution


def rings_priced(*, large: bool = False) -> Iterator[Case]:
    """Prices of GPUs of every node, and of every link."""
    grid = (0, GRID // 2, GRID, 2 * GRID) if large else (0, GRID, 2 * GRID)
    for data, optimum, _ in _rings(large):
        nodes = [n for n, server in enumerate(data["servers"]) if server["resources"]]
        links = range(len(data["links"]))
        leaves = [
            {
                "nodes": {str(n): {"gpu": p} for n, p in zip(nodes, line, strict=True) if p},
                "links": {str(e): p for e, p in zip(links, over, strict=True) if p},
                "linked": linked,
            }
            for line in itertools.product(grid, repeat=len(nodes))
            for over in itertools.product(grid[:3] if len(links) < 3 else grid[:2], repeat=len(links))
            for linked in (False, True)
        ]
        yield Case(as_read(data), optimum, checker.model_of(as_read(data), "prices", {}), leaves)


def rings_in_rows(*, large: bool = False) -> Iterator[Case]:
    """Multiples of rows; a best solution as a point."""
    yield from _in_rows(_rings(large), large)


def _in_rows(cases: Iterable[tuple[Data, Fraction, Any]], large: bool) -> Iterator[Case]:
    for data, optimum, solution in cases:
        instance = as_read(data)
        rules, model = checker.rules_of(data["problem"]), checker.model_of(instance, "rows", {})
        point = rules.point(instance, as_read(solution), {})
        leaves = multiples(model, ("1", "1/2"), 2 if len(model.rows) < 40 or large else 1)
        yield Case(instance, optimum, model, leaves, points=[(optimum, point)], near=NEAR)


@_kept
def _worker_slots(large: bool) -> Iterator[tuple[Data, Fraction, Any]]:
    utilities: list[Data] = [
        {"kind": "linear", "scale": 1},
        {"kind": "energy", "scale": 1},
        {"kind": "sqrt", "scale": 2},
        {"kind": "sigmoid", "scale": 3, "steepness": 2, "midpoint": 2},
        {"kind": "log", "scale": 1, "least": 0.5},
    ]
    shapes = [
        (1, 2, 4, 1, utilities[0]),
        (2, 2, 1, 1, utilities[2]),
        (1, 1, 9, 0, utilities[3]),
        (1, 2, 2, 0, utilities[4]),
    ]
    shapes += [(1, 2, 3, 1, utilities[1])] if large else []
    for network in itertools.islice(_networks(), 3):
        for pair in itertools.combinations_with_replacement(shapes, 2):
            data = {
                "problem": "ddljs",
                **network,
                "horizon": 2,
                "jobs": [
                    {
                        "id": f"j{j}",
                        "demand": {"gpu": 1},
                        "bandwidth": width,
                        "arrival": arrival,
                        "max_workers": most,
                        "budget": {"gpu": budget},
                        "efficiency": 1,
                        "utility": utility,
                    }
                    for j, (arrival, most, budget, width, utility) in enumerate(pair)
                ],
            }
            value, solution = ddljs.brute_force(DdljsInstance.parse(data))
            yield data, value, solution


def worker_slots_priced(*, large: bool = False) -> Iterator[Case]:
    """Prices of classes of nodes by blocks of slots."""
    grid = (0, GRID // 4, GRID // 2, GRID, 2 * GRID) if large else (0, GRID // 2, GRID, 2 * GRID)
    for data, optimum, _ in _worker_slots(large):
        many = len(data["servers"])
        leaves = [
            {"ends": ends, "classes": classes, "prices": [[{"gpu": p} for p in line] for line in chosen]}
            for ends in ([2], [1, 2])
            for classes in ([0] * many, [n % 2 for n in range(many)], [-1, *[0] * (many - 1)])
            for chosen in itertools.product(itertools.product(grid, repeat=max(classes) + 1), repeat=len(ends))
        ]
        yield Case(as_read(data), optimum, checker.model_of(as_read(data), "prices", {}), leaves, near=NEAR)


def worker_slots_in_rows(*, large: bool = False) -> Iterator[Case]:
    """Multiples of rows; a best solution as a point."""
    yield from _in_rows(_worker_slots(large), large)


# rar-ddls


@_kept
def _ring_jobs(large: bool) -> Iterator[tuple[Data, int | None, Any]]:
    shapes = [(1, 2, 0.0), (2, 3, 0.2), (3, 2, 0.1), (2, 1, 0.0)] + ([(1, 3, 0.0), (3, 4, 0.3)] if large else [])
    for sizes in ([2, 2], [2, 1], [3], [2, 1, 1]):
        for number in (1, 2) if not large else (1, 2, 3):
            for chosen in itertools.combinations_with_replacement(shapes, number):
                data = {
                    "problem": "rar-ddls",
                    "horizon": 6,
                    "network": {
                        "inter_bandwidth": 1,
                        "intra_bandwidth": 10,
                        "contention_scale": 0.5,
                        "contention_penalty": 1,
                        "server_overhead": 0,
                    },
                    "reduce_speed": 1000,
                    "servers": [{"id": f"s{s}", "gpus": gpus} for s, gpus in enumerate(sizes)],
                    "jobs": [
                        {
                            "id": f"j{j}",
                            "gpus": gpus,
                            "iterations": iterations,
                            "batch_size": 1,
                            "gradient_size": size,
                            "forward_time": 0,
                            "backward_time": 0.5,
                        }
                        for j, (gpus, iterations, size) in enumerate(chosen)
                    ],
                }
                truth = rar_ddls.brute_force(RarDdlsInstance.parse(data))
                yield data, None if truth is None else truth[0], None if truth is None else truth[1]


def area(*, large: bool = False) -> Iterator[Case]:
    """Every job, weights of gangs with margins, sizes of large gangs with factors; for every horizon."""
    leaves: list[Data] = [{"job": j} for j in range(3)]
    for weights in itertools.product(range(4 if large else 3), repeat=3):
        given = {str(g): w for g, w in enumerate(weights, start=1) if w}
        leaves += [{"weights": given, "margin": margin} for margin in range(3)]
    factors = ("0", "1/2", "1", "2", "7/2") if large else ("0", "1", "5/2")
    leaves += [{"gang": gang, "factor": factor} for gang in range(-1, 4) for factor in factors]
    for data, makespan, _ in _ring_jobs(large):
        instance = as_read(data)
        for horizon in range(7) if large else (1, 2, 3, 5):
            model = checker.model_of(instance, "area", {"horizon": horizon})
            value = Fraction(makespan) if makespan is not None else None
            yield Case(instance, value, model, leaves)


def ring_rows(*, large: bool = False) -> Iterator[Case]:
    """Multiples of rows for every horizon; a shortest schedule as a point."""
    for data, makespan, solution in _ring_jobs(large):
        instance = as_read(data)
        for horizon in (2, 4, 6):
            options = {"horizon": horizon}
            model = checker.model_of(instance, "rows", options)
            points = []
            if solution is not None and makespan is not None:
                points.append(
                    (Fraction(makespan), checker.rules_of("rar-ddls").point(instance, as_read(solution), options))
                )
            value = Fraction(makespan) if makespan is not None else None
            leaves = multiples(model, ("1", "1/2"), 1 if not large else 2)
            yield Case(instance, value, model, leaves, points=points)


def ring_periods(*, large: bool = False) -> Iterator[Case]:
    """The rows of files of VIPR: multiples of up to three, for all that a leaf of area may say."""
    for data, makespan, _ in _ring_jobs(large):
        instance = as_read(data)
        for horizon in (2, 4):
            said: list[Data] = [{"job": j} for j in range(len(data["jobs"]))]
            said += [{"margin": margin, "slots": slots} for margin in (0, 1) for slots in (False, True)]
            said += [{"gang": gang} for gang in (-1, 0, 1, 2, 3)]
            for options in said:
                try:
                    model = checker.model_of(instance, "periods", {"horizon": horizon, **options}, "AS_ROWS")
                except REFUSED:
                    continue
                value = Fraction(makespan) if makespan is not None else None
                yield Case(instance, value, model, multiples(model, ("1", "2", "3"), 2))


def gang_rows(*, large: bool = False) -> Iterator[Case]:
    """Multiples of rows with a device of four parts; a best decision as a point."""
    yield from _with_rows(_gangs(large))


def gang_parts(*, large: bool = False) -> Iterator[Case]:
    """Two gangs of pods with parts of several devices beside each other, or of others; multiples of rows."""
    yield from _with_rows(_parted(large))


def gang_part_prices(*, large: bool = False) -> Iterator[Case]:
    """Prices where pods have parts of several devices."""
    yield from _with_prices(_parted(large), {1, 2, 3}, large)


@_kept
def _parted(large: bool) -> Iterator[tuple[Data, Fraction, Data]]:
    """The first gang has pods with parts of two devices or three."""
    clusters = [[[4, 4]], [[4, 2]], [[4], [4]], [[4, 4, 2]]] + ([[[4, 4, 4]], [[4, 3], [4, 2]]] if large else [])
    first = [(gpu, parts, count) for gpu in (1, 2, 3) for parts in (2, 3) for count in (1, 2)]
    second = [(2, 1, 1), (3, 1, 2), (4, 1, 1), (2, 2, 1)]
    for nodes, *pair in itertools.product(clusters, first, second):
        data = {
            "problem": "gang-placement",
            "nodes": [{"id": f"n{n}", "gpus": parts} for n, parts in enumerate(nodes)],
            "gangs": [
                {
                    "id": f"g{g}",
                    "pods": [{"gpu": gpu, "count": count} | ({"parts": parts} if parts > 1 else {})],
                    "weight": 1 + g,
                }
                for g, (gpu, parts, count) in enumerate(pair)
            ],
            "objectives": ["weight"],
        }
        yield data, *max(_with_parts(pair, nodes), key=operator.itemgetter(0))


def _with_parts(
    gangs: Sequence[tuple[int, int, int]], nodes: Sequence[Sequence[int]]
) -> Iterator[tuple[Fraction, Data]]:
    """Every way to give each pod different devices of a node, or to leave its gang out, that devices hold."""
    seats = [
        [None, *itertools.product(_seats_of(nodes, parts if gpu < DEVICE else gpu // DEVICE), repeat=count)]
        for gpu, parts, count in gangs
    ]
    for chosen in itertools.product(*seats):
        left = [list(parts) for parts in nodes]
        placement = {}
        for g, ((gpu, _, _), pods) in enumerate(zip(gangs, chosen, strict=True)):
            for n, devices in pods or ():
                for d in devices:
                    left[n][d] -= min(gpu, DEVICE)
            placement[f"g{g}"] = [{"group": 0, "node": f"n{n}", "devices": list(own)} for n, own in pods or ()]
        if all(part >= 0 for parts in left for part in parts):
            yield Fraction(sum(1 + g for g, pods in enumerate(chosen) if pods is not None)), {"placement": placement}


def _seats_of(nodes: Sequence[Sequence[int]], parts: int) -> list[tuple[int, tuple[int, ...]]]:
    return [(n, own) for n, free in enumerate(nodes) for own in itertools.combinations(range(len(free)), parts)]


def gang_flavours(*, large: bool = False) -> Iterator[Case]:
    """Two gangs of a queue with quotas by flavour, on one or two nodes of them; multiples of rows."""
    nodes = [[(4, "a")], [(4, None)], [(4, "a"), (4, "b")], [(4, "a"), (2, "b")], [(4, "a"), (4, "a")]]
    shapes = [(gpu, count) for gpu in (0, 2, 4) for count in (1, 2)]
    quotas = [{"a": 2}, {"a": 0, "b": 4}, {"a": 4, "b": 2}] + ([{"b": 4}, {"a": 4, "b": 4}] if large else [])
    for cluster, pair, quota in itertools.product(nodes, itertools.combinations(shapes, 2), quotas):
        data = {
            "problem": "gang-placement",
            "nodes": [{"id": f"n{n}", "gpus": [part], "flavour": name} for n, (part, name) in enumerate(cluster)],
            "queues": [
                {"id": "q", "flavours": [{"flavour": name, "quota": {"gpu": most}} for name, most in quota.items()]}
            ],
            "gangs": [
                {"id": f"g{g}", "queue": "q", "pods": [{"gpu": gpu, "count": count}], "weight": 1 + g}
                for g, (gpu, count) in enumerate(pair)
            ],
            "objectives": ["weight"],
        }
        yield from _with_rows([(data, *max(_by_flavour(pair, cluster, quota), key=operator.itemgetter(0)))])


def _by_flavour(
    gangs: Sequence[tuple[int, int]], nodes: Sequence[tuple[int, str | None]], quota: Mapping[str, int]
) -> Iterator[tuple[Fraction, Data]]:
    """Every way to put each gang's pods on nodes of one device, or to leave the gang out, that all rules allow."""
    seats = [[None, *itertools.product(range(len(nodes)), repeat=count)] for _, count in gangs]
    for chosen in itertools.product(*seats):
        left, rest, allowed = [part for part, _ in nodes], dict(quota), True
        placement = {}
        for g, ((gpu, _), places) in enumerate(zip(gangs, chosen, strict=True)):
            for n in places or ():
                left[n] -= gpu
                if gpu:
                    allowed &= nodes[n][1] in rest
                    rest[nodes[n][1] or ""] = rest.get(nodes[n][1] or "", 0) - gpu
            allowed &= not gpu or len({nodes[n][1] for n in places or ()}) < 2
            placement[f"g{g}"] = [{"group": 0, "node": f"n{n}", "devices": [0] if gpu else []} for n in places or ()]
        if allowed and min([*left, *rest.values()]) >= 0:
            weight = sum(1 + g for g, places in enumerate(chosen) if places is not None)
            yield Fraction(weight), {"placement": placement}


def gang_subgroups(*, large: bool = False) -> Iterator[Case]:
    """A gang of two groups with levels of their own, and a single pod, on nodes of two racks; multiples of rows."""
    yield from _with_rows(_in_subgroups(large))


def gang_subgroup_prices(*, large: bool = False) -> Iterator[Case]:
    """Prices where groups of a gang have levels of their own."""
    for data, optimum, _ in _in_subgroups(large):
        instance, model = as_read(data), Model()
        gang_placement.prices(instance, {}, model, DEVICE)
        leaves = [
            {"weights": [[[n, 0, str(Fraction(price) / DEVICE)] for n, price in enumerate(prices)]]}
            for prices in itertools.product((0, "1/4", "1/2", 1, 2, 3), repeat=len(data["nodes"]))
        ]
        yield Case(instance, optimum, model.finished(), leaves)


@_kept
def _in_subgroups(large: bool) -> Iterator[tuple[Data, Fraction, Data]]:
    """The gang weighs 3; its subgroups have one group or both, on a level each."""
    clusters = [[(4, "a"), (4, "a")], [(4, "a"), (4, "b")], [(2, "a"), (2, "a"), (4, "b")]]
    clusters += [[(4, "a"), (2, "a"), (2, "b")], [(4, "a"), (4, "b"), (2, "b"), (2, "a")]] if large else []
    sizes = [(2, 2), (4, 2)] if not large else [*itertools.product((2, 4), repeat=2)]
    choices = [{(0,): "rack"}, {(0,): "node"}, {(0, 1): "rack"}, {(0,): "rack", (1,): "node"}, {(0, 1): "node"}]
    choices += [{(0, 1): "rack", (1,): "node"}, {(0,): "node", (1,): "node"}]
    for cluster, counts, pair, levels in itertools.product(clusters, [(2, 1), (2, 2)], sizes, choices):
        pods = [
            {"gpu": gpu, "count": count, "subgroups": [f"s{s}" for s, own in enumerate(levels) if k in own] or None}
            for k, (gpu, count) in enumerate(zip(pair, counts, strict=True))
        ]
        gang = {"id": "g", "weight": 3, "pods": pods}
        gang["subgroups"] = [{"id": f"s{s}", "required": level} for s, level in enumerate(levels.values())]
        data = {
            "problem": "gang-placement",
            "levels": ["rack"],
            "nodes": [{"id": f"n{n}", "gpus": [part], "domain": [rack]} for n, (part, rack) in enumerate(cluster)],
            "gangs": [gang, {"id": "h", "weight": 1, "pods": [{"gpu": 2, "count": 1}]}],
            "objectives": ["weight"],
        }
        order = [k for k, count in enumerate(counts) for _ in range(count)]
        yield data, *max(_by_level(order, pair, cluster, levels), key=operator.itemgetter(0))


def _by_level(
    order: Sequence[int], sizes: Sequence[int], nodes: Sequence[tuple[int, str]], levels: Mapping[tuple[int, ...], str]
) -> Iterator[tuple[Fraction, Data]]:
    """Every node for each pod of the gang and for the single pod, or none, that devices and levels allow."""
    everywhere = range(len(nodes))
    seats = [None, *itertools.product(everywhere, repeat=len(order))]
    for places, single in itertools.product(seats, (None, *everywhere)):
        left = [part for part, _ in nodes]
        for k, n in zip(order, places or (), strict=places is not None):
            left[n] -= sizes[k]
        if single is not None:
            left[single] -= 2
        apart = [
            {n if level == "node" else nodes[n][1] for k, n in zip(order, places or (), strict=False) if k in own}
            for own, level in levels.items()
        ]
        if min(left) >= 0 and all(len(used) < 2 for used in apart):
            pods = [{"group": k, "node": f"n{n}", "devices": [0]} for k, n in zip(order, places or (), strict=False)]
            alone = [] if single is None else [{"group": 0, "node": f"n{single}", "devices": [0]}]
            weight = 3 * (places is not None) + (single is not None)
            yield Fraction(weight), {"placement": {"g": pods, "h": alone}}


# rigid-jobs


def _logged(objective: str, large: bool) -> Iterator[tuple[Data, Fraction]]:
    """Two or three jobs on a pool of two GPUs, or on two pools of one and two."""
    shapes: list[tuple[int, int, int, list[str] | None]] = [
        (0, 1, 1, None),
        (0, 2, 2, None),
        (1, 1, 2, ["p"]),
        (0, 3, 1, ["p"]),
        (1, 2, 1, None),
    ]
    if large or objective == "area":  # which has one certificate an instance
        shapes += [(2, 1, 1, ["p"]), (2, 2, 2, None), (0, 2, 1, ["p"]), (1, 3, 2, None)]
    for pools in (
        ({"p": 2}, {"p": 1, "q": 2}, {"p": 2, "q": 1}) if objective == "area" else ({"p": 2}, {"p": 1, "q": 2})
    ):
        for many in (1, 2, 3):
            for chosen in itertools.combinations_with_replacement(shapes, many):
                if any(gpus > sum(pools[name] for name in own or pools) for _, _, gpus, own in chosen):
                    continue
                jobs = [
                    {
                        "id": f"j{j}",
                        "arrival": arrival,
                        "length": length,
                        "gpus": gpus,
                        **({"pools": own} if own else {}),
                    }
                    for j, (arrival, length, gpus, own) in enumerate(chosen)
                ]
                data = {
                    "problem": "rigid-jobs",
                    "objective": objective,
                    "pools": [{"id": name, "gpus": gpus} for name, gpus in pools.items()],
                    "jobs": jobs,
                }
                yield data, _shortest(data)


def _shortest(data: Data) -> Fraction:
    """The least mean of the times from arrival to end, over all starts and splits."""
    jobs = data["jobs"]
    sizes = {pool["id"]: pool["gpus"] for pool in data["pools"]}
    last = max(job["arrival"] for job in jobs) + sum(job["length"] for job in jobs)
    weights = [job["gpus"] * job["length"] if data["objective"] == "area" else 1 for job in jobs]
    best: list[int] = []

    def place(j: int, used: dict[tuple[str, int], int], cost: int) -> None:
        if best and cost >= best[0]:
            return
        if j == len(jobs):
            best[:] = [cost]
            return
        job = jobs[j]
        names = job.get("pools", list(sizes))
        for split in itertools.product(*(range(sizes[name] + 1) for name in names)):
            if sum(split) != job["gpus"]:
                continue
            for start in range(job["arrival"], last - job["length"] + 1):
                now = dict(used)
                for slot in range(start, start + job["length"]):
                    for name, gpus in zip(names, split, strict=True):
                        now[name, slot] = now.get((name, slot), 0) + gpus
                if all(now[key] <= sizes[key[0]] for key in now):
                    place(j + 1, now, cost + weights[j] * (start + job["length"] - job["arrival"]))

    place(0, {}, 0)
    return Fraction(best[0], sum(weights))


def logged_prices(*, large: bool = False) -> Iterator[Case]:
    """Prices of pools by bucket."""
    prices = (0, GRID // 4, GRID // 2, GRID) if large else (0, GRID // 2, GRID)
    for data, optimum in _logged("jct", large):
        leaves = [
            {"edges": edges, "prices": [list(line[k * 2 : k * 2 + 2]) for k in range(len(data["pools"]))]}
            for edges in ([0, 1, 2], [0, 2, 4], [1, 2, 5])
            for line in itertools.product(prices, repeat=2 * len(data["pools"]))
        ]
        yield Case(as_read(data), optimum, checker.model_of(as_read(data), "prices", {}), leaves)


def logged_drain(*, large: bool = False) -> Iterator[Case]:
    """The one certificate of form ``drain``."""
    for data, optimum in _logged("area", large):
        yield Case(as_read(data), optimum, checker.model_of(as_read(data), "drain", {}), [{}])


FORMS: dict[str, Callable[..., Iterator[Case]]] = {
    "rar-ddls rows": ring_rows,
    "rar-ddls area": area,
    "rar-ddls periods": ring_periods,
    "hadar prices": hadar_prices,
    "gpu-sharing rows": sharing_rows,
    "gpu-sharing prices": sharing_prices,
    "comm-contention srpt": transfers_alone,
    "comm-contention orders": transfers_in_order,
    "ddl-cluster rows": cluster_rows,
    "ddl-cluster machines": cluster_machines,
    "g-vne rows": rings_in_rows,
    "g-vne prices": rings_priced,
    "ddljs rows": worker_slots_in_rows,
    "ddljs prices": worker_slots_priced,
    "rigid-jobs prices": logged_prices,
    "rigid-jobs drain": logged_drain,
    "gang-placement rows": gang_rows,
    "gang-placement prices": gang_prices,
    "gang-placement flavour rows": gang_flavours,
    "gang-placement part rows": gang_parts,
    "gang-placement subgroup rows": gang_subgroups,
    "gang-placement subgroup prices": gang_subgroup_prices,
    "gang-placement part prices": gang_part_prices,
}
"""The class of each problem and form."""

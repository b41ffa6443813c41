"""Theorem 1 of paper 000: scheduling unit jobs on fixed GPU sets is colouring a graph."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from schedgap.heuristics.common.guarantee import Evaluation, Verdict

if TYPE_CHECKING:
    import networkx

LARGEST_GRAPH = 9


def reduced_instance(graph: networkx.Graph[int]) -> list[frozenset[int]]:
    """The reduction in the proof of Theorem 1: one unit job per node, on one GPU for each edge at the node.

    Returns
    -------
    The GPUs of each job, in the order of the nodes; GPU e belongs to the graph's edge number e. The gang of a job is
    the degree of its node.

    Notes
    -----
    The GPU set of a job is fixed, while rar-ddls lets the scheduler choose it: the hardness that the reduction
    shows is that of the variant with fixed sets.
    """
    return [frozenset(e for e, edge in enumerate(graph.edges) if node in edge) for node in graph]


def fixed_set_makespan(jobs: Sequence[frozenset[int]]) -> int:
    """The fewest slots in which all unit jobs run, each on its own GPUs, none of them shared in a slot.

    Breadth first over the sets of jobs that are done; O(4^n) for n jobs.
    """
    everything = (1 << len(jobs)) - 1
    slots = [
        chosen
        for chosen in range(1, everything + 1)
        if all(
            not (jobs[a] & jobs[b])
            for a, b in itertools.combinations([j for j in range(len(jobs)) if chosen >> j & 1], 2)
        )
    ]
    reached, makespan = {0}, 0
    while everything not in reached:
        reached = {done | slot for done in reached for slot in slots}
        makespan += 1
    return makespan


def chromatic_number(graph: networkx.Graph[int]) -> int:
    """The fewest colours that give the ends of every edge different colours; networkx only colours greedily.

    By inclusion and exclusion: k colours suffice exactly when
    ``sum over node sets X of (-1)^(n - |X|) i(X)^k > 0``, where i(X) counts the independent sets inside X,
    the empty one included. O(2^n n).

    References
    ----------
    A. Bjorklund, T. Husfeldt, M. Koivisto, Set partitioning via inclusion-exclusion, SIAM J. Comput. 39 (2009).
    """
    nodes = len(graph)
    if nodes == 0:
        return 0
    place = {node: number for number, node in enumerate(graph)}
    near = [sum(1 << place[other] for other in graph[node]) for node in graph]
    inside = [1] * (1 << nodes)
    for chosen in range(1, 1 << nodes):
        lowest = (chosen & -chosen).bit_length() - 1
        rest = chosen & ~(1 << lowest)
        inside[chosen] = inside[rest] + inside[rest & ~near[lowest]]
    colours = 1
    while sum((-1) ** (nodes - chosen.bit_count()) * inside[chosen] ** colours for chosen in range(1 << nodes)) <= 0:
        colours += 1
    return colours


def random_graph(seed: int) -> networkx.Graph[int]:
    """A graph of 1 to ``LARGEST_GRAPH`` nodes, each edge present with a probability that is drawn first."""
    import networkx

    rng = np.random.default_rng(seed)
    graph = networkx.empty_graph(int(rng.integers(1, LARGEST_GRAPH + 1)))
    density = rng.random()
    graph.add_edges_from(pair for pair in itertools.combinations(list(graph), 2) if rng.random() < density)
    return graph


def evaluate_coloring(seed: int) -> Evaluation:
    """Theorem 1's reduction on a random graph: the makespan of the reduced instance is the chromatic number."""
    graph = random_graph(seed)
    makespan = fixed_set_makespan(reduced_instance(graph))
    colours = chromatic_number(graph)
    verdict = Verdict.HELD if makespan == colours else Verdict.REFUTED
    return Evaluation(verdict, makespan, colours, f"graph of {len(graph)} nodes and {graph.size()} edges")

"""The GPUs of a cluster by load, and its servers by average load, in compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schedgap.formulations.common.compiled import njit_inline, njit_inner
from schedgap.formulations.rar_ddls.rates import Integers
from schedgap.formulations.rar_ddls.running import Workload


class Gpus(NamedTuple):
    """The cluster's GPUs; arrays that compiled code changes."""

    load: Integers  # (N,) sums of weights
    busy: npt.NDArray[np.bool_]  # (N,) marks
    taken: Integers  # (sum G_j,) GPUs of each job
    server_of: Integers  # (N,) the server of a GPU
    # pool, pool_size: heap of the idle GPUs by (load, index), as load * N + index
    pool: Integers
    pool_size: Integers
    servers: Integers  # (S,) heap of servers by (average load, index), and `total`: (S,) the sums of their loads
    total: Integers
    selected: npt.NDArray[np.bool_]  # (S,) marks of the servers that the head job may use
    scratch: Integers  # (N,) room for a selection


def new_gpus(work: Workload) -> Gpus:
    """All GPUs idle and without load."""
    sizes = work.servers["gpus"][:-1]
    gpus, servers = int(sizes.sum()), sizes.size
    return Gpus(
        load=np.zeros(gpus, dtype=np.int64),
        busy=np.zeros(gpus, dtype=np.bool_),
        taken=np.zeros(int(work.jobs["gang"].sum()), dtype=np.int64),
        server_of=np.repeat(np.arange(servers, dtype=np.int64), sizes),
        pool=np.arange(gpus, dtype=np.int64),
        pool_size=np.full(1, gpus, dtype=np.int64),
        servers=np.arange(servers, dtype=np.int64),
        total=np.zeros(servers, dtype=np.int64),
        selected=np.zeros(servers, dtype=np.bool_),
        scratch=np.zeros(gpus, dtype=np.int64),
    )


@njit_inline
def push(pool: Integers, size: int, key: int) -> None:
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if pool[parent] <= key:
            break
        pool[at] = pool[parent]
        at = parent
    pool[at] = key


@njit_inline
def pop(pool: Integers, size: int) -> int:
    """The smallest key of a heap of `size` keys, which has one less afterwards."""
    top = pool[0]
    size -= 1
    key = pool[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and pool[child + 1] < pool[child]:
            child += 1
        if pool[child] >= key:
            break
        pool[at] = pool[child]
        at = child
    pool[at] = key
    return int(top)


@njit_inline
def _before(work: Workload, gpus: Gpus, one: int, other: int) -> bool:
    """Whether server `one` comes before `other`: less load per GPU, ties by index."""
    left = gpus.total[one] * work.servers[other].gpus
    right = gpus.total[other] * work.servers[one].gpus
    return left < right or (left == right and one < other)


@njit_inner
def _sink_server(work: Workload, gpus: Gpus, at: int, size: int) -> None:
    server = gpus.servers[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _before(work, gpus, gpus.servers[child + 1], gpus.servers[child]):
            child += 1
        if not _before(work, gpus, gpus.servers[child], server):
            break
        gpus.servers[at] = gpus.servers[child]
        at = child
    gpus.servers[at] = server


@njit_inner
def _lift_server(work: Workload, gpus: Gpus, at: int) -> None:
    server = gpus.servers[at]
    while at > 0:
        parent = (at - 1) >> 1
        if not _before(work, gpus, server, gpus.servers[parent]):
            break
        gpus.servers[at] = gpus.servers[parent]
        at = parent
    gpus.servers[at] = server


@njit_inner
def order_servers(work: Workload, gpus: Gpus) -> None:
    """Make the heap of servers from the loads as they are."""
    gpus.total[:] = 0
    for g in range(gpus.load.size):
        gpus.total[gpus.server_of[g]] += gpus.load[g]
    size = gpus.servers.size
    for at in range(size // 2 - 1, -1, -1):
        _sink_server(work, gpus, at, size)


@njit_inner
def select_servers(work: Workload, gpus: Gpus, need: int) -> int:
    """Algorithm 3, line 2: the servers of least average load with `need` GPUs together.

    They are moved behind the end of the heap, whose size is returned, and marked.
    """
    size = gpus.servers.size
    capacity = 0
    while capacity < need and size > 0:
        size -= 1
        top = gpus.servers[0]
        gpus.servers[0] = gpus.servers[size]
        gpus.servers[size] = top
        if size > 0:
            _sink_server(work, gpus, 0, size)
        gpus.selected[top] = True
        capacity += work.servers[top].gpus
    return size


@njit_inner
def release_servers(work: Workload, gpus: Gpus, size: int) -> None:
    """Put the selected servers back into the heap by their new loads."""
    for at in range(size, gpus.servers.size):
        gpus.selected[gpus.servers[at]] = False
        _lift_server(work, gpus, at)

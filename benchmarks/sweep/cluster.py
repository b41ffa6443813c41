"""The pool of a Dask cluster: the same work as :class:`~schedgap.benchmarks.sweep.pool.Pool`, on other machines."""

from __future__ import annotations

import asyncio
import importlib
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from schedgap.benchmarks.sweep.pool import GRACE, Pool
from schedgap.benchmarks.sweep.progress import TICK
from schedgap.benchmarks.sweep.versions import relevant_versions
from schedgap.catalogue.method import one_line
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.solvers.budget import share_memory

_T = TypeVar("_T")
_R = TypeVar("_R")
ANSWER = 15.0
"""Seconds in which a scheduler must answer."""
RESUMES = "what had finished is kept, --resume goes on with it"
_behind: dict[str, float] = {"": 0.0}
"""How far this process's clock is before that of each client whose work it has done."""
_client = ""
"""Whose work it does."""


def clock() -> float:
    """Seconds on the clock of whoever began the work, here and at his workers; nobody sets it back."""
    return time.monotonic() - _behind[_client]


class ClusterLost(InputError):
    """The scheduler does not answer, has no workers, or went away in the middle."""


def pool_of(
    function: Callable[[_T], _R],
    workers: int,
    allowed: Callable[[_T], float | None] = lambda _: None,
    *,
    inside: bool = False,
    cluster: str | None = None,
    kept: str = RESUMES,
) -> Pool[_T, _R]:
    """Processes of this machine, or the workers of a Dask cluster where the address of its scheduler is given.

    `kept` says what is left of the work where the scheduler goes away.

    Raises
    ------
    InputError
        Dask is not installed, the address is none, or a worker has other versions.
    ClusterLost
        No scheduler answers at the address, or it has no workers.
    """
    if cluster is None:
        return Pool(function, workers, allowed, inside)
    client = _connect(cluster)
    return ClusterPool(function, sum(client.nthreads().values()), allowed, address=cluster, client=client, kept=kept)


def own_folder(folder: Path, cluster: str | None) -> Path:
    """The folder as whoever does the work can open it: workers of a cluster run in folders of their own."""
    return folder if cluster is None else folder.resolve()


def check_cluster(address: str | None) -> None:
    """Refuse an address that nobody answers at, before any work is begun."""
    if address is not None:
        _connect(address).close()


def _dask() -> Any:
    """The module ``distributed``, which has hardly any types."""
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise InputError("cluster: Dask is not installed; pip install 'schedgap[cluster]'") from None


def _connect(address: str) -> Any:
    """A client of the scheduler at an address; it has workers."""
    distributed = _dask()
    for name in ("distributed", "distributed.client"):  # a lost scheduler is one line of ours, no traceback of theirs
        logging.getLogger(name).setLevel(logging.CRITICAL)
    _check_address(address)
    try:
        with ThreadPoolExecutor(1) as apart:  # a notebook has a loop of its own
            apart.submit(asyncio.run, _shake_hands(address)).result()
        client = distributed.Client(address, timeout=ANSWER, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # a time limit is an OSError
        why = str(error).strip().splitlines()
        raise ClusterLost(
            f"cluster {address}: no Dask scheduler answers ({why[0] if why else 'nothing that Dask would say'})"
        ) from error
    try:
        if not client.nthreads():
            raise ClusterLost(f"cluster {address}: the scheduler has no workers; start some: dask worker {address}")
        _check_versions(address, client.run(relevant_versions, on_error="return"))
    except BaseException:
        client.close()
        raise
    return client


def _check_versions(address: str, told: Mapping[str, Json]) -> None:
    """Refuse workers whose results would be kept under other versions than theirs, or that tell an exception."""
    here = relevant_versions()
    for worker, there in told.items():
        who = f"cluster {address}: the worker at {worker}"
        if isinstance(there, Exception):
            raise InputError(f"{who} has no schedgap like this: {one_line(there)}")
        other = [f"{name} {there.get(name)}, here {x}" for name, x in here.items() if there.get(name) != x]
        if other:
            raise InputError(f"{who} has {'; '.join(other)}: install the same everywhere")


async def _shake_hands(address: str) -> None:
    """Connect as a client does, who would wait for ever on somebody that is no Dask scheduler."""
    arguments = _dask().Security().get_connection_args("client")
    connecting = importlib.import_module("distributed.comm").connect(address, timeout=ANSWER, **arguments)
    comm = await asyncio.wait_for(connecting, ANSWER + 1)  # its own reason comes first
    comm.abort()


def _check_address(address: str) -> None:
    """Refuse what is no address before a client is made of it: one that fails to start takes 30 s to end."""
    comm, distributed = importlib.import_module("distributed.comm"), _dask()
    try:
        scheme, place = comm.parse_address(address)
        importlib.import_module("distributed.comm.registry").get_backend(scheme).get_connector()
        host, port = comm.parse_host_port(place)
        if not host or not 0 < port < 65536:
            raise ValueError("no host" if not host else f"port {port} is not from 1 to 65535")
        if scheme == "tls" and distributed.Security().get_connection_args("client")["ssl_context"] is None:
            raise ValueError("no certificates: set distributed.comm.tls in Dask's configuration")
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"cluster {address!r}: must be the address of a Dask scheduler, such as tcp://node1:8786 ({error})"
        ) from error


@dataclass
class _Running(Generic[_T]):
    item: _T
    began: float | None = None
    given: float = field(default_factory=time.monotonic)


@dataclass
class ClusterPool(Pool[_T, _R]):
    """Runs a function on items on all threads of a Dask cluster.

    Dask itself gives the work of a worker that died to another one, three times; an item that outlives its time is
    reported, and its worker is started anew.
    """

    address: str = ""  # address of the scheduler
    client: Any = None  # the connection to it
    kept: str = RESUMES  # what is left where it goes away
    # its own, which its workers tell, too: none knows more than how long a message took
    clock: Callable[[], float] = clock
    _running: dict[Any, _Running[_T]] = field(default_factory=dict)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drop()
        self.client.close(timeout=ANSWER)

    def run(
        self,
        items: Iterable[_T],
        done: Callable[[_T, _R], None],
        died: Callable[[_T, str, float], None],
        until: float | None = None,
        tick: Callable[[Iterable[tuple[_T, float]]], None] = lambda _: None,
    ) -> None:
        """Run every item, as :meth:`Pool.run` does.

        Raises ClusterLost: the scheduler went away.
        """
        distributed = _dask()
        queue = deque(items)
        sharers: Counter[str] = Counter()
        for info in self.client.scheduler_info(n_workers=-1)["workers"].values():
            sharers[info["host"]] += info["nthreads"]
        most = 2 * self.workers  # one that runs and one that waits beside it, so that no worker is ever idle
        while queue or self._running:
            while queue and len(self._running) < most:
                item = queue.popleft()
                told = (dict(sharers), self.client.id, clock())
                future = self.client.submit(_at_worker, self.function, item, *told, pure=False)
                self._running[future] = _Running(item)
            try:
                with self.client.as_current():
                    distributed.wait(list(self._running), timeout=TICK, return_when="FIRST_COMPLETED")
            except (TimeoutError, distributed.TimeoutError):
                pass
            except distributed.CancelledError:
                raise self._lost() from None
            if self.client.status != "running":
                raise self._lost()
            if until is not None and self.clock() > until + GRACE:
                self._drop()
                return
            for future in [future for future in self._running if future.done()]:
                self._take(future, self._running.pop(future), done, died)
            self._end_late(died)
            # those given first are at work, the others wait at the workers
            first, now = list(self._running.values())[: self.workers], time.monotonic()
            tick([(running.item, now - running.given) for running in first])

    def _take(
        self,
        future: Any,
        running: _Running[_T],
        done: Callable[[_T, _R], None],
        died: Callable[[_T, str, float], None],
    ) -> None:
        if future.status in ("cancelled", "lost"):
            raise self._lost()
        finished = future.status == "finished"
        try:
            outcome = future.result() if finished else future.exception()
        except (OSError, _dask().CancelledError):  # it is at a worker, and only the scheduler knows at which
            raise self._lost() from None
        if finished:
            done(running.item, outcome)
            return
        seconds = 0.0 if running.began is None else time.monotonic() - running.began
        died(running.item, one_line(outcome), seconds)

    def _end_late(self, died: Callable[[_T, str, float], None]) -> None:
        """Report what outlives its time, and start its worker anew: a thread cannot be ended."""
        if all(self.allowed(running.item) is None for running in self._running.values()):
            return
        try:
            busy = {key: worker for worker, keys in self.client.processing().items() for key in keys}
        except (OSError, _dask().CancelledError):
            raise self._lost() from None
        now = time.monotonic()
        for future, running in list(self._running.items()):
            if running.began is None and future.key in busy:
                running.began = now
            allowed = self.allowed(running.item)
            # twice: it may have waited behind another one at its worker
            if running.began is not None and allowed is not None and now - running.began > 2 * allowed:
                del self._running[future]
                self.client.cancel([future], force=True)
                if future.key in busy:
                    self.client.restart_workers([busy[future.key]], raise_for_error=False)
                died(running.item, f"its worker was ended after {allowed:.0f} s without an answer", now - running.began)

    def _drop(self) -> None:
        """Forget what still runs."""
        if self._running and self.client.status == "running":
            self.client.cancel(list(self._running), force=True)
        self._running.clear()

    def _lost(self) -> ClusterLost:
        self._running.clear()
        return ClusterLost(f"cluster {self.address}: the scheduler went away; {self.kept}")


def _tell_time(client: str, sent: float) -> None:
    """Set :func:`clock` by a message: the one that waited least tells it best."""
    global _client
    _client = client
    _behind[client] = min(time.monotonic() - sent, _behind.get(client, float("inf")))


def _at_worker(function: Callable[[_T], _R], item: _T, sharers: dict[str, int], client: str, sent: float) -> _R:
    """One item on a worker, which shares its machine's memory with the others there."""
    _tell_time(client, sent)
    host = _dask().get_worker().address.rpartition(":")[0].rpartition("/")[2]
    share_memory(sharers.get(host, 1))
    return function(item)

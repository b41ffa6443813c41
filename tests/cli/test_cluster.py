"""Work on a Dask cluster: a real scheduler and two worker processes, the same rows, and what happens when one dies."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from distributed import CancelledError
from distributed.comm import CommClosedError
from support.work import wait_until

import schedgap
from schedgap.benchmarks.evaluation.run import _Question, _references
from schedgap.benchmarks.harness.cluster import ClusterLost, ClusterPool, _Running, pool_of
from schedgap.benchmarks.harness.progress import Progress
from schedgap.benchmarks.harness.suites import Item, plan
from schedgap.benchmarks.harness.worker import execute
from schedgap.benchmarks.instances import workload_of
from schedgap.benchmarks.records import Record
from schedgap.catalogue.comm_contention import PROBLEM as COMM_CONTENTION
from schedgap.formulations.common.errors import InputError

SETTING = ["--no-dashboard", "--host", "127.0.0.1"]


class Cluster:
    """A scheduler and its workers, each a process."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        scheduler = ["--port", "0", "--scheduler-file", str(self.file)]
        self.scheduler = self._start("scheduler", scheduler)
        wait_until(self._tells, lambda: self.scheduler.poll() is None)
        self.address = json.loads(self.file.read_text())["address"]
        self.workers = [self._start("worker", [self.address, "--nthreads", "1", "--no-nanny"]) for _ in range(2)]

    def _start(self, part: str, arguments: list[str]) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{part}", *arguments, *SETTING]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.file.parent)

    def _tells(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            return bool(json.loads(self.file.read_text())["address"])
        return False

    def wait_for_workers(self) -> None:
        """Until both are there."""
        import distributed

        with distributed.Client(self.address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=300)

    def end(self) -> None:
        """End all of it."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait(timeout=60)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        made.wait_for_workers()
        yield made
    finally:
        made.end()


def test_rows_are_the_same_as_those_of_this_machine(cluster: Cluster, tmp_path: Path) -> None:
    items = plan(["quick"], seed=0, scale=0.02, time_limit=None, problems=[COMM_CONTENTION])
    items = [item for item in items if item.record.method in ("bb", "adadual", "srsf-2")][:9]
    rows: list[dict[str, object]] = []
    for address in (None, cluster.address):
        found: dict[str, object] = {}
        with pool_of(partial(execute, disagreements=tmp_path), 1, cluster=address) as pool:

            def done(item: Item, record: Record, found: dict[str, object] = found) -> None:
                result = record.result
                found[record.key] = (result.status, result.objective, result.bound, result.solution)

            pool.run(items, done, lambda item, reason, _: pytest.fail(f"{item.label}: {reason}"))
        rows.append(found)
    assert len(rows[0]) == len(items) > 5
    assert rows[0] == rows[1]


def test_an_evaluation_learns_the_same_of_its_instances(cluster: Cluster) -> None:
    preset = workload_of(COMM_CONTENTION).presets[0]
    questions = [_Question(COMM_CONTENTION, "tiny", seed, preset.generator(seed, **preset.settings)) for seed in (0, 1)]
    bar = Progress(len(questions), None, "evaluate")
    ways = ((1, None), (2, None), (1, cluster.address))
    here, processes, there = (_references(questions, workers, address, bar) for workers, address in ways)
    assert here == processes == there
    assert all(one.answers[0].objective == one.answers[0].bound and len(one.others) > 3 for one in here)


def test_the_work_of_a_worker_that_dies_is_done_by_another(cluster: Cluster) -> None:
    done: dict[int, int] = {}
    with pool_of(_process_once_slowly, 1, cluster=cluster.address) as pool:

        def collect(item: int, process: int) -> None:
            if not done:
                os.kill(next(worker.pid for worker in cluster.workers if worker.pid == process), signal.SIGKILL)
            done[item] = process

        pool.run(range(8), collect, lambda item, reason, _: pytest.fail(f"{item}: {reason}"))
    assert sorted(done) == list(range(8))
    assert sum(worker.poll() is None for worker in cluster.workers) == 1


def test_a_scheduler_that_goes_away_is_one_line_and_nothing_finished_is_lost(cluster: Cluster) -> None:
    done: list[int] = []
    with pool_of(_process_once_slowly, 1, cluster=cluster.address) as pool:

        def collect(item: int, _: int) -> None:
            done.append(item)
            if len(done) == 1:
                cluster.scheduler.kill()

        with pytest.raises(ClusterLost, match="the scheduler went away; what had finished is kept, --resume"):
            pool.run(range(100), collect, lambda item, reason, _: pytest.fail(f"{item}: {reason}"))
    assert done


@pytest.mark.parametrize("error", [CommClosedError("gone"), CancelledError("gone")])
def test_a_result_that_cannot_be_fetched_means_that_the_scheduler_went_away(error: BaseException) -> None:
    """It may go between the end of an item and the fetching of what it returned."""

    class Finished:
        status = "finished"

        def result(self) -> int:
            raise error

    pool: ClusterPool[int, int] = ClusterPool(_process_once_slowly, 1, address="tcp://x")
    with pytest.raises(ClusterLost, match="the scheduler went away"):
        pool._take(Finished(), _Running(0), lambda item, value: None, lambda item, reason, _: None)


def test_an_address_that_nobody_answers_at_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cluster ftp://nobody: no Dask scheduler answers"):
        schedgap.bench(cluster="ftp://nobody", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def _process_once_slowly(item: int) -> int:
    time.sleep(0.2)
    return os.getpid()


_process_once_slowly.__module__ = "__main__"  # so that it travels as it is: workers cannot import a test

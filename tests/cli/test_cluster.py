"""Work on a Dask cluster: a real scheduler and two worker processes, the same rows, and what happens when one dies."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import dask
import pytest
from distributed import CancelledError
from distributed.comm import CommClosedError
from support.work import wait_until

import schedgap
from schedgap.benchmarks.hunt.limits import parse_limits
from schedgap.benchmarks.hunt.starts import starts_of
from schedgap.benchmarks.hunt.stretch import Stretch
from schedgap.benchmarks.hunt.target import find_target
from schedgap.benchmarks.hunt.work import Work, do_work
from schedgap.benchmarks.instances import workload_of
from schedgap.benchmarks.records import Record
from schedgap.benchmarks.suites.plan import Item, plan
from schedgap.benchmarks.suites.worker import execute
from schedgap.benchmarks.sweep import cluster as cluster_module
from schedgap.benchmarks.sweep.cluster import ClusterLost, ClusterPool, _Running, check_cluster, pool_of
from schedgap.benchmarks.sweep.progress import Progress
from schedgap.benchmarks.sweep.store import FILE, Store, StoreError
from schedgap.catalogue.comm_contention import PROBLEM as COMM_CONTENTION
from schedgap.formulations.common.errors import InputError
from schedgap.tools.evaluation.run import _Question, _references

SCHEDGAP = [sys.executable, "-m", "schedgap.cli.main"]
SETTING = ["--no-dashboard", "--host", "127.0.0.1"]


class Cluster:
    """A scheduler and its workers, each a process."""

    def __init__(self, folder: Path, workers: int = 2, more: Sequence[str] = (), scheme: str = "tcp") -> None:
        self.file = folder / "scheduler.json"
        self.more = more
        scheduler = ["--port", "0", "--scheduler-file", str(self.file), "--protocol", scheme]
        self.scheduler = self._start("scheduler", scheduler)
        wait_until(self._tells, lambda: self.scheduler.poll() is None)
        self.address = json.loads(self.file.read_text())["address"]
        self.workers = [self.start_worker() for _ in range(workers)]

    def start_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        """One more."""
        return self._start("worker", [self.address, "--nthreads", "1", "--no-nanny"], environment)

    def _start(self, part: str, arguments: list[str], more: Mapping[str, str] = {}) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{part}", *arguments, *self.more, *SETTING]
        said = (self.file.parent / f"{part}.log").open("ab")
        with said:
            return subprocess.Popen(command, stdout=said, stderr=said, cwd=self.file.parent, env={**os.environ, **more})

    def _tells(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            return bool(json.loads(self.file.read_text())["address"])
        return False

    def wait_for_workers(self, count: int | None = None) -> None:
        """Until all of them, or so many, are there."""
        import distributed

        with distributed.Client(self.address, timeout=60, set_as_default=False) as client:
            wanted = len(self.workers) if count is None else count
            wait_until(lambda: len(client.nthreads()) == wanted, lambda: self.scheduler.poll() is None)

    def end(self) -> None:
        """End all of it."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait(timeout=60)


@contextlib.contextmanager
def started(folder: Path) -> Iterator[Cluster]:
    made = Cluster(folder)
    try:
        made.wait_for_workers()
        yield made
    finally:
        made.end()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """One that the test may break."""
    with started(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One that is whole for all tests that leave it so."""
    with started(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def test_rows_are_the_same_as_those_of_this_machine(lasting: Cluster, tmp_path: Path) -> None:
    items = plan(["quick"], seed=0, scale=0.02, time_limit=None, problems=[COMM_CONTENTION])
    items = [item for item in items if item.record.method in ("bb", "adadual", "srsf-2")][:9]
    rows: list[dict[str, object]] = []
    for address in (None, lasting.address):
        found: dict[str, object] = {}
        with pool_of(partial(execute, disagreements=tmp_path), 1, cluster=address) as pool:

            def done(item: Item, record: Record, found: dict[str, object] = found) -> None:
                result = record.result
                found[record.key] = (result.status, result.objective, result.bound, result.solution)

            pool.run(items, done, lambda item, reason, _: pytest.fail(f"{item.label}: {reason}"))
        rows.append(found)
    assert len(rows[0]) == len(items) > 5
    assert rows[0] == rows[1]


def test_an_evaluation_learns_the_same_of_its_instances(lasting: Cluster) -> None:
    preset = workload_of(COMM_CONTENTION).presets[0]
    questions = [_Question(COMM_CONTENTION, "tiny", seed, preset.generator(seed, **preset.settings)) for seed in (0, 1)]
    bar = Progress(len(questions), None, "evaluate")
    ways = ((1, None), (2, None), (1, lasting.address))
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


def test_a_hunt_writes_into_the_folder_where_it_was_begun(
    lasting: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the workers are elsewhere
    limits = {"jobs": 2, "evaluations": 8}
    here, there = (
        schedgap.hunt("rar-ddls/ff", limits=limits, out=out, cluster=address)
        for out, address in (("here", None), ("there", lasting.address))
    )
    assert there.found == here.found is not None
    assert there.path == Path("there/worst.json")
    lines = [set((tmp_path / name / "journal.jsonl").read_text().splitlines()) for name in ("here", "there")]
    assert lines[0] == lines[1]


def test_a_hunt_whose_folder_a_worker_does_not_see_is_bad_input(tmp_path: Path) -> None:
    stretch = Stretch(0, 0, 3, 1, None, (), None)
    target = find_target("rar-ddls/ff", None)
    starts = starts_of(target, parse_limits(target.problem, target.method, {}))
    done = do_work(Work(stretch, target, starts, 1.0, None, tmp_path / "away" / "journal.jsonl"))
    assert done.error is not None
    assert done.error[0] == 2
    assert done.error[1].startswith(f"island 3: {tmp_path / 'away'} is not there at its worker")


def test_a_scheduler_that_goes_away_is_one_line_and_nothing_finished_is_lost(cluster: Cluster, tmp_path: Path) -> None:
    command = [*SCHEDGAP, "bench", "quick", "--scale", "0.2", "--out", "run", "--cluster", cluster.address]
    run = tmp_path / "run"
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as bench:
        try:
            wait_until(lambda: _rows(run) > 0, lambda: bench.poll() is None)
            cluster.scheduler.kill()
            lines = bench.communicate()[1].splitlines()
        finally:
            bench.kill()
    assert bench.returncode == 2
    assert [line for line in lines if not line.startswith("bench ")] == [
        f"schedgap: error: cluster {cluster.address}: the scheduler went away; what had finished is kept, "
        "--resume goes on with it"
    ]
    assert _rows(run) > 0


def test_what_has_no_resume_does_not_promise_it(
    lasting: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(pool: ClusterPool[object, object], *_: object, **__: object) -> None:
        raise pool._lost()

    monkeypatch.setattr(ClusterPool, "run", lost)
    with pytest.raises(ClusterLost, match="went away; only counterexamples found so far are kept, verify begins anew"):
        schedgap.verify(["000-lemma-2"], out=tmp_path, cluster=lasting.address)
    preset = workload_of(COMM_CONTENTION).presets[0]
    question = _Question(COMM_CONTENTION, "tiny", 0, preset.generator(0, **preset.settings))
    with pytest.raises(ClusterLost, match="went away; nothing is kept, evaluate begins anew"):
        _references([question], 1, lasting.address, Progress(1, None, "evaluate"))


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


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("", "missing port"),
        ("127.0.0.1", "missing port"),
        ("ftp://x:1", "unknown address scheme 'ftp'"),
        ("tcp://:8786", "no host"),
        ("tcp://x:70000", "port 70000"),
        ("tcp://::1:8786", "ipv6 needs brackets"),
        ("tls://x:8786", "no certificates"),
    ],
)
def test_what_is_no_address_is_refused_before_a_client_is_made(
    address: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distributed.Client", lambda *_, **__: pytest.fail("a client was made"))
    with pytest.raises(InputError, match=rf"cluster '{re.escape(address)}': must be the address .*{reason}"):
        schedgap.hunt("rar-ddls/ff", cluster=address, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_is_no_address_is_one_line_on_the_screen(tmp_path: Path) -> None:
    command = [*SCHEDGAP, "verify", "--cluster", "127.0.0.1"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, len(ended.stderr.splitlines())) == (2, "", 1)


def _rows(folder: Path) -> int:
    """How many have finished in the run there."""
    with contextlib.suppress(StoreError), Store(folder / FILE, read_only=True) as store:
        return len(store.finished())
    return 0


def _process_once_slowly(item: int) -> int:
    time.sleep(0.2)
    return os.getpid()


def _moment(_: int) -> float:
    from schedgap.benchmarks.sweep.cluster import clock

    return clock()


_moment.__module__ = "__main__"
_process_once_slowly.__module__ = "__main__"  # so that it travels as it is: workers cannot import a test


def test_workers_tell_the_clock_of_who_began_whatever_their_own_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clocks of the wall differ between machines, and are set; a message that waited long tells less than another."""
    monkeypatch.setattr(time, "time", lambda: pytest.fail("a clock of the wall was asked"))
    monkeypatch.setattr(cluster_module, "_behind", {"": 0.0})
    monkeypatch.setattr(cluster_module, "_client", "")
    here = 5000.0
    monkeypatch.setattr(time, "monotonic", lambda: here)
    assert cluster_module.clock() == 5000 and ClusterPool(abs, 1).clock is cluster_module.clock
    for client, sent, told in (("a", 70.0, 70.0), ("a", 10.0, 70.0), ("a", 71.0, 71.0), ("b", 9000.0, 9000.0)):
        cluster_module._tell_time(client, sent)
        assert cluster_module.clock() == told
    cluster_module._tell_time("a", 0.0)
    here += 2.0
    assert cluster_module.clock() == 73


def test_a_worker_tells_no_later_moment_than_it_is(lasting: Cluster) -> None:
    """All on one machine, whose clock is one."""
    told: list[float] = []
    before = time.monotonic()
    with pool_of(_moment, 1, cluster=lasting.address) as pool:
        pool.run([1, 2, 3], lambda item, moment: told.append(moment), lambda item, reason, _: pytest.fail(reason))
    assert len(told) == 3 and all(before <= moment <= time.monotonic() for moment in told)


def test_somebody_who_is_no_dask_scheduler_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "ANSWER", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(ClusterLost, match="no Dask scheduler answers"),
    ):
        check_cluster(f"tcp://127.0.0.1:{server.getsockname()[1]}")


def test_a_worker_with_another_version_is_refused_in_one_line(lasting: Cluster, tmp_path: Path) -> None:
    """Its rows would be kept as if they came from the version here."""
    home = Path(schedgap.__file__).parents[1]
    shutil.copytree(home / "interface", tmp_path / "schedgap")
    for part in ("formulations", "solvers", "heuristics", "catalogue", "benchmarks", "tools"):
        shutil.copytree(home / part, tmp_path / "schedgap" / part, ignore=shutil.ignore_patterns("collection"))
    with (tmp_path / "schedgap" / "heuristics" / "__init__.py").open("a") as changed:
        changed.write("# another version\n")
    other = lasting.start_worker(PYTHONPATH=str(tmp_path))
    try:
        lasting.wait_for_workers(3)
        with pytest.raises(
            InputError, match=r"the worker at tcp://\S+ has code \w{16}, here \w{16}: install the same"
        ) as e:
            check_cluster(lasting.address)
        assert len(str(e.value).splitlines()) == 1
    finally:
        other.kill()
        other.wait()
        lasting.wait_for_workers(2)
    check_cluster(lasting.address)


def test_a_worker_without_schedgap_is_refused_in_one_line() -> None:
    with pytest.raises(
        InputError, match=r"worker at tcp://a:1 has no schedgap like this: ModuleNotFoundError: No module"
    ):
        cluster_module._check_versions("tcp://x:1", {"tcp://a:1": ModuleNotFoundError("No module named 'schedgap'")})


def test_a_cluster_with_tls_takes_only_those_with_a_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/cluster.md has it: an authority of one's own, one certificate for all nodes."""
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes"]
    sign = ["openssl", "x509", "-req", "-in", "node.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"]
    for command in (
        [*new, "-x509", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem"],
        [*new, "-x509", "-subj", "/CN=stranger", "-keyout", "stranger.key", "-out", "stranger.pem"],
        [*new, "-subj", "/CN=node", "-keyout", "node.key", "-out", "node.csr"],
        [*sign, "-out", "node.pem"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    files = {"ca-file": "ca.pem", "cert": "node.pem", "key": "node.key"}
    options = [part for name, file in files.items() for part in (f"--tls-{name}", str(tmp_path / file))]

    def configured(certificate: str) -> dict[str, object]:
        client = {name: str(tmp_path / f"{certificate}.{end}") for name, end in (("cert", "pem"), ("key", "key"))}
        return {"distributed.comm.tls.ca-file": str(tmp_path / "ca.pem"), "distributed.comm.tls.client": client}

    made = Cluster(tmp_path, workers=1, more=options, scheme="tls")
    try:
        assert made.address.startswith("tls://")
        with dask.config.set(configured("node")):
            made.wait_for_workers()
            with pool_of(abs, 1, cluster=made.address) as pool:
                found: dict[int, int] = {}
                pool.run([-1, -2], found.__setitem__, lambda item, reason, _: pytest.fail(f"{item}: {reason}"))
        assert found == {-1: 1, -2: 2}
        page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")
        exported = dict(re.findall(r"(DASK_\w+)=(\S+)", page))
        assert len(exported) == 3 and set(exported.values()) == {"ca.pem", "node.pem", "node.key"}
        command = [*SCHEDGAP, "verify", "000-lemma-2", "--instances", "1", "--out", "ledger", "--cluster", made.address]
        for variables, status in ((exported, 0), ({}, 2)):
            env = {**os.environ, **variables}
            ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
            assert ended.returncode == status and "Traceback" not in ended.stderr, ended.stderr
            assert (tmp_path / "ledger" / "ledger.json").exists() and ("no certificates" in ended.stderr) == bool(
                status
            )
        monkeypatch.setattr(cluster_module, "ANSWER", 2.0)
        with dask.config.set(configured("stranger")), pytest.raises(ClusterLost, match="no Dask scheduler answers"):
            check_cluster(made.address)
        with pytest.raises(ClusterLost, match="no Dask scheduler answers"):
            check_cluster(made.address.replace("tls", "tcp"))
        with dask.config.set(configured("absent")), pytest.raises(InputError, match="No such file") as refused:
            check_cluster(made.address)
        assert len(str(refused.value).splitlines()) == 1
    finally:
        made.end()

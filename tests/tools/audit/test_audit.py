"""Logs end to end: a real Slurm, openb where it is, a Kubernetes export; the figures by hand; the page."""

import itertools
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from schedgap import audit
from schedgap.benchmarks.importers.formats import SLURM
from schedgap.benchmarks.importers.server_tables import TraceServer
from schedgap.benchmarks.importers.traces import TraceJob, read_trace
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.tools.audit.exclusive import exclusive_instance
from schedgap.tools.audit.load import load_of
from schedgap.tools.audit.page import audit_page
from schedgap.tools.audit.record import rebuild
from schedgap.tools.audit.result import Audit
from schedgap.tools.audit.run import detect
from schedgap.tools.audit.scores import scores

FIELD = Path(__file__).parents[2] / "data" / "field"
SHARED = Path(__file__).parents[3].parent / "shared" / "data"
TABLE = {"id": "id", "gpus": "g", "arrival": "in", "start": "from", "end": "to", "nodes": "at", "tenant": "who"}


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    out = tmp_path_factory.mktemp("slurm")
    return audit(
        FIELD / "sacct.txt", FIELD / "scontrol-nodes.txt", methods=["fifo", "sjf"], cluster=["+8", "-8"], out=out
    )


def test_the_real_slurm_log_gives_the_figures_computed_by_hand(slurm: Audit) -> None:
    rows = {row.name: row for row in slurm.sides[0].rows}
    found = {name: round(row.objective or 0, 1) for name, row in rows.items()}
    assert found == {"recorded": 66.9, "fifo": 131.0, "sjf": 20.2}  # types and nodes are kept
    assert slurm.sides[0].bound == pytest.approx(13.17, abs=0.05)
    assert not slurm.clashes and slurm.load.jobs == 463 and slurm.left_out == {"never started (CANCELLED)": 2}
    gains = slurm.avoidable(slurm.sides[0])
    assert gains is not None and gains["jct"][0] == pytest.approx(1 - 20.168 / 66.909, abs=1e-3)
    assert "at least 69%, at most 81%" in slurm.verdict and "if GPUs, types, nodes and processors" in slurm.verdict
    recorded = rows["recorded"].scores
    assert recorded is not None and recorded.jct.mean == pytest.approx(66.9028, abs=1e-4)
    assert recorded.wait.mean == pytest.approx(56.5875, abs=1e-4)  # all times are whole seconds


def test_what_if_stands_beside(slurm: Audit) -> None:
    as_listed, more, fewer = slurm.sides
    assert (as_listed.capacity, more.capacity, fewer.capacity) == (32, 40, 24)
    for name in ("fifo", "sjf"):
        at = [next(row.objective or 0 for row in side.rows if row.name == name) for side in (more, as_listed, fewer)]
        assert at == sorted(at), name
    assert more.recorded is None and (more.bound or 0) <= (as_listed.bound or 0) <= (fewer.bound or 0)


def test_what_sharing_would_avoid_at_three_values_of_interference() -> None:
    """The verdict is that without sharing; a pair that does not slow down halves what is left, at most."""
    found = audit(
        FIELD / "sacct.txt",
        FIELD / "scontrol-nodes.txt",
        methods=["sjf", "sjf-bsbf"],
        sharing=[1, 1.2, 1.5],
        window="60",
    )
    alone = audit(FIELD / "sacct.txt", FIELD / "scontrol-nodes.txt", methods=["sjf", "sjf-bsbf"], window="60")
    assert found.verdict == alone.verdict and not alone.gains()
    sides, bests, avoids, at_most = zip(*found.gains(), strict=True)
    assert [side.slowdown for side in sides] == [None, 1, 1.2, 1.5]
    recorded = found.sides[0].recorded
    assert recorded is not None and recorded.objective is not None
    for side, best, least, most in found.gains():
        assert best.objective is not None and least == pytest.approx(1 - best.objective / recorded.objective)
        assert best.objective == min(row.objective or 0 for row in side.rows if row.name != "recorded")
        assert least <= most
    free, *slower = at_most[1:]
    assert free >= at_most[0] and [free, *slower] == sorted([free, *slower], reverse=True)
    assert avoids[1] > avoids[0] and [row.name for row in bests[:2]] == ["sjf", "sjf-bsbf"]
    text = found.to_text()
    assert "What sharing GPUs would avoid, compared with recorded" in text and "each 1.2 times slower" in text
    assert [one["slowdown"] for one in found.to_dict()["sharing"]] == [None, 1, 1.2, 1.5]
    with pytest.raises(InputError, match="--sharing: factors from 1 to 100"):
        audit(FIELD / "sacct.txt", sharing=[0.5])


def test_sharing_by_too_many_jobs_is_one_line_that_names_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schedgap.tools.audit.run.MOST_SHARED", 50)
    with pytest.raises(InputError, match=r"--sharing: 60 jobs, at most 50 can slow each other: --window 50$"):
        audit(FIELD / "sacct.txt", FIELD / "scontrol-nodes.txt", sharing=[1.2], window="60")


def recorded_solution(jobs: Sequence[TraceJob], servers: Sequence[TraceServer]) -> dict[str, object]:
    """The record as a schedule of gpu-sharing; it has no clash."""
    made = rebuild(jobs, servers)
    assert not made.clashes
    return {"start": made.starts, "gpus": made.gpus, "accumulation": {job.id: 1 for job in jobs}}


def test_the_recorded_schedule_is_accepted_by_the_checker() -> None:
    trace = read_trace(SLURM, [FIELD / "sacct.txt", FIELD / "sinfo.txt"])
    instance = exclusive_instance("slurm", trace.jobs, trace.servers)
    solution = recorded_solution(trace.jobs, trace.servers)
    assert not find_problem("gpu-sharing").check(instance, solution).violations
    held = rebuild(trace.jobs, trace.servers).held
    for job in trace.jobs:
        servers = set(held[job.id])
        assert servers == {node for node, _ in job.nodes}, job.id


def test_the_page_is_whole_and_fetches_nothing(slurm: Audit) -> None:
    page = audit_page(slurm)
    assert page.count("<svg") + page.count("<img") >= 3 and slurm.sentence[1:] in page
    assert "; with the same GPUs, one job on each, " in slurm.sentence  # two that share one may be faster: a what-if
    assert "http://" not in page.replace("http://www.w3.org", "") and 'src="http' not in page and "<link" not in page
    json.dumps(slurm.to_dict(), allow_nan=False)
    assert max(map(len, slurm.to_text().split("assumed:")[0].splitlines())) <= 140


def test_pods_of_kubernetes_with_a_scheduler_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def first(instance, *, seed):\n"
        "    gpus = [[server.id, k] for server in instance.servers for k in range(server.gpus)]\n"
        "    start, slot = {}, 1\n"
        "    for job in sorted(instance.jobs, key=lambda job: job.arrival):  # one after another\n"
        "        start[job.id] = max(slot, job.arrival)\n"
        "        slot = start[job.id] + job.iterations\n"
        "    given = {job.id: gpus[: job.gpus] for job in instance.jobs}\n"
        "    return {'start': start, 'gpus': given, 'accumulation': {job.id: 1 for job in instance.jobs}}\n"
    )
    found = audit(FIELD / "kubectl.json", methods=["fifo"], scheduler=f"{tmp_path}/mine.py:first", time_limit=60)
    recorded, fifo, own = found.sides[0].rows
    assert recorded.objective is not None and (own.objective or 0) > (fifo.objective or 0) > 0, own.reason
    assert own.scores is not None and own.name.endswith("mine.py:first")
    assert found.left_out == {"has not ended": 1, "was never scheduled": 1, "no GPU": 1}
    assert {share.name: share.capacity for share in found.load.kinds} == {"A100": 8, "any": 12}


def table(folder: Path, rows: str) -> Path:
    path = folder / "log.csv"
    path.write_text("id,g,in,from,to,at,who\n" + rows)
    return path


def small(folder: Path, rows: str, gpus: int = 4, **settings: object) -> Audit:
    (folder / "nodes").write_text(f"node,gpus\nn1,{gpus}\n")
    path = table(folder, rows)
    run: Callable[..., Audit] = audit
    return run(path, folder / "nodes", columns=TABLE, methods=["sjf"], **settings)


def test_figures_of_three_jobs_by_hand(tmp_path: Path) -> None:
    """a holds all GPUs to 10; b (4 GPUs) waits until 14 though all are idle from 10 to 12; c (1 GPU) until 12."""
    found = small(tmp_path, "a,4,0,0,10,n1,x\nb,4,2,14,24,n1,y\nc,1,6,12,14,n1,y\n")
    load = found.load
    assert (load.demand.peak, load.busy and load.busy.peak, load.span) == (9, 4, 24)
    assert load.offered == pytest.approx((40 + 40 + 2) / (4 * 24))
    assert load.queued == 4 * 12 + 1 * 6
    # b: 4 free only in 10..12; c: in 10..12; too few: b in 2..10 and 12..14, c in 6..10
    assert load.full_queued == 4 * 8 + 4 * 2 + 4
    assert load.idle_queued == 4 * 2  # four idle GPUs, five wanted, for two seconds
    assert [(one.id, one.idle) for one in load.waited] == [("b", 2.0), ("c", 2.0)]
    recorded = found.sides[0].rows[0].scores
    assert recorded is not None
    assert recorded.jct.mean == pytest.approx((10 + 22 + 8) / 3) and recorded.wait.median == 6
    assert recorded.slowdown.mean == pytest.approx((1 + 2.2 + 1) / 3)
    present = (10 + 22 + 8) / 24
    alone = [10 * max(1, 4 / (4 / present)), 10 * max(1, 4 / (4 / present)), 2]
    assert recorded.fairness == pytest.approx(np.mean(np.array([10, 22, 8]) / alone))
    assert recorded.jain == pytest.approx((1 + 1.6) ** 2 / 2 / (1 + 1.6**2))
    assert found.verdict.startswith("avoidable: ")  # though demand exceeds capacity while jobs are submitted


def test_a_job_that_was_not_eligible_waited_for_no_gpu(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text(
        "JobID|Submit|Eligible|Start|End|State|AllocTRES|NodeList\n"
        + "".join(
            f"{name}|2026-01-01T00:00:00|2026-01-01T00:0{eligible}:00|2026-01-01T00:0{start}:00|2026-01-01T00:09:00"
            "|COMPLETED|gres/gpu=1|n1\n"
            for name, eligible, start in (("free", 0, 0), ("late", 3, 5), ("slow", 0, 5))
        )
    )
    (tmp_path / "nodes").write_text("node,gpus\nn1,4\n")
    found = audit(path, tmp_path / "nodes", methods=["sjf"])
    assert [(one.id, one.waited, one.idle) for one in found.load.waited] == [("slow", 300, 300), ("late", 120, 120)]
    assert "1 job became eligible only after" in found.to_text(full=True)
    assert "came, went or failed are not modelled" in found.to_text()


def test_verdicts_in_their_order(tmp_path: Path) -> None:
    over = small(tmp_path, "a,4,0,0,10,n1,x\nb,4,2,5,24,n1,y\n")
    assert over.verdict.startswith("the record needs more GPUs than listed (8 at once of 4)")
    assert over.clashes[0].jobs == ("b", "a") and over.clashes[0].missing == 4 and "second 5:" in over.to_text()
    assert over.sides[0].recorded is None and "infeasible" in {row.status for row in over.sides[0].rows}
    observed = small(tmp_path, "a,4,0,0,10,n1,x\nb,4,2,5,24,n1,y\n", cluster=["observed"])
    assert observed.sides[0].capacity == 8 and observed.sides[0].recorded is not None
    calm = small(tmp_path, "a,1,0,0,10,n1,x\nb,1,2,5,24,n1,y\n")
    assert calm.verdict.startswith("no queue ever formed: this log cannot judge a policy")
    assert "avoidable" not in calm.to_text(full=True) and "0.00%" not in calm.to_text()
    slow = small(tmp_path, "a,4,0,0,10,n1,x\nb,2,1,40,44,n1,y\nc,4,100,100,101,n1,y\n")
    assert slow.verdict.startswith("avoidable: at least ")
    gains = slow.avoidable(slow.sides[0])
    assert gains is not None and gains["jct"][0] == pytest.approx(1 - (10 + 13 + 1) / (10 + 43 + 1))
    assert "alone" not in slow.verdict
    first = small(
        tmp_path, "a,4,0,0,10,n1,x\nb,2,1,40,44,n1,y\nc,4,100,100,101,n1,y\nd,1,200,200,201,n1,y\n", window="3"
    )
    assert first.verdict.startswith("avoidable: ") and first.verdict.endswith(
        "had these jobs been alone on the cluster"
    )


def test_a_log_without_starts_says_so(tmp_path: Path) -> None:
    path = tmp_path / "philly.csv"
    path.write_text(
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        + "".join(f"2017-10-09 07:{k:02}:55,{600 + k},{1 << k % 4},0,{'ab'[k % 2]}\n" for k in range(40))
    )
    found = audit(path, methods=["fifo"], tenant="a")
    assert found.verdict.startswith("no record") and found.load.jobs == 20 and found.load.busy is None
    assert found.left_out == {"is of another tenant": 20} and found.sides[0].recorded is None
    assert found.sides[0].rows[0].objective is not None and found.sides[0].bound is not None
    window = audit(path, methods=["fifo"], window="busiest:7")
    assert window.load.jobs == 7 and window.left_out == {"is outside the window": 33}
    with pytest.raises(InputError, match="there is no tenant 'c' \\(tenants: a, b\\)"):
        audit(path, tenant="c")
    with pytest.raises(InputError, match="--window: must be a number of jobs"):
        audit(path, window="most")
    with pytest.raises(InputError, match=r"--servers: must be \+N or -N GPUs"):
        audit(path, cluster=["8"], methods=["no such, told before any scheduler runs"])
    with pytest.raises(InputError, match="--servers: -999999 leaves no GPU"):
        audit(path, cluster=["-999999"], methods=["fifo"])


def test_a_tenant_is_audited_on_a_cluster_for_it_from_its_first_submission(tmp_path: Path) -> None:
    path = tmp_path / "philly.csv"
    path.write_text(
        "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-01 00:00:00,5000000,64,0,others\n"
        + "".join(f"2017-11-09 07:{k:02}:55,600,1,0,small\n" for k in range(40))
    )
    found = audit(path, methods=["fifo"], tenant="small", out=tmp_path / "out")
    assert (found.load.capacity, found.load.demand.moments[0]) == (12, 0)  # 10.3 busy on average
    told = "\n".join(found.notes)
    assert "no table of servers: 3 servers of 4 GPUs assumed" in told and "16 servers" not in told
    assert "times count from the first of these submissions" in told and "jobs of other tenants hold no GPU" in told
    assert "that were busy" not in (tmp_path / "out" / "audit.html").read_text()


def test_what_a_queue_that_cannot_drain_would_gain_is_told_too(tmp_path: Path) -> None:
    path = table(tmp_path, "a,4,0,0,10,n1,x\nb,4,2,14,24,n1,y\nc,1,6,12,14,n1,y\n")
    (tmp_path / "nodes").write_text("node,gpus\nn1,4\n")
    run: Callable[..., Audit] = audit
    found = run(path, tmp_path / "nodes", columns=TABLE, methods=["sjf"])
    assert "drain" not in found.verdict  # all had ended
    text = found.to_text(full=True)
    assert "avoidable of JCT" in text and "avoidable of waiting" in text
    row = next(line for line in text.split("by tenant")[1].splitlines() if line.startswith("y "))
    recorded = found.sides[0].recorded
    assert recorded and recorded.scores and f"{recorded.scores.tenants['y']:.2f}" in row.split()


def test_large_numbers_are_written_out(tmp_path: Path) -> None:
    found = small(tmp_path, "a,4,0,0,100000,n1,x\nb,4,2,100000,200000,n1,y\n")
    text = found.to_text(full=True)
    assert "149,999" in text and "e+05" not in text and "42 h" in found.to_text()


def test_a_record_of_another_problem_is_told(tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("node,gpus,type\nn1,4,v100\n")
    path = table(tmp_path, "a,4,0,0,1000,n1,x\nb,4,2,1000,2000,n1,y\nc,4,9000,9000,9001,n1,x\n")
    run: Callable[..., Audit] = audit
    found = run(path, tmp_path / "nodes", columns=TABLE, methods=["ff"], problem="rar-ddls")
    assert found.verdict.startswith("the record is no schedule of rar-ddls: schedulers and bound only"), found.verdict


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"columns": {"gpus": "g", "duration": "to", "foo": "at"}}, "--set: no field 'foo' \\(fields: id, gpus, "),
        ({"columns": {"gpus": "g", "duration": "to", "unit": "days"}}, "--set unit: must be one of ms, s, min, h, got"),
        ({"columns": {"gpus": "g", "duration": "to"}}, "--set must name the column arrival="),
        ({"columns": {"gpus": "g"}}, "--set must name the columns: gpus=..., and duration="),
        ({"columns": TABLE, "form": "slurm"}, "--set: names columns of a table without a format; slurm knows its own"),
        ({"columns": TABLE, "methods": ["nope"]}, "--methods: there is no scheduler 'nope' here"),
        ({"columns": TABLE, "scheduler": "nowhere.py:f"}, "cannot import nowhere.py"),
        ({"columns": TABLE, "problem": "g-vne"}, "problem g-vne: cannot import format 'csv'"),
    ],
)
def test_what_cannot_be_asked_is_told_before_anything_runs(
    tmp_path: Path, settings: dict[str, object], said: str
) -> None:
    told: list[str] = []
    run: Callable[..., Audit] = audit
    with pytest.raises(InputError, match=said):
        run(table(tmp_path, "a,4,0,0,10,n1,x\n"), progress=told.append, **settings)
    assert not any("the bound" in line or "sjf" in line for line in told)


def test_formats_are_told_by_how_they_begin(tmp_path: Path) -> None:
    assert detect(FIELD / "sacct.txt").id == detect(FIELD / "sacct-25.05.json").id == "slurm"
    assert detect(FIELD / "kubectl.json").id == "kubernetes"
    (tmp_path / "log").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="line 1: of no known format; name it with --format"):
        detect(tmp_path / "log")
    (tmp_path / "log").write_text("job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval\n")
    with pytest.raises(InputError, match="line 1: could be of tiresias or chronus; name it with --format"):
        detect(tmp_path / "log")  # seconds in one, minutes in the other


def test_jobs_that_had_not_ended_are_in_the_verdict(tmp_path: Path) -> None:
    lines = (FIELD / "sacct.txt").read_text().splitlines()
    titles = lines[0].split("|")
    cells = lines[1].split("|")
    for title, cell in (("JobID", "9999"), ("End", "Unknown"), ("State", "RUNNING")):
        cells[titles.index(title)] = cell
    if "JobIDRaw" in titles:
        cells[titles.index("JobIDRaw")] = "9999"
    (tmp_path / "log.txt").write_text("\n".join([*lines[:9], "|".join(cells)]) + "\n")
    found = audit(tmp_path / "log.txt", methods=["fifo"])
    assert found.left_out["has not ended"] == found.running == 1
    assert found.verdict.endswith("but 1 job had not ended, and GPUs that it may have held count as idle")


def test_a_scheduler_that_is_cut_has_no_figure(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "def f(instance, *, seed):\n    while instance.max_jobs_per_gpu == 1:\n        pass\n"
    )  # quick on the instance that it is warmed up with, where two may share a GPU
    found = audit(FIELD / "kubectl.json", methods=["fifo"], scheduler=f"{tmp_path}/slow.py:f", time_limit=1)
    row = found.sides[0].rows[-1]
    assert row.objective is None and row.status == "no figure" and row.reason == "no answer within 1 s"


def test_colouring_by_brute_force() -> None:
    """Where no more GPUs of a server are busy than there are, colouring finds indices without a clash."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        free_at = [0.0] * 5
        jobs = []
        for k in range(25):
            amount, length = int(rng.integers(1, 5)), int(rng.integers(1, 9))
            order = sorted(range(5), key=lambda gpu: free_at[gpu])[:amount]
            start = max(free_at[gpu] for gpu in order) + int(rng.integers(0, 2))
            for gpu in order:
                free_at[gpu] = start + length
            made = TraceJob(k, f"j{k}", amount, arrival=0.0, duration=length, start=start, end=start + length)
            jobs.append(made)
        servers = [TraceServer("n", 5)]
        solution = recorded_solution(jobs, servers)
        assert not find_problem("gpu-sharing").check(exclusive_instance("x", jobs, servers), solution).violations


def test_the_figures_of_a_large_log_take_little_memory_and_time() -> None:
    """20,000 jobs: counted operations would be better; what is checked is that nothing is quadratic in memory."""
    rng = np.random.default_rng(1)
    arrival = np.sort(rng.uniform(0, 1e6, 20_000))
    jobs = [
        TraceJob(
            k,
            f"j{k}",
            int(1 << rng.integers(0, 4)),
            arrival=float(at),
            duration=300.0,
            start=float(at) + 5,
            end=float(at) + 305,
        )
        for k, at in enumerate(arrival.tolist())
    ]
    load = load_of(jobs, [TraceServer("n", 64)], True)
    assert load.queued == pytest.approx(5 * sum(job.gpus for job in jobs))
    one = scores(jobs, arrival, arrival + 5, arrival + 305, 64, None)
    assert one.wait.p99 == pytest.approx(5) and one.jain is None


def test_openb_cannot_judge_a_policy() -> None:
    log, nodes = SHARED / "openb" / "openb_pod_list_default.csv", SHARED / "openb" / "openb_node_list_gpu_node.csv"
    if not log.exists():
        pytest.skip("no shared data beside the checkout")
    trace = read_trace(detect(log), [log, nodes])
    load = load_of(trace.jobs, trace.servers, True)
    assert (load.jobs, load.capacity, load.busy and load.busy.peak) == (6203, 6212, 71)
    assert load.offered == pytest.approx(0.0023, abs=5e-5) and load.full_queued == 0
    waits = np.array([(job.start or 0) - job.arrival for job in trace.jobs])
    assert round(float(waits.mean())) == 70
    assert round(float(np.mean([(job.end or 0) - job.arrival for job in trace.jobs]))) == 30921


def test_one_of_anything_has_no_plural(tmp_path: Path) -> None:
    """One job on one GPU, then two of which one is a further attempt; no number 1 stands before a word with an s."""
    head = "JobID|Submit|Eligible|Start|End|State|AllocTRES|NodeList\n"
    times = "8|2026-03-02T08:0{0}:00|2026-03-02T08:0{1}:00|2026-03-02T08:{2}:00|2026-03-02T{3}:00:00"
    row = f"{times}|COMPLETED|gres/gpu=1|n1\n"
    one = row.format(0, 0, "00", "09")
    logs = [one, one + row.format(1, 1, "01", "09"), one + row.format(1, 3, "59", "10"), row.format(0, 1, "30", "09")]
    logs += [one + row.format(2, 2, "02", "08").replace("1|n1", "2|n1"), one + one.replace("gpu=1", "gpu=0")]
    logs += [one + one.replace("2026-03-02T09:00:00|", "Unknown|").replace("8|", "9|", 1)]
    logs += [one + row.format(1, 1, "59", "10").replace("2026-03-02T08:59:00|2026-03-02T10:00:00", "Unknown|Unknown")]
    node = "NodeName={} CPUTot=8 RealMemory=1000 Gres={} State={} Partitions=gpu\n"
    lists = [
        node.format("n1", "gpu:1", "DOWN"),
        node.format("n1", "gpu:1", "IDLE") + node.format("n2", "(null)", "IDLE"),
    ]
    nouns = "jobs|rows|nodes|servers|gangs|GPUs|more GPUs|GPU hours"
    wrong = re.compile(rf"(?<![\d.,])1 (?:(?:{nouns})\b|(?:row|job|node|gang) (?:are|were|have|count)\b)")
    for number, (rows, nodes) in enumerate(itertools.product(logs, lists)):
        (tmp_path / "log").write_text(head + rows)
        (tmp_path / "nodes").write_text(nodes)
        found = audit(tmp_path / "log", tmp_path / "nodes", methods=["fifo"], cluster=["+1"])
        told = " ".join((found.to_text() + found.verdict).split())
        plain = [match[0] for match in wrong.finditer(told)]
        assert not plain, f"{number} {plain} {told}"

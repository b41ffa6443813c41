"""Audits with GPUs of several types: the record is a schedule of hadar, and a job keeps the type it asked for."""

import itertools
from pathlib import Path

import pytest
from matplotlib.patches import Rectangle

from schedgap import audit
from schedgap.benchmarks.importers.formats import SLURM
from schedgap.benchmarks.importers.server_tables import TraceServer
from schedgap.benchmarks.importers.traces import TraceJob, read_trace
from schedgap.catalogue.registry import find_problem
from schedgap.tools.audit.page import _gantt
from schedgap.tools.audit.typed_record import typed_instance, typed_record, typed_times

FIELD = Path(__file__).parents[2] / "data" / "field"
HADAR = find_problem("hadar")
SERVERS = [TraceServer("n1", 2, "v100"), TraceServer("n2", 2, "a100")]


def job(name: str, gpus: int, submit: float, start: float, end: float, node: str, asked: str | None = None) -> TraceJob:
    times = {"arrival": submit, "start": start, "end": end, "duration": end - start}
    return TraceJob(1, name, gpus, nodes=((node, None),), asked=asked, **times)


def test_the_record_of_the_real_log_keeps_every_type() -> None:
    trace = read_trace(SLURM, [FIELD / "sacct.txt", FIELD / "scontrol-nodes.txt"])
    instance = typed_instance("slurm", trace.jobs, trace.servers)
    found = typed_record(trace.jobs, trace.servers)
    assert found is not None and not found[1]
    report = HADAR.check(instance, found[0])
    assert not report.violations and report.objective is not None
    by_hand = sum(one.gpus * (one.end - one.start) / (one.end - one.arrival) for one in trace.jobs)  # type: ignore[operator]
    assert float(report.objective) == pytest.approx(by_hand)
    times = typed_times(instance, found[0], report.details["completion"])
    assert times is not None and float((times[2] - times[0]).mean()) == pytest.approx(66.9093, abs=1e-4)


def test_figures_of_three_typed_jobs_by_hand(tmp_path: Path) -> None:
    """b waits for a100 until 10 though v100s are idle; c may use any and runs at once where there is room."""
    jobs = [job("a", 2, 0, 0, 10, "n2"), job("b", 2, 2, 10, 14, "n2", "a100"), job("c", 2, 4, 4, 8, "n1")]
    instance = typed_instance("three", jobs, SERVERS)
    assert [sorted(one.throughput) for one in instance.jobs] == [["a100", "v100"], ["a100"], ["a100", "v100"]]
    found = typed_record(jobs, SERVERS)
    assert found is not None
    recorded = found[0]["allocation"]
    report = HADAR.check(instance, found[0])
    assert not report.violations and float(report.objective or 0) == pytest.approx(2 * 10 / 10 + 2 * 4 / 12 + 2 * 4 / 4)
    stolen = {**recorded, "b": [[11, 14, [{"machine": "n1", "type": "v100", "gpus": 2}]]]}
    assert HADAR.check(instance, {"allocation": stolen}).violations  # it asked for an a100
    # interrupted for three seconds: it counts as started when it would have, had it run in one piece
    a100 = [{"machine": "n2", "type": "a100", "gpus": 2}]
    pieces = {**recorded, "b": [[11, 12, a100], [16, 17, a100]]}
    again = HADAR.check(instance, {"allocation": pieces})
    times = typed_times(instance, {"allocation": pieces}, again.details["completion"])
    assert times is not None and (times[1][1], times[2][1]) == (13, 17)
    slots = {**recorded, "b": {str(slot): a100 for slot in (11, 12, 16, 17)}}  # the other form of a solution
    same = typed_times(instance, {"allocation": slots}, again.details["completion"])
    assert same is not None and all((one == other).all() for one, other in zip(times, same, strict=True))
    del pieces["c"]
    cut = HADAR.check(instance, {"allocation": pieces})
    assert typed_times(instance, {"allocation": pieces}, cut.details["completion"]) is None


def test_jobs_of_unknown_nodes_have_no_typed_record() -> None:
    assert typed_record([TraceJob(1, "a", 2, start=0.0, end=1.0, duration=1.0)], SERVERS) is None


def test_a_typed_audit_of_the_real_log(tmp_path: Path) -> None:
    found = audit(
        *(FIELD / "sacct.txt", FIELD / "scontrol-nodes.txt"),
        problem="hadar",
        methods=["yarn-cs", "tiresias"],
        window="60",
        out=tmp_path,
    )
    side = found.sides[0]
    rows = {row.name: row for row in side.rows}
    assert side.recorded is not None and side.bound is not None and set(rows) == {"recorded", "yarn-cs", "tiresias"}
    best = max(row.objective or 0 for row in side.rows)
    assert side.best is not None and side.best.objective == best <= side.bound * (1 + 1e-9)
    assert found.verdict.startswith(("demand exceeds", "the record reaches"))
    assert found.avoidable(side) is None and "mean JCT" in found.to_text() and (tmp_path / "audit.html").is_file()
    assert rows["recorded"].scores is not None and rows["recorded"].scores.jct.mean > 0


def test_no_two_jobs_of_a_chart_share_a_gpu_at_a_time() -> None:
    """Whatever order a solution names its jobs in: the record names them by start, the log by line."""
    found = audit(FIELD / "kubectl.json", methods=["sjf"])
    side = found.sides[0]
    for row in side.rows:
        assert row.times is not None
        figure = _gantt(side, row, found.jobs, (0.0, float(row.times[2].max())))
        bars = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
        assert len(bars) == sum(job.gpus for job in found.jobs)
        for one, other in itertools.combinations(bars, 2):
            (left, right) = sorted((one, other), key=lambda bar: bar.get_x())
            apart = left.get_x() + left.get_width() <= right.get_x() + 1e-9
            assert apart or abs(left.get_y() - right.get_y()) > 0.5, row.name


def test_times_that_are_no_whole_seconds_stay_exact(tmp_path: Path) -> None:
    """A tenth of all times gives a tenth of all figures; a log in milliseconds keeps them."""
    files = FIELD / "sacct.txt", FIELD / "sinfo.txt"
    found = audit(*files, methods=["sjf"], time_scale=0.1)
    rows = {row.name: row.objective for row in found.sides[0].rows}
    assert rows["recorded"] == pytest.approx(6.69028, abs=1e-5) and rows["sjf"] == pytest.approx(2.01683, abs=1e-3)
    assert found.sides[0].bound == pytest.approx(1.317, abs=0.005)
    assert not found.clashes and found.slot_length == pytest.approx(0.1)
    (tmp_path / "nodes").write_text("node,gpus\nn1,1\n")
    (tmp_path / "log.csv").write_text("g,in,from,to\n1,0,0,250\n1,100,250,300\n1,100,300,325\n")
    columns = {"gpus": "g", "arrival": "in", "start": "from", "end": "to", "unit": "ms"}
    short = audit(tmp_path / "log.csv", tmp_path / "nodes", columns=columns, methods=["sjf"])
    assert short.sides[0].rows[0].objective == pytest.approx((0.25 + 0.2 + 0.225) / 3)
    assert short.sides[0].rows[1].objective == pytest.approx((0.25 + 0.175 + 0.225) / 3)

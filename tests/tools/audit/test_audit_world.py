"""What an audit says of the cluster against brute force: small logs with types, nodes, shapes and processors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.audit_plain import best_means, plain_schedule, small_log

from schedgap import audit
from schedgap.benchmarks.importers.rows import Notes
from schedgap.benchmarks.importers.server_tables import read_servers
from schedgap.benchmarks.sweep.progress import Progress
from schedgap.solvers.certificates import checker
from schedgap.tools.audit.answer import outward, share, span_of
from schedgap.tools.audit.policies import POLICIES, ranks, schedule, search
from schedgap.tools.audit.reached import Reached
from schedgap.tools.audit.reading import held_of, read_cluster
from schedgap.tools.audit.result import Audit

WORLD = Path(__file__).parents[2] / "data" / "world"


def test_reached_never_below_what_exists_and_the_limit_never_above() -> None:
    """200 logs: no schedule of ours is better than the best that keeps everything, no bound is above it."""
    gaps = []
    for seed in range(200):
        jobs, servers = small_log(seed, 4)
        reading = read_cluster(jobs, servers, 1.0, True, True)
        assert "nodes" in reading.kept and "processors" in reading.kept and not reading.lost
        reached = Reached(reading, "log", 1.0, 0, Progress(0, None, "audit"))
        side = reached.side("as listed", tuple(POLICIES), True)
        assert all(row.status in ("feasible", "recorded") for row in side.rows), (seed, side.rows)
        mean, weighted = best_means(jobs, servers)
        assert min(row.objective or 0 for row in side.rows) >= mean - 1e-9, seed
        assert min(row.weighted or 0 for row in side.rows) >= weighted - 1e-9, seed
        assert side.bound is not None and side.bound <= mean + 1e-9, seed
        assert side.weighted_bound is not None and side.weighted_bound <= weighted + 1e-9, seed
        best = min(row.objective or 0 for row in side.rows)
        gaps.append((best / mean, mean / side.bound))
    above, below = np.array(gaps).mean(axis=0)
    assert above < 1.02 and below < 1.05, (above, below)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_compiled_policies_do_what_plain_ones_do(policy: str) -> None:
    mode, order, _ = POLICIES[policy]
    for seed in range(60):
        jobs, servers = small_log(seed, 4 + seed % 9)
        reading = read_cluster(jobs, servers, 1.0, True, True)
        work, shapes, nodes = reading.arrays
        rank = ranks(work, reading.gpus, order)
        start, places = schedule(work, shapes, nodes, rank, mode)
        assert start.tolist() == plain_schedule(work, shapes, nodes, rank.tolist(), mode), seed
        assert reading.broken(start, held_of(reading, places)) is None


def test_a_rule_that_a_schedule_breaks_is_named() -> None:
    jobs, servers = small_log(2, 6)
    reading = read_cluster(jobs, servers, 1.0, True, True)
    work, shapes, nodes = reading.arrays
    start, places = schedule(work, shapes, nodes, ranks(work, reading.gpus, "arrival"), 1)
    held = held_of(reading, places)
    assert "before it was submitted" in str(reading.broken(start - 5, held))
    assert "does not lie on servers as it did" in str(reading.broken(start, [{} for _ in held]))
    assert "has too few GPUs" in str(reading.broken(np.full_like(start, 20), held))
    typed = next(j for j, job in enumerate(jobs) if len(reading.usable[j]) < len(servers))
    other = next(n for n in range(len(servers)) if n not in reading.usable[typed])
    moved = [{other: 1} if j == typed else one for j, one in enumerate(held)]
    assert "on GPUs that it may not use" in str(reading.broken(start, moved))


def test_the_search_repeats_itself_for_a_seed() -> None:
    jobs, servers = small_log(5, 8)
    reading = read_cluster(jobs, servers, 1.0, True, True)
    one, two = (search(*reading.arrays, reading.gpus, False, 60.0, 3) for _ in range(2))
    assert one[0].tolist() == two[0].tolist() and one[2] == two[2] == 20_000


def test_one_a100_that_never_idles_and_four_v100_that_nobody_asks_for() -> None:
    found = audit(WORLD / "types" / "sacct.txt", WORLD / "types" / "nodes.txt", methods=["fifo", "sjf"])
    gains = found.avoidable(found.sides[0])
    assert gains is not None and all(least == 0 and most < 1e-3 for least, most in gains.values())
    assert "nothing was avoidable" in found.to_text() and "69%" not in found.to_text()


def test_a_burst_that_was_done_is_judged_like_any_other() -> None:
    for log in ("types/burst.txt", "audit-array-burst.txt"):
        found = audit(WORLD / log, methods=["fifo", "sjf"])
        text = found.to_text(full=True)
        assert "drain" not in text and "exceeds" not in text and found.verdict.startswith("avoidable: ")
        gains = found.avoidable(found.sides[0])
        assert gains is not None and gains["jct"][1] < 0.015


@pytest.mark.parametrize("nodes", [True, False])
def test_jobs_that_lay_unevenly_keep_their_total_and_no_gpu_is_invented(nodes: bool) -> None:
    folder = WORLD / "uneven"
    found = audit(folder / "sacct.txt", folder / "nodes.txt" if nodes else None, methods=["fifo", "sjf", "saf"])
    side = found.sides[0]
    assert found.load.capacity == 8 and side.recorded is not None and not found.clashes
    assert side.recorded.objective == pytest.approx(12_450) and side.bound == pytest.approx(10_732, abs=1)
    gains = found.avoidable(side)
    assert gains is not None and gains["jct"][1] == pytest.approx(1 - 10_732 / 12_450, abs=1e-3)
    assert ("if GPUs, nodes" if nodes else "if GPUs were all that counted") in found.verdict
    if nodes:
        shapes = {tuple(sorted(held.values())) for row in side.rows for held in row.places or ()}
        assert shapes == {(2,), (2, 4)}


def test_a_record_that_no_split_explains_counts_on_the_total(tmp_path: Path) -> None:
    """Two jobs of 3 and 5 on nodes of 4 and 4 that both name n1 alone: not the nodes, but the eight GPUs are kept."""
    head = "JobID|Submit|Start|End|State|AllocTRES|NodeList\n"
    rows = [
        f"{name}|2026-01-01T0{at}:00:00|2026-01-01T0{at}:30:00|2026-01-01T0{at + 1}:30:00|COMPLETED|gres/gpu={g}|n1\n"
        for name, at, g in (("a", 0, 3), ("b", 0, 5), ("c", 1, 8))
    ]
    (tmp_path / "log").write_text(head + "".join(rows))
    (tmp_path / "nodes").write_text("node,gpus\nn1,4\nn2,4\n")
    found = audit(tmp_path / "log", tmp_path / "nodes", methods=["fifo"], out=tmp_path / "out")
    assert found.load.capacity == 8 and found.sides[0].recorded is not None
    assert "if GPUs were all that counted" in found.verdict or "no queue" in found.verdict
    told = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert any(line.startswith("nodes are not kept: n1 would have needed") for line in told["assumed"])


def test_a_queue_that_had_not_drained_is_told(tmp_path: Path) -> None:
    head = "JobID|Submit|Start|End|State|AllocTRES|NodeList\n"
    rows = [
        "1|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00|COMPLETED|gres/gpu=1|n1\n",
        "2|2026-01-01T00:00:00|2026-01-01T01:00:00|2026-01-01T02:00:00|COMPLETED|gres/gpu=1|n1\n",
        "3|2026-01-01T00:00:00|Unknown|Unknown|PENDING||None assigned\n",
    ]
    (tmp_path / "log").write_text(head + "".join(rows))
    found = audit(tmp_path / "log", methods=["fifo"])
    assert "the queue had not drained: 1 job still waited when the log was written" in found.verdict


def test_what_was_not_read_stands_in_the_line() -> None:
    parts = audit(WORLD / "sacct-mps.txt", methods=["fifo"])
    assert "but 2 rows that do not count may have held GPUs" in parts.verdict and parts.unread == 2
    clusters = audit(WORLD / "sacct-two-clusters.txt", methods=["fifo"])
    assert clusters.condition.endswith("and its 2 clusters were one") and not clusters.unread


@pytest.mark.parametrize("log", ["uneven/sacct.txt", "types/sacct.txt", "audit-array-burst.txt"])
def test_limits_are_written_with_certificates_that_the_checker_alone_accepts(log: str, tmp_path: Path) -> None:
    """Certificates of each form: gangs counted as a whole, prices by type, and draining."""
    nodes = WORLD / log.replace("sacct", "nodes")
    listed = nodes if nodes.name == "nodes.txt" else None
    found = audit(WORLD / log, listed, methods=["fifo"], out=tmp_path)
    written = sorted(path.stem for path in tmp_path.glob("*.cert"))
    assert len(found.sides[0].limits) == len(written) == 2
    for name in written:
        files = [str(tmp_path / f"{name}.json"), str(tmp_path / f"{name}.cert")]
        ran = subprocess.run([sys.executable, checker.__file__, *files], capture_output=True, text=True, check=False)
        assert ran.returncode == 0 and ran.stdout.startswith("proven: "), ran.stdout + ran.stderr


@pytest.mark.parametrize("listed", [True, False])
def test_nothing_was_avoidable_only_on_as_many_gpus_as_are_known(tmp_path: Path, listed: bool) -> None:
    """Jobs one after another: without a list of nodes the cluster may have had more GPUs than were busy."""
    rows = [f"{k}|2026-03-02T08:00:00|2026-03-02T{8 + k:02}:00:00|2026-03-02T{9 + k:02}:00:00" for k in range(3)]
    head = "JobID|Submit|Start|End|State|AllocTRES|NodeList\n"
    (tmp_path / "log").write_text(head + "".join(f"{row}|COMPLETED|gres/gpu=1|n1\n" for row in rows))
    (tmp_path / "nodes").write_text("NodeName=n1 CPUTot=8 RealMemory=1000 Gres=gpu:1 State=IDLE Partitions=gpu\n")
    found = audit(tmp_path / "log", tmp_path / "nodes" if listed else None, methods=["fifo"])
    line = found.to_text().replace("\n  ", " ").splitlines()[0]
    assert "nothing was avoidable" in line
    assert ("if the cluster had no more GPUs than were busy at once" in line) is not listed
    assert found.verdict.endswith("at once") is not listed


def test_a_further_attempt_is_told_without_the_id_of_a_job_that_is_not_there(tmp_path: Path) -> None:
    row = "8|2026-03-02T08:0{0}:00|2026-03-02T08:1{0}:00|2026-03-02T09:1{0}:00|COMPLETED|gres/gpu=1|n1\n"
    head = "JobID|Submit|Start|End|State|AllocTRES|NodeList\n"
    (tmp_path / "log").write_text(head + row.format(0) + row.format(1))
    assert "41" not in next(note for note in audit(tmp_path / "log", methods=["fifo"]).notes if "attempt" in note)


def test_a_limit_is_rounded_down_and_what_was_reached_up() -> None:
    assert share(0.7339, 0.8025) == "at least 73%, at most 81%"
    assert share(0.29, 0.29) == "at least 29%, at most 29%"  # 0.29 * 100 is 28.999999999999996
    assert share(-0.2, 0.004) == "nothing" and share(-0.2, 0.006) == "at least 0%, at most 1%"
    assert span_of(3.9, 7.1) == "3 to 8 s" and span_of(3.9) == "3.9 s" and span_of(0.0, 0.31) == "0 to 0.31 s"
    assert span_of(0.0449, 0.311) == "0.044 to 0.32 s" and span_of(2.0, 2.0) == "2 s"
    assert span_of(7199.0, 30000.0) == "1 to 9 h"


def test_a_share_told_of_the_world_contains_the_exact_one() -> None:
    for k in range(2001):
        low, high = outward(k / 2000, k / 2000)
        assert int(low[:-1]) * 20 <= k <= int(high[:-1]) * 20


NODE = "NodeName={} CPUTot=8 RealMemory=1000 Gres=gpu:8 State={} Partitions=gpu\n"
OUT = "out of service in the list (down, drained or cordoned)"


def out_of_service(folder: Path, states: dict[str, str], wide: int = 16, **settings: object) -> Audit:
    """Two jobs on two nodes at 8:00, one on both nodes at 9:00, one on one node at 10:00; all submitted by 8:01."""
    rows = [
        ("1", 0, 8, 9, 8, "n1"),
        ("2", 0, 8, 9, 8, "n3"),
        ("3", 0, 9, 10, wide, "n[1,3]"),
        ("4", 1, 10, 11, 8, "n1"),
    ]
    text = "".join(
        f"{name}|2026-11-02T08:0{minute}:00|2026-11-02T{begin:02}:00:00|2026-11-02T{end:02}:00:00|COMPLETED"
        f"|gres/gpu={gpus}|{node}\n"
        for name, minute, begin, end, gpus, node in rows
    )
    (folder / "log").write_text("JobID|Submit|Start|End|State|AllocTRES|NodeList\n" + text)
    (folder / "nodes").write_text("".join(NODE.format(*one) for one in states.items()))
    found: Audit = audit(folder / "log", folder / "nodes", **({"time_limit": 60.0} | settings))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("state", ["DOWN+DRAIN", "DOWN*", "IDLE+DRAIN", "IDLE*", "FUTURE", "MIXED+MAINT"])
def test_a_node_that_is_out_of_service_now_is_told_in_the_line_and_used_by_no_schedule(
    tmp_path: Path, state: str
) -> None:
    found = out_of_service(tmp_path, {"n1": "IDLE", "n2": state, "n3": "ALLOCATED"})
    assert "at least 0%" in found.verdict and found.verdict.endswith(f"; but 1 node {OUT} counts as capacity")
    assert {node for row in found.sides[0].rows for held in row.places or () for node in held} == {"n1", "n3"}
    best = min(row.objective or 0 for row in found.sides[0].rows)
    assert best == pytest.approx(found.sides[0].recorded.objective)  # type: ignore[union-attr]
    assert found.sides[0].bound is not None and found.sides[0].bound < best  # the limit has n2
    calm = out_of_service(tmp_path, {"n1": "IDLE", "n2": state, "n3": "IDLE"}, 8, methods=["fifo"])
    assert calm.verdict.startswith("no queue ever formed") and calm.verdict.endswith(f"{OUT} counts as capacity")
    more = out_of_service(tmp_path, {"n1": "IDLE", "n2": state, "n3": "IDLE"}, cluster=["+8"], methods=["fifo"])
    assert any("more" in held for row in more.sides[1].rows for held in row.places or ())


@pytest.mark.parametrize("state", ["IDLE", "MIXED", "POWERED_DOWN", "IDLE+CLOUD+POWERED_DOWN", "COMPLETING", "PLANNED"])
def test_a_node_in_service_is_used(tmp_path: Path, state: str) -> None:
    found = out_of_service(tmp_path, {"n1": "IDLE", "n2": state, "n3": "IDLE"}, methods=["sjf"])
    assert OUT not in found.verdict
    assert {node for row in found.sides[0].rows for held in row.places or () for node in held} == {"n1", "n2", "n3"}


def test_a_node_on_which_jobs_ran_is_used_though_it_is_drained_now(tmp_path: Path) -> None:
    found = out_of_service(tmp_path, {"n1": "DRAINED", "n3": "DOWN*+DRAIN"}, methods=["sjf"])
    assert found.verdict.endswith(f"; but 2 nodes {OUT} count as capacity") and "avoidable" in found.verdict
    assert found.sides[0].recorded is not None and "out of service in the list" in " ".join(found.notes)


def test_states_of_sinfo_and_cordoned_nodes_are_read(tmp_path: Path) -> None:
    (tmp_path / "sinfo").write_text("NODELIST|GRES|STATE\nn1|gpu:8|idle\nn2|gpu:8|drng\nn3|gpu:8|mix*\n")
    assert [server.out for server in read_servers(tmp_path / "sinfo", Notes())] == [False, True, True]
    status = {"allocatable": {"nvidia.com/gpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}
    ill = status | {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    specs = [({}, status), ({"unschedulable": True}, status), ({}, ill), ({}, {"allocatable": status["allocatable"]})]
    items = [
        {"kind": "Node", "metadata": {"name": f"n{k}"}, "spec": spec, "status": said}
        for k, (spec, said) in enumerate(specs)
    ]
    (tmp_path / "nodes.json").write_text(json.dumps({"items": items}))
    assert [server.out for server in read_servers(tmp_path / "nodes.json", Notes())] == [False, True, True, False]

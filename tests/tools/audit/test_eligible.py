"""Jobs that became eligible after they were submitted: no schedule and no limit knows them earlier."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from schedgap import audit
from schedgap.benchmarks.importers.traces import TraceJob
from schedgap.solvers.certificates import checker
from schedgap.tools.audit.page import audit_page
from schedgap.tools.audit.policies import POLICIES
from schedgap.tools.audit.record import from_eligible
from schedgap.tools.audit.result import Audit

HEAD = "JobID|Submit|Eligible|Start|End|State|AllocTRES|NodeList\n"
LATER = "became eligible only after submission (a start time, another job or a hold)"


def clock(minutes: float | str) -> str:
    if isinstance(minutes, str):
        return minutes
    return f"2026-11-{2 + int(minutes // 1440):02}T{int(minutes // 60 % 24):02}:{int(minutes % 60):02}:00"


Rows = Sequence[tuple[str, float, float | str, float, float, int]]
"""Id, minutes of submission, of eligibility (or what stands there), of start and of end, and GPUs."""


def log(folder: Path, rows: Rows, column: bool = True, gpus: int = 8, **settings: object) -> Audit:
    lines = []
    for name, submit, eligible, start, end, amount in rows:
        times = [submit, *([eligible] if column else []), start, end]
        lines.append("|".join([name, *map(clock, times), "COMPLETED", f"gres/gpu={amount}", "n1"]))
    (folder / "log").write_text((HEAD if column else HEAD.replace("Eligible|", "")) + "\n".join(lines) + "\n")
    (folder / "nodes").write_text(f"NodeName=n1 CPUTot=8 RealMemory=1000 Gres=gpu:{gpus} State=IDLE Partitions=gpu\n")
    found: Audit = audit(folder / "log", folder / "nodes", **({"time_limit": 60.0} | settings))  # type: ignore[arg-type]
    return found


DEFERRED: Rows = [("1", 0, 0, 0, 60, 8), ("2", 10, 10, 60, 120, 8), ("3", 0, 600, 600, 660, 8)]
"""One job really waits, for the whole cluster; the third was submitted with --begin."""


def test_a_job_with_a_start_time_cannot_begin_before(tmp_path: Path) -> None:
    found = log(tmp_path, DEFERRED, out=tmp_path / "out")
    gains, side = found.avoidable(found.sides[0]), found.sides[0]
    assert gains is not None and all(least == 0 and most < 0.005 for least, most in gains.values())
    assert side.recorded is not None and side.recorded.objective == pytest.approx(60 * (60 + 110 + 60) / 3)
    for row in side.rows:
        assert row.times is not None and row.times[1][2] >= 600 * 60, row.name
    text = found.to_text().replace("\n  ", " ")
    assert "nothing was avoidable" in text and f"1 job {LATER}" in text and "at least 57%" not in text
    assert "every schedule takes the moment of the log, and the time before does not count" in text
    told = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert told["eligible_later"] == 1 and LATER in told["verdict"] and LATER in audit_page(found)
    for name in ("mean", "weighted"):
        files = [str(tmp_path / "out" / f"limit-{name}.{end}") for end in ("json", "cert")]
        assert {job["arrival"] for job in json.loads(Path(files[0]).read_text())["jobs"]} & {36_000, 36_001}
        ran = subprocess.run([sys.executable, checker.__file__, *files], capture_output=True, text=True, check=False)
        assert ran.returncode == 0 and ran.stdout.startswith("proven: "), ran.stdout + ran.stderr


def test_a_chain_of_jobs_that_wait_for_each_other(tmp_path: Path) -> None:
    """Only job c waits for GPUs, which a and b hold; d, e and f wait for another job or for a time."""
    rows: Rows = [("a", 0, 0, 0, 60, 8), ("b", 0, 0, 0, 60, 8), ("c", 5, 5, 60, 70, 8), ("d", 0, 60, 60, 120, 8)]
    found = log(tmp_path, [*rows, ("e", 0, 120, 120, 180, 8), ("f", 0, 600, 600, 660, 8)], gpus=16)
    gains = found.avoidable(found.sides[0])
    assert gains is not None and gains["jct"][0] == 0 and gains["jct"][1] < 0.12
    assert f"3 jobs {LATER}" in found.verdict


def test_without_the_column_the_assumption_is_told(tmp_path: Path) -> None:
    found = log(tmp_path, DEFERRED, column=False)
    note = next(note for note in found.notes if "Eligible" in note)
    assert note.startswith("the log does not say when 2 jobs that waited became eligible")
    assert note.endswith("none is taken to have waited for a start time, another job or a hold")
    assert found.late == 0 and LATER not in found.verdict
    assert not any("Eligible" in note for note in log(tmp_path, DEFERRED).notes)


@pytest.mark.parametrize("cell", ["Unknown", "", "None", 700, "2026-11-01T00:00:00"])
def test_what_is_no_moment_between_submission_and_start_is_not_known(tmp_path: Path, cell: float | str) -> None:
    found = log(tmp_path, [*DEFERRED[:2], ("3", 0, cell, 600, 660, 8)])
    assert found.late == 0 and any("when 1 job that waited became eligible" in note for note in found.notes)
    assert found.avoidable(found.sides[0]) == log(tmp_path, DEFERRED, column=False).avoidable(found.sides[0])


def test_attempts_of_a_requeued_job_and_tasks_of_an_array(tmp_path: Path) -> None:
    rows: Rows = [("1", 0, 0, 0, 60, 8), ("2", 0, 0, 60, 120, 8), ("1", 0, 62, 122, 240, 8)]
    found = log(tmp_path, [*rows, ("7_0", 0, 1, 250, 260, 4), ("7_1", 0, 1, 250, 260, 4)])
    by_id = {job.id: job.arrival for job in found.jobs}
    assert by_id == {"1": 0, "2": 0, "1~2": 62 * 60, "7_0": 60, "7_1": 60} and found.late == 3


def test_a_window_counts_those_that_are_in_it_and_orders_by_when_they_may_start(tmp_path: Path) -> None:
    found = log(tmp_path, DEFERRED, window="2")
    assert [job.id for job in found.jobs] == ["1", "2"] and found.late == 0 and LATER not in found.verdict


def test_the_answer_is_that_of_a_log_in_which_jobs_were_submitted_when_they_were_eligible(tmp_path: Path) -> None:
    """Record, policies, limits and figures, of thirty random logs."""
    for seed in range(30):
        draw = random.Random(seed)
        rows, free = list[tuple[str, float, float, float, float, int]](), [0.0, 0.0]
        for k in range(6):
            half, length = draw.randrange(2), draw.randrange(1, 30)
            submit = float(draw.randrange(40))
            eligible = submit + draw.choice([0, 0, draw.randrange(60)])
            start = max(eligible, free[half]) + draw.choice([0, draw.randrange(9)])
            free[half] = start + length
            rows.append((str(k), submit, eligible, start, free[half], draw.randrange(1, 5)))
        submitted: Rows = [(row[0], row[2], *row[2:]) for row in rows]
        both = [log(tmp_path, these, methods=list(POLICIES)) for these in (rows, submitted)]
        first, second = (json.loads(json.dumps(one.to_dict())) for one in both)
        assert first["eligible_later"] == sum(row[2] > row[1] for row in rows) and second["eligible_later"] == 0
        for told in (first, second):
            told["verdict"] = told["verdict"].split("; ")[0]
            told.pop("eligible_later"), told.pop("assumed")
            for row in told["sides"][0]["rows"]:
                row.pop("seconds")
        assert first == second, seed
        for row in both[0].sides[0].rows:
            assert row.times is not None
            zero = min(one[2] for one in rows)
            eligible_at = np.array([60 * (one[2] - zero) for one in rows])
            assert (row.times[1] >= eligible_at).all(), (seed, row.name)


def test_no_start_is_needed_to_be_eligible_later() -> None:
    job = TraceJob(1, "a", 1, arrival=1.0, eligible=9.0, duration=2.0)
    found, late, unknown = from_eligible([job, TraceJob(2, "b", 1)])
    assert [one.arrival for one in found] == [9.0, 0.0] and late == {"a"} and unknown == {"b"}

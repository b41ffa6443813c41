"""Logs as people have them: other shapes of sacct, other schedulers, and what is refused with what to do."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from schedgap.benchmarks.importers import import_instance
from schedgap.benchmarks.importers.traces import Trace, TraceJob, read_trace
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.tools.audit.run import detect, format_of

WORLD = Path(__file__).parents[1] / "data" / "world"
NAMES = "JobID|Submit|Start|End|State|AllocTRES|NodeList"
ROW = "1|2026-03-02T08:00:00|2026-03-02T08:10:00|2026-03-02T09:10:00|COMPLETED|gres/gpu=2|g1"
TWO = [(2, 60.0, 3660.0), (4, 3660.0, 5460.0)]
"""GPUs, start and end of the two jobs that several formats tell, from the first submission."""


def read(path: Path, names: tuple[str, ...] = ()) -> Trace:
    return read_trace(format_of(None, path, {}, names), [path], columns=names)


def written(folder: Path, text: str) -> Trace:
    path = folder / "log"
    path.write_text(text)
    return read(path)


def told(trace: Trace) -> list[tuple[int, float | None, float | None]]:
    return [(job.gpus, job.start, job.end) for job in trace.jobs]


@pytest.mark.parametrize("log", ["log-pbs.txt", "log-condor.json", "log.swf"])
def test_the_same_two_jobs_of_three_schedulers(log: str) -> None:
    trace = read(WORLD / log)
    assert told(trace) == TWO and [job.arrival for job in trace.jobs] == [0.0, 100.0]
    jct = [(job.end or 0) - job.arrival for job in trace.jobs]
    assert jct == [3660.0, 5360.0]
    if log != "log.swf":
        assert {job.nodes[0][0] for job in trace.jobs} == {"n1"}


@pytest.mark.parametrize(
    ("log", "gpus", "ends"),
    [
        ("sacct-delimiter.txt", [4, 2, 2, 2], None),
        ("sacct-latin1.txt", [2, 2, 2], None),
        ("sacct-elapsed.txt", [2, 2], [4200.0, 90600.0]),
        ("sacct-allocgres.txt", [2, 2], [4200.0, 4200.0]),
        ("sacct-limit-invalid.txt", [2, 2, 2, 2, 2, 2], None),
        ("sacct-mps.txt", [1, 2, 2], None),
    ],
)
def test_other_shapes_of_sacct(log: str, gpus: list[int], ends: list[float] | None) -> None:
    trace = read(WORLD / log)
    assert [job.gpus for job in trace.jobs] == gpus
    assert ends is None or [job.end for job in trace.jobs] == ends
    if log == "sacct-mps.txt":
        assert {why for why in trace.notes.left_out if "parts of GPUs" in why} == {
            "has parts of GPUs (gres/mps), which are not read",
            "has parts of GPUs (gres/shard), which are not read",
        }


def test_names_that_are_given_stand_for_the_line_that_is_not_there() -> None:
    path = WORLD / "sacct-noheader.txt"
    columns = "JobID,Partition,User,Submit,Eligible,Start,End,State,AllocTRES,ReqTRES,NodeList,Timelimit"
    trace = read(path, tuple(columns.split(",")))
    assert [(job.id, job.gpus) for job in trace.jobs] == [("1001", 4), ("1002", 2), ("1003", 2), ("1004", 2)]
    with pytest.raises(InputError, match=r"no line of names: leave out -n, or name them: audit --columns JobID"):
        read(path)
    with pytest.raises(InputError, match=r"names its columns itself: no names can be given"):
        read_trace(detect(WORLD / "log.swf"), [WORLD / "log.swf"], columns=("a", "b"))


def test_two_clusters_in_one_log_are_told_apart(tmp_path: Path) -> None:
    trace = read(WORLD / "sacct-two-clusters.txt")
    assert [(job.id, job.nodes[0][0]) for job in trace.jobs] == [("alpha/1001", "alpha/g1"), ("beta/1001", "beta/g1")]
    assert any("jobs of 2 clusters (alpha, beta)" in text for text in trace.notes.texts)
    alone = written(tmp_path, f"{NAMES}|Cluster\n{ROW}|alpha\n")
    assert [(job.id, job.nodes[0][0]) for job in alone.jobs] == [("1", "g1")]


def test_json_on_one_line_has_its_requeues() -> None:
    trace = read(WORLD / "sacct-requeued.json")
    path = WORLD / "sacct-requeued.json"
    assert path.read_text().count("\n") <= 1
    ids = [job.id for job in trace.jobs]
    assert "41212" in ids and "41212~2" in ids and len(set(ids)) == len(ids)


def test_a_log_that_tracks_no_gpu_says_which_setting(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no row has gres/gpu, so AccountingStorageTRES does not list it"):
        read(WORLD / "sacct-untracked.txt")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("JobID|Start|End|AllocTRES\n", r"no column with submissions \(Submit; .*sacct -a -X -P -D --format="),
        ("JobID|Submit|Start|AllocTRES\n", r"no column with ends \(End or Elapsed or ElapsedRaw; .*--format="),
        (
            "JobID|Submit|Start|End\n",
            r"no column with GPUs \(AllocTRES or ReqTRES or .*; .*--format=",
        ),
        ("JobID   Submit   Start\n------- -------\n", r"of fixed width, which cuts cells: write it with -P: sacct"),
    ],
)
def test_a_choice_of_columns_that_is_refused_names_what_is_missing(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        written(tmp_path, text + ROW + "\n")


def test_wide_output_is_refused_with_the_word() -> None:
    with pytest.raises(InputError, match="write it with -P: sacct -a -X -P -D"):
        read(WORLD / "sacct-wide.txt")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"jobs": [{"t_submit": 1}]}', "Flux's listing is not read"),
        ('{"nb_res": 4, "jobs": [], "profiles": {}}', "Batsim's workload is not read"),
        ("job_id,workload_name,profile,submission_time,requested_number_of_resources\n", "Batsim's jobs are not read"),
    ],
)
def test_schedulers_that_are_not_read_are_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        detect(path)


def job(trace: Trace) -> TraceJob:
    assert len(trace.jobs) == 1
    return trace.jobs[0]


def test_lines_broken_in_a_comment_are_joined_and_bars_in_it_too(tmp_path: Path) -> None:
    names = NAMES.replace("JobID|", "JobID|Comment|")
    broken = ROW.replace("1|", "1|first\nsecond | with a bar|", 1)
    trace = written(tmp_path, f"{names}\n{broken}\n{ROW.replace('1|', '2|plain|', 1)}\n")
    assert [one.id for one in trace.jobs] == ["1", "2"] and not trace.notes.left_out


def test_further_choices_of_columns(tmp_path: Path) -> None:
    raw = written(tmp_path, NAMES.replace("JobID", "JobIDRaw") + "\n" + ROW + "\n")
    assert job(raw).id == "1"
    asked = written(tmp_path, NAMES.replace("AllocTRES", "ReqTRES") + "\n" + ROW + "\n")
    assert job(asked).gpus == 2
    seconds = written(
        tmp_path, NAMES.replace("End", "ElapsedRaw") + "\n" + ROW.replace("2026-03-02T09:10:00", "3600") + "\n"
    )
    assert job(seconds).end == job(raw).end
    running = ROW.replace("2026-03-02T09:10:00", "3600").replace("COMPLETED", "RUNNING") + "\n"
    with pytest.raises(InputError, match="has not ended"):
        written(tmp_path, NAMES.replace("End", "ElapsedRaw") + "\n" + running)
    for delimiter in ("\t", ";", "^", "|#"):
        assert job(written(tmp_path, f"{NAMES}\n{ROW}\n".replace("|", delimiter))).gpus == 2
    slices = written(tmp_path, f"{NAMES}\n{ROW.replace('gres/gpu=2', 'gres/gpu:1g.5gb=2')}\n")
    assert (job(slices).gpus, job(slices).kind) == (2, "1g.5gb")
    (tmp_path / "log.gz").write_bytes(gzip.compress(f"{NAMES}\n{ROW}\n".encode()))
    assert job(read(tmp_path / "log.gz")).gpus == 2
    (tmp_path / "cut.gz").write_bytes(gzip.compress(f"{NAMES}\n{ROW}\n".encode())[:-9])
    with pytest.raises(InputError, match="not the whole of a file of gzip"):
        read(tmp_path / "cut.gz")


def test_parts_of_a_heterogeneous_job_are_one_job(tmp_path: Path) -> None:
    rows = [ROW.replace("1|", "7+0|", 1), ROW.replace("1|", "7+1|", 1).replace("g1", "g2").replace("gpu=2", "gpu=4")]
    whole = job(written(tmp_path, "\n".join([NAMES, *rows]) + "\n"))
    assert (whole.id, whole.gpus, whole.nodes) == ("7", 6, (("g1", 2), ("g2", 4)))
    apart = [rows[0], rows[1].replace("T09:10", "T09:20")]
    assert [one.id for one in written(tmp_path, "\n".join([NAMES, *apart]) + "\n").jobs] == ["7+0", "7+1"]


def test_dates_with_dots_and_slashes(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("g;in;from;to\n2;05.10.2026 06:01;2026/10/05 06:02:00;05.10.2026 07:02:00\n")
    columns = {"gpus": "g", "arrival": "in", "start": "from", "end": "to"}
    trace = read_trace(format_of("csv", tmp_path / "log.csv", columns), [tmp_path / "log.csv"])
    assert (job(trace).start, job(trace).end) == (60.0, 3660.0)
    (tmp_path / "log.csv").write_text("g;in;from;to\n2;05/10/2026 06:01;1;2\n")  # May or October
    with pytest.raises(InputError, match="must be seconds or a date and time"):
        read_trace(format_of("csv", tmp_path / "log.csv", columns), [tmp_path / "log.csv"])


def test_pbs_as_torque_writes_it_and_gpus_by_chunk(tmp_path: Path) -> None:
    begin = "03/02/2026 09:00:00;E;7.srv;user=u queue=gpu ctime=100 qtime=100 etime=100 start=160 "
    torque = (
        begin + "exec_host=n1/0+n1/1+n2/0 Resource_List.nodes=2:ppn=2:gpus=3 Resource_List.walltime=01:00:00 end=460\n"
    )
    one = job(written(tmp_path, torque))
    assert (one.gpus, one.start, one.end, one.nodes) == (6, 60.0, 360.0, (("n1", None), ("n2", None)))
    chunks = begin + "exec_vnode=(n1:ncpus=8:ngpus=4)+(n2[0]:ngpus=1+n2[1]:ngpus=1) Resource_List.select=x end=460\n"
    one = job(written(tmp_path, chunks))
    assert (one.gpus, one.nodes, one.limit) == (6, (("n1", 4), ("n2", 2)), None)


def test_lsf_and_the_table_of_jobs_of_slurm(tmp_path: Path) -> None:
    finish = (
        '"JOB_FINISH" "10.1" 1460 77 500 33554434 8 1000 0 0 1060 "u" "gpu" "rusage[ngpus_physical=2.00]" "" "" "fr" '
        '"dir" "" "out" "" "0.77" 1 "any" 2 "4*h1" "h2" 64 12.5 "name" "cmd" 0.1 0.1'
    )
    one = job(written(tmp_path, finish + "\n"))
    assert (one.id, one.gpus, one.nodes) == ("77", 4, (("h1", 2), ("h2", 2)))
    assert (one.arrival, one.start, one.end, one.tenant) == (0.0, 60.0, 460.0, "gpu")
    head = "id_job,id_user,partition,nodelist,state,time_submit,time_eligible,time_start,time_end,tres_alloc\n"
    rows = '5,u,gpu,n[1-2],3,1000,1000,1060,1460,"1=16,2=4096,4=2,1001=4,1002=4"\n6,u,gpu,n1,4,1000,1000,0,1100,"1=1"\n'
    table = written(tmp_path, head + rows)
    one = job(table)
    assert (one.gpus, one.processors, one.state, [node for node, _ in one.nodes]) == (4, 16, "COMPLETED", ["n1", "n2"])
    assert table.notes.left_out == {"never started": 1}


def test_one_cell_of_a_billion_gpus_is_refused_before_any_list_is_made(tmp_path: Path) -> None:
    columns = {name: name for name in ("id", "gpus", "arrival", "start", "end")}
    log = WORLD / "audit-a-billion-gpus.csv"
    with pytest.raises(InputError, match="line 22: a job of 1,000,000,000 GPUs, at most 1,000,000"):
        read_trace(format_of("csv", log, columns), [log])
    with pytest.raises(InputError, match="line 3: a job of 1,000,000,000 GPUs"):
        import_instance(find_problem("gpu-sharing"), "philly", [WORLD / "import-a-billion-gpus.csv"])
    (tmp_path / "nodes").write_text("node,gpus\nn1,1000000000\n")
    (tmp_path / "log").write_text(f"{NAMES}\n{ROW}\n")
    with pytest.raises(InputError, match="nodes: more than 1,000,000 GPUs"):
        read_trace(detect(tmp_path / "log"), [tmp_path / "log", tmp_path / "nodes"])


MEGABYTE = 1_000_000


def hostile() -> dict[str, str]:
    """Texts of a megabyte that a careless reader takes long for."""
    row = f"{NAMES}\n{ROW}\n"
    wide = "|".join(["JobID", *(f"c{k}" for k in range(MEGABYTE // 8))])
    tres = "gres/gpu:" * (MEGABYTE // 9)
    return {
        "deep": "[" * MEGABYTE,
        "deep jobs": '{"jobs": ' + "[" * MEGABYTE,
        "wide": f"{wide}\n{wide}\n",
        "bars": f"{NAMES.replace('State', 'State|Comment')}\n" + "|" * MEGABYTE + "\n",
        "repeated keys": '{"jobs": [{' + ",".join('"time": {}' for _ in range(MEGABYTE // 11)) + "}]}",
        "long number": '{"jobs": [' + "9" * MEGABYTE + "]}",
        "long name": row + ROW.replace("1|", "1" * MEGABYTE + "|", 1) + "\n",
        "long tres": f"{NAMES}\n" + ROW.replace("gres/gpu=2", tres) + "\n",
        "hosts": f"{NAMES}\n" + "\n".join(ROW.replace("g1", "g[1-99999]") for _ in range(MEGABYTE // 100)) + "\n",
        "brackets": f"{NAMES}\n" + ROW.replace("g1", "[" * MEGABYTE) + "\n",
        "short rows": f"{NAMES}\n" + "1|2\n" * (MEGABYTE // 4),
        "pbs": "03/02/2026 09:00:00;E;1.srv;" + "a" * (MEGABYTE - 100) + "\n",
        "pbs pieces": "03/02/2026 09:00:00;E;1.srv;" + "a= " * (MEGABYTE // 3) + "\n",
        "lsf": '"JOB_FINISH" "10.1" 1460 ' + "rusage[" * (MEGABYTE // 7) + "\n",
        "lsf quotes": '"JOB_FINISH" "10.1" 1460 ' + '"' * (MEGABYTE - 101) + "\n",
        "swf": "1 " * 17 + "9" * MEGABYTE + "\n",
        "counts": f"{NAMES}\n"
        + "".join(
            ROW.replace("1|", f"{k}|", 1).replace("gpu=2", "gpu=1000000000") + "\n" for k in range(MEGABYTE // 100)
        ),
        "condor": "[" + ",".join('{"ClusterId": 1}' for _ in range(MEGABYTE // 17)) + "]",
    }


_READ_ALL = """
import re, sys
from pathlib import Path
from schedgap.tools.audit.run import format_of
from schedgap.benchmarks.importers.traces import read_trace
from schedgap.formulations.common.errors import InputError
for path in sys.argv[1:]:
    try:
        read_trace(format_of(None, path, {}), [path])
    except InputError:
        pass
print(re.search(r"VmHWM:\\s*([0-9]+)", Path("/proc/self/status").read_text())[1])
"""
"""Its own memory in kB at most; what rusage tells begins with that of the process that started it."""
SECONDS = 6.0
"""Seconds of a processor: thrice those of an idle machine, so that a busy one fails nothing."""


def test_hostile_logs_take_less_than_a_gigabyte(tmp_path: Path) -> None:
    paths = []
    for name, text in hostile().items():
        paths.append(tmp_path / name)
        paths[-1].write_text(text)
    run = [sys.executable, "-c", _READ_ALL, *map(str, paths)]
    kilobytes = int(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    assert kilobytes < 2**20


@pytest.mark.parametrize("name", hostile())
def test_a_hostile_log_of_a_megabyte_takes_two_seconds_at_most_then_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / "log"
    path.write_text(hostile()[name])
    began = time.process_time()
    try:
        trace = read(path)
    except InputError as error:
        assert "\n" not in str(error) and len(str(error)) < 1000
    else:
        assert json.dumps(trace.notes.texts)
    assert time.process_time() - began < SECONDS

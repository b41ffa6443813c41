"""Logs of Slurm, Kubernetes and Chronus, with the record of what really ran; forty bad logs, each one clear line."""

import json
from pathlib import Path

import pytest

from schedgap.benchmarks.importers import import_instance
from schedgap.benchmarks.importers.cells import host_names
from schedgap.benchmarks.importers.formats import CHRONUS, HELIOS, KUBERNETES, OPENB, SLURM, TRACES
from schedgap.benchmarks.importers.slurm import gres
from schedgap.benchmarks.importers.traces import Trace, read_trace, user_table
from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.cli.main import main
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.solvers.result import SolveOptions

FIELD = Path(__file__).parents[1] / "data" / "field"


def test_a_real_slurm_log_keeps_what_happened() -> None:
    trace = read_trace(SLURM, [FIELD / "sacct.txt", FIELD / "scontrol-nodes.txt"])
    assert [(server.id, server.gpus, server.kind) for server in trace.servers] == [
        *(("n1", 8, "v100"), ("n2", 8, "v100"), ("n3", 8, "a100"), ("n4", 8, "a100"))
    ]
    assert len(trace.jobs) == 463
    assert trace.notes.left_out == {"never started (CANCELLED)": 2}
    assert all(job.start is not None and job.end is not None and job.nodes for job in trace.jobs)
    job = next(job for job in trace.jobs if job.id == "17")
    assert (job.gpus, job.arrival, job.start, job.duration) == (8, 22.0, 61.0, 19.0)
    assert (job.asked, job.kind, job.state, job.tenant, job.user) == ("a100", "a100", "COMPLETED", "gpu", "root")
    assert job.nodes == (("n3", None),) and job.limit == 480.0
    wide = [job for job in trace.jobs if len(job.nodes) == 2]
    assert len(wide) == 20 and {len({node for node, _ in job.nodes}) for job in wide} == {2}
    sinfo = read_trace(SLURM, [FIELD / "sacct.txt", FIELD / "sinfo.txt"])
    assert [(s.id, s.gpus, s.kind) for s in sinfo.servers] == [(s.id, s.gpus, s.kind) for s in trace.servers]
    assert {(s.processors, s.memory, s.partitions) for s in trace.servers} == {(32, 2**20, ("gpu",))}


@pytest.mark.parametrize("version", ["22.05", "25.05"])
def test_the_json_of_old_and_new_data_parsers(version: str) -> None:
    trace = read_trace(SLURM, [FIELD / f"sacct-{version}.json"])
    if version == "22.05":
        table = read_trace(SLURM, [FIELD / "sacct.txt"], 6)
        kept = [(j.id, j.gpus, j.arrival, j.start, j.end, j.kind, j.asked, j.limit, j.nodes) for j in trace.jobs]
        assert kept == [
            (j.id, j.gpus, j.arrival, j.start, j.end, j.kind, j.asked, j.limit, j.nodes) for j in table.jobs
        ]
    else:
        assert {(job.gpus, job.kind) for job in trace.jobs} == {(1, "a100"), (1, "rtx8000"), (1, "v100")}
        reasons = {"has not ended": 4, "no GPU": 4, "never started (PENDING)": 1}
        assert trace.notes.left_out == reasons
        assert len(trace.jobs) + sum(reasons.values()) == len(
            json.loads((FIELD / "sacct-25.05.json").read_text())["jobs"]
        )


def test_pods_and_nodes_of_kubernetes(tmp_path: Path) -> None:
    trace = read_trace(KUBERNETES, [FIELD / "kubectl.json"])
    assert [(server.id, server.gpus, server.kind) for server in trace.servers] == [
        ("gpu-1", 8, "A100"),
        ("gpu-2", 4, "T4"),
    ]
    assert trace.notes.left_out == {
        **{"has not ended": 1, "was never scheduled": 1, "no GPU": 1, "is a Node, no pod": 3}
    }
    job = next(job for job in trace.jobs if job.id == "speech/train-d")
    assert (job.gpus, job.arrival, job.start, job.duration, job.limit) == (8, 180.0, 2402.0, 898.0, 3600.0)
    assert (job.tenant, job.asked, job.state, job.nodes) == ("speech", "A100", "Succeeded", (("gpu-1", None),))
    whole = json.loads((FIELD / "kubectl.json").read_text())
    for kind, name in (("Pod", "pods"), ("Node", "nodes")):
        part = {**whole, "items": [item for item in whole["items"] if item["kind"] == kind]}
        (tmp_path / name).write_text(json.dumps(part))
    apart = read_trace(KUBERNETES, [tmp_path / "pods", tmp_path / "nodes"])
    assert apart.servers == trace.servers and [job.id for job in apart.jobs] == [job.id for job in trace.jobs]


def test_an_attempt_after_a_requeue_is_a_job_of_its_own(tmp_path: Path) -> None:
    lines = (FIELD / "sacct.txt").read_text().splitlines()[:3]
    again = lines[1].replace("2026-11-23T17:57:2", "2026-11-23T17:58:2")
    (tmp_path / "log").write_text("\n".join([*lines, again, lines[1].replace("1|1|", "1.batch|1.batch|", 1)]) + "\n")
    trace = read_trace(SLURM, [tmp_path / "log"])
    assert [job.id for job in trace.jobs] == ["1", "2", "1~2"]
    assert trace.notes.left_out == {"is a step of a job, no job (sacct -X leaves them out)": 1}


def test_names_of_hosts_and_lists_of_gpus() -> None:
    assert host_names("n[1-2,05],m3") == ["n1", "n2", "n05", "m3"]
    assert host_names("gpu-a[09-11]x") == ["gpu-a09x", "gpu-a10x", "gpu-a11x"]
    assert host_names("r[1-2]n[3-4]") == ["r1n3", "r1n4", "r2n3", "r2n4"]
    assert gres("gpu:v100:8(S:0-1),craynetwork:4") == (8, "v100")
    assert gres("gpu:2") == (2, None) and gres("") == (0, None)
    assert gres("gpu:a100:4(S:0),gpu:v100:4(S:1)") == (8, None)
    assert gres("gpu:3090:8") == (8, "3090") and gres("gpu:2080ti:8(S:0-1)") == (8, "2080ti")
    assert gres("gpu:1g.10gb:7") == (7, "1g.10gb") and gres("gpu:4(S:0,2),mps:400") == (4, None)
    assert gres("gpu:a100:no_consume:4") == (4, "a100") and gres("gpu:no_consume:4(S:0)") == (4, None)
    assert gres("gpu:3090:no_consume:4,gpu:3090:no_consume") == (5, "3090")
    assert gres("gpu:a100") == (1, "a100") and gres("gpu") == (1, None) and gres("craynetwork:4") == (0, None)


def test_other_formats_keep_their_record(tmp_path: Path) -> None:
    rows = [
        (
            OPENB,
            "name,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
            "p,1,1000,,LS,Running,5,90,20\n",
        ),
        (
            HELIOS,
            "job_id,user,vc,gpu_num,state,submit_time,start_time,end_time,duration\n"
            "p,u,LS,1,DONE,2020-06-09 18:41:05,2020-06-09 18:41:20,2020-06-09 18:42:30,70\n",
        ),
    ]
    for form, text in rows:
        (tmp_path / "log").write_text(text)
        (job,) = read_trace(form, [tmp_path / "log"]).jobs
        assert (job.arrival, job.start, job.end, job.duration, job.tenant) == (0.0, 15.0, 85.0, 70.0, "LS")
    (tmp_path / "log").write_text("job_id,user,num_gpu,submit_time,model_name,duration\n0,vc_a,2,10,vgg16,3\n")
    (job,) = read_trace(CHRONUS, [tmp_path / "log"]).jobs
    assert (job.duration, job.tenant, job.start) == (180.0, "vc_a", None)


def test_a_table_with_bars_decimal_commas_and_a_record(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("id|g|in|from|to|at|who\na|2,0|0,5|1,5|9,5|n[1-2]|x\nb|1|3|||n1|y\n")
    columns = {"id": "id", "gpus": "g", "arrival": "in", "start": "from", "end": "to", "nodes": "at", "tenant": "who"}
    trace = read_trace(user_table(columns), [tmp_path / "log"])
    (job,) = trace.jobs
    assert (job.gpus, job.duration, job.start, job.tenant) == (2, 8.0, 1.0, "x")
    assert job.nodes == (("n1", None), ("n2", None))
    assert trace.notes.left_out == {"has no start or no end": 1}


def test_a_time_scale_is_one_of_all_times(tmp_path: Path) -> None:
    whole = read_trace(SLURM, [FIELD / "sacct.txt"], 50)
    half = read_trace(SLURM, [FIELD / "sacct.txt"], 50, time_scale=0.5)
    for job, other in zip(whole.jobs, half.jobs, strict=True):
        assert job.duration is not None and job.start is not None
        assert (other.arrival, other.duration, other.start) == (job.arrival / 2, job.duration / 2, job.start / 2)
        assert other.limit == (None if job.limit is None else job.limit / 2)


def test_sharing_is_off_where_the_log_knows_no_interference() -> None:
    def imported(**settings: object) -> tuple[GpuSharingInstance, str]:
        files = [FIELD / "sacct.txt", FIELD / "sinfo.txt"]
        made, told = import_instance(find_problem("gpu-sharing"), "slurm", files, settings={"jobs": 30, **settings})
        assert isinstance(made, GpuSharingInstance)
        return made, "\n".join(told)

    alone, told = imported()
    assert alone.max_jobs_per_gpu == 1 and "each has its GPUs to itself (share=yes" in told
    assert imported(share=True)[0].max_jobs_per_gpu == 2
    shared, told = imported(xi=1.5)
    assert shared.max_jobs_per_gpu == 2 and "interference is 1.5 for every pair" in told


def test_the_horizon_of_an_imported_log_cuts_no_heuristic() -> None:
    problem = find_problem("rar-ddls")
    for first in ("rings", "arrival"):
        files = [FIELD / "sacct.txt", FIELD / "sinfo.txt"]
        instance, _ = import_instance(problem, "slurm", files, settings={"jobs": 40, "first": first})
        for method in problem.heuristics():
            assert run_method(problem, instance, method, SolveOptions()).objective is not None, method.id


SACCT = "JobID|Submit|Start|End|State|AllocTRES|NodeList\n"
ROW = "{}|2026-01-01T00:00:00|2026-01-01T00:00:10|2026-01-01T00:01:00|COMPLETED|gres/gpu=2|n1\n"
OPENB_HEAD = "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
HELIOS_HEAD = "job_id,gpu_num,submit_time,duration,start_time,end_time\n"
TABLE = {"id": "id", "gpus": "g", "arrival": "in", "start": "from", "end": "to"}
NODES = "node,gpus\nn1,4\n"

BAD: dict[str, tuple[str, str, str | None, str]] = {
    "slurm: empty": ("slurm", "", None, "log: no jobs"),
    "slurm: names only": ("slurm", SACCT, None, "log: no jobs"),
    "slurm: not -P": (
        "slurm",
        "JobID    Submit\n1  2\n",
        None,
        "line 1: of fixed width, which cuts cells: write it with -P: sacct -a -X -P",
    ),
    "slurm: no GPUs asked of sacct": (
        "slurm",
        "JobID|Submit|Start|End|State\n1|1|1|2|C\n",
        None,
        "line 1: no column with GPUs (AllocTRES or ReqTRES or AllocGRES or ReqGRES; columns: JobID, ",
    ),
    "slurm: a column is there twice": (
        "slurm",
        "JobID|JobID\n1|1\n",
        None,
        "line 1: the column 'JobID' is there twice",
    ),
    "slurm: all pending": (
        "slurm",
        SACCT + "1|2026-01-01T00:00:00|Unknown|Unknown|PENDING||None assigned\n",
        None,
        "no jobs; 1 row left out: never started (PENDING) (line 2)",
    ),
    "slurm: all running": (
        "slurm",
        SACCT + ROW.format(1).replace("2026-01-01T00:01:00", "Unknown"),
        None,
        "left out: has not ended (line 2)",
    ),
    "slurm: no job with a GPU": (
        "slurm",
        SACCT + ROW.format(1).replace("gres/gpu=2", "cpu=4"),
        None,
        "left out: no GPU (line 2)",
    ),
    "slurm: a date that is none": (
        "slurm",
        SACCT + ROW.format(1).replace("2026-01-01T00:00:10", "2026-13-01T00:00:10"),
        None,
        "line 2: Start: must be a date and time such as 2020-06-09 18:41:01, got '2026-13-01T00:00:10'",
    ),
    "slurm: started before submitted": (
        "slurm",
        SACCT + ROW.format(1).replace("2026-01-01T00:00:00", "2026-01-01T08:00:00"),
        None,
        "line 2: started before it was submitted, by 28790 s (two clocks or zones?) (1 of 1 rows",
    ),
    "slurm: two clocks": (
        "slurm",
        SACCT + ROW.format(1).replace("2026-01-01T00:00:00", "500"),
        None,
        "started more than ten years after it was submitted, two clocks?",
    ),
    "slurm: ends before it starts": (
        "slurm",
        SACCT + ROW.format(1).replace("2026-01-01T00:01:00", "2026-01-01T00:00:01"),
        None,
        "ends before it starts",
    ),
    "slurm: cut": ("slurm", SACCT + ROW.format(1)[:40], None, "line 2: 7 columns expected, got 3"),
    "slurm: hosts that are none": (
        "slurm",
        SACCT + ROW.format(1).replace("n1", "n[1-x]"),
        None,
        "must be a list of hosts such as n[1-4],m7",
    ),
    "slurm: too many hosts": (
        "slurm",
        SACCT + ROW.format(1).replace("n1", "n[1-999999]"),
        None,
        "must be a list of hosts",
    ),
    "slurm: JSON cut": (
        "slurm",
        '{"jobs": [{"job_id": 1, "time": {',
        None,
        "line 1: not JSON, or the list does not end",
    ),
    "slurm: JSON without jobs": ("slurm", '{"nodes": []}', None, "line 1: not JSON with a list of jobs"),
    "slurm: JSON of squeue": ("slurm", '{"jobs": [{"job_id": 1, "job_state": "RUNNING"}]}', None, "no object 'time'"),
    "slurm: JSON of numbers": ("slurm", '{"jobs": [1, 2]}', None, "line 1: cannot be read, is not an object"),
    "helios: not UTF-8": ("helios", "job_id,\udce9", None, "line 1: not UTF-8 text"),
    "kubernetes: YAML": ("kubernetes", "apiVersion: v1\nitems:\n", None, "not JSON with a list of items"),
    "kubernetes: one pod": (
        "kubernetes",
        '{"kind": "Pod", "metadata": {"name": "a"}}',
        None,
        "not JSON with a list of items",
    ),
    "kubernetes: cut": ("kubernetes", '{"items": [{"kind": "Pod", "meta', None, "not JSON, or the list does not end"),
    "kubernetes: nodes only": (
        "kubernetes",
        '{"items": [{"kind": "Node", "metadata": {}}]}',
        None,
        "is a Node, no pod",
    ),
    "kubernetes: no metadata": (
        "kubernetes",
        '{"items": [{"kind": "Pod"}]}',
        None,
        "is no object of Kubernetes with metadata",
    ),
    "kubernetes: half a GPU": (
        "kubernetes",
        '{"items": [{"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"resources": '
        '{"limits": {"nvidia.com/gpu": "0.5"}}}]}}]}',
        None,
        "must be a whole number",
    ),
    "openb: negative times": (
        "openb",
        OPENB_HEAD + "p,1,1000,-5,9,1\n",
        None,
        "left out: has a negative time (line 2)",
    ),
    "openb: no capacity": (
        "openb",
        OPENB_HEAD + "p,1,1000,0,9,1\n",
        "sn,gpu,model\nn0,0,V100\n",
        "servers: no servers with GPUs",
    ),
    "openb: too large a job": (
        "openb",
        OPENB_HEAD + "p,8,1000,0,9,1\n",
        "sn,gpu,model\nn0,2,V100\n",
        "no job fits the 2 GPUs of 1 servers of 2",
    ),
    "openb: servers that are none": (
        "openb",
        OPENB_HEAD + "p,1,1000,0,9,1\n",
        "a,b\n1,2\n",
        "servers: line 1: not a known table of servers",
    ),
    "openb: servers cut": (
        "openb",
        OPENB_HEAD + "p,1,1000,0,9,1\n",
        "NodeName=n1 Arch=x86\n  CPUAlloc=0\n",
        "servers: line 1: node n1 has no Gres=",
    ),
    "openb: servers without GRES": (
        "openb",
        OPENB_HEAD + "p,1,1000,0,9,1\n",
        "NODELIST|GRES\nn1\n",
        "servers: line 2: not a node and its GRES",
    ),
    "helios: wrong columns": (
        "helios",
        "a,b,c\n1,2,3\n",
        None,
        "line 1: there is no column 'job_id' (columns: a, b, c)",
    ),
    "helios: lasts a negative time": (
        "helios",
        HELIOS_HEAD + "1,1,0,-5,0,5\n",
        None,
        "left out: lasts a negative time (line 2)",
    ),
    "helios: ids twice": (
        "helios",
        HELIOS_HEAD + "1,1,0,5,0,5\n" * 3,
        None,
        "line 3: its id is used twice, '1' is already that of line 2",
    ),
    "helios: words for numbers": (
        "helios",
        HELIOS_HEAD + "1,two,0,5,0,5\n",
        None,
        "line 2: gpu_num: must be a whole number",
    ),
    "csv: two clocks": (
        "csv",
        "id;g;in;from;to\na;1;2026-01-01 10:00:00;30;90\n",
        None,
        "started before it was submitted",
    ),
    "csv: no such column": (
        "csv",
        "id;g;in;from;till\na;1;1;3;9\n",
        None,
        "there is no column 'to' (columns: id, g, in, from, till)",
    ),
    "csv: thousands with commas": (
        "csv",
        "id;g;in;from;to\na;1;1;3;1,000.5\n",
        None,
        "line 2: to: must be seconds or a date and time such as 2020-06-09 18:41:01, got '1,000.5'",
    ),
    "csv: a node without its number": (
        "csv",
        "id;g;in;from;to\na;1;1;3;9\n",
        "node,gpus\nn1,many\n",
        "servers: line 2: gpus: must be a whole number",
    ),
    "csv: only negative ends": ("csv", "id;g;in;from;to\na;1;1;3;-9\n", None, "left out: has a negative time (line 2)"),
    "csv: NUL": ("csv", "id;g;in;from;to\na;1;1\0;3;9\n", None, "in: must be seconds or a date and time"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_log_is_one_clear_line(tmp_path: Path, name: str) -> None:
    form, text, servers, said = BAD[name]
    path = tmp_path / "log"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    files = [path]
    if servers is not None:
        files.append(tmp_path / "servers")
        files[1].write_text(servers)
    settings: dict[str, object] = dict(TABLE) if form == "csv" else {}
    with pytest.raises(InputError) as caught:
        import_instance(find_problem("gpu-sharing"), form, files, settings=settings)
    told = str(caught.value)
    assert said in told and "\n" not in told and str(tmp_path) in told and len(told) < 500


@pytest.mark.parametrize("name", [name for name in BAD if name != "openb: too large a job"])  # which an audit reports
def test_an_audit_of_a_bad_log_ends_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    form, text, servers, _ = BAD[name]
    (tmp_path / "log").write_bytes(text.encode("utf-8", "surrogateescape"))
    (tmp_path / "servers").write_text(NODES if servers is None else servers)
    named = [f"{key}={column}" for key, column in TABLE.items()] if form == "csv" else []
    files = [str(tmp_path / "log"), str(tmp_path / "servers")]
    status = main(["audit", *files, "--format", form, *(["--set", *named] if named else [])])
    told = capsys.readouterr()
    assert (status, told.out) == (2, "")
    last = told.err.strip().splitlines()[-1]
    assert str(tmp_path) in last and "Traceback" not in told.err, told.err


def test_there_are_forty_of_them() -> None:
    assert len(BAD) >= 40 and {name.split(":")[0] for name in BAD} <= {form.id for form in TRACES} | {"csv"}


def test_servers_of_a_plain_table(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(OPENB_HEAD + "p,1,1000,0,9,1\n")
    (tmp_path / "servers").write_text(NODES)
    trace: Trace = read_trace(OPENB, [tmp_path / "log", tmp_path / "servers"])
    assert trace.listed and [(server.id, server.gpus) for server in trace.servers] == [("n1", 4)]

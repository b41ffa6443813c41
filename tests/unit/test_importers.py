"""Job traces into problems: small files of every format, damaged copies of each, the real ones where they are."""

import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from schedgap.benchmarks.importers import import_instance
from schedgap.benchmarks.importers.formats import PHILLY, TRACES
from schedgap.benchmarks.importers.traces import read_trace
from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.registry import all_problems, find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.solvers.result import SolveOptions
from studies.robustness.samples import COLUMNS, FILES

REAL = Path(__file__).parents[2].parent / "shared" / "data"
PROBLEMS = ("rar-ddls", "hadar", "gpu-sharing", "ddl-cluster", "ddljs")


def make(path: Path, kind: str, problem: str, **settings: object) -> tuple[Instance, list[str]]:
    chosen = {**(COLUMNS if kind == "csv" else {}), **settings}
    return import_instance(find_problem(problem), kind.removesuffix("-log"), [path], settings=chosen)


@pytest.fixture(params=sorted(FILES))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def file(tmp_path: Path, kind: str) -> Path:
    path = tmp_path / "jobs.txt"
    path.write_text(FILES[kind])
    return path


def ids(instance: Instance) -> list[str]:
    return [job["id"] for job in instance.to_dict()["jobs"]]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_format_reaches_every_problem_and_can_be_scheduled(kind: str, file: Path, problem: str) -> None:
    instance, messages = (
        make(file, kind, problem, jobs=2, server_gpus=8) if kind == "csv" else make(file, kind, problem)
    )
    found = find_problem(problem)
    heuristic = found.heuristics()[0]
    result = run_method(found, instance, heuristic, SolveOptions())
    assert result.objective is not None, result
    assert messages
    assert len(set(ids(instance))) == len(ids(instance)) >= 2


def test_what_is_left_out_is_counted_by_line(tmp_path: Path) -> None:
    expected = {
        "helios": "1 row left out: no GPU (line 4)",
        "pai": "1 row left out: has no start or no end (line 3)",
        "openb": "1 row with a part of a GPU, taken as a whole one (line 3)",
        "philly-log": "1 row left out: has no start or no end (line 45)",
    }
    for name, text in expected.items():
        path = tmp_path / name
        path.write_text(FILES[name])
        assert text in make(path, name, "ddl-cluster")[1], name


def test_values_come_from_the_named_columns(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(FILES["csv"])
    instance, messages = make(path, "csv", "ddl-cluster", model="net", servers=3)
    jobs = {job["id"]: job for job in instance.to_dict()["jobs"]}
    assert [jobs[name]["arrival"] for name in "xz"] == [0.0, 0.0]
    assert jobs["z"]["iterations"] == round(86400 / (0.0358 + 0.0537))  # vgg16 of paper 001, on one server
    assert "y" in jobs and any(message.startswith("the file names no model: ") for message in messages)
    kept, _ = make(path, "csv", "ddl-cluster", keep="net=vgg16", unit="min")
    assert ids(kept) == ["z"]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_job_without_a_model_is_kept_and_one_without_gpus_is_told_by_its_column(tmp_path: Path, problem: str) -> None:
    """As a table without the column; the words are those that people write into such a cell."""
    path = tmp_path / "jobs.csv"
    path.write_text(
        "id;g;run;net\n" + "".join(f"j{k};1;2{k},5;{net}\n" for k, net in enumerate(NETS)) + "z;;20;vgg16\n"
    )
    columns = {"id": "id", "gpus": "g", "duration": "run", "model": "net", "unit": "min"}
    instance, messages = import_instance(find_problem(problem), "csv", [path], settings=columns)
    assert len(instance.to_dict()["jobs"]) == len(NETS)
    assert "1 row left out: g has no value where one is needed (line 8)" in messages
    told = [message for message in messages if message.startswith("the file names no model: profile ")]
    assert ["(5 jobs)" in message for message in told] == ([] if problem == "ddljs" else [True])  # which asks for none


NETS = ("vgg16", "unknown", "", "NA", "none", "-")


def test_a_message_is_one_line_whatever_the_file_holds(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(FILES["pollux"].replace(",cifar10,", ",cifar\u202810,"), encoding="utf-8")
    _, messages = make(path, "pollux", "rar-ddls")
    assert any("cifar\\u202810" in message for message in messages), messages
    assert all(len(message.splitlines()) == 1 for message in messages)


def test_a_clock_beyond_all_time_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(FILES["csv"].replace("01:02:03", "9" * 400 + ":02:03"))
    _, messages = make(path, "csv", "ddl-cluster", servers=3)
    assert any("must be seconds or a clock" in message for message in messages), messages


def test_hadar_gets_measured_rates_and_steps(tmp_path: Path) -> None:
    path = tmp_path / "some.trace"
    path.write_text(FILES["gavel"])
    data = make(path, "gavel", "hadar")[0].to_dict()
    assert [(job["epochs"], job["workers"]) for job in data["jobs"]] == [(9000, 2), (50000, 1), (800, 4)]
    assert data["jobs"][0]["throughput"]["v100"] == pytest.approx(94.25 / 2, rel=1e-4)
    assert {kind for machine in data["machines"] for kind in machine["gpus"]} == {"v100"}
    mixed = make(path, "gavel", "hadar", servers=3)[0].to_dict()
    assert {kind for machine in mixed["machines"] for kind in machine["gpus"]} == {"v100", "p100", "k80"}
    assert mixed["jobs"][1]["throughput"] == {"v100": 29.95, "p100": 35.83, "k80": 7.176}


def test_servers_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "pods").write_text(FILES["openb"])
    nodes = "sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,2,V100M32\nn1,1,1,0,\nn2,1,1,4,G2\nn3,1,1,1,P100\n"
    (tmp_path / "nodes").write_text(nodes)
    paths = [tmp_path / "pods", tmp_path / "nodes"]
    instance, messages = import_instance(find_problem("hadar"), "openb", paths)
    machines = [{"id": "n0", "gpus": {"v100": 2}}, {"id": "n3", "gpus": {"p100": 1}}]
    assert instance.to_dict()["machines"] == machines
    assert (
        "servers of G2 left out: no measured rates" in messages and "nodes: 1 row left out: no GPU (line 3)" in messages
    )
    tables = {
        "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node\n2,3,4,128": [4] * 6,
        "machine,gpu_type,cap_cpu,cap_mem,cap_gpu\nm1,V100,96,512,8\nm2,CPU,96,512,0\n": [8],
        "machineId,number of GPUs,single GPU mem\nm31,8, 24GB\nm32,2, 12GB\n": [8, 2],
        "ip,DSW,PSW,ASW\na,G,P,S\n": [8],
    }
    for text, sizes in tables.items():
        paths[1].write_text(text)
        made, _ = import_instance(find_problem("gpu-sharing"), "openb", paths)
        assert [server["gpus"] for server in made.to_dict()["servers"]] == sizes
    paths[1].write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="nodes: line 1: not a known table of servers"):
        import_instance(find_problem("gpu-sharing"), "openb", paths)


DAMAGES: dict[str, Callable[[bytes, str], bytes]] = {
    "cut": lambda data, sep: data[: 2 * len(data) // 3].rstrip(b"\n,;\t.0123456789"),
    "cut in the first line": lambda data, sep: data[:19],
    "empty": lambda data, sep: b"",
    "columns swapped": lambda data, sep: swapped(data, sep),
    "negative times": lambda data, sep: negative(data, sep),
    "ids used twice": lambda data, sep: data + b"\n" + data.rstrip(b"\n").splitlines()[-1] + b"\n",
    "UTF-16": lambda data, sep: data.decode().encode("utf-16"),
    "Latin-1": lambda data, sep: data.replace(b"\n", "\n\xe9".encode("latin-1"), 1) + b"\xe9",
    "a NUL": lambda data, sep: data[: len(data) // 2] + b"\0" + data[len(data) // 2 :],
    "a long cell": lambda data, sep: data + b"\n" + b"9" * 140_000 + b"\n",
    "a quote left open": lambda data, sep: data.replace(b"\n", b'\n"', 1),
    "lines doubled": lambda data, sep: data + b"\n" + data,
}


def swapped(data: bytes, sep: str) -> bytes:
    """The first two columns that differ in kind change places, but the names of the columns stay."""
    lines = [line.split(sep) for line in data.decode().splitlines()]
    if len(lines[0]) < 2:
        return data.replace(b"start_time", b"x").replace(b"end_time", b"start_time")
    middle = len(lines[0]) // 2
    return "\n".join(sep.join([*line[middle:], *line[:middle]]) for line in lines[1:] or lines).encode()


def negative(data: bytes, sep: str) -> bytes:
    """Every number but those of the first line is negative."""
    lines = data.decode().splitlines()
    changed = [sep.join(f"-{cell}" if cell[:1].isdigit() else cell for cell in line.split(sep)) for line in lines[1:]]
    return "\n".join([lines[0], *changed]).encode()


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_copies_give_one_line_or_counted_rows(kind: str, file: Path, damage: str) -> None:
    """Nothing but an InputError of one line that names the file, or a note that counts rows; never silence."""
    separator = {"gavel": "\t", "csv": ";"}.get(kind, ",")
    file.write_bytes(DAMAGES[damage](file.read_bytes(), separator))
    whole = file.with_name("whole.txt")
    whole.write_text(FILES[kind])
    clean = {problem: make(whole, kind, problem)[0].to_dict()["jobs"] for problem in PROBLEMS}
    for problem in PROBLEMS:
        try:
            instance, messages = make(file, kind, problem)
        except InputError as error:
            text = str(error)
            assert "\n" not in text and len(text) < 700 and str(file) in text, text
        else:
            same = instance.to_dict()["jobs"] == clean[problem]
            counted = any("row" in text and "line" in text for text in messages)
            without_ids = kind in ("gavel", "philly") and len(instance.to_dict()["jobs"]) > len(clean[problem])
            assert same or counted or without_ids or fewer(instance, clean[problem]), (damage, messages)


def fewer(instance: Instance, clean: list[object]) -> bool:
    """A file that ends between two rows cannot be told from a shorter one."""
    return len(instance.to_dict()["jobs"]) < len(clean)


def test_rows_that_cannot_be_read_are_counted_up_to_half_of_them(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    rows = [f"j{i},1,{100 + i},{i}" for i in range(9)]
    path.write_text("JobID,num_gpu,run_s,submit\n" + "\n".join([*rows, "j9,many,10,5", "j10,1,10", "j11,1,-4,5"]))
    instance, messages = make(path, "csv", "ddl-cluster")
    assert ids(instance) == [f"j{i}" for i in range(9)]
    assert messages[:3] == [
        "1 row left out: num_gpu: must be a whole number from 0 to 1000000000 (line 11)",
        "1 row left out: 4 columns expected (line 12)",
        "1 row left out: lasts a negative time (line 13)",
    ]
    cut = "1 row may be cut: the file does not end with the end of a line (line 13)"
    assert messages[3] == cut
    path.write_text(path.read_text() + "\n")
    assert cut not in make(path, "csv", "ddl-cluster")[1]
    path.write_text("JobID,num_gpu,run_s,submit\na,1,5,1\n" + "b,x,1,1\n" * 3)
    with pytest.raises(
        InputError, match=r"line 3: num_gpu: must be .*, got 'x' \(3 of 4 rows cannot be read or repeat an id\)"
    ):
        make(path, "csv", "ddl-cluster")
    path.write_text("JobID,num_gpu,run_s,submit\n" + "a,1,5,1\n" * 4)
    told = r"line 3: its id is used twice, 'a' is already that of line 2 \(3 of 4 rows cannot be read or repeat an id\)"
    with pytest.raises(InputError, match=told):
        make(path, "csv", "ddl-cluster", id="JobID")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gpus": None}, "--set must name the columns: gpus=..., and duration=... or iterations=..."),
        ({"gpus": "num_gpus"}, "line 1: there is no column 'num_gpus' (columns: JobID, num_gpu, "),
        ({"gpus": "num_gpus"}, "did you mean 'num_gpu'?"),
        ({"keep": "net"}, "option keep: must be column=value, got 'net'"),
        ({"keep": "net=none"}, "jobs.csv: no jobs"),
        ({"unit": "days"}, "option unit: must be one of s, ms, min, h"),
        ({"unit": "minutes"}, "got 'minutes'; did you mean 'min'?"),
        ({"profile": "gpt"}, "option profile: no profile 'gpt' (profiles: vgg16, resnet50, inception3, lstm)"),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, settings: dict[str, object], message: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(FILES["csv"])
    with pytest.raises(InputError) as caught:
        make(path, "csv", "ddl-cluster", **settings)
    assert message in str(caught.value)


def test_a_long_trace_takes_memory_for_the_jobs_that_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "philly.csv"
    with path.open("w") as file:
        file.write("timestamp,duration,num_gpus,gpu_time,cluster\n")
        for i in range(6_000):
            file.write(f"2017-10-{1 + i % 28:02} 07:{i % 60:02}:55,{100 + i % 977}.0,{1 << i % 4},0,a\n")
    tracemalloc.start()
    try:
        trace = read_trace(PHILLY, [path], 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(trace.jobs) == 20 and peak < 500_000
    assert max(job.arrival for job in trace.jobs) == 240.0


SETS: dict[str, list[list[str]]] = {
    "gavel": [[f"gavel/{name}.trace"] for name in ("103959", "small_test", "minimize_makespan")]
    + [["shockwave/220_dynamic.trace"]],
    "philly": [["philly/philly.csv"]],
    "openb": [["openb/openb_pod_list_default.csv", "openb/openb_node_list_gpu_node.csv"]],
    "pollux": [[f"pollux/workload-{k}.csv"] for k in (1, 2, 6)],
    "sia": [[f"sia/scale_{k}x-workload-1.csv"] for k in (8, 32)],
    "tiresias": [
        *(["tiresias/60_job.csv", f"tiresias/{name}.csv"] for name in ("n32g4", "n160g8", "cluster_spec")),
        ["tiresias/tf_job.csv", "lingjun/topo.csv"],
    ],
    "chronus": [["chronus/trace_job_Philly_MIX1.csv"]],
    "slurm": [
        ["slurm/sacct.txt", "slurm/scontrol-nodes.txt"],
        ["slurm/sacct.txt", "slurm/sinfo.txt"],
    ],
    "gml": [[f"topology/{name}.gml"] for name in ("Geant", "CSTNet", "Brain")],
    "clos": [["lingjun/topo.csv"]],
}
"""Every file in shared/data that describes jobs, clusters or networks, by the format that reads it."""
APART = {"gavel/simulation_throughputs.json", "contention/results.csv", "slurm/sacct.json"}
"""Measured rates and latencies, which have tests of their own, as the folders pollux/APPLICATION have."""
OF_SLURM = ("slurm/cluster/", "slurm/instance", "slurm/recorded", "slurm/squeue", "slurm/README")
"""How the log was made, and what follows from it."""
UNREAD = {"acme", "fgd", "kai", "kueue", "muri", "sarc", "spot"}
"""Folders of logs in forms that no importer reads yet."""


def test_real_files_reach_every_problem(tmp_path: Path) -> None:
    """An extract of each (the first 60 lines of a table; whole what tells where it ends) gives an instance.

    Of each problem that its format can feed.
    """
    if not REAL.exists():
        warnings.warn(f"no {REAL}: only self-made files are tested", stacklevel=2)
        return
    reached = {form: set[str]() for form in SETS}
    for name, sets in SETS.items():
        for files in sets:
            paths = [tmp_path / file.replace("/", "-") for file in files]
            for path, file in zip(paths, files, strict=True):
                lines = (REAL / file).read_text().splitlines(keepends=True)
                path.write_text("".join(lines if file.endswith((".gml", "scontrol-nodes.txt")) else lines[:60]))
            for problem in all_problems().values():
                if name not in {importer.id for importer in workload_of(problem).importers}:
                    continue
                instance, messages = import_instance(problem, name, paths, settings={"jobs": 15})
                assert (messages or name == "gavel") and 1 <= len(ids(instance)) <= 15, (name, problem)
                reached[name].add(problem.id)
    networks = {form: {"g-vne", "ddljs"} for form in ("gml", "clos")}
    assert reached == {**{form.id: set(PROBLEMS) for form in TRACES if form.id in SETS}, **networks}
    assert {form.id for form in TRACES} - set(SETS) == {
        "helios",
        "pai",
        "kubernetes",
        "pbs",
        "condor",
        "lsf",
        "swf",
        "slurm-table",
    }
    here = {str(path.relative_to(REAL)) for path in REAL.rglob("*.*") if path.is_file()}
    used = {file for sets in SETS.values() for files in sets for file in files}
    measured = {file for file in here if file.count("/") == 2 and file.startswith("pollux/")}
    here -= {file for file in here if file.split("/")[0] in UNREAD or file.startswith(OF_SLURM)}
    assert here - {"README.md"} - measured == used | APART


def test_duplicates_of_the_real_tiresias_table_are_counted() -> None:
    path = REAL / "tiresias" / "tf_job.csv"
    if path.exists():
        found = make(path, "tiresias", "ddl-cluster", gpus=16)
        assert len(ids(found[0])) == 1 and "1 row left out: its id is used twice (line 3)" in found[1]

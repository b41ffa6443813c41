"""Instances of files, those of imported logs too, wherever a suite or a family could stand."""

import json
from pathlib import Path

import pytest

from schedgap import bench, evaluate, hunt, import_trace, report, solve
from schedgap.cli.main import main
from schedgap.formulations.common.errors import InputError
from schedgap.tools.library.collection import faults, read
from schedgap.tools.library.records import library_submit

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first five jobs of a real Slurm log, as an instance in a file."""
    files = [DATA / "field" / "sacct.txt", DATA / "field" / "sinfo.txt"]
    instance, _ = import_trace("slurm", files, "gpu-sharing", jobs=5, slot_length=4.0)
    path = tmp_path_factory.mktemp("imported") / "slurm-5.json"
    path.write_text(instance.to_json())
    return path


def test_bench_of_files_and_its_report(tmp_path: Path, imported: Path) -> None:
    files = [str(imported), str(DATA / "gpu-sharing-share_00.json")]
    run = bench(files, methods=["fifo", "sjf"], out=tmp_path / "run", workers=1)
    rows = run.analysis.runs
    assert set(rows.suite) == {"files"} and set(rows.method) == {"cp", "fifo", "sjf"} and len(rows) == 6
    assert rows[rows.method == "cp"].status.eq("optimal").all() and run.exit_status == 0
    again = bench(files, methods=["fifo", "sjf"], out=tmp_path / "run", workers=1, resume=True)
    assert (again.ran, again.reused) == (0, 6)
    assert report(tmp_path / "run")[-1].name == "report.html"
    with pytest.raises(InputError, match="is of gpu-sharing, which --problem leaves out"):
        bench(files, problems=["hadar"], out=tmp_path / "other", workers=1)
    with pytest.raises(InputError, match=r"nowhere\.json"):
        bench(["nowhere.json"], out=tmp_path / "third", workers=1)


def test_a_scheduler_judged_on_files(tmp_path: Path, imported: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def late(instance, *, seed):\n"
        "    gpus = [[server.id, k] for server in instance.servers for k in range(server.gpus)]\n"
        "    start = {job.id: job.arrival + 1 for job in instance.jobs}  # a slot later than it could\n"
        "    given, first = {}, 0\n"
        "    for job in instance.jobs:\n"
        "        given[job.id] = gpus[first : first + job.gpus]\n"
        "        first += job.gpus\n"
        "    return {'start': start, 'gpus': given, 'accumulation': {job.id: 1 for job in instance.jobs}}\n"
    )
    card = evaluate(f"{tmp_path}/mine.py:late", "gpu-sharing", on=[imported], out=tmp_path / "card", workers=1)
    (trial,) = card.trials
    assert card.hunted is None and trial.family == json.loads(imported.read_text())["name"]
    assert (
        trial.objective is not None and trial.known.optimum is not None and trial.objective == trial.known.optimum + 1
    ), trial.message
    with pytest.raises(InputError, match="is of rar-ddls, not of gpu-sharing"):
        other = DATA / "rar-02-colocated-optimum.json"
        evaluate(f"{tmp_path}/mine.py:late", "gpu-sharing", on=[other], out=tmp_path / "other", workers=1)


def test_a_hunt_around_a_file(tmp_path: Path) -> None:
    path = DATA / "rar-02-colocated-optimum.json"
    found = hunt("rar-ddls/ff", around=path, limits={"evaluations": 60}, out=tmp_path / "hunt")
    assert found.worst is not None and found.value >= 1
    servers = len(json.loads(path.read_text())["servers"])
    assert len(found.worst.data["servers"]) <= max(6, 2 * servers)
    with pytest.raises(InputError, match="--around: the instance is of rar-ddls, not of gpu-sharing"):
        hunt("gpu-sharing/fifo", around=path, out=tmp_path / "other")


def test_an_imported_instance_is_submitted_with_its_terms(
    tmp_path: Path, imported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def submit(*arguments: str, name: str = "gpu-sharing/slurm-5", instance: Path = imported) -> tuple[int, str]:
        own = ["--library", str(tmp_path / "lib"), "--by", "A. N. Other"]
        status = main(["library", "submit", name, *arguments, "--instance", str(instance), *own])
        told = capsys.readouterr()
        return status, told.out + told.err

    schedule = tmp_path / "schedule.json"
    schedule.write_text(json.dumps(solve(imported, "sjf").solution))
    terms = ["--license", "CC-BY-4.0", "--cite", "The cluster's own log, 2026"]
    refused = {
        "needs --license and --cite": submit(str(schedule)),
        "its id is gpu-sharing/NAME": submit(str(schedule), *terms, name="hadar/slurm-5"),
        "a schedule or a certificate is needed": submit(*terms),
        "nowhere.json": submit(str(schedule), *terms, instance=tmp_path / "nowhere.json"),
        "id: must match pattern": submit(str(schedule), *terms, name="gpu-sharing/a b"),
    }
    for said, (status, told) in refused.items():
        assert status == 2 and said in told and "Traceback" not in told, told
    assert not (tmp_path / "lib").exists()
    status, told = submit(str(schedule), *terms)
    assert status == 0 and "improved" in told
    assert submit(str(schedule), *terms)[0] == submit(str(schedule), *terms, name="gpu-sharing/again")[0] == 2  # there
    assert not faults(read(tmp_path / "lib" / "gpu_sharing" / "slurm-5.json"))
    assert main(["library", "list", "--problem", "gpu-sharing", "--library", str(tmp_path / "lib")]) == 0
    listed = capsys.readouterr().out
    assert "gpu-sharing/slurm-5" in listed and "of imported logs" in listed and "CC-BY-4.0" in listed
    record = json.loads((tmp_path / "lib" / "gpu_sharing" / "slurm-5.json").read_text())["reference_record"]
    assert (record["kind"], record["license"], record["cite"]) == ("imported", terms[1], terms[3])
    assert record["made"] == {"file": "slurm-5.json"} and record["found"]["by"] == "A. N. Other"


def test_the_collection_takes_only_what_may_be_handed_on(imported: Path) -> None:
    for license in ("CC-BY-NC-4.0", "none given"):
        with pytest.raises(InputError, match=f"--license: the collection takes only .* got '{license}'"):
            library_submit("gpu-sharing/x", {}, by="me", instance=imported, license=license, cite="x")

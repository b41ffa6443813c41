"""Instances of files, those of imported logs too, wherever a suite or a family could stand."""

import json
from pathlib import Path

import pytest

from schedgap import bench, evaluate, hunt, import_trace, report
from schedgap.formulations.common.errors import InputError

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

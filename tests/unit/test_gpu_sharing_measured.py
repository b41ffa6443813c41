"""The fit of eq. (7), the Pollux files, the generators, the figure, the command line, and speed."""

import json
from pathlib import Path

import numpy as np
import pytest

from schedgap.benchmarks.figures.gpu_sharing import gantt
from schedgap.benchmarks.importers.formats import POLLUX as POLLUX_FORM
from schedgap.benchmarks.importers.traces import read_trace
from schedgap.benchmarks.instances.gpu_sharing.paper import physical, simulated
from schedgap.benchmarks.instances.gpu_sharing.random import contended, small, tiny
from schedgap.benchmarks.instances.profiles.iterations import IterationModel
from schedgap.benchmarks.instances.profiles.pollux_tasks import TASKS
from schedgap.cli.main import main
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.gpu_sharing.dynamics import iteration_time, tables
from schedgap.heuristics.gpu_sharing.preemptive import pollux
from schedgap.heuristics.gpu_sharing.sharing import sjf_bsbf
from studies.pollux_fit import (
    Measurements,
    fit_application,
    fit_iteration_model,
    read_measurements,
)
from studies.speed.gpu_sharing import decision_times, policy_times

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
POLLUX = ROOT.parent / "shared" / "data" / "pollux"
if not POLLUX.exists():
    POLLUX = ROOT.parent.parent / "shared" / "data" / "pollux"


def test_gpu_sharing_fit_recovers_a_known_model() -> None:
    truth = IterationModel(0.05, 0.002, (0.1, 0.01), (0.3, 0.005), 2.5)
    rows = [(n, k, b) for n, k in ((1, 1), (1, 2), (1, 4), (2, 4), (2, 8), (4, 16)) for b in (8, 16, 64, 256)]
    seconds = np.array([truth.seconds(*row) for row in rows])
    nodes, replicas, batch = (np.array(column) for column in zip(*rows, strict=True))
    found = fit_iteration_model(Measurements(nodes, replicas, batch, seconds))
    assert found.error < 1e-6
    assert found.overlap == pytest.approx(2.5, rel=1e-3)
    assert found.per_sample == pytest.approx(0.002, rel=1e-3)
    assert found.communication(1, 1) == 0.0
    assert found.communication(2, 8) == pytest.approx(0.33, rel=1e-3)


def test_gpu_sharing_fit_refuses_too_little_and_nonsense() -> None:
    one = np.array([1, 1, 1])
    with pytest.raises(InputError, match="at least 4"):
        fit_iteration_model(Measurements(one, one, one, one.astype(float)))
    four = np.array([1, 1, 1, 1])
    with pytest.raises(InputError, match="positive"):
        fit_iteration_model(Measurements(four, four, four, np.array([1.0, 1.0, np.nan, 1.0])))


def test_gpu_sharing_tasks_are_the_fit_of_the_measurements() -> None:
    """The built-in table against the published measurements, where they are."""
    if not POLLUX.exists():
        print(f"no measurements at {POLLUX}: the built-in table is only checked for its form")
        assert all(task.model.overlap >= 1 for task in TASKS.values())
        return
    for name, task in TASKS.items():
        found = fit_application(POLLUX / name)
        assert found.error < 0.14, name
        for nodes, replicas in ((1, 1), (1, 2), (1, 4), (2, 8), (4, 16)):
            expected = found.seconds(nodes, replicas, task.batch)
            assert task.model.seconds(nodes, replicas, task.batch) == pytest.approx(expected, rel=2e-3)
    weights = dict.fromkeys(TASKS, 0)
    for number in (1, 2, 6):
        for job in read_trace(POLLUX_FORM, [POLLUX / f"workload-{number}.csv"]).jobs:
            weights[str(job.model)] += 1
    assert weights == {name: task.weight for name, task in TASKS.items()}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "line 1: there is no column 'num_nodes'"),
        ("placement,local_bsz,step_time,sync_time\n10,4,0.1,0\n", "line 2: placement: must be digits"),
        ("placement,local_bsz,step_time,sync_time\n11,x,0.1,0\n", "line 2: local_bsz: must be a whole number"),
        ("placement,local_bsz,step_time,sync_time\n11,4,nan,0\n", "line 2: has no value where one is needed"),
        ("placement,local_bsz,step_time,sync_time\n11,4\n", "line 2: 4 columns expected, got 2"),
        ("num_nodes,num_replicas,local_bsz,step_time,sync_time\n3,2,4,0.1,0\n", "3 nodes for 2 replicas"),
    ],
)
def test_gpu_sharing_bad_measurements_are_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "m.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_measurements([path])
    assert words in str(error.value) and "m.csv" in str(error.value)


def test_gpu_sharing_generators_repeat_and_differ() -> None:
    for make in (tiny, contended, small, physical, simulated):
        assert make(3) == make(3)
        assert make(3) != make(4)
    assert [len(physical(0).jobs), len(simulated(0).jobs), len(simulated(0, jobs=480).jobs)] == [30, 240, 480]
    assert physical(0).total_gpus == 16 and simulated(0).total_gpus == 64
    large = sum(job.gpus in (12, 16) for job in physical(1).jobs)
    assert large == 10
    assert all(100 <= job.iterations <= 5000 for job in physical(1).jobs)
    injected = simulated(1, jobs=20, xi=1.5)
    assert {x for row in injected.interference.values() for x in row.values()} == {1.5}
    assert not simulated(1, jobs=20, xi=1.0).interference


def test_gpu_sharing_generated_iteration_times_are_the_fitted_ones() -> None:
    for job in simulated(2, jobs=40).jobs:
        task = TASKS[job.id.split("-")[0]]
        nodes = 1 if job.gpus <= 4 else -(-job.gpus // 4)
        assert iteration_time(job) == pytest.approx(task.model.seconds(nodes, job.gpus, task.batch))


def test_gpu_sharing_figure_shows_shared_stretches(tmp_path: Path) -> None:
    instance = small(1, horizon=200)
    figure = gantt(instance, sjf_bsbf(instance).solution)
    hatched = [p for p in figure.axes[0].patches if p.get_hatch()]
    assert hatched
    figure.savefig(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size > 5000
    elastic = gantt(instance, pollux(instance).solution)
    assert "outside the model" in elastic.axes[0].get_title(loc="left")


def test_gpu_sharing_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = str(DATA / "gpu-sharing-share_09_accumulate.json")
    out = tmp_path / "solution.json"
    assert main(["solve", case, "--json", "--out", str(out)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], told["method"], told["problem"]) == ("optimal", "cp", "gpu-sharing")
    assert told["objective"] == pytest.approx(17 / 3)
    assert main(["check", case, str(out)]) == 0
    picture = tmp_path / "plot.svg"
    assert main(["plot", case, str(out), "--out", str(picture)]) == 0
    assert picture.stat().st_size > 1000
    infeasible = str(DATA / "gpu-sharing-share_10_infeasible_memory.json")
    assert main(["solve", infeasible]) == 3
    assert main(["solve", case, "--method", "sjf-bsbf"]) == 0
    assert main(["solve", case, "--method", "fifo", "--set", "backfill=perhaps"]) == 2


def test_gpu_sharing_policies_and_single_decisions_are_measured() -> None:
    """Measured figures stand in docs/gpu-sharing.md."""
    rows = policy_times(seed=0)
    assert len(rows) == 10
    assert all(row["cpu_seconds"] > 0 for row in rows)
    inside = [row["ratio to bound"] for row in rows if row["ratio to bound"] is not None]
    assert len(inside) == 8 and min(inside) >= 1
    decisions = decision_times(seed=0)
    assert all(row["waiting"] == 1000 and row["GPUs"] == 1024 and row["cpu_seconds"] > 0 for row in decisions)


def test_gpu_sharing_tables_are_made_once() -> None:
    instance = small(0)
    assert tables(instance) is tables(instance)


def test_gpu_sharing_import_of_a_workload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "workload.csv"
    path.write_text(
        "name,time,application,num_replicas,batch_size\n"
        "cifar10-0,107,cifar10,6,2048\nbert-1,110,bert,2,96\nimagenet-2,300,imagenet,48,6400\n"
    )
    out = tmp_path / "instance.json"
    made = ["import", "pollux", str(path), "--problem", "gpu-sharing", "--set", "servers=4", "--out", str(out)]
    assert main(made) == 0
    assert "1 row left out: needs 48 GPUs, 4 servers of 4 have 16 (line 4)" in capsys.readouterr().err
    data = json.loads(out.read_text())
    assert [(j["id"], j["arrival"], j["gpus"], j["batch_size"]) for j in data["jobs"]] == [
        ("cifar10-0", 11, 6, 341),
        ("bert-1", 12, 2, 48),
    ]
    assert main(["solve", str(out), "--method", "sjf-bsbf"]) == 0
    path.write_text("name,time,application,num_replicas,batch_size\nx,1,gpt,1,8\n")
    assert main(made) == 0
    assert "gpt is not measured: profile cifar10" in capsys.readouterr().err
    assert main([*made, "--set", "profile=gpt"]) == 2
    assert "option profile: no profile 'gpt' (profiles: bert, cifar10, " in capsys.readouterr().err

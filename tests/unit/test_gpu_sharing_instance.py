import json
from pathlib import Path

import pytest

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.gpu_sharing.dynamics import iteration_time, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance

DATA = Path(__file__).parents[1] / "data"


def case(name: str = "share_00") -> dict:
    return json.loads((DATA / f"gpu-sharing-{name}.json").read_text())


def test_gpu_sharing_round_trip() -> None:
    for path in sorted(DATA.glob("gpu-sharing-*.json")):
        instance = GpuSharingInstance.parse(json.loads(path.read_text()), str(path))
        tables(instance)
        assert GpuSharingInstance.parse(instance.to_dict()) == instance


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["jobs"][1].update(id="j0"), 'jobs[1].id: "j0" is already the id of jobs[0]'),
        (lambda d: d["interference"]["j0"].update(j1=0.9), "interference.j0.j1"),
        (lambda d: d["interference"]["j0"].update(j9=1.2), 'there is no job "j9"'),
        (lambda d: d["interference"].update(zz={}), 'there is no job "zz"'),
        (lambda d: d["interference"]["j0"].update(j0=1.2), "does not share a GPU with itself"),
        (lambda d: d["jobs"][0].update(overlap=0.5), "jobs[0].overlap"),
        (lambda d: d["jobs"][0].update(arrival=0), "jobs[0].arrival"),
        (lambda d: d["jobs"][0].update(batch_size=1.5), "jobs[0].batch_size"),
        (lambda d: d.update(max_jobs_per_gpu=3), "max_jobs_per_gpu"),
        (lambda d: d.update(surprise=1), "surprise: unknown key"),
        (lambda d: d["jobs"][1].update(compute={"fixed": 0.0, "per_sample": 0.0}), "takes no time"),
    ],
)
def test_gpu_sharing_bad_instances_are_refused_by_name(change, message: str) -> None:
    data = case()
    change(data)
    with pytest.raises(InputError) as error:
        GpuSharingInstance.parse(data, "file.json")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_gpu_sharing_a_gang_of_two_may_have_communication_only() -> None:
    data = case()
    data["jobs"][0]["compute"] = {"fixed": 0.0, "per_sample": 0.0}
    assert GpuSharingInstance.parse(data).jobs[0].gpus == 2


def test_gpu_sharing_accumulation_steps_are_the_powers_of_two_that_divide_the_batch() -> None:
    data = case()
    for batch, steps in ((1, (1,)), (6, (1, 2)), (12, (1, 2, 4)), (16, (1, 2, 4, 8, 16)), (7, (1,))):
        data["jobs"][0]["batch_size"] = batch
        assert GpuSharingInstance.parse(data).jobs[0].accumulation_steps == steps


def test_gpu_sharing_iteration_time_by_hand_and_never_falling_with_accumulation() -> None:
    data = case()
    data["jobs"][0].update(
        overlap=2.0,
        batch_size=16,
        compute={"fixed": 0.1, "per_sample": 0.0125},
        communication={"latency": 0.1, "per_unit": 0.1, "message": 3.0},
    )
    job = GpuSharingInstance.parse(data).jobs[0]
    assert iteration_time(job, 1) == pytest.approx(0.5, rel=1e-14)  # 3-4-5: t_comp 0.3, t_comm 0.4
    assert iteration_time(job, 2) == pytest.approx(0.2 + (0.2**2 + 0.4**2) ** 0.5)
    times = [iteration_time(job, s) for s in job.accumulation_steps]
    assert times == sorted(times)

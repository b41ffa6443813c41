"""The study of openb's allocation, kept alive at a reduced size: no figure of it depends on a clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedgap.benchmarks.snapshots.listings import openb
from schedgap.benchmarks.studies.library import openb_allocation

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{n},{16000},{1000},{n % 3 + 1},T4\n" for n in range(8))
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n" + "".join(
    f"p{p},{1000 * (1 + p % 3)},10,{gpus},{part},\n"
    for p, (gpus, part) in enumerate([(1, 600), (1, 400), (1, 1000), (2, 1000), (0, 0), (1, 600)] * 7)
)
TABLE = (
    "workload,sc_policy,tune,seed,total_gpus,99,100\npods,06-FGD,1.3,42,15,90.0,91.5\npods,05-BestFit,1.3,42,15,8,9\n"
)


def files(folder: Path) -> list[str]:
    for name, text in (("nodes", NODES), ("pods", PODS), ("table", TABLE)):
        (folder / f"{name}.csv").write_text(text)
    return [str(folder / f"{name}.csv") for name in ("nodes", "pods", "table")]


def test_the_study_allocates_no_more_than_its_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    openb_allocation.main([*files(tmp_path), "--seeds", "2", "--methods", "fgd", "best-fit", "bound"])
    lines = capsys.readouterr().out.splitlines()
    shares = {
        name: [float(line.split()[3].rstrip("%")) for line in lines if line.startswith(f"{name} seed")]
        for name in ("fgd", "best-fit", "bound")
    }
    assert all(
        50 < share <= most
        for rule in ("fgd", "best-fit")
        for share, most in zip(shares[rule], shares["bound"], strict=True)
    )
    assert all(most <= 100 for most in shares["bound"])
    assert next(line for line in lines if line.startswith("fgd: ")).endswith("published 91.5 to 91.5, mean 91.5")


def test_draws_and_shapes_are_those_of_the_simulators_code(tmp_path: Path) -> None:
    """Every pod of the list once, then again; the order of nodes is drawn; shapes are the most frequent 95%."""
    nodes, pods, _ = map(Path, files(tmp_path))
    draft = openb(pods, nodes)
    first, second = (openb_allocation.instance_of(draft, seed) for seed in (0, 1))
    names = [[node.id for node in instance.nodes] for instance in (first, second)]
    assert names[0] != names[1] and sorted(names[0]) == sorted(names[1])
    asked = sum(gang.pods[0].gpu for gang in first.gangs)
    assert asked >= 15000 > asked - first.gangs[-1].pods[0].gpu
    draft.gangs += [{"pods": [{"gpu": 1, "request": {"cpu": 1}}]}]
    shares = {(shape["gpu"], shape["request"]["cpu"]): shape["share"] for shape in openb_allocation.typical(draft)}  # type: ignore[index,call-overload]
    assert (1, 1) not in shares and sum(shares.values()) == 42

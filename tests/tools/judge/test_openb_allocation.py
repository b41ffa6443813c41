"""The study of openb's allocation, kept alive at a reduced size: no figure of it depends on a clock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from schedgap.tools.judge.openb import openb
from studies.library import openb_allocation

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


def test_draws_are_those_of_the_simulators_code(tmp_path: Path) -> None:
    """Every pod of the list once, in an order that is drawn, then more; the order of nodes is drawn, too."""
    nodes, pods, _ = map(Path, files(tmp_path))
    draft = openb(pods, nodes)
    first, second = (openb_allocation.instance_of(draft, seed) for seed in (0, 1))
    names = [[node.id for node in instance.nodes] for instance in (first, second)]
    assert names[0] != names[1] and sorted(names[0]) == sorted(names[1])
    asked = sum(gang.pods[0].gpu for gang in first.gangs)
    assert asked >= 15000 > asked - first.gangs[-1].pods[0].gpu
    drawn = openb(pods, nodes)
    drawn.nodes *= 8  # so that more than the whole list is drawn
    for n, node in enumerate(drawn.nodes):
        drawn.nodes[n] = {**node, "id": f"n{n}"}
    listed = sorted(_asks(gang["pods"][0]["gpu"], gang["pods"][0]["request"]) for gang in drawn.gangs)
    many = openb_allocation.instance_of(drawn, 0).gangs
    assert len(listed) == 42 < len(many)
    assert sorted(_asks(gang.pods[0].gpu, gang.pods[0].request) for gang in many[:42]) == listed
    assert [_asks(gang.pods[0].gpu, gang.pods[0].request) for gang in many[:42]] != [
        _asks(gang["pods"][0]["gpu"], gang["pods"][0]["request"]) for gang in drawn.gangs
    ]


def _asks(gpu: int, request: Mapping[str, int]) -> tuple[int, int]:
    return gpu, request["cpu"]


def test_shapes_are_the_most_frequent_ones_until_they_are_95_of_a_hundred(tmp_path: Path) -> None:
    """The one that reaches 95% is in, of a long tail the rest is not; of equal ones the larger come first."""
    nodes, pods, _ = map(Path, files(tmp_path))
    draft = openb(pods, nodes)
    often = {(1000, 500): 60, (2000, 1000): 30, (3000, 0): 4, (9, 9): 1, (8, 7): 1, (8, 6): 1, (5, 5): 1, (4, 4): 1}
    often[1, 1] = 1
    assert sum(often.values()) == 100
    draft.gangs = [
        {"pods": [{"gpu": gpu, "request": {"cpu": cpu}}]} for (cpu, gpu), count in often.items() for _ in range(count)
    ]
    expected = [(1000, 500, 60), (2000, 1000, 30), (3000, 0, 4), (9, 9, 1)]
    assert openb_allocation.typical(draft) == [
        {"gpu": gpu, "request": {"cpu": cpu}, "share": float(share)} for cpu, gpu, share in expected
    ]

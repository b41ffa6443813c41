"""What ``judge`` says of small clusters restated from public issues is true of them: headline, fate and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import schedgap
from schedgap.tools.judge.judgement import NOTHING_WAITS, Judgement

WORLD = Path(__file__).parents[2] / "data" / "world"


def judged(name: str, **more: Any) -> Judgement:
    """The judgement of one case, with the second file where there is one."""
    path = WORLD / f"{name}.json"
    stem = str(path).removesuffix(".json")
    others = [
        f"{stem}-nodes.txt",
        f"{stem.removesuffix('-jobs')}-nodes.txt",
        f"{stem.removesuffix('-groups')}-nodes.json",
    ]
    nodes = next((other for other in others if other != str(path) and Path(other).is_file()), None)
    return schedgap.judge(path, nodes, names=True, **more)


OPTIMAL = "the decision is optimal"
CLAIMED = f"{OPTIMAL} by one solver alone"
CASES: list[tuple[str, str, dict[str, str], str]] = [
    # (case, begin of the headline, fates by gang, a part of the lines)
    ("judge/k8s-kai-gang", f"{OPTIMAL}: none of 16", {"default/pg-g": "barred"}, "8 GPUs are free, 16 are wanted"),
    ("judge/k8s-native", f"{OPTIMAL}: none of 16", {"default/pg-g": "barred"}, "8 GPUs are free, 16 are wanted"),
    ("judge/k8s-yunikorn-gang", f"{OPTIMAL}: none of 16", {"default/app1": "barred"}, "16 are wanted"),
    ("judge/k8s-grove", "0 to 8 of 16 waiting", {"default/pg": "may"}, "its PodGroup is not listed"),
    ("judge/podgroup-1.37-gang", f"{OPTIMAL}: none of 24", {"a/big": "barred"}, "16 GPUs are free, 24 are wanted"),
    ("judge/podgroup-1.37-rack", f"{OPTIMAL}: none of 16", {"a/rack": "barred"}, "without its required level"),
    ("judge/k8s-kai-fraction", "0.4 of 0.9", {"default/w5": "barred", "default/w4": "fits"}, "0.4 GPUs are free"),
    ("judge/k8s-volcano-vgpu", f"{CLAIMED}: none of", {"default/w": "barred"}, "not in pieces"),
    ("judge/k8s-hami-plain", "0.062 of 0.062", {"default/w": "fits"}, "the best decision places it"),
    ("judge/k8s-hami-1173", f"{OPTIMAL}: none of 2", {"default/w": "barred"}, "capacity"),
    ("judge/k8s-prio-higher", f"{OPTIMAL}: none of 8", {"default/a1": "barred"}, "nothing may be ended; no moves"),
    ("judge/k8s-kueue-5243", f"{OPTIMAL}: none of 8", {"default/big": "barred"}, "price 86 (the least"),
    ("judge/k8s-kueue-workload", "0 to 8 of 8", {"default/job-train-1": "may"}, "fits but for its quota, which is not"),
    ("judge/k8s-volcano-pg-pending", f"{CLAIMED}: none of 16", {"default/pg1": "barred"}, "8 GPUs are free"),
    ("judge/k8s-dra", "1 of 1 waiting gang", {"default/v": "fits", "default/w": "not judged"}, "asks for a DRA claim"),
    ("judge/k8s-kueue-15277", f"{OPTIMAL}: none of 5", {"default/s": "barred"}, "no multiple of its slices of 2"),
    ("judge/slurm-mig", "1 of 2", {"2": "barred", "3": "fits"}, "0 GPUs are free, 1 is wanted"),
    ("judge/slurm-shard", "0.25 of 2.25", {"2": "fits", "3": "barred"}, "1 GPU is free, 2 are wanted"),
    ("judge/slurm-untracked", f"{OPTIMAL}: none of 4", {"2": "barred"}, "0 GPUs are free"),
    ("judge/right-nvl72", f"{OPTIMAL}: none of 72", {"default/w": "barred"}, "default/busy to b0, price 1"),
    ("judge/k8s-eight-of-8G", "8 of 8", {"d/g": "fits"}, "the best decision places it"),
    ("judge/k8s-eight-of-8G-bound", f"{OPTIMAL}: the scheduler placed all 8 waiting", {}, ""),
    ("judge/k8s-all-memory", "1 of 1", {"d/p0": "fits"}, "the best decision places it"),
    ("judge/k8s-all-memory-bound", f"{OPTIMAL}: the scheduler placed 1 waiting GPU", {}, ""),
    ("reasons/ends-own-pod", f"{OPTIMAL}: none of 1", {"d/g": "barred"}, "nothing may be ended; no moves admit it"),
    ("reasons/moves-out-of-domain", f"{OPTIMAL}: none", {"d/g": "barred"}, "without its required level"),
    ("reasons/certified-none-gang-could-move", f"{OPTIMAL}: none", {"d/g": "barred"}, "moving d/g-0 to n1, price 1"),
    ("reasons/cpu-only-in-the-way", f"{OPTIMAL}: none", {"d/w": "barred"}, "by ending d/web, price 10"),
    ("reasons/bare-pod-in-the-way", f"{OPTIMAL}: none", {"d/w": "barred"}, "by ending d/x, price 10"),
    ("reasons/ends-higher-priority", f"{OPTIMAL}: none", {"d/w": "barred"}, "nothing of lower priority runs"),
    ("reasons/slurm-running-in-the-way-jobs", f"{OPTIMAL}: none", {"2": "barred"}, "what runs is taken as fixed"),
    ("reasons/fragmentation-two-vendors", f"{OPTIMAL}: none", {"d/w": "barred"}, "capacity: 0 GPUs are free, 3 are"),
    ("reasons/together-two-vendors", f"{OPTIMAL}: none", {"d/w": "barred"}, "capacity: 0 GPUs are free, 4 are"),
    ("reasons/without-its-gpus", f"{OPTIMAL}: none", {"d/w": "barred"}, "0 GPUs are free, 1 is wanted"),
    ("reasons/tie-bound", f"{OPTIMAL}: 1 of 2", {"d/b": "could"}, "places it, in place of d/a"),
    ("reasons/slurm-tie-jobs", "1 of 2", {"1": "fits", "2": "could"}, "places it, in place of 1"),
    ("reasons/topology-decides", "2 of 4", {"a": "could", "b": "fits", "c": "fits"}, "worth as much, and a gang"),
    ("reasons/topology-first", "1 of 2", {"a": "fits", "b": "could"}, "worth more (weight: 1 with it, 2"),
    ("reasons/moves-first", "1 of 2", {"a": "fits", "b": "could"}, "worth more (weight: 1 with it, 2"),
    ("reasons/fragmentation-first", "1 of 2", {"a": "fits", "b": "could"}, "others are worth more (weight: 1 with it"),
    ("reasons/fewer-pods-than-minmember", f"{OPTIMAL}: none", {"d/g": "barred"}, "2 of the 4 pods that it starts"),
    ("reasons/kueue-total-count", f"{OPTIMAL}: none of 2", {"d/g": "barred"}, "2 of the 8 pods that it starts"),
    ("reasons/gated", f"{NOTHING_WAITS}: 1 gang is not judged", {"d/a": "not judged"}, "the scheduling gate kueue"),
    ("reasons/weight-moves", "2 of 2", {"a": "fits", "b": "fits"}, "after ending r0, r1"),
    ("reasons/launcher-and-workers", f"{OPTIMAL}: none", {"d/g": "barred"}, "1 GPU is free where it may go"),
    ("reasons/lack-called-fragmentation", f"{OPTIMAL}: none", {"d/g": "barred"}, "1 GPU is free where it may go"),
    ("reasons/zero-gpus", f"{OPTIMAL}: none of 1 waiting gang", {"d/w": "barred"}, "no node takes it (n0: "),
    ("reasons/zero-gpus-together", f"{OPTIMAL}: none of 1", {"d/w": "barred"}, "cpu (4 a pod of 1, at most 2 free"),
    ("reasons/slurm-cpu-job-jobs", f"{OPTIMAL}: none of 1", {"1": "barred"}, "partition cpu), and it does not fit"),
    ("reasons/rests-not-told", "2 to 4 of 5", {"d/a": "fits", "d/v": "could"}, "its PodGroup is not listed"),
    ("reasons/zone-of-unlabelled-nodes", "0 of 2", {"d/g": "barred", "d/h": "fits"}, "without its required level"),
    ("reasons/no-label-of-the-level", f"{OPTIMAL}: none", {"d/g": "barred"}, "would fit without its required level"),
    ("reasons/ray-pin-groups", f"{OPTIMAL}: none", {"p": "barred"}, "request for accelerator_type:H100"),
    ("reasons/ray-strict-pack-groups", f"{OPTIMAL}: none", {"p": "barred"}, "would fit but for STRICT_PACK"),
    ("reasons/slurm-two-nodes-jobs", f"{CLAIMED}: none", {"1": "barred"}, "but for that it asks for 2 nodes"),
    ("reasons/fits-in-place-of", "2 of 3 waiting", {"d/b": "fits"}, "places it, in place of d/a"),
    ("reasons/head-says-eight", f"{OPTIMAL}: none", {"d/g": "barred"}, "(8 pods, 1 are enough, 8 GPUs)"),
    ("reasons/only-cordoned", f"{OPTIMAL}: none", {"d/g": "barred"}, "(n1: cordoned)"),
    ("reasons/alone-not-beside", f"{OPTIMAL}: 1 of 3", {"d/big": "barred"}, "nothing of lower priority runs"),
    ("reasons/moves-other-gang-out-of-domain", f"{OPTIMAL}: none", {"d/w": "barred"}, "nothing may be ended"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "head", "fates", "part"), CASES, ids=[name for name, *_ in CASES])
def test_what_is_said_of_a_cluster_is_true_of_it(name: str, head: str, fates: dict[str, str], part: str) -> None:
    found = judged(name)
    assert found.verdict.startswith(head)
    assert {one.gang: one.fate for one in found.lost} == fates
    assert part in "\n".join(one.line() for one in found.lost)
    assert "infinite" not in found.to_text() and found.world.feasible


def test_every_case_is_judged() -> None:
    cases = {name for name, *_ in CASES} | {"judge/k8s-spread", "judge/right-volcano-665"}
    files = {
        f"{path.parent.name}/{path.stem}"
        for folder in ("judge", "reasons")
        for path in (WORLD / folder).glob("*.json")
        if not (path.stem.startswith("ray") and path.stem.endswith("nodes"))
    }
    assert cases == files


def test_volcano_665_places_ten_of_twelve_pods() -> None:
    found = judged("judge/right-volcano-665")
    assert found.best_values["weight"] == 1 and round(float(found.best_values["pods"]), 3) == 0.833


def test_amounts_of_the_answer_are_fields() -> None:
    told: Any = judged("judge/k8s-kai-fraction").to_dict()
    assert (told["waiting"], told["reached"], told["limit"], told["placed"]) == (0.9, 0.4, 0.4, 0.0)
    assert (told["reading"], told["unit"], told["proof"]) == ("kept", "GPU", "agreed")
    told = judged("judge/k8s-kueue-workload").to_dict()
    assert (told["reached"], told["limit"], told["reading"], told["ratio"]) == (0.0, 8.0, "apart", None)
    assert json.loads(json.dumps(told, allow_nan=False))["lost"][0]["fate"] == "may"

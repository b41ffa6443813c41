"""No silent defaults: every key of an instance is needed, but those that the documentation says may be left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schedgap.catalogue.registry import parse_instance
from schedgap.formulations.common.errors import InputError

DATA = Path(__file__).parents[1] / "data"
CASES = {
    "rar-ddls": "rar-14-mixed",
    "hadar": "hadar-c04_mixed_types",
    "g-vne": "g-vne-03-two-rack-tree",
    "ddljs": "ddljs-01-budgets",
    "gpu-sharing": "gpu-sharing-share_00",
}
OPTIONAL = {
    ("hadar", "all_jobs_must_finish"),
    ("gpu-sharing", "interference"),
}
OURS = ("name", "note", "version", "reference")


def case(problem: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((DATA / f"{CASES[problem]}.json").read_text())
    return {key: value for key, value in data.items() if not key.startswith(OURS)}


@pytest.mark.parametrize("problem", CASES)
def test_every_other_key_of_the_file_is_needed(problem: str) -> None:
    for key in case(problem):
        if key == "problem":
            continue
        data = case(problem)
        del data[key]
        if (problem, key) in OPTIONAL:
            parse_instance(data)
            continue
        with pytest.raises(InputError) as error:
            parse_instance(data, "file.json")
        assert str(error.value) == f"file.json: {key}: is missing"


@pytest.mark.parametrize("problem", CASES)
@pytest.mark.parametrize("part", ["jobs", "servers", "machines", "links"])
def test_every_key_of_a_part_is_needed(problem: str, part: str) -> None:
    for key in case(problem).get(part, [{}])[0]:
        data = case(problem)
        del data[part][0][key]
        with pytest.raises(InputError, match="is missing"):
            parse_instance(data, "file.json")


def test_a_network_without_links_is_said_so() -> None:
    for problem in ("g-vne", "ddljs"):
        assert parse_instance({**case(problem), "links": []})[1].links == ()


def test_interference_that_is_left_out_slows_nothing_down() -> None:
    data = case("gpu-sharing")
    del data["interference"]
    _, instance = parse_instance(data)
    assert {instance.slowdown(a.id, b.id) for a in instance.jobs for b in instance.jobs} == {1.0}
    assert parse_instance({**data, "interference": {}})[1].content_hash() == instance.content_hash()

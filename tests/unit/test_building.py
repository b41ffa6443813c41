"""Instances built part by part in Python are those of the files; what is missing is told at once."""

from __future__ import annotations

import pytest

import schedgap
from schedgap.catalogue.registry import all_problems


@pytest.mark.parametrize("problem", list(all_problems()))
def test_every_part_of_a_generated_instance_can_be_built(problem: str) -> None:
    made = schedgap.generate(problem, seed=1)
    builder = schedgap.instance(problem)
    for name, value in made.to_dict().items():
        if name == "problem":
            continue
        if isinstance(value, list):
            for one in value:
                part = getattr(builder, name.removesuffix("s"))
                if isinstance(one, dict) and "id" in one:
                    part(one["id"], **{key: inner for key, inner in one.items() if key != "id"})
                else:
                    part(one)
        elif isinstance(value, dict):
            getattr(builder, name)(**value)
        else:
            getattr(builder, name)(value)
    assert builder.build() == made


def test_what_is_missing_is_told_at_once() -> None:
    begun = schedgap.instance("rar-ddls", horizon=20).server("s0", gpus=4).job("j0", gpus=2)
    assert repr(begun) == "<rar-ddls being built: 1 servers, 1 jobs>"
    with pytest.raises(schedgap.InputError) as told:
        begun.build()
    every = ("network", *(f"jobs[0].{name}" for name in ("iterations", "gradient_size", "batch_size", "forward_time")))
    assert all(name in str(told.value) for name in every) and "\n" not in str(told.value)


def test_a_wrong_part_names_those_there_are() -> None:
    with pytest.raises(schedgap.InputError, match=r"no field 'horizn'.*did you mean 'horizon'"):
        schedgap.instance("rar-ddls", horizn=3)
    begun = schedgap.instance("rar-ddls")
    with pytest.raises(AttributeError, match=r"no part 'machine', one of: .*server, job"):
        begun.machine("m")
    with pytest.raises(TypeError, match="takes one value"):
        begun.horizon(1, 2)
    assert {"server", "job", "build", "network"} <= set(dir(begun))
    with pytest.raises(schedgap.InputError, match=r'horizon: .*got "soon"'):
        begun.horizon("soon").network(
            inter_bandwidth=1.0, intra_bandwidth=2.0, contention_scale=0.5, contention_penalty=0.2, server_overhead=0.0
        ).server("s0", gpus=1).job(
            "j", gpus=1, iterations=1, gradient_size=1.0, batch_size=1, forward_time=0.1, backward_time=0.1
        ).build()

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
    assert repr(begun).startswith(
        "<rar-ddls being built: 1 servers, 1 jobs; assumed: reduce_speed 1000.0, network.inter_"
    )
    with pytest.raises(schedgap.InputError) as told:
        begun.server("s1").job("j1", iterations=3).build()
    every = ("servers[1].gpus", "jobs[0].iterations", "jobs[1].gpus")
    assert all(name in str(told.value) for name in every) and "\n" not in str(told.value)


def test_what_is_assumed_is_shown_and_is_what_the_instance_has() -> None:
    begun = schedgap.instance("rar-ddls", horizon=20).server("s0", gpus=4).job("j0", gpus=2, iterations=5, batch_size=7)
    assert "jobs.backward_time 0.1" in repr(begun)
    assert "batch_size" not in repr(begun)
    job = begun.build().to_dict()["jobs"][0]
    assert (job["batch_size"], job["backward_time"], job["gradient_size"]) == (7, 0.1, 0.0)


def test_what_is_assumed_fits_the_fields_of_every_problem() -> None:
    for problem in all_problems().values():
        fields = problem.instance_class.model_json_schema(by_alias=True)
        for part, assumed in problem.assumed.items():
            rule = str(fields if not part else fields["properties"][part])
            where = fields if not part else fields["$defs"][rule.split("$defs/")[1].split("'")[0]]
            assert set(assumed) <= set(where["properties"]), (problem.id, part)


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

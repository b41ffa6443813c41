"""The measured comparison of hand-offs that the suite `scale` reports."""

from __future__ import annotations

import pytest

from schedgap.solvers.engines.arrays import model_arrays
from studies.engine_handoff import handoff_benchmark, sparse_model


def test_our_handoff_is_faster_than_pulps_own() -> None:
    found = handoff_benchmark(40_000, repeat=3)
    assert found.nonzeros == 40_000
    assert found.ratio == found.pulp / found.ours
    assert found.ratio > 1.5
    assert 0 < found.arrays < found.build


@pytest.mark.parametrize("width", [2, 5, 20])
def test_the_model_has_the_shape_it_says(width: int) -> None:
    arrays = model_arrays(sparse_model(2000, width))
    assert len(arrays.indices) == 2000
    assert len(arrays.names) == 2000 // width

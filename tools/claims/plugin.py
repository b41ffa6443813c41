"""What pytest loads by itself where schedgap is installed: the fixture ``claim``. It imports nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from schedgap.tools.claims.trying import Tried


@pytest.fixture
def claim(request: pytest.FixtureRequest) -> Callable[..., Tried]:
    """``check_claim`` under the test's name; counterexamples go to ``counterexamples/`` of its root folder."""
    from schedgap.tools.claims.trying import check_claim

    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    return partial(check_claim, name=name, out=request.config.rootpath / "counterexamples")

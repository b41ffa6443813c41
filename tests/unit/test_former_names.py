"""Public names that changed are still there, and say what they are called now."""

from __future__ import annotations

import pytest

from schedgap.catalogue.method import own_method
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.solvers.result import Deadline, Status


def test_a_former_name_gives_what_the_new_one_gives_and_says_so() -> None:
    problem = find_problem("g-vne")
    method = own_method(lambda instance, *, seed: None)
    with pytest.warns(DeprecationWarning, match="called needs_proof"):
        assert [status for status in Status if status.settled] == [s for s in Status if s.needs_proof]
    with pytest.warns(DeprecationWarning, match="called is_user_defined"):
        assert method.users
    with pytest.warns(DeprecationWarning, match="called has_keyword"):
        assert method.takes("seed") and not method.takes("deadline")
    with pytest.warns(DeprecationWarning, match="called remaining"):
        assert Deadline().left() is None
    other = find_problem("hadar").instance_class.model_construct()
    with (
        pytest.warns(DeprecationWarning, match="called cast_instance"),
        pytest.raises(InputError, match="not of g-vne"),
    ):
        problem.own(other)

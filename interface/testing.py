"""Problems, methods and engines of anyone, tried as ours are: ``from schedgap.testing import check_problem``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schedgap.tools.testing.checks import Broken, Checked, check_engine, check_method, check_problem, enumeration
else:
    from schedgap.reading import of_tools

    Broken, Checked, check_engine, check_method, check_problem, enumeration = map(
        of_tools, ("Broken", "Checked", "check_engine", "check_method", "check_problem", "enumeration")
    )

__all__ = ["Broken", "Checked", "check_engine", "check_method", "check_problem", "enumeration"]

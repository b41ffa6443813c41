"""A theorem of anyone, in pytest: ``from schedgap.claims import check_claim``; see the tool in ``tools/claims``."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schedgap.tools.claims.trying import Impossible, Refuted, Tried, brute_force, check_claim, try_claim
else:
    from schedgap.reading import of_tools

    Impossible, Refuted, Tried, brute_force, check_claim, try_claim = map(
        of_tools, ("Impossible", "Refuted", "Tried", "brute_force", "check_claim", "try_claim")
    )

__all__ = ["Fraction", "Impossible", "Refuted", "Tried", "brute_force", "check_claim", "try_claim"]

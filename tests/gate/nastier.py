"""Further generators."""

from __future__ import annotations

from gate.instances import Families

NASTIER: dict[str, Families] = {}

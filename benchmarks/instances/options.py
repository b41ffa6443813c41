"""Options that the presets and importers of several problems share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

Jobs: TypeAlias = Annotated[int, Field(ge=1, le=100000, description="jobs")]


Servers: TypeAlias = Annotated[int, Field(ge=1, le=10000, description="servers")]

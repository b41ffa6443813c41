"""The rows of all declarative models as a page of the reference."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from schedgap import formulations
from schedgap.benchmarks.text import markdown_table
from schedgap.formulations.common.layout import Role, RowFamily


def rows_of_models() -> Iterator[str]:
    """All row families of all declarative models as lines of Markdown, a section a module that states some."""
    for info in pkgutil.walk_packages(formulations.__path__, f"{formulations.__name__}."):
        module = importlib.import_module(info.name)
        stated = {
            name: family
            for constant, value in vars(module).items()
            if constant.endswith("ROWS") and isinstance(value, dict)
            for name, family in value.items()
            if isinstance(family, RowFamily)
        }
        if not stated:
            continue
        yield from (f"## {(module.__doc__ or info.name).splitlines()[0].rstrip('.')}", "", f"`{info.name}`", "")
        yield markdown_table(("rows", "equation", "meaning"), [_cells(name, family) for name, family in stated.items()])
        yield ""


def _cells(name: str, family: RowFamily) -> tuple[str, str, str]:
    why = "" if family.role is Role.DEFINING else f" ({family.role}: {family.why})"
    return f"`{family.prefix(name)}`", family.equation or "ours", family.meaning + why

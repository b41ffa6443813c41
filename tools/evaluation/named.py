"""A scheduler of a user, named so that another process can import it."""

from __future__ import annotations

import sys

from schedgap.catalogue.method import SHAPE, Function
from schedgap.formulations.common.errors import InputError


def users_name(function: str | Function) -> str:
    """How another process names a user's function: ``file.py:function``, or ``package.module:function``.

    Raises InputError: it is no function at the top of a file, so that nothing but this process has it.
    """
    if isinstance(function, str):
        return function
    name = str(getattr(function, "__qualname__", ""))
    module = sys.modules.get(str(getattr(function, "__module__", "")))
    file = getattr(module, "__file__", None)
    if module is None or file is None or getattr(module, name, None) is not function:
        what = name or type(function).__name__
        raise InputError(
            f"scheduler: {what} is no function at the top of a file, and another process must import it: "
            f"write it to a file (in a notebook %%writefile mine.py) and name it, {SHAPE}"
        )
    return f"{module.__name__}:{name}" if module.__package__ else f"{file}:{name}"

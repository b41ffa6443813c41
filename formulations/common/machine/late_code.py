"""numba, told to make machine code only of what Python calls.

Left alone, numba optimizes each function that a compiled function calls, and writes machine code of it, before it does
so again for the whole. Nobody runs the former. Here such a function is only linked in, and optimized with the whole.
That is what is compiled anyway, so the answers are the same; a third to a half of the time is saved. A user's own
functions in the same process are compiled as ever: only what is compiled within :func:`late_code` is late.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from numba.core import codegen, environment

_LATE = "_schedgap_late"
"""Attribute of a library of numba that is linked into others and has no machine code."""
_ENVIRONMENT = "_ZN08NumbaEnv"
"""Beginning of the names of what numba's functions know when they raise."""
_NEEDED = ("_ensure_finalized", "_finalize_dynamic_globals", "_finalize_final_module", "_optimize_final_module")


class _Within(threading.local):
    depth = 0


_within = _Within()


@contextmanager
def late_code() -> Iterator[None]:
    """Within it, in this thread, machine code of what compiled functions call is left out."""
    make_code_late()
    _within.depth += 1
    try:
        yield
    finally:
        _within.depth -= 1


@cache
def make_code_late() -> None:
    """Change numba, once a process; a numba of other parts stays as it is."""
    library: Any = getattr(codegen, "JITCodeLibrary", None)
    engine: Any = getattr(codegen, "JITCPUCodegen", None)
    if not all(hasattr(library, name) for name in _NEEDED) or not hasattr(engine, "set_env"):
        return
    with_wrapper, link, linked = (
        library.get_pointer_to_function,
        library.add_linking_library,
        library._get_module_for_linking,
    )

    def get_pointer_to_function(self: Any, name: str) -> int:
        if not _within.depth and not hasattr(self, _LATE):
            return int(with_wrapper(self, name))
        is_made = self._finalized and not hasattr(self, _LATE)
        if not is_made and not _names(self, name):
            return 0  # it has no entrance for Python
        if hasattr(self, _LATE):  # Python does call it
            delattr(self, _LATE)
            self._optimize_final_module()
            self._final_module.verify()
            self._finalize_final_module()
        pointer: int = with_wrapper(self, name)
        if not is_made:
            _tell_environments(self)
        return pointer

    def add_linking_library(self: Any, other: Any) -> None:
        if _within.depth:
            _finish(other)
        link(self, other)

    def get_module_for_linking(self: Any) -> Any:
        if _within.depth:
            _finish(self)
        return linked(self)

    def set_env(self: Any, name: str, known: object) -> None:
        if self._engine.is_symbol_defined(name):
            tell(self, name, known)

    tell = engine.set_env
    library.get_pointer_to_function = get_pointer_to_function
    library.add_linking_library = add_linking_library
    library._get_module_for_linking = get_module_for_linking
    engine.set_env = set_env


def _names(library: Any, name: str) -> bool:
    """Whether a function's name stands in a library."""
    return any(function.name == name for function in library._final_module.functions)


def _finish(library: Any) -> None:
    """Link into a library what it calls, and leave it as it is then."""
    if library._finalized:
        return
    for other in dict.fromkeys(library._linking_libraries):
        library._reload_init.update(other._reload_init)
        library._final_module.link_in(other._get_module_for_linking(), preserve=True)
    library._finalize_dynamic_globals()
    library._finalized = True
    setattr(library, _LATE, True)


def _tell_environments(library: Any) -> None:
    """Give the machine code what the functions that were linked in know."""
    find: Any = environment.lookup_environment
    for variable in library._final_module.global_variables:
        if variable.name.startswith(_ENVIRONMENT):
            known = find(variable.name)
            if known is not None:
                library.codegen.set_env(variable.name, known)

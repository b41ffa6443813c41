"""Compiled functions: interpreted first, compiled when it pays, their machine code kept on disk.

A kernel whose machine code is on disk runs it. Else it runs as Python, and so does what it calls, until the steps that
it took cost as much as half of its compilation; then it is compiled, once. A call that is under way then is left, and
made again in machine code: a call that does not end has changed nothing. Both ways give the same, bit by bit.

``SCHEDGAP_COMPILE`` in the environment chooses: ``when-it-pays`` (this), ``always``, or ``never``, for which numba is
not even imported. numba's own ``NUMBA_DISABLE_JIT=1`` means ``never``.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any, TypeVar

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.machine import kept_code
from schedgap.formulations.common.machine.interpreted import UNLIMITED, TooLongError, Twin

Function = TypeVar("Function", bound=Callable[..., Any])

CHOICES = ("always", "never", "when-it-pays")
STEPS_PER_INSTRUCTION = 450
"""Steps of Python that take half as long as numba takes to compile an instruction of Python's bytecode: see
`docs/measurements.md`."""
STEPS_FOR_NUMBA = 100_000
"""Steps of Python that take a good part of the third of a second in which numba is imported, to load kept code."""
_SELDOM = (50_000, 50, 1_000)
"""New objects, and looks at younger ones, before a look for garbage while code is compiled."""
_SHARE_NOTED = 16
"""Steps are noted on disk for other processes when they are one part in so many of all that are allowed."""


class _FirstUse:
    """Seconds that kernels ran as Python for, or waited for another process's compilation, in place of their own."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._begun: list[float] = []

    def seconds(self) -> float:
        """Until now, what is under way included."""
        begun = self._begun[:1]  # by another thread it may end in between
        return self._seconds + (time.monotonic() - begun[0] if begun else 0.0)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """What happens within counts; of what is within another, the outermost."""
        self._begun.append(time.monotonic())
        try:
            yield
        finally:
            if len(self._begun) == 1:
                self._seconds += time.monotonic() - self._begun[0]
            self._begun.pop()


first_use = _FirstUse()
_without_numba = [STEPS_FOR_NUMBA]
"""Steps that kernels whose code is kept may still run as Python for, all together, as long as numba is not imported."""
_timed: list[None] = []
"""One entry for each :func:`compiled_at_once` that is under way."""


@contextmanager
def compiled_at_once() -> Iterator[None]:
    """Within it every kernel is compiled at its first call, unless ``never`` is asked for.

    That is for times that are compared, and for processes that may not compile later.
    """
    _timed.append(None)
    try:
        yield
    finally:
        _timed.pop()


def choice() -> str:
    """What ``SCHEDGAP_COMPILE`` says, or :func:`compiled_at_once`.

    Raises InputError: it is none of the three.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "never"
    text = os.environ.get("SCHEDGAP_COMPILE") or "when-it-pays"
    if text not in CHOICES:
        raise InputError(f"SCHEDGAP_COMPILE: must be {', '.join(CHOICES[:-1])} or {CHOICES[-1]}, got {text!r}")
    return "always" if _timed and text == "when-it-pays" else text


class Kernel:
    """A function that is interpreted or compiled, whichever costs less.

    Parameters
    ----------
    function : what it does
    has_entrance : whether Python may call it; else only kernels do, whose machine code contains it
    options : options of ``numba.njit``

    Attributes
    ----------
    py_func : the function itself
    """

    def __init__(self, function: Callable[..., Any], has_entrance: bool, options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.helpers: Mapping[Callable[..., object], bool] = {}
        self.options = dict(options)
        self._has_entrance = has_entrance
        self._steps: int | None = None
        self._unnoted = 0
        self._run: Callable[..., Any] = self._first if has_entrance else self._refuse

    def __call__(self, *args: Any, **options: Any) -> Any:
        """What the function gives back."""
        return self._run(*args, **options)

    def callee(self, value: object) -> FunctionType | None:
        """The function that compiled code calls where a module has this value; None where it is no function."""
        is_called = isinstance(value, Kernel) or (isinstance(value, FunctionType) and value in self.helpers)
        function = getattr(value, "py_func", value)
        return function if is_called and isinstance(function, FunctionType) else None

    @functools.cached_property
    def name(self) -> str:
        """The name of its machine code on disk."""
        return kept_code.name_of(self.py_func, self.callee, repr(sorted(self.options.items())))

    @functools.cached_property
    def _is_kept(self) -> bool:
        """Whether there was code on disk when the function was first called."""
        return kept_code.is_kept(self.name)

    @functools.cached_property
    def twin(self) -> Twin | None:
        """The function as Python that counts its steps; None where its text is not at hand."""
        try:
            return Twin(self.py_func, self.callee)
        except (OSError, ValueError, SyntaxError):
            return None

    @functools.cached_property
    def dispatcher(self) -> Any:
        """What numba makes of the function."""
        numba = _load_numba()
        options = dict(self.options)
        if not options.pop("counts_references", True) and hasattr(numba.core.options.DefaultOptions, "_nrt"):
            options["_nrt"] = False
        inherited = {name: value for name, value in options.items() if name == "_nrt"}
        for helper, inline in self.helpers.items():
            numba.extending.register_jitable(forceinline=inline, **inherited)(helper)
        if not self._has_entrance:
            options.update(no_cpython_wrapper=True, no_cfunc_wrapper=True)
        result: Any = numba.njit(**options)(self.py_func)
        if self._has_entrance:
            result._cache = kept_code.KeptCode(self.name)
            self._compile = result._compile_for_args
            result._compile_for_args = self._for_signature
        else:
            _close(result, self._refuse)
        return result

    def _refuse(self, *args: object, **options: object) -> None:
        raise TypeError(f"{self.py_func.__name__} is for compiled code alone; Python calls its py_func")

    def _first(self, *args: Any, **options: Any) -> Any:
        """A call as long as numba was not needed."""
        wanted = choice()
        if wanted == "never":
            return self._interpret_for_good(args, options)
        if wanted == "when-it-pays" and self._is_kept:
            with suppress(TooLongError):
                return self._interpret_without_numba(args, options)
        elif wanted == "when-it-pays" and self._steps_left() > 0:
            with suppress(TooLongError):
                return self._interpret(args, options)
        self._run = self.dispatcher
        return self.dispatcher(*args, **options)

    def _for_signature(self, *args: Any, **options: Any) -> Callable[..., Any]:
        """What numba's dispatcher is to call with arguments of a signature that it has no code for."""
        dispatcher = self.dispatcher
        if choice() == "when-it-pays" and self._steps_left() > 0 and not options:
            try:
                signature = tuple(map(dispatcher.typeof_pyval, args))
                path = dispatcher._cache.path(signature, dispatcher.targetctx)
            except ValueError:  # numba itself says best what it has no type for
                return self._compiled(args)
            if not kept_code.is_file(path):
                return self._interpret_or_compile
        return self._compiled(args)

    def _interpret_or_compile(self, *args: Any) -> Any:
        with suppress(TooLongError):
            return self._interpret(args, {})
        return self._compiled(args)(*args)

    def _compiled(self, args: tuple[Any, ...]) -> Callable[..., Any]:
        with kept_code.turn(self.name, first_use.counted), _little_collecting():
            from schedgap.formulations.common.machine.late_code import late_code

            with late_code():
                made: Callable[..., Any] = self._compile(*args)
        return made

    def _steps_left(self) -> int:
        """Steps that the function may be interpreted for, here and in other processes, before it is compiled."""
        if self.twin is None:
            return 0
        if self._steps is None:
            self._steps = kept_code.steps_taken(self.name)
        return max(0, STEPS_PER_INSTRUCTION * self.twin.size - self._steps)

    def _interpret(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """A call as Python.

        Raises TooLongError: it takes more steps than are left.
        """
        allowed, taken = self._steps_left(), 0
        assert self.twin is not None
        try:
            with first_use.counted():
                result, taken = self.twin.call(args, options, allowed)
        except TooLongError:
            taken = allowed
            raise
        finally:
            self._steps = (self._steps or 0) + taken
            self._unnoted += taken
            if self._unnoted * _SHARE_NOTED > STEPS_PER_INSTRUCTION * self.twin.size:
                kept_code.add_steps(self.name, self._unnoted)
                self._unnoted = 0
        return result

    def _interpret_without_numba(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """A call as Python in place of importing numba.

        Raises TooLongError: it takes more steps than that, or numba is there.
        """
        if self.twin is None or _without_numba[0] <= 0 or "numba" in sys.modules:
            raise TooLongError
        allowed, _without_numba[0] = _without_numba[0], 0
        with first_use.counted():
            result, taken = self.twin.call(args, options, allowed)
        _without_numba[0] = allowed - taken
        return result

    def _interpret_for_good(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """A call as Python, whatever it takes.

        Raises InputError: that is asked for, but the function's text is not at hand.
        """
        if self.twin is None:
            raise InputError(f"SCHEDGAP_COMPILE=never: the source of {self.name} cannot be read, or has changed")
        return self.twin.call(args, options, UNLIMITED)[0]


@contextmanager
def _little_collecting() -> Iterator[None]:
    """Within it garbage is looked for seldom: numba makes many objects and few cycles."""
    before = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _close(dispatcher: Any, refuse: Callable[..., None]) -> None:
    """Have Python's calls refused: numba would end the process at one."""
    overloads = dispatcher.overloads

    def keep(compiled: Any) -> None:
        overloads[tuple(compiled.signature.args)] = compiled

    # numba's table of what Python may call stays empty,
    # so that each call comes to `_compile_for_args`.
    dispatcher.add_overload = keep
    dispatcher._compile_for_args = refuse


@functools.cache
def _load_numba() -> Any:
    """numba, which is told what a kernel stands for where other kernels call it."""
    import numba
    from numba.core import types
    from numba.extending import typeof_impl

    @typeof_impl.register(Kernel)
    def type_of(kernel: Kernel, _context: object) -> Any:
        return types.Dispatcher(kernel.dispatcher)

    return numba


def _kernel(function: Function, has_entrance: bool = True, **options: Any) -> Function:
    kernel: Any = Kernel(function, has_entrance, options)
    result: Function = kernel
    return result


def njit_cached(function: Function) -> Function:
    """Compile a function, when it pays, and keep the machine code on disk.

    Parameters
    ----------
    function : what to compile
    """
    return _kernel(function)


def njit_kernel(function: Function) -> Function:
    """A decorator like :func:`njit_cached`, for a function that makes no arrays; tuples of arrays are cheap to pass.

    References to arrays are not counted: in short loops that takes longer than all the rest. A numba without this
    switch counts them, which is only slower.
    """
    return _kernel(function, counts_references=False)


def njit_inline(function: Function) -> Function:
    """A decorator like :func:`njit_kernel`, for a function that LLVM writes into its only callers.

    The code is as fast as with numba's own inlining, and compiled in
    two thirds of the time: types are inferred once a function, not once a call.
    """
    return _kernel(function, has_entrance=False, forceinline=True, counts_references=False)


def njit_part(function: Function) -> Function:
    """Compile a function that only compiled functions call.

    Their machine code contains it, and is what is kept. It has no entrances for Python and C, which take a third of
    the compilation: a call from Python is a TypeError.
    """
    return _kernel(function, has_entrance=False)


def njit_inner(function: Function) -> Function:
    """A decorator like :func:`njit_part`, for a function that makes no arrays: see :func:`njit_kernel`."""
    return _kernel(function, has_entrance=False, counts_references=False)


def njit_with(function: Function, helpers: Mapping[Callable[..., object], bool]) -> Function:
    """A decorator like :func:`njit_kernel`, for what the interpreter runs, too, with
    what it calls: each function, and whether it is to be written into its callers.
    """
    kernel: Any = njit_kernel(function)
    kernel.helpers = dict(helpers)
    result: Function = kernel
    return result

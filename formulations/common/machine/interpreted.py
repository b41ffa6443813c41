"""A compiled function run as Python: with what it calls, on the same arguments, for a limited number of steps.

Python and numba mean the same by the code of the kernels (`tests/property/test_both_ways.py`) but for four things,
which are made up for here. A record of a structured array has its fields as attributes. Numbers of less than 64 bits,
and truth values, are whole numbers of 64 bits as soon as something is computed of them. What is handed back consists of
Python's own numbers. A call has no effect unless it ends: whatever ends it early, its arguments are as before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

_TICK = "__tick__"
UNLIMITED = 2**62
"""Steps that no call takes."""
_BYTES_PER_STEP = 4096
"""Bytes of arguments that are copied in the time of a step, so that a call that does not end can be undone."""


class TooLongError(Exception):
    """A call took all the steps that it was given; its arguments are as before."""


class Twin:
    """A function and what it calls, as plain Python that counts its steps: turns of loops, and calls.

    Parameters
    ----------
    function : the function, whose text must be where its code says
    callee : what stands for a value of the function's module: the function to interpret in its place, or None

    Raises
    ------
    ValueError: the text is not the one that the code was made of, or the function is not at the top of a module.
    OSError: the text cannot be read.
    """

    def __init__(self, function: Callable[..., Any], callee: Callable[[object], FunctionType | None]) -> None:
        self._callee = callee
        self._spaces: dict[int, dict[str, Any]] = {}
        self._copies: dict[FunctionType, FunctionType] = {}
        self.size = 0
        """Instructions of all functions, which tell how long they take to compile."""
        assert isinstance(function, FunctionType)
        self._function = self._copy(function)

    def _copy(self, function: FunctionType) -> FunctionType:
        if function in self._copies:
            return self._copies[function]
        values = function.__globals__
        space = self._spaces.setdefault(id(values), dict(values))
        code = _counting_code(function)
        copy = FunctionType(code, space, function.__name__, function.__defaults__, function.__closure__)
        copy.__kwdefaults__ = function.__kwdefaults__
        self._copies[function] = copy
        self.size += len(function.__code__.co_code) // 2
        for name in names_in(function.__code__):
            called = self._callee(values.get(name))
            if called is not None:
                space[name] = self._copy(called)
        return copy

    def call(self, args: tuple[Any, ...], options: dict[str, Any], steps: int) -> tuple[Any, int]:
        """What the function gives back, and the steps that it took.

        Raises TooLongError: it takes more than `steps`.
        """
        undo = _Undo()
        given = [_readable(value, undo) for value in args]
        named = {name: _readable(value, undo) for name, value in options.items()}
        for_arguments = min(steps, undo.steps)
        steps_left: Any = iter(range(steps - for_arguments))
        for space in self._spaces.values():
            space[_TICK] = steps_left.__next__
        ended = False
        try:
            with np.errstate(all="ignore"):  # whole numbers wrap around, as they do in machine code
                result = self._function(*given, **named)
            ended = True
        except StopIteration as error:
            raise TooLongError from error
        finally:
            if not ended:
                undo.all()
        return _plain(result), steps - steps_left.__length_hint__()


def names_in(code: CodeType) -> Iterator[str]:
    """The names of a module, and of attributes, that a function's code uses."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


@cache
def _counting_code(function: FunctionType) -> CodeType:
    """The code of a function that counts its steps; made once, since the text's tree is changed for it."""
    code = function.__code__
    text = _text_of(code.co_filename)
    node = text.functions.get((function.__name__, code.co_firstlineno))
    if node is None or code.co_freevars:
        raise ValueError(f"no text of {function.__name__}")
    made = text.compiled(node)
    if (made.co_code, made.co_names, made.co_varnames) != (code.co_code, code.co_names, code.co_varnames):
        raise ValueError(f"the text of {function.__name__} has changed")
    return text.compiled(_Counting().visit(node))


class _Text:
    """The functions at the top of a module, by name and first line."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._imports: list[ast.stmt] = []  # names of modules are looked up by other instructions than those of values
        self.functions: dict[tuple[str, int], ast.FunctionDef] = {}
        for node in ast.parse(Path(file).read_bytes()).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._imports.append(node)
            elif isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                self.functions[node.name, first] = node
                node.decorator_list = []
                node.returns = None
                node.args.defaults = [ast.copy_location(ast.Constant(None), value) for value in node.args.defaults]
                for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                    argument.annotation = None

    def compiled(self, function: ast.FunctionDef) -> CodeType:
        """The code of one of the functions."""
        module = compile(ast.Module([*self._imports, function], []), self._file, "exec", dont_inherit=True)
        return next(constant for constant in module.co_consts if isinstance(constant, CodeType))


_text_of = cache(_Text)


class _Counting(ast.NodeTransformer):
    """A step where a function or the body of a loop begins."""

    def _counted(self, node: Any) -> Any:
        self.generic_visit(node)
        step = ast.Expr(ast.Call(ast.Name(_TICK, ast.Load()), [], []))
        node = type(node)(**{**vars(node), "body": [step, *node.body]})
        return ast.fix_missing_locations(ast.copy_location(node, node))

    visit_FunctionDef = visit_For = visit_While = _counted


class _Row:
    """A record of a structured array, whose fields are attributes, whatever names a record of numpy has of its own."""

    __slots__ = ("record",)

    def __init__(self, record: Any) -> None:
        self.record = record


class _Rows(list[Any]):
    """The records of a structured array."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        row = _row_type(array.dtype)
        super().__init__(row(record) for record in array)
        self._array = array

    def __setitem__(self, key: Any, value: Any) -> None:
        """Copy records, as between arrays."""
        self._array[key] = value._array if isinstance(value, _Rows) else value.record

    @property
    def size(self) -> int:
        return len(self)

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)


@cache
def _row_type(dtype: np.dtype[Any]) -> type[_Row]:
    def field(name: str) -> property:
        def get(row: _Row) -> Any:
            return row.record[name]

        def put(row: _Row, value: Any) -> None:
            row.record[name] = value

        return property(get, put)

    return type("Row", (_Row,), {"__slots__": (), **{name: field(name) for name in dtype.names or ()}})


class _Wide(np.ndarray[Any, Any]):
    """An array of truth values or of whole numbers of less than 64 bits, whose elements are read as numba reads them.

    numpy adds 1 to 127 of eight bits, which is -128, and True to True, which is True.
    """

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        if isinstance(value, np.bool_):
            return bool(value)
        return np.int64(value) if isinstance(value, np.integer) else value

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


def _is_narrow(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "b" or (dtype.kind in "iu" and dtype.itemsize < 8)


class _Undo:
    """What takes back all changes of the arguments of a call.

    Attributes
    ----------
    steps : what making ready for it, and for Python, takes
    """

    def __init__(self) -> None:
        self._restore: list[Callable[[], None]] = []
        self.steps = 0

    def note(self, restore: Callable[[], None], steps: int) -> None:
        self._restore.append(restore)
        self.steps += steps

    def all(self) -> None:
        for restore in self._restore:
            restore()


def _readable(value: Any, undo: _Undo) -> Any:
    """An argument as Python reads it; `undo` hears what takes back all changes of it."""
    if isinstance(value, np.ndarray):
        is_table = value.dtype.names is not None
        if value.flags.writeable:
            steps = value.nbytes // _BYTES_PER_STEP + is_table * len(value)
            undo.note(partial(value.__setitem__, ..., value.copy()), steps)
        if _is_narrow(value.dtype):
            return value.view(_Wide)
        return _Rows(value) if is_table else value
    if isinstance(value, np.random.Generator):
        undo.note(partial(setattr, value.bit_generator, "state", value.bit_generator.state), 1)
    if isinstance(value, tuple):
        parts = [_readable(part, undo) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _plain(value: Any) -> Any:
    """A result in Python's own numbers, as compiled code gives it back."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, _Wide):
        return value.view(np.ndarray)
    if isinstance(value, tuple):
        parts = [_plain(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value

"""Reading instances and solutions from files or standard input, writing results."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgap.catalogue.registry import load_instance
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_text

if TYPE_CHECKING:
    from schedgap.catalogue.problem import Problem
    from schedgap.formulations.common.instance import Instance, Solution

STANDARD_INPUT = "<standard input>"


def read_instance(path: str) -> tuple[Problem, Instance]:
    """The instance in a file, or on standard input where `path` is "-"."""
    if path == "-":
        return load_instance(STANDARD_INPUT, _standard_input())
    return load_instance(path)


def read_solution(path: str, problem: Problem) -> tuple[Solution, Mapping[str, Any] | None]:
    """The bare solution, and the object of ``solve --json`` that it was in, if it was."""
    from schedgap.reading import read_result

    if path == "-":
        return read_result(STANDARD_INPUT, problem, _standard_input())
    return read_result(path, problem)


def name_of(path: str) -> str:
    """The name of a file in messages."""
    return STANDARD_INPUT if path == "-" else path


def once(*paths: str) -> None:
    """Refuse to read standard input twice."""
    if paths.count("-") > 1:
        raise InputError("standard input (-) can be read only once")


def write_or_print(text: str, out: Path | None) -> None:
    """Write `text` to a file, or print it where there is none or it is "-"."""
    if out is None or str(out) == "-":
        print(text)
    else:
        write_text(out, text if text.endswith("\n") else text + "\n")


def to_json(data: Any, indent: int | None = None) -> str:
    """JSON without NaN and infinities, which JSON does not have."""
    return json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=False)


def plain_number(value: float | None) -> float | int | None:
    """A whole number as an int, so that a makespan of 12 is printed as 12."""
    if value is None or value != int(value) or abs(value) >= 2**53:
        return value
    return int(value)


def _standard_input() -> str:
    if sys.stdin is None:
        raise InputError("standard input is closed")
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{STANDARD_INPUT}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise InputError(f"{STANDARD_INPUT}: cannot be read: {error.strerror or error}") from None

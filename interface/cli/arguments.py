"""What commands share: arguments, a parser whose errors are one line, standard input, results as text."""

from __future__ import annotations

import argparse
import inspect
import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from schedgap.formulations.common.errors import InputError

if TYPE_CHECKING:
    from schedgap.reading import Text

STANDARD_INPUT = "<standard input>"

_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*=")
LARGEST_SEED = 2**31 - 1
Found = TypeVar("Found")


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises InputError instead of printing its usage, and takes no abbreviations."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        """Bad usage: one line."""
        raise InputError(f"{message} (see: {self.prog} --help){self._meant(message)}")

    def _meant(self, message: str) -> str:
        """A name close to the one that is unknown: a command, a choice, or an option of the command."""
        wrong = re.search(r"invalid choice: '([^']*)' \(|unrecognized arguments: (--[^ =]+)", message)
        parsers = [self, *(sub for a in self._actions if isinstance(a.choices, dict) for sub in a.choices.values())]
        known = [name.removeprefix("--") for parser in parsers for name in parser._option_string_actions]
        if wrong is None:
            listed = re.search(r"unrecognized arguments: ([\w.+-]+)", message)
            comma = listed is not None and "methods" in known
            if comma and re.search(r"unrecognized arguments: \S+\.json\b", message):
                return "; several instances are for bench, which compares in pairs: schedgap bench A.json B.json"
            return f"; several methods are joined by commas: --methods A,{listed[1]}" if listed and comma else ""
        from schedgap.reading import near

        if wrong[1] is not None:
            return near(wrong[1], re.findall(r"[\w.:-]+", message[wrong.end() :].removeprefix("choose from")))
        return near(wrong[2].removeprefix("--"), known).replace("mean '", "mean '--")


def refuse_spaces(arguments: Sequence[str]) -> None:
    """Numbers with spaces after ``--sharing``, of which the second would be taken for the log: an InputError."""
    listed = re.search(r"(?:^|\0)--sharing((?:\0[0-9.]+){2,})", "\0".join(arguments))
    if listed:
        raise InputError(f"--sharing: joined by commas: --sharing {listed[1][1:].replace(chr(0), ',')}")


def split_settings(arguments: Sequence[str]) -> list[str]:
    """``--set a=1 b=2`` as ``--set a=1 --set b=2``, so that it may be written either way."""
    result: list[str] = []
    settings = False
    for position, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[position:]]
        if settings and result[-1] != "--set" and _SETTING.match(argument):
            result.append("--set")
        elif argument == "--set":
            settings = True
        elif not (settings and result[-1] == "--set"):
            settings = False
        result.append(argument)
    return result


def _number(what: str, most: float) -> Callable[[str], float]:
    """The type of an option: a positive number up to `most`."""

    def read(text: str) -> float:
        try:
            value = float(text) if text.isascii() else 0.0
        except ValueError:
            value = 0.0
        if not 0 < value <= most:
            raise argparse.ArgumentTypeError(f"must be {what}, got {text!r}")
        return value

    return read


seconds = _number("seconds, positive and finite", 999_999_999)
gigabytes = _number("GB, positive and finite", 999_999_999)
factor = _number("a positive number", 1e6)


def count(text: str) -> int:
    """A whole number from 1."""
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, got {text!r}")
    return int(text)


def seed(text: str, most: int = LARGEST_SEED) -> int:
    """A whole number from 0; up to `most`, by default the largest that every engine takes as a seed."""
    if not re.fullmatch(r"[0-9]{1,16}", text) or int(text) > most:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {most}, got {text!r}")
    return int(text)


def names(text: str) -> list[str]:
    """A list separated by commas."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"must be names separated by commas, got {text!r}")
    return found


def factors(text: str) -> list[float]:
    """Numbers separated by commas."""
    return [factor(one) for one in text.split(",")]


class _Setting(argparse.Action):
    """One ``name=value``, beside those before it."""

    def __call__(self, parser: argparse.ArgumentParser, space: argparse.Namespace, text: Any, *_: object) -> None:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"--set: must be option=value, got {text!r}")
        if name in space.settings:
            raise InputError(f"--set: {name} is given twice ({space.settings[name]!r} and {value!r})")
        space.settings = {**space.settings, name: value}


def add_settings(parser: argparse.ArgumentParser, what: str, form: str = "option=value") -> None:
    """``--set``: ``arguments.settings`` has its values by name."""
    parser.add_argument("--set", action=_Setting, default={}, metavar=form, dest="settings", help=what)


def call(function: Callable[..., Found], arguments: argparse.Namespace, *first: object, **more: object) -> Found:
    """Call a function of the API, whose keywords have the names of the command's options.

    It is given `first` and `more`, and every other option that it has a keyword for; an option that was not given
    leaves the function its own default. Progress goes to standard error.
    """
    wanted = list(inspect.signature(function).parameters)[len(first) :]
    told = {name: value for name, value in vars(arguments).items() if name in wanted and value is not None}
    if "progress" in wanted:
        told["progress"] = sys.stderr
    return function(*first, **{**told, **more})


def add_cluster(parser: argparse.ArgumentParser, workers: str = "processes (default: all cores)") -> None:
    """``--workers`` and ``--cluster``."""
    parser.add_argument("--workers", type=count, metavar="N", help=workers)
    parser.add_argument("--cluster", metavar="ADDRESS", help="address of a Dask scheduler whose workers do the work")


def add_resume(parser: argparse.ArgumentParser) -> None:
    """``--resume``."""
    parser.add_argument("--resume", action="store_true", help="go on in DIR (default: anew, beside it)")


def add_seed(
    parser: argparse.ArgumentParser, default: int | None = 0, told: str = "0", most: int = LARGEST_SEED
) -> None:
    """``--seed``, up to `most`."""
    what = f"seed of all randomness (default {told})"
    parser.add_argument("--seed", type=partial(seed, most=most), default=default, metavar="N", help=what)


def add_time_limit(parser: argparse.ArgumentParser, what: str) -> None:
    """``--time-limit``."""
    parser.add_argument("--time-limit", type=seconds, metavar="S", help=what)


def add_memory_limit(parser: argparse.ArgumentParser, what: str, default: float | None = None) -> None:
    """``--memory-limit``."""
    parser.add_argument("--memory-limit", type=gigabytes, default=default, metavar="GB", help=what)


def given(path: str) -> str | Text:
    """The path, or what stands on standard input where it is "-"."""
    from schedgap.reading import Text, bounded, decoded

    if path != "-":
        return path
    if sys.stdin is None:
        raise InputError("standard input is closed")
    try:
        content = bounded(sys.stdin.buffer, STANDARD_INPUT)
        return Text(STANDARD_INPUT, decoded(content, STANDARD_INPUT))
    except OSError as error:
        raise InputError(f"{STANDARD_INPUT}: {error.strerror or error}") from None


def once(*paths: str | None) -> None:
    """Refuse to read standard input twice."""
    if paths.count("-") > 1:
        raise InputError("standard input (-) can be read only once")


def check_out(out: Path | None, *inputs: str | Path | None) -> None:
    """Refuse a file that cannot be written, or that is read too, before any work is done."""
    from schedgap.reading import check_writable

    if out is None or str(out) == "-":
        return
    for path in inputs:
        if path is not None and str(path) != "-" and out.exists() and Path(path).exists() and out.samefile(path):
            raise InputError(f"--out: {out} is an input too, and would be overwritten")
    check_writable(out)


def write_or_print(text: str, out: Path | None) -> None:
    """Write `text` to a file, or print it where there is none or it is "-"."""
    from schedgap.reading import write_text

    if out is None or str(out) == "-":
        print(text)
    else:
        write_text(out, text if text.endswith("\n") else text + "\n")


def to_json(data: object, indent: int | None = None) -> str:
    """JSON without NaN and infinities, which JSON does not have; in ASCII where standard output is not UTF-8."""
    letters = getattr(sys.stdout, "encoding", None) or "utf-8"
    plain = letters.lower().replace("-", "") not in ("utf8", "utf8sig")
    return json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=plain)


def room() -> int:
    """Characters of a line of standard output: the terminal's, or 120 where it is none."""
    return shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 120


def note(text: str) -> None:
    """A line for a person, on standard error."""
    print(f"schedgap: note: {text}", file=sys.stderr)

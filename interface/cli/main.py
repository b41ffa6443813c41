"""The command ``schedgap``: reads the arguments, loads the one command that was asked for, runs it."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import TextIO, cast

from schedgap import interrupt
from schedgap.cli.arguments import Parser, refuse_spaces, split_settings
from schedgap.cli.command import loaded_commands
from schedgap.formulations.common.errors import SchedgapError
from schedgap.interrupt import INTERRUPTED, Door, at_once, at_work, deaf, engines_left, leave, terminate_like_ctrl_c

PIPE_CLOSED = 141
"""Exit status of every command whose reader went away (128 + SIGPIPE)."""
PREPARING = ("solve", "compare")
"""Commands that say themselves when there is something that Ctrl-C must not lose."""

COMMANDS = {
    "bench": ("bench", "run suites: table and HTML report", "quick --problem rar-ddls --out results"),
    "report": ("bench", "the report of one run, or of two runs compared", "results --csv"),
    "solve": ("solve", "solve an instance by one method", "s30.json --method sjf-bco --json"),
    "compare": ("solve", "several methods on one instance, with ratios and guarantees", "s30.json --time-limit 20"),
    "check": ("check", "check a solution independently", "s30.json solution.json"),
    "certify": ("check", "prove an optimum or a bound in exact rational arithmetic", "s30.json --out s30.cert"),
    "verify": ("verify", "try what the papers prove on many instances", "000-theorem-5 --instances 20"),
    "hunt": ("verify", "search for the instance on which a heuristic or a claim does worst", "rar-ddls/sjf-bco"),
    "generate": ("make", "a random instance", "rar-ddls --preset small --seed 30 --set servers=3 gpus=3"),
    "import": ("make", "an instance made of a real trace", "csv jobs.csv --problem gpu-sharing --set gpus=num_gpu"),
    "plot": ("show", "draw a solution", "s30.json solution.json --out gantt.svg"),
    "model": ("show", "show or write a declarative model", "s30.json --out s30.lp"),
    "export": ("show", "the same as model --out", "s30.json --format mps --out s30.mps"),
    "schema": ("show", "JSON Schema of an instance or a solution", "rar-ddls"),
    "list": ("show", "all problems on one screen, or one of them whole", "rar-ddls"),
}
"""Command of the kit: its module in schedgap.cli, with ``add_<command>`` and ``run_<command>``, one line of help, an
example. Commands of tools come by entry point."""

EXITS = """exit status: 0 solution found, check passed; 1 check failed; 2 bad input or usage; 3 proven infeasible or
unbounded; 4 nothing found; 5 internal error or disagreement; 130 interrupted, after printing the best so far;
141 output closed by its reader"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : the arguments; those of the process where not given

    Returns
    -------
    The exit status.
    """
    if argv is None:
        terminate_like_ctrl_c()
    status = _run(sys.argv[1:] if argv is None else list(argv))
    if argv is None:
        if status == INTERRUPTED or engines_left():
            leave(status)
        deaf()
    return status


def _run(arguments: list[str]) -> int:
    if sys.stderr is None:  # closed: nobody reads messages and progress, which is no reason to stop
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  (for the whole process)
    if sys.stdout is None:
        return _fail("error: standard output is closed", 2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal of few letters shows the codes of the others
            stream.reconfigure(errors="backslashreplace")
    with redirect_stdout(cast(TextIO, Door(sys.stdout))), redirect_stderr(cast(TextIO, Door(sys.stderr, "\r"))):
        return _told(arguments)


def _told(arguments: list[str]) -> int:
    """The exit status, with a line for every error."""
    try:
        status = _dispatch(arguments)
        sys.stdout.flush()
        return status
    except SchedgapError as error:
        if "--traceback" in arguments:
            traceback.print_exc()
        return _fail(f"error: {error}", error.exit_status)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # What is still buffered has no reader either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except MemoryError:
        return _fail(f"error: out of memory{_address_space()}", 4)
    except OSError as error:
        if _is_starved(error):
            return _fail(f"error: out of memory{_address_space()}", 4)
        if error.filename is None and not _is_output(error):
            traceback.print_exc()
            return _fail("internal error, please report it", 5)
        return _fail(f"error: {error.filename or 'standard output'}: {error.strerror}", 2)
    except Exception as error:
        if interrupt.TORN.is_set():
            return _fail("interrupted", INTERRUPTED)
        if _is_starved(error):
            return _fail(f"error: out of memory{_address_space()}", 4)
        traceback.print_exc()
        return _fail("internal error, please report it", 5)


def _is_output(error: OSError) -> bool:
    """Whether it is standard output that could not be written."""
    import errno

    return error.errno in (errno.ENOSPC, errno.EIO, errno.EBADF)


def _address_space() -> str:
    """How little memory this process may have, for a message; "" where the system sets no limit."""
    with suppress(ImportError):  # a system without such limits
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            return f": this process may have {limit >> 20} MB of address space (ulimit -v)"
    return ""


def _is_starved(error: Exception) -> bool:
    """Whether a limit of memory is behind it: a library is not loaded, or a thread not started, for want of room."""
    loading = isinstance(error, ImportError | OSError) and getattr(error, "filename", None) is None
    return (loading and bool(_address_space())) or "can't start new thread" in str(error)


def _fail(message: str, status: int) -> int:
    with suppress(OSError, ValueError):
        print("schedgap: " + " ".join(message.splitlines()), file=sys.stderr, flush=True)
    return status


def _dispatch(arguments: list[str]) -> int:
    with at_once():
        completing = "_ARGCOMPLETE" in os.environ
        line = os.environ.get("COMP_LINE", "").split()[1:] if completing else arguments
        name = next((argument for argument in line if not argument.startswith("-")), None)
        parser = _parser(name)
        if completing:
            from schedgap.cli.completion import complete

            complete(parser, name)
        try:
            refuse_spaces(arguments)
            parsed = parser.parse_args(split_settings(arguments))
        except SystemExit as ending:  # --help and --version
            return int(ending.code or 0)
        run: Callable[[argparse.Namespace], int] = parsed.run
        del parsed.run  # a command sees the arguments of its user
        if parsed.command in PREPARING:
            return run(parsed)
        with at_work():
            return run(parsed)


def _parser(wanted: str | None) -> argparse.ArgumentParser:
    """The parser; only the command that is wanted loads its module and knows its arguments."""
    parser = Parser(
        prog="schedgap",
        description="How far is a GPU-cluster scheduler from the best possible schedule?",
        epilog=EXITS,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    tools = {} if wanted in COMMANDS else loaded_commands(wanted)
    lines = {name: (line, example) for name, (_, line, example) in COMMANDS.items()}
    lines |= {name: (tool.line, tool.example) for name, tool in tools.items()}
    for name, (line, example) in lines.items():
        shown = f"for example: schedgap {name} {example}"
        sub = commands.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".", epilog=shown)
        if name == wanted:
            if name in tools:
                add, run = tools[name].add, tools[name].run
            else:
                module = importlib.import_module(f"schedgap.cli.{COMMANDS[name][0]}")
                add, run = getattr(module, f"add_{name}"), getattr(module, f"run_{name}")
            add(sub)
            sub.set_defaults(run=run)
            inner = [one for a in sub._actions if isinstance(a.choices, dict) for one in a.choices.values()]
            for one in inner or [sub]:  # library list, ...
                one.add_argument("--traceback", action="store_true", help="with an error: the traceback, too")
    return parser


class _Version(argparse.Action):
    """Prints the version, which takes a while to look up."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"schedgap {version('schedgap')}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())

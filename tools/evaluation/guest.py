"""The inside of the process in which a foreign scheduler runs: instances come in, solutions go out, nothing else.

Started as ``python -m schedgap.tools.evaluation.guest PARENT IN OUT [PROBLEM]`` with two inherited pipes, or as
``... PARENT nursery SOCKET PROBLEM``, from which processes with such pipes are forked. Of a problem that is named it
loads the compiled heuristics first. Nothing that happens here is believed outside: times are taken and solutions are
checked by the other side.
"""

# ruff: noqa: PTH109, PTH112, PTH115, PTH117, PTH118, PTH208
from __future__ import annotations

import contextlib
import fcntl
import functools
import gc
import importlib
import itertools
import json
import os
import resource
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import IO, Any

from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue import run
from schedgap.catalogue.method import Kind, Method, check_signature, import_users, last_line_of, one_line, users_code
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.compiled import compiled_at_once
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.machine import kept_code
from schedgap.formulations.common.parent import end_with_parent
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.solvers import budget
from schedgap.tools.evaluation import nursery
from schedgap.tools.evaluation.landlock import restrict
from schedgap.tools.evaluation.seccomp import give_up_rights, refuse_calls
from schedgap.tools.online.state import Session

_REFUSED = (
    *("os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "os.startfile", "os.kill", "pty."),
    *("signal.pthread_kill", "resource.prlimit", "socket.", "sqlite3.", "dbm.", "syslog.", "fcntl.fcntl"),
    *("subprocess.", "cpython.PyInterpreterState_New"),  # of another interpreter this hook sees nothing
    "os.symlink",  # one that a thread puts in a file's place while the hook looks leads anywhere
)
"""Events, by how they begin. A database names its files in a language of its own, which no hook reads."""
_PATHS = {
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.link": ((0, 2), (1, 3)),
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.rmdir": ((0, 1),),
    "os.utime": ((0, 3),),
    **{f"os.{name}": ((0, None),) for name in ("truncate", "setxattr", "removexattr", "chflags", "lockf")},
}
"""Events that change files: where their paths are, and the folders that a relative path begins at."""
_UNSEEN = {
    "posix": (
        *("mkfifo", "mknod", "memfd_create", "setpriority", "chroot"),
        *("setuid", "setgid", "seteuid", "setegid", "setreuid", "setregid", "setresuid", "setresgid"),
        *("setgroups", "setsid"),
        *("sched_setaffinity", "sched_setscheduler", "sched_setparam"),
    ),
    "_signal": ("pidfd_send_signal",),
    "_posixsubprocess": ("fork_exec",),
    "_posixshmem": ("shm_open", "shm_unlink"),
    "_multiprocessing": ("SemLock",),
}
"""What Python does without an event: it is taken away."""
_LIBRARY = ("schedgap.benchmarks.worst", "schedgap.tools.library")
_NO_IMPORT = frozenset(
    {"_dbm", "_gdbm", "_tkinter", "readline", "spwd", "_xxsubinterpreters", "_interpreters", *_UNSEEN}
)
"""Modules that open files without an event, and those of which something was taken away."""
SEEDS = 8
"""Seeds of two presets, whose instances are solved while files are open: of ddljs' only the 7th splits."""
FILES = 256
"""Open at a time."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def receive(stream: IO[bytes]) -> Json:
    """One message: its length in 8 bytes, then JSON; None where the other side has ended."""
    head = stream.read(8)
    return json.loads(stream.read(struct.unpack(">Q", head)[0])) if len(head) == 8 else None


def send(stream: IO[bytes], message: Json) -> None:
    """Write one message."""
    data = json.dumps(message, allow_nan=False).encode()
    stream.write(struct.pack(">Q", len(data)) + data)
    stream.flush()


def fence(folder: str, readable: Sequence[str]) -> None:
    """From here on no other process, no network, no file changed outside of `folder`, none read but there and these.

    An audit hook cannot be taken away again. It stops what Python does, not what machine code does, nor Python code
    that works against the hook itself; that is for :func:`~schedgap.tools.evaluation.landlock.restrict` and
    :func:`~schedgap.tools.evaluation.seccomp.refuse_calls`.
    """
    home = os.path.realpath(folder)
    open_to_read = frozenset((home, os.path.realpath(os.devnull), *readable))
    below = tuple(place + os.sep for place in open_to_read)

    def at_home(path: str) -> bool:
        return path == home or path.startswith(home + os.sep)

    def starts(path: str, descriptor: int | None) -> list[str]:
        """Where a relative path may begin: `open` does not tell its folder, so all that are open count."""
        if os.path.isabs(path):
            return [""]
        return [os.getcwd(), *_open_folders()] if descriptor in (None, -1) else [_path_of(descriptor)]

    def named(path: Any, descriptor: int | None = None) -> list[str]:
        if isinstance(path, int):
            return [_path_of(path)]
        if not isinstance(path, str | bytes):  # it could say something else each time that it is asked
            raise PermissionError("a scheduler may name a file by its text only")
        text = str.__add__("", path) if isinstance(path, str) else os.fsdecode(bytes.__add__(b"", path))
        return [os.path.join(start, text) for start in starts(text, descriptor)]

    def changed(path: Any, descriptor: int | None) -> list[str]:
        """The file, and the entry that names it, which may be a link to it."""
        paths = named(path, descriptor)
        entries = [os.path.split(one.rstrip(os.sep)) for one in paths]
        return [*map(os.path.realpath, paths), *(os.path.join(os.path.realpath(at), name) for at, name in entries)]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            if isinstance(path, int):
                return  # open already
            real = [os.path.realpath(one) for one in named(path)]
            changes = flags & _WRITES or any(letter in (mode or "") for letter in "wax+")  # one of the two is told
            if changes and path != os.devnull and not all(map(at_home, real)):
                raise PermissionError(f"a scheduler may not write {path}")
            for one in real:
                if one not in open_to_read and not one.startswith(below) and os.path.lexists(one):
                    raise PermissionError(f"a scheduler may not read {path}")
        elif event in _PATHS:
            for at, descriptor in _PATHS[event]:
                start = None if descriptor is None else arguments[descriptor]
                if not all(map(at_home, changed(arguments[at], start))):
                    raise PermissionError(f"a scheduler may not change {arguments[at]}")
        elif event == "import" and (arguments[0] in _NO_IMPORT or str(arguments[0]).startswith(_LIBRARY)):
            raise ImportError(f"a scheduler may not import {arguments[0]}")
        elif event.startswith(_REFUSED) and not _harmless(event, arguments):
            raise PermissionError(f"a scheduler may not use other processes, the network, databases or links ({event})")
        elif event == "os.chdir":  # nor does a relative path begin elsewhere when the hook has looked
            for one in map(os.path.realpath, named(arguments[0])):
                if one not in open_to_read and not one.startswith(below):
                    raise PermissionError(f"a scheduler may not go to {arguments[0]}")

    _take_away()
    for module in [name for name in sys.modules if name.startswith(_LIBRARY)]:  # it knows answers
        del sys.modules[module]
    sys.addaudithook(hook)


_ON_OWN_DESCRIPTORS = ("DUPFD", "DUPFD_CLOEXEC", "GETFD", "SETFD", "GETFL", "SETFL", "GETPATH")
_HARMLESS_COMMANDS = {getattr(fcntl, f"F_{name}", None) for name in _ON_OWN_DESCRIPTORS}


def _harmless(event: str, arguments: tuple[Any, ...]) -> bool:
    """A pair of connected sockets, which event loops wake themselves by; the name of this machine; own descriptors."""
    if event == "fcntl.fcntl":  # others send signals to the owner of a file, or hold up who opens it
        return arguments[1] in _HARMLESS_COMMANDS
    return event == "socket.gethostname" or (event == "socket.__new__" and arguments[1] == socket.AF_UNIX)


def _path_of(descriptor: int) -> str:
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).split(b"\0")[0])
    return os.readlink(f"/proc/self/fd/{descriptor}")


def _open_folders() -> list[str]:
    found = []
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):
            found.append(_path_of(int(name)))
    return [path for path in found if os.path.isdir(path)]


@functools.cache  # a process forked from a nursery has it behind it: looking through all modules copies their pages
def _take_away() -> None:
    """Functions that no hook sees, wherever a module has them; what is imported later finds them nowhere."""

    def refused(*_: object, **__: object) -> None:
        raise PermissionError("a scheduler may not do this")

    for known in _UNSEEN:
        with contextlib.suppress(ImportError):
            importlib.import_module(known)
    there = [(sys.modules.get(module), name) for module, names in _UNSEEN.items() for name in names]
    unseen = {id(getattr(module, name)) for module, name in there if hasattr(module, name)}
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in unseen and isinstance(value, type):
                delattr(module, name)  # who looks for a class does without where there is none
            elif id(value) in unseen:
                setattr(module, name, refused)


def _warm_up(problem: Problem) -> None:
    """Load the compiled code of the shipped heuristics, which the scheduler may call, while files are still open."""
    presets = workload_of(problem).presets[:2]
    for preset, seed, method in itertools.product(presets, range(SEEDS), problem.heuristics()):
        with contextlib.suppress(Exception), compiled_at_once():  # whoever calls one that fails hears why
            run.load(problem, method)  # with what `schedgap.solve` imports beside it
            instance = preset.generator(seed, **preset.settings)
            problem.check(instance, getattr(method.call(instance, seed=0), "solution", None) or {})
    if "highspy" in sys.modules:  # a forked process would wait for its threads
        sys.modules["highspy"].Highs.resetGlobalScheduler(True)


def _compile_without_files(folder: str) -> None:
    """What is compiled after the warm-up is not kept beside its source, where a candidate may not write."""
    os.environ["NUMBA_CACHE_DIR"] = os.path.join(folder, "numba")
    kept_code.folder.cache_clear()
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]
        cache = importlib.import_module("numba.core.caching").Cache
        cache._guard_against_spurious_io_errors = lambda _: contextlib.suppress(OSError)


def _keep_answers(problem: Problem) -> None:
    """`schedgap.solve` runs heuristics only, and computes no bound."""
    names = ", ".join(method.id for method in problem.heuristics())

    def refusing(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any) -> Any:
            for method in given:
                if isinstance(method, Method) and method.kind is not Kind.HEURISTIC:
                    raise InputError(f"{method.id}: exact methods are not for candidates, heuristics are: {names}")
            return function(*given)

        return wrapped

    run.load, run._run = refusing(run.load), refusing(run._run)
    type(problem).certified_bound = lambda *_: None  # type: ignore[method-assign]
    if sys.platform == "linux":  # its process has a limit there, so no thread has to watch what is free in each call
        budget.available_bytes = lambda: None


class _Served:
    """What answers requests: a function that is given instances, or a policy that is given events."""

    def __init__(self, scheduler: Callable[..., Any], problem: Problem) -> None:
        self.scheduler, self.problem = scheduler, problem
        self.session: Session | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """A solution; the actions after an event; nothing where a run opens, or where only time is taken."""
        if "instance" in request:
            instance = self.problem.instance_class.parse(request["instance"])
            found = self.scheduler(instance, seed=request["seed"])
            return {"solution": found.solution if isinstance(found, HeuristicRun) else found}
        if "opening" in request:
            self.session = Session(self.scheduler(), request["opening"])
        if "event" in request and self.session is not None:
            return {"actions": self.session.answer(request["event"])}
        return {}


def main(argv: list[str]) -> None:
    """Serve until the other side ends."""
    parent = int(argv[0])
    end_with_parent(parent, watch=False)
    sys.dont_write_bytecode = True
    if argv[3:]:
        _warm_up(find_problem(argv[3]))
    if argv[1] == "nursery":
        parent = os.getpid()
        _take_away()
        gc.freeze()  # what is here already is looked through, and so copied, in no candidate's process
        pipes = nursery.serve(socket.socket(fileno=int(argv[2])))
    else:
        pipes = [int(pipe) for pipe in argv[1:3]]
    incoming, outgoing = (os.fdopen(pipe, mode) for pipe, mode in zip(pipes, ("rb", "wb"), strict=True))
    setup = receive(incoming) or sys.exit()
    problem = find_problem(setup["problem"])
    os.environ.update(HOME=setup["folder"], TMPDIR=setup["folder"])
    tempfile.tempdir = None  # what it has found before it was forked
    if setup["heuristics_only"]:
        _keep_answers(problem)
    _compile_without_files(setup["folder"])
    resource.setrlimit(resource.RLIMIT_AS, (setup["memory"], setup["memory"]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (setup["file"], setup["file"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    files = min(FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))  # what pipes and sockets hold is memory, too
    landlocked = threading.active_count() == 1 and restrict(setup["folder"], setup["readable"])  # on this thread
    give_up_rights()
    end_with_parent(parent)  # only now: its thread is restricted with what it is started by
    isolated = refuse_calls() and landlocked
    fence(setup["folder"], setup["readable"])
    send(outgoing, {"token": setup["token"], "isolated": isolated})  # before any code of strangers is loaded
    while (request := receive(incoming) or sys.exit()).get("echo"):
        send(outgoing, {"token": request["token"]})
    answer: dict[str, Any] = {"token": request["token"]}
    served: _Served | None = None
    try:
        scheduler = import_users(setup["scheduler"])
        if not setup["policy"]:
            check_signature(scheduler, "", {"seed": 0})
        elif not (isinstance(scheduler, type) and callable(getattr(scheduler, "decide", None))):
            raise InputError("--online takes a class with decide(state) -> actions")
        answer["preempts"] = getattr(scheduler, "preempts", False) is True
        served = _Served(scheduler, problem)
    except InputError as error:
        answer["error"] = str(error)
    except BaseException as error:
        answer["error"] = one_line(error)
    send(outgoing, answer)
    while served is not None and (request := receive(incoming)) is not None:
        try:
            with users_code():
                answer = served.answer(request)
            send(outgoing, {**answer, "token": request["token"]})
        except MemoryError:
            send(outgoing, {"token": request["token"], "error": "MemoryError: more memory than it may have"})
        except BaseException as error:
            send(outgoing, {"token": request["token"], "error": one_line(error) + last_line_of(error)})


if __name__ == "__main__":
    main(sys.argv[1:])

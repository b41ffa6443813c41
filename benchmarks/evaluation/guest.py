"""The inside of the process in which a foreign scheduler runs: instances come in, solutions go out, nothing else.

Started as ``python -m schedgap.benchmarks.evaluation.guest PARENT IN OUT`` with two inherited pipes. Nothing that
happens here is believed outside: times are taken and solutions are checked by the other side.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from schedgap.benchmarks.evaluation.landlock import restrict
from schedgap.benchmarks.evaluation.seccomp import give_up_rights, refuse_calls
from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.methods import import_users, one_line, users_code
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.parent import end_with_parent
from schedgap.heuristics.common.run import HeuristicRun

_PROCESSES = frozenset(
    {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen", "os.kill"}
    | {"os.killpg", "pty.spawn", "signal.pthread_kill", "resource.prlimit"}
)
_NETWORK = frozenset({"socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"})
_CHANGES = frozenset(
    {"os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate"}
    | {"os.utime", "os.setxattr", "os.removexattr", "shutil.rmtree", "shutil.move", "sqlite3.connect"}
)
_RECORDS = ("run.sqlite", "card.json", "journal.jsonl", "ledger.json")
"""A folder with one of these holds what an earlier run found, optima among it."""
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


def fence(folder: str, closed: list[str]) -> None:
    """From here on no other process, no network, no file changed outside of `folder`.

    No file is read in `closed` either, nor beside the records of a run, a hunt, a ledger or a card.

    An audit hook cannot be taken away again. It stops what Python does, not what machine code does; what machine code
    may do is for :func:`~schedgap.benchmarks.evaluation.landlock.restrict` and
    :func:`~schedgap.benchmarks.evaluation.seccomp.refuse_calls`.
    """
    home = os.path.realpath(folder)
    shut = tuple(os.path.realpath(path) for path in closed)

    def inside(path: Any, places: tuple[str, ...]) -> bool:
        if isinstance(path, int):
            return places == (home,)  # a file that is open already
        real = os.path.realpath(os.fsdecode(path))
        return any(real == place or real.startswith(place + os.sep) for place in places)

    def records_beside(path: Any) -> bool:
        parent = Path(os.path.realpath(os.fsdecode(path))).parent
        return any((parent / name).exists() for name in _RECORDS)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            changes = bool(flags & _WRITES) if isinstance(flags, int) else any(letter in str(mode) for letter in "wax+")
            if changes and not inside(path, (home,)) and path != os.devnull:
                raise PermissionError(f"a scheduler may not write {path}")
            if not isinstance(path, int) and (records_beside(path) or inside(path, shut)):
                raise PermissionError(f"a scheduler may not read {path}")
        elif event in _PROCESSES:
            raise PermissionError(f"a scheduler may not start or signal processes ({event})")
        elif event in _NETWORK:
            raise PermissionError(f"a scheduler may not use the network ({event})")
        elif event in _CHANGES:
            path, *rest = arguments
            if event in ("os.remove", "os.rmdir") and rest != [-1]:  # by a folder that is open: shutil.rmtree
                path = os.path.join(os.readlink(f"/proc/self/fd/{rest[0]}"), os.fsdecode(path))  # noqa: PTH115, PTH118
            if not inside(path, (home,)):
                raise PermissionError(f"a scheduler may not change {path}")

    sys.addaudithook(hook)


def _warm_up(problem: Problem) -> None:
    """Load the compiled code of the shipped heuristics, which the scheduler may call, while files are still open."""
    presets = workload_of(problem).presets
    for method in problem.heuristics() if presets else ():
        with contextlib.suppress(Exception):
            method.call(presets[0].generator(0, **presets[0].settings), seed=0)


def main(argv: list[str]) -> None:
    """Serve until the other side ends."""
    end_with_parent(int(argv[0]), watch=False)
    incoming, outgoing = os.fdopen(int(argv[1]), "rb"), os.fdopen(int(argv[2]), "wb")
    setup = receive(incoming)
    sys.dont_write_bytecode = True
    problem = find_problem(setup["problem"])
    if setup["warm"]:
        _warm_up(problem)
    os.environ["NUMBA_CACHE_DIR"] = os.path.join(setup["folder"], "numba")  # noqa: PTH118
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]
    resource.setrlimit(resource.RLIMIT_AS, (setup["memory"], setup["memory"]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (setup["file"], setup["file"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    restrict(setup["folder"])
    give_up_rights()
    end_with_parent(int(argv[0]))  # only now: its thread is restricted with what it is started by
    refuse_calls()
    fence(setup["folder"], setup["closed"])
    answer: dict[str, Any]
    function: Callable[..., Any] | None = None
    try:
        function = import_users(setup["scheduler"])
        answer = {"token": setup["token"]}
    except BaseException as error:
        answer = {"token": setup["token"], "error": one_line(error)}
    send(outgoing, answer)
    while function is not None and (request := receive(incoming)) is not None:
        instance = problem.instance_class.parse(request["instance"])
        answer = {"token": request["token"]}
        try:
            with users_code():
                found = function(instance, seed=request["seed"])
            answer["solution"] = found.solution if isinstance(found, HeuristicRun) else found
            send(outgoing, answer)
        except MemoryError:
            send(outgoing, {"token": request["token"], "error": "MemoryError: more memory than it may have"})
        except BaseException as error:
            send(outgoing, {"token": request["token"], "error": one_line(error)})


if __name__ == "__main__":
    main(sys.argv[1:])

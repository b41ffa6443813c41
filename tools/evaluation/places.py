"""What a foreign scheduler may reach: files it may read, and how the kernel keeps it from others and from calls."""

# ruff: noqa: PTH112, PTH118

from __future__ import annotations

import ctypes
import errno
import importlib.util
import json
import os
import platform
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from schedgap.formulations.common.errors import InputError

RECORDS = ("run.sqlite", "card.json", "journal.jsonl", "ledger.json", "hunt.json", "FAMILY.json")
"""A folder with one of these holds what an earlier run found, optima among it."""
MOST_FOLDERS = 5000
"""Folders below the scheduler's own that are looked into; those beyond are not readable."""
LAYERS = ("", ".formulations", ".solvers", ".heuristics", ".catalogue", ".tools", ".benchmarks")
_ANSWERS = tuple(f"schedgap/{folder}" for folder in ("benchmarks/worst", "tools/library", "benchmarks/worst"))
"""Folders that hold answers, in any installation: the last is that of versions up to 0.2."""
_SYSTEM = (
    *("/usr", "/lib", "/lib32", "/lib64", "/System", "/Library/Frameworks", "/opt/homebrew"),
    *(f"/etc/{name}" for name in ("ld.so.cache", "localtime", "timezone", "passwd", "group", "nsswitch.conf")),
    *(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")),
    *(f"/proc/{name}" for name in ("cpuinfo", "meminfo", "stat", "loadavg", "version", "sys/vm", "sys/kernel")),
    *(f"/sys/{name}" for name in ("devices/system", "fs/cgroup", "kernel/mm")),
)


def readable(scheduler: str, closed: Sequence[Path]) -> tuple[str, ...]:
    """The folders, with all that is in them, and files that a scheduler may read beside its own folder for work.

    Python and its libraries, schedgap without its library of records, the folder of the scheduler's file (of a module
    in the working directory its outermost package alone) without records of earlier runs, and a little of the system.
    Nothing in `closed`, nor the documentation and tests of schedgap, which hold solutions.
    """
    *_, tools, benchmarks = layers = [_home(layer) for layer in LAYERS]
    sources = benchmarks.parent
    answers = [
        benchmarks / "worst",
        tools / "library",
        *(sources / name for name in ("docs", "tests/data", "tests/oracles")),
    ]
    module, _, _ = scheduler.rpartition(":")
    own = [Path(module).resolve().parent] if module.endswith(".py") else _outermost(module)
    python = [sys.prefix, sys.base_prefix, *_imports()]
    # Other installations of schedgap, of the system's Python or a user's, have the library, too.
    roots = ("/usr", "/usr/local", *python[:2])
    for folder in _ANSWERS:
        answers += [Path(one, folder) for one in python if Path(one, folder).exists()]
        answers += [one for root in roots for one in Path(root).glob(f"lib*/python3*/*/{folder}")]
    shut = {os.path.realpath(path) for path in (*closed, *answers)}
    shut |= {record for folder in own for record in _records_below(folder)}
    places = [*python, *map(str, layers), *map(str, own), *_SYSTEM]
    real = dict.fromkeys(os.path.realpath(place) for place in places if os.path.lexists(place))
    return tuple(dict.fromkeys(part for place in real for part in _without(place, shut)))


def _outermost(module: str) -> list[Path]:
    """The package or file in the working directory that holds a module; none where it is installed."""
    name = module.partition(".")[0]
    return [place for place in (Path.cwd() / name, Path.cwd() / f"{name}.py") if place.exists()]


def environment() -> dict[str, str]:
    """What its process is told of ours."""
    told = ("PATH", "LANG", "PYTHONPATH", "SYSTEMROOT")
    return {key: os.environ[key] for key in told if key in os.environ}


def _imports() -> list[str]:
    """Where its process imports from: not from the folder of a script of ours, nor from what one has added."""
    ask = [sys.executable, "-P", "-c", "import json, sys; print(json.dumps(sys.path))"]
    found: list[str] = json.loads(subprocess.run(ask, env=environment(), capture_output=True, check=True).stdout)
    return [path for path in found if path and Path(path).resolve() != Path.cwd()]


def files_among(given: Iterable[object]) -> list[Path]:
    """The files of instances that are given by their paths: what a scheduler sees of them it is told."""
    return [Path(one) for one in given if isinstance(one, str | Path)]


def _home(layer: str) -> Path:
    spec = importlib.util.find_spec(f"schedgap{layer}")
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def _records_below(folder: Path) -> Iterator[str]:
    """Folders below this one with records, and those too many to look into."""
    for number, (path, below, files) in enumerate(os.walk(folder)):
        below[:] = [name for name in below if os.path.join(path, name) != sys.prefix]
        if number >= MOST_FOLDERS or any(name in files for name in RECORDS):
            below.clear()
            yield os.path.realpath(path)


def _without(place: str, shut: Iterable[str]) -> Iterator[str]:
    """`place`, or the parts of it in which nothing shut lies; links to elsewhere are no part of it."""
    if any(place == path or place.startswith(path + os.sep) for path in shut):
        return
    inner = [path for path in shut if path.startswith(place.rstrip(os.sep) + os.sep)]
    if not inner:
        yield place
    elif os.path.isdir(place):
        with os.scandir(place) as entries:
            for entry in entries:
                if not entry.is_symlink():
                    yield from _without(entry.path, inner)


def bubblewrap() -> str:
    """The program that makes containers.

    Raises InputError: it is not installed.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise InputError("--container: needs bubblewrap (the program bwrap), which is not installed here")
    return program


def contained_by(program: str, folder: str, places: Sequence[str]) -> list[str]:
    """How bubblewrap starts a command that sees these files and none else, no other process and no network."""
    seen = [
        word for place in places if not place.startswith(("/proc", "/dev")) for word in ("--ro-bind-try", *2 * (place,))
    ]
    links = [path for path in map(Path, ("/bin", "/lib", "/lib64")) if path.is_symlink()]
    linked = [word for path in links for word in ("--symlink", str(path.readlink()), str(path))]
    here = str(Path.cwd())
    own = ["--bind", folder, folder, "--proc", "/proc", "--dev", "/dev", "--dir", here, "--chdir", here]
    shut = ["--remount-ro", "/", "--"]  # what it wrote there would be memory that no limit counts
    return [program, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", *seen, *linked, *own, *shut]


# Linux's Landlock: the kernel keeps a process from reading and changing files, also where it runs machine code.


_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION, _BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38
_EXECUTE, _WRITE, _READ, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 14
_CHANGES = _WRITE | sum(1 << bit for bit in range(4, 13))
"""Writing files; removing and making entries of every kind."""
_REFER = 1 << 13
_NETWORK, _SCOPE = 0b11, 0b11
"""TCP, bind and connect; abstract sockets and signals to processes outside."""


def restrict(folder: str, readable: Iterable[str]) -> bool:
    """From here on this thread and what it starts change files in `folder` only, and start no program.

    Files are read there and in `readable` (folders with all that is in them, and files); names of files can be listed.

    No TCP connection and no signal to a process outside either, where the kernel is new enough for that. Returns
    whether it holds: False on other systems, and where the kernel has no Landlock.
    """
    if not sys.platform.startswith("linux"):
        return False
    system = ctypes.CDLL(None)
    system.syscall.restype = ctypes.c_long
    version = system.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION))
    if version < 1:
        return False
    inside = _CHANGES | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    parts = (inside | _READ | _EXECUTE, _NETWORK if version >= 4 else 0, _SCOPE if version >= 6 else 0)
    rules = struct.pack("=QQQ", *parts)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = system.syscall(_CREATE, rules, ctypes.c_size_t(len(rules)), ctypes.c_uint(0))
    if ruleset < 0:
        return False
    own = ((folder, inside | _READ), (os.devnull, inside & (_WRITE | _TRUNCATE) | _READ))
    for path, allowed in (*own, *((path, _READ) for path in readable)):
        with suppress(OSError):  # what is gone by now is not read
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rule = struct.pack("=Qi", allowed, place)
            system.syscall(_ADD, ctypes.c_int(ruleset), ctypes.c_int(_BENEATH), rule, ctypes.c_uint(0))
            os.close(place)
    system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    held = system.syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint(0)) == 0
    os.close(ruleset)
    return bool(held)


# Linux's seccomp: the kernel refuses calls that reach other processes, also those of machine code.


_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_REFUSED = """
fork 57 -, vfork 58 -, execve 59 221, execveat 322 281, unshare 272 97, setns 308 268, ptrace 101 117,
kill 62 129, tkill 200 130, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240, pidfd_send_signal 424 424,
pidfd_getfd 438 438, process_vm_readv 310 270, process_vm_writev 311 271, process_madvise 440 440,
migrate_pages 256 238, move_pages 279 239, setpriority 141 140, ioprio_set 251 30,
chmod 90 -, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, file_setattr 469 469,
chown 92 -, lchown 94 -, fchown 93 55, fchownat 260 54,
utime 132 -, utimes 235 -, futimesat 261 -, utimensat 280 88,
setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, setxattrat 463 463,
removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16, removexattrat 466 466,
mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, open_tree 428 428, open_tree_attr 467 467,
move_mount 429 429, fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433, mount_setattr 442 442,
io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427,
sendmsg 46 211, sendmmsg 307 269, socket 41 198, bind 49 200, connect 42 203, listen 50 201,
shmget 29 194, shmat 30 196, shmctl 31 195, semget 64 190, semop 65 193, semctl 66 191, semtimedop 220 192,
msgget 68 186, msgsnd 69 189, msgrcv 70 188, msgctl 71 187, mq_open 240 180, mq_unlink 241 181,
add_key 248 217, request_key 249 218, keyctl 250 219,
memfd_create 319 279, memfd_secret 447 447, vmsplice 278 75, bpf 321 280, perf_event_open 298 241,
userfaultfd 323 282, open_by_handle_at 304 265, kcmp 312 272, setpgid 109 154, setsid 112 157
"""
"""Each call with its numbers on x86_64 and on aarch64."""
_CLONE3 = 435
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOWED, _FAILS = 0x7FFF0000, 0x00050000
_X32 = 0x40000000
_SET_FILTER, _ALL_THREADS = 1, 1
_ANY_ALLOWS, _ANY_REFUSES, _ALL_ALLOW = range(3)
"""What it means that values of an argument are met."""
_MAY_WRITE_ALL = 1 << 1
_OWN_TERMINAL_AND_FLAGS = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TCGETS2, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: what Python itself asks of a file."""


def _looked_at(pid: int) -> tuple[tuple[int, int, int, int, tuple[int, ...], int], ...]:
    """Calls that one argument decides: numbers, argument, test, its values, what it means that they are met.

    The kernel takes each of these arguments as 32 bits, so the low half is all of it.
    """
    own = (0, pid)
    return (
        (56, 220, 0, _ANY_BIT, (0x10000, 0x400), _ALL_ALLOW),  # clone: a thread, whose files are those of all
        (234, 131, 0, _EQUAL, (pid,), _ANY_ALLOWS),  # tgkill, for abort and raise
        (302, 261, 0, _EQUAL, own, _ANY_ALLOWS),  # prlimit64
        (203, 122, 0, _EQUAL, own, _ANY_ALLOWS),  # sched_setaffinity, _setparam, _setscheduler, _setattr
        (142, 118, 0, _EQUAL, own, _ANY_ALLOWS),
        (144, 119, 0, _EQUAL, own, _ANY_ALLOWS),
        (314, 274, 0, _EQUAL, own, _ANY_ALLOWS),
        (53, 199, 1, _ANY_BIT, (0b1110,), _ANY_REFUSES),  # socketpair: only a stream stays connected to its other end
        (157, 167, 0, _EQUAL, (1,), _ANY_REFUSES),  # prctl: it ends with its parent
        (72, 25, 1, _EQUAL, (8, 15, 1024), _ANY_REFUSES),  # fcntl: F_SETOWN, F_SETOWN_EX signal others, F_SETLEASE
        (16, 29, 1, _EQUAL, _OWN_TERMINAL_AND_FLAGS, _ANY_ALLOWS),  # ioctl
    )


def _program(machine: str, pid: int) -> bytes:
    """The filter: on every system call the kernel runs it from the top to the first return."""

    def step(code: int, value: int, met: int = 0, otherwise: int = 0) -> bytes:
        return struct.pack("=HBBI", code, met, otherwise, value)

    column = list(_ARCHITECTURES).index(machine)
    refuse, missing = (step(_RETURN, _FAILS | number) for number in (errno.EPERM, errno.ENOSYS))
    verdicts = (refuse, step(_RETURN, _ALLOWED))
    steps = [step(_LOAD, 4), step(_EQUAL, _ARCHITECTURES[machine], 1), refuse, step(_LOAD, 0)]
    steps += [step(_AT_LEAST, _X32, 0, 1), refuse, step(_EQUAL, _CLONE3, 0, 1), missing]  # the C library then clones
    for line in _REFUSED.split(","):
        number = line.split()[1 + column]
        if number != "-":
            steps += [step(_EQUAL, int(number), 0, 1), refuse]
    for *numbers, argument, test, values, met in _looked_at(pid):
        body = [step(_LOAD, 16 + 8 * argument)]
        for value in values:
            branch = (1, 0) if met == _ALL_ALLOW else (0, 1)
            body += [step(test, value, *branch), verdicts[met == _ANY_ALLOWS]]
        body.append(verdicts[met != _ANY_ALLOWS])
        steps += [step(_EQUAL, numbers[column], 0, len(body)), *body]
    return b"".join([*steps, verdicts[True]])


def give_up_rights() -> None:
    """What root may beyond others is gone for this thread, but for opening any file, which Landlock judges."""
    if sys.platform.startswith("linux"):
        system = ctypes.CDLL(None)
        head, held = struct.pack("=Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
        if system.capget(head, held) == 0:
            kept = [right & _MAY_WRITE_ALL for right in struct.unpack("=II", held.raw[:8])]
            system.capset(head, struct.pack("=6I", *kept, 0, 0, 0, 0))


def refuse_calls() -> bool:
    """From here on no thread of this process starts a process or a program, signals, slows or reads another one.

    Neither does one change rights, owner, times or attributes of a file, use a socket, memory and queues that
    processes share, or memory that no limit counts (memfd, pages lent to pipes). Refused calls fail as where the user
    may not make them. Returns whether it holds: False on other systems and processors, and where the kernel has no
    seccomp.
    """
    machine = platform.machine()
    if not sys.platform.startswith("linux") or machine not in _ARCHITECTURES or sys.maxsize < 1 << 32:
        return False
    system = ctypes.CDLL(None)
    filters = _program(machine, os.getpid())
    whole = ctypes.create_string_buffer(filters, len(filters))
    program = struct.pack("HP", len(filters) // 8, ctypes.addressof(whole))
    system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    call = 317 if machine == "x86_64" else 277
    return bool(system.syscall(call, _SET_FILTER, _ALL_THREADS, program) == 0)

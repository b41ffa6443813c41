"""What a judged scheduler may try: each probe does one forbidden thing and returns what it got, or is refused.

Those of `PYTHON` must be refused on every system (by the audit hook, also where the kernel does not help), those of
`KERNEL` where Linux has Landlock and seccomp. The first line of each says what was tried, `NEW` names those that no
review had tried before. The folder of the judge is told by `$PROBED`, which the test puts into the scheduler's file.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import schedgap.benchmarks

# ruff: noqa: F401, PTH115, PTH208  (expressions of probes use them)
PROBED = Path()
"""The judge's folder: victim.txt, results/card.json, results/run.sqlite, other/plain.txt, package.zip."""
PYTHON: dict[str, Callable[[], object]] = {}
KERNEL: dict[str, Callable[[], object]] = {}
NEW: set[str] = set()


class Harmless(Exception):
    """The probe cannot be tried here."""


def probe(table: dict[str, Callable[[], object]], new: bool = False) -> Callable[..., Callable[[], object]]:
    def added(function: Callable[[], object]) -> Callable[[], object]:
        table[function.__name__] = function
        if new:
            NEW.add(function.__name__)
        return function

    return added


def python(table: str) -> None:
    """Probes of one expression each: a line is a name, a colon and what is tried."""
    for line in table.strip().splitlines():
        name, _, code = line.partition(":")
        if name.startswith("*"):
            name = name[1:]
            NEW.add(name)
        PYTHON[name.strip()] = lambda code=code: eval(code.strip(), globals())


def victim() -> Path:
    return PROBED / "victim.txt"


def card() -> Path:
    return PROBED / "results" / "card.json"


def own(name: str) -> Path:
    return Path(os.environ["HOME"]) / name


def folder(path: Path) -> int:
    return os.open(path, os.O_RDONLY)


def to_read() -> int:
    """A file outside that may be read: one of Python's own."""
    return os.open(os.__file__, os.O_RDONLY)


python("""
*another_interpreter: __import__('_xxsubinterpreters').create()
open_for_writing: victim().write_text("harmed")
rename_over: os.rename(own_file(), victim())
replace_over: os.replace(own_file(), victim())
rename_away: os.rename(victim(), own("stolen"))
link_outside: os.link(own_file(), PROBED / "linked")
symlink_outside: os.symlink(own_file(), PROBED / "linked")
mkdir_by_folder: os.mkdir("made", dir_fd=folder(PROBED))
write_by_folder: os.open("victim.txt", os.O_WRONLY, dir_fd=folder(PROBED))
rename_by_folder: os.rename("victim.txt", "moved.txt", src_dir_fd=folder(PROBED), dst_dir_fd=folder(PROBED))
chmod_by_folder: os.chmod("victim.txt", 0o777, dir_fd=folder(PROBED))
utime_by_folder: os.utime("victim.txt", (0, 0), dir_fd=folder(PROBED))
remove_by_folder: os.remove("victim.txt", dir_fd=folder(PROBED))
chmod_by_descriptor: os.fchmod(to_read(), 0o777)
chown_by_descriptor: os.fchown(to_read(), 1, 1)
utime_by_descriptor: os.utime(to_read(), (0, 0))
attribute_by_descriptor: os.setxattr(to_read(), "user.harmed", b"1")
pipe_file: os.mkfifo(PROBED / "made")
node: os.mknod(PROBED / "made")
truncate: os.truncate(victim(), 0)
read_card: card().read_text()
read_by_folder: os.open("results/card.json", os.O_RDONLY, dir_fd=folder(PROBED))
read_by_root: os.open(str(card())[1:], os.O_RDONLY, dir_fd=folder(Path("/")))
read_from_there: (os.chdir(PROBED), open("results/card.json").read())
sqlite_file: sqlite().connect(PROBED / "results" / "run.sqlite")
sqlite_address: sqlite().connect(f"file:{PROBED}/results/run.sqlite?mode=ro", uri=True)
sqlite_attach: sqlite().connect(":memory:").execute(f"attach '{PROBED}/results/run.sqlite' as x")
fork: os.fork()
system: os.system("true")
spawn: os.posix_spawn("/bin/true", ["true"], {})
program: __import__("subprocess").run(["/bin/true"])
fork_exec: __import__("_posixsubprocess").fork_exec(*FORK_EXEC)
kill: os.kill(os.getppid(), 0)
signal_by_descriptor: signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0)
priority: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)
affinity: os.sched_setaffinity(os.getppid(), {0})
socket_of_network: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
name_of_host: socket.gethostbyname("localhost")
name_of_service: socket.getaddrinfo("localhost", 80)
message: [one.sendmsg([b"x"]) for one in socket.socketpair()]
memory_file: os.memfd_create("x")
library: __import__("schedgap").library_records()
library_file: first(SCHEDGAP / "library" / "collection" / "rar_ddls").read_text()
library_resource: resources("schedgap.benchmarks").joinpath("library/collection/collection.json").read_text()
library_code: __import__("schedgap.benchmarks.library.collection")
documentation: first(SCHEDGAP.parent / "docs").read_text()
*hard_link_of_a_card: (os.link(card(), own("linked")), own("linked").read_text())
*link_to_a_card: (os.symlink(card(), own("pointer")), own("pointer").read_text())
*by_the_root_of_the_process: Path(f"/proc/self/root{card()}").read_text()
*out_of_its_own_folder: os.open(os.path.relpath(card(), own("")), os.O_RDONLY, dir_fd=folder(own("")))
*environment_of_the_judge: Path(f"/proc/{os.getppid()}/environ").read_bytes()
*folder_of_another_guest: (PROBED.parent / "probed-other-guest" / "answer.json").read_text()
*history_file: __import__("readline").read_history_file(str(card()))
*old_database: __import__("dbm.gnu").gnu.open(str(own("made")), "c")
*module_loaded_again: again("posix").memfd_create("x")
*archive: __import__("zipfile").ZipFile(PROBED / "package.zip").read("answers.json")
*code_in_an_archive: __import__("zipimport").zipimporter(str(PROBED / "package.zip")).get_data("answers.json")
*source_of_the_library: (SCHEDGAP / "library" / "collection.py").read_bytes()
*mapped_array: __import__("numpy").memmap(victim(), mode="r+")
*shared_memory: __import__("multiprocessing.shared_memory").shared_memory.SharedMemory(create=True, size=1 << 20)
*semaphore: __import__("multiprocessing").Lock()
*tests_of_schedgap: first(SCHEDGAP.parent / "tests" / "data").read_text()
""")

SCHEDGAP = Path(schedgap.benchmarks.__path__[0])
FORK_EXEC: tuple[Any, ...] = (
    *([b"/bin/true"], [b"/bin/true"], True, (), None, None, -1, -1, -1, -1, -1, -1, -1, -1),
    *(True, False, 0, None, None, None, -1, None),
)


def first(folder: Path) -> Path:
    for path in sorted(folder.rglob("*.json")):
        return path
    raise FileNotFoundError(folder)


def own_file() -> Path:
    path = own("file")
    path.write_text("own")
    return path


def sqlite() -> Any:
    import sqlite3

    return sqlite3


def resources(package: str) -> Any:
    from importlib.resources import files

    return files(package)


def again(module: str) -> Any:
    kept = sys.modules.pop(module)
    try:
        return __import__(module)
    finally:
        sys.modules[module] = kept


_C = ctypes.CDLL(None, use_errno=True)


def in_c(name: str, *arguments: Any) -> int:
    """Calls the system; OSError where it refuses."""
    function = getattr(_C, name)
    function.restype = ctypes.c_long if name in ("syscall", "vmsplice") else ctypes.c_int
    found = int(function(*arguments))
    if found < 0:
        raise OSError(ctypes.get_errno(), f"{name} refused")
    return found


def call(number: int, *arguments: Any) -> int:
    return in_c("syscall", ctypes.c_long(number), *arguments)


KERNEL.update(
    {
        "open_in_c": lambda: in_c("open", os.fsencode(victim()), os.O_WRONLY),
        "read_in_c": lambda: in_c("open", os.fsencode(card()), os.O_RDONLY),
        "unlink_in_c": lambda: in_c("unlink", os.fsencode(victim())),
        "own_memory_file_in_c": lambda: in_c("open", f"/proc/{os.getppid()}/mem".encode(), os.O_RDWR),
        "fork_in_c": lambda: in_c("fork") or os._exit(0),
        "session": lambda: in_c("setpgid", 0, 0),
        "signal_in_c": lambda: in_c("kill", os.getppid(), 0),
        "socket_in_c": lambda: in_c("socket", 2, 1, 0),
        "keyring": lambda: call(250, 0, -3, 0),
        "namespace": lambda: in_c("unshare", 0x10000000),
        "ring": lambda: call(425, 1, ctypes.create_string_buffer(120)),
        "faults": lambda: call(323, 0),
        "counters": lambda: call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0),
        "shared_memory_in_c": lambda: in_c("shmget", 0, 4096, 0o1600),
        "memory_file_in_c": lambda: call(319, b"x", 0),
        "kernel_log": lambda: in_c("open", b"/dev/kmsg", os.O_RDONLY),
        "block_device": lambda: in_c(
            "open", next(Path("/dev").glob("[vs]da*"), Path("/dev/mem")).as_posix().encode(), 0
        ),
        "secret_memory": lambda: call(447, 0),
        "kernel_program": lambda: call(321, 0, ctypes.create_string_buffer(128), 128),
        "file_by_handle": lambda: call(304, -100, ctypes.create_string_buffer(128), 0),
        "compared_descriptors": lambda: call(312, os.getppid(), os.getpid(), 0, 0, 0),
    }
)
NEW |= {"secret_memory", "kernel_program", "file_by_handle"}


@probe(KERNEL, new=True)
def lent_pages() -> int:
    """Pages given to pipes by vmsplice, then unmapped: no limit counts them."""
    reading, writing = os.pipe()
    with mmap.mmap(-1, 1 << 16) as pages:
        address = ctypes.addressof(view := ctypes.c_char.from_buffer(pages))
        vector = (ctypes.c_size_t * 2)(address, 1 << 16)
        try:
            return in_c("vmsplice", writing, vector, 1, 0)
        finally:
            del view
            os.close(reading)
            os.close(writing)


@probe(KERNEL, new=True)
def blinded_hook() -> str:
    """The collector finds the hook's own variables; with others it sees no path, and plain Python reads the card."""
    import gc

    for found in gc.get_objects():
        if getattr(found, "__qualname__", "") == "fence.<locals>.hook":
            cells = dict(zip(found.__code__.co_freevars, found.__closure__, strict=True))
            before, cells["named"].cell_contents = cells["named"].cell_contents, lambda *_: []
            try:
                return card().read_text()
            finally:
                cells["named"].cell_contents = before
    raise Harmless


@probe(KERNEL, new=True)
def model_file_of_a_solver() -> object:
    """An engine's own C++ code reads a file of the judge."""
    import highspy

    engine = highspy.Highs()
    engine.setOptionValue("output_flag", False)
    if engine.readModel(str(PROBED / "results" / "model.lp")) == highspy.HighsStatus.kError:
        raise OSError("not read")
    return engine.getNumCol()


@probe(KERNEL)
def patched_fence() -> str:
    """Every path looks like one of its own."""
    import posixpath

    before, posixpath.realpath = posixpath.realpath, lambda *_, **__: os.environ["HOME"]
    try:
        return card().read_text()
    finally:
        posixpath.realpath = before


def seen() -> dict[str, Any]:
    """What lies about in its process: open files, variables, modules, limits."""
    import resource

    names = os.listdir("/proc/self/fd")
    files = [os.readlink(f"/proc/self/fd/{name}") for name in names if os.path.lexists(f"/proc/self/fd/{name}")]
    return {
        "files": sorted({file.split(":")[0] for file in files if not file.startswith("/proc")}),
        "variables": sorted(os.environ),
        "modules": [name for name in sys.modules if name.startswith("schedgap.benchmarks.library")],
        "open": resource.getrlimit(resource.RLIMIT_NOFILE),
        "stdin": sys.stdin.read() if sys.stdin else "",
    }


def scheduler(instance: Any, *, seed: int) -> dict[str, Any]:
    """Tries everything of one table (`seed` 0: Python's, 1: the kernel's); what came of each is its answer."""
    outcomes, before, here = {}, seen(), Path.cwd()
    for name, tried in ((PYTHON, KERNEL)[seed]).items():
        try:
            outcomes[name] = f"worked: {str(tried())[:60]}"
        except (OSError, ImportError) as error:
            outcomes[name] = f"refused: {type(error).__name__}: {error}"
        except Harmless:
            outcomes[name] = "refused: there is no such thing here"
        except BaseException as error:
            outcomes[name] = f"failed: {type(error).__name__}: {error}"
        os.chdir(here)
    return {"outcomes": outcomes, "seen": before, "instance": instance.to_dict()}

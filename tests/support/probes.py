"""What a judged scheduler may try: each probe does one forbidden thing and returns what it got, or is refused.

Those of `PYTHON` must be refused on every system (by the audit hook, also where the kernel does not help), those of
`KERNEL` where Linux has Landlock and seccomp. The name of each says what is tried; `NEW` names those that were thought
of here first. The folder of the judge is `PROBED`, which the test puts into the scheduler's file.

A refusal shows something only if the same probe works where nothing refuses it: ``python -m support.probes FOLDER``
tries all of them in that folder without a sandbox. What blinds the hook (`BLINDING`) works where there is nothing but
the hook. A probe that finds nothing to try says so, which is no refusal.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import shutil
import signal
import socket
import sqlite3
import sys
import threading
import zipfile
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
STACKS: list[object] = []
"""Stacks of threads that a probe started."""
REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS)
"""No right, or no such call: `clone3` is hidden, so that threads are made by the older call."""
OF_ITS_OWN = frozenset(
    {
        *("fork", "fork_exec", "fork_in_c", "fork_with_a_terminal", "spawn", "system", "program", "program_in_c"),
        *("clone_in_c", "session", "namespace", "another_interpreter", "another_user", "old_database", "toolkit"),
        *("memory_file", "memory_file_in_c", "module_loaded_again", "secret_memory", "lent_pages", "keyring", "ring"),
        *("shared_memory", "shared_memory_in_c", "semaphore", "message", "socket_in_c", "socket_of_network"),
        *("affinity", "priority", "kill", "signal_in_c", "signal_by_descriptor", "owner_of_a_pipe", "owner_of_signals"),
        *("lease", "held_open", "trace", "compared_descriptors", "descriptor_of_the_judge", "limits_of_the_judge"),
        *("read_of_the_judges_memory", "write_to_the_judges_memory", "judges_memory_by_its_file"),
        *("own_memory_file_in_c", "environment_of_the_judge"),
        *("message_that_holds_a_file", "thread_with_files_of_its_own"),
    }
)
"""What a container alone leaves: memory, processes and sockets of its own. Its parent there is the first of them."""
BLINDING = frozenset({"blinded_hook"})
"""Probes that work against the hook itself: without one there is nothing to try."""
OF_ROOT = frozenset(
    {
        *("chmod_by_descriptor", "chown_by_descriptor", "utime_by_descriptor", "attribute_by_descriptor", "faults"),
        *("counters", "kernel_log", "kernel_program", "file_by_handle", "mount", "watch_of_files", "other_root"),
        *("shadow_passwords", "block_device", "another_user_in_c"),
    }
)
"""Probes that nobody but root may do, or the owner of Python, where nothing else refuses them."""


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
fork_exec: __import__("_posixsubprocess").fork_exec(*fork_exec())
kill: os.kill(os.getppid(), 0)
signal_by_descriptor: signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0)
priority: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)
*owner_of_a_pipe: fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, os.getppid())
*held_open: fcntl.fcntl(os.open(own_file(), os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)
affinity: os.sched_setaffinity(os.getppid(), {0})
socket_of_network: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
name_of_host: socket.gethostbyname("localhost")
name_of_service: socket.getaddrinfo("localhost", 80)
message: [one.sendmsg([b"x"]) for one in socket.socketpair()]
memory_file: os.memfd_create("x")
library: __import__("schedgap").library_records()
library_file: first(SCHEDGAP.parent / "tools" / "library" / "collection" / "rar_ddls").read_text()
library_resource: resources("schedgap.tools").joinpath("library/collection/collection.json").read_text()
worst_file: first(SCHEDGAP / "worst" / "rar_ddls").read_text()
library_code: __import__("schedgap.tools.library.collection")
documentation: first(SCHEDGAP.parent / "docs").read_text()
*hard_link_of_a_card: (os.link(card(), own("linked")), own("linked").read_text())
*link_to_a_card: (os.symlink(card(), own("pointer")), own("pointer").read_text())
*by_the_root_of_the_process: Path(f"/proc/self/root{card()}").read_text()
*out_of_its_own_folder: os.open(os.path.relpath(card(), own("")), os.O_RDONLY, dir_fd=folder(own("")))
environment_of_the_judge: Path(f"/proc/{os.getppid()}/environ").read_bytes()
*folder_of_another_guest: (PROBED.parent / "probed-other-guest" / "answer.json").read_text()
*history_file: __import__("readline").read_history_file(str(card()))
*old_database: of_this_name("_gdbm")
*toolkit: of_this_name("_tkinter")
*another_user: os.setuid(os.getuid())
*module_loaded_again: again("posix").memfd_create("x")
*archive: __import__("zipfile").ZipFile(PROBED / "package.zip").read("answers.json")
*code_in_an_archive: __import__("zipimport").zipimporter(str(PROBED / "package.zip")).get_data("answers.json")
*source_of_the_library: (SCHEDGAP.parent / "tools" / "library" / "collection.py").read_bytes()
*mapped_array: __import__("numpy").memmap(victim(), mode="r+")
shared_memory: __import__("multiprocessing.shared_memory").shared_memory.SharedMemory(create=True, size=1 << 20)
semaphore: semaphore()
*tests_of_schedgap: first(SCHEDGAP.parent / "tests" / "data").read_text()
*keys_of_a_connection: keys_of_a_connection()
*path_that_changes: __import__("io").FileIO(Changing()).read()
*text_that_lies: os.open(Lying(card()), os.O_RDONLY)
*opened_as_code: __import__("io").open_code(str(card())).read()
*loader_of_modules: __import__("importlib.machinery").machinery.SourceFileLoader("x", "x").get_data(str(card()))
*array_of_a_file: __import__("numpy").fromfile(str(card()), "u1")
*fork_with_a_terminal: os.forkpty()
*other_root: os.chroot("/")
*folder_that_changes: folder_that_changes()
*link_that_appears: link_that_appears()
""")
if sys.version_info < (3, 13):
    python("*shadow_passwords: quietly(lambda: __import__('spwd').getspall()[0].sp_namp)")

SCHEDGAP = Path(schedgap.benchmarks.__path__[0])


def first(folder: Path) -> Path:
    for path in sorted(folder.rglob("*.json")):
        return path
    raise FileNotFoundError(folder)


def of_this_name(module: str) -> object:
    """A module that opens files without an event; one of its own of that name, since not every Python has it."""
    own(f"{module}.py").write_text("")
    sys.modules.pop(module, None)
    sys.path.insert(0, str(own("")))
    try:
        return __import__(module)
    finally:
        sys.path.remove(str(own("")))


def folder_that_changes() -> str:
    """A thread goes there and back, until the hook looks at a path from here that is opened from there."""
    own("results").mkdir(exist_ok=True)
    own("results/card.json").write_text("own")
    os.chdir(PROBED), os.chdir(own(""))
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            os.chdir(PROBED), os.chdir(own(""))

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(20_000):
            with contextlib.suppress(OSError), Path("results/card.json").open() as file:
                if (said := file.read()) != "own":
                    return said
    finally:
        over.set()
        thread.join()
    raise Harmless


def link_that_appears() -> str:
    """A thread makes a link to the card when the hook has looked and there was nothing."""
    os.symlink(str(own_file()), str(own("pointer")))  # noqa: PTH211  (a path is refused, and its text is not)
    for number in range(2_000):
        name = own(f"pointer{number}")
        thread = threading.Thread(target=os.symlink, args=(str(card()), str(name)))
        thread.start()
        for _ in range(50):
            with contextlib.suppress(FileNotFoundError):
                try:
                    return name.read_text()
                except PermissionError:
                    break
        thread.join()
    raise Harmless


def semaphore() -> object:
    import _multiprocessing
    import multiprocessing

    if not hasattr(_multiprocessing, "SemLock"):
        raise PermissionError("taken away")
    return multiprocessing.Lock()


def own_file() -> Path:
    path = own("file")
    path.write_text("own")
    return path


def keys_of_a_connection() -> str:
    """OpenSSL writes into a file that may be read, beside the scheduler's own."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.keylog_filename = str(PROBED / "code" / "beside.txt")
    return (PROBED / "code" / "beside.txt").read_text()


class Changing(os.PathLike[str]):
    """The card for the one who opens it, who asks first, a file of its own for the hook, which asks then."""

    asked = 0

    def __fspath__(self) -> str:
        self.asked += 1
        return str(card() if self.asked == 1 else own_file())


class Lying(str):
    """The card, but whoever looks at a part of it sees a file of its own."""

    __slots__ = ()

    def __getitem__(self, part: Any) -> str:
        return str(own_file())[part]


def quietly(tried: Callable[[], object]) -> object:
    """Without a word of what is deprecated."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return tried()


def fork_exec() -> tuple[Any, ...]:
    """The arguments of the call below subprocess."""
    program, pipes = ([b"/bin/true"], [b"/bin/true"], True, (), None, None), (-1,) * 7
    return (*program, *pipes, os.pipe()[1], True, False, 0, None, None, None, -1, None, True)


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


def words(*numbers: int, size: int) -> Any:
    """A structure of C that begins with these words of 32 bits."""
    begun = b"".join(number.to_bytes(4, sys.byteorder, signed=True) for number in numbers)
    return ctypes.create_string_buffer(begun, size)


def call(number: int, *arguments: Any) -> int:
    whole = [ctypes.c_long(given) if isinstance(given, int) else given for given in (number, *arguments)]
    return in_c("syscall", *whole)


def remote_memory(number: int) -> int:
    """process_vm_readv or process_vm_writev with the process that started this one; no byte is moved."""
    return call(number, os.getppid(), None, 0, None, 0, 0)


def program_in_c() -> int:
    """In a thread's place, so that a success does not end the probes: a child of vfork has the memory of its parent."""
    import threading

    refused: list[int] = []

    def run() -> None:
        arguments = (ctypes.c_char_p * 2)(b"/bin/true", None)
        _C.execv(b"/bin/true", arguments)
        refused.append(ctypes.get_errno())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    raise OSError(refused[0], "execv refused")


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
        "counters": lambda: call(298, words(1, 128, size=128), 0, -1, -1, 0),  # of software: every machine has it
        "shared_memory_in_c": lambda: in_c("shmget", 0, 4096, 0o1600),
        "memory_file_in_c": lambda: call(319, b"x", 0),
        "kernel_log": lambda: in_c("open", b"/dev/kmsg", os.O_RDONLY),
        "block_device": lambda: in_c("open", os.fsencode(block_device()), os.O_RDONLY),
        "another_user_in_c": lambda: in_c("setuid", 1),
        "secret_memory": lambda: call(447, 0),
        "kernel_program": lambda: call(321, 0, words(2, 4, 4, 1, size=128), 128),  # an array that programs share
        "compared_descriptors": lambda: call(312, os.getppid(), os.getpid(), 0, 0, 0),
    }
)
NEW |= {"secret_memory", "kernel_program", "another_user_in_c"}


def block_device() -> Path:
    for path in Path("/dev").iterdir():
        if path.is_block_device():
            return path
    raise Harmless


@probe(KERNEL, new=True)
def file_by_handle() -> int:
    """A file of the judge by its number in the file system, past all folders."""
    handle, mount = words(64, size=72), ctypes.c_int()
    call(303, -100, ctypes.c_char_p(os.fsencode(card())), handle, ctypes.byref(mount), 0)
    return call(304, folder(PROBED), handle, os.O_RDONLY)


KERNEL.update(
    {
        "trace": lambda: in_c("ptrace", 0x4206, os.getppid(), None, None),
        "read_of_the_judges_memory": lambda: remote_memory(310),
        "write_to_the_judges_memory": lambda: remote_memory(311),
        "descriptor_of_the_judge": lambda: call(438, call(434, os.getppid(), 0), 0, 0),
        "limits_of_the_judge": lambda: in_c("prlimit", os.getppid(), 7, words(256, 0, 256, 0, size=16), None),
        "lease": lambda: in_c("fcntl", in_c("open", os.fsencode(own_file()), os.O_RDONLY), 1024, 0),
        "owner_of_signals": lambda: in_c("fcntl", os.pipe()[0], 8, os.getppid()),
        "mount": lambda: in_c("mount", b"none", os.fsencode(own("")), b"tmpfs", 0, None),
        "watch_of_files": lambda: in_c("fanotify_init", 0, 0),
        "clone_in_c": lambda: call(435, words(0, 0, size=88), 88) or os._exit(0),
        "program_in_c": program_in_c,
        "judges_memory_by_its_file": lambda: os.open(f"/proc/{os.getppid()}/mem", os.O_RDWR),
    }
)


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
def message_that_holds_a_file() -> int:
    """A file without a name, kept by a message that nobody reads: no limit counts it."""
    one, _other = socket.socketpair()
    text = ctypes.create_string_buffer(b"x")
    vector = (ctypes.c_size_t * 2)(ctypes.addressof(text), 1)
    rights = words(20, 0, socket.SOL_SOCKET, socket.SCM_RIGHTS, to_read(), size=24)
    head = (ctypes.c_size_t * 7)(0, 0, ctypes.addressof(vector), 1, ctypes.addressof(rights), 24, 0)
    return in_c("sendmsg", one.fileno(), head, 0)


@probe(KERNEL, new=True)
def thread_with_files_of_its_own() -> int:
    """A thread whose descriptors are a copy: the judge, who looks at those of the process, never sees them."""
    stack = ctypes.create_string_buffer(1 << 16)
    STACKS.append(stack)
    top = ctypes.c_void_p(ctypes.addressof(stack) + (1 << 16) - 64)
    shared_but_files = 0x00000100 | 0x00000200 | 0x00000800 | 0x00010000  # memory, paths, signals; a thread
    return in_c("clone", ctypes.cast(_C.getppid, ctypes.c_void_p), top, shared_but_files, None)


@probe(KERNEL, new=True)
def blinded_hook() -> str:
    """The collector finds the hook's own variables; with others it sees no path, and plain Python reads the card."""
    import gc
    from types import FunctionType

    for found in gc.get_objects():
        if isinstance(found, FunctionType) and found.__qualname__ == "fence.<locals>.hook":
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

    engine = highspy._core._Highs()  # which prints nothing, from 1.16 on
    engine.setOptionValue("output_flag", False)
    if engine.readModel(str(PROBED / "results" / "model.lp")) == highspy.HighsStatus.kError:
        raise PermissionError("not read")
    return engine.getNumCol()


@probe(KERNEL, new=True)
def model_that_an_engine_writes() -> object:
    """An engine's own C++ code writes over a file of the judge."""
    from ortools.sat.python import cp_model

    if not cp_model.CpModel().export_to_file(str(victim())):
        raise PermissionError("not written")
    return victim().read_bytes()


@probe(KERNEL, new=True)
def matrix_that_is_written() -> str:
    """SciPy's C++ code writes a file beside the judge's, and no event of Python tells of it, nor does it fail."""
    import numpy as np
    import scipy.io

    scipy.io.mmwrite(str(PROBED / "written.mtx"), np.eye(2))
    if not (PROBED / "written.mtx").exists():
        raise PermissionError("not written")
    return (PROBED / "written.mtx").read_text()


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
        "modules": [name for name in sys.modules if name.startswith("schedgap.benchmarks.worst")],
        "open": resource.getrlimit(resource.RLIMIT_NOFILE),
        "stdin": sys.stdin.read() if sys.stdin else "",
    }


def lay_out(folder: Path) -> None:
    """The judge's folder, with what a scheduler would like to reach."""
    for path in folder.iterdir():
        if path.name != "code":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (folder / "victim.txt").write_text("as it was")
    (folder / "results").mkdir()
    (folder / "results" / "card.json").write_text('{"optimum": 7}')
    (folder / "results" / "model.lp").write_text("min\n x\nst\n c: x >= 1\nend\n")
    sqlite3.connect(folder / "results" / "run.sqlite").close()
    with zipfile.ZipFile(folder / "package.zip", "w") as archive:
        archive.writestr("answers.json", '{"optimum": 7}')
    (folder / "code").mkdir(exist_ok=True)
    (folder / "code" / "beside.txt").write_text("")
    other = folder.parent / "probed-other-guest"
    other.mkdir(exist_ok=True)
    (other / "answer.json").write_text("7")


def outcome(tried: Callable[[], object]) -> str:
    """Whether a probe worked, was refused (for want of a right, and for nothing else) or failed of itself."""
    process = os.getpid()
    try:
        said = f"worked: {str(tried())[:60]}"
    except Harmless:
        said = "untried: there is no such thing here"
    except BaseException as error:
        forbidden = isinstance(error, ImportError) and "a scheduler may not import" in str(error)
        chain = (error, error.__context__)  # zipimport tells no reason of its own
        wanting = any(type(one) is PermissionError or getattr(one, "errno", None) in REFUSALS for one in chain)
        said = f"{'refused' if forbidden or wanting else 'failed'}: {type(error).__name__}: {error}"
    if os.getpid() != process:
        os._exit(0)
    os.chdir(own(""))
    return said


def scheduler(instance: Any, *, seed: int) -> dict[str, Any]:
    """Tries all of a table: Python's, the kernel's, those against the hook; or everything, each in its own process."""
    before = seen()
    tables = (PYTHON, KERNEL, {name: KERNEL[name] for name in BLINDING})
    if seed < len(tables):
        outcomes = {name: outcome(tried) for name, tried in tables[seed].items()}
    else:
        outcomes = {name: apart(tried) for name, tried in {**PYTHON, **KERNEL}.items()}
    return {"outcomes": outcomes, "seen": before, "instance": instance.to_dict()}


def apart(tried: Callable[[], object]) -> str:
    """What a probe comes to in a process of its own."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writing, outcome(tried).encode(errors="replace"))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        said = told.read().decode() or "worked: another program has taken its place"
    os.waitpid(child, 0)
    return said


def main() -> None:
    """Every probe without a sandbox, each in a process of its own, the folder laid out anew before each."""
    global PROBED
    PROBED = Path(sys.argv[1])
    found = {}
    probes = {**PYTHON, **KERNEL}
    for name in sorted(probes, key=("priority", "affinity").__contains__):  # these slow this process: they come last
        lay_out(PROBED)
        shutil.rmtree(own(""), ignore_errors=True)
        own("").mkdir(exist_ok=True)
        os.chdir(own(""))
        found[name] = apart(probes[name])
        _C.umount2(os.fsencode(own("")), 2)  # what the probe `mount` has put there
    print(json.dumps(found))


if __name__ == "__main__":
    main()

"""Linux's seccomp: the kernel refuses calls that reach other processes, also those of machine code."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

from schedgap.tools.evaluation.landlock import NO_NEW_PRIVILEGES

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
    system.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    call = 317 if machine == "x86_64" else 277
    return bool(system.syscall(call, _SET_FILTER, _ALL_THREADS, program) == 0)

"""What a process that runs CP-SAT does: one search after another for the process that started it."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

_LENGTH = struct.Struct(">Q")


def send(stream: IO[bytes], message: tuple[Any, ...]) -> None:
    """Write one message."""
    data = pickle.dumps(message)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[Any, ...] | None:
    """Read one message; None where there will be no more."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    data = stream.read(_LENGTH.unpack(head)[0])
    message: tuple[Any, ...] = pickle.loads(data)
    return message


def main() -> None:
    """Search until the other side of standard input is closed."""
    from schedgap.formulations.common.parent import end_with_parent

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(int(sys.argv[1]))
    inbox = os.fdopen(os.dup(0), "rb")
    outbox = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what native code prints must not get between the messages

    from ortools.sat.python import cp_model_helper as native

    from schedgap.solvers.cp_sat.solver import CpSearch, Listener

    jobs: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
    answers: queue.SimpleQueue[bool] = queue.SimpleQueue()
    writing, asking = threading.Lock(), threading.Lock()
    searching: list[CpSearch] = []

    def listen() -> None:
        while (message := receive(inbox)) is not None:
            if message[0] == "search":
                jobs.put(message[1:])
            elif message[0] == "answer":
                answers.put(message[1])
            else:
                for search in searching:
                    search.stop()
        os._exit(0)

    def tell(*message: Any) -> None:
        with writing:
            send(outbox, message)

    def ask(kind: str) -> Callable[..., bool]:
        def asked(*values: Any) -> bool:
            with asking:  # the search waits for the answer, so that runs repeat themselves
                tell(kind, *values)
                return answers.get()

        return asked

    threading.Thread(target=listen, daemon=True).start()
    tell("ready")
    while True:
        model, parameters, wanted = jobs.get()
        proto, settings = native.CpModelProto(), native.SatParameters()
        proto.parse_text_format(model)
        settings.parse_text_format(parameters)
        listener = Listener(
            point=ask("point") if wanted["point"] else None,
            bound=ask("bound") if wanted["bound"] else None,
            log=(lambda line: tell("log", line)) if wanted["log"] else None,
        )
        search = CpSearch(proto, settings, listener)
        searching.append(search)
        tell("started")
        end = search.go()
        searching.clear()
        tell("end", end)


if __name__ == "__main__":
    main()

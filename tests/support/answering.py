"""Hostile ways of answering, one for each seed; what each must come to stands in test_hostile_answers."""

from __future__ import annotations

import gc
import json
import os
import signal
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.foreign import good

WAYS: dict[str, Callable[[Any], Any]] = {}


def scheduler(instance: Any, *, seed: int) -> Any:
    if seed < len(WAYS):
        return list(WAYS.values())[seed](instance)
    assert not own("loaded").exists() and "PLANTED" not in os.environ
    return good(instance, seed=0)


def way(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    WAYS[function.__name__] = function
    return function


def own(name: str) -> Path:
    return Path(os.environ["HOME"]) / name


def slot(instance: Any, number: Any, name: str = "") -> dict[str, Any]:
    """A good answer but for the first job's slot, or its name."""
    solution = good(instance, seed=0)
    del solution["start"][instance.jobs[0].id]
    return {**solution, "start": {name or instance.jobs[0].id: number, **solution["start"]}}


def guests(name: str) -> Any:
    """A variable of the function that serves, found on the stack."""
    frame = sys._getframe()
    while name not in frame.f_locals:
        assert frame.f_back is not None
        frame = frame.f_back
    return frame.f_locals[name]


def write(data: bytes, announced: int = -1) -> None:
    os.write(guests("outgoing").fileno(), struct.pack(">Q", len(data) if announced < 0 else announced) + data)


def instead(solution: Any, change: Callable[[str], bytes] = str.encode) -> None:
    """The guest sends this once in place of its answer, with the right token."""
    main = sys.modules["__main__"]
    text, send = json.dumps({"token": guests("request")["token"], "solution": solution}), main.send

    def sent(stream: Any, _: Any) -> None:
        data = change(text)
        stream.write(struct.pack(">Q", len(data)) + data)
        stream.flush()
        main.send = send

    main.send = sent


class Two(int):
    def __repr__(self) -> str:
        return "1"


class Lying(dict[str, Any]):
    def items(self) -> Any:
        return {"start": {}, "placement": {}}.items()


class Unpickled:
    def __reduce__(self) -> Any:
        return Path.write_text, (own("loaded"), "")


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@way
def many_digits(instance: Any) -> None:
    instead(slot(instance, "SLOT"), lambda text: text.replace('"SLOT"', "7" * 100_000).encode())


@way
def beyond_all_numbers(instance: Any) -> None:
    instead(slot(instance, "SLOT"), lambda text: text.replace('"SLOT"', "1e400").encode())


@way
def keys_twice(instance: Any) -> None:
    instead(good(instance, seed=0), lambda text: text.replace('"start"', '"start": {}, "start"').encode())


@way
def lists_that_are_not_counted(instance: Any) -> None:
    """In UTF-16 a letter holds the byte of a quotation mark: what follows looked like a text."""
    solution = {"": "\u0122", "start": [[]] * 1_100_000, "end": "\u0122"}
    instead(solution, lambda text: json.dumps(json.loads(text), ensure_ascii=False).encode("utf-16-le"))


@way
def a_mark_of_bytes(instance: Any) -> None:
    instead(good(instance, seed=0), lambda text: text.encode("utf-8-sig"))


@way
def no_text(instance: Any) -> None:
    instead({}, lambda text: b"\xff" + text.encode())


@way
def a_list_of_answers(instance: Any) -> None:
    instead({}, lambda text: f"[{text}]".encode())


@way
def an_error_that_is_deep(instance: Any) -> None:
    instead({}, lambda text: text.replace("{", '{"error": {"\\u001b[2J": [[[1]]]}, ', 1).encode())


@way
def a_token_of_another_kind(instance: Any) -> None:
    instead({}, lambda text: json.dumps({**json.loads(text), "token": {}}).encode())


@way
def another_ahead(instance: Any) -> dict[str, Any]:
    write(json.dumps({"token": guests("request")["token"], "solution": good(instance, seed=0)}).encode())
    return {}


@way
def more_than_there_is(instance: Any) -> None:
    pipe = guests("outgoing").fileno()
    thread = threading.Thread(target=os.write, args=(pipe, struct.pack(">Q", 2**64 - 1)))
    thread.start()
    thread.join()


@way
def half_a_message(instance: Any) -> None:
    write(b'{"token"', 100)
    os._exit(7)


@way
def answers_into_a_file(instance: Any) -> None:
    with own("answers").open("wb") as file:
        os.dup2(file.fileno(), guests("outgoing").fileno())


@way
def hears_no_more(instance: Any) -> dict[str, Any]:
    with own("requests").open("wb") as file:
        os.dup2(file.fileno(), guests("incoming").fileno())
    return good(instance, seed=0)


@way
def true_as_a_slot(instance: Any) -> Any:
    return slot(instance, True)


@way
def a_slot_of_three_hundred_digits(instance: Any) -> Any:
    return slot(instance, 1e308)


@way
def a_number_that_lies(instance: Any) -> Any:
    return slot(instance, Two(-2))


@way
def a_dict_that_lies(instance: Any) -> Any:
    return Lying(good(instance, seed=0))


@way
def half_a_letter(instance: Any) -> Any:
    return slot(instance, 1, "\ud800\x1b[2J\x00")


@way
def numbers_as_names(instance: Any) -> Any:
    return slot(instance, 1, 7)  # type: ignore[arg-type]


@way
def itself(instance: Any) -> Any:
    solution = good(instance, seed=0)
    solution["start"] = solution
    return solution


@way
def what_acts_when_unpickled(instance: Any) -> Any:
    return Unpickled()


@way
def a_coroutine(instance: Any) -> Any:
    async def later() -> None: ...

    coroutine = later()
    coroutine.close()
    return coroutine


@way
def no_words(instance: Any) -> Any:
    raise Mute


@way
def a_name_that_steers(instance: Any) -> Any:
    raise type("E\x1b[2J\n" + "E" * 50_000_000, (Exception,), {})("\x1b]0;x\x07")


@way
def a_file_that_steers(instance: Any) -> Any:
    exec(compile("raise ValueError", str(Path(__file__).parent / "\x1b[2J\u202e.py"), "exec"), {})


@way
def another_instance(instance: Any) -> Any:
    """One job fewer, in its own process."""
    solution = good(instance, seed=0)
    name = instance.jobs[0].id
    object.__setattr__(instance, "jobs", instance.jobs[1:])
    return {key: {other: value for other, value in part.items() if other != name} for key, part in solution.items()}


@way
def what_lies_about(instance: Any) -> Any:
    """The collector finds every dict of its process; a schedule is only the last that it answered."""
    gc.collect()
    for found in gc.get_objects():
        starts = found.get("start") if type(found) is dict else None
        if type(starts) is dict and instance.jobs[0].id in starts and found is not guests("answer")["solution"]:
            return found
    raise LookupError("no answer lies about")


@way
def a_module_for_the_next(instance: Any) -> Any:
    """Its next process has the same folder."""
    for name in ("json.py", "sitecustomize.py", "usercustomize.py", "x.pth"):
        for place in (own(""), own(f".local/lib/python3.{sys.version_info.minor}/site-packages")):
            place.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(f"import os; open({str(own('loaded'))!r}, 'w')\n")
    os.environ.update(PLANTED="1", PYTHONPATH=os.environ["HOME"])
    os._exit(7)


@way
def an_end_when_asked_again(instance: Any) -> Any:
    def trace(frame: Any, *_: object) -> None:
        if frame.f_code.co_name == "receive":
            sys.setprofile(None)
            os._exit(7)

    sys.setprofile(trace)
    return good(instance, seed=0)


@way
def killed_by_itself(instance: Any) -> Any:
    signal.raise_signal(signal.SIGKILL)

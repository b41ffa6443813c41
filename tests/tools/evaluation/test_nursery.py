"""The process that forks candidates: one that is slow, dies or never begins harms nobody, and no answer goes astray."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import SchedgapError
from schedgap.tools.evaluation import contained, nursery
from schedgap.tools.evaluation.contained import Bounds, Contained
from schedgap.tools.evaluation.nursery import Nursery

CODE = """import os, pathlib, socket, sys, time
from schedgap.tools.evaluation import nursery

here = pathlib.Path(__file__).parent
with (here / "starts").open("a") as file:
    file.write("x")
if (here / "dies").exists():
    (here / "dies").unlink()
    sys.exit(3)
while (here / "waits").exists():
    time.sleep(0.01)
incoming, outgoing = nursery.serve(socket.socket(fileno=int(sys.argv[3])))
data = os.read(incoming, 100)
os.write(outgoing, data.upper())
os._exit(len(data))
"""


def descriptors() -> set[str]:
    return {path.name for path in Path("/dev/fd").iterdir()}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the module of the nursery lies, and files that tell it what to do."""
    (tmp_path / "slow_nursery.py").write_text(CODE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path


@pytest.fixture
def made(place: Path) -> Iterator[Callable[[], Nursery]]:
    all_made: list[Nursery] = []

    def make() -> Nursery:
        all_made.append(Nursery("slow_nursery", []))
        return all_made[-1]

    yield make
    for one in all_made:
        one.close()


def asked(one: Nursery, text: bytes) -> tuple[bytes, int]:
    """What a fork of it answers, and how it ends."""
    theirs, out = os.pipe()
    back, mine = os.pipe()
    try:
        forked = one.fork(theirs, mine)
        os.close(mine)
        os.write(out, text)
        return os.read(back, 100), forked.wait(60.0)
    finally:
        for descriptor in (theirs, out, back):
            os.close(descriptor)


def test_each_hears_of_its_own_fork(made: Callable[[], Nursery], place: Path) -> None:
    one = made()
    for text in (b"a", b"bc", b"def"):
        assert asked(one, text) == (text.upper(), len(text))
    assert (place / "starts").read_text() == "x"


def test_a_start_that_is_too_slow_is_an_error_and_the_next_is_answered_its_own(
    made: Callable[[], Nursery], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, the late answer was taken for that to the next, which then talked to nobody."""
    (place / "waits").write_text("")
    one = made()
    monkeypatch.setattr(nursery, "START", 0.2)
    for _ in range(2):
        with pytest.raises(SchedgapError, match=r"the process that starts candidates: .* 0\.2 s"):
            one.fork(*os.pipe())
    (place / "waits").unlink()
    monkeypatch.setattr(nursery, "START", 60.0)
    for text in (b"a", b"bc"):
        assert asked(one, text) == (text.upper(), len(text))


def test_who_stops_waiting_for_an_end_leaves_no_answer_to_the_next(made: Callable[[], Nursery]) -> None:
    """As Ctrl-C does."""
    one = made()
    theirs, out = os.pipe()
    back, mine = os.pipe()
    one.fork(theirs, mine)
    os.write(out, b"left alone")
    assert asked(one, b"a") == (b"A", 1)
    for descriptor in (theirs, out, back, mine):
        os.close(descriptor)


def test_one_that_dies_at_its_start_is_started_again(made: Callable[[], Nursery], place: Path) -> None:
    (place / "dies").write_text("")
    assert asked(made(), b"a") == (b"A", 1)
    assert (place / "starts").read_text() == "xx"


def test_one_that_never_starts_is_an_error_in_one_line(
    place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (place / "slow_nursery.py").write_text("raise SystemExit(3)\n")
    one = Nursery("slow_nursery", [])
    problem = find_problem("comm-contention")
    (tmp_path / "mine.py").write_text("def scheduler(instance, *, seed):\n    pass\n")
    before = descriptors()
    for _ in range(3):
        scheduler = Contained(f"{tmp_path / 'mine.py'}:scheduler", problem, Bounds(warm=False), nursery=one)
        with scheduler, pytest.raises(SchedgapError, match="the process that starts candidates: has ended"):
            scheduler._ready(contained.NO_DEADLINE)
    assert len(descriptors()) <= len(before)
    one.close()

    def no_process(*_: object) -> None:
        raise OSError("no memory")

    monkeypatch.setattr(nursery, "start", no_process)
    with pytest.raises(SchedgapError, match="the process that starts candidates: no memory"):
        Nursery("slow_nursery", [])

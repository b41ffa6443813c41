"""A file costs at most its length: hostile files of 1 MB for the checker of certificates, files of VIPR and JSON.

Every one ends in one line, after a few seconds of a processor at most and within 1 GB of memory.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from schedgap import generate
from schedgap.solvers.certificates import checker, linear
from schedgap.solvers.certificates.content import plain
from schedgap.solvers.certificates.linear import Rejected, decimal
from schedgap.solvers.certificates.rules import hadar

FOLDER = Path(__file__).parents[1] / "data" / "proofs"
MEGABYTE = 2**20
SECONDS = 8.0
"""Seconds of a processor; measured are 2.6 at most on an idle machine, and a busy one must fail nothing."""
MEMORY = 2**30


@dataclass(frozen=True)
class Ended:
    """How a command came to its end."""

    status: int
    text: str
    seconds: float


def run(*command: str) -> Ended:
    """A command within MEMORY, with its seconds of a processor."""
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(
            [sys.executable, "-B", *command],
            stdout=told,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        told.seek(0)
        return Ended(process.returncode, told.read().decode(errors="replace"), used.ru_utime + used.ru_stime)


def refused(ended: Ended) -> None:
    assert ended.status in (1, 2), ended
    assert ended.text.count("\n") == 1 and "Traceback" not in ended.text, ended.text[:300]
    assert len(ended.text) < 700 and ended.text[:-1].isprintable(), ended.text[:300]
    assert ended.seconds < SECONDS, ended.seconds


@cache
def instance() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / "forge1.json").read_text())
    return loaded


def certificate(tree: str, **changes: Any) -> str:
    """A certificate of the instance whose tree is this text."""
    head = {
        "certificate": 1,
        "problem": "gang-placement",
        "instance": checker.digest(checker.load(str(FOLDER / "forge1.json"))),
        "form": "rows",
        "options": {},
        "claim": "1",
        **changes,
    }
    return json.dumps(head)[:-1] + f', "tree": {tree}}}'


def repeated(part: str, size: int = MEGABYTE) -> str:
    return part * (size // len(part))


def many(part: Callable[[int], str]) -> str:
    """Different parts, a megabyte together."""
    parts, size = [], 0
    while size < MEGABYTE:
        parts.append(part(len(parts)))
        size += len(parts[-1]) + 1
    return ",".join(parts)


def long(k: int) -> str:
    """A fraction of 8,000 digits, different for each k."""
    drawn = random.Random(k)
    return f"1/{10**4199 + drawn.randrange(10**4199)}"


ROWS = ("device[0,0]", "all[0,0]", "least[0]")
PRICES = '{"prices": {"weights": [[[0, 0, "1"]]], "values": %s}}'
TEXTS: dict[str, Callable[[], str]] = {
    "deep lists": lambda: certificate(repeated("[")),
    "deep objects": lambda: certificate(repeated('{"narrow":')),
    "deep splits": lambda: certificate(
        '{"split": "placed[0]", "at": 0, "high": {"bound": {}}, "low": ' * 450 + '{"bound": {}}' + "}" * 450
    ),
    "wide list": lambda: certificate(f"[{repeated('0,')}0]"),
    "wide objects": lambda: certificate(f"[{repeated('{},')}0]"),
    "a key given again and again": lambda: certificate(
        f'{{"bound": {{{many(lambda k: f"{chr(34)}a{k // 2}{chr(34)}:0")}}}}}'
    ),
    "a key given twice at the end": lambda: certificate(
        f'{{"bound": {{{many(lambda k: f"{chr(34)}a{k}{chr(34)}:0")},"a0":1}}}}'
    ),
    "keys of one hash, nearly": lambda: certificate(f'{{"bound": {{{many(lambda k: f"{chr(34)}{k}{chr(34)}:0")}}}}}'),
    "one long number": lambda: certificate(repeated("7")),
    "long whole numbers": lambda: certificate(
        f'{{"bound": {{{many(lambda k: f"{chr(34)}a{k}{chr(34)}:{7 * 10**4000 + k}")}}}}}'
    ),
    "long fractions of rows": lambda: certificate(
        f'{{"bound": {{{many(lambda k: json.dumps(ROWS[k] if k < 3 else f"r{k}") + ":" + json.dumps(long(k)))}}}}}'
    ),
    "long fractions of rows that there are": lambda: certificate(
        '{"bound": {' + ",".join(f'"{row}": "{long(k)}"' for k, row in enumerate(ROWS)) + "}}"
    ),
    "long fractions of values": lambda: certificate(
        PRICES % ("{" + ",".join(f'"{k + 1}": "{long(k)}"' for k in range(120)) + "}"), form="prices"
    ),
    "long fractions of prices": lambda: certificate(
        '{"prices": {"weights": [[' + many(lambda k: f'[0, {k + 1}, "{long(k)}"]') + "]]}}", form="prices"
    ),
    "decimals": lambda: certificate(f"[{many(lambda k: str(1.5 + k / 977))}]"),
    "decimals far out": lambda: certificate(f"[{many(lambda k: f'{k + 1}e-30{k % 10}')}]"),
    "one long text": lambda: certificate(f'{{"split": "{repeated("x")}", "at": 0, "low": {{}}, "high": {{}}}}'),
    "one long key": lambda: certificate(f'{{"bound": {{"{repeated("x")}": 1}}}}'),
    "escapes": lambda: certificate(f'{{"bound": {{"{repeated(chr(92) + "u001b")}": 1}}}}'),
    "colons": lambda: certificate(f'{{"bound": {{"{repeated(":")}": 1}}}}'),
    "brackets in a text": lambda: certificate(f'"{repeated("[")}"'),
    "a claim of a billion digits": lambda: certificate('{"bound": {}}', claim="1e1000000000"),
    "a long claim": lambda: certificate('{"bound": {}}', claim=repeated("9")),
    "a long form": lambda: certificate('{"bound": {}}', form=repeated("x")),
    "a long option": lambda: certificate('{"bound": {}}', options={repeated("x"): 1}),
    "no end": lambda: certificate('{"bound": {}}') + repeated(" ") + "x",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_certificate_costs_at_most_its_length(name: str, tmp_path: Path) -> None:
    text, path, packed = TEXTS[name](), tmp_path / "x.cert", tmp_path / "x.cert.gz"
    path.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    for file in (path, packed):
        refused(run(checker.__file__, str(FOLDER / "forge1.json"), str(file)))


BOMBS = {
    "blanks": b" " * 2**28,
    "decimals": b"[" + b"1.5," * 10_000_000 + b"1]",
    "objects": b"[" + b"{}," * 3_900_000 + b"1]",
    "one text": b'"' + b"x" * 200_000_000 + b'"',
    "numbers": b"[" + b"1," * 3_900_000 + b"1]",
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_packed_costs_at_most_its_length(name: str, tmp_path: Path) -> None:
    """38.5 kB of 10^7 decimals were not read in 100 s."""
    path = tmp_path / "x.cert"
    path.write_bytes(gzip.compress(BOMBS[name]))
    refused(run(checker.__file__, str(FOLDER / "forge1.json"), str(path)))


@pytest.mark.parametrize(
    ("instance", "certificate"),
    [
        ("slow-fractions.json", "slow-fractions.cert"),
        ("escape-instance.json", "duplicate-key.cert"),
        ("escape-instance.json", "escape.cert"),
        ("dos-hadar.json", "dos-hadar.cert.json"),
    ],
)
def test_files_that_held_the_checker_end_at_once(instance: str, certificate: str) -> None:
    ended = run(checker.__file__, str(FOLDER / instance), str(FOLDER / certificate))
    refused(ended)
    assert ended.seconds < 1


def changed(name: str, change: Callable[[dict[str, Any]], object]) -> str:
    data = json.loads((FOLDER / name).read_text())
    change(data)
    return json.dumps(data)


INSTANCES: dict[str, Callable[[], str]] = {
    "a number that no float holds": lambda: changed(
        "dos-hadar.json", lambda data: data["jobs"][0].update(arrival=-(10**400))
    ),
    "a length that no float holds": lambda: changed("dos-hadar.json", lambda data: data.update(slot_length=-(10**400))),
    "a horizon of a billion": lambda: changed("dos-hadar.json", lambda data: data.update(horizon=10**9)),
    "a million slots and forty jobs": lambda: changed(
        "dos-hadar.json",
        lambda data: data.update(horizon=10**6, jobs=[{**data["jobs"][0], "id": f"j{k}"} for k in range(40)]),
    ),
    "a long id": lambda: changed("dos-hadar.json", lambda data: data["jobs"][0].update(id=repeated("x"), more=1)),
    "escapes": lambda: changed("dos-hadar.json", lambda data: data["jobs"][0].update({"\x1b]0;x\x07\n": 1})),
    "deep": lambda: changed(
        "dos-hadar.json", lambda data: data["jobs"][0].update(more=json.loads("[" * 900 + "]" * 900))
    ),
    "a key given twice": lambda: '{"problem": "hadar", "jobs": [' + repeated('{"a":1},') + '{"b":1,"b":2}]}',
}


@pytest.mark.parametrize("name", INSTANCES)
def test_an_instance_costs_at_most_its_length(name: str, tmp_path: Path) -> None:
    path, cert = tmp_path / "i.json", tmp_path / "c.json"
    path.write_text(INSTANCES[name]())
    data = json.loads((FOLDER / "dos-hadar.cert.json").read_text())
    try:
        data["instance"] = checker.digest(checker.load(str(path)))
    except (Rejected, RecursionError):  # the instance is none, which the command has to say
        data["instance"] = ""
    data["tree"]["prices"]["blocks"] = data["tree"]["prices"]["blocks"][:1]
    cert.write_text(json.dumps(data))
    refused(run(checker.__file__, str(path), str(cert)))


@pytest.mark.parametrize("problem", ["rar-ddls", "gpu-sharing", "ddljs"])
def test_rows_of_a_billion_slots_are_not_written(problem: str) -> None:
    """Neither are those that many iterations or pods ask for."""
    given = plain(generate(problem, "tiny", seed=0))
    given["horizon"] = 10**9
    with pytest.raises(Rejected, match="the model has more than 2,000,000 variables, rows and terms"):
        checker.model_of(given, "rows", {"horizon": 10**9})


def rigid(objective: str, jobs: int, pools: int) -> dict[str, Any]:
    made = [{"id": f"{k:x}", "arrival": 2 * k, "length": 1 + 2 * jobs, "gpus": 1} for k in range(jobs)]
    row = [{"id": f"{k:x}", "gpus": 1} for k in range(pools)]
    return {"problem": "rigid-jobs", "objective": objective, "pools": row, "jobs": made}


def rates(horizon: int, kinds: int) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((FOLDER / "dos-hadar.json").read_text())
    speed = {f"{k:x}": k + 1 for k in range(kinds)}
    job = {**data["jobs"][0], "arrival": 1, "workers": 1, "throughput": speed, "epochs": 10**6}
    return {**data, "horizon": horizon, "machines": [{"id": "m", "gpus": dict.fromkeys(speed, 1)}], "jobs": [job]}


TOGETHER: dict[str, Callable[[], tuple[dict[str, Any], str, Any]]] = {
    "jobs and pools, prices": lambda: (rigid("jct", 9000, 20_000), "prices", {"edges": [0], "prices": [[]] * 20_000}),
    "jobs and pools, drain": lambda: (rigid("area", 9000, 20_000), "drain", {}),
    "jobs and edges": lambda: (
        rigid("jct", 14_000, 1),
        "prices",
        {"edges": list(range(60_001)), "prices": [[9 * 10**16] * 60_000]},
    ),
    "slots and rates": lambda: (rates(10**6, 1500), "prices", {"blocks": [[1, {}]]}),
    "variables of rates": lambda: (rates(20_000, 1500), "prices", {"blocks": [[1, {}]]}),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_what_an_instance_and_a_leaf_ask_for_together_is_bounded(name: str, tmp_path: Path) -> None:
    data, form, leaf = TOGETHER[name]()
    path, cert = tmp_path / "i.json", tmp_path / "c.json"
    path.write_text(json.dumps(data))
    about = {"certificate": 1, "problem": data["problem"], "instance": checker.digest(checker.load(str(path)))}
    cert.write_text(json.dumps(about | {"form": form, "claim": "1", "tree": {"prices": leaf}}))
    refused(run(checker.__file__, str(path), str(cert)))


def test_prices_that_take_many_steps_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 kB held the checker for 43 s, and might have for hours."""
    monkeypatch.setattr(hadar, "MOST_STEPS", 1_000)
    given = checker.load(str(FOLDER / "dos-hadar.json"))
    given["horizon"], given["jobs"][1]["epochs"] = 900, 10_000  # of constant utility
    price = checker.model_of(given, "prices", {}).price
    assert price is not None
    for fractions in (False, True):
        with pytest.raises(ValueError, match="the prices take more than 1000 steps"):
            price({"blocks": [[1, {}]], "fractions": fractions}, {})


def test_rows_of_many_iterations_are_not_written_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "MOST_PARTS", 20_000)
    given = json.loads((FOLDER / "vipr-cutoff.json").read_text())
    given["jobs"][0]["iterations"] = 10**9
    with pytest.raises(Rejected, match="the model has more than 20,000 variables"):
        checker.model_of(given, "rows", {"cutoff": str(10**12)})


def test_a_number_beyond_floats_is_told() -> None:
    assert decimal(-(10**400)) == "-10^399" or decimal(-(10**400)) == "-10^400"
    assert decimal(1.5) == "1.5"


VIPR: dict[str, Callable[[], bytes]] = {
    "a long note": lambda: b'% schedgap {"form": "' + b"x" * MEGABYTE + b'"}\n',
    "a deep note": lambda: b"% schedgap " + b"[" * MEGABYTE + b"\n",
    "a key given twice": lambda: b"% schedgap {" + b'"a":1,' * (MEGABYTE // 6) + b'"a":1}\n',
    "no line feed": lambda: b"% schedgap " + b" " * MEGABYTE,
    "carriage returns": lambda: b"\r" * MEGABYTE,
    "other letters": lambda: "é".encode() * (MEGABYTE // 2),
    "one line": lambda: b"x" * MEGABYTE,
    "a horizon of a billion": lambda: (
        b'% schedgap {"form": "periods", "options": {"horizon": 1000000000, "margin": 0, "slots": true}, '
        b'"claim": "4"}\n'
    ),
}


@pytest.mark.parametrize("name", VIPR)
def test_a_file_of_vipr_costs_at_most_its_length(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.vipr"
    path.write_bytes(VIPR[name]())
    program = (
        "import sys; from schedgap.solvers.certificates import checker\n"
        "from schedgap.tools.vipr.stating import about\n"
        "try: print(about(checker.load(sys.argv[1]), sys.argv[2]))\n"
        "except checker.Rejected as fault: print(checker.shown(str(fault))); sys.exit(1)"
    )
    refused(run("-c", program, str(FOLDER / "vipr-gang.json"), str(path)))


JSON_TEXTS: dict[str, Callable[[], str]] = {
    "deep": lambda: repeated("["),
    "deep objects": lambda: repeated('{"a":'),
    "a key given twice at the end": lambda: "{" + many(lambda k: f'"a{k}": 0') + ',"a0": 1}',
    "a key given twice behind texts": lambda: '{"a": [' + repeated('"x",') + '"x"], "b": 0, "b": 1}',
    "a key given twice behind blanks": lambda: '{"a": 0' + repeated(" ") + ', "b": 0, "b": 1}',
    "one long number": lambda: repeated("7"),
    "long numbers": lambda: f"[{many(lambda k: str(10**4290 + k))}, 1e999]",
    "one long text": lambda: f'["{repeated("x")}", 1e999]',
    "quotes": lambda: f'["{repeated(chr(92) + chr(34))}", NaN]',
    "words": lambda: repeated("nul"),
    "no end of a text": lambda: f'{{"a": 1, "{repeated(chr(92) * 2)}',
}


@pytest.mark.parametrize("name", JSON_TEXTS)
def test_json_costs_at_most_its_length(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(JSON_TEXTS[name]())
    program = (
        "import sys; from schedgap.formulations.common.instance import read_json\n"
        "from schedgap.formulations.common.errors import InputError\n"
        "try: read_json(sys.argv[1]); print(0)\n"
        "except InputError as fault: print(str(fault)[:600]); sys.exit(2)"
    )
    refused(run("-c", program, str(path)))

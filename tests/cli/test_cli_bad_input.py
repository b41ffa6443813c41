"""Bad input of every kind: exit status 2 and one clear line that names the file, the place and the value."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.changes import drop, put
from support.command import Command

JOB = 'jobs[0] ("j0")'


def broken(mixed: Path, tmp_path: Path, change: Any) -> Path:
    """A copy of the case with `change` applied to its JSON object."""
    data = json.loads(mixed.read_text())
    change(data)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data))
    return path


CHANGES = [
    (put("jobs", 1, "gpus", value=0), "jobs[1].gpus: ", "got 0"),
    (put("jobs", 1, "gpus", value=-3), "jobs[1].gpus: ", "got -3"),
    (put("servers", 0, "gpus", value=0), "servers[0].gpus: ", "got 0"),
    (put("jobs", 0, "gpus", value="4"), "jobs[0].gpus: ", 'got "4"'),
    (put("jobs", 0, "gpus", value=2.5), "jobs[0].gpus: ", "got 2.5"),
    (put("jobs", 0, "gpus", value=True), "jobs[0].gpus: ", "got true"),
    (put("jobs", 0, "gpus", value=None), "jobs[0].gpus: ", "got null"),
    (put("jobs", 0, "iterations", value=10**12), "jobs[0].iterations: ", "got 1000000000000"),
    (put("jobs", 2, "backward_time", value=-0.1), "jobs[2].backward_time: ", "got -0.1"),
    (put("jobs", 2, "colour", value="red"), "jobs[2].colour: ", "unknown key"),
    (put("jobs", 2, "id", value="j0"), "jobs[2].id: ", '"j0" is already the id of jobs[0]'),
    (put("jobs", 2, "id", value=""), "jobs[2].id: ", 'got ""'),
    (put("servers", 1, "id", value="s0"), "servers[1].id: ", '"s0" is already the id of servers[0]'),
    (put("jobs", value=[]), "jobs: ", "got []"),
    (put("jobs", value={}), "jobs: ", "got {}"),
    (put("jobs", 0, value=7), "jobs[0]: ", "got 7"),
    (put("horizon", value=0), "horizon: ", "got 0"),
    (put("network", "contention_scale", value=1.5), "network.contention_scale: ", "got 1.5"),
    (put("network", "intra_bandwidth", value=0.5), "network: intra_bandwidth: ", "got 0.5"),
    (put("version", value=2), "version: ", "got 2"),
    (put("extra", value=1), "extra: ", "unknown key"),
    (put("problem", value="rar"), "problem: ", "unknown problem 'rar', one of: rar-ddls"),
    (put("problem", value=5), "problem: ", "unknown problem 5"),
    (drop("problem"), "problem: ", "is missing"),
    (drop("horizon"), "horizon: ", "is missing"),
    (drop("jobs", 3, "iterations"), "jobs[3].iterations: ", "is missing"),
]


@pytest.mark.parametrize(("change", "place", "value"), CHANGES)
def test_bad_instances(command: Command, mixed: Path, tmp_path: Path, change: Any, place: str, value: str) -> None:
    path = broken(mixed, tmp_path, change)
    ran = command("solve", path, "--method", "lpt-colocate")
    assert ran.status == 2 and ran.out == ""
    assert ran.message.startswith(f"{path}: {place}")
    assert value in ran.message


TEXTS = [
    ("", "not valid JSON at line 1, column 1"),
    ('{"problem": "rar-ddls", "jobs": [', "not valid JSON at line 1"),
    ("[1, 2]", "an instance must be a JSON object"),
    ('"rar-ddls"', "an instance must be a JSON object"),
    ('{"problem": "rar-ddls", "problem": "rar-ddls"}', 'the key "problem" is given twice'),
    ('{"problem": "rar-ddls", "horizon": NaN}', "NaN is not allowed"),
    ('{"problem": "rar-ddls", "horizon": -Infinity}', "-Infinity is not allowed"),
    ('{"problem": "rar-ddls", "horizon": 1e999}', "1e999 is too large"),
    ("[" * 100_000, "nested too deeply"),
    ('{"problem": "rar-ddls"}' + "x", "not valid JSON at line 1, column 24: Extra data"),
]


@pytest.mark.parametrize(("text", "message"), TEXTS, ids=range(len(TEXTS)))
def test_bad_json(command: Command, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    for arguments in (["compare", path], ["check", path, path], ["export", path, "--format", "lp", "--out", "x"]):
        ran = command(*arguments)
        assert ran.status == 2 and ran.out == ""
        assert ran.message.startswith(f"{path}: ") and message in ran.message


def test_truncated_at_any_byte(command: Command, mixed: Path, tmp_path: Path) -> None:
    text = mixed.read_text().rstrip()
    path = tmp_path / "cut.json"
    for end in range(0, len(text) - 1, 97):
        path.write_text(text[:end])
        ran = command("check", path, path)
        assert ran.status == 2 and ran.message.startswith(f"{path}: not valid JSON at line ")


def test_not_text_and_not_there(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "binary.json"
    path.write_bytes(b'{"problem": "\xff\xfe"}')
    assert command("solve", path).message == f"{path}: not UTF-8 text (byte 13)"
    ran = command("solve", tmp_path / "none.json")
    assert ran.status == 2 and ran.message == f"{tmp_path / 'none.json'}: No such file or directory"
    assert command("solve", tmp_path).message.startswith(f"{tmp_path}: is a folder, must be a file")


def test_bad_standard_input(command: Command) -> None:
    ran = command("solve", "-", stdin="{")
    assert ran.status == 2 and ran.message.startswith("<standard input>: not valid JSON")
    ran = command("solve", "-", stdin=b"\xff")
    assert ran.status == 2 and ran.message == "<standard input>: not UTF-8 text (byte 0)"
    ran = command("check", "-", "-", stdin="{}")
    assert ran.status == 2 and ran.message == "standard input (-) can be read only once"


SOLVES = [
    (["--method", "simplex"], "method: unknown method 'simplex' for rar-ddls, one of: cp, cbc"),
    (["--method", "no.such.module:f"], "method no.such.module:f: cannot import no.such.module"),
    (["--method", "json:no_such"], "method json:no_such: module json has no function 'no_such'"),
    (["--method", ":"], "method :: must look like package.module:function"),
    (["--time-limit", "0"], "argument --time-limit: must be seconds, positive and finite, got '0'"),
    (["--time-limit", "-5"], "argument --time-limit: must be seconds, positive and finite, got '-5'"),
    (["--time-limit", "nan"], "argument --time-limit: must be seconds, positive and finite, got 'nan'"),
    (["--time-limit", "inf"], "argument --time-limit: must be seconds, positive and finite, got 'inf'"),
    (["--time-limit", "soon"], "argument --time-limit: must be seconds, positive and finite, got 'soon'"),
    (["--seed", "-1"], "argument --seed: must be a whole number from 0"),
    (["--seed", "1.5"], "argument --seed: must be a whole number from 0 to 2147483647, got '1.5'"),
    (["--seed", "99999999999"], "argument --seed: must be a whole number from 0"),
    (["--method", "sjf-bco", "--set", "kapa=4"], "method sjf-bco: unknown option 'kapa' (options: T, u, l, lambda"),
    (["--method", "sjf-bco", "--set", "kappa=0"], "option kappa: must be at least 1, got '0'"),
    (["--method", "sjf-bco", "--set", "kappa=four"], "option kappa: must be int, got 'four'"),
    (["--method", "sjf-bco", "--set", "bisection=fast"], "option bisection: must be one of improved, feasible"),
    (["--method", "sjf-bco", "--set", "kappa"], "--set: must be option=value, got 'kappa'"),
    (["--method", "sjf-bco", "--set", "=4"], "--set: must be option=value, got '=4'"),
    (["--method", "sjf-bco", "--set", "u=1", "u=2"], "--set: u is given twice ('1' and '2')"),
    (["--method", "lpt-colocate", "--set", "u=1"], "method lpt-colocate: unknown option 'u' (options: none)"),
    (["--out", "{tmp}"], "{tmp}: is a directory, cannot be written as a file"),
    (["--out", "{tmp}/no/such.json"], "{tmp}/no/such.json: cannot be written: No such file or directory"),
    (["--out", "/proc/schedgap/out.json"], "/proc/schedgap/out.json: cannot be written: No such file or directory"),
    (["--start", "{tmp}/none.json"], "{tmp}/none.json: No such file or directory"),
    (["--jason"], "unrecognized arguments: --jason"),
    (["--js"], "unrecognized arguments: --js"),
    (["another.json"], "unrecognized arguments: another.json"),
]


@pytest.mark.parametrize(("arguments", "message"), SOLVES, ids=[" ".join(a) for a, _ in SOLVES])
def test_bad_usage_of_solve(command: Command, mixed: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    given = [argument.format(tmp=tmp_path) for argument in arguments]
    ran = command("solve", mixed, *given)
    assert ran.status == 2 and ran.out == ""
    assert ran.message.startswith(message.format(tmp=tmp_path))


OTHERS = [
    ([], "the following arguments are required: COMMAND (see: schedgap --help)"),
    (["slove"], "argument COMMAND: invalid choice: 'slove' (choose from 'bench', 'report', 'solve'"),
    (["solve"], "the following arguments are required: INSTANCE (see: schedgap solve --help)"),
    (["check", "{mixed}"], "the following arguments are required: SOLUTION"),
    (["compare", "{mixed}", "--methods", "sjf-bco,nothing"], "method: unknown method 'nothing' for rar-ddls"),
    (["compare", "{mixed}", "--methods", ","], "argument --methods: must be names separated by commas, got ','"),
    (["compare", "{mixed}", "--methods", "ff,cp,ff"], "methods: ff is named twice"),
    (["compare", "{mixed}", "--methods", "ff", "--set", "v=1"], "option v: none of the methods ff has it"),
    (["compare", "{mixed}", "--methods", "ff", "--repeat", "0"], "argument --repeat: must be a whole number from 1"),
    (["generate", "rar"], "problem: unknown problem 'rar', one of: rar-ddls"),
    (["generate", "rar-ddls", "--preset", "huge"], "problem rar-ddls: unknown preset 'huge' (presets: tiny, contended"),
    (["generate", "rar-ddls", "--set", "job=4"], "preset tiny: unknown option 'job' (options: jobs, servers"),
    (["generate", "rar-ddls", "--set", "jobs=0"], "option jobs: must be at least 1, got '0'"),
    (["generate", "rar-ddls", "--out", "{tmp}"], "{tmp}: is a directory"),
    (
        ["import", "sge", "x", "--problem", "rar-ddls"],
        "problem rar-ddls: cannot import format 'sge' (formats: gavel, philly, helios, pai, openb, pollux, sia, "
        "tiresias, chronus, slurm, kubernetes, pbs, condor, lsf, swf, slurm-table, csv)",
    ),
    (["import", "gavel", "x"], "the following arguments are required: --problem"),
    (["import", "gavel", "{tmp}/none", "--problem", "rar-ddls"], "{tmp}/none: No such file or directory"),
    (["import", "gavel", "x", "--problem", "rar"], "--problem: unknown problem 'rar'"),
    (["plot", "{mixed}", "{mixed}", "--out", "{tmp}/x.gif"], "{tmp}/x.gif: must end in .svg, .png, .pdf"),
    (["export", "{mixed}", "--format", "gms", "--out", "{tmp}/x"], "format: must be one of mps, lp, got 'gms'"),
    (["export", "{mixed}", "--format", "lp", "--out", "{tmp}/no/x"], "{tmp}/no/x: cannot be written"),
    (["schema", "rar"], "problem: unknown problem 'rar', one of: rar-ddls"),
    (["list", "rar"], "list: unknown problem 'rar', one of: rar-ddls"),
    (["report", "{tmp}"], "{tmp}"),
    (["report", "{tmp}", "{tmp}", "{tmp}"], "report: takes one run or two, got 3"),
    (["bench", "slow", "--out", "{tmp}/r"], "suite: unknown suite 'slow'"),
    (["bench", "--out", "{tmp}/r", "--workers", "0"], "argument --workers: must be a whole number from 1"),
    (["bench", "--out", "{tmp}/r", "--scale", "0"], "argument --scale: must be a positive number, got '0'"),
    (["verify", "000-theorem-99"], "guarantee"),
]


@pytest.mark.parametrize(("arguments", "message"), OTHERS, ids=[" ".join(a) for a, _ in OTHERS])
def test_bad_usage_of_other_commands(
    command: Command, mixed: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    ran = command(*(argument.format(tmp=tmp_path, mixed=mixed) for argument in arguments))
    assert ran.status == 2 and ran.out == ""
    assert ran.message.startswith(message.format(tmp=tmp_path))
    assert list(tmp_path.iterdir()) == []


MEANT = [
    ("slove x", "solve"),
    ("solve {mixed} --metod cp", "--method"),
    ("new heuristik mine", "heuristic"),
    ("generate rar-ddl", "rar-ddls"),
    ("generate hadar --preset smal", "small"),
    ("solve {mixed} --method SJF_BCO", "sjf-bco"),
    ("solve {mixed} --method sjf-bco --set kapa=4", "kappa"),
    ("compare {mixed} --set kapa=4", "kappa"),
    ("model {mixed} --form time-index", "time-indexed"),
    ("bench quik --out {tmp}/r", "quick"),
    ("bench --methods sjfbco --out {tmp}/r", "sjf-bco"),
    ("import phily x --problem hadar", "philly"),
    ("verify 000-theorem-55", "000-theorem-5"),
    ("hunt 000-theorem-55", "000-theorem-5"),
    ("reproduce sjfbco", "sjf-bco"),
]


@pytest.mark.parametrize(("arguments", "meant"), MEANT, ids=[line for line, _ in MEANT])
def test_a_name_that_is_nearly_right_is_told(
    command: Command, mixed: Path, tmp_path: Path, arguments: str, meant: str
) -> None:
    ran = command(*(argument.format(tmp=tmp_path, mixed=mixed) for argument in arguments.split()))
    assert ran.status == 2 and ran.message.endswith(f"; did you mean {meant!r}?")


def test_nothing_is_suggested_for_what_is_like_nothing(command: Command, mixed: Path) -> None:
    assert "did you mean" not in command("solve", mixed, "--method", "quantum").message
    assert "did you mean" not in command("solve", mixed, "--quiet").message


@pytest.mark.parametrize("log", [["log.csv", "--sharing", "1", "1.2"], ["--sharing", "1", "1.2", "log.csv"]])
def test_several_numbers_of_sharing_are_one_value(log: list[str], command: Command) -> None:
    """With spaces the log was taken for a number, or a number for the log."""
    ran = command("audit", *log)
    assert ran.status == 2 and ran.message == "--sharing: joined by commas: --sharing 1,1.2"
    ran = command("audit", "--sharing", "1,1.2", "log.csv")
    assert ran.status == 2 and "log.csv" in ran.message
    ran = command("audit", "--sharing", "1,", "log.csv")
    assert ran.status == 2 and "argument --sharing: must be a positive number, got ''" in ran.message

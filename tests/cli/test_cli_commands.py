"""generate, import, plot, export, schema, list, help: output, files, exit statuses; nothing heavy is loaded."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import Command

from schedgap.benchmarks.instances import workload_of
from schedgap.benchmarks.suites.plan import SUITES, suites_of
from schedgap.catalogue.registry import all_problems, find_problem

ENTRY = [sys.executable, "-m", "schedgap.cli.main"]
HEAVY = ("scipy", "networkx", "pulp", "highspy", "ortools", "numba", "matplotlib", "joblib")


@pytest.mark.parametrize("problem", all_problems())
def test_generate_prints_an_instance_of_every_problem(command: Command, problem: str) -> None:
    ran = command("generate", problem, "--seed", 5)
    data = json.loads(ran.out)
    assert ran.status == 0 and ran.err == "" and data["problem"] == problem
    assert command("generate", problem, "--seed", "5").out == ran.out
    assert command("generate", problem, "--seed", "6").out != ran.out


def test_generate_writes_a_file_with_settings(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "made.json"
    arguments = ["generate", "rar-ddls", "--preset", "contended", "--set", "jobs=2", "singles=0", "--out", path]
    ran = command(*arguments)
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert [job["gpus"] for job in json.loads(path.read_text())["jobs"]] == [3, 3]
    again = command("generate", "rar-ddls", "--preset", "contended", "--set", "jobs=2", "--set", "singles=0")
    assert json.loads(again.out) == json.loads(path.read_text())
    assert [p.name for p in tmp_path.iterdir()] == ["made.json"]
    assert command(*arguments[:-1], "-").out == again.out


def test_import_reports_on_standard_error(command: Command, tmp_path: Path) -> None:
    row = ["ResNet-50 (batch size 64)", "python3 main.py", "folder", "-step", "1", "5000", "4", "1", "-1.0", "0"]
    trace = tmp_path / "some.trace"
    trace.write_text("\t".join(row) + "\n")
    ran = command("import", "gavel", trace, "--problem", "rar-ddls", "--set", "steps_scale=0.1")
    data = json.loads(ran.out)
    assert ran.status == 0 and data["jobs"][0]["iterations"] == 500 and data["jobs"][0]["gpus"] == 4
    assert "\nschedgap: note: ResNet-50 (batch size 64) on 4 v100: unconsolidated is not slower" in ran.err
    ran = command("import", "gavel", trace, trace, "--problem", "rar-ddls")
    assert ran.status == 2 and "not a known table of servers" in ran.message


@pytest.mark.parametrize(("ending", "magic"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_plot(command: Command, mixed: Path, tmp_path: Path, ending: str, magic: bytes) -> None:
    solution = tmp_path / "s.json"
    solution.write_text(json.dumps(json.loads(mixed.read_text())["reference_solution"]))
    out = tmp_path / f"chart.{ending}"
    ran = command("plot", mixed, solution, "--out", out)
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    first = out.read_bytes()
    assert first.startswith(magic)
    command("plot", mixed, solution, "--out", out)
    assert out.read_bytes() == first


def test_plot_of_what_is_not_feasible_says_so(command: Command, mixed: Path, tmp_path: Path) -> None:
    wrong = json.loads(mixed.read_text())["reference_solution"]
    wrong["start"]["j0"] = 1
    (tmp_path / "s.json").write_text(json.dumps(wrong))
    ran = command("plot", mixed, tmp_path / "s.json", "--out", tmp_path / "x.svg")
    assert ran.status == 0 and ran.err.startswith("schedgap: note: s: not feasible (server s2, slot")
    wrong["start"]["j9"] = 1
    (tmp_path / "s.json").write_text(json.dumps(wrong))
    assert command("plot", mixed, tmp_path / "s.json", "--out", tmp_path / "x.svg").status == 2


@pytest.mark.parametrize("form", ["mps", "lp"])
def test_export_can_be_solved_elsewhere(command: Command, data: Path, tmp_path: Path, form: str) -> None:
    import highspy

    out = tmp_path / f"model.{form}"
    ran = command("export", data / "rar-03-forced-crossing-one.json", "--format", form, "--out", out)
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    assert highs.readModel(str(out)) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getInfo().objective_function_value == pytest.approx(6)


@pytest.mark.parametrize("problem", all_problems())
def test_schema_knows_what_the_parser_knows(command: Command, problem: str) -> None:
    ran = command("schema", problem)
    schema = json.loads(ran.out)
    assert ran.status == 0 and ran.err == ""
    instance = json.loads(command("generate", problem).out)
    assert set(instance) <= set(schema["properties"]) and set(schema["required"]) <= set(instance) | {"problem"}
    assert schema["additionalProperties"] is False
    assert "note" in schema["properties"] and re.match(next(iter(schema["patternProperties"])), "reference_solution")


@pytest.mark.parametrize("problem", all_problems())
def test_schema_of_solutions_knows_what_methods_return(command: Command, tmp_path: Path, problem: str) -> None:
    ran = command("schema", f"solution:{problem}")
    schema = json.loads(ran.out)
    assert ran.status == 0 and ran.err == "" and schema["additionalProperties"] is False
    heuristic = find_problem(problem).heuristics()[0].id
    file = tmp_path / "instance.json"
    file.write_text(command("generate", problem).out)
    solution = json.loads(command("solve", str(file), "--method", heuristic, "--json").out)["solution"]
    assert set(schema["required"]) <= set(solution) <= set(schema["properties"])


def _words(text: str) -> set[str]:
    return set(re.findall(r"[\w.+-]+", text))


def test_list_is_one_screen(command: Command) -> None:
    ran = command("list")
    assert ran.status == 0 and ran.err == ""
    lines = ran.out.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 100
    for problem, line in zip(all_problems().values(), lines[1:], strict=False):  # one line each, below the heads
        counts = [str(len(problem.methods)), str(len(problem.guarantees()))]
        name, paper, *told = line.split()
        assert (name, told[:2], " ".join(told[2:])) == (problem.id, counts, problem.title)
        assert problem.source.startswith(f"paper {paper}") or paper == "-"
    for word in re.findall(r"schedgap list (\w+)", ran.out):  # what the screen leads to is there
        assert word == "PROBLEM" or command("list", word).status == 0


@pytest.mark.parametrize("problem", all_problems())
def test_list_of_a_problem_names_everything_with_every_option(command: Command, problem: str) -> None:
    one = find_problem(problem)
    ran = command("list", problem)
    words = _words(ran.out)
    assert ran.status == 0 and ran.err == ""
    assert {m.id for m in one.methods} | {form.id for form in one.forms} <= words
    assert {g.id for g in one.guarantees()} | {preset.id for preset in workload_of(one).presets} <= words
    assert {importer.id for importer in workload_of(one).importers} <= words
    for entry in (*one.methods, *one.forms, *workload_of(one).presets, *workload_of(one).importers):
        assert all(f"        {name}: {option.help} [" in ran.out for name, option in entry.options.items())
    assert ran.out.count("factor on all times of the log") <= 1  # what every format takes is told once


def test_list_of_formats_claims_and_suites(command: Command) -> None:
    formats, claims, suites = (command("list", name).out for name in ("formats", "claims", "suites"))
    for problem in all_problems().values():
        for importer in workload_of(problem).importers:
            at = re.search(rf"^  {importer.id} .*\n      of (.*)$", formats, re.M)
            assert at is not None and problem.id in at[1].split(", ")
        assert {guarantee.id for guarantee in problem.guarantees()} <= _words(claims)
        assert set(suites_of(problem)) <= _words(suites) & set(SUITES)
    assert formats.count("factor on all times of the log") == 1 and formats.count("as above: ") > 5


def test_help_of_every_command(command: Command) -> None:
    """Each ends with an example that its own parser takes."""
    from schedgap.cli.arguments import split_settings
    from schedgap.cli.main import COMMANDS, _parser

    for name, (_, _, example) in COMMANDS.items():
        ran = command(name, "--help")
        assert ran.status == 0 and ran.out.startswith(f"usage: schedgap {name} ") and ran.err == ""
        assert " ".join(ran.out.split()).endswith(f"for example: schedgap {name} {example}")
        _parser(name).parse_args(split_settings([name, *example.split()]))
    ran = command("--help")
    assert "5 internal error or disagreement" in " ".join(ran.out.split())
    assert ran.status == 0 and all(re.search(rf"^    {name}\s", ran.out, re.M) for name in COMMANDS)
    ran = command("--version")
    assert ran.status == 0 and re.fullmatch(r"schedgap \d+\.\d+\.\d+\S*\n", ran.out)


def loaded_after(code: str) -> set[str]:
    """Which of the heavy packages are loaded once `code` has run in a fresh interpreter."""
    show = f"import sys; print('loaded:', *[name for name in {HEAVY} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", f"{code}\n{show}"], capture_output=True, text=True, check=True)
    return set(ran.stdout.splitlines()[-1].split()[1:])


def test_nothing_heavy_is_loaded_without_need(mixed: Path) -> None:
    assert loaded_after("import schedgap; dir(schedgap); schedgap.problems(); schedgap.__version__") == set()
    run = "from schedgap.cli.main import main\nassert main({!r}) == 0"
    assert loaded_after(run.format(["--help"])) == set()
    assert loaded_after(run.format(["list"])) == set()  # options are read from the heuristics themselves
    assert loaded_after(run.format(["solve", "--help"])) == set()
    assert loaded_after(run.format(["schema", "rar-ddls"])) == set()
    assert loaded_after(f"import schedgap; schedgap.load({str(mixed)!r})") == set()


def test_a_reader_that_goes_away_gives_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run([*ENTRY, "list"], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (ran.returncode, ran.stderr) == (141, b"")


def test_output_that_cannot_be_written() -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run([*ENTRY, "schema", "rar-ddls"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert ran.returncode == 2
    assert ran.stderr == b"schedgap: error: standard output: No space left on device\n"


@pytest.mark.parametrize(
    ("shell", "status", "message"),
    [
        ('"$@" solve "$CASE" --json >&-', 2, "schedgap: error: standard output is closed\n"),
        ('"$@" solve - <&-', 2, "schedgap: error: standard input is closed\n"),
        ('"$@" solve "$CASE" --method ff --json 2>&-', 0, ""),
    ],
)
def test_closed_standard_streams(mixed: Path, shell: str, status: int, message: str) -> None:
    ran = subprocess.run(
        ["sh", "-c", shell, "sh", *ENTRY],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CASE": str(mixed)},
    )
    assert (ran.returncode, ran.stderr) == (status, message)
    assert status or json.loads(ran.stdout)["solution"] is not None


def test_the_installed_command(mixed: Path) -> None:
    """The console script itself, from another directory."""
    script = Path(sys.executable).with_name("schedgap")
    ran = subprocess.run([script, "check", mixed, "none"], capture_output=True, text=True, check=False, cwd="/")
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", "schedgap: error: none: No such file or directory\n")


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("schedgap so", {"solve"}),
        ("schedgap solve x.json --meth", {"--method"}),
        ("schedgap generate hadar --preset sm", {"small"}),
        (
            "schedgap bench --problem rar-ddls --methods sjf-bco,l",
            {f"sjf-bco,{name}" for name in ("lns", "ls", "lpt-colocate")},
        ),
        ("schedgap hunt rar-ddls/l", {f"rar-ddls/{name}" for name in ("lns", "ls", "lpt-colocate")}),
        ("schedgap reproduce 00", {f"00{k}" for k in range(5)}),
        ("schedgap reproduce 004 --item figure-5", {"figure-5"}),
        ("schedgap generate rar-ddls --preset paper --set ser", {"servers="}),
        ("schedgap solve i.json --method l", {"ls", "lns", "lpt-colocate"}),
        ("schedgap compare i.json --methods ls,my", {"ls,mypart.py:first"}),
    ],
)
def test_the_shell_completes(tmp_path: Path, line: str, names: set[str]) -> None:
    (tmp_path / "mypart.py").write_text(
        "def first(\n    instance, *, seed\n):\n    return 1\n\n\ndef other(x):\n    pass\n"
    )
    (tmp_path / "i.json").write_text('{"problem": "rar-ddls"}')
    out = tmp_path / "completions"
    asked = {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n"}
    words = {**asked, "_ARGCOMPLETE_STDOUT_FILENAME": str(out)}
    command = [sys.executable, "-m", "schedgap.cli.main"]
    subprocess.run(command, env={**os.environ, **words}, timeout=300, check=True, cwd=tmp_path)
    assert {name.strip() for name in out.read_text().split("\n")} == names

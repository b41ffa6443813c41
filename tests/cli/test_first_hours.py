"""What the first hours stumble over, told in words that lead on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from matplotlib.text import Text
from support.command import Command

import schedgap
from schedgap.benchmarks.figures.style import canvas, drawing_on
from schedgap.benchmarks.importers.rows import Notes
from schedgap.benchmarks.instances import figure_of
from schedgap.catalogue.registry import find_problem

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = ("id=JobID", "gpus=num_gpu", "duration=run_s", "arrival=submit", "servers=4")


@pytest.fixture
def imported(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the import of 40 rows, two of them damaged, says; the instance is jobs.json."""
    monkeypatch.chdir(tmp_path)
    table = ROOT / "tests" / "data" / "jobs-38.csv"
    ran = command("import", "csv", table, "--problem", "gpu-sharing", "--set", *COLUMNS, "--out", "jobs.json")
    assert ran.status == 0
    return ran.err


def test_the_share_of_rows_that_are_lost_is_told(imported: str) -> None:
    assert "left out: 2 of 40 rows, 5%" in imported
    few = Notes(read=3)
    few.row("left out: no GPU", 2)
    assert few.texts == ["1 row left out: no GPU (line 2)"]


def test_slots_are_minutes_too_and_what_is_left_to_gain_is_told(imported: str, command: Command) -> None:
    ran = command("compare", "jobs.json", "--methods", "fifo,sjf", "--json")
    data = json.loads(ran.out)
    fifo, sjf = (row["objective"] for row in data["rows"])
    shown = command("compare", "jobs.json", "--methods", "fifo,sjf").out
    away = [f"{value / data['bound']:.3f} to bound" for value in (sjf, fifo)]
    told = f"closest: sjf, ratio {away[0]}; furthest: fifo, ratio {away[1]}"
    assert shown.splitlines()[1] == told
    assert f"slots ({data['bound'] * 10 / 60:.3g} minutes)" in shown


def test_nothing_found_is_said_so(command: Command, tmp_path: Path) -> None:
    command("generate", "rar-ddls", "--preset", "small", "--seed", 2, "--out", tmp_path / "tight.json")
    shown = command("compare", tmp_path / "tight.json", "--methods", "ff,lpt-colocate").out
    assert "ff found nothing" in [" ".join(line.split()[:3]) for line in shown.splitlines()]


def test_a_space_for_a_comma_and_a_solution_for_an_instance(imported: str, command: Command) -> None:
    ran = command("compare", "jobs.json", "--methods", "fifo", "sjf")
    assert ran.status == 2 and ran.message.endswith("joined by commas: --methods A,sjf")
    assert "commas" not in command("check", "jobs.json", "a.json", "b.json").message  # which has no methods
    command("solve", "jobs.json", "--method", "sjf", "--out", "solved.json")
    Path("result.json").write_text(command("solve", "jobs.json", "--method", "sjf", "--json").out)
    ran = command("solve", "result.json")
    assert ran.status == 2 and "result.json: is a solution, what solve --json prints, not an instance" in ran.message
    ran = command("check", "jobs.json", "jobs.json")
    assert ran.status == 2 and ran.message.endswith("jobs.json: is an instance of gpu-sharing, not a solution")
    ran = command("solve", "jobs.json", "--method", "/dev/stdin:f")
    assert ran.status == 2 and "/dev/stdin is no file of Python (its name ends in .py)" in ran.message


def test_a_name_says_its_settings(command: Command, tmp_path: Path) -> None:
    def named(*settings: str) -> str:
        command("generate", "rar-ddls", "--preset", "small", "--seed", 2, *settings, "--out", tmp_path / "i.json")
        return str(json.loads((tmp_path / "i.json").read_text())["name"])

    assert named() == named("--set", "ample=false") == "small-2"
    assert named("--set", "ample=true", "jobs=5") == "small-2-ample-jobs-5"
    many = named("--set", "ample=true", "jobs=5", "servers=2", "gpus=7")
    assert re.fullmatch(r"small-2-(jobs-5-servers-2-gpus-7)-[0-9a-f]{6}", many)
    assert many == named("--set", "gpus=7", "servers=2", "jobs=5", "ample=true")
    assert many != named("--set", "ample=true", "jobs=5", "servers=2", "gpus=8")


def test_a_chart_of_few_slots_is_slim_so_that_a_phone_shows_its_letters(tmp_path: Path) -> None:
    few = schedgap.generate("rar-ddls", "small", seed=30, servers=3, gpus=3, ample=True)
    many = schedgap.generate("rar-ddls", "paper", seed=1, jobs=20)
    slim, wide = (schedgap.plot(one, schedgap.solve(one, "ff")) for one in (few, many))
    assert (slim.get_figwidth(), wide.get_figwidth()) == (5.0, 10.0)
    assert [text.get_text() for text in slim.findobj(Text)].count("j2") >= 1
    with drawing_on(lambda _, height: canvas(10.0, height)):  # as the report does beside a wide one
        beside = figure_of(find_problem("rar-ddls"))(few, schedgap.solve(few, "ff").solution)
    assert beside.get_figwidth() == 10.0 and 10 * beside.axes[0].get_position().x0 == pytest.approx(0.9)


def test_the_best_schedule_of_a_picture_is_no_multiple_of_itself() -> None:
    """A mean of thirds is no float: "2.33333 = 1 x 2.33333" stood there."""
    given = schedgap.generate("gpu-sharing", "tiny", seed=2, jobs=3, ample=True)
    found = schedgap.solve(given, "fifo")
    assert found.objective is not None and found.objective % 1
    figure = schedgap.plot(given, found, compare=found)
    assert not [text for text in figure.findobj(Text) if "\u00d7" in text.get_text()]

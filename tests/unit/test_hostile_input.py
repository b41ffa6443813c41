"""Names, numbers and files that nobody means: refused with their place, or shown as they are."""

from __future__ import annotations

import errno
import json
import tracemalloc
from pathlib import Path

import pandas as pd
import pytest

from schedgap import plot, solve
from schedgap.benchmarks.figures.style import new_figure, save
from schedgap.benchmarks.importers import import_instance
from schedgap.benchmarks.instances.g_vne.network_files import gml_substrate
from schedgap.benchmarks.report import export
from schedgap.catalogue.registry import find_problem, parse_instance
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import LARGEST_FILE, write_text
from schedgap.formulations.common.instance import read_json
from studies.robustness.samples import FILES, philly_job

DATA = Path(__file__).parents[1] / "data"
PHILLY = philly_job("x", "2017-10-07 01:12:09", "2017-10-07 01:13:23", 2)["attempts"]
TASK = {"id": "a", "release": 0.0, "size": 1.0}
LINK = {"latency": 0.0, "seconds_per_unit": 1.0, "contention_penalty": 0.1}


def comm(task: dict[str, object], **link: float) -> dict[str, object]:
    return {"problem": "comm-contention", "link": {**LINK, **link}, "tasks": [{**TASK, **task}]}


@pytest.mark.parametrize("name", ["", " ", "\u00a0", "a\nb", "a\x00", "a\x1b[2J", "\u2028", "\ud800"])
def test_names_are_not_blank_and_have_no_control_characters(name: str) -> None:
    with pytest.raises(InputError, match=r"tasks\[0\]\.id") as refused:
        parse_instance(comm({"id": name}))
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["a\x00", "a\x1b[2J", "a\nb", "\u2028", "\ud800"])
def test_the_name_of_an_instance_has_no_control_characters(name: str) -> None:
    """One with NUL was solved."""
    with pytest.raises(InputError, match="name: must have no control characters") as refused:
        parse_instance({**comm({}), "name": name})
    assert len(str(refused.value).splitlines()) == 1
    assert parse_instance({**comm({}), "name": ""})[1].name == ""


@pytest.mark.parametrize("name", ["é", "任务", "a b", "=1+1", "$\\frac{$", "a$b_1$"])
def test_other_names_are_taken(name: str) -> None:
    assert parse_instance(comm({"id": name}))[1].tasks[0].id == name  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("where", "data"),
    [
        ("tasks[0].size", comm({"size": 5e-324})),
        ("tasks[0].release", comm({"release": 1e13})),
        ("link.latency", comm({}, latency=1e15)),
        ("link.seconds_per_unit", comm({}, seconds_per_unit=1e-100)),
    ],
)
def test_numbers_have_a_range(where: str, data: dict[str, object]) -> None:
    with pytest.raises(InputError) as refused:
        parse_instance(data)
    assert where in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": "NaN",\n "b": NaN}', "line 2, column 7: NaN is not allowed"),
        ('{"a": [1,\n\n  -Infinity]}', "line 3, column 3: -Infinity is not allowed"),
        ('{"a": "1e999", "b": 1e999}', "line 1, column 21: 1e999 is too large"),
        ('{"a": {"x": 1}, "b": {"x": 2,\n "x": 3}}', 'line 2, column 2: the key "x" is given twice'),
        ('{"a":\n ' + "7" * 5000 + "}", "line 2, column 2: Exceeds the limit"),
    ],
)
def test_what_json_must_not_have_is_named_with_its_place(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        read_json("file.json", text)
    assert str(refused.value).startswith(f"file.json: {said}")


@pytest.mark.parametrize(
    "text", ["graph [ node 5 ]", 'graph [ node "a" ]', "graph [ node [ id 0 ] edge 3 ]", "graph 5"]
)
def test_damaged_gml_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "net.gml"
    path.write_text(text.replace("[ ", "[\n").replace(" ]", "\n]"))
    with pytest.raises(InputError, match=r"net\.gml: (not a GML graph|the graph has no node)"):
        gml_substrate([path])


@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf"])
def test_names_in_figures_are_no_formulas(ending: str, tmp_path: Path) -> None:
    figure = new_figure(2, 2)
    figure.text(0.1, 0.1, "$\\frac{$ a$b_1$")
    save(figure, tmp_path / f"x{ending}")
    if ending == ".svg":
        assert "$\\frac{$ a$b_1$" in (tmp_path / "x.svg").read_text()


def test_a_figure_that_cannot_be_drawn_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "x.svg"
    target.write_text("old")
    figure = new_figure(2, 2)
    monkeypatch.setattr(type(figure), "savefig", lambda *_, **__: (_ for _ in ()).throw(ValueError("half way")))
    with pytest.raises(ValueError, match="half way"):
        save(figure, target)
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


def test_cells_that_a_spreadsheet_would_run_are_text() -> None:
    cells = pd.DataFrame({"a": ["=1+1", "@x", "-x", "+x", "x-1", -1.5, None]}).map(export._as_text)["a"].tolist()
    assert cells[:6] == ["'=1+1", "'@x", "'-x", "'+x", "x-1", -1.5]
    json.dumps(cells[:5])


def test_an_error_is_one_line_whatever_the_values() -> None:
    said = str(InputError("a.json: jobs[0].x\ny\u2028z\x1b[2J\ud800: unknown key"))
    assert said == "a.json: jobs[0].x\\ny\\u2028z\\u001b[2J\\ud800: unknown key"


def rar(**changes: object) -> dict[str, object]:
    return {**json.loads((DATA / "rar-14-mixed.json").read_text()), **changes}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            rar(servers=[{"id": f"s{k}", "gpus": 10**5 * k} for k in range(1, 6)]),
            r"servers\[4\]\.gpus: 500000 GPUs make 1500000 ",
        ),
        (
            rar(servers=[{"id": str(k), "gpus": 1} for k in range(100_001)]),
            "servers: has 100,001 entries, at most 100,000 are",
        ),
        (rar(jobs=[{}] * 100_001), "jobs: has 100,001 entries, at most 100,000 are"),
        ({**comm({}), "tasks": [TASK] * 100_001}, "tasks: has 100,001 entries, at most 100,000 are"),
    ],
)
def test_sizes_have_a_limit(data: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        parse_instance(data)
    assert len(str(refused.value)) < 400


def test_devices_of_all_types_have_a_limit() -> None:
    data = json.loads((DATA / "hadar-c04_mixed_types.json").read_text())
    data["machines"] = [{"id": f"m{k}", "gpus": {"a": 300_000, "b": 300_000}} for k in range(2)]
    with pytest.raises(InputError, match=r"machines\[1\]\.gpus\.b: 300000 GPUs make 1200000 with"):
        parse_instance(data)


def test_a_file_is_not_read_beyond_its_largest_size(tmp_path: Path) -> None:
    path = tmp_path / "endless.json"
    with path.open("wb") as file:
        file.seek(10**12)  # a hole: it takes no space
        file.write(b"}")
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="has more than 67,108,864 bytes"):
            read_json(path)
        assert tracemalloc.get_traced_memory()[1] < 3 * LARGEST_FILE
    finally:
        tracemalloc.stop()


ENDLESS = {"csv": b"id,gpus\n" + 3_000_000 * b"1", "json": b"[{" + 6_000_000 * b" ", "gml": 70_000_000 * b" "}


@pytest.mark.parametrize(
    ("form", "problem", "ending", "said"),
    [
        ("csv", "rar-ddls", "csv", "line 2: has more than 1,048,576 characters"),
        ("gavel", "rar-ddls", "csv", "line 2: has more than 1,048,576 characters|line 1: "),
        ("philly", "rar-ddls", "json", "line 1: not JSON, or the list does not end"),
        ("gml", "g-vne", "gml", "has more than 67,108,864 bytes"),
    ],
)
def test_a_log_without_an_end_is_not_read_on(form: str, problem: str, ending: str, said: str, tmp_path: Path) -> None:
    """Such a line, element or graph was read into memory as a whole."""
    file = tmp_path / f"x.{ending}"
    file.write_bytes(ENDLESS[ending])
    settings = (
        {"jobs": 2} if form == "gml" else {"id": "id", "gpus": "gpus", "duration": "gpus"} if form == "csv" else {}
    )
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=f"x.{ending}: ({said})"):
            import_instance(find_problem(problem), form, [file], settings=settings)
        assert tracemalloc.get_traced_memory()[1] < 3 * LARGEST_FILE
    finally:
        tracemalloc.stop()


def test_a_file_that_cannot_be_replaced_is_written_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a mount of its own in a container, or in a folder that takes no new file."""
    there, name = tmp_path / "x.json", tmp_path / ("n" * 250 + ".json")
    there.write_text("before, and longer")

    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, "busy")

    assert write_text(name, "{}").read_text() == "{}"
    monkeypatch.setattr(Path, "replace", busy)
    assert write_text(there, "{}").read_text() == "{}"
    with pytest.raises(InputError, match="busy"):
        write_text(tmp_path / "new.json", "{}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [name.name, "x.json"]


def test_a_picture_has_a_largest_size() -> None:
    new_figure(10, 400)
    with pytest.raises(InputError, match="the picture would have 45,001 inches"):
        new_figure(10, 45_001.3)


def test_accumulation_over_no_steps_is_not_drawn() -> None:
    data = json.loads((DATA / "gpu-sharing-share_09_accumulate.json").read_text())
    solution = solve(data, time_limit=60).solution
    assert solution is not None
    job = next(iter(solution["accumulation"]))
    solution["accumulation"][job] = 0
    with pytest.raises(InputError, match=f"accumulation.{job}: cannot be drawn"):
        plot(data, solution)


def test_an_attempt_without_gpus_is_left_out(tmp_path: Path) -> None:
    log = json.loads(FILES["philly-log"])
    log[0]["attempts"][0]["detail"] = [{"ip": "m1"}]
    log[1]["attempts"][0]["start_time"] = "2017-10-07 25"
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log + [{**log[1], "jobid": f"j{k}", "attempts": PHILLY} for k in range(5)], indent=1))
    messages = import_instance(find_problem("hadar"), "philly", [path])[1]
    assert any("whose detail is not a list of GPUs" in text for text in messages)
    assert any("cannot be read (line 20)" in text for text in messages), messages

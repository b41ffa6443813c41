"""The experiment on gavel traces: what it counts, and its page on small files of the same form."""

import json
from pathlib import Path

import pytest

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from studies import gavel_rar
from studies.gavel_rar import Meeting, Setting, main, meeting, with_contention


def three_rings() -> RarDdlsInstance:
    job = {"gpus": 3, "gradient_size": 0.1, "batch_size": 1, "forward_time": 0.0, "backward_time": 0.1}
    network = {"inter_bandwidth": 1.0, "intra_bandwidth": 50.0, "contention_scale": 1.0, "contention_penalty": 0.0}
    return RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "horizon": 50,
            "network": {**network, "server_overhead": 0.0},
            "reduce_speed": 1000.0,
            "servers": [{"id": "s0", "gpus": 2}, {"id": "s1", "gpus": 2}, {"id": "s2", "gpus": 5}],
            "jobs": [{"id": name, "iterations": 8, **job} for name in "abc"],
        }
    )


def test_crossings_and_meetings_are_counted() -> None:
    placement = {"a": {"s0": 2, "s1": 1}, "b": {"s1": 1, "s2": 2}, "c": {"s2": 3}}
    together = {"start": {"a": 1, "b": 2, "c": 1}, "placement": placement}
    found = meeting(three_rings(), together)
    assert (found.crossing, found.rings, found.slowed, found.most) == (2, 3, 2, 2)
    # a is alone in slot 1; both cross s1 from slot 2 until a completes.
    assert found.slots >= 1
    apart = {"start": {"a": 1, "b": 30, "c": 1}, "placement": placement}
    assert meeting(three_rings(), apart) == Meeting(crossing=2, rings=3, slowed=0, most=1, slots=0)


def test_another_law_of_sharing() -> None:
    changed = with_contention(three_rings(), 0.5, 3.0)
    assert (changed.network.contention_scale, changed.network.contention_penalty) == (0.5, 3.0)
    assert changed.jobs == three_rings().jobs


def write_files(folder: Path) -> None:
    """Traces and rates under the names of the real ones, with jobs that take a slot or two."""
    rates = {
        "LM (batch size 5)": [(100, 100), (180, 40), (120, 45)],
        "ResNet-50 (batch size 64)": [(4, 4), (8, 6), (9, 11)],
    }
    cells: dict[str, dict[str, dict[str, float]]] = {"v100": {}, "v100_unconsolidated": {}}
    for job_type, pairs in rates.items():
        for scale, (together, spread) in zip((1, 2, 4), pairs, strict=True):
            cells["v100"][f"('{job_type}', {scale})"] = {"null": together}
            cells["v100_unconsolidated"][f"('{job_type}', {scale})"] = {"null": spread}
    (folder / "simulation_throughputs.json").write_text(json.dumps(cells))
    lines = []
    for k in range(12):
        job_type = "LM (batch size 5)" if k % 2 else "ResNet-50 (batch size 64)"
        steps, scale = (3000, (1, 2, 4)[k % 3]) if k % 2 else (100, (1, 2, 4)[k % 3])
        lines.append("\t".join(map(str, [job_type, "python3 x.py", "x", "-step", 1, steps, scale, 1, "-1.0", 0])))
    for name in ("small_test.trace", "minimize_makespan.trace"):
        (folder / name).write_text("\n".join(lines) + "\n")


def test_the_page_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path)
    cluster = {"servers": 3, "gpus": 2, "slot_length": 20.0}
    monkeypatch.setattr(gavel_rar, "PROVEN", (Setting("small_test.trace", {"jobs": 5, **cluster}),))
    monkeypatch.setattr(gavel_rar, "MEETING", (Setting("small_test.trace", {"jobs": 4, **cluster}),))
    monkeypatch.setattr(gavel_rar, "WHOLE", (Setting("minimize_makespan.trace", cluster),))
    out = tmp_path / "page.md"
    assert main([str(tmp_path), "--out", str(out), "--limit", "60"]) == 0
    text = out.read_text()
    commands, proven, whole = text.split("## ")[1:]
    assert commands.count("schedgap import gavel") == 3 and "jobs=4 servers=3 gpus=2" in commands
    for method in ("sjf-bco", "ff", "ls", "rand", "lpt-colocate"):
        assert f" | `{method}` |" in proven and f" | `{method}` |" in whole
    rows = [line.split(" | ") for line in proven.splitlines() if line.startswith(("| 1", "| 2"))]
    assert [row[1].isdigit() for row in rows] == [True, True], "both optima are proven"
    assert all(float(row[1]) >= float(row[2]) for row in rows), "contention costs something or nothing"
    assert "(at most " in " | ".join(rows[0][5:]) and "| 3 | " in whole


def test_missing_files_are_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"gavel_rar: error: {tmp_path}")

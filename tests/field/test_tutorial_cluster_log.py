"""The tutorial on the real Slurm log: its cells run, and its conclusion is what they compute."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"


def test_the_conclusion_is_what_the_cells_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TUTORIALS)
    cells = json.loads((TUTORIALS / "cluster-log.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    told = io.StringIO()
    with redirect_stdout(told):
        for cell in cells:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
    words = " ".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert "let a job take 67 s on average, of which it ran 10." in words
    recorded, best, bound = names["recorded"], names["best"], names["bound"]
    assert (round(recorded), round(names["found"].work)) == (67, 10)
    assert "Three quarters of that are avoidable" in words and 0.74 < 1 - best / recorded < 0.78
    assert "cannot avoid more than five sixths" in words and 1 - bound / recorded < 5 / 6 + 0.005
    fifo, sjf = ({side.what: names["jct"](side, name) for side in names["found"].sides} for name in ("fifo", "sjf"))
    fewer, more = "what if: -8 GPUs", "what if: +8 GPUs"
    assert sjf["as listed"] < fifo[more] < sjf[fewer] < 1.1 * fifo[more]  # "and on 24 it nearly does"
    assert "avoidable: at least 75%, at most 8" in told.getvalue()
    gains = {side.slowdown: (round(least, 2), round(most, 2)) for side, _, least, most in names["shared"].gains()}
    assert {value: least for value, (least, _) in gains.items()} == {None: 0.75, 1: 0.84, 1.2: 0.81, 1.5: 0.77}
    assert "SJF-BSBF would avoid 84% of the recorded time instead of 75%, and at 1.5 still 77%" in words
    assert Path("audit/audit.html").is_file()  # in the folder that the tutorial went to
    exact = names["table"]
    assert exact[exact.method == "cp"].status.eq("optimal").all()

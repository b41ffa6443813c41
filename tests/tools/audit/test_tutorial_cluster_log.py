"""The tutorial on the real Slurm log: its cells run, and its conclusion is what they compute."""

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from schedgap.tools.audit.answer import outward

TUTORIALS = Path(__file__).parents[3] / "docs" / "tutorials"


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
    assert "a job took 67 s on average; it ran for 10 s of these." in words
    recorded, best, bound = names["recorded"], names["best"], names["bound"]
    assert (round(recorded), round(names["found"].work)) == (67, 10)
    told_shares = re.search(r"At least (\d+)% and at\s+most (\d+)% of the 67 s was avoidable", words)
    assert told_shares and outward(1 - best / recorded, 1 - bound / recorded) == tuple(
        f"{p}%" for p in told_shares.groups()
    )
    fifo, sjf = ({side.what: names["jct"](side, name) for side in names["found"].sides} for name in ("fifo", "sjf"))
    fewer, more = "what if: -8 a100", "what if: +8 v100"
    assert sjf["as listed"] < sjf[fewer] < fifo[more]  # "with the 32 there are, and with 24"
    assert "avoidable: at least 73%, at most 81%" in told.getvalue()
    bests = {side.slowdown: round(best.objective, 1) for side, best, _, _ in names["shared"].gains()}
    assert bests == {None: 16.7, 1: 10.5, 1.2: 12.4, 1.5: 15.4}
    assert (
        "16.7 s a job. SJF-BSBF, which shares, takes 10.5 s where sharing is free, 12.4 s at 1.2 and 15.4 s at 1.5"
        in words
    )
    assert Path("audit/audit.html").is_file()  # in the folder that the tutorial went to
    exact = names["table"]
    assert exact[exact.method == "cp"].status.eq("optimal").all()

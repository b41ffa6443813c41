"""model and its alias export; what solve shows of P2 and its dual."""

from __future__ import annotations

import json
from pathlib import Path

from oracles.schedules import CASES
from support.command import Command


def test_prices_and_payoffs_are_shown_by_solve(command: Command, tmp_path: Path) -> None:
    instance = CASES["hadar"].make(1)[0]
    (tmp_path / "i.json").write_text(instance.to_json())
    ran = command("solve", tmp_path / "i.json", "--method", "p2", "--json")
    duality = json.loads(ran.out)["duality"]
    assert (
        ran.status == 0
        and duality["strong duality"]
        and set(duality["payoffs"])
        == {
            job.id
            for job in instance.jobs  # type: ignore[attr-defined]
        }
    )
    text = command("solve", tmp_path / "i.json", "--method", "p2").out
    assert "strong duality holds, complementary slackness holds" in text and "payoff" in text


def test_model_prints_and_writes(command: Command, tmp_path: Path) -> None:
    instance = CASES["rar-ddls"].make(1)[0]
    (tmp_path / "i.json").write_text(instance.to_json())
    ran = command("model", tmp_path / "i.json")
    assert ran.status == 0 and "eq2_capacity" in ran.out and "start[job, slot]" in ran.out
    assert command("model", tmp_path / "i.json", "--tighten", "--out", tmp_path / "m.lp").out == ""
    assert (tmp_path / "m.lp").read_text().startswith("Minimize")
    assert command("export", tmp_path / "i.json", "--format", "mps", "--out", tmp_path / "m.any").status == 0
    for arguments, message in (
        (["--out", tmp_path / "m.txt"], "must end in .lp or .mps"),
        (["--form", "x"], "form: unknown form 'x' for rar-ddls, one of: time-indexed, schedule-set, theta"),
    ):
        refused = command("model", tmp_path / "i.json", *arguments)
        assert refused.status == 2 and message in refused.err

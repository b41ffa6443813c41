"""``evaluate --set``: settings of the drawn families; and intervals by instance beside the means of a card."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import foreign
from support.command import Command

from schedgap.benchmarks.instances import make_instance, workload_of
from schedgap.benchmarks.intervals import interval
from schedgap.catalogue.agreement import Agreement
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.tools.evaluation.card import Card, Trial
from schedgap.tools.evaluation.drawn import (
    PUBLIC,
    drawn_instances,
    held_out_families,
    parsed_settings,
    set_families,
)

PROBLEM = find_problem("rar-ddls")
SHARING = find_problem("gpu-sharing")
INSTANCE = make_instance(PROBLEM, "tiny", 0, {"ample": True})
FILE = Path(foreign.__file__)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (("--set", "ampel=true"), "--set: no preset of rar-ddls has the setting 'ampel'"),
        (("--set", "ample=perhaps"), "--set: option ample: must be bool, got 'perhaps'"),
        (("--set", "singles=1", "worker=v100"), "--set: no preset of rar-ddls has all of singles, worker"),
        (("--set", "ample=true", "--on", "x.json"), "--set: not with --on, whose instances are given"),
        (("--set", "ample=true", "--frozen"), "--set: not with --frozen, whose instances are stored"),
    ],
)
def test_what_no_family_takes_is_one_line(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = command("evaluate", f"{FILE}:good", "--problem", "rar-ddls", *line)
    assert ran.status == 2 and ran.out == "" and not list(tmp_path.iterdir())
    assert len(ran.err.splitlines()) == 1 and words in ran.err, ran.err


def test_families_are_the_presets_with_the_setting_without_their_first_seeds() -> None:
    said: list[str] = []
    settings = parsed_settings(PROBLEM, {"ample": "true"})
    assert settings == {"ample": True}
    families = set_families(PROBLEM, settings, said.append)
    assert list(families) == ["tiny", "contended", "small"]
    assert said == ["evaluate: not judged, since they have no such setting: paper, large"]
    public = {
        make_instance(PROBLEM, name, seed, {"ample": True}).content_hash()
        for name in families
        for seed in range(PUBLIC)
    }
    chosen, fixed = drawn_instances(PROBLEM, 0, 2, families, secret=False)
    assert len(chosen) == 6 and not fixed and not public & {instance.content_hash() for *_, instance in chosen}
    for _, seed, instance in chosen[2:]:
        assert seed >= PUBLIC and set(instance.name.split("-")) >= {"ample"}
    again, _ = drawn_instances(PROBLEM, 0, 2, set_families(PROBLEM, settings, said.append), secret=False)
    assert [one[2].content_hash() for one in chosen] == [one[2].content_hash() for one in again]


def test_a_preset_that_refuses_a_value_is_left_out_and_said() -> None:
    said: list[str] = []
    with pytest.raises(InputError, match=r"^--set: no preset of rar-ddls is judged with jobs=2000: instances of more"):
        set_families(PROBLEM, parsed_settings(PROBLEM, {"jobs": "2000"}), said.append)
    assert any(line.startswith("evaluate: not judged: preset tiny: option jobs: ") for line in said)


def test_held_out_families_keep_what_is_set() -> None:
    said: list[str] = []
    families = held_out_families(SHARING, 3, said.append, {"ample": True})
    assert set(families) <= {"held-out-tiny", "held-out-small"} and families
    assert all("ample=True" in line for line in said)


def test_a_card_tells_its_settings_and_the_line_that_repeats_it(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    few = replace(workload_of(PROBLEM), presets=workload_of(PROBLEM).presets[:1])
    monkeypatch.setattr("schedgap.tools.evaluation.drawn.workload_of", lambda problem: few)
    monkeypatch.setattr(PROBLEM, "methods", tuple(m for m in PROBLEM.methods if m.id in ("cp", "ls")))
    line = ["evaluate", f"{FILE}:good", "--problem", "rar-ddls", "--budget", "0.1", "--workers", "1"]
    line += ["--time-limit", "600"]
    first = command(*line, "--instances", "2", "--set", "ample=true", "jobs=3", "--out", "a", "--json")
    card = json.loads(first.out)
    assert card["settings"] == {"ample": True, "jobs": 3} and list(card["families"]) == ["tiny"]
    (options,) = re.findall(r"drawn anew; (.*) repeats these instances", first.err)
    assert options == f"--instances 2 --set ample=true jobs=3 --seed {card['seed']}"
    again = command(*line, *options.split(), "--out", "b")
    assert "families are drawn with ample=true jobs=3\n" in again.out, again.err
    repeated = json.loads(Path("b/card.json").read_text())
    assert [one["instance"] for one in repeated["trials"]] == [one["instance"] for one in card["trials"]]


def test_means_stand_with_intervals_by_instance() -> None:
    known = Agreement(10.0, 10.0, False, ())
    values = (10.0, 12.0, 15.0)
    trials = [Trial("tiny", k, INSTANCE, v, "", "", 0.5, known, {"ls": 12.0}) for k, v in enumerate(values)]
    card = Card("mine.py:f", PROBLEM, 0, trials)
    data = json.loads(json.dumps(card.to_dict(), allow_nan=False))
    ratios = interval(np.array([1.0, 1.2, 1.5]))
    score = interval(np.array([1.0, 1 / 1.2, 1 / 1.5]))
    assert ratios is not None and score is not None and score.half is not None
    # by hand: t(2, 0.975) = 4.3027, s = 0.25166
    assert ratios.half == pytest.approx(4.3027 * 0.25166 / 3**0.5, rel=1e-4)
    assert data["ratio"]["optimum"]["half"] == pytest.approx(ratios.half)
    assert data["score_half"] == pytest.approx(score.half)
    (row,) = data["against"]
    paired = interval(np.array([-0.2, 0.0, 0.3]))
    assert paired is not None and row["difference_half"] == pytest.approx(paired.half)
    text = card.to_text()
    assert "1.23 ± 0.63" in text and "0.03 ± 0.63" in text and f"score {card.score:.4f} ± {score.half:.4f}" in text


def test_one_instance_or_an_infinite_ratio_has_no_interval() -> None:
    known = Agreement(10.0, 10.0, False, ())
    card = Card("mine.py:f", PROBLEM, 0, [Trial("tiny", 0, INSTANCE, 12.0, "", "", 0.5, known, {"ls": 12.0})])
    data = card.to_dict()
    assert data["ratio"]["optimum"]["half"] is data["score_half"] is data["against"][0]["difference_half"] is None
    assert "0.8333 (1 is optimal" in card.to_text()
    concave = find_problem("g-vne")
    four = Agreement(4.0, 4.0, False, ())
    both = [Trial("tiny", k, INSTANCE, 2.0 * k, "", "", 0.5, four, {}) for k in range(3)]
    told = Card("mine.py:f", concave, 0, both)
    assert told.to_dict()["ratio"]["optimum"]["half"] is None and " inf " in told.to_text()

"""2,000 damaged files, options and stores: refused in one line or worked on. Many more: the study of the same name."""

from __future__ import annotations

import pytest

from studies.robustness.mutations import KINDS, cases, try_case

CASES = {**dict.fromkeys(KINDS, 60), "instance": 800, "text": 500, "solution": 400, "method": 15, "figure": 5}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_damaged_input_is_refused_or_worked_on(kind: str) -> None:
    tried = [try_case(case, timed=False) for case in cases(CASES[kind], kinds=(kind,))]
    assert sum(CASES.values()) >= 2000 and len(tried) == CASES[kind]
    wrong = [outcome for outcome in tried if outcome.wrong and outcome.verdict != "hang"]  # no test asks the clock
    assert not wrong, "\n".join(f"{one.kind} {one.seed}: {one.verdict}: {one.detail}" for one in wrong)
    assert any(outcome.verdict == "refused" for outcome in tried)
    assert kind in ("figure", "certificate") or any(outcome.verdict == "accepted" for outcome in tried)

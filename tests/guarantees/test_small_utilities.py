"""A claim about ratios says the same whatever the unit of utility: also where both its sides are far below 1."""

import copy

import pytest

from schedgap.benchmarks.judging.judge import evaluate
from schedgap.benchmarks.judging.ledger_verdicts import all_verdicts
from schedgap.benchmarks.ledger.verify import Trials
from schedgap.catalogue.registry import find_method, parse_instance
from schedgap.heuristics.common.guarantee import Verdict

UNIT = 2.0**-40
SHIPPED = {
    name: row.counterexample
    for name, row in all_verdicts().items()
    if row.counterexample is not None and row.counterexample["problem"] in ("g-vne", "ddljs", "hadar")
}
PROGRAMS = {
    *("004-lemma-7-embeddable", "004-theorem-8", "004-theorem-8-tries", "004-theorem-10-one-slot-kept"),
    *("004-theorem-10-kept", "004-theorem-10-one-rounding", "004-lemma-5-sigmoid", "004-theorem-6-sigmoid"),
}
"""Their algorithm rests on a linear program, which is not solved to its optimum where utilities are that small; or they
are about utilities in the paper's printed ranges."""


@pytest.mark.parametrize("name", SHIPPED)
def test_a_counterexample_in_another_unit_is_still_one(name: str) -> None:
    data = copy.deepcopy(dict(SHIPPED[name]))
    for job in data["jobs"]:
        worth = job["utility"]
        if isinstance(worth, list):
            job["utility"] = [value * UNIT for value in worth]
        else:
            worth["scale" if "scale" in worth else "weight"] *= UNIT
    problem, instance = parse_instance(data)
    claim = next(one for one in problem.guarantees() if one.id == name)
    told = data["reference_counterexample"]
    trials = Trials(problem, None if claim.method is None else find_method(problem, claim.method))
    found = evaluate(claim, trials.run(instance, told["options"], "", told["seed"]).case).evaluation
    assert found.verdict is Verdict.REFUTED or (found.verdict is Verdict.NOT_APPLICABLE and name in PROGRAMS)

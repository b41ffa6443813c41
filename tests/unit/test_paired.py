"""Paired comparisons: Wilcoxon's test and Holm's correction by their definitions, intervals, LaTeX and Markdown."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from statistics import fmean, stdev

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from schedgap.benchmarks.report.aggregate import Block
from schedgap.benchmarks.report.paired import comparisons, holm, latex, markdown, paired_sheets, pairs, signed_rank
from schedgap.benchmarks.report.sheet import Column, Sheet


def exact_p(differences: list[float]) -> float:
    """The two-sided test by all signs of the ranks (no ties, no zeros)."""
    order = sorted(differences, key=abs)
    ranks = range(1, len(order) + 1)
    seen = sum(rank for rank, value in zip(ranks, order, strict=True) if value > 0)
    total = len(order) * (len(order) + 1) / 2
    extreme = abs(seen - total / 2)
    signs = list(itertools.product((0, 1), repeat=len(order)))
    hits = sum(abs(sum(r for r, s in zip(ranks, sign, strict=True) if s) - total / 2) >= extreme for sign in signs)
    return hits / len(signs)


def test_the_signed_rank_test_is_the_one_of_all_signs() -> None:
    first = np.array([1.1, 1.5, 1.03, 2.0, 1.71, 1.2, 1.33])
    second = np.array([1.0, 1.1, 1.10, 1.2, 1.0, 1.25, 1.0])
    assert signed_rank(first, second) == pytest.approx(exact_p(list(first - second)))
    assert signed_rank(first[:5], second[:5]) is None
    assert signed_rank(first, first * (1 + 1e-12)) == 1.0


def test_the_signed_rank_test_is_scipys() -> None:
    """With differences that are alike or nothing, and with more instances than those whose signs are counted."""
    draws = np.random.default_rng(1)
    for size in [*range(6, 15), 20, 50, 51]:
        for values in (3, 10**6):
            first, second = (1 + draws.integers(0, values, size) / 4 for _ in range(2))
            expected = scipy.stats.wilcoxon(first - second).pvalue
            assert signed_rank(first, second) == pytest.approx(expected, rel=1e-12), (size, values)


def test_holms_correction_steps_down() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_a_difference_has_an_interval_by_instance_and_counts() -> None:
    ratios = pd.DataFrame({"a": [1.0, 1.2, 1.1, 1.0, 1.3, 1.0, 1.4], "b": [1.5, 1.2, 1.4, 1.1, 1.2, 1.6, 1.9]})
    pair = pairs(ratios)[0, 1]
    difference = [a - b for a, b in zip(ratios.a, ratios.b, strict=True)]
    half = 2.446912 * stdev(difference) / math.sqrt(7)  # Student's t, 6 degrees of freedom
    assert pair.difference == pytest.approx(fmean(difference))
    assert pair.low == pytest.approx(fmean(difference) - half, rel=1e-5)
    assert (pair.better, pair.equal, pair.worse) == (5, 1, 1)


def test_instances_of_one_group_with_other_heuristics_are_a_comparison_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was cut has instances on which only some heuristics ran, in the same group and to the same value."""
    whole = pd.DataFrame([[1.0, 1.5, 1.2], [1.1, 1.3, 1.0]])
    cut = pd.DataFrame([[1.6, 1.1], [1.4, 1.0]])
    both = [
        Block("optimum", ("tiny",), ratios, ratios, labels, Counter())
        for ratios, labels in ((whole, ("a", "b", "c")), (cut, ("a", "b")))
    ]
    monkeypatch.setattr("schedgap.benchmarks.report.paired.blocks", lambda runs: both)
    runs = pd.DataFrame({"problem": ["toy"]})
    assert list(comparisons(runs).comparison) == [1, 1, 1, 2, 2]
    sheets = paired_sheets(runs)
    assert ["a" in sheets[0].title.split(":")[0].split(), "b" in sheets[1].title.split(":")[0].split()] == [True, True]
    assert [len(sheet.rows) for sheet in sheets] == [3, 2]


def test_tables_for_papers_escape_what_their_form_reserves() -> None:
    sheet = Sheet("100% of A_B", (Column("who", right=False), Column("mean", "x & y")), [["a|b", "1 \u00b1 0.5"]])
    assert r"100\% of A\_B" in latex(sheet)
    assert r"a|b & 1 $\pm$ 0.5 \\" in latex(sheet)
    assert "| a\\|b | 1 \u00b1 0.5 |" in markdown(sheet)
    assert "mean: x & y" in markdown(sheet)

"""Heuristics compared in pairs on the same instances: intervals of mean differences, tests corrected for their number.

Wilcoxon's signed-rank test (1945), two-sided, on the ratios of the instances that every heuristic beside it solved;
Holm's correction (1979) over all pairs of the comparison, so that it holds whichever pair is looked at afterwards.
Intervals are Student's, of the mean and of the mean paired difference, by instance.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from schedgap.benchmarks.intervals import interval
from schedgap.benchmarks.report.aggregate import Block, blocks
from schedgap.benchmarks.report.sheet import Column, Sheet
from schedgap.benchmarks.text import markdown_row, significant

FEWEST = 6
"""Instances below which no signed-rank test can come below 0.05, and none is made."""
_FEW, _FEW_ALIKE = 50, 13
"""Instances up to which all signs are counted: where all differences differ, and where some are alike or nothing."""
TIE = 1e-9
"""Relative difference of two ratios up to which they are equal."""
COMPARISON_COLUMNS = (
    "problem", "comparison", "ratio_to", "groups", "heuristic", "instances", "solved", "mean", "mean_low", "mean_high",
    "best", "difference", "difference_low", "difference_high", "better", "equal", "worse", "p", "p_holm",
)  # fmt: skip
"""Columns of ``comparisons.csv``: `comparison` is a number within the problem (after a run that was cut, instances of
one group are compared apart, by the heuristics that they have), `best` has the smallest mean, `difference` is to it;
low and high end intervals."""


@dataclass(frozen=True)
class Pair:
    """Two heuristics on the same instances.

    Attributes
    ----------
    better, equal, worse : instances on which the first has the smaller ratio, the same, the larger
    p, p_holm : the test's value, and the one corrected for all pairs; None where there are too few instances
    """

    difference: float
    low: float | None
    high: float | None
    better: int
    equal: int
    worse: int
    p: float | None
    p_holm: float | None


def holm(values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given: p_(i) (m - i + 1), made monotone, at most 1."""
    adjusted = [0.0] * len(values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, values[place] * (len(values) - rank)))
        adjusted[place] = highest
    return adjusted


def signed_rank(first: np.ndarray, second: np.ndarray) -> float | None:
    """The p-value of Wilcoxon's two-sided test; 1 where all differences are ties, None below six instances.

    It counts all signs of the ranks where scipy does (or tries them one by one), else it is scipy's approximation.
    """
    if len(first) < FEWEST:
        return None
    differences = np.where(_are_ties(first, second), 0.0, first - second)
    if not differences.any():
        return 1.0
    _, place, equal = np.unique(abs(differences[differences != 0]), return_inverse=True, return_counts=True)
    if len(first) > (_FEW_ALIKE if len(equal) < len(first) else _FEW):
        from scipy.stats import wilcoxon  # takes a moment to import

        return float(wilcoxon(differences, zero_method="wilcox", method="asymptotic").pvalue)
    twice = (2 * np.cumsum(equal) - equal + 1)[place]  # the mean rank of those that are alike, doubled
    ways = np.zeros(twice.sum() + 1)  # sets of instances by their sum of these
    ways[0] = 1.0
    for rank in twice:
        ways[rank:] += ways[: len(ways) - rank].copy()
    seen = twice[differences[differences != 0] > 0].sum()
    return min(1.0, 2 * float(min(ways[: seen + 1].sum(), ways[seen:].sum())) / 2.0 ** len(twice))


def _are_ties(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    ties: np.ndarray = np.isclose(first, second, rtol=TIE, atol=0.0)
    return ties


def pairs(ratios: pd.DataFrame) -> dict[tuple[int, int], Pair]:
    """All pairs of columns, i < j, of instances (rows) on which each has a finite ratio."""
    columns = [ratios.iloc[:, place].to_numpy(dtype=np.float64) for place in range(ratios.shape[1])]
    couples = list(itertools.combinations(range(len(columns)), 2))
    tests = [signed_rank(columns[i], columns[j]) for i, j in couples]
    corrected = holm([p for p in tests if p is not None])
    compared = {}
    for place, (i, j) in enumerate(couples):
        difference = columns[i] - columns[j]
        ties = _are_ties(columns[i], columns[j])
        spread = interval(difference)
        half = None if spread is None or spread.half is None else spread.half
        mean = float(difference.mean())
        compared[i, j] = Pair(
            mean,
            None if half is None else mean - half,
            None if half is None else mean + half,
            int(((difference < 0) & ~ties).sum()),
            int(ties.sum()),
            int(((difference > 0) & ~ties).sum()),
            tests[place],
            corrected[place] if corrected else None,
        )
    return compared


def comparisons(runs: pd.DataFrame) -> pd.DataFrame:
    """A row a heuristic of every comparison: its mean, the interval, and what parts it from the best mean."""
    rows = [
        {"problem": str(runs.problem.iloc[0]), "comparison": place, **row}
        for place, block in enumerate(blocks(runs), start=1)
        for row in _rows(block)
    ]
    return pd.DataFrame(rows, columns=list(COMPARISON_COLUMNS))


def _rows(block: Block) -> list[dict[str, object]]:
    common = block.common
    if common.empty:
        return []
    means = common.mean()
    names = dict(zip(block.ratios.columns, block.labels, strict=True))
    at = int(means.to_numpy().argmin())
    best = names[common.columns[at]]
    compared = pairs(common)
    rows: list[dict[str, object]] = []
    for place, column in enumerate(common.columns):
        spread = interval(common[column].to_numpy(dtype=np.float64))
        assert spread is not None
        half = spread.half
        row: dict[str, object] = {
            "ratio_to": block.to or "nothing",
            "groups": f"{len(block.batches)} files" if block.files else " ".join(block.batches),
            "heuristic": names[column],
            "instances": len(common),
            "solved": int(block.ratios[column].notna().sum()),
            "mean": spread.mean,
            "mean_low": None if half is None else spread.low,
            "mean_high": None if half is None else spread.high,
            "best": best,
        }
        if place != at:
            pair = compared[min(place, at), max(place, at)]
            turned = place > at  # pairs are kept as (first, second); the difference here is to the best
            sign = -1.0 if turned else 1.0
            ends = sorted(sign * end for end in (pair.low, pair.high) if end is not None)
            row |= {
                "difference": sign * pair.difference,
                "difference_low": ends[0] if ends else None,
                "difference_high": ends[1] if ends else None,
                "better": pair.worse if turned else pair.better,
                "equal": pair.equal,
                "worse": pair.better if turned else pair.worse,
                "p": pair.p,
                "p_holm": pair.p_holm,
            }
        rows.append(row)
    return rows


def paired_sheets(runs: pd.DataFrame) -> list[Sheet]:
    """A table a comparison of two heuristics or more: paired differences to the best mean, and the corrected test."""
    sheets = []
    for _, part in comparisons(runs).groupby("comparison", sort=False):
        if len(part) < 2 or part.instances.iloc[0] < 2:
            continue
        to, groups = str(part.ratio_to.iloc[0]), str(part.groups.iloc[0])
        count, best = int(part.instances.iloc[0]), str(part.best.iloc[0])
        rows = []
        for row in part.sort_values("mean", kind="stable").to_dict("records"):
            mean = significant(row["mean"]) + f" [{significant(row['mean_low'])}, {significant(row['mean_high'])}]"
            cells = ["", "", ""]
            if row["heuristic"] != best:
                low, high = (significant(row[f"difference_{end}"]) for end in ("low", "high"))
                p = row["p_holm"]
                cells = [
                    f"{significant(row['difference'])} [{low}, {high}]",
                    f"{int(row['better'])}, {int(row['equal'])}, {int(row['worse'])}",
                    "-" if p is None or pd.isna(p) else "< 0.001" if p < 1e-3 else f"{p:.3f}",
                ]
            rows.append([row["heuristic"], mean, *cells])
        columns = (
            Column("heuristic", right=False),
            Column(
                "mean [95%]", "mean ratio with its 95% interval (Student's t, by instance)", plain="mean ratio [95%]"
            ),
            Column("more [95%]", f"mean of its ratio less that of {best}, instance by instance, with its 95% interval"),
            Column("better, equal, worse", f"on how many instances than {best}"),
            Column(
                "p",
                "Wilcoxon's signed-rank test, two-sided, corrected by Holm for all pairs of this table: how likely"
                f" such differences are where neither is better; -: fewer than {FEWEST} instances",
                plain="p, corrected",
            ),
        )
        of = "" if to == "nothing" else f"ratio to {to}, "
        title = f"In pairs with {best}: {of}{count} instance{'s' * (count > 1)} that all solved ({groups})"
        sheets.append(Sheet(title, columns, rows))
    return sheets


def latex(sheet: Sheet) -> str:
    """The sheet as a LaTeX table (packages booktabs and caption): title as caption, meanings below."""
    titles, cells, right, _ = sheet.page()
    escaped = [[_latex(cell) for cell in row] for row in (titles, *cells)]
    lines = [" & ".join(row) + r" \\" for row in escaped]
    body = [r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
    notes = " ".join(filter(None, (sheet.legend(page=True), *sheet.notes)))
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_latex(sheet.title)}}}",
            rf"\begin{{tabular}}{{{right}}}",
            *body,
            r"\end{tabular}",
            rf"\par\footnotesize {_latex(notes)}",
            r"\end{table}",
            "",
        ]
    )


def markdown(sheet: Sheet) -> str:
    """The sheet as a Markdown table, with its title above and the meanings below."""
    titles, cells, right, _ = sheet.page()
    marks = ["---:" if side == "r" else "---" for side in right]
    table = [markdown_row(map(str, row)) for row in (titles, marks, *cells)]
    notes = " ".join(filter(None, (sheet.legend(page=True), *sheet.notes)))
    return "\n".join([f"**{sheet.title}**", "", *table, "", notes, ""])


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$",
}  # fmt: skip


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in str(text).replace("\n", " "))

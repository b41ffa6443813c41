"""Table V and Figure 6 of paper 001: schedulings of the all-reduces, with LWF-1."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import ABSOLUTE, Claim
from schedgap.benchmarks.laboratory.paper_001.common import LATE, MEAN, UTILISATION, policy, table
from schedgap.benchmarks.laboratory.rules import Agrees, Less, More, Value

_SERIES = (
    policy("SRSF(1)", "srsf-1", "lwf"),
    policy("SRSF(2)", "srsf-2", "lwf"),
    policy("SRSF(3)", "srsf-3", "lwf"),
    policy("Ada-SRSF", "ada-srsf", "lwf"),
)


def _jct(name: str) -> Value:
    return Value(MEAN.name, name)


ITEM = table(
    "Table V",
    title="Table V and Figure 6: schedulings",
    plots="The same four measures for SRSF(1), SRSF(2), SRSF(3) and Ada-SRSF, all with LWF-1 (section V-B).",
    series=_SERIES,
    claims=(
        Claim(
            "Avoiding contention beats accepting it blindly: SRSF(1) has a smaller mean JCT than SRSF(2) and SRSF(3).",
            "section V-B, Figure 6",
            (
                Less(_jct("SRSF(1)"), _jct("SRSF(2)"), printed=0.793),
                Less(_jct("SRSF(1)"), _jct("SRSF(3)"), printed=0.785),
            ),
        ),
        Claim(
            "Ada-SRSF has a smaller mean JCT than SRSF(1).",
            "section V-B, Table V",
            (Less(_jct("Ada-SRSF"), _jct("SRSF(1)"), printed=0.799),),
            printed="20.1% saved",
        ),
        Claim(
            "Ada-SRSF has a smaller mean JCT than SRSF(2) and SRSF(3).",
            "abstract, Table V",
            (
                Less(_jct("Ada-SRSF"), _jct("SRSF(2)"), printed=0.633),
                Less(_jct("Ada-SRSF"), _jct("SRSF(3)"), printed=0.627),
            ),
            printed="36.7% saved against SRSF(2)",
        ),
        Claim(
            "Ada-SRSF's GPU utilisation is 39.6% above SRSF(1)'s.",
            "section V-B, Table V",
            (
                More(Value(UTILISATION.name, "Ada-SRSF"), Value(UTILISATION.name, "SRSF(1)"), "it is above"),
                Agrees(
                    Value(UTILISATION.name, "Ada-SRSF"), Value(UTILISATION.name, "SRSF(1)"), 1.396, "the ratio is 1.396"
                ),
            ),
            printed="39.6%",
        ),
        Claim(
            "Ada-SRSF's 95th percentile of the JCT is smaller than SRSF(1)'s by a factor of 1.56.",
            "section V-B, Table V",
            (
                Less(Value(LATE.name, "Ada-SRSF"), Value(LATE.name, "SRSF(1)"), "it is smaller"),
                Agrees(Value(LATE.name, "SRSF(1)"), Value(LATE.name, "Ada-SRSF"), 1.56, "the factor is 1.56"),
            ),
            printed="1.56x",
        ),
        Claim(
            "Even Ada-SRSF uses less than half of the GPUs' time.",
            "section V-B",
            printed="less than 50%",
            cannot=ABSOLUTE,
        ),
    ),
)

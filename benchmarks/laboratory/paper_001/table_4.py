"""Table IV and Figure 4 of paper 001: placements under Ada-SRSF."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import ABSOLUTE, Claim
from schedgap.benchmarks.laboratory.paper_001.common import MEAN, UTILISATION, policy, table
from schedgap.benchmarks.laboratory.rules import Agrees, Less, More, Value

_SERIES = (
    policy("RAND", "ada-srsf", "rand"),
    policy("FF", "ada-srsf", "ff"),
    policy("LS", "ada-srsf", "ls"),
    policy("LWF-1", "ada-srsf", "lwf"),
)
_JCT = {name: Value(MEAN.name, name) for name in ("RAND", "FF", "LS", "LWF-1")}
_USED = {name: Value(UTILISATION.name, name) for name in _JCT}

ITEM = table(
    "Table IV",
    title="Table IV and Figure 4: placements",
    plots="Average GPU utilisation and mean, median and 95th percentile JCT of four placements under Ada-SRSF "
    "(section V-B), and the distributions of JCT and of utilisation.",
    series=_SERIES,
    claims=(
        Claim(
            "LWF-1 has a smaller mean JCT than RAND, FF and LS.",
            "section V-B, Table IV",
            tuple(
                Less(_JCT["LWF-1"], _JCT[other], printed=ratio)
                for other, ratio in (("RAND", 0.381), ("FF", 0.572), ("LS", 0.481))
            ),
            printed="61.9%, 42.8% and 51.9% of the mean JCT saved",
        ),
        Claim(
            "The savings have the printed size.",
            "section V-B, Table IV",
            tuple(
                Agrees(_JCT["LWF-1"], _JCT[other], ratio, f"mean JCT of LWF-1 over {other} is {ratio}")
                for other, ratio in (("RAND", 0.381), ("FF", 0.572), ("LS", 0.481))
            ),
            printed="ratios 0.381, 0.572, 0.481",
        ),
        Claim(
            "RAND has the largest mean JCT.",
            "section V-B, Figure 4",
            (More(_JCT["RAND"], _JCT["FF"]), More(_JCT["RAND"], _JCT["LS"])),
        ),
        Claim(
            "FF has a smaller mean JCT than LS.",
            "section V-B, Figure 4",
            (Less(_JCT["FF"], _JCT["LS"], printed=0.842),),
        ),
        Claim(
            "LWF-1 uses the GPUs best.",
            "section V-B, Figure 4",
            tuple(More(_USED["LWF-1"], _USED[other]) for other in ("RAND", "FF", "LS")),
        ),
        Claim(
            "LWF-1's utilisation is that many times RAND's, FF's and LS'.",
            "section V-B",
            tuple(
                Agrees(_USED["LWF-1"], _USED[other], times, f"utilisation of LWF-1 over {other} is {times}")
                for other, times in (("RAND", 2.19), ("FF", 1.59), ("LS", 1.7))
            ),
            printed="2.19, 1.59, 1.7 times",
        ),
        Claim(
            "More than 95% of the JCTs of LWF-1 are below 5,000 s.",
            "section V-B, Figure 4",
            printed="over 95%; Table IV's own 95th percentile is 4,024 s",
            cannot=ABSOLUTE,
        ),
    ),
)

"""A statement of a paper beside what is measured: ratio and proven bound on the same instance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from schedgap.benchmarks.judging.judge import finite
from schedgap.benchmarks.judging.ledger_verdicts import ledger_verdict
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Json


@dataclass(frozen=True)
class Point:
    """A statement on one instance."""

    where: str  # family and seed
    ratio: float | None  # optimum to the method's objective, or its inverse: at least 1 unless capacities are exceeded
    bound: float | None  # the proven bound on the ratio, on this instance
    share: float | None  # ratio over bound, or left side over right side; above 1 refutes the statement
    load: float | None = None  # largest load over capacity; None where no capacity is exceeded


@dataclass(frozen=True)
class Statement:
    """A theorem, lemma or corollary and what is measured of it."""

    id: str
    problem: str
    source: str
    kind: str  # printed, reading or repaired
    method: str | None  # the heuristic that it is about; None where it is about the problem
    text: str
    assumptions: str
    shape: str  # ratio, sides, samples or measured: what a line of it can hold
    drawn: int = 0  # instances, or samples, that were drawn
    applied: int = 0  # number of trials that meet the assumptions
    refuted: int = 0  # number of trials on which it fails
    per_sample: int = 1  # things that one sample looks at
    things: str = "instances"
    points: tuple[Point, ...] = ()
    measured: str = ""  # what a statement about growth or frequency came out as
    missing: str = ""  # why it was not tried; empty where it was

    @property
    def paper(self) -> str:
        """The paper's number."""
        return self.id.partition("-")[0]

    @property
    def verdict(self) -> str:
        """What these instances say, and the ledger where it says more."""
        if self.missing:
            return "not tried"
        ledger = ledger_verdict(self.id)
        if self.shape == "measured":
            return "measured"
        if self.refuted:
            return f"refuted on {self.refuted}"
        if ledger.verdict == "refuted":
            return "refuted elsewhere"
        return "holds here" if self.applied else "not applicable"

    @property
    def is_refuted(self) -> bool:
        """Whether these instances or the ledger refute it."""
        return self.refuted > 0 or ledger_verdict(self.id).verdict == "refuted"

    @property
    def shares(self) -> list[float]:
        """The share of the bound used, by instance, where it is known."""
        return [point.share for point in self.points if point.share is not None]

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        own = asdict(self)
        own["points"] = [{name: finite(v) if name != "where" else v for name, v in p.items()} for p in own["points"]]
        return own

    @classmethod
    def parse(cls, data: Mapping[str, Json]) -> Statement:
        """Back from :meth:`to_dict`."""

        def read(point: Mapping[str, Json]) -> Point:
            numbers = {name: math.inf if value == "inf" else value for name, value in point.items()}
            where = str(numbers.pop("where"))
            return Point(where, **numbers)

        return cls(**{**data, "points": tuple(map(read, data["points"]))})


def write_csv(rows: Iterable[Statement], path: Path) -> Path:
    """One line for each statement and instance."""
    import pandas as pd

    lines = [
        {
            **{name: getattr(row, name) for name in ("paper", "id", "source", "kind", "problem", "method", "text")},
            **(asdict(point) if point is not None else {}),
            "refuted": row.refuted,
            "applied": row.applied,
            "drawn": row.drawn,
            "verdict": row.verdict,
            "measured": row.measured,
            "missing": row.missing,
        }
        for row in rows
        for point in (row.points or (None,))
    ]
    return write_text(path, pd.DataFrame(lines).to_csv(index=False, lineterminator="\n"))

"""Records: what identifies a run of a method, with the Result that it gave; the one shape of a run everywhere."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from pydantic import ConfigDict, Field, create_model

from schedgap.benchmarks.text import number, seconds
from schedgap.catalogue.method import label
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import shown_method
from schedgap.formulations.common.instance import Json, Line, Moment, Part, Positive, validated
from schedgap.solvers.result import Proof, Result, Status, Termination

FILES = "files"
"""The suite of instances that a user names by their files."""
SHOWN = 400
"""Longest solution that is printed for a person, in characters."""
NOTHING = Result(Status.UNKNOWN)
"""What is known of a run before it has run."""
_Whole = Annotated[int, Field(ge=0)]
_Point = Annotated[list[float | None], Field(min_length=3, max_length=3)]


@dataclass(frozen=True)
class Record:
    """One run of one method on one instance."""

    # problem, method: their ids
    problem: Line
    method: Line
    # settings, seed: of the method
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: _Whole = 0
    # instance_name, instance_hash: the instance's identity (a run keeps it as ``instances/<hash>.json``)
    instance_name: Line = ""
    instance_hash: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    # suite, batch: where it belongs in a run of suites; `batch` is the group's name in tables
    suite: Line = ""
    batch: Line = ""
    position: _Whole = 0  # its place in the run's plan; tables are in this order, whatever finished first
    key: Line = ""  # identifies the work in a store, see :func:`~schedgap.benchmarks.sweep.store.row_key`
    # limits, versions: what else its result depends on
    limits: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)
    result: Result = NOTHING  # what the method returned; status ERROR where `error` tells why there is nothing
    payload: Any = None  # what else it gave, as JSON
    seconds: Moment | None = None  # wall-clock time of the whole item
    # error, disagreement: what went wrong, and whether parts contradicted each other
    error: str = ""
    disagreement: bool = False
    # worker, finished: process id, and seconds since the epoch
    worker: _Whole = 0
    finished: Moment = field(default_factory=time.time)

    @property
    def label(self) -> str:
        """The method with its settings, as tables show it."""
        return label(shown_method(self.problem, self.method), self.settings)

    @property
    def exit_status(self) -> int:
        """0 solution found, 3 proven infeasible or unbounded, 4 nothing found, 5 internal error, 130 interrupted."""
        if self.result.termination is Termination.INTERRUPTED:
            return 130
        known = {Status.INFEASIBLE: 3, Status.UNBOUNDED: 3, Status.ERROR: 5}
        return known.get(self.result.status, 4 if self.result.solution is None else 0)

    @property
    def shortfall(self) -> str | None:
        """Why there is no answer, or one that the engine had no part in; None where all is well."""
        why = self.result.info.get("reason", self.result.termination)
        if self.result.status is Status.UNKNOWN:
            return f"{self.method} found no solution: {why}"
        large = self.result.termination is Termination.TOO_LARGE
        return f"{self.method} did not solve the model: {why}" if large else None

    @property
    def _ending(self) -> str:
        """Who vouches for what is proven, or why the method stopped."""
        proof, second = self.result.proof, self.result.info.get("confirmed_by", self.result.info.get("second engine"))
        if proof is None:
            return str(self.result.termination)
        by = {Proof.CERTIFIED: "", Proof.AGREED: f" by {self.method} and {second}", Proof.CLAIMED: f" by {self.method}"}
        return f"{proof}{by[proof]}"

    def flat(self) -> dict[str, Json]:
        """Every field, those of the result among them, as one mapping: a row of a table."""
        own = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "result"}
        found = {part.name: getattr(self.result, part.name) for part in fields(Result)}
        return {**own, **found, "status": str(self.result.status), "termination": str(self.result.termination)}

    @classmethod
    def of(cls, row: Mapping[str, Json], source: str = "row") -> Record:
        """What :meth:`flat` made; InputError names the source, the field and the value where it did not."""
        given = {**row, "termination": row["termination"] or "failed", "info": row["info"] or {}}
        known = vars(validated(_row_form(), given, source))
        validated(_Info, known["info"], f"{source}: info")
        result = Result(**{part.name: known.pop(part.name) for part in fields(Result)})
        return cls(**known, result=result)

    def to_dict(self) -> dict[str, Json]:
        """The object that ``solve --json`` prints."""
        result = self.result
        return {
            "problem": self.problem,
            "instance": self.instance_name,
            "method": self.method,
            "engine": result.engine,
            "status": str(result.status),
            "objective": plain_number(result.objective),
            "bound": plain_number(result.bound),
            "gap": result.gap,
            "seconds": None if result.seconds is None else round(result.seconds, 6),
            **{key: result.info[key] for key in ("interpreted_seconds",) if key in result.info},
            "seed": self.seed,
            "proof": result.proof,
            "solution": result.solution,
            **({"cut": True} if result.cut else {}),
            **{key: plain(result.info[key]) for key in ("duality", "pair") if key in result.info},
        }

    def to_text(self, problem: Problem, out: Path | None = None) -> str:
        """The result for a person.

        Parameters
        ----------
        problem : whose instance was solved
        out : the file that the solution was written to
        """
        result = self.result
        engine = "" if result.engine is None else f" ({' '.join(filter(None, [result.engine, result.engine_version]))})"
        plain_unit = result.objective is None or problem.unit in problem.objective_name  # "total utility 3 utility"
        unit = "" if plain_unit else f" {problem.unit}"
        lines = [
            f"{self.instance_name}: {problem.title}",
            f"  method     {self.method}{engine}",
            f"  status     {result.status}, {self._ending}",
            *([f"  proof      {result.proof}: {result.proof.meaning}"] if result.proof is not None else []),
            f"  {problem.objective_name:<10} {number(result.objective)}{unit}",
            f"  bound      {number(result.bound)}" + ("" if result.gap is None else f", gap {100 * result.gap:.3g}%"),
            f"  seconds    {seconds(result.seconds)}",
        ]
        if interpreted := result.info.get("interpreted_seconds"):
            lines[-1] += f", and {seconds(interpreted)} of Python in place of a first compilation"
        if result.solution is not None and (metrics := metrics_text(problem, result.info)):
            lines.append(f"  metrics    {metrics}")
        if "reason" in result.info:
            lines.append(f"  reason     {result.info['reason']}")
        lines += _duality_lines(result.info.get("duality"))
        if "pair" in result.info:
            pair = (f"{key} {number(x) if isinstance(x, float) else x}" for key, x in result.info["pair"].items())
            lines.append(f"  pair       {', '.join(pair)}")
        if result.solution is not None:
            text = json.dumps(result.solution, allow_nan=False, ensure_ascii=False)
            shown = text if len(text) <= SHOWN else "long: --out FILE or --json writes it"
            lines.append(f"  solution   {shown if out is None else f'in {out}'}")
        return "\n".join(lines)


def failed(record: Record, error: str, disagreement: bool = False) -> Record:
    """The record of work that ended in an error."""
    result = Result(Status.ERROR, termination=Termination.FAILED)
    return replace(record, result=result, error=error, disagreement=disagreement)


@cache
def _row_form() -> type[Part]:
    """The fields of a record and of its result, each strictly of its type."""
    hints: dict[str, Any] = {**get_type_hints(Record, include_extras=True), **get_type_hints(Result)}
    hints |= {name: Annotated[hints[name], Field(strict=False)] for name in ("status", "termination")}
    hints["payload"] = list[dict[str, Any]] | dict[str, Any] | None
    return create_model("Row", __base__=Part, **{name: hints[name] for name in hints if name != "result"})


class _Info(Part):
    """What reports read of it."""

    model_config = ConfigDict(extra="ignore")
    proof: Annotated[Proof, Field(strict=False)] = Proof.CLAIMED
    anytime: list[_Point] = Field(default=[])


class _Session(Part):
    model_config = ConfigDict(extra="ignore")
    began: Moment
    ended: Moment | None = None
    packages: dict[Line, Line | None]


class RunFacts(Part):
    """What a run says of itself, as far as a report works with it."""

    model_config = ConfigDict(extra="ignore")
    suites: list[Line] = Field(default=[])
    time_limit: Positive | None = None
    planned: _Whole | None = None
    sessions: list[_Session] = Field(default=[])


def _duality_lines(duality: Mapping[str, Any] | None) -> list[str]:
    """LP(P2) and P3, and a table of the prices and payoffs."""
    if duality is None:
        return []
    said = {True: "holds", False: "does not hold"}
    lines = [
        f"  LP(P2)     {number(duality['LP(P2)'])}, P3 {number(duality['P3'])}: strong duality "
        f"{said[duality['strong duality']]}, complementary slackness {said[duality['complementary slackness']]} "
        f"(largest product {duality['largest complementary product']:.2g})"
    ]
    rows = [("price", f"{p['machine']}, {p['type']}, slot {p['slot']}", p["price"]) for p in duality["prices"]]
    rows += [("payoff", job, payoff) for job, payoff in duality["payoffs"].items()]
    width = max((len(what) for _, what, _ in rows), default=0)
    return lines + [f"  {kind:<10} {what:<{width}}  {number(value)}" for kind, what, value in rows]


def plain_number(value: float | None) -> float | int | None:
    """A whole number as an int, so that a makespan of 12 is written as 12."""
    if value is None or value != int(value) or abs(value) >= 2**53:
        return value
    return int(value)


def plain(value: object) -> Json:
    """`value` as JSON holds it: numpy numbers and arrays unpacked, keys as text, infinities as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value) if isinstance(value, set | frozenset) else value
        return [plain(item) for item in items]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def metrics_of(problem: Problem, info: Mapping[str, object] | None) -> dict[str, float | None]:
    """The problem's metrics in a run's `info` by title; what it does not tell is left out, the unknown is None."""
    facts = info or {}
    found = {title: facts[key] for key, title in problem.metrics.items() if key in facts}
    return {title: float(value) if isinstance(value, int | float) else None for title, value in found.items()}


def metrics_text(problem: Problem, info: Mapping[str, object] | None) -> str:
    """The metrics in one line; empty where there are none."""
    found = metrics_of(problem, info)
    return ", ".join(f"{title} {number(value, 4)}" for title, value in found.items() if value is not None)


def mean_metrics(runs: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Each metric's mean over the runs, None where one of them does not know it: no mean is over the easy ones."""
    titles = dict.fromkeys(title for run in runs for title in run)
    known = {title: [value for run in runs if (value := run.get(title)) is not None] for title in titles}
    return {title: statistics.fmean(values) if len(values) == len(runs) else None for title, values in known.items()}

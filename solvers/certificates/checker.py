"""The checker of certificates: exact rationals, the standard library, nothing else.

    python checker.py INSTANCE CERTIFICATE [SOLUTION]

A certificate says "no schedule of this instance is better than v" (or "there is no schedule") and carries the numbers
that prove it. The checker reads the instance, writes down constraints that every schedule of it satisfies (one file a
problem in ``rules/``, by hand, for this purpose alone), and adds them up (``linear.py``): nothing in a certificate is
believed, and no builder, engine or search of this project is imported. ``docs/certificates.md`` is the format, and why
it proves what it claims.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib
import io
import json
import math
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

try:
    from schedgap.solvers.certificates.instances import valid
    from schedgap.solvers.certificates.linear import Adder, Box, Model, Narrower, Rejected, decimal, fraction, reject
except ImportError:  # run as a file: its own folder is enough
    sys.path.insert(0, str(Path(__file__).parent))
    from instances import valid  # type: ignore[import-not-found, no-redef]
    from linear import (  # type: ignore[import-not-found, no-redef]
        Adder,
        Box,
        Model,
        Narrower,
        Rejected,
        decimal,
        fraction,
        reject,
    )

VERSION = 1
RULES = {
    "rar-ddls": "rar_ddls",
    "hadar": "hadar",
    "gpu-sharing": "gpu_sharing",
    "comm-contention": "comm_contention",
    "ddl-cluster": "ddl_cluster",
    "g-vne": "ring_prices",
    "ddljs": "ring_prices",
    "gang-placement": "gang_placement",
    "rigid-jobs": "rigid_jobs",
}
"""The file of ``rules/`` that knows a problem."""
GROUP = "schedgap.certificates"
"""Entry points of other packages: a problem's id, and the module with its ``FORMS``, ``valid`` and, perhaps, ``point``
and ``bounds``."""
LARGEST_FILE = 256 * 2**20
"""Bytes of a file that are read, unpacked."""
MOST_UNPACKED = 100
"""Bytes that one of a compressed file may become, beyond SMALL_UNPACKED."""
SMALL_UNPACKED = 2**20
MOST_VALUES = 4_000_000
"""In a file; a list takes some 70 bytes of memory where it takes 3 in the file."""
_LONGEST_LINE = 500
"""Characters of a message; names in a stranger's file have no end."""
_LARGEST = 10**300
_ZERO_IS_SAID = {
    "gang-placement": frozenset({"quota", "borrow", "price", "move_price"}),
    "ddljs": frozenset({"budget"}),
}
"""Keys by problem of which 0 says another thing than nothing does: no GPU at all, and as many as there are."""
_KEYS = {"certificate", "problem", "instance", "form", "options", "claim", "tree"}


class Prover:
    """Walks a tree and stops at the first leaf that does not prove the claim.

    `target` is the value to be proven, for minimisation, or None where the claim is that there is no schedule.
    """

    def __init__(self, model: Model, target: Fraction | None) -> None:
        self.model = model
        self.target = target
        self.adder = Adder(model)
        self.leaves = 0

    def walk(self, tree: Any) -> None:
        """Every node below the root; splits cover: x <= k or x >= k + 1."""
        todo: list[tuple[Any, Box, str, Narrower | None]] = [(tree, {}, "root", None)]
        while todo:
            node, box, place, by_rows = todo.pop()
            if not isinstance(node, dict):
                reject(f"{place}: a node must be an object")
            if "narrow" in node:
                if set(node) != {"narrow"} or by_rows is not None or self.model.price is not None:
                    reject(f"{place}: narrow is alone in its node, in a form with rows, and not below another")
                by_rows = Narrower(self.model, in_all=True)
                self._below(node["narrow"], by_rows.narrow(box), f"{place}, narrowed", by_rows, todo)
                continue
            if "fix" in node:
                if set(node) != {"fix", "then"}:
                    reject(f"{place}: a fixing has exactly fix and then")
                less: Box | None = self.narrowed(node["fix"], box, place)
                if by_rows is not None and less is not None:
                    less = by_rows.narrow(less, [name for name, bounds in less.items() if box.get(name) != bounds])
                self._below(node["then"], less, f"{place}, fixed", by_rows, todo)
                continue
            if "split" not in node:
                self.leaf(node, box, place)
                continue
            if set(node) != {"split", "at", "low", "high"}:
                reject(f"{place}: a split has exactly split, at, low and high")
            name, k = node["split"], node["at"]
            j = self.model.index.get(name) if isinstance(name, str) else None
            if j is None or not self.model.whole[j]:
                reject(f"{place}: there is no whole variable {str(name)[:60]!r}")
            if isinstance(k, bool) or not isinstance(k, int):
                reject(f"{place}: at must be a whole number")
            low, high = box.get(name) or (math.ceil(self.model.low[j]), math.floor(self.model.high[j]))
            for side, bounds, told in (
                ("low", (low, min(high, k)), f"{name} <= {k}"),
                ("high", (max(low, k + 1), high), f"{name} >= {k + 1}"),
            ):
                part: Box | None = {**box, name: bounds}
                if by_rows is not None and bounds[0] <= bounds[1]:
                    part = by_rows.narrow({**box, name: bounds}, [name])
                self._below(node[side], part, f"{place}, {told}", by_rows, todo)

    def _below(self, node: Any, box: Box | None, place: str, by_rows: Narrower | None, todo: list[Any]) -> None:
        """Go on at a node; where the rows show that its box is empty nothing is left to prove there."""
        if box is not None:
            todo.append((node, box, place, by_rows))
        else:
            self.leaves += 1

    def leaf(self, node: Mapping[str, Any], box: Box, place: str) -> None:
        """A leaf with multipliers ("bound" or "infeasible") or with what the price function takes ("prices")."""
        self.leaves += 1
        if any(low > high for low, high in box.values()):
            return
        if len(node) != 1:
            reject(f"{place}: a leaf has exactly one of bound, infeasible and prices")
        ((kind, content),) = node.items()
        try:
            if kind == "prices" and self.model.price is not None:
                value = self.model.price(content, box)
                if value is None:
                    return
            elif kind in ("bound", "infeasible") and self.model.price is None:
                value = self.adder.bound(content, box, kind == "bound")
                if kind == "infeasible":
                    if value <= 0:
                        reject("the multipliers do not show that the box is empty")
                    return
            else:
                reject(f"there is no leaf {str(kind)[:40]!r} in this form")
        except Rejected as fault:
            reject(f"{place}: {fault}")
        if self.target is None:
            reject(f"{place}: a bound of {decimal(value)} does not show that there is no schedule")
        if self.reached(value) < self.target:
            reject(f"{place}: proves {decimal(self.model.sense * value, 12)} only")

    def narrowed(self, multipliers: Any, box: Box, place: str) -> Box:
        """The box without what only points have that are no better than the target (reduced costs).

        With the multipliers every point costs at least a bound, and a whole variable that is k away from where the
        bound has it adds k times what is left of its cost.
        """
        if self.target is None or self.model.price is not None:
            reject(f"{place}: nothing can be fixed where no value is to be proven by rows")
        try:
            left, _, below = self.adder.combined(multipliers, True)
            bound = self.adder.bound(multipliers, box, True)
        except Rejected as fault:
            reject(f"{place}: {fault}")
        top, step = self.target, self.model.step
        if step:  # the last value below the target
            top = self.model.constant + step * (math.ceil((top - self.model.constant) / step) - 1)
        found = dict(box)
        for j, reduced in left.items():
            if reduced and self.model.whole[j]:
                name = self.model.names[j]
                low, high = box.get(name) or (math.ceil(self.model.low[j]), math.floor(self.model.high[j]))
                most = math.floor((top - bound) * below / abs(reduced))
                if most < high - low:
                    found[name] = (low, low + most) if reduced > 0 else (high - most, high)
        return found

    def reached(self, value: Fraction) -> Fraction:
        """The least value of the objective that is not below `value`."""
        step = self.model.step
        if not step:
            return value
        return self.model.constant + step * math.ceil((value - self.model.constant) / step)


@dataclass(frozen=True)
class Verdict:
    """What a certificate proves."""

    problem: str
    # the optimum is at least (minimising) or at most (maximising) this; None where there is no schedule
    bound: Fraction | None
    sense: int  # 1 minimise, -1 maximise
    leaves: int  # number of leaves of the tree
    # of the schedule in the certificate's own model, where one was given and the form has a map
    value: Fraction | None = None


def rules_of(problem: str) -> Any:
    """The constraints of one problem: a module of ``rules/``, beside this file or in its package; or an installed one.

    Raises Rejected: nobody has rules for it.
    """
    if problem not in RULES:
        from importlib.metadata import entry_points

        entries = tuple(entry_points(group=GROUP, name=problem))
        if not entries:
            reject(f"there are no rules for certificates of {problem[:60]!r}")
        return entries[0].load()
    name = f"rules.{RULES[problem]}"
    if __package__:
        return importlib.import_module(f"{__package__}.{name}")
    sys.path.insert(0, str(Path(__file__).parent))
    return importlib.import_module(name)


def digest(instance: Mapping[str, Any]) -> str:
    """What identifies an instance: SHA-256 of its JSON with sorted keys, without name, note and reference."""
    kept = {k: v for k, v in instance.items() if k not in ("name", "note", "version") and not k.startswith("reference")}
    zeros = _ZERO_IS_SAID.get(str(instance.get("problem")), frozenset())
    return hashlib.sha256(json.dumps(_plain(kept, zeros), sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _plain(value: Any, zeros: frozenset[str], *, said: bool = False) -> Any:
    """Numbers as text, the same for 1 and 1.0; entries that are 0, false, null or empty as if they were not there.

    Parameters
    ----------
    zeros : keys whose 0, or the zeros of whose table, stay
    said : this is such a table
    """
    if isinstance(value, dict):
        return {
            k: _plain(v, zeros, said=k in zeros)
            for k, v in value.items()
            if v or v == "" or ((said or k in zeros) and _is_zero(v))
        }
    if isinstance(value, list):
        return [_plain(v, zeros) for v in value]
    return str(value) if isinstance(value, int | Fraction) and not isinstance(value, bool) else value


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | Fraction) and not isinstance(value, bool) and not value


def parse(text: str | bytes) -> Any:
    """JSON whose decimal numbers become fractions, as they are written (read through the nearest double).

    Raises Rejected: it is none, has numbers or brackets beyond what is read, or an object that gives a key twice.
    """
    known: dict[str, Fraction] = {}  # what is given again takes no time again

    def exact(digits: str) -> Fraction:
        if digits not in known:
            known[digits] = Fraction(repr(float(digits)))
        return known[digits]

    try:
        return json.loads(
            text,
            parse_float=exact,
            parse_constant=lambda name: reject(f"not JSON: {name} is no number"),
            object_pairs_hook=_object,
        )
    except (ValueError, RecursionError, MemoryError) as fault:  # 1e999 and NaN are none of its numbers either
        raise Rejected(f"not JSON: {fault}") from None


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            reject(f"the key {key[:60]!r} is given twice in one object")
        found[key] = value
    return found


def model_of(instance: Mapping[str, Any], form: Any, options: Mapping[str, Any], forms: str = "FORMS") -> Model:
    """The model of an instance that a certificate of this form is about; `forms`: the table of the rules."""
    model, written = Model(), getattr(rules_of(instance["problem"]), forms)
    if not isinstance(form, str) or form not in written:
        reject(f"form: {str(form)[:40]!r} is none of {', '.join(written)}")
    written[form](instance, options, model)
    return model.finished()


def check(instance: Mapping[str, Any], certificate: Any, solution: Any = None) -> Verdict:
    """What a certificate proves about an instance.

    Raises Rejected: the certificate does not prove what it claims.

    Parameters
    ----------
    instance, certificate, solution : values of :func:`parse`
    """
    if not isinstance(certificate, dict) or set(certificate) - _KEYS:
        reject("not a certificate: unknown keys")
    if certificate.get("certificate") != VERSION:
        reject(f"not a certificate of version {VERSION}")
    problem = instance.get("problem") if isinstance(instance, dict) else None
    if not isinstance(problem, str) or certificate.get("problem") != problem:
        reject(f"the certificate is about {certificate.get('problem')!r}, the instance about {problem!r}")
    with refusing():
        if problem in RULES:
            valid(instance)
        if certificate.get("instance") != digest(instance):
            reject("the certificate is of another instance")
        if problem not in RULES:
            rules_of(problem).valid(instance)
        return _proven(instance, certificate, solution)


@contextmanager
def refusing() -> Iterator[None]:
    """What goes wrong with numbers of a stranger is a refusal."""
    try:
        yield
    except (LookupError, ArithmeticError, TypeError, ValueError, AttributeError, StopIteration) as fault:
        raise Rejected(f"malformed: {type(fault).__name__}: {fault}") from fault
    except (RecursionError, MemoryError) as fault:
        raise Rejected("too large") from fault


def claimed(certificate: Mapping[str, Any], model: Model) -> Fraction | None:
    """The bound that a certificate, or the note of a file of VIPR, claims on a model; None: there is no schedule.

    Raises Rejected: it is no number, or about schedules that the model leaves out.
    """
    claim = certificate.get("claim")
    bound = None if claim == "infeasible" else fraction(claim, "claim")
    if bound is not None and abs(bound) > _LARGEST:
        reject("claim: beyond all numbers that can be shown")
    if model.cutoff is not None and (bound is None or model.sense * bound > model.cutoff):
        reject("the claim goes beyond the schedules that the model is about")
    return bound


def _proven(instance: Mapping[str, Any], certificate: Mapping[str, Any], solution: Any) -> Verdict:
    options = options_of(certificate)
    model = model_of(instance, certificate.get("form"), options)
    bound = claimed(certificate, model)
    prover = Prover(model, None if bound is None else model.sense * bound)
    prover.walk(certificate.get("tree"))
    value = None
    if solution is not None:
        value = value_of(model, rules_of(instance["problem"]), instance, solution, options)
    return Verdict(instance["problem"], bound, model.sense, prover.leaves, value)


def options_of(certificate: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of a certificate, or of the note of a file of VIPR."""
    options = certificate.get("options", {})
    if not isinstance(options, dict):
        reject("options must be an object")
    return options


def value_of(
    model: Model, rules: Any, instance: Mapping[str, Any], solution: Any, options: Mapping[str, Any]
) -> Fraction | None:
    """The objective of a schedule's point, after it has been put into every row; None where the form has no map.

    Raises Rejected: the point breaks a bound or a row: either the schedule is not feasible or the rules are wrong.
    """
    if model.price is not None or not hasattr(rules, "point"):
        return None
    point = rules.point(instance, solution, options)
    stated = point.pop("objective", None)
    for name in point:
        if name not in model.index and point[name] and name.partition("[")[0] not in model.spare:
            reject(f"the schedule needs {name}, which the model does not have")
    x = [Fraction(point.get(name, 0)) for name in model.names]
    for j, value in enumerate(x):
        if not model.low[j] <= value <= model.high[j] or (model.whole[j] and value.denominator != 1):
            reject(f"the schedule has {model.names[j]} = {decimal(value)}, outside of its bounds")
    for name, row in model.rows.items():
        slack = sum((a * x[j] for j, a in row.terms.items()), Fraction(0)) - row.right
        if slack < 0 or (row.equal and slack):
            reject(f"the schedule breaks row {name} by {decimal(slack)}")
    objective = sum((c * v for c, v in zip(model.cost, x, strict=True)), model.constant)
    if stated is not None and model.sense * Fraction(stated) < objective:
        reject("the schedule's point costs more than the schedule")
    return Fraction(stated) if stated is not None else model.sense * objective


def content(path: str, *, compressed: bool = False) -> bytes:
    """The bytes of a file, unpacked where it may be compressed and is.

    Raises Rejected: it is no regular file, or has more bytes than are read, which is as far as it is read.
    """
    if Path(path).is_fifo():  # nobody may ever write to it
        reject(f"{path}: is not a regular file")
    with Path(path).open("rb") as file:
        raw, most = file.read(LARGEST_FILE + 1), LARGEST_FILE
    if compressed and raw[:2] == b"\x1f\x8b" and len(raw) <= most:
        most = min(most, max(SMALL_UNPACKED, MOST_UNPACKED * len(raw)))
        raw = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(most + 1)
    if len(raw) > most:
        reject(f"{path}: has more than {most:,} bytes")
    return raw


def load(path: str) -> Any:
    """A JSON file, compressed or not."""
    return parse(text_of(path))


def text_of(path: str) -> bytes:
    """What :func:`load` reads; Rejected where it has more than MOST_VALUES values."""
    raw = content(path, compressed=True)
    if sum(map(raw.count, (b",", b"[", b"{"))) > MOST_VALUES:
        reject(f"{path}: has more than {MOST_VALUES:,} values")
    return raw


def shown(text: str) -> str:
    """One line for a screen: what steers a terminal or ends a line is written out, what is long is cut."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: 2 * _LONGEST_LINE])
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 3]}..."


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: 0 proven, 1 rejected, 2 not readable."""
    parser = argparse.ArgumentParser(description="Check a certificate of optimality in exact rational arithmetic.")
    parser.add_argument("instance")
    parser.add_argument("certificate")
    parser.add_argument("solution", nargs="?")
    given = parser.parse_args(arguments)
    try:
        instance, certificate = load(given.instance), load(given.certificate)
        solution = load(given.solution) if given.solution else None
    except (OSError, EOFError, ValueError, zlib.error, Rejected) as fault:
        print(shown(f"cannot be read: {fault}"), file=sys.stderr)
        return 2
    try:
        verdict = check(instance, certificate, solution)
    except Rejected as fault:
        print(shown(f"rejected: {fault}"))
        return 1
    side = "least" if verdict.sense > 0 else "most"
    bound = verdict.bound
    told = "there is no schedule" if bound is None else f"the optimum is at {side} {bound} ({float(bound):.12g})"
    print(f"proven: {told}; {verdict.leaves} leaves")
    if verdict.value is not None and bound is not None:
        gap = abs(verdict.value - bound)
        ends = "optimal, if the schedule is feasible" if not gap else f"{decimal(gap)} from the bound"
        print(f"the schedule's value is {verdict.value}: {ends}")
    elif given.solution:
        why = f'form "{certificate["form"]}" has no map from schedules to its variables'
        print(shown(f"the schedule is not looked at: {why}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())

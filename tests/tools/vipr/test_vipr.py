"""Certificates as files of VIPR: a checker of others accepts them and refuses what is changed; we compare the rows.

The checker is compiled from its source, in the folder ``tools/vipr`` beside the checkout, or is the program that
``VIPRCHK`` names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command import Command
from support.rar_random import random_small

from schedgap import solve
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.rar_ddls.bounds import lower_bound
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.content import certificate_of, plain
from schedgap.solvers.certificates.linear import Model, Rejected
from schedgap.solvers.certificates.makers.rar_ddls import areas
from schedgap.solvers.certificates.rules import rar_ddls
from schedgap.tools.library.collection import Entry, entries
from schedgap.tools.vipr.stating import about
from schedgap.tools.vipr.writing import as_vipr, vipr_text
from studies.library.accepted import NAME

SOURCE = Path(__file__).parents[4] / "shared" / "tools" / "vipr" / "viprchk.cpp"
LOADED = {entry.id: checker.load(str(entry.certificate)) for entry in entries() if entry.certificate is not None}
ROWS = {name: certificate for name, certificate in LOADED.items() if certificate["form"] == "rows"}
AREA = {name: certificate for name, certificate in LOADED.items() if certificate["form"] == "area"}
WRITTEN = ROWS | AREA
EACH = Path(__file__).parents[2] / "support" / "each_multiplier.cpp"
MOST_LETTERS = 20_000
"""Of a file all of whose multipliers are changed here."""
NARROWED = {"gpu-sharing/tiny-0": 2}
"""With rounded sums by the hundred: so many multipliers of each derivation are changed."""
LARGE = {"gpu-sharing/contended-1", "gpu-sharing/contended-2", "gpu-sharing/contended-3", "gpu-sharing/contended-4"}
"""Files of 4 to 12 MB: accepted too, in 3 s each, see docs/certificates.md."""
ENTRIES = {entry.id: entry for entry in entries()}
SMALL = [name for name in ROWS if (path := ENTRIES[name].certificate) is not None and path.stat().st_size < 1500]

Verdict = Callable[[str], bool]


def compiled(folder: Path, source: Path, *options: str) -> str:
    """A program of the checker's source; where that cannot be, the test is skipped, which the run says at its end."""
    if shutil.which("g++") is None or not SOURCE.is_file():
        pytest.skip("there is no g++, or no source of viprchk beside the checkout")
    program = str(folder / source.stem)
    built = ["g++", "-O1", "-std=c++14", *options, "-o", program, str(source), "-lgmpxx", "-lgmp"]
    if subprocess.run(built, capture_output=True, check=False).returncode:
        pytest.skip("viprchk cannot be compiled: is GMP there?")
    return program


@pytest.fixture(scope="session")
def accepts(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    """What scipopt's checker says of a text."""
    folder = tmp_path_factory.mktemp("vipr")
    program = os.environ.get("VIPRCHK") or compiled(folder, SOURCE)

    def verdict(text: str) -> bool:
        path = folder / "x.vipr"
        path.write_text(text)
        ended = subprocess.run([program, str(path)], capture_output=True, text=True, check=False)
        return ended.returncode == 0 and "Successfully" in ended.stdout

    return verdict


@cache
def written(name: str) -> str:
    return vipr_text(plain(ENTRIES[name].instance), WRITTEN[name])


def test_every_certificate_that_can_be_written_is_accepted(accepts: Verdict) -> None:
    refused = [name for name in WRITTEN.keys() - LARGE if not accepts(written(name))]
    assert not refused
    assert len(AREA) >= 44
    problems = {name.partition("/")[0] for name in ROWS}
    assert len(ROWS) >= 56 and problems == {"rar-ddls", "gpu-sharing", "ddl-cluster", "g-vne", "gang-placement"}
    assert any("narrow" in json.dumps(ROWS[name]["tree"], default=str) for name in ROWS)


def test_records_say_who_accepted_their_certificates() -> None:
    """Those that can be written, which the test above asks about but for the large ones, and no other."""
    assert {name for name, entry in ENTRIES.items() if entry.known.accepted} == set(WRITTEN)
    assert {who for entry in ENTRIES.values() for who in entry.known.accepted} == {NAME}


def test_every_changed_multiplier_is_refused(tmp_path: Path) -> None:
    """Of each sum (lin) and rounded sum (rnd), one by one, by 2^-40 and to the double; the unchanged ones are taken."""
    program, path = compiled(tmp_path, EACH, f'-DVIPRCHK="{SOURCE}"'), tmp_path / "x.vipr"
    sums = rounded = 0
    for name in WRITTEN:
        cert = ENTRIES[name].certificate
        small = name in NARROWED or name in AREA or (cert is not None and cert.stat().st_size < 1500)
        text = written(name) if small else ""
        if not text or (len(text) > MOST_LETTERS and name not in NARROWED):
            continue
        path.write_text(text)
        most = NARROWED.get(name, 10**6)
        ended = subprocess.run([program, str(path), str(most)], capture_output=True, text=True, check=True)
        first, *accepted = ended.stdout.splitlines()
        changed = [int(word) for word in first.split()]
        assert changed[2:] == [0, 0] and not accepted, (name, accepted[:1])
        sums, rounded = sums + changed[0], rounded + changed[1]
    assert sums > 3000 and rounded > 300, (sums, rounded)


# --- area --------------------------------------------------------------------------------------------------


def test_every_kind_of_area_is_a_linear_argument(accepts: Verdict) -> None:
    """Whatever refutes a horizon: the longest job, weights with margins, large gangs; by cases where sums do not do."""
    found: Counter[str] = Counter()
    crowded = {
        **random_small(np.random.default_rng(0)).to_dict(),
        "horizon": 100,
        "servers": [{"id": f"s{s}", "gpus": 3} for s in range(2)],
    }
    job = {**crowded["jobs"][0], "gpus": 2, "iterations": 30, "gradient_size": 0.3}
    crowded["jobs"] = [{**job, "id": f"j{j}"} for j in range(3)]  # two side by side, and a third across or later
    for number in range(25):
        data = crowded if number == 24 else random_small(np.random.default_rng([32, number])).to_dict()
        instance = RarDdlsInstance.parse(data)
        given, bound = plain(instance), lower_bound(instance)
        if bound is None or bound <= 1:
            continue
        horizon, here = min(given["horizon"], int(bound) - 1), Counter[str]()
        for content in areas(instance, horizon):
            kind = next(k for k in ("job", "margin", "gang") if k in content)
            if here[kind] < 3 and rar_ddls.refuted(given, content, horizon):
                leaf = {"prices": content}
                made = certificate_of(given, "area", {"horizon": horizon}, Fraction(horizon + 1), leaf)
                text = vipr_text(given, made)
                assert accepts(text), content
                here.update([kind, *(["cases"] if " uns " in text.partition("D")[2] else [])])
        found.update(here)
    assert min(found[kind] for kind in ("job", "margin", "gang", "cases")) > 0, found


def _held(given: Any, solution: Any, options: Any) -> dict[str, Fraction]:
    """What a schedule that ends by the horizon is in the rows of ``periods``."""
    ends = [last for last, _ in rar_ddls.completions(given, solution)]
    jobs, found = given["jobs"], Counter[str]()
    for j, (job, end) in enumerate(zip(jobs, ends, strict=True)):
        run = range(solution["start"][job["id"]], end + 1)
        alone = len(solution["placement"][job["id"]]) == 1
        found[f"{'one' if alone else 'two'}[{j}]"], found[f"alone[{j}]"] = len(run), int(alone)
        if options.get("job") == j:
            found["slots"] = len(run)
        margin = options.get("margin", 0)
        for t in run:
            if margin < t <= options["horizon"] - margin:
                found[f"held[{job['gpus']},{t - margin - 1 if options.get('slots') else 0}]"] += 1
    return {name: Fraction(value) for name, value in found.items()}


def test_schedules_keep_the_rows_of_area() -> None:
    """With ``late`` = 0 where they end by the horizon, whatever the rows are about; else with ``late`` = 1."""
    rng, seen = np.random.default_rng(32), 0
    for _ in range(40):
        instance = random_small(rng)
        given, result = plain(instance), solve(instance, "ff")
        if result.solution is None:
            continue
        solution = checker.parse(json.dumps(result.solution))
        end = max(last for last, _ in rar_ddls.completions(given, solution))
        spread = {"margin": int(rng.integers(0, max(1, end // 3))), "slots": bool(rng.integers(2))}
        for part in ({"job": 0}, spread, {"gang": int(rng.integers(1, 5))}):
            for horizon in {end, max(1, end - 1)}:
                options = {"horizon": horizon, **part}
                if horizon - 2 * options.get("margin", 0) < 1:
                    continue
                model = Model()
                rar_ddls.AS_ROWS["periods"](given, options, model)
                point = _held(given, solution, options) if horizon >= end else {"late": Fraction(1)}
                x = [point.get(name, Fraction(0)) for name in model.names]
                for value, low, high in zip(x, model.low, model.high, strict=True):
                    assert low <= value <= high
                for name, row in model.rows.items():
                    assert sum(a * x[j] for j, a in row.terms.items()) >= row.right, (name, options)
                seen += horizon >= end
    assert seen > 60


def test_the_page_shows_the_file_that_is_written_and_its_lines() -> None:
    """A proof that is checked by hand: a reader has nothing but the file and the page."""
    docs = Path(__file__).parents[3] / "docs"
    text = (docs / "counterexamples" / "004-theorem-8.vipr").read_text()
    assert text == written("g-vne/004-theorem-8")
    page = (docs / "notes" / "certificates.md").read_text()
    shown = re.findall(r"^    ([CD]\d+ .*)$", page, re.MULTILINE)
    assert len(shown) == 6 and set(shown) <= set(text.splitlines())


def test_a_larger_claim_is_refused(accepts: Verdict) -> None:
    changed = 0
    for name in SMALL[:3]:
        text = written(name)
        more = re.sub(r"RTP range (\S+) inf", lambda found: f"RTP range {Fraction(found[1]) + 1} inf", text)
        assert more == text or not accepts(more)
        changed += more != text
    assert changed


@pytest.mark.parametrize("name", SMALL[:4])
def test_rows_of_another_instance_are_told(name: str, tmp_path: Path) -> None:
    given, path = plain(ENTRIES[name].instance), tmp_path / "c.vipr"
    text = written(name)
    path.write_text(text)
    form, claim = about(given, path)
    assert form == "rows" and str(ROWS[name]["claim"]) == ("infeasible" if claim is None else str(claim))
    lines = text.splitlines()
    for start, change in (("C0 ", "C0 G 7 0"), ("RTP", "RTP range -1 inf"), ("INT", "INT 0"), ("%", "% nothing")):
        place = next(k for k, line in enumerate(lines) if line.startswith(start))
        path.write_text("\n".join([*lines[:place], change, *lines[place + 1 :]]) + "\n")
        with pytest.raises(Rejected, match=rf"line {place + 1}:"):
            about(given, path)
    other = next(entry for key, entry in ENTRIES.items() if key != name and key.split("/")[0] == name.split("/")[0])
    path.write_text(text)
    with pytest.raises(Rejected, match="line 1:"):
        about(plain(other.instance), path)


def test_a_certificate_that_proves_nothing_is_not_written() -> None:
    name = SMALL[0]
    claim = ROWS[name]["claim"]
    better = claim if claim == "infeasible" else str(Fraction(claim) + ENTRIES[name].problem.sense)
    with pytest.raises(Rejected):
        vipr_text(plain(ENTRIES[name].instance), {**ROWS[name], "claim": better, "tree": {"bound": {}}})
    priced = next(entry for entry in entries("hadar") if entry.certificate is not None)
    with pytest.raises(Rejected, match="no linear argument"):
        as_vipr(priced.instance, json.loads(json.dumps(_loaded(priced), default=str)))


def _loaded(entry: Entry) -> Any:
    assert entry.certificate is not None
    return checker.load(str(entry.certificate))


def test_the_commands(command: Command, tmp_path: Path, accepts: Verdict) -> None:
    """certify writes it, viprchk proves it, check says that it is about this instance."""
    instance: Instance = ENTRIES["g-vne/" + next(n for n in ROWS if n.startswith("g-vne/")).partition("/")[2]].instance
    (tmp_path / "i.json").write_text(json.dumps(instance.to_dict()))
    where = [str(tmp_path / name) for name in ("i.json", "c.cert", "c.vipr", "s.json")]
    ran = command("certify", where[0], "--out", where[1], "--vipr", where[2])
    assert ran.status == 0 and "optimal" in ran.out, ran.err
    assert accepts(Path(where[2]).read_text())
    assert command("solve", where[0], "--out", where[3]).status == 0
    ran = command("check", where[0], where[3], "--certificate", where[1], "--vipr", where[2])
    assert ran.status == 0 and "its rows are those of the instance" in ran.out
    Path(where[2]).write_text(Path(where[2]).read_text().replace("RTP range -", "RTP range -1"))
    ran = command("check", where[0], where[3], "--vipr", where[2])
    assert ran.status == 1 and "vipr: rejected: " in ran.out
    hadar = Path(__file__).parents[2] / "data" / "hadar-c03_preempt.json"
    ran = command("certify", hadar, "--out", where[1], "--vipr", where[2])
    told = f'{hadar}: certificates of hadar are not written: in form "prices" they are no linear argument for VIPR: a'
    assert ran.status == 2 and told in ran.err and ran.err.count("\n") == 1 and not ran.out
    contended = ENTRIES["gpu-sharing/contended-1"].instance
    (tmp_path / "i.json").write_text(json.dumps(contended.to_dict()))
    fresh = [tmp_path / "fresh.cert", tmp_path / "fresh.vipr"]
    ran = command("certify", where[0], "--out", fresh[0], "--vipr", fresh[1], "--method", "fifo")
    assert ran.status == 4 and ran.out.startswith("not certified: ")
    assert f"neither {fresh[0]} nor {fresh[1]} is written" in ran.err and not any(path.exists() for path in fresh)

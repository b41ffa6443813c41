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
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.command import Command

from schedgap.benchmarks.library.collection import Entry, entries
from schedgap.benchmarks.studies.library.accepted import NAME
from schedgap.formulations.common.instance import Instance
from schedgap.solvers.certificates import checker, vipr
from schedgap.solvers.certificates.linear import Rejected
from schedgap.solvers.certificates.make import as_vipr, plain

SOURCE = Path(__file__).parents[3] / "shared" / "tools" / "vipr" / "viprchk.cpp"
ROWS = {
    entry.id: certificate
    for entry in entries()
    if entry.certificate is not None and (certificate := checker.load(str(entry.certificate)))["form"] == "rows"
}
EACH = Path(__file__).parents[1] / "support" / "each_multiplier.cpp"
MOST_LETTERS = 20_000
"""Of a file all of whose multipliers are changed here."""
NARROWED = {"gpu-sharing/tiny-0": 2}
"""With rounded sums by the hundred: so many multipliers of each derivation are changed."""
LARGE = {"gpu-sharing/contended-1", "gpu-sharing/contended-2", "gpu-sharing/contended-3"}
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
    return vipr.text(plain(ENTRIES[name].instance), ROWS[name])


def test_every_certificate_with_rows_is_accepted(accepts: Verdict) -> None:
    refused = [name for name in ROWS.keys() - LARGE if not accepts(written(name))]
    assert not refused
    problems = {name.partition("/")[0] for name in ROWS}
    assert len(ROWS) >= 47 and problems == {"rar-ddls", "gpu-sharing", "ddl-cluster", "g-vne"}
    assert any("narrow" in json.dumps(ROWS[name]["tree"], default=str) for name in ROWS)


def test_records_say_who_accepted_their_certificates() -> None:
    """Those with rows, which the test above asks about but for the three large ones, and no other."""
    assert {name for name, entry in ENTRIES.items() if entry.known.accepted} == set(ROWS)
    assert {who for entry in ENTRIES.values() for who in entry.known.accepted} == {NAME}


def test_every_changed_multiplier_is_refused(tmp_path: Path) -> None:
    """Of each sum (lin) and rounded sum (rnd), one by one, by 2^-40 and to the double; the unchanged ones are taken."""
    program, path = compiled(tmp_path, EACH, f'-DVIPRCHK="{SOURCE}"'), tmp_path / "x.vipr"
    sums = rounded = 0
    for name in ROWS:
        cert = ENTRIES[name].certificate
        text = written(name) if name in NARROWED or (cert is not None and cert.stat().st_size < 1500) else ""
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
    form, claim = vipr.about(given, path)
    assert form == "rows" and str(ROWS[name]["claim"]) == ("infeasible" if claim is None else str(claim))
    lines = text.splitlines()
    for start, change in (("C0 ", "C0 G 7 0"), ("RTP", "RTP range -1 inf"), ("INT", "INT 0"), ("%", "% nothing")):
        place = next(k for k, line in enumerate(lines) if line.startswith(start))
        path.write_text("\n".join([*lines[:place], change, *lines[place + 1 :]]) + "\n")
        with pytest.raises(Rejected, match=rf"line {place + 1}:"):
            vipr.about(given, path)
    other = next(entry for key, entry in ENTRIES.items() if key != name and key.split("/")[0] == name.split("/")[0])
    path.write_text(text)
    with pytest.raises(Rejected, match="line 1:"):
        vipr.about(plain(other.instance), path)


def test_a_certificate_that_proves_nothing_is_not_written() -> None:
    name = SMALL[0]
    claim = ROWS[name]["claim"]
    better = claim if claim == "infeasible" else str(Fraction(claim) + ENTRIES[name].problem.sense)
    with pytest.raises(Rejected):
        vipr.text(plain(ENTRIES[name].instance), {**ROWS[name], "claim": better, "tree": {"bound": {}}})
    priced = next(entry for entry in entries("hadar") if entry.certificate is not None)
    with pytest.raises(Rejected, match="no rows"):
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
    hadar = Path(__file__).parents[1] / "data" / "hadar-c03_preempt.json"
    ran = command("certify", hadar, "--out", where[1], "--vipr", where[2])
    assert ran.status == 4 and ran.out == 'not certified: certificates of hadar are of form "prices", without rows\n'

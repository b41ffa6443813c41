"""Judge a pull request that submits records to the library: ``library_submission.py BASE HEAD``, in a clone of BASE.

Each record that HEAD changes is offered to ``schedgap library submit`` beside the record of BASE: its schedule with the
objective it claims, and its certificate where that is new. The exit status is 0 where every one is better and says
exactly what ``submit`` would write; otherwise that of ``submit`` (1: a wrong objective, a broken constraint, a rejected
certificate; 2: a file that cannot be read; 5: better than a proven bound), or 1. HEAD is never checked out: its files
are taken from git's store as bytes, and nothing of it is run.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any

from schedgap.formulations.common.errors import InputError
from schedgap.tools.library.collection import KEY, BestKnown, Entry, read

COLLECTION = PurePosixPath("tools/library/collection")
LEVELS, SYSTEMS = (0, 2, 4), (3, 10, 19, 255)
"""What the head of a gzip file may say of its level, and of the system that wrote it: Unix, Windows, macOS, none."""
MOST_SAID = 4000
"""Bytes that who found and proved it, when, and further history may add to what ``submit`` writes."""


def git(*arguments: str) -> bytes:
    """What a git command prints."""
    return subprocess.run(["git", *arguments], check=True, capture_output=True).stdout


def content(commit: str, path: PurePosixPath) -> bytes | None:
    """A file of a commit, as it is stored (no filter, no conversion); None where it has none."""
    ran = subprocess.run(["git", "cat-file", "blob", f"{commit}:{path}"], capture_output=True)
    return ran.stdout if ran.returncode == 0 else None


def schedgap(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the package in a folder."""
    return subprocess.run(["schedgap", *command], cwd=folder, capture_output=True, text=True)


def entry_of(text: bytes, path: PurePosixPath, library: Path) -> Entry:
    """A record, as the package reads it, in a library of its own."""
    home = library / path.parent.name
    home.mkdir(parents=True, exist_ok=True)
    (home / path.name).write_bytes(text)
    return read(home / path.name)


def expected(offered: BestKnown, written: Entry, before: BestKnown | None) -> BestKnown:
    """What ``submit`` wrote with what is the submitter's to say; where that does not fit it is left out."""
    known = written.known
    said: dict[str, Any] = {}
    if offered.found and (before is None or known.solution != before.solution):
        said["found"] = offered.found.model_copy(update={"settings": {}})
    if offered.proven and before is not None and (known.bound, known.proof) != (before.bound, before.proof):
        said["proven"] = offered.proven.model_copy(update={"settings": {}})
    if offered.history[: len(known.history)] == known.history:
        said["history"] = offered.history
    name = offered.made.get("file")
    if before is None and isinstance(name, str) and name.isprintable() and "/" not in name and len(name) <= 200:
        said["made"] = {"file": name}
    return known.model_copy(update=said)


def differences(offered: bytes, written: bytes) -> list[str]:
    """Where a file is not what it should be, byte for byte."""
    if offered == written:
        return []
    new, old = json.loads(offered), json.loads(written)
    found = []
    for one, other in ((new, old), (new[KEY], old[KEY])):
        keys = sorted({*one, *other} - {KEY})
        texts = [{key: json.dumps(part[key]) for key in part} for part in (one, other)]  # as text true is not 1
        found += [key for key in keys if texts[0].get(key) != texts[1].get(key)]
    return found or ["spaces, order or how numbers are written"]


def packed(theirs: bytes, ours: bytes) -> bool:
    """Whether one gzip file has the content of another and hides nothing: one member, no name, no comment, no date.

    How it is compressed is another zlib's to choose, which may not come to a tenth more than ours.
    """
    whole = gzip.decompress(ours)
    reader = zlib.decompressobj(wbits=31)
    try:
        same = reader.decompress(theirs, len(whole) + 1) == whole and reader.eof
    except zlib.error:
        return False
    plain = theirs[:8] == ours[:8] and theirs[8] in LEVELS and theirs[9] in SYSTEMS
    return same and not reader.unused_data and plain and 10 * len(theirs) <= 11 * len(ours)


def as_packed(written: Entry, offered: str | None, theirs: bytes) -> Entry:
    """What ``submit`` wrote, with the certificate's file as it is offered where only its compression differs."""
    ours = written.certificate
    name = f"{written.id.partition('/')[2]}-{hashlib.sha256(theirs).hexdigest()[:8]}.cert"
    if ours is None or offered != name or offered == ours.name or not packed(theirs, ours.read_bytes()):
        return written
    (ours.parent / name).write_bytes(theirs)
    return Entry(written.known.model_copy(update={"certificate": name}), written.data, written.path)


def certificates(head: str, path: PurePosixPath, changed: set[str], after: Entry, before: str | None) -> list[str]:
    """What is wrong with the certificates that are changed beside a record: only what ``submit`` writes and removes."""
    name = after.known.certificate
    due = {one for one in (name, before) if one is not None} if name != before else set()
    faults = [f"{one}: `submit` does not write or remove it" for one in sorted(changed - due)]
    faults += [f"{one}: is missing among what is changed" for one in sorted(due - changed)]
    if before in due and content(head, path.parent / str(before)) is not None:
        faults.append(f"{before}: `submit` removes it")
    kept = after.certificate.read_bytes() if name in due and after.certificate is not None else None
    if kept is not None and content(head, path.parent / str(name)) != kept:
        faults.append(f"{name}: is not what `submit` writes")
    return faults


def submit(base: str, head: str, path: PurePosixPath, changed: set[str], folder: Path) -> int:
    """Offer one record, beside which these certificates are changed; the exit status."""
    text, known = content(head, path), content(base, path)
    if text is None:
        print(f"{path}: a record is not taken away")
        return 1
    before = None if known is None else entry_of(known, path, folder / "library").known
    try:
        record = entry_of(text, path, folder / "offered").known
    except InputError as error:
        print(ascii(str(error).replace(f"{folder}/offered/", ""))[1:-1])
        return 2
    if before is not None and before.certificate is not None:
        kept = content(base, path.parent / before.certificate) or b""
        (folder / "library" / path.parent.name / before.certificate).write_bytes(kept)
    old = None if before is None else before.found
    credit = record.found if record.found is not None and record.found != old else record.proven
    solution = {"status": "feasible", "objective": record.objective, "solution": record.solution}
    facts = {} if credit is None else credit.model_dump(include={"method", "engine", "seed"}, exclude_none=True)
    (folder / "solution.json").write_text(json.dumps(solution | facts))
    command = ["library", "submit", record.id, "solution.json", f"--by={credit.by if credit else ''}"]
    command += ["--library", "library", "--json"]
    if before is None:
        command += ["--instance", f"offered/{path.parent.name}/{path.name}"]
        command += [f"--license={record.license or ''}", f"--cite={record.cite or ''}"]
    theirs = b""
    if record.certificate is not None and (before is None or record.certificate != before.certificate):
        theirs = content(head, path.parent / record.certificate) or b""
        (folder / "offered.cert").write_bytes(theirs)
        command += ["--certificate", "offered.cert"]
    ran = schedgap(command, folder)
    print(ran.stdout + ran.stderr, end="")
    if ran.returncode:
        return ran.returncode
    if not json.loads(ran.stdout)["improved"]:
        print(f"{record.id}: no better than what is known")
        return 1
    written = as_packed(read(folder / "library" / path.parent.name / path.name), record.certificate, theirs)
    due = Entry(expected(record, written, before), written.data, written.path).write(folder / "due")
    assert due.path is not None
    others = differences(text, due.path.read_bytes())
    if others:
        print(f"{record.id}: the record is not what `schedgap library submit` writes: {', '.join(map(ascii, others))}")
    elif len(text) > len((folder / "library" / path.parent.name / path.name).read_bytes()) + MOST_SAID:
        others = [f"{record.id}: more than {MOST_SAID} bytes are said of who found it and when"]
        print(*others)
    faults = certificates(head, path, changed, written, None if before is None else before.certificate)
    print(*(ascii(f"{record.id}: {one}")[1:-1] for one in faults), sep="\n", end="\n" * bool(faults))
    return 1 if others or faults else 0


def mode(commit: str, path: str) -> str:
    """The mode of a file of a commit; "100644" also where it has none: it is removed."""
    listed = git("--literal-pathspecs", "ls-tree", "--full-tree", "-z", commit, "--", path)
    return listed[:6].decode() or "100644"


def record_of(path: PurePosixPath) -> PurePosixPath | None:
    """The record whose certificate this would be."""
    stem = re.sub(r"-[0-9a-f]{8}$", "", path.stem)
    return path.with_name(f"{stem}.json") if path.suffix == ".cert" and stem != path.stem else None


def main(base: str, head: str) -> int:
    """Judge everything that HEAD changes."""
    fork = git("merge-base", base, head).decode().strip()
    names = git("diff", "--no-ext-diff", "--no-renames", "--name-only", "-z", fork, head)
    lines = [line for line in os.fsdecode(names).split("\0") if line]
    links = [line for line in lines if mode(head, line) != "100644"]
    if links:
        print(f"a submission has plain files alone, not links or programs: {', '.join(map(ascii, links))}")
        return 1
    changed = [PurePosixPath(line) for line in lines]
    records = [path for path in changed if path.parent.parent == COLLECTION and path.suffix == ".json"]
    others = [path for path in changed if path not in records and record_of(path) not in records]
    if others or not records:
        print(f"a submission changes records alone, this one: {', '.join(map(ascii, map(str, others))) or 'none'}")
        return 1
    statuses = []
    for path in records:
        certs = {other.name for other in changed if record_of(other) == path}
        with tempfile.TemporaryDirectory() as folder:
            statuses.append(submit(base, head, path, certs, Path(folder)))
    print(f"{statuses.count(0)} of {len(statuses)} records are better and right")
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Judge a pull request that submits records to the library: ``library_submission.py BASE HEAD``, in a clone of BASE.

Each record that HEAD changes is offered to ``schedgap library submit`` beside the record of BASE: its schedule with the
objective it claims, and its certificate where that is new. The exit status is 0 where every one is better and says
exactly what ``submit`` would write; otherwise that of ``submit`` (1: a wrong objective, a broken constraint, a rejected
certificate; 2: a file that cannot be read; 5: better than a proven bound), or 1. HEAD is never checked out: its files
are taken from git's store as bytes, and nothing of it is run.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

COLLECTION = PurePosixPath("benchmarks/library/collection")
KEY = "reference_record"
FREE = ("found", "proven", "made", "history", "certificate")
"""What is the submitter's to say, who found and proved it, or is compared in another way. All else is as ``submit``
writes it, the instance, too."""


def git(*arguments: str) -> bytes:
    """What a git command prints."""
    return subprocess.run(["git", *arguments], check=True, capture_output=True).stdout


def content(commit: str, path: PurePosixPath) -> bytes | None:
    """A file of a commit, as it is stored (no filter, no conversion); None where it has none."""
    ran = subprocess.run(["git", "cat-file", "blob", f"{commit}:{path}"], capture_output=True)
    return ran.stdout if ran.returncode == 0 else None


def whole_of(text: bytes, path: PurePosixPath) -> dict[str, Any]:
    """An instance with the record of this name."""
    try:
        found = json.loads(text)
        if found[KEY]["id"] == f"{path.parent.name.replace('_', '-')}/{path.stem}":
            return dict(found)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise SystemExit(f"{path}: is not the record of this name")


def differences(offered: dict[str, Any], written: dict[str, Any], certificate: bytes | None, stem: str) -> list[str]:
    """Where a record is not what ``submit`` wrote."""
    found = [key for key in {**written, **offered} if key != KEY and offered.get(key) != written.get(key)]
    old, new = written[KEY], offered[KEY]
    found += [key for key in {**old, **new} if key not in FREE and new.get(key) != old.get(key)]
    past = old.get("history", [])
    if new.get("history", [])[: len(past)] != past:
        found.append("history")
    digest = certificate and hashlib.sha256(certificate).hexdigest()[:8]
    if new.get("certificate") != (f"{stem}-{digest}.cert" if "certificate" in old else None):
        found.append("certificate")
    return found


def submit(base: str, head: str, path: PurePosixPath, folder: Path) -> int:
    """Offer one record; the exit status."""
    offered, known = content(head, path), content(base, path)
    if offered is None:
        print(f"{path}: a record is not taken away")
        return 1
    whole = whole_of(offered, path)
    record = whole[KEY]
    (folder / "instance.json").write_bytes(offered)
    library = folder / "library" / path.parent.name
    library.mkdir(parents=True)
    before: dict[str, Any] = {}
    if known is not None:
        (library / path.name).write_bytes(known)
        before = whole_of(known, path)[KEY]
        if "certificate" in before:
            (library / before["certificate"]).write_bytes(content(base, path.parent / before["certificate"]) or b"")
    credit = record.get("found") or record.get("proven") or {}
    solution = {"status": "feasible", "objective": record.get("objective"), "solution": record.get("solution")}
    solution |= {key: credit[key] for key in ("method", "engine", "seed") if key in credit}
    (folder / "solution.json").write_text(json.dumps(solution))
    command = ["schedgap", "library", "submit", record["id"], "solution.json", f"--by={credit.get('by', '')}"]
    command += ["--library", "library", "--json"]
    if known is None:
        command += ["--instance", "instance.json"]
        command += [f"--license={record.get('license', '')}", f"--cite={record.get('cite', '')}"]
    certificate = None
    if "certificate" in record:
        certificate = content(head, path.parent / str(record["certificate"])) or b""
        if record["certificate"] != before.get("certificate"):
            (folder / "offered.cert").write_bytes(certificate)
            command += ["--certificate", "offered.cert"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    print(ran.stdout + ran.stderr, end="")
    if ran.returncode:
        return ran.returncode
    if not json.loads(ran.stdout)["improved"]:
        print(f"{record['id']}: no better than what is known")
        return 1
    others = differences(whole, whole_of((library / path.name).read_bytes(), path), certificate, path.stem)
    if others:
        print(f"{record['id']}: the record is not what `schedgap library submit` writes: {', '.join(others)}")
    return 1 if others else 0


def belongs(path: PurePosixPath, records: list[PurePosixPath]) -> bool:
    """Whether it is a certificate of one of these records."""
    stem = re.sub(r"-[0-9a-f]{8}$", "", path.stem)
    return path.suffix == ".cert" and path.with_name(f"{stem}.json") in records


def main(base: str, head: str) -> int:
    """Judge everything that HEAD changes."""
    fork = git("merge-base", base, head).decode().strip()
    names = git("diff", "--no-ext-diff", "--no-renames", "--name-only", "-z", fork, head).decode(errors="replace")
    changed = [PurePosixPath(line) for line in names.split("\0") if line]
    records = [path for path in changed if path.parent.parent == COLLECTION and path.suffix == ".json"]
    others = [path for path in changed if path not in records and not belongs(path, records)]
    if others or not records:
        print(f"a submission changes records alone, this one: {', '.join(map(ascii, map(str, others))) or 'none'}")
        return 1
    statuses = []
    for path in records:
        with tempfile.TemporaryDirectory() as folder:
            statuses.append(submit(base, head, path, Path(folder)))
    print(f"{statuses.count(0)} of {len(statuses)} records are better and right")
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

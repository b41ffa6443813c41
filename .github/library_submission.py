"""Judge a pull request that submits records to the library: ``library_submission.py BASE HEAD``, in a clone.

Each record that HEAD changes is offered to ``schedgap library submit`` beside the record of BASE: its schedule with the
objective it claims, and its certificate where that is new. The exit status is 0 where every one is better and says
exactly what ``submit`` would write; otherwise that of ``submit`` (1: a wrong objective, a broken constraint, a rejected
certificate; 2: a file that cannot be read; 5: better than a proven bound), or 1. Nothing of HEAD is run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

COLLECTION = PurePosixPath("benchmarks/library/collection")
KEY = "reference_record"
WRITTEN = ("status", "objective", "bound", "proof", "solution")
"""What has to be as ``submit`` writes it; who is named, and what was before, is the submitter's to say."""


def git(*arguments: str) -> bytes:
    """What a git command prints."""
    return subprocess.run(["git", *arguments], check=True, capture_output=True).stdout


def content(commit: str, path: PurePosixPath) -> bytes | None:
    """A file of a commit; None where it has none."""
    ran = subprocess.run(["git", "show", f"{commit}:{path}"], capture_output=True)
    return ran.stdout if ran.returncode == 0 else None


def record_of(text: bytes, path: PurePosixPath) -> dict[str, Any]:
    """The record in a file."""
    try:
        found = json.loads(text)[KEY]
        if isinstance(found, dict) and found.get("id") == f"{path.parent.name.replace('_', '-')}/{path.stem}":
            return found
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise SystemExit(f"{path}: is not the record of this name")


def submit(base: str, head: str, path: PurePosixPath, folder: Path) -> int:
    """Offer one record; the exit status."""
    offered, known = content(head, path), content(base, path)
    if offered is None:
        print(f"{path}: a record is not taken away")
        return 1
    record = record_of(offered, path)
    (folder / "instance.json").write_bytes(offered)
    library = folder / "library" / path.parent.name
    library.mkdir(parents=True)
    if known is not None:
        (library / path.name).write_bytes(known)
        before = record_of(known, path)
        kept = before.get("certificate")
        if kept:
            (library / kept).write_bytes(content(base, path.parent / kept) or b"")
    credit = record.get("found") or record.get("proven") or {}
    whole = {"status": "feasible", "objective": record.get("objective"), "solution": record.get("solution")}
    whole |= {key: credit[key] for key in ("method", "engine", "seed") if key in credit}
    (folder / "solution.json").write_text(json.dumps(whole))
    command = ["schedgap", "library", "submit", record["id"], "solution.json", "--by", str(credit.get("by", ""))]
    command += ["--library", "library", "--json"]
    if known is None:
        command += ["--instance", "instance.json"]
        command += ["--license", str(record.get("license", "")), "--cite", str(record.get("cite", ""))]
    certificate = record.get("certificate")
    if certificate is not None and (known is None or certificate != before.get("certificate")):
        (folder / "offered.cert").write_bytes(content(head, path.parent / str(certificate)) or b"")
        command += ["--certificate", "offered.cert"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    print(ran.stdout + ran.stderr, end="")
    if ran.returncode:
        return ran.returncode
    if not json.loads(ran.stdout)["improved"]:
        print(f"{record['id']}: no better than what is known")
        return 1
    written = record_of((library / path.name).read_bytes(), path)
    others = [key for key in WRITTEN if written.get(key) != record.get(key)]
    if others:
        print(f"{record['id']}: the record is not what `schedgap library submit` writes: {', '.join(others)}")
    return 1 if others else 0


def main(base: str, head: str) -> int:
    """Judge everything that HEAD changes."""
    fork = git("merge-base", base, head).decode().strip()
    changed = [PurePosixPath(line) for line in git("diff", "--no-renames", "--name-only", fork, head).decode().split()]
    records = [path for path in changed if path.parent.parent == COLLECTION and path.suffix == ".json"]
    others = [path for path in changed if path.parent.parent != COLLECTION or path.suffix not in (".json", ".cert")]
    if others or not records:
        print(f"a submission changes records alone, this one: {', '.join(map(str, others or changed)) or 'nothing'}")
        return 1
    statuses = []
    for path in records:
        with tempfile.TemporaryDirectory() as folder:
            statuses.append(submit(base, head, path, Path(folder)))
    print(f"{statuses.count(0)} of {len(statuses)} records are better and right")
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

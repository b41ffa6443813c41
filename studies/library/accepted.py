"""Ask a checker of others about the certificates: ``python -m studies.library.accepted VIPRCHK``.

Each certificate of the collection that has rows is written as a file of VIPR and given to that program (of
scipopt/vipr); records whose certificate it accepts say so. What it refuses is printed, with exit status 1.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.content import plain
from schedgap.solvers.certificates.linear import Rejected
from schedgap.tools.library.collection import SHIPPED, Entry, entries
from schedgap.tools.vipr.writing import vipr_text

NAME = "viprchk 1.1 (scipopt/vipr)"


def accepts(program: str, text: str) -> bool:
    """Whether the program says that everything in a file of VIPR is derived."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.vipr"
        path.write_text(text)
        ended = subprocess.run([program, str(path)], capture_output=True, text=True, check=False)
    return ended.returncode == 0 and "Successfully" in ended.stdout


def asked(entry: Entry, program: str) -> bool | None:
    """Whether it accepts the certificate of a record; None where that has no rows."""
    if entry.certificate is None:
        return None
    try:
        written = vipr_text(plain(entry.instance), checker.load(str(entry.certificate)))
    except Rejected:
        return None
    return accepts(program, written)


def main() -> int:
    """Ask about all, and write the records that change."""
    refused = 0
    for entry in entries():
        verdict = asked(entry, sys.argv[1])
        known = entry.known.model_copy(update={"accepted": [NAME] if verdict else []})
        if verdict is not None:
            print(f"{entry.id}: {'accepted' if verdict else 'REFUSED'}", flush=True)
            refused += not verdict
        if known != entry.known:
            Entry(known, entry.data, entry.path).write(SHIPPED)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())

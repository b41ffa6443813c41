"""Writes the ledger's verdicts that ship: ``python -m studies.ledger_verdicts FOLDER``.

From the ``ledger.json`` and the counterexamples that ``schedgap verify --out FOLDER`` has left.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from schedgap.benchmarks.judging.ledger_verdicts import LEDGER_FILE
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Json, read_json


def collect(folder: Path) -> dict[str, Json]:
    """The verdicts of the ledger in `folder`, as :data:`LEDGER_FILE` holds them."""
    found = {}
    ledger = read_json(folder / "ledger.json")
    for row in ledger["guarantees"]:
        held, refuted = row["held"], row["refuted"]
        counts = {"held": f" ({held * row['per_sample'][0]:,})", "refuted": f" ({refuted:,} of {held + refuted:,})"}
        one = {"verdict": row["verdict"], "words": row["verdict"] + counts.get(row["verdict"], "")}
        if row["counterexample"] is not None:
            one["counterexample"] = read_json(folder / Path(row["counterexample"]).name)
        found[row["id"]] = one
    return {"seed": ledger["seed"], "verdicts": found}


if __name__ == "__main__":
    content = collect(Path(sys.argv[1]))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in content["verdicts"].items())
    write_text(LEDGER_FILE, f'{{"seed": {content["seed"]}, "verdicts": {{\n{lines}\n}}}}\n')

"""The rings of the house: one problem stands without the other seven and without all tools."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.deletion import BUILT_ON

from schedgap.catalogue.registry import BUILT_IN

TESTS = Path(__file__).resolve().parents[1]
TOOLS = sorted(path.name for path in (TESTS.parent / "tools").glob("[a-z]*") if path.is_dir())
USES = {"ddljs": {"g-vne"}}
"""Problems that a problem is built on."""
CLAIM = {
    "rar-ddls": "000-theorem-5",
    "hadar": "002-theorem-2",
    "gpu-sharing": "003-theorem-1",
    "comm-contention": "001-theorem-1",
    "ddl-cluster": "001-message-time-srsf-1",
    "g-vne": "004-theorem-8",
    "ddljs": "004-lemma-5",
}
"""One claim of each problem that has one."""
HEURISTIC = {
    "rar-ddls": "ff",
    "hadar": "yarn-cs",
    "gpu-sharing": "fifo",
    "comm-contention": "adadual",
    "ddl-cluster": "srsf-1",
    "g-vne": "greedy",
    "ddljs": "gadget",
    "gang-placement": "kube-least-allocated",
}


def answers(problems: set[str], tools: set[str], folder: Path, commands: list[str]) -> dict[str, tuple[int, list[str]]]:
    """Exit status and last error line of each command in a house without these problems and tools."""
    ran = subprocess.run(
        [sys.executable, "support/deletion.py", ",".join(sorted(problems)), ",".join(sorted(tools)), str(folder)],
        input="\n".join(commands),
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(lines) == len(commands), ran.stderr
    return {command: (status, told) for command, status, told in lines}


@pytest.mark.parametrize("problem", BUILT_IN)
def test_a_problem_without_the_other_seven_and_without_tools(problem: str, tmp_path: Path) -> None:
    fast = HEURISTIC[problem]
    hunt = f"hunt {problem}/{fast} --around i.json --set evaluations=1 --budget 1 --workers 1 --out h"
    commands = [
        f"generate {problem} --preset tiny --out i.json",
        "solve i.json --out s.json",
        "solve i.json --method highs",
        "solve i.json --method cpsat",
        "check i.json s.json",
        f"compare i.json --methods highs,{fast} --time-limit 20",
        "certify i.json --out c.cert",
        hunt,
        f"bench i.json --methods {fast} --workers 1 --out b",
        "plot i.json s.json --out p.svg",
        "list",
        *([f"verify {CLAIM[problem]} --instances 1 --workers 1"] if problem in CLAIM else []),
    ]
    statuses = answers(set(BUILT_IN) - {problem} - USES.get(problem, set()), set(TOOLS), tmp_path, commands)
    # A short hunt may find nothing. CP-SAT takes no model of comm-contention whose times are multiples of no tick.
    allowed = {hunt: (0, 4)} | ({"solve i.json --method cpsat": (2,)} if problem == "comm-contention" else {})
    wrong = {command: told for command, told in statuses.items() if told[0] not in allowed.get(command, (0,))}
    assert not wrong


DATA = TESTS / "data"
FAMILY = TESTS.parent / "docs" / "counterexamples" / "families" / "comm-contention-adadual.json"
ANSWER = {
    "audit": f"audit {DATA / 'field' / 'sacct.txt'} {DATA / 'field' / 'scontrol-nodes.txt'} --methods fifo --window 40",
    "judge": f"judge {DATA / 'world' / 'judge' / 'k8s-eight-of-8G.json'} --time-limit 5",
    "evaluation": "new heuristic mine --out made",
    "families": f"generate {FAMILY} --set n=2 --out n.json",
    "laboratory": "list experiments",
    "library": "library list --problem rar-ddls",
}
"""One command that each tool answers; online is a part of evaluate and of the API."""


@pytest.mark.parametrize("tool", TOOLS)
def test_all_others_answer_without_a_tool(tool: str, tmp_path: Path) -> None:
    gone = {tool} | {other for other, under in BUILT_ON.items() if tool in under}
    commands = ["generate rar-ddls --preset tiny --out i.json", "solve i.json --out s.json", "check i.json s.json"]
    commands += [command for name, command in ANSWER.items() if name not in gone]
    statuses = answers(set(), gone, tmp_path, commands)
    assert not {command: told for command, told in statuses.items() if told[0] not in (0, 4)}

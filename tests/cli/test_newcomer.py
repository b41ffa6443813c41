"""What a newcomer does with docs/extending.md and its pages alone: an engine, a heuristic with a claim, a problem."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

from support.shell import Shell

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("extending", "evaluating", "extending-engine", "extending-problem")


def blocks(language: str, *pages: str) -> Iterator[str]:
    """The blocks of a language on some pages."""
    for page in pages:
        yield from re.findall(rf"```{language}\n(.*?)```", (DOCS / f"{page}.md").read_text("utf-8"), re.DOTALL)


def install(folder: Path, data: dict[str, dict[str, dict[str, dict[str, str]]]]) -> None:
    """What an installer makes of a pyproject.toml, without asking an index for setuptools."""
    metadata = folder / "newcomer-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: newcomer\nVersion: 1.0\n")
    groups = data["project"]["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{a} = {b}\n" for a, b in entries.items()) for group, entries in groups]
    (metadata / "entry_points.txt").write_text("".join(lines))


def test_the_page_on_extending_is_enough(tmp_path: Path) -> None:
    for block in blocks("python", *PAGES):
        if named := re.match(r"# (\w+\.py)\n", block):
            (tmp_path / named[1]).write_text(block)
    (project,) = (tomllib.loads(text) for text in blocks("toml", "extending"))
    assert sorted(path.stem for path in tmp_path.glob("*.py")) == sorted(project["tool"]["setuptools"]["py-modules"])

    commands = re.findall(r"^    (pip|schedgap) (.*)$", (DOCS / "extending.md").read_text("utf-8"), re.MULTILINE)
    assert commands.pop(0) == ("pip", "install -e .")
    install(tmp_path, project)
    printed = {}
    with Shell([tmp_path]) as shell:
        for _, line in commands:
            alone = ["--workers", "1"] * line.startswith(("verify", "hunt"))  # each more would import everything
            ran = shell(tmp_path, *shlex.split(line), *alone)
            assert ran.status == 0, (line, ran.err)
            printed[line.rpartition(" --set")[0] or line] = ran.out

    def shown(begin: str) -> str:
        return next(text for line, text in printed.items() if line.startswith(begin))

    assert re.search(r"^one-by-one .* to optimum", shown("compare tiny.json"), re.MULTILINE)
    assert re.search(r"^one-by-one +own +(held|refuted)", shown("verify --claims"), re.MULTILINE)
    assert "one-by-one: " in shown("hunt one-by-one")
    assert re.search(r"method +enumeration \(.*\n +status +optimal, certified", shown("solve gangs.json"))
    assert "certified: optimal" in shown("certify machines.json")
    assert "certificate" in shown("check machines.json")
    assert re.search(r"^graham .* held", shown("verify graham"), re.MULTILINE)
    assert 1.3 < float(re.search(r"ratio ([0-9.]+)", shown("hunt machines/list"))[1]) <= 1.5  # type: ignore[index]

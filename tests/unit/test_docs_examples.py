"""The examples in the docs run as they are printed."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import tomllib
from fractions import Fraction
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems
from schedgap.cli.main import COMMANDS, _parser, main
from schedgap.solvers.certificates.make import prove

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES_OF_SITE = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def _python_blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_synopsis_has_every_command_with_its_options() -> None:
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8").split("```")[1]
    shown = {
        name: "".join(re.findall(rf"^schedgap [a-z|]*\b{name}\b.*(?:\n .*)*", text, re.MULTILINE)) for name in COMMANDS
    }
    assert "every command takes `--traceback`" in (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        (chosen,) = [action for action in _parser(name)._actions if action.dest == "command"]
        options = {word for action in chosen.choices[name]._actions for word in action.option_strings}  # type: ignore[index,union-attr,call-overload]
        missing = [word for word in sorted(options - {"-h", "--help", "--traceback"}) if word not in shown[name]]
        assert shown[name] and not missing, (name, missing)


def test_own_heuristic_of_the_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(_python_blocks("docs/evaluating.md")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["generate", "rar-ddls", "--preset", "tiny", "--seed", "1", "--out", "tiny.json"]) == 0
    assert main(["compare", "tiny.json", "--methods", "cp,sjf-bco,mine:one_by_one"]) == 0
    table = capsys.readouterr().out
    line = next(row for row in table.splitlines() if row.startswith("mine:one_by_one"))
    ratio = float(re.search(r"([0-9.]+) to optimum", line).group(1))  # type: ignore[union-attr]
    assert ratio >= 1


@pytest.mark.parametrize("topic", ["guarantee", "engine", "problem"])
def test_examples_of_extending(topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page has a module to save and a script that uses it, that of problems the rules of its certificates, too."""
    module, script, *rules = _python_blocks(f"docs/extending-{topic}.md")
    name = module.split()[1]
    (tmp_path / name).write_text(module, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    names: dict[str, Any] = {"__name__": "docs"}
    exec(compile(script, topic, "exec"), names)
    if topic == "guarantee":
        assert names["ledger"].rows[0].verdict == "refuted"
        assert names["found"].worst.refuted and len(names["found"].worst.data["jobs"]) == 3
    elif topic == "engine":
        assert [(str(one.status), one.objective) for one in names["answers"]] == [("optimal", 12.0)] * 2
    else:
        assert "not refuted here" in names["table"].to_text()
        assert names["found"].value == 1.5
        (tmp_path / "machines_rules.py").write_text(rules[0], encoding="utf-8")
        package = tmp_path / "machines-1.0.dist-info"
        package.mkdir()
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: machines\nVersion: 1.0\n")
        (package / "entry_points.txt").write_text("[schedgap.certificates]\nmachines = machines_rules\n")
        instance, best = names["machines"].generate(1), names["table"].agreement.optimum
        assert prove(instance, Fraction(best), None)["claim"] == str(int(best))


def test_models_are_changed_written_and_brought_back_as_in_the_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second block solves a changed model in SCIP, through a file."""
    monkeypatch.chdir(tmp_path)
    for block in _python_blocks("docs/models.md"):
        exec(compile(block, "docs/models.md", "exec"), {"__name__": "docs"})
    assert re.search(r"^4 4\.0$", capsys.readouterr().out, re.M)


def test_own_heuristic_hunted_as_in_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = _python_blocks("docs/hunting.md")
    names: dict[str, object] = {"__name__": "docs"}
    exec(compile(block, "docs/hunting.md", "exec"), names)
    assert names["found"].value > 1  # type: ignore[attr-defined]
    assert names["found"].path.is_file()  # type: ignore[attr-defined]


@pytest.mark.parametrize("page", [*sorted(p.name for p in (ROOT / "docs").glob("*.md")), "../README.md"])
def test_links_between_pages_lead_somewhere(page: str) -> None:
    path = (ROOT / "docs" / page).resolve()
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{page}: {target}"


def test_the_first_example_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = readme.split("## A first example")[1].split("The same in Python")[0]
    monkeypatch.chdir(tmp_path)
    for line in re.findall(r"^    schedgap (.*)$", example, flags=re.MULTILINE):
        command, _, out = line.split(" #")[0].partition(">")
        assert main(command.split()) == 0
        printed = capsys.readouterr().out
        if out:
            (tmp_path / out.strip()).write_text(printed, encoding="utf-8")
    assert '"objective": 14' in (tmp_path / "best.json").read_text(encoding="utf-8")
    assert '"objective": 18' in (tmp_path / "sjf.json").read_text(encoding="utf-8")
    assert (tmp_path / "gap.svg").stat().st_size > 1000
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(_python_blocks("README.md")[0], "README.md", "exec"), names)
    assert "ratio to the optimum 1.28" in capsys.readouterr().out


def test_the_headline_of_the_readme_is_the_ledgers() -> None:
    from collections import Counter

    from schedgap.benchmarks.judging.ledger_verdicts import ledger_verdict
    from schedgap.catalogue.registry import all_problems

    counts: Counter[tuple[str, str]] = Counter()
    for problem in all_problems().values():
        for guarantee in problem.guarantees():
            counts[guarantee.kind, ledger_verdict(guarantee.id).verdict] += 1
    printed = {verdict: n for (kind, verdict), n in counts.items() if kind == "printed"}
    repaired = {verdict: n for (kind, verdict), n in counts.items() if kind == "repaired"}
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert (
        f"Of {sum(printed.values())} printed statements, {printed['held']} held, {printed['refuted']} were refuted"
        in text
    )
    assert f"and {printed['measured']} are growths" in text
    assert f"{sum(repaired.values())} repaired statements with proofs: {repaired['held']} held" in text


def test_commands_of_the_page_on_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs" / "certificates.md").read_text(encoding="utf-8")
    commands, alone = re.findall(r"```\n(.*?)```", text, flags=re.DOTALL)[:2]
    monkeypatch.chdir(tmp_path)
    for line in commands.splitlines():
        assert main(line.split()[1:]) == 0, line
    out = capsys.readouterr().out
    assert "certified: optimal" in out and "certificate: accepted" in out and "optimal, exactly" in out
    words = alone.split()
    run = subprocess.run([sys.executable, str(ROOT / words[1]), *words[2:]], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("proven: ") and "optimal, if the schedule is feasible" in run.stdout


OPTIONAL = {"scip"}
"""Engines of extras, of every problem: a sentence below the table has them."""


@pytest.mark.parametrize("problem", all_problems().values(), ids=lambda p: p.id)
def test_the_readme_names_every_method(problem: Problem) -> None:
    row = next(line for line in README.splitlines() if line.startswith(f"| `{problem.id}`"))
    assert {method.id for method in problem.methods} - OPTIONAL == set(re.findall(r"`([^`]+)`", row)) - {problem.id}
    assert all(f"`--method {engine}`" in README for engine in OPTIONAL)


def test_every_module_that_a_page_runs_is_installed() -> None:
    """``python -m schedgap...`` works after ``pip install .``, ``python -m studies...`` in a checkout."""
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    run = 0
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for line in page.read_text(encoding="utf-8").splitlines():
            for module in re.findall(r"python -m ((?:schedgap|studies)(?:\.[a-z]\w*)+)", line):
                run += 1
                if module.startswith("studies"):
                    assert find_spec(module) is not None, f"{page.name}: {module}"
                    continue
                parent = module.rpartition(".")[0]
                assert module in packages or parent in packages or "pip install -e" in line, f"{page.name}: {module}"
    assert run > 3


def test_the_online_policy_of_the_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its card is the printed one but for seconds."""
    text = (ROOT / "docs" / "online.md").read_text(encoding="utf-8")
    (tmp_path / "my.py").write_text(_python_blocks("docs/online.md")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    line, evaluated = re.findall(r"^ +(schedgap .*)$", text, re.MULTILINE)
    for seed in "123":
        assert main(line.replace("$seed", seed).split()[1:]) == 0
    capsys.readouterr()
    assert main([*evaluated.split()[1:], "--workers", "1"]) == 0
    printed, shown = (
        [row for row in part.splitlines() if not re.search(r"\d (s on average|us,)", row)]
        for part in (capsys.readouterr().out, text.split("```\n")[2])
    )
    assert len(shown) > 15 and printed[: len(shown)] == shown


def test_everything_public_is_on_the_page_of_the_api() -> None:
    """By its own entry, or as a member that an entry of its module names."""
    import schedgap

    text = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    entries = dict(re.findall(r"^::: ([\w.]+)\n((?: +.*\n)+)", text, re.MULTILINE))
    members = {f"{home}.{one}" for home, options in entries.items() for one in re.findall(r"\w+", options)}
    tools = {entry.name: entry.module for entry in entry_points(group="schedgap.functions")}
    homes = {name: schedgap._HOME.get(name) or tools[name] for name in schedgap.__all__}
    absent = [name for name, home in homes.items() if f"{home}.{name}" not in members | entries.keys()]
    assert not absent
    for entry in entries:  # and each entry is there
        home, _, name = entry.rpartition(".")
        assert hasattr(import_module(home), name) or find_spec(entry) is not None, entry


def _anchors(page: Path) -> set[str]:
    """Where links into a page may lead: its headings as the site names them, ids, and the entries of the API."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        text = "\n\n".join(
            "".join(one["source"]) for one in json.loads(text)["cells"] if one["cell_type"] == "markdown"
        )
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    words = [re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", head) for head in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    slugs = [re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", word).strip().lower()) for word in words]
    return {*slugs, *re.findall(r'(?:id="|\{ ?#)([\w-]+)', text), *re.findall(r"^::: ([\w.]+)", text, re.MULTILINE)}


def test_every_link_between_pages_leads_to_a_file_and_to_a_heading_of_it() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    pages = [page for page in pages if page.parent.name != "notes"]  # not on the site: pages as they were
    dead, tried = [], 0
    for page in pages:
        text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            if "://" in path or link.startswith("mailto:"):
                continue
            target = page.parent / path if path else page
            tried += bool(anchor)
            pictured = target.suffix in (".md", ".ipynb")
            if not target.exists() or (anchor and pictured and anchor not in _anchors(target)):
                dead.append(f"{page.relative_to(ROOT)}: {link}")
    assert tried > 50 and not dead, dead


def test_a_registrys_page_says_first_where_its_links_lead() -> None:
    """There is no public address: links to docs/ are dead there, and the page must not hide it."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    first, *rest = told["tool"]["setuptools"]["dynamic"]["readme"]["file"]
    relative = re.findall(r"\]\((?!https?:|#)", README)
    assert rest == ["README.md"] and "readme" in told["project"]["dynamic"]
    assert relative and "urls" not in told["project"]
    assert "On a package registry: links without an address" in (ROOT / first).read_text(encoding="utf-8")


def test_the_versions_that_ci_ran_with_are_all_there_and_within_the_bounds() -> None:
    """Actions are named by hash, packages by version: what judges submissions is known to the letter."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / ".ci" / "versions.txt").read_text(encoding="utf-8").splitlines()
    versions = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    extras = [told["optional-dependencies"][name] for name in ("test", "lint", "docs")]
    for required in map(Requirement, [*told["dependencies"], *itertools.chain(*extras)]):
        assert versions[canonicalize_name(required.name)] in required.specifier, required
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        for used in re.findall(r"uses: (\S+)", workflow.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", used), used


_RIDDLE = re.compile(r"(?:^|[.!?] |\| )((?:Of (?!\d|the \d)|Those |Whom |By which |In which |To which )[^.|]{5,60})")
"""Sentences that begin with what they are about only later: a number may stand behind Of."""


@pytest.mark.parametrize("page", PAGES_OF_SITE, ids=lambda path: path.stem)
def test_sentences_name_their_subject_first(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n") if not part.startswith("    ")]
    assert not [found for part in paragraphs for found in _RIDDLE.findall(part)]

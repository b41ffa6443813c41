"""The report is one file that needs nothing else; two runs compare; rows export."""

from __future__ import annotations

import base64
import csv
import gzip
import itertools
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from support.browser import BROWSER, opened
from support.toy import toy

import schedgap
from schedgap.benchmarks.anytime import TARGETS
from schedgap.benchmarks.figures.style import new_figure, save, whole_numbers
from schedgap.benchmarks.report.analysis import COLUMNS
from schedgap.benchmarks.report.export import export
from schedgap.benchmarks.report.page import picture, templates
from schedgap.benchmarks.report.run_page import write_report
from schedgap.benchmarks.report.sheet import Marked
from schedgap.benchmarks.suites.runner import Run, bench
from schedgap.benchmarks.sweep.store import FILE, Store, StoreError
from schedgap.catalogue.registry import load_instance
from schedgap.formulations.common.errors import InputError

ROOT = Path(__file__).parents[2]
VOID = {"meta", "img", "br", "path", "use", "rect", "image", "link", "input"}


class _Page(HTMLParser):
    """Reads a page: is every tag closed, and does anything refer to another place?"""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.text: list[str] = []
        self.anchors: set[str] = set()
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        for name in ("src", "href", "xlink:href", "data"):
            value = values.get(name) or ""
            if value and not value.startswith(("#", "data:", "instances/", "counterexamples/")):
                self.outside.append(value)
        assert tag not in ("link", "iframe")
        if "id" in values:
            self.anchors.add(values["id"] or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.handle_starttag(tag, attrs)
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def unpacked(content: str, name: str) -> Any:
    """What a page holds compressed."""
    return json.loads(gzip.decompress(base64.b64decode(content.split(f'id="{name}">')[1].split("<")[0])))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    problems = [toy("raising", "too-good")]
    out = tmp_path_factory.mktemp("runs") / "r"
    return bench(["quick", "machines", "raising", "wrong"], out=out, workers=2, problems=problems)


def test_the_report_needs_nothing_else_and_tells_everything(run: Run) -> None:
    assert run.report is not None
    content = run.report.read_text()
    page = _Page(content)
    assert page.open == [] and page.outside == []
    assert "http://" not in content.replace("http://www.w3.org/", "")
    assert "url(http" not in content and "@import" not in content
    words = " ".join(" ".join(page.text).split())
    assert page.anchors >= {"answer", "files"}
    packed = unpacked(content, "files")
    links = {part.split('"')[0] for part in content.split('href="')[1:]}
    assert {link for link in links if link.startswith(("instances/", "counterexamples/"))} <= set(packed)
    for name, data in packed.items():
        assert data == json.loads((run.folder / name).read_text())
    for part in (
        "instances of 1 problem, ",
        "How far the heuristics are from the best",
        "quick: toy, jobs on identical machines",
        "refuted (5 of 8)",
        "not refuted here (8)",
        "not in the ledger",
        "never counted as solved",
        "times hold no compilation",
        "Worst case of list",
        "optimum (brute): makespan",
        "makespan <= (2 - 1/m) OPT",
        "list machines=2",
        "Disagreements",
        "too-good proves",
        "ZeroDivisionError: on purpose",
        "What ran where",
        "Python 3.",
        "highspy",
        "digest of the code",
        "Seeds of instances and of methods: 0 to 5",
    ):
        assert part in words, part
    assert len(unpacked(content, "figures")) == content.count("data-figure=") >= 4
    assert {"quick-toy", "where"} <= page.anchors


def test_the_report_can_be_written_again_from_the_store(run: Run) -> None:
    assert run.report is not None
    before = run.report.read_text()
    assert write_report(run.folder, problems=[toy("raising", "too-good")]).read_text() == before


SCRIPT = """(() => {
const seen = {}, tables = [...document.querySelectorAll("table")];
const first = (table) => [...table.tBodies[0].rows].map((row) => row.cells[0].textContent);
const table = tables.find((one) => new Set(first(one)).size > 2 && first(one).length === new Set(first(one)).size);
table.tHead.rows[0].cells[0].click();
seen.up = first(table);
table.tHead.rows[0].cells[0].click();
seen.down = first(table);
const long = [...document.querySelectorAll("input.filter")][0];
const rows = [...long.nextElementSibling.querySelectorAll("tbody tr")];
const left = (words) => { long.value = words; long.dispatchEvent(new Event("input"));
  return rows.filter((row) => !row.hidden).length; };
seen.filtered = [left("no such row"), left(rows[0].cells[0].textContent), left("")];
seen.closed = document.querySelectorAll("details.problem:not([open])").length;
seen.wide = [document.documentElement.scrollWidth, innerWidth];
seen.heads = [...document.querySelectorAll("th[data-told]")].map((head) => head.title);
HTMLAnchorElement.prototype.click = () => undefined;  // nothing is saved to a disk
return new Promise((done) => setTimeout(() => {
  const click = new MouseEvent("click", {bubbles: true, cancelable: true});
  document.querySelector('a[href^="instances/"]').dispatchEvent(click);
  seen.saved = document.documentElement.dataset.saved;
  seen.figures = [document.querySelectorAll("figure svg").length, document.querySelectorAll("[data-figure]").length];
  seen.titles = [...document.querySelectorAll("figure svg title")].map((title) => title.textContent);
  const paper = document.querySelector("figure svg path[style*='--paper']");
  seen.paper = getComputedStyle(paper).fill;
  done(seen); }, 300));
})()"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium: the report is not opened in a browser")
def test_the_report_works_in_a_browser(run: Run, tmp_path: Path) -> None:
    assert run.report is not None
    page = tmp_path / "alone.html"  # without the instances beside it
    page.write_text(run.report.read_text())
    with opened(page.as_uri(), tmp_path / "profile", width=390, dark=True) as tab:
        seen = tab.run(SCRIPT)
        assert not tab.errors
    assert seen["up"] == sorted(seen["up"]) == seen["down"][::-1] and len(set(seen["up"])) > 1
    assert seen["filtered"][0] == 0 < seen["filtered"][1] < seen["filtered"][2]
    assert seen["figures"][0] >= 4 and seen["figures"][1] == 0
    assert seen["closed"] == 0 and seen["wide"][0] <= seen["wide"][1]
    assert seen["saved"].split()[0].endswith(".json") and int(seen["saved"].split()[1]) > 50
    assert any("the largest ratio on what it solved" in head and "A click sorts" in head for head in seen["heads"])
    assert any(": ratio 1" in title for title in seen["titles"])
    assert seen["paper"] == "rgb(13, 17, 23)"  # figures are drawn on the page's own paper


def test_instances_of_the_report_are_files(run: Run) -> None:
    assert run.report is not None
    links = [part.split('"')[0] for part in run.report.read_text().split('href="')[1:]]
    files = {run.folder / link for link in links if link.startswith("instances/")}
    assert files and all(json.loads(path.read_text())["problem"] == "toy" for path in files)


def test_two_runs_compare(run: Run, tmp_path: Path) -> None:
    other = bench(["quick"], out=tmp_path / "s", workers=2, problems=[toy()])
    with Store(other.folder / FILE) as store:
        rows = [row for row in store.rows() if row.method == "list"]
        from dataclasses import replace

        first = rows[0].result
        assert first.objective is not None
        store.put(replace(rows[0], result=replace(first, objective=first.objective + 7)))
    path = write_report(run.folder, other.folder, problems=[toy("raising", "too-good")])
    assert path.name == "comparison.html"
    page = _Page(path.read_text())
    assert page.open == [] and page.outside == []
    words = " ".join(" ".join(page.text).split())
    assert "22 runs of methods in both" in words and "1 with another outcome" in words
    assert f"{rows[0].instance_name} list feasible" in words


def test_rows_export_as_csv(run: Run, tmp_path: Path) -> None:
    path = export("csv", run.folder, tmp_path / "rows.csv", [toy("raising", "too-good")])
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == run.ran
    graded = next(row for row in rows if row["method"] == "list" and row["ratio"])
    assert float(graded["ratio"]) == pytest.approx(float(graded["objective"]) / float(graded["optimum"]))
    assert graded["ratio_to"] == "optimum"


def test_parquet_without_pyarrow_is_one_clear_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="needs the package pyarrow"):
        export("parquet", run.folder, tmp_path / "rows.parquet", [toy()])


def test_no_run_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no run here"):
        write_report(tmp_path)
    (tmp_path / FILE).touch()
    with pytest.raises(StoreError, match="holds no run"):
        write_report(tmp_path)
    with Store(tmp_path / FILE):
        pass
    with pytest.raises(StoreError, match="holds no run"):
        write_report(tmp_path)


def test_text_from_outside_is_never_html() -> None:
    grid = templates().get_template("macros.html").module.grid  # type: ignore[attr-defined]
    made = str(grid(["a"], [["<script>alert(1)</script>"], [Marked("<i>", "held", "a?b&c")]]))
    assert "<script>" not in made and "&lt;script&gt;" in made
    assert '<span class="held"><a href="a?b&amp;c">&lt;i&gt;</a></span>' in made


def test_a_heavy_figure_goes_in_as_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = new_figure(2, 1)
    figure.add_subplot().plot([0, 1])
    assert "<svg" in picture(figure, "c").image
    monkeypatch.setattr("schedgap.benchmarks.report.page.HEAVY", 10)
    assert "data:image/png;base64," in picture(figure, "c").image


def test_a_heavy_figure_keeps_its_titles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each at the place that it has as SVG; the schedule has blocks of one title, and collections of many."""
    instance = schedgap.generate("rar-ddls", "small", seed=30, servers=3, gpus=3, ample=True)
    figure = schedgap.plot(instance, schedgap.solve(instance, "sjf-bco"))
    light = str(picture(figure, "c").image)
    monkeypatch.setattr("schedgap.benchmarks.report.page.HEAVY", 10)
    heavy = str(picture(figure, "c").image)
    size = re.search(r'width="[0-9.]+pt" height="[0-9.]+pt"', light)
    assert (
        size is not None
        and heavy.startswith(f'<svg role="img" aria-label="c" {size[0]} viewBox=')
        and "data:image/png;base64," in heavy
    )
    titles = [sorted(set(re.findall("<title>([^<]*)</title>", one))) for one in (light, heavy)]
    assert titles[0] == titles[1] and any("j0: slots" in title for title in titles[0])
    places = [
        re.search(r'd="(M[^"]*)"[^>]*><title>j0|<title>j0[^<]*</title>\s*<path d="(M[^"]*)"', one)
        for one in (light, heavy)
    ]
    assert places[0] and places[1] and set(places[0].groups()) == set(places[1].groups())


def test_the_gantt_chart_shows_a_reference_schedule(tmp_path: Path) -> None:
    import matplotlib

    from schedgap.benchmarks.figures.rar_ddls import gantt
    from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

    path = ROOT / "tests" / "data" / "rar-14-mixed.json"
    _, instance = load_instance(path)
    assert isinstance(instance, RarDdlsInstance)
    solution = json.loads(path.read_text())["reference_solution"]
    before = dict(matplotlib.rcParams)
    figure = gantt(instance, solution)
    words = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert {job.id for job in instance.jobs} <= words
    hatched = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert len(hatched) == 5  # j1 and j5 cross: two servers and three
    for name in ("g.svg", "g.png", "g.pdf"):
        save(gantt(instance, solution), tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    save(gantt(instance, solution), tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == (tmp_path / "g.svg").read_bytes()
    with pytest.raises(InputError, match="must end in"):
        save(figure, tmp_path / "g.gif")
    assert dict(matplotlib.rcParams) == before


def test_an_axis_of_one_slot_is_marked_with_a_whole_number() -> None:
    figure = new_figure(4, 2)
    axes = figure.add_subplot()
    axes.set_xlim(0.5, 1.8)
    whole_numbers(axes.xaxis)
    assert all(tick == int(tick) for tick in axes.get_xticks()) and 1 in axes.get_xticks()


def test_gantt_rows_never_hold_two_jobs_at_once() -> None:
    from schedgap.benchmarks.figures.rar_ddls import _blocks
    from schedgap.benchmarks.instances.rar_ddls.random import paper
    from schedgap.formulations.rar_ddls.dynamics import simulate
    from schedgap.heuristics.rar_ddls.baselines import ls

    instance = paper(3, jobs=60, servers=6)
    solution = ls(instance).solution
    assert solution is not None
    completion = simulate(instance, solution["start"], solution["placement"]).completion
    for server, blocks in zip(instance.servers, _blocks(instance, solution, completion, 10**6), strict=True):
        held: dict[int, list[tuple[int, int]]] = {}
        count: dict[int, int] = {}
        for block in blocks:
            count[block.job] = count.get(block.job, 0) + block.gpus
            for k in range(block.lowest, block.lowest + block.gpus):
                assert k < server.gpus
                held.setdefault(k, []).append((block.first, block.last))
        for spans in held.values():
            spans.sort()
            assert all(a[1] < b[0] for a, b in itertools.pairwise(spans))
        for job, gpus in count.items():
            assert solution["placement"][instance.jobs[job].id][server.id] == gpus


def test_when_each_method_came_to_a_ratio_is_exported_and_drawn(tmp_path: Path) -> None:
    instance = schedgap.generate("comm-contention", "tiny", seed=1)
    file = tmp_path / "one.json"
    file.write_text(instance.to_json(), encoding="utf-8")
    done = bench([str(file)], methods=["bb", "highs"], out=tmp_path / "b", workers=1)
    export("csv", done.folder, tmp_path / "rows.csv")
    with (tmp_path / "times_to_ratios.csv").open(newline="") as table:
        rows = [(row["method"], float(row["ratio"]), float(row["seconds"])) for row in csv.DictReader(table)]
    for method in ("bb", "highs"):  # both prove the optimum, so every ratio is reached, a smaller one no sooner
        times = [seconds for name, _, seconds in sorted(rows, key=lambda row: -row[1]) if name == method]
        assert len(times) == len(TARGETS) and times == sorted(times)
    assert "Pairs of an instance and a ratio" in (done.folder / "report.html").read_text(encoding="utf-8")

"""The library as pages, as one JSON file with a schema, and submissions judged as the host of the repository would."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from support.browser import BROWSER, looked_at
from support.command import Command

from schedgap.cli.main import main
from schedgap.tools.library.collection import SHIPPED, Entry, _text, entries, faults, find, read
from schedgap.tools.library.improve import Offer, credit, judge
from schedgap.tools.library.site import EVERYTHING, SCHEMA, Site, content_hash, everything, schema
from schedgap.tools.library.standings import Outcome, standings

ROOT = Path(__file__).resolve().parents[3]
WORKFLOW = Path(".github/workflows/library.yml")
ID = "rar-ddls/worst-ff"
FEW = (ID, "rar-ddls/tiny-1", "rar-ddls/paper-80-0", "ddl-cluster/paper-160-0", "hadar/tiny-1")


def test_every_record_validates_against_the_published_schema() -> None:
    found = json.loads(json.dumps(everything(entries())))
    validator = jsonschema.Draft202012Validator(schema())
    assert not [error.message for error in validator.iter_errors(found)]
    assert len(found["records"]) == len(entries()) > 300 and found["hash"] == content_hash(found)
    wrong: list[tuple[str, object]] = [("objective", "10"), ("proof", "sure"), ("extra", 1), ("id", "no id")]
    for key, value in wrong:
        changed = {**found, "records": [{**found["records"][0], key: value}]}
        assert list(validator.iter_errors(changed)), key


class Links(HTMLParser):
    """What a page names."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found += [value for key, value in attributes if key in ("href", "src") and value]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of a few records with two methods, one of which found nothing of one instance."""
    folder = tmp_path_factory.mktemp("site")
    outcomes = [
        Outcome(id=ID, method="ff", status="feasible", objective=40, ratio=40.0, ratio_to="optimum", seconds=0.1),
        Outcome(id=ID, method="my file.py:f", status="optimal", objective=1, ratio=1.0, ratio_to="optimum"),
        Outcome(id="rar-ddls/tiny-1", method="ff", status="unknown"),
        Outcome(id="rar-ddls/paper-80-0", method="ff", status="unknown", frozen=False),
    ]
    Site(folder, outcomes, {}).write([find(name) for name in FEW])
    return folder


def test_pages_lead_to_each_other_and_load_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) == 1 + 3 + 2 + len(FEW)
    for page in pages:
        links = Links()
        links.feed(page.read_text(encoding="utf-8"))
        assert all((page.parent / link).is_file() for link in links.found), (page, links.found)
    named = {path.relative_to(site).as_posix() for path in site.rglob("*.*")}
    assert {EVERYTHING, SCHEMA, f"instances/{ID}.solution.json", "instances/rar-ddls/tiny-1.mps.gz"} <= named


def test_an_instances_page_has_its_record_and_its_files(site: Path) -> None:
    page = (site / "instances" / "ddl-cluster" / "paper-160-0.html").read_text(encoding="utf-8")
    known = find("ddl-cluster/paper-160-0").known
    words = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    assert known.history and known.found is not None and known.found.date in words
    assert re.search(r"<svg|<img", page)
    assert "33.67954787" in words and "checked by the checker of ddl-cluster" in words and "no MPS file: " in words
    large = (site / "instances" / "rar-ddls" / "paper-80-0.html").read_text(encoding="utf-8")
    assert "nonzeros; schedgap export" in large
    written = read_like(site / "instances" / f"{ID}.json")
    assert written["reference_record"]["objective"] == find(ID).known.objective
    model = gzip.decompress((site / "instances" / "rar-ddls" / "tiny-1.mps.gz").read_bytes()).decode()
    assert "ROWS" in model and model.rstrip().endswith("ENDATA")
    found = read_like(site / EVERYTHING)
    jsonschema.validate(found, read_like(site / SCHEMA))
    assert found["hash"] == content_hash(found) and {one["id"] for one in found["records"]} == set(FEW)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium: the pages are not opened in a browser")
def test_pages_on_a_phone_light_and_dark(site: Path, tmp_path: Path) -> None:
    pages = {page: page.parent.parent.name == "instances" for page in site.rglob("*.html")}
    looked_at({page: int(drawn) for page, drawn in pages.items()}, tmp_path / "profile")
    assert not [page for page in pages if "{&#39;" in page.read_text(encoding="utf-8")]  # no text for programs


def read_like(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_a_record_that_does_not_check_is_told_on_its_page(tmp_path: Path) -> None:
    entry = find("rar-ddls/tiny-1")
    false = Entry(entry.known.model_copy(update={"objective": 1.0}), entry.data, entry.path)
    Site(tmp_path, [], {false.id: faults(false)}).write([false])
    page = (tmp_path / "instances" / "rar-ddls" / "tiny-1.html").read_text(encoding="utf-8")
    assert "Does not check: " in page and "when this page was made" not in page
    assert "1 records do not check: rar-ddls/tiny-1" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_scores_and_wins() -> None:
    def one(name: str, method: str, value: float | None, ratio: float | None, to: str = "optimum") -> Outcome:
        return Outcome.model_validate(
            {"id": name, "method": method, "status": "", "objective": value, "ratio": ratio, "ratio_to": ratio and to}
        )

    rows = [
        one("rar-ddls/a", "x", 10.0, 1.0), one("rar-ddls/b", "x", 40.0, 2.0), one("rar-ddls/c", "x", None, None),
        one("rar-ddls/a", "y", 10.0, 1.0), one("rar-ddls/b", "y", 30.0, 1.5), one("rar-ddls/c", "y", 9.0, 3.0, "bound"),
        one("rar-ddls/a", "z", 5.0, 1.0).model_copy(update={"outside": True}),
        one("rar-ddls/d", "x", 5.0, 1.0).model_copy(update={"frozen": False}),
    ]  # fmt: skip
    first, second = standings(rows)
    assert (first.method, first.wins, first.solved, first.instances, first.optima, first.bounds) == ("y", 3, 3, 3, 2, 1)
    assert first.score == pytest.approx((1 + 1 / 1.5 + 1 / 3) / 3) and first.mean == 1.25 and first.worst == 3.0
    assert (second.method, second.wins, second.solved, second.score) == ("x", 1, 2, 0.5)
    most = Outcome.model_validate({**rows[0].model_dump(), "id": "hadar/a", "ratio": "inf"})
    assert standings([most])[0].score == 0 and standings([most])[0].worst == "inf"


def test_several_methods_at_once_with_a_summary(command: Command, tmp_path: Path) -> None:
    methods = ("--method", "ff", "--method", "lpt-colocate")
    ran = command("library", "solve", ID, "rar-ddls/tiny-1", *methods, "--out", tmp_path / "runs")
    assert ran.status == 0 and "mean ratio to optimum" in ran.out
    assert len(list((tmp_path / "runs").iterdir())) == 4
    row = next(line.split() for line in ran.out.splitlines() if line.startswith("ff "))
    rows = json.loads(command("library", "solve", ID, "rar-ddls/tiny-1", *methods, "--json").out)
    ratios = [one["ratio"] for one in rows if one["method"] == "ff"]
    assert float(row[1]) == pytest.approx(sum(1 / ratio for ratio in ratios) / 2, abs=1e-4)


def test_the_command_runs_the_heuristics_and_writes_the_pages(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in (("--problem", "no-problem"), ("--problem", "hadar", "--method", "no-method")):
        ran = command("library", "site", *wrong, "--out", tmp_path / "site")
        assert ran.status == 2 and wrong[-1] in ran.message and not (tmp_path / "site").exists()
    monkeypatch.setattr("schedgap.tools.library.records.entries", lambda *_: (find(ID),))
    ran = command("library", "site", "--out", tmp_path / "site")
    found = read_like(tmp_path / "site" / EVERYTHING)
    assert ran.status == 0 and ran.out.strip() == str(tmp_path / "site" / "index.html")
    assert {one["method"] for one in found["outcomes"]} >= {"ff", "sjf-bco", "lpt-colocate"}
    assert max(one["score"] for one in found["standings"]) <= 1


def test_a_damaged_record_is_one_line_and_the_others_are_written(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate that is no file of gzip, an instance that is none, and a file that is no record."""
    folder = tmp_path / "lib"
    kept = [entry.write(folder) for entry in map(find, (ID, "rar-ddls/tiny-0", "rar-ddls/tiny-1"))]
    assert kept[0].certificate is not None and kept[1].path is not None
    kept[0].certificate.write_bytes(b"no certificate")
    kept[1].path.write_text(kept[1].path.read_text().replace('"servers":', '"server":', 1))
    (folder / "rar_ddls" / "empty.json").write_text("{}")
    monkeypatch.setattr("schedgap.tools.library.collection._shipped", dict)
    ran = command("library", "site", "--library", folder, "--method", "ff", "--out", tmp_path / "site")
    assert ran.status == 1 and ran.out.strip() == str(tmp_path / "site" / "index.html")
    empty, second, first = [line for line in ran.err.splitlines() if "note: " in line]
    assert "empty.json: reference_record: is missing" in empty
    assert f"{ID}: the certificate of {ID} is not JSON" in first and "servers: is missing" in second
    found = read_like(tmp_path / "site" / EVERYTHING)
    assert len(found["records"]) == 3 and [one["id"] for one in found["outcomes"]] == ["rar-ddls/tiny-1"]
    assert "2 records do not check: " in (tmp_path / "site" / "index.html").read_text()


def test_what_was_known_before_is_kept() -> None:
    entry = find(ID)
    assert entry.known.solution is not None and entry.certificate is not None
    nothing: Mapping[str, Any] = {"bound": 1.0, "proof": "claimed", "status": "open", "certificate": None}
    weaker = Entry(entry.known.model_copy(update=nothing), entry.data, entry.path)
    found = judge(weaker, Offer(credit("N"), certificate=gzip.decompress(entry.certificate.read_bytes()).decode()))
    (past,) = found.after.known.history
    assert (past.bound, past.proof, past.proven, past.objective) == (1.0, "claimed", entry.known.proven, None)


# ---- submissions


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose main branch has a record that can be improved, with the workflow and its script."""
    folder = tmp_path_factory.mktemp("origin")
    work = folder / "work"
    for path in (WORKFLOW, Path(".github/library_submission.py")):
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_bytes((ROOT / path).read_bytes())
    collection = work / "tools" / "library" / "collection"
    entry = find(ID)
    poor = find("rar-ddls/tiny-1")
    poor.write(collection)
    stated = {"bound": None, "proof": None, "proven": None, "status": "open", **_slower(entry)}
    Entry(entry.known.model_copy(update=stated), entry.data, entry.path).write(collection)
    git(work, "init", "--quiet", "--initial-branch=main")
    commit(work, "main")
    return work


def _slower(entry: Entry) -> dict[str, Any]:
    """The same schedule, every job begun one slot later."""
    from schedgap import check

    assert entry.known.solution is not None
    late = {**entry.known.solution, "start": {job: at + 1 for job, at in entry.known.solution["start"].items()}}
    report = check(entry.instance, late)
    assert report.feasible and report.objective is not None
    return {"solution": late, "objective": float(report.objective)}


def git(folder: Path, *arguments: str) -> str:
    names = ("-c", "user.name=A. N. Other", "-c", "user.email=other@example.org")
    ran = subprocess.run(["git", *names, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


def commit(folder: Path, text: str) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", text)
    return git(folder, "rev-parse", "HEAD")


INSTALL = "python -m pip install -c .ci/versions.txt ."
BUILD = "if [ -e setup.py ]; then python setup.py; fi"  # what pip would run of the folder it is in


def host(origin: Path, head: str, clone: Path) -> tuple[int, str]:
    """Run the workflow as the host of the repository does, on a fresh clone; schedgap is installed already.

    For ``pull_request`` the workflow's file and ``github.sha`` are those of the merge commit, which has the request's
    files; for ``pull_request_target`` they are those of the main branch.
    """
    base = git(origin, "rev-parse", "main")
    git(origin.parent, "clone", "--quiet", "--no-local", "--no-checkout", f"file://{origin}", str(clone))
    git(clone, "fetch", "--quiet", "origin", head)
    own = yaml.safe_load(git(clone, "show", f"{base}:{WORKFLOW}"))
    sha = base
    if "pull_request" in own[True]:  # YAML 1.1 reads "on" as true
        tree = git(clone, "merge-tree", "--write-tree", base, head)
        sha = git(clone, "commit-tree", tree, "-p", base, "-p", head, "-m", "merge")
        own = yaml.safe_load(git(clone, "show", f"{sha}:{WORKFLOW}"))
    (job,) = own["jobs"].values()
    pull = "github.event.pull_request"
    event = {"github.sha": sha, f"{pull}.base.sha": base, f"{pull}.head.sha": head}

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: event[found[1]], text)

    names = {key: filled(value) for key, value in job["env"].items()}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    steps = job["steps"]
    assert steps[0]["uses"].startswith("actions/checkout@")
    git(clone, "checkout", "--quiet", filled(steps[0]["with"]["ref"]))
    told = ""
    for step in steps:
        if "run" not in step:
            continue
        line = BUILD if step["run"] == INSTALL else step["run"]
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", line]
        ran = subprocess.run(
            shell, cwd=clone, env={**os.environ, **names, "PATH": path}, capture_output=True, text=True
        )
        told += ran.stdout + ran.stderr
        if ran.returncode:
            return ran.returncode, told
    return 0, told


Judge = Callable[[str], tuple[int, str]]


@pytest.fixture
def judged(origin: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """The workflow's last step in this process, in the repository that has the main branch and the request."""
    spec = importlib.util.spec_from_file_location("library_submission", ROOT / ".github" / "library_submission.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    def run(call: Callable[[], int]) -> tuple[int, str, str]:
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            return call(), out.getvalue(), err.getvalue()

    def offer(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as there:
            there.chdir(folder)
            return subprocess.CompletedProcess(arguments, *run(lambda: main(arguments)))

    def judge(head: str) -> tuple[int, str]:
        monkeypatch.chdir(origin)
        status, out, err = run(lambda: script.main("main", head))
        return status, out + err

    monkeypatch.setattr(script, "schedgap", offer)
    return judge


@pytest.fixture
def request_branch(origin: Path, tmp_path: Path) -> Iterator[Path]:
    """A fresh clone of the repository, on a branch of its own."""
    mine = tmp_path / "mine"
    git(origin.parent, "clone", "--quiet", str(origin), str(mine))
    git(mine, "checkout", "--quiet", "-b", tmp_path.name)
    yield mine


def offered(mine: Path, text: str) -> str:
    head = commit(mine, text)
    git(mine, "push", "--quiet", "origin", "HEAD")
    return head


def better(mine: Path, certificate: bytes | None = None) -> Path:
    """What `library submit` writes into a checkout, with the shipped record's schedule; the record's file."""
    from schedgap.tools.library.records import library_submit

    collection = mine / "tools" / "library" / "collection"
    shipped = find(ID)
    given = None
    if certificate is not None:
        given = mine.parent / "given.cert"
        given.write_bytes(certificate)
    library_submit(ID, shipped.known.solution, given, by="A. N. Other", library=collection)
    return collection / "rar_ddls" / "worst-ff.json"


def test_a_better_schedule_is_taken(origin: Path, request_branch: Path, tmp_path: Path) -> None:
    path = better(request_branch)
    status, told = host(origin, offered(request_branch, "better"), tmp_path / "clone")
    assert status == 0 and "1 of 1 records are better and right" in told
    history = read(path).known.history
    assert len(history) == 1 and history[0].objective == _slower(find(ID))["objective"]


def test_a_wrong_objective_is_refused(origin: Path, request_branch: Path, tmp_path: Path) -> None:
    path = better(request_branch)
    data = read_like(path)
    data["reference_record"]["objective"] -= 1
    path.write_text(json.dumps(data))
    status, told = host(origin, offered(request_branch, "wrong"), tmp_path / "clone")
    assert status == 1 and "is claimed, the checker computes" in told


def test_a_doctored_certificate_is_refused(origin: Path, request_branch: Path, tmp_path: Path) -> None:
    shipped = find(ID).certificate
    assert shipped is not None
    path = better(request_branch, shipped.read_bytes())
    (kept,) = path.parent.glob("worst-ff-*.cert")
    forged = json.loads(gzip.decompress(kept.read_bytes()))
    forged["claim"] = str(int(forged["claim"]) + 5)
    kept.write_bytes(gzip.compress(json.dumps(forged).encode()))
    status, told = host(origin, offered(request_branch, "doctored"), tmp_path / "clone")
    assert status == 1 and "certificate: rejected" in told


def test_what_is_not_what_submit_writes_is_refused(judged: Judge, request_branch: Path) -> None:
    """A bound without its certificate, and a change of code beside the record."""
    path = better(request_branch)
    data = read_like(path)
    data["reference_record"] |= {"bound": 1.0, "proof": "claimed", "proven": data["reference_record"]["found"]}
    path.write_text(json.dumps(data))
    status, told = judged(offered(request_branch, "bound"))
    assert status == 1 and "is not what `schedgap library submit` writes: 'bound', 'proof'" in told
    (request_branch / ".github" / "library_submission.py").write_text("print('all is well')\n")
    status, told = judged(offered(request_branch, "code"))
    assert status == 1 and "a submission changes records alone" in told


def test_no_other_part_of_a_record_changes(judged: Judge, request_branch: Path) -> None:
    """A better schedule beside another instance, a name for the log, a history that forgets, a foreign certificate."""
    path = better(request_branch)
    data = read_like(path)
    data["horizon"] += 1
    record = data["reference_record"]
    record |= {"accepted": ["nobody 1.0"], "history": []}
    path.write_text(json.dumps(data))
    status, told = judged(offered(request_branch, "instance"))
    assert status == 1 and "`schedgap library submit` writes: 'horizon', 'accepted', 'history'" in told
    (foreign,) = path.parent.glob("tiny-1-*.cert")
    foreign.write_bytes(b"changed")
    status, told = judged(offered(request_branch, "foreign"))
    assert status == 1 and f"changes records alone, this one: '{foreign.relative_to(request_branch)}'" in told


def refused(judged: Judge, mine: Path, said: str) -> None:
    """What the request's branch has now is refused with these words."""
    status, told = judged(offered(mine, said))
    assert status in (1, 2) and said in told, told


def test_links_are_refused(judged: Judge, request_branch: Path) -> None:
    """A record, and a certificate, whose file is a link with the right bytes as its target."""
    shipped = find(ID).certificate
    assert shipped is not None
    path = better(request_branch, shipped.read_bytes())
    (cert,) = path.parent.glob("worst-ff-*.cert")
    whole = git(request_branch, "hash-object", "-w", str(path))
    name = str(path.relative_to(request_branch))
    git(request_branch, "add", "--all")
    git(request_branch, "update-index", "--cacheinfo", f"120000,{whole},{name}")
    git(request_branch, "commit", "--quiet", "--message", "link")
    head = git(request_branch, "rev-parse", "HEAD")
    git(request_branch, "push", "--quiet", "origin", "HEAD")
    status, told = judged(head)
    assert status == 1 and f"plain files alone, not links or programs: '{name}'" in told
    target = cert.read_bytes()
    cert.unlink()
    cert.symlink_to("worst-ff.json")
    refused(judged, request_branch, "plain files alone, not links or programs: ")
    cert.unlink()
    cert.write_bytes(target)
    assert judged(offered(request_branch, "good"))[0] == 0


RECORD = "reference_record"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r["history"].append(17), "history[1]: must be"),
        (lambda r: r.update(proven=17), "proven: must be"),
        (lambda r: r["found"].update(date="not a date"), "found.date: "),
        (lambda r: r["found"].update(seed=True), "found.seed: must be"),
        (lambda r: r["made"].update(note="mine"), "submit` writes: 'made'"),
        (lambda r: r["found"].update(settings={"text": "x"}), "submit` writes: 'found'"),
        (lambda r: r.update(proven=r["found"]), "submit` writes: 'proven'"),
        (lambda r: r["history"].extend([r["history"][0]] * 40), "more than 4000 bytes are said"),
        (lambda r: r["made"].update(seed=True), "submit` writes: 'made'"),
    ],
)
def test_what_is_free_is_read_too(
    judged: Judge, request_branch: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    path = better(request_branch)
    data = read_like(path)
    change(data[RECORD])
    path.write_text(_text(data))
    refused(judged, request_branch, said)


def test_the_file_is_compared_byte_for_byte(judged: Judge, request_branch: Path) -> None:
    """True for 1, a key given twice, spaces; as it was written, with another finder and day, it is taken."""
    path = better(request_branch)
    text = path.read_text()
    assert '"version"' not in text and text.startswith("{\n")
    one = re.search(r'"(\w+)":1[,}]', text)
    assert one is not None
    cases = (
        (text.replace("\n", "\n" + " " * 1000, 1), "spaces, order or how numbers are written"),
        (text + "\n", "spaces, order or how numbers are written"),
        (text.replace('  "id":', '  "id": "rar-ddls/tiny-1",\n  "id":', 1), "given twice in one object"),
        (text.replace(one[0], one[0].replace("1", "true"), 1), "submit` writes: "),
    )
    for changed, said in cases:
        assert changed != text
        path.write_text(changed)
        refused(judged, request_branch, said)
    data = json.loads(text)
    data[RECORD]["found"] |= {"by": "Someone Else", "date": "2026-01-31"}
    path.write_text(_text(data))
    assert judged(offered(request_branch, "good"))[0] == 0


def test_certificates_beside_a_record_are_those_of_submit(judged: Judge, request_branch: Path) -> None:
    """A stray one, one that is wanted and missing, and one under a name that is not its own."""
    path = better(request_branch)
    stray = path.with_name("worst-ff-0123abcd.cert")
    stray.write_bytes(b"anything" * 1000)
    refused(judged, request_branch, "worst-ff-0123abcd.cert: `submit` does not write or remove it")
    stray.unlink()
    shipped = find(ID).certificate
    assert shipped is not None
    git(request_branch, "checkout", "--quiet", "main", "--", ".")
    path = better(request_branch, shipped.read_bytes())
    (cert,) = path.parent.glob("worst-ff-*.cert")
    content = cert.read_bytes()
    cert.write_bytes(gzip.compress(gzip.decompress(content), 1))
    refused(judged, request_branch, f"{cert.name}: is not what `submit` writes")
    cert.write_bytes(content)
    assert judged(offered(request_branch, "good"))[0] == 0


def deflated(text: bytes, level: int) -> bytes:
    """A file of gzip as another zlib might write it."""
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    return packer.compress(text) + packer.flush()


@pytest.mark.parametrize(
    ("change", "taken"),
    [
        (lambda text: deflated(text, 8), True),
        (lambda text: deflated(text, 8) + b"more", False),
        (lambda text: deflated(text, 8) + gzip.compress(b"", mtime=0), False),
        (lambda text: deflated(text, 8)[:-1], False),
        (lambda text: deflated(text, 0), False),  # much longer: as good a place to hide in as any
        (lambda text: gzip.compress(text, 8, mtime=1), False),
        (lambda text: deflated(text, 8)[:9] + b"\x07" + deflated(text, 8)[10:], False),
        (
            lambda text: deflated(text, 8)[:3] + b"\x08" + deflated(text, 8)[4:10] + b"name\0" + deflated(text, 8)[10:],
            False,
        ),
        (lambda text: deflated(text + b" ", 8), False),
    ],
)
def test_a_certificate_that_another_zlib_compressed_is_taken_and_nothing_beside_it(
    judged: Judge, request_branch: Path, change: Callable[[bytes], bytes], taken: bool
) -> None:
    shipped = find(ID).certificate
    assert shipped is not None
    path = better(request_branch, shipped.read_bytes())
    (cert,) = path.parent.glob("worst-ff-*.cert")
    theirs = change(gzip.decompress(cert.read_bytes()))
    name = f"worst-ff-{hashlib.sha256(theirs).hexdigest()[:8]}.cert"
    assert name != cert.name
    path.write_text(path.read_text().replace(cert.name, name))
    cert.unlink()
    cert.with_name(name).write_bytes(theirs)
    status, told = judged(offered(request_branch, "packed"))
    assert (status == 0) == taken, told


def attacked(mine: Path, marker: Path) -> None:
    """Every place where code of a checkout might be run gets code that leaves a mark and says that all is well."""
    for name in (
        ".github/library_submission.py",
        "setup.py",
        "sitecustomize.py",
        "conftest.py",
        "schedgap/__init__.py",
    ):
        (mine / name).parent.mkdir(exist_ok=True)
        (mine / name).write_text(f"open({str(marker)!r}, 'a').write({name!r})\n")
    told = yaml.safe_load((mine / WORKFLOW).read_text())
    (job,) = told["jobs"].values()
    job["steps"][1:] = [{"run": f"echo workflow >> {marker}"}]
    (mine / WORKFLOW).write_text(yaml.safe_dump(told))
    (mine / ".gitattributes").write_text("*.json filter=mark diff=mark\n")


def test_only_the_main_branchs_code_runs(origin: Path, request_branch: Path, tmp_path: Path) -> None:
    better(request_branch)
    marker = tmp_path / "marker"
    attacked(request_branch, marker)
    head = offered(request_branch, "attack")
    status, told = host(origin, head, tmp_path / "clone")
    assert not marker.exists() and status == 1 and "a submission changes records alone" in told
    assert git(tmp_path / "clone", "rev-parse", "HEAD") == git(origin, "rev-parse", "main")
    assert not git(tmp_path / "clone", "status", "--porcelain")


def test_on_the_event_of_a_merge_commit_the_attack_would_succeed(origin: Path, tmp_path: Path) -> None:
    """The former event, to show that the test above can fail: the request's own file is what runs."""
    other = tmp_path / "other"
    git(origin.parent, "clone", "--quiet", str(origin), str(other))
    (other / WORKFLOW).write_text((other / WORKFLOW).read_text().replace("pull_request_target", "pull_request"))
    commit(other, "former event")
    mine = tmp_path / "mine"
    git(tmp_path, "clone", "--quiet", str(other), str(mine))
    git(mine, "checkout", "--quiet", "-b", "attack")
    marker = tmp_path / "marker"
    attacked(mine, marker)
    status, _ = host(other, offered(mine, "attack"), tmp_path / "clone")
    assert status == 0 and marker.read_text() == "workflow\n"


def test_what_the_workflow_may_do() -> None:
    """The event whose file the main branch writes; a token that reads; the request named by its commit alone."""
    told = yaml.safe_load((ROOT / WORKFLOW).read_text())
    assert told["permissions"] == {"contents": "read"}
    event = {"branches": ["main"], "paths": [f"{SHIPPED.relative_to(ROOT)}/**"]}
    assert told[True] == {"pull_request_target": event}
    (job,) = told["jobs"].values()
    assert set(job) == {"runs-on", "timeout-minutes", "env", "steps"}
    assert job["env"] == {"BASE": "${{ github.sha }}", "HEAD": "${{ github.event.pull_request.head.sha }}"}
    first, *steps = job["steps"]
    assert first["with"] == {"ref": "${{ github.sha }}", "fetch-depth": 0, "persist-credentials": False}
    assert [step["uses"].partition("@")[0] for step in steps if "uses" in step] == ["actions/setup-python"]
    runs = [step["run"] for step in steps if "run" in step]
    assert not any("${{" in line for line in runs)
    assert not [line for line in runs if "HEAD" in line and not line.startswith(("git fetch ", "python -I .github/"))]

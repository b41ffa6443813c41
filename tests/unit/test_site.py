"""The built documentation site in a browser: SCHEDGAP_SITE names its folder (`.ci/run` sets it after `make docs`)."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from functools import cache, partial
from html import unescape
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from support.browser import BROWSER, opened

SITE = Path(os.environ.get("SCHEDGAP_SITE", ""))
pytestmark = [
    pytest.mark.skipif("SCHEDGAP_SITE" not in os.environ, reason="SCHEDGAP_SITE names no built site (make docs)"),
    pytest.mark.skipif(BROWSER is None, reason="no Chromium: the site is not opened"),
]
PAGES = (
    *("index", "rar-ddls", "hadar", "gpu-sharing", "guarantees", "library", "gallery", "command-line", "measurements"),
    *(f"proofs-{name}" for name in ("rar-ddls", "hadar", "comm-contention", "g-vne", "ddljs")),
    *("reference/api", "tutorials/exact-optimum", "counterexamples/index", "results-sjf-bco"),
)
FORMULAS = {"proofs-rar-ddls": 60, "proofs-hadar": 60, "proofs-g-vne": 50, "proofs-ddljs": 40, "rar-ddls": 8}
SCRIPT = """(async () => {
  const wait = (time) => new Promise((done) => setTimeout(done, time));
  const opened = async (address) => {
    const frame = Object.assign(document.createElement("iframe"), {width: 420, height: 900, src: address});
    frame.style.border = 0;
    const loaded = new Promise((done) => frame.addEventListener("load", done));
    document.body.append(frame);
    await loaded;
    await wait(60);
    return frame;
  };
  const found = {};
  for (const page of PAGES) {
    const frame = await opened(page + ".html");
    const inside = frame.contentDocument;
    const marked = [...inside.querySelectorAll(".arithmatex")];
    found[page] = {
      wide: inside.documentElement.scrollWidth,
      formulas: marked.length,
      failed: marked.filter((one) => !one.querySelector(".katex") || one.querySelector(".katex-error")).length,
    };
    frame.remove();
  }
  const inside = (await opened("index.html")).contentDocument;
  const field = inside.querySelector(".md-search__input");
  inside.querySelector("#__search").click();
  field.focus();
  for (let k = 0; k < 200 && !found.results; k++) {
    field.value = "theorem 5" + " ".repeat(k % 2);
    for (const name of ["input", "keyup"]) field.dispatchEvent(new Event(name, {bubbles: true}));
    await wait(100);
    const links = [...inside.querySelectorAll(".md-search-result__link")];
    if (links.length) found.results = links.map((link) => link.href);
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def blank() -> Iterator[Path]:
    """An empty page of the site, which opens others at the width of a phone."""
    page = SITE / "opened-by-the-tests.html"
    page.write_text('<!DOCTYPE html><link rel="icon" href="data:,"><title>tests</title>')
    yield page
    page.unlink()


def _right(address: str, profile: Path) -> None:
    with opened(address, profile) as tab:
        found = tab.run(SCRIPT.replace("PAGES", json.dumps(PAGES)))
        assert not tab.errors
    results = found.pop("results", [])
    assert any("proofs-rar-ddls" in link or "guarantees" in link for link in results), results
    assert {page: one["wide"] for page, one in found.items() if one["wide"] > 420} == {}
    assert {page: one["failed"] for page, one in found.items() if one["failed"]} == {}
    assert all(found[page]["formulas"] >= least for page, least in FORMULAS.items())


def test_pages_from_files(blank: Path, tmp_path: Path) -> None:
    _right(blank.absolute().as_uri(), tmp_path / "profile")


def test_pages_over_http(blank: Path, tmp_path: Path) -> None:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        _right(f"http://127.0.0.1:{server.server_port}/{blank.name}", tmp_path / "profile")
        server.shutdown()


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found |= {value for key, value in attributes if key in ("href", "src") and value}


@cache
def _ids(page: Path) -> frozenset[str]:
    return frozenset(unescape(one) for one in re.findall(r'\b(?:id|name)="([^"]*)"', page.read_text(encoding="utf-8")))


def test_no_link_is_broken_and_none_shows_the_name_of_a_source() -> None:
    broken, sources = [], []
    for page in sorted(SITE.rglob("*.html")):
        if page.name == "404.html":  # its links begin at the host's root
            continue
        text = page.read_text(encoding="utf-8")
        links = _Links()
        links.feed(text)
        for link in links.found:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
                continue
            target = page.parent / unquote(parts.path) if parts.path else page
            if not (target.is_file() or (target / "index.html").is_file()) or (
                target.suffix == ".html" and parts.fragment and unquote(parts.fragment) not in _ids(target)
            ):
                broken.append(f"{page.relative_to(SITE)}: {link}")
        if ".md</a>" in text:
            sources.append(str(page.relative_to(SITE)))
    assert not broken
    assert not sources, "links whose text is the name of a file, not the title of a page"

"""A page in headless Chromium, driven over a pipe: what its scripts find, and what they complained of."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SWITCHES = ("--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--remote-debugging-pipe")


class Tab:
    """An open page; `errors` are what its console told as such, its exceptions, and what it could not load."""

    def __init__(self, read: int, write: int) -> None:
        self._from, self._to = os.fdopen(read, "rb", buffering=0), os.fdopen(write, "wb", buffering=0)
        self._rest, self._count, self._session = b"", 0, ""
        self.errors: list[str] = []

    def open(self, address: str, width: int, dark: bool) -> None:
        """Load a page and wait for it."""
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Runtime", "Log", "Page"):
            self(f"{part}.enable")
        self("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", features=[scheme])
        self("Page.navigate", url=address)
        self.run("new Promise((done) => document.readyState === 'complete' ? done() : addEventListener('load', done))")

    def run(self, script: str) -> Any:
        """The value of an expression, a promise's when it is kept."""
        found = self("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def __call__(self, method: str, **given: object) -> dict[str, Any]:
        """Ask the browser; what it tells in between is looked through for errors."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": given}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._count:
                assert "error" not in told, told
                result: dict[str, Any] = told["result"]
                return result
            self._look(told.get("method"), told.get("params", {}))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = self._from.read(1 << 16)
            assert more, "the browser ended"
            self._rest += more
        line, self._rest = self._rest.split(b"\0", 1)
        found: dict[str, Any] = json.loads(line)
        return found

    def _look(self, method: str | None, told: dict[str, Any]) -> None:
        wrong = method == "Runtime.exceptionThrown"
        wrong |= method == "Log.entryAdded" and told["entry"]["level"] == "error"
        wrong |= method == "Runtime.consoleAPICalled" and told["type"] == "error"
        if wrong:
            self.errors.append(json.dumps(told)[:400])


@contextmanager
def opened(address: str, profile: Path, *, width: int = 420, dark: bool = False) -> Iterator[Tab]:
    """A page in a browser of its own, with a folder for it; it is killed after five minutes."""
    assert BROWSER is not None
    to_read, to_write = os.pipe(), os.pipe()
    command = shlex.join([BROWSER, *SWITCHES, f"--user-data-dir={profile}", "about:blank"])
    with subprocess.Popen(
        ["bash", "-c", f"exec {command} 3<&{to_read[0]} 4>&{to_write[1]}"],
        pass_fds=(to_read[0], to_write[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as browser:
        os.close(to_read[0])
        os.close(to_write[1])
        alarm = threading.Timer(300, browser.kill)
        alarm.start()
        try:
            tab = Tab(to_write[0], to_read[1])
            tab.open(address, width, dark)
            yield tab
        finally:
            alarm.cancel()
            browser.kill()


LOOK = """({wide: document.documentElement.scrollWidth,
  paper: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,
  pictures: document.querySelectorAll("figure svg, figure img").length,
  failed: [...document.images].filter((one) => !one.complete || !one.naturalWidth).length,
  elsewhere: performance.getEntriesByType("resource").map((one) => one.name)
    .filter((name) => !/^(file|data):/.test(name))})"""


def looked_at(pages: dict[Path, int], profile: Path, width: int = 420) -> None:
    """Each page on a phone, light and dark, with so many pictures: no errors, no sideways scroll, no network."""
    with opened("about:blank", profile) as tab:
        for page, pictures in pages.items():
            seen = []
            for dark in (False, True):
                tab.open(page.absolute().as_uri(), width, dark)
                seen.append(tab.run(LOOK))
                assert not tab.errors, (page, tab.errors)
                assert seen[-1]["wide"] <= width and not seen[-1]["elsewhere"] and not seen[-1]["failed"], (page, seen)
                assert seen[-1]["pictures"] == pictures, (page, seen)
            light, dark_one = seen
            assert light["paper"] != dark_one["paper"] and light["ink"] != dark_one["ink"], (page, seen)

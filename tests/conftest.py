"""Puts tests/ on the path, for the plain references of tests/support, and behind it the checkout with its studies."""

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1]))  # studies/ stands in a checkout alone

from support.command import Command

# A shell may start tests in the background with SIGINT ignored; those about Ctrl-C need it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test depends on the clock: a slow machine neither fails an example nor ends the drawing of examples. The examples
# are the same on every run.
settings.register_profile("schedgap", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("schedgap")


@pytest.fixture(autouse=True)
def _users_code_ends_with_its_test(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A process keeps the modules that a user's files brought, and their folders; the next test has a `mine`, too."""
    before, made_by_tests = set(sys.modules), tmp_path_factory.getbasetemp()
    yield
    for name in sys.modules.keys() - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(made_by_tests):
            del sys.modules[name]
    if method := sys.modules.get("schedgap.catalogue.method"):
        method._FOLDERS.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Seconds by folder, where they are more than a few: what is to become quicker is seen after every run."""
    took: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                took[report.nodeid.rpartition("/")[0]] += report.duration
    if sum(took.values()) > 60:
        terminalreporter.section("seconds by folder, all workers together")
        for folder, seconds in took.most_common():
            terminalreporter.write_line(f"{seconds:8.0f}  {folder}")


DATA = Path(__file__).parent / "data"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command in this process."""
    return Command(capsys, monkeypatch)


@pytest.fixture
def data() -> Path:
    """The reference cases."""
    return DATA


@pytest.fixture
def mixed(data: Path) -> Path:
    """A case with rings that cross; its optimum is 12."""
    return data / "rar-14-mixed.json"

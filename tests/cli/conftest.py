"""Fixtures of the command-line tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command

DATA = Path(__file__).parents[1] / "data"


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

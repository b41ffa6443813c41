"""The site stays as short as it was made: its words, as docs/notes/words.md counts them."""

from __future__ import annotations

import json

from studies.words import NOW, counted, table, words

MOST = 60_000


def test_the_site_has_no_more_words_than_it_may() -> None:
    pages = counted(NOW)
    assert {"README.md", "docs/evaluating.md", "docs/tutorials/own-tests.ipynb"} <= pages.keys()
    assert not [name for name in pages if "notes" in name]
    assert sum(pages.values()) <= MOST


def test_words_of_a_page_and_of_a_notebook() -> None:
    assert words("a.md", "# Two words\n\n| a | b |\n") == 8
    cells = [{"cell_type": "markdown", "source": ["one ", "two\n"]}, {"cell_type": "code", "source": ["f(x)"]}]
    assert words("a.ipynb", json.dumps({"cells": cells})) == 3


def test_the_table_has_a_dash_for_a_page_that_was_not_there() -> None:
    rows = table({"before": {"a": 1_000}, NOW: {"b": 2}}).splitlines()
    assert rows[2:] == ["| a | 1,000 | - |", "| b | - | 2 |", "| all | 1,000 | 2 |"]

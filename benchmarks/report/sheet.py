"""Tables that explain themselves: a title, rows, and under them a sentence for every column that needs one."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from schedgap.benchmarks.report.text import table

WIDE = 120
"""Characters beyond which a table is made narrower where that is possible."""
NARROW = 80
"""Characters to which text under a table is wrapped."""
LABEL = 24
"""Characters after which a cell of text goes on in the next line."""


class Marked(str):
    """A cell with a colour ("held", "refuted" or none) and perhaps a link, both of which only HTML shows."""

    kind: str
    link: str

    def __new__(cls, words: str, kind: str = "", link: str = "") -> Marked:
        """The words with their colour and link."""
        found = super().__new__(cls, words)
        found.kind, found.link = kind, link
        return found


@dataclass(frozen=True)
class Column:
    """A column: its title, what it means where the title does not say it, and how it stands.

    Attributes
    ----------
    right : right-aligned, as numbers are
    page : only on a page, which has more room than text
    width : characters of text after which a cell goes on in the next line
    count : of what is seldom there: a column of zeros is as good as empty
    """

    title: str
    meaning: str = ""
    right: bool = True
    page: bool = False
    width: int = LABEL
    count: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table for text and for HTML. Columns with nothing in them are left out of both.

    Attributes
    ----------
    title : one line above it
    columns, rows : as many cells in every row as there are columns
    notes : sentences below the meanings of the columns
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[str]]
    notes: tuple[str, ...] = ()

    def _kept(self, page: bool) -> list[int]:
        wanted = [i for i, column in enumerate(self.columns) if page or not column.page]
        empty = [("", "-", "0") if column.count else ("", "-") for column in self.columns]
        return [i for i in wanted if any(row[i] not in empty[i] for row in self.rows)]

    def text(self, width: int = WIDE) -> str:
        """As text of at most so many characters a line where its cells allow it; empty without rows."""
        if not self.rows:
            return ""
        kept = self._kept(page=False)
        rows = [[_folded(row[i], self.columns[i]) for i in kept] for row in self.rows]
        right = "".join("r" if self.columns[i].right else "l" for i in kept)
        titles = [self.columns[i].title for i in kept]
        shown = table(titles, rows, right)
        if max(map(len, shown.splitlines())) > width:  # then titles of several words go over several lines
            short = ["\n".join(textwrap.wrap(title, 10, break_long_words=False)) for title in titles]
            shown = table(short, rows, right, width=width)
        lines = [self.title, shown]
        for line in self.below(page=False):
            lines += textwrap.wrap(
                line, min(NARROW, width), initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
            )
        return "\n".join(lines)

    def page(self) -> tuple[list[str], list[list[str]], str]:
        """Titles, cells and alignments of the columns that a page shows."""
        kept = self._kept(page=True)
        right = "".join("r" if self.columns[i].right else "l" for i in kept)
        return [self.columns[i].title for i in kept], [[row[i] for i in kept] for row in self.rows], right

    def below(self, page: bool) -> list[str]:
        """The sentences under it: what its columns mean, then the notes."""
        told = [self.columns[i] for i in self._kept(page)]
        legend = "; ".join(f"{column.title}: {column.meaning}" for column in told if column.meaning)
        return [line for line in (legend and f"{legend}.", *self.notes) if line]


def _folded(cell: str, column: Column) -> str:
    """A long cell of text on several lines."""
    if column.right or len(cell) <= column.width:
        return cell
    lines = textwrap.wrap(cell, column.width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    return "\n".join(lines)

"""Tables that explain themselves: a title, rows, and under them a sentence for every column that needs one."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from schedgap.benchmarks.text import table

WIDE = 120
"""Characters beyond which a table is made narrower where that is possible."""
NARROW = 80
"""Characters to which text under a table is wrapped."""
LABEL = 24
"""Characters after which a cell of text goes on in the next line."""
NARROW_LABEL, NARROW_CELL = 18, 10
"""The same where that is too wide: for the first column, and for every other."""


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
    """A column: its title, what it means where the title does not say it, and how it stands."""

    title: str
    meaning: str = ""
    right: bool = True  # right-aligned, as numbers are
    page: bool = False  # only on a page, which has more room than text
    width: int = LABEL  # characters of text after which a cell goes on in the next line
    count: bool = False  # whether zeros are left blank: what is counted is seldom there
    heading: bool = False  # in text no column, but a line above the rows that share it
    plain: str = ""  # the title on a page, in plain words; as in text where empty

    def shown(self, page: bool) -> str:
        """Its title on a page, or in text."""
        return self.plain or self.title if page else self.title


@dataclass(frozen=True)
class Sheet:
    """A table for text and for HTML. Columns with nothing in them are left out of both."""

    title: str  # one line above it
    # columns, rows: as many cells in every row as there are columns
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[str]]
    notes: tuple[str, ...] = ()  # sentences below the meanings of the columns

    def _kept(self, page: bool) -> list[int]:
        wanted = [i for i, column in enumerate(self.columns) if page or not column.page]
        empty = [("", "-", "0") if column.count else ("", "-") for column in self.columns]
        return [i for i in wanted if any(row[i] not in empty[i] for row in self.rows)]

    def text(self, width: int = WIDE) -> str:
        """The sheet as text of at most so many characters a line where its cells allow it; empty without rows."""
        if not self.rows:
            return ""
        kept = [i for i in self._kept(page=False) if not self.columns[i].heading]
        above = [self._heading(row, width) for row in self.rows]
        right = "".join("r" if self.columns[i].right else "l" for i in kept)

        def shown(title: int, cell: int, most: int | None = None) -> str:
            """With titles and cells of at most so many characters a line, where words are that short."""
            titles = [_wrapped(self.columns[i].title, title) for i in kept]
            folded = [_folded(row, self.columns, kept, cell) for row in self.rows]
            return table(titles, folded, right, width=most, above=above)

        tries = (shown(WIDE, LABEL), shown(10, LABEL), shown(10, NARROW_LABEL))
        fits = (text for text in tries if max(map(len, text.splitlines())) <= width)
        lines = [self.title, next(fits, "") or shown(10, NARROW_LABEL, width)]
        for line in filter(None, (self.legend(page=False), *self.notes)):
            lines += textwrap.wrap(
                line, min(NARROW, width), initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
            )
        return "\n".join(lines)

    def _heading(self, row: Sequence[str], width: int) -> str:
        """The line above a row, the first of its words a name, the others told by their titles."""
        told = [i for i, column in enumerate(self.columns) if column.heading and row[i] not in ("", "-")]
        words = [f"{self.columns[i].title} {row[i]}" if i != told[0] else row[i] for i in told]
        line = "; ".join(words).replace("; ", ": ", 1)
        return "\n".join(textwrap.wrap(line, width, subsequent_indent="  ")) if line else ""

    def page(self) -> tuple[list[str], list[list[str]], str, list[str]]:
        """Titles, cells, alignments and meanings of the columns that a page shows."""
        kept = self._kept(page=True)
        right = "".join("r" if self.columns[i].right else "l" for i in kept)
        shown = [self.columns[i] for i in kept]
        cells = [[row[i] for i in kept] for row in self.rows]
        return [one.shown(page=True) for one in shown], cells, right, [one.meaning for one in shown]

    def legend(self, page: bool) -> str:
        """What its columns mean; empty where none says."""
        told = [self.columns[i] for i in self._kept(page)]
        words = "; ".join(f"{column.shown(page)}: {column.meaning}" for column in told if column.meaning)
        return f"{words}." if words else ""


def _folded(row: Sequence[str], columns: Sequence[Column], kept: Sequence[int], width: int) -> list[str]:
    """Its long cells on several lines: those of text, and numbers too where little room is left."""
    cells = []
    for i in kept:
        one, first = columns[i], i == kept[0]
        most = one.width if width == LABEL or one.width != LABEL else width if first else NARROW_CELL
        numbers = one.right and width == LABEL
        hangs = first or (width == LABEL and not one.right)
        cells.append(row[i] if numbers else _wrapped(row[i], most, "  " if hangs else ""))
    if any(column.heading for column in columns):  # the rows below a heading
        cells[0] = textwrap.indent(cells[0], "  ")
    return cells


def _wrapped(text: str, width: int, indent: str = "") -> str:
    """On lines of at most so many characters; what stands in brackets stays on one."""
    whole = re.sub(r"\([^)]*\)", lambda found: found[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(whole, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
    return "\n".join(lines).replace("\0", " ")

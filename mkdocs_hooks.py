"""What the site needs beside its plugins: nothing is fetched from elsewhere, and types are those of the code."""

from __future__ import annotations

import re
from typing import Any

import griffe

from schedgap.rows import rows_of_models
from schedgap.tools.judge.table import tables

SHIM = "https://unpkg.com/iframe-worker/shim"
"""What the offline plugin would load for the search on pages that are opened from a file; it is shipped instead."""
_SOURCE = re.compile(r'href="((?:\.\./)*[\w/-]+)\.md(?=["#])')
_SECTION = re.compile(r"^(Parameters|Attributes)\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^([A-Za-z_*][\w*, ]*) : (.*)$", re.MULTILINE)


TABLES = {"reference/rows.md": rows_of_models, "reference/reading.md": tables}
"""Pages that end with tables made of the code when the site is built."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A page's text, with the tables that are made for it."""
    made = TABLES.get(page.file.src_uri)
    return markdown if made is None else "\n".join((markdown, *made()))


def on_post_page(output: str, page: Any, config: Any) -> str:
    """A page, its depth below the site's root counted; links of notebooks lead to pages, not to their sources."""
    output = _SOURCE.sub(lambda link: f'href="{link[1].replace("README", "index")}.html', output)
    return output.replace(SHIM, f"{'../' * page.url.count('/')}vendor/iframe-worker.js")


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """The page of an unknown address."""
    return output_content.replace(SHIM, "vendor/iframe-worker.js")


def as_numpydoc(text: str) -> str:
    """``name : what it is`` as the name and, indented, what it is: the type then comes from the signature."""

    def section(found: re.Match[str]) -> str:
        entries = _ENTRY.sub(lambda entry: f"{entry[1]}\n    {entry[2]}", found[2])
        return f"{found[1]}\n{'-' * len(found[1])}\n{entries}"

    plain = re.sub(r":(?:func|class|mod|meth|data):`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text).replace("``", "`")
    return _SECTION.sub(section, plain)


class PlainDocstrings(griffe.Extension):  # type: ignore[misc]
    """The docstrings of the package as mkdocstrings reads them."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Each module, class and function once it is read."""
        if obj.docstring is not None:
            obj.docstring.value = as_numpydoc(obj.docstring.value)

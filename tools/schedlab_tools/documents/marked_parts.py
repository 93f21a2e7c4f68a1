# SPDX-License-Identifier: MIT
"""Reads and replaces generated parts of a document, which are between two comments."""

from __future__ import annotations

import re
from pathlib import Path

from schedlab.base.files.atomic import written
from schedlab.errors import SchedlabError

END = "<!-- end -->"


def marked(document: str, name: str) -> str:
    """Returns the text between `<!-- name -->` and the next `<!-- end -->`.

    Raises SchedlabError if the document has no such part.
    """
    begin, end = _place(document, name)
    return document[begin:end]


def with_marked(document: str, name: str, text: str) -> str:
    """Returns the document with the part replaced. Raises SchedlabError as marked() does."""
    begin, end = _place(document, name)
    return document[:begin] + text + document[end:]


def write(file: Path, text: str) -> None:
    """Writes a document or picture atomically."""
    with written(file) as new:
        new.write_text(text, encoding="utf-8")


def _place(document: str, name: str) -> tuple[int, int]:
    match = re.search(rf"<!-- {re.escape(name)} -->(.*?){END}", document, re.DOTALL)
    if not match:
        raise SchedlabError(f"the document has no part between <!-- {name} --> and {END}")
    return match.span(1)

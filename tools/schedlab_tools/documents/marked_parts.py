# SPDX-License-Identifier: MIT
"""Generates documents: reads and replaces parts between two comments, wraps texts, fills templates."""

import os
import re
import subprocess
import textwrap
from pathlib import Path

import jinja2

from schedlab.base.files.atomic import atomic_write
from schedlab.base.host.isolated import module_command
from schedlab.errors import SchedlabError
from schedlab.paths import ROOT, STUDIES_FOLDER

END = "<!-- end -->"
_WIDTH = 118


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
    with atomic_write(file) as new:
        new.write_text(text, encoding="utf-8")


def _place(document: str, name: str) -> tuple[int, int]:
    """Returns the beginning and the end of a part. Raises SchedlabError."""
    match = re.search(rf"<!-- {re.escape(name)} -->(.*?){END}", document, re.DOTALL)
    if not match:
        raise SchedlabError(f"the document has no part between <!-- {name} --> and {END}")
    return match.span(1)


def wrapped(text: str, first: str = "", rest: str = "", width: int = _WIDTH) -> str:
    """Wraps a text. `first`, `rest`: what the first and the other lines begin with."""
    return textwrap.fill(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def markdown_templates() -> jinja2.Environment:
    """Returns the Markdown templates of studies/, with filters that wrap items and paragraphs."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(STUDIES_FOLDER),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # Markdown needs no escaping
    templates.filters["item"] = lambda text: wrapped(text, "- ", "  ")
    templates.filters["wrapped"] = wrapped
    return templates


def printed_output(module: str, *arguments: str, **variables: str) -> str:
    """Returns the output of a module run as a program, with these environment variables.

    Raises SchedlabError if it fails.
    """
    result = subprocess.run(
        module_command(module, *arguments),
        check=False,
        env={**os.environ, **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if result.returncode:
        raise SchedlabError(
            f"{module} {' '.join(arguments)} failed:\n{result.stdout}{result.stderr}".strip()
        )
    return result.stdout

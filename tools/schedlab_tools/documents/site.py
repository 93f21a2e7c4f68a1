# SPDX-License-Identifier: MIT
"""Builds a site from the documents with Sphinx: sorted by need, with search, for any browser without a network.

Files that the documents link to are pages too: other Markdown files as they are, sources with colours and line
numbers. So every link of the documents works, also far from the repository.
"""

import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from pygments.lexers import CLexer, find_lexer_class_for_filename
from pygments.token import Token
from sphinx.application import Sphinx
from sphinx.parsers import Parser
from sphinx.util.docutils import docutils_namespace, patch_docutils

import schedlab
from schedlab.errors import SchedlabError
from schedlab.paths import ROOT

START_DOCUMENT = "docs/README"
GALLERY_DOCUMENT = "docs/gallery/README"
_MARKDOWN = (".md", ".ipynb")
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")
_HEADING = re.compile(r"^### (\w[\w -]*)", re.MULTILINE)
_REDIRECT = (
    '<!doctype html><meta charset="utf-8"><title>schedlab</title>'
    f'<meta http-equiv="refresh" content="0; url={START_DOCUMENT}.html"><a href="{START_DOCUMENT}.html">schedlab</a>\n'
)


def build(folder: Path) -> int:
    """Builds the site into a folder, and returns the number of pages.

    Raises SchedlabError with Sphinx's warnings if there are any. The folder is unchanged then.
    """
    with TemporaryDirectory(prefix="schedlab-") as scratch:
        made = Path(scratch) / "site"
        _run_sphinx(made, Path(scratch) / "doctrees")
        made.joinpath("index.html").write_text(_REDIRECT, encoding="utf-8")
        shutil.copytree(made, folder, dirs_exist_ok=True)
        return sum(1 for _ in made.rglob("*.html"))


def documents() -> list[Path]:
    """Returns the Markdown files and notebooks of the site: docs/, the top folder, and what they link to."""
    ordered: dict[Path, None] = {}
    waiting = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
    while waiting:
        document = waiting.pop()
        if document not in ordered:
            ordered[document] = None
            waiting += [file for file in linked_files(document) if file.suffix in _MARKDOWN]
    return list(ordered)


def linked_files(document: Path) -> Iterator[Path]:
    """Yields the existing files that a document links to."""
    for name in _LINK.findall(markdown(document.read_text(encoding="utf-8"), document.suffix)):
        file = (document.parent / name).resolve()
        if file.is_file() and file.is_relative_to(ROOT):
            yield file


def _sources() -> list[Path]:
    """Returns the linked files that pygments can colour."""
    linked = {file for document in documents() for file in linked_files(document)}
    return sorted(
        file for file in linked if file.suffix not in ("", ".svg", *_MARKDOWN) and _lexer_name(file)
    )


def _run_sphinx(out: Path, scratch: Path) -> None:
    """Builds the site with Sphinx. Raises SchedlabError with its warnings."""
    warnings = io.StringIO()
    files = [*documents(), *_sources()]
    with patch_docutils(), docutils_namespace():  # docutils registers directives globally
        application = Sphinx(
            ROOT,
            None,
            out,
            scratch,
            "html",
            confoverrides=_settings(files),
            status=None,
            warning=warnings,
            freshenv=True,
            warningiserror=True,
        )
        application.build()
    if application.statuscode:
        text = re.sub(r"\x1b\[[\d;]*m", "", warnings.getvalue()).strip()
        raise SchedlabError(text, what="the documents")


def _settings(files: list[Path]) -> dict[str, Any]:
    """Returns Sphinx's settings for these documents."""
    return {
        "extensions": ["myst_parser", __name__],
        "project": "schedlab",
        "version": schedlab.__version__,
        "root_doc": START_DOCUMENT,
        "include_patterns": [str(file.relative_to(ROOT)) for file in files],
        "source_suffix": {
            file.suffix: {".md": "markdown", ".ipynb": "notebook"}.get(file.suffix, "source")
            for file in files
        },
        "suppress_warnings": [
            "toc.not_included"
        ],  # sources; documents are listed in docs/README.md
        "smartquotes": False,
        "highlight_language": "none",
        "myst_heading_anchors": 6,
        "html_theme": "furo",
        "html_title": f"schedlab {schedlab.__version__}",
        "html_copy_source": False,
        "html_show_copyright": False,
        "html_use_index": False,
        "html_show_search_summary": False,  # browsers fetch no text from files
    }


def setup(application: Sphinx) -> dict[str, bool]:
    """Registers the extension: Sphinx calls this."""
    application.add_source_parser(Notebook)
    application.add_source_parser(Source)
    application.add_lexer("c", MarkedC)
    application.connect("source-read", _add_contents)
    return {"parallel_read_safe": True}


def _add_contents(_application: Sphinx, document: str, text: list[str]) -> None:
    """Adds the side bar's entries to the lists of documents: what they link to, in their order."""
    if document == START_DOCUMENT:
        groups = _HEADING.split(text[0])[1:]
        text[0] += "".join(
            _contents(name, body) for name, body in zip(groups[::2], groups[1::2], strict=True)
        )
        text[0] += _contents("Project", "".join(f"](../{file.name})" for file in _project()))
    elif document == GALLERY_DOCUMENT:
        text[0] += _contents("", text[0])


def _project() -> list[Path]:
    """Returns the Markdown files of the top folder, the README first."""
    return sorted(ROOT.glob("*.md"), key=lambda file: (file.name != "README.md", file.name))


def _contents(caption: str, body: str) -> str:
    """Returns the Markdown of a part of the side bar."""
    names = [name for name in _LINK.findall(body) if name.endswith(_MARKDOWN)]
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    lines = [*options, *dict.fromkeys(names)]
    return "\n".join(["\n\n```{toctree}", *lines, "```\n"])


def markdown(text: str, suffix: str) -> str:
    """Returns the text of a document as Markdown: of a notebook, its cells without their output."""
    if suffix != ".ipynb":
        return text
    cells = ((cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"])
    return "\n\n".join(
        f"```python\n{source}\n```" if kind == "code" else source for kind, source in cells
    )


class Notebook(MystParser):
    """Reads a notebook without Jupyter."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parses a notebook's cells as Markdown."""
        super().parse(markdown(inputstring, ".ipynb"), document)


class Source(Parser):
    """Shows a file of the repository as it is."""

    supported = ("source",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Makes a page: the file's path, and its lines."""
        path = Path(document["source"])
        name = str(path.relative_to(ROOT))
        page = nodes.section("", nodes.title(name, name), ids=["source"])
        page += nodes.literal_block(
            inputstring, inputstring, language=_lexer_name(path), linenos=True
        )
        document += page


def _lexer_name(path: Path) -> str:
    lexer = find_lexer_class_for_filename(path.name)
    return str(lexer.aliases[0]) if lexer else ""


class MarkedC(CLexer):  # type: ignore[misc] # Pygments has no types
    """C with the gallery's marks of important lines."""

    def get_tokens_unprocessed(self, text: str, stack: Any = ("root",)) -> Iterator[Any]:
        """Yields C's tokens, and the marks as emphasised text instead of errors."""
        for place, kind, value in super().get_tokens_unprocessed(text, stack):
            yield place, Token.Generic.Strong if value == "▶" else kind, value

# SPDX-License-Identifier: MIT
"""Tests that links, anchors and commands of the documents exist, and that the site needs no network."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from markdown_it import MarkdownIt

from conftest import ROOT
from schedlab.commands.cli import cli
from schedlab.commands.command_help import OLD_SPELLINGS

if sys.version_info < (3, 11):
    pytest.skip("Sphinx needs Python 3.11", allow_module_level=True)

from schedlab_tools.documents import site

LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]*\bsrc=|<link[^>]*\bhref=|url\(|@import")
END_OF_COMMAND = re.compile(r"\s[|>&;#]|;|\n|\)")
QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
PLACEHOLDER = re.compile(r"[A-Z.…\[<{\"'(-]")


@pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app")
def test_links_and_anchors_lead_somewhere_and_pages_load_nothing(tmp_path: Path) -> None:
    """Sphinx's warnings are errors, among them links to files and anchors that do not exist."""
    assert site.build(tmp_path / "site") > len(site.documents())
    files = [file for kind in ("html", "css") for file in (tmp_path / "site").rglob(f"*.{kind}")]
    assert len(files) > 100
    remote = {
        (file.name, load.group())
        for file in files
        for load in re.finditer(
            rf"(?:{LOADED.pattern})[\"' ]*(?:https?:)?//[^\"' )>]*", file.read_text()
        )
    }
    assert remote == set()


def commands(document: Path) -> Iterator[str]:
    """Yields the calls of schedlab in a document's code, without what a shell does with them."""
    text = site.markdown(document.read_text(encoding="utf-8"), document.suffix)
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for part in (token, *(token.children or ())):
            if part.type in ("fence", "code_block", "code_inline"):
                code = QUOTED.sub("TEXT", part.content.replace("\\\n", " "))
                for call in code.split("./schedlab ")[1:]:
                    yield END_OF_COMMAND.split(call)[0]


def mistake(call: str) -> str:
    """Returns the first unknown command or option, or "" if all exist."""
    command: click.Command = cli
    words = call.split()
    while isinstance(command, click.Group) and words and not PLACEHOLDER.match(words[0]):
        name = words.pop(0)
        if name not in command.commands:
            return name
        command = command.commands[name]
    if command.context_settings.get("ignore_unknown_options"):
        return ""
    known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    known |= {name for parameter in command.params for name in parameter.secondary_opts}
    options = (re.match(r"\[?(--?[a-z][a-z-]*)", word) for word in words)
    return next((option[1] for option in options if option and option[1] not in known), "")


@pytest.mark.parametrize(
    "document", site.documents(), ids=lambda document: str(document.relative_to(ROOT))
)
def test_commands_exist(document: Path) -> None:
    assert {call: word for call in commands(document) if (word := mistake(call))} == {}


@pytest.mark.parametrize(
    ("call", "word"),
    [
        ("runn --policy rr", "runn"),
        ("dev linnt", "linnt"),
        ("run --polcy rr", "--polcy"),
        ("run [--polcy rr]", "--polcy"),
        ("run --policy rr NAME", ""),
        ("test --anything", ""),
        *((old, old.split()[-1]) for old in OLD_SPELLINGS if "--" in old),
    ],
)
def test_planted_mistake_in_a_command_is_detected(call: str, word: str) -> None:
    assert mistake(call) == word

# SPDX-License-Identifier: MIT
"""The mistakes of tests/mistakes/mistakes.yaml: a policy that makes each, and the table of
docs/mistakes.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from schedlab.commands.new_policy import render_template
from schedlab.paths import ROOT

FILE = ROOT / "tests" / "mistakes" / "mistakes.yaml"
PAGE = ROOT / "docs" / "mistakes.md"
NAME = "mine"
_PHASES = {
    "compile": "compiled",
    "setup": "first setup",
    "run": "{} ms",
    "verifier": "compiled for Linux",
}


@dataclass(frozen=True)
class AuthorsMistake:
    """One entry; the file explains the fields."""

    phase: str
    mistake: str
    headline: str
    at: str = ""
    hook: str = ""
    task: bool = False
    within: int = 0
    tunable: str = ""
    changes: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        """Writes the policy that makes the mistake, and returns its file."""
        text = render_template("policy.c", NAME, "a test")
        for old, new in self.changes.items():
            assert old in text, old
            text = text.replace(old, new, 1)
        file = folder / f"{NAME}.c"
        file.write_text(text)
        return file


def read_mistakes(*phases: str) -> list[AuthorsMistake]:
    """Returns the entries of these phases, or all entries, in order."""
    table = yaml.safe_load(FILE.read_text())
    assert list(table) == list(_PHASES)
    return [_entry(phase, node) for phase in phases or table for node in table[phase]]


def _entry(phase: str, node: dict[str, object]) -> AuthorsMistake:
    others = node.pop("and", {})
    node["headline"] = node.pop("says")
    changes = {node.pop("from"): node.pop("to"), **others} if "from" in node else {}  # type: ignore[dict-item]
    return AuthorsMistake(phase, changes=changes, **node)  # type: ignore[arg-type]


def table() -> str:
    """Returns the table of docs/mistakes.md."""
    return "\n".join(["", *_rows(), ""])


def _rows() -> Iterator[str]:
    yield "| mistake | the message says | it names | found |"
    yield "|---|---|---|---|"
    for entry in read_mistakes():
        names = [*(["line"] if entry.at else []), *(["hook"] if entry.hook else [])]
        names += [*(["task"] if entry.task else [])]
        at_end = entry.phase == "run" and not entry.within
        phase_text = "end of a setup" if at_end else _PHASES[entry.phase].format(entry.within)
        message = entry.headline.strip(" ,:").replace("|", "\\|")
        yield f"| {entry.mistake} | `{message}` | {', '.join(names) or '-'} | {phase_text} |"

# SPDX-License-Identifier: MIT
"""Tests that old spellings of commands still work, and that one line names the new spelling."""

from __future__ import annotations

import pytest

from schedlab.commands.cli import cli
from schedlab.commands.command_help import OLD_SPELLINGS, modernize

OLD = [
    ("bench", "dev bench"),
    ("bench agreement --policy rr", "dev bench agreement --policy rr"),
    ("docs --list", "dev docs --list"),
    ("lint -q", "dev lint -q"),
    ("soak storm", "dev soak storm"),
    ("run study", "reproduce"),
    ("run study --full", "reproduce --full"),
    ("run --json study-3 study-4", "reproduce --json study-3 study-4"),
    ("run --seed 2 --full", "reproduce --seed 2 --full"),
    ("run --quick --out study", "reproduce --quick --out study"),
    ("run --replay rec --policy rr", "replay rec --policy rr"),
    ("run --policy rr --replay=rec", "replay --policy rr rec"),
    ("run --what-if rec --json", "replay --what-if rec --json"),
    ("run --trust --yes --again rec", "verify --trust --yes rec"),
    ("run --again rec --trust --yes", "verify rec --trust --yes"),
    ("trace --from-perf rec -o out", "import rec -o out"),
    ("branch rec --at 1ms --seed 1-3", "branch rec --at 1ms --seeds 1-3"),
    ("explore policy rr --workers=2", "explore policy rr --jobs 2"),
    ("score rr --set 1", "score rr --workload-set 1"),
    ("sweep --workers 3", "sweep --jobs 3"),
    ("sweep --dry-run --workers 3", "sweep --dry-run --jobs 3"),
    ("explore policy rr --minutes 1 --depth 2", "explore policy rr --for 1min --depth 2"),
    ("explore policy rr --minutes=0.5", "explore policy rr --for 0.5min"),
    ("dev soak storm --hours 8", "dev soak storm --for 8h"),
    ("dev bench throughput --seconds 5", "dev bench throughput --for 5s"),
]


@pytest.mark.parametrize(("old", "new"), OLD)
def test_old_spelling_works_with_a_note(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert modernize(old.split()) == new.split()
    (line,) = capsys.readouterr().err.splitlines()
    assert f"`./schedlab {new.split()[0]}" in line


def test_two_old_spellings_in_one_line_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert modernize(["soak", "--hours", "2"]) == ["dev", "soak", "--for", "2h"]
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert modernize(["dev", "soak", "--hours"]) == ["dev", "soak", "--for", "h"]


def test_old_spellings_lead_to_commands() -> None:
    """Each old spelling has a case above; one study represents all studies."""
    cases = [{*old.replace("=", " ").split()} for old, _ in OLD]
    for old, new in OLD_SPELLINGS.items():
        assert new.split()[0] in cli.commands
        assert old.startswith("run study-") or any(case >= {*old.split()} for case in cases)


@pytest.mark.parametrize(
    "words", ["", "dev", "dev lint -q", "run", "test lint", "run --out study", "--help all"]
)
def test_the_present_spelling_stays(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert modernize(words.split()) == words.split()
    assert not capsys.readouterr().err

# SPDX-License-Identifier: MIT
"""Tests shell completion."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from conftest import ROOT
from schedlab.base.host.isolated import module_command
from schedlab.commands.cli import cli


def completed(*arguments: str) -> list[str]:
    """Returns the completions of the last word."""
    completion_variables = {
        "COMP_WORDS": " ".join(("schedlab", *arguments)),
        "COMP_CWORD": str(len(arguments)),
    }
    command = module_command("schedlab")
    environment = {**os.environ, **completion_variables, "_SCHEDLAB_COMPLETE": "bash_complete"}
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert result.stderr == ""
    return [line.partition(",")[2] for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rep"], {"replay", "report", "reproduce"}),
        (["dev", ""], {"bench", "docs", "lint", "soak"}),
        (["runs", "r"], {"rm"}),
        (["run", "--mach"], {"--machine"}),
        (["run", "--machine", "sp"], {"spike"}),
    ],
)
def test_words_are_completed(words: list[str], expected: set[str]) -> None:
    assert set(completed(*words)) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_ask_the_launcher_and_parse(shell: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["completion", shell])
    assert result.exit_code == 0
    assert f"{ROOT / 'schedlab'})" in result.stdout
    if shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(result.stdout)
        subprocess.run([shell, "-n", script], check=True)

# SPDX-License-Identifier: MIT
"""Refusals of commands called in this process; a separate process would print the same."""

from __future__ import annotations

from click.testing import CliRunner

from schedlab.commands.cli import cli
from schedlab.commands.wording import worded
from schedlab.errors import SchedlabError


def refusal(*words: str) -> str:
    """Returns the one-line message of a command that ends with status 2 and prints nothing."""
    done = CliRunner().invoke(cli, words)
    error = done.exception
    ours = isinstance(error, SchedlabError)
    status = error.exit_status if isinstance(error, SchedlabError) else done.exit_code
    assert (status, done.stdout) == (2, ""), (words, done.output, error)
    return " ".join((worded(str(error)) if ours else done.stderr).split())

# SPDX-License-Identifier: MIT
"""Refusals of commands called in this process; a separate process would print the same."""

from __future__ import annotations

from click.testing import CliRunner

from schedlab.commands.cli import cli
from schedlab.commands.wording import with_options
from schedlab.errors import SchedlabError


def refusal(*arguments: str) -> str:
    """Returns the one-line message of a command that ends with status 2 and prints nothing."""
    result = CliRunner().invoke(cli, arguments)
    error = result.exception
    ours = isinstance(error, SchedlabError)
    status = error.exit_status if isinstance(error, SchedlabError) else result.exit_code
    assert (status, result.stdout) == (2, ""), (arguments, result.output, error)
    return " ".join((with_options(str(error)) if ours else result.stderr).split())

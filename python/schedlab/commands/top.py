# SPDX-License-Identifier: MIT
"""`./schedlab top`: shows a running system live in this terminal."""

import sys
from typing import Any

import click

from schedlab.commands.monitor import session_factory, session_options
from schedlab.errors import WrongUsage


@click.command()
@session_options
@click.pass_context
def top(context: click.Context, /, **options: Any) -> None:
    """Watch and control a running scheduler in this terminal.

    Like `./schedlab monitor`, for hosts without a browser. RUN is the folder of a recorded run, which is played
    instead.
    """
    from importlib import import_module

    from schedlab.base.toolchain.needs import need_extra

    _need_terminal()
    need_extra("monitor")
    from schedlab.monitor.conduct import run_session

    # The import loads a library for terminals.
    run_session(
        session_factory(context, options), import_module("schedlab.monitor.terminal.app").run_app
    )


def _need_terminal() -> None:
    """Raises WrongUsage if there is no terminal to draw on and read keys from."""
    # Standard output may be redirected: the library draws on standard error.
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise WrongUsage(
            "top: standard input and standard error are not a terminal; use "
            "`./schedlab monitor` to watch in a browser"
        )

# SPDX-License-Identifier: MIT
"""`./schedlab top`: what a running system does, live, in this terminal."""

from __future__ import annotations

from typing import Any

import click

from schedlab.commands.monitor import session, session_options


@click.command()
@session_options
@click.pass_context
def top(context: click.Context, /, **options: Any) -> None:
    """Watch a scheduler decide, and steer it, in this terminal.

    The same as `./schedlab monitor`, for those who have no browser. RUN is the folder of a recorded
    run: it is played back instead.
    """
    from importlib import import_module

    from schedlab.monitor.conduct import watch

    # It brings a library for terminals with it.
    watch(session(context, options), import_module("schedlab.monitor.top").run_top)

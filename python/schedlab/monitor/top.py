# SPDX-License-Identifier: MIT
"""What `./schedlab top` shows a session with."""

from __future__ import annotations

from schedlab.monitor.session import Session
from schedlab.monitor.terminal.app import run_app


async def run_top(session: Session) -> None:
    """Shows it in this terminal until its user leaves."""
    await run_app(session)

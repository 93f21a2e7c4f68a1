# SPDX-License-Identifier: MIT
"""The tools as a server of the Model Context Protocol, at standard input and output."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import Lock
from typing import Any

from schedlab import __version__
from schedlab.base.toolchain.needs import need_extra
from schedlab.courses.assistant.laboratory import Laboratory
from schedlab.errors import SchedlabError

_ABOUT = (
    "A laboratory for CPU schedulers. Read the interface and a policy, write one of your own, check it, run it, see"
    " why processes waited, and score it. The same source has the same score each time."
)

_ONE_AT_A_TIME = Lock()
"""A client may ask for several at once: the list of what is in a folder is written anew for each file."""


def serve(laboratory: Laboratory) -> None:
    """Serves one client until it leaves."""
    need_extra("courses")
    from mcp.server import MCPServer

    server: Any = MCPServer(
        "schedlab", instructions=_ABOUT, version=__version__, log_level="WARNING"
    )
    for tool in (
        laboratory.read_interface,
        laboratory.list_policies,
        laboratory.read_policy,
        laboratory.write_policy,
        laboratory.check_policy,
        laboratory.list_workloads,
        laboratory.run_policy,
        laboratory.explain_waits,
        laboratory.score_policy,
    ):
        server.add_tool(_telling(tool), structured_output=False)
    server.run("stdio")


def _telling(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The same tool. The client reads why it was refused, and nothing of errors of another kind."""

    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(tool)
    def called(*given: Any, **named: Any) -> Any:
        try:
            with _ONE_AT_A_TIME:
                return tool(*given, **named)
        except SchedlabError as error:
            raise ToolError(str(error)) from None

    return called

# SPDX-License-Identifier: MIT
"""Calls a function in a separate process; request and result are JSON on standard input and output."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from schedlab.base.display.terminal import say
from schedlab.base.host.interpreter import module_command
from schedlab.errors import SchedlabError, refusal


def call_command(function: Callable[..., Any]) -> list[str]:
    """Returns the command of a process that calls a function with arguments from a JSON object.

    If the function fails, standard error has the message, and the exit status is the error's.
    """
    return module_command(__name__, f"{function.__module__}:{function.__name__}")


def request_text(**request: Any) -> str:
    """Returns a request for such a process; paths become texts."""
    return json.dumps(request, default=str)


def hear_signals() -> None:
    """Turns SIGTERM and SIGHUP into SystemExit, so that temporary folders are deleted."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` has SIGHUP ignored
            signal.signal(number, lambda number, frame: sys.exit(128 + number))


def main(function: str) -> None:
    """Entry point of the separate process."""
    hear_signals()
    module, _, name = function.partition(":")
    try:
        result = getattr(import_module(module), name)(**json.load(sys.stdin))
    except SchedlabError as error:
        say(f"schedlab: {error}")
        sys.exit(error.exit_status)
    except OSError as error:
        message, status = refusal(error)
        say(f"schedlab: {message}")
        sys.exit(status)
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])

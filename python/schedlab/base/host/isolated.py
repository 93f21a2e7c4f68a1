# SPDX-License-Identifier: MIT
"""Commands of schedlab's own processes: a module, a function, or a child that ends with its parent.

The request is a JSON object on standard input, and the result is JSON on standard output.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from schedlab.base.display.terminal import say
from schedlab.errors import SchedlabError, describe_os_error
from schedlab.paths import IS_INSTALLED, ROOT


def call_command(function: Callable[..., Any]) -> list[str]:
    """Returns the command of a process that calls `function`.

    The process reads the arguments from a JSON object. If the function fails, the message is on
    standard error, and the exit status is that of the exception.
    """
    return module_command(__name__, f"{function.__module__}:{function.__name__}")


def request_text(**request: Any) -> str:
    """Returns the arguments as JSON text for such a process; paths become strings."""
    return json.dumps(request, default=str)


def exit_on_signals() -> None:
    """Makes SIGTERM and SIGHUP raise SystemExit, so that temporary folders are deleted."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` has SIGHUP ignored
            signal.signal(number, lambda number, frame: sys.exit(128 + number))


def main(function: str) -> None:
    """Entry point of the separate process; `function` is its name with its module."""
    exit_on_signals()
    module, _, name = function.partition(":")
    try:
        result = getattr(import_module(module), name)(**json.load(sys.stdin))
    except SchedlabError as error:
        say(f"schedlab: {error}")
        sys.exit(error.exit_status)
    except OSError as error:
        message, status = describe_os_error(error)
        say(f"schedlab: {message}")
        sys.exit(status)
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])


PYTHON = (sys.executable, "-I", "-X", "utf8")
"""The command that starts this Python, isolated from the current folder and the environment.

The launcher uses the same options.
"""


def module_command(module: str, *arguments: str) -> list[str]:
    """Returns the command that runs a module of schedlab or of its environment as a program."""
    if IS_INSTALLED:
        return [*PYTHON, "-m", module, *arguments]
    return [*PYTHON, str(ROOT / "python" / "start.py"), module, *arguments]


_RUN_IF_PARENT_LIVES = 'test "$PPID" = "$0" || exit 1; exec "$@"'
"""Shell script that runs a command unless the parent has already ended.

For a parent that ended before the request, the kernel would send no signal.
"""


@cache
def prefix_before_pid(signal: str = "KILL") -> tuple[str, ...]:
    """Returns a command prefix, after which the PID of the starting process must follow.

    The command gets the signal when that process ends. Empty without setpriv (util-linux):
    processes are then not tied.
    """
    path = shutil.which("setpriv")
    return (
        (path, "--pdeathsig", signal, "--", "/bin/sh", "-c", _RUN_IF_PARENT_LIVES) if path else ()
    )


def complete_prefix(signal: str = "KILL") -> tuple[str, ...]:
    """Returns a complete prefix for a command that this process starts."""
    return (*prefix_before_pid(signal), str(os.getpid())) if prefix_before_pid(signal) else ()

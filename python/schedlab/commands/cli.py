# SPDX-License-Identifier: MIT
"""The command line.

Commands import their modules only when they are called, so that a start is fast.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from io import StringIO
from typing import Any

import click

from schedlab import __version__
from schedlab.base.display.activity import startup_messages
from schedlab.base.display.terminal import rephrase_messages, say
from schedlab.base.host.isolated import exit_on_signals
from schedlab.base.toolchain.needs import allow_installation
from schedlab.commands.command_help import LazyCommands, SectionedGroup
from schedlab.commands.environment import check_environment, describe_unexpected_error
from schedlab.commands.wording import with_options
from schedlab.environment import COMPLETION_VARIABLE
from schedlab.errors import SchedlabError, describe_os_error

COMMANDS: Any = LazyCommands(
    "schedlab.commands",
    "analyse",
    "boot",
    "branch",
    "calibrate",
    "check",
    "clean",
    "compare",
    "completion",
    "dask",
    "demo",
    "dev",
    "doctor",
    "explain",
    "explore",
    "grade",
    "import",
    "linux",
    "mcp",
    "monitor",
    "new-policy",
    "page",
    "policies",
    "python",
    "query",
    "record",
    "replay",
    "report",
    "reproduce",
    "run",
    "runs",
    "score",
    "scx",
    "shape",
    "sweep",
    "test",
    "top",
    "trace",
    "verify",
    "workloads",
)


@click.group(
    cls=SectionedGroup,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="schedlab")
def cli() -> None:
    """A laboratory for CPU schedulers.

    Runs scheduling policies on a small Unix-like kernel, in a simulator and on Linux, with the same workloads and
    metrics. `./schedlab run` reproduces six studies in one report.
    """


def _progress_display() -> AbstractContextManager[None]:
    """Returns the progress display of a command. It is silent while a shell completes a word."""
    is_completing = COMPLETION_VARIABLE in os.environ
    return nullcontext() if is_completing else startup_messages(" ".join(sys.argv[1:2]))


def main() -> None:
    """Runs a command, and turns errors into one message and an exit status."""
    exit_on_signals()
    rephrase_messages(with_options)
    try:
        check_environment()
        with _progress_display():
            allow_installation()
            cli(prog_name="schedlab", standalone_mode=False)
    except click.exceptions.Abort:
        say("schedlab: interrupted")
        sys.exit(128 + signal.SIGINT)
    except KeyboardInterrupt:
        say("schedlab: interrupted")
        sys.exit(128 + signal.SIGINT)
    except click.ClickException as error:
        usage = StringIO()
        error.show(usage)
        say(usage.getvalue().rstrip())
        sys.exit(error.exit_code)
    except SchedlabError as error:
        say(f"schedlab: {error}")
        sys.exit(error.exit_status)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        message, status = describe_os_error(error)
        say(f"schedlab: {message}")
        sys.exit(status)
    except SystemExit:
        raise
    # libraries in Rust raise exceptions that do not derive from Exception
    except BaseException as error:
        say(f"schedlab: {describe_unexpected_error(error)}")
        sys.exit(1)

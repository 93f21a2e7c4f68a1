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
from schedlab.base.display.activity import going_on
from schedlab.base.display.terminal import say, word_messages
from schedlab.base.host.isolated import hear_signals
from schedlab.base.toolchain.needs import install_what_is_missing
from schedlab.commands.command_help import Guided, Modules
from schedlab.commands.environment import check_environment, describe
from schedlab.commands.wording import worded
from schedlab.environment import COMPLETING
from schedlab.errors import SchedlabError, refusal

COMMANDS: Any = Modules(
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
    "replay",
    "report",
    "reproduce",
    "run",
    "runs",
    "score",
    "shape",
    "sweep",
    "test",
    "top",
    "trace",
    "verify",
    "workloads",
)


@click.group(
    cls=Guided,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="schedlab")
def cli() -> None:
    """A laboratory for CPU schedulers.

    Runs scheduling policies on a small Unix-like kernel, in a simulator and on Linux, with the same workloads and
    metrics. `./schedlab run` reproduces six studies in one report.
    """


def _voice() -> AbstractContextManager[None]:
    """Returns the progress display of a command. It is silent while a shell completes a word."""
    completes = COMPLETING in os.environ
    return nullcontext() if completes else going_on(" ".join(sys.argv[1:2]))


def main() -> None:
    """Runs a command, and turns errors into one message and an exit status."""
    hear_signals()
    word_messages(worded)
    try:
        check_environment()
        with _voice():
            install_what_is_missing()
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
        message, status = refusal(error)
        say(f"schedlab: {message}")
        sys.exit(status)
    except SystemExit:
        raise
    # libraries in Rust raise exceptions that do not derive from Exception
    except BaseException as error:
        say(f"schedlab: {describe(error)}")
        sys.exit(1)

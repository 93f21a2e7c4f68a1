# SPDX-License-Identifier: MIT
"""The command line.

Commands import their modules only when they are called, so that a start is fast.
"""

import os
import platform
import signal
import sys
import tempfile
import traceback
from contextlib import AbstractContextManager, nullcontext
from io import StringIO
from pathlib import Path
from typing import Any

import click

from schedlab import __version__
from schedlab.base.display.activity import startup_messages
from schedlab.base.display.terminal import rephrase_messages, say
from schedlab.base.host.addresses import check_address_limit
from schedlab.base.host.isolated import exit_on_signals
from schedlab.base.toolchain.needs import allow_installation
from schedlab.commands.command_help import LazyCommands, SectionedGroup
from schedlab.commands.wording import with_options
from schedlab.environment import COMPLETION_VARIABLE
from schedlab.errors import SchedlabError, WrongUsage, describe_os_error
from schedlab.paths import cache_folder

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


def check_environment() -> None:
    """Raises WrongUsage if the environment does not permit any run."""
    check_address_limit()
    try:
        os.getcwd()
    except FileNotFoundError:
        raise WrongUsage("the working directory was removed; change to another directory") from None


def describe_unexpected_error(error: BaseException) -> str:
    """Returns one line: the kind of error, and the path of the log written about it."""
    text = " ".join("".join(traceback.format_exception_only(error)).split())
    shown = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
    try:
        details = f"report it with {_write_log(error)}"
    except OSError as problem:
        details = f"report it with this line; no log could be written ({problem})"
    return f"internal error in schedlab: {shown}; {details}"


_SHOWN_MAX = 200


def _write_log(error: BaseException) -> Path:
    """Writes the log to the cache folder or the temporary folder.

    Raises OSError if neither can be written.
    """
    try:
        folder = cache_folder() / "errors"
        folder.mkdir(parents=True, exist_ok=True)
        return _write_log_in(folder, error)
    except (OSError, RuntimeError):  # RuntimeError: the home folder is unknown
        return _write_log_in(Path(tempfile.gettempdir()), error)


def _write_log_in(folder: Path, error: BaseException) -> Path:
    handle, name = tempfile.mkstemp(prefix="schedlab-error-", suffix=".log", dir=folder)
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(_log_text(error))
    return Path(name)


def _log_text(error: BaseException) -> str:
    """Returns the text of the log: version, command line, folder and traceback."""
    return (
        f"schedlab {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"command line: {sys.argv!r}\n"
        f"folder: {_working_folder()}\n\n" + "".join(traceback.format_exception(error))
    )


def _working_folder() -> str:
    """Returns the working folder, or a text if it does not exist any more."""
    try:
        return os.getcwd()
    except OSError:
        return "it is gone"

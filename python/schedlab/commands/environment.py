# SPDX-License-Identifier: MIT
"""Checks a process's environment before it starts, and reports unexpected errors.

Without the checks, libraries abort, hang or fail with messages that do not name the cause. An
unexpected error is one line for the user; its details are in a log.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from pathlib import Path

from schedlab import __version__
from schedlab.base.host.addresses import check_address_limit
from schedlab.errors import WrongUsage
from schedlab.paths import cache_folder


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
    """Writes the log into this folder and returns its path."""
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

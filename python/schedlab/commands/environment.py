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
from schedlab.base.host.addresses import need_addresses
from schedlab.errors import WrongUsage
from schedlab.paths import cache_folder


def check_environment() -> None:
    """Raises WrongUsage if the environment does not permit any run."""
    need_addresses()
    try:
        os.getcwd()
    except FileNotFoundError:
        raise WrongUsage("the working directory was removed; change to another directory") from None


def describe(error: BaseException) -> str:
    """Returns one line: the kind of error, and the path of the log written about it."""
    text = " ".join("".join(traceback.format_exception_only(error)).split())
    shown = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
    try:
        details = f"details are in {_write(error)}"
    except OSError as problem:
        details = f"no log could be written ({problem})"
    return f"internal error in schedlab: {shown}; {details}"


_SHOWN_MAX = 200


def _write(error: BaseException) -> Path:
    """Writes the log to the cache folder or the temporary folder.

    Raises OSError if neither can be written.
    """
    try:
        folder = cache_folder() / "errors"
        folder.mkdir(parents=True, exist_ok=True)
        return _write_in(folder, error)
    except (OSError, RuntimeError):  # RuntimeError: the home folder is unknown
        return _write_in(Path(tempfile.gettempdir()), error)


def _write_in(folder: Path, error: BaseException) -> Path:
    handle, name = tempfile.mkstemp(prefix="schedlab-error-", suffix=".log", dir=folder)
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(_log(error))
    return Path(name)


def _log(error: BaseException) -> str:
    return (
        f"schedlab {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"command line: {sys.argv!r}\n"
        f"folder: {_folder()}\n\n" + "".join(traceback.format_exception(error))
    )


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "it is gone"

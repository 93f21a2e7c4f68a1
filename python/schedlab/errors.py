# SPDX-License-Identifier: MIT
"""Defines the errors that end a command, their exit status, and the form of their messages."""

from __future__ import annotations

import errno
from typing import Any

_DISK_FIX = (
    "The disk is full: free some space, or name folders of another one: `out=` for results,"
    " XDG_CACHE_HOME for what is kept between starts, TMPDIR for the rest"
)
_FOLDER_FIX = (
    "Name a folder that you may write to, with `out=` or XDG_CACHE_HOME; or, if it is in the checkout,"
    " copy that to a folder of your own"
)
_FIXES = {
    errno.ENOSPC: _DISK_FIX,
    errno.EDQUOT: _DISK_FIX,
    errno.EROFS: _FOLDER_FIX,
    errno.EACCES: _FOLDER_FIX,
    errno.EPERM: _FOLDER_FIX,
}


class SchedlabError(Exception):
    """The command cannot continue.

    The text of the error is `what: why; fix`. `what`: the parameter or file in question, or "".
    `why`: what is wrong. `fix`: what to do, or "".
    """

    exit_status = 1

    def __init__(self, why: str, *, what: str = "", fix: str = "") -> None:
        super().__init__(why)  # pickle passes all of `args` to the constructor
        self.why = why
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        begin = f"{self.what}: " if self.what else ""
        return f"{begin}{self.why}{self._separator()}{self.fix}"

    def _separator(self) -> str:
        """Returns what separates `why` and `fix`: it depends on how `why` ends."""
        if not self.fix:
            return ""
        if self.why.endswith((".", "?", "!")):
            return " "
        return ". " if self.fix[:1].isupper() else "; "


class WrongUsage(SchedlabError):
    """The request is invalid or names something that does not exist. Nothing was written."""

    exit_status = 2


class FileRefused(WrongUsage):
    """An input file is truncated, damaged or of the wrong kind."""


class BuildFailed(SchedlabError):
    """The kernel, its programs or a program of the host did not compile."""


class RuleBroken(SchedlabError):
    """A policy broke a rule of policies/policy.h."""


class MachineUnfit(SchedlabError):
    """A simulator or emulator is missing, too old, or lacks a feature that the kernel needs."""


class NotGraded(SchedlabError):
    """This host could not grade a submission, for reasons outside of the submission."""

    exit_status = 2


def format_parameter(name: str, value: Any = None) -> str:
    """Returns a parameter of the Python API as error messages name it: `cpus=5`, or `cpus=`.

    The command line replaces it by the corresponding option (schedlab.commands.wording) after parsing
    the value. So the value is written as a Python literal without a backquote.
    """
    if value is None:
        return f"`{name}=`"
    literal = repr(value if isinstance(value, (bool, int, float, dict)) else str(value))
    literal = literal.replace("`", r"\x60")
    return f"`{name}={literal}`"


def describe_os_error(error: OSError) -> tuple[str, int]:
    """Returns the message and the exit status for an error of the operating system.

    The message contains a fix if there is a common one.
    """
    fix = _FIXES.get(error.errno or 0)
    return (f"{error}. {fix}", 2) if fix else (str(error), 1)

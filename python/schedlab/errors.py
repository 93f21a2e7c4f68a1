# SPDX-License-Identifier: MIT
"""Defines the errors that end a command, their exit status, and how messages name parameters."""

from __future__ import annotations

import errno
from typing import Any

_FULL = (
    "The disk is full: free some space, or name folders of another one: `out=` for results,"
    " XDG_CACHE_HOME for what is kept between starts, TMPDIR for the rest"
)
_NOT_OURS = (
    "Name a folder that you may write to, with `out=` or XDG_CACHE_HOME; or, if it is in the checkout,"
    " copy that to a folder of your own"
)
_CURES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _NOT_OURS,
    errno.EACCES: _NOT_OURS,
    errno.EPERM: _NOT_OURS,
}


class SchedlabError(Exception):
    """The command cannot continue. `str` gives the fields in one sentence: `what: why; fix`.

    `what`: the parameter or the file that the error is about, or "". `why`: what is wrong. `fix`:
    what to do, or "".
    """

    exit_status = 1

    def __init__(self, why: str, *, what: str = "", fix: str = "") -> None:
        super().__init__(why)  # pickle passes all of `args` to the constructor
        self.why = why
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        begin = f"{self.what}: " if self.what else ""
        return f"{begin}{self.why}{self._joint()}{self.fix}"

    def _joint(self) -> str:
        """Returns the separator between cause and fix, depending on the end of the cause."""
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
    """The host prevented the grading of a submission, which loses no points."""

    exit_status = 2


def parameter(name: str, value: Any = None) -> str:
    """Returns a parameter of the library as messages name it: `cpus=5`, or `cpus=` without a value.

    The command line replaces it by its option (schedlab.commands.wording), and therefore parses the
    value: it is a Python literal without a backquote.
    """
    if value is None:
        return f"`{name}=`"
    literal = repr(value if isinstance(value, (bool, int, float, dict)) else str(value))
    literal = literal.replace("`", r"\x60")
    return f"`{name}={literal}`"


def refusal(error: OSError) -> tuple[str, int]:
    """Returns the message for an error of the operating system, with a common fix if there is one,
    and the exit status.
    """
    cure = _CURES.get(error.errno or 0)
    return (f"{error}. {cure}", 2) if cure else (str(error), 1)

# SPDX-License-Identifier: MIT
"""What ends a command, and with which exit status."""

from __future__ import annotations

import errno

_FULL = (
    "The disk is full: free some space, or name folders of another one: --out for results,"
    " XDG_CACHE_HOME for what is kept between starts, TMPDIR for the rest"
)
_NOT_OURS = (
    "Name a folder that you may write to, with --out or XDG_CACHE_HOME; or, if it is in the checkout,"
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
    """A command cannot go on. The message names the cause and the cure."""

    exit_status = 1


class WrongUsage(SchedlabError):
    """What was asked for does not exist or makes no sense. Nothing was written."""

    exit_status = 2


class FileRefused(WrongUsage):
    """A file that was to be read is cut off, damaged, or not what it must be."""


class BuildFailed(SchedlabError):
    """The kernel, its programs or a program of the host did not compile."""


class RuleBroken(SchedlabError):
    """A policy has broken a rule of policies/policy.h."""


class MachineUnfit(SchedlabError):
    """A simulator or emulator is missing, too old or lacks what the kernel needs."""


class NotGraded(SchedlabError):
    """The host kept a submission from being graded. The submission has lost no points."""

    exit_status = 2


def refusal(error: OSError) -> tuple[str, int]:
    """Returns what to say of it, with the cure if there is a usual one, and the exit status."""
    cure = _CURES.get(error.errno or 0)
    return (f"{error}. {cure}", 2) if cure else (str(error), 1)

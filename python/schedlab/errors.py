# SPDX-License-Identifier: MIT
"""What ends a command, and with which exit status."""

from __future__ import annotations


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


class MachineUnfit(SchedlabError):
    """A simulator or emulator is missing, too old or lacks what the kernel needs."""

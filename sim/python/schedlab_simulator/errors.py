# SPDX-License-Identifier: MIT
"""What can go wrong. Each message is the C library's: the cause and, where there is one, the cure."""

from __future__ import annotations


class SimulatorError(Exception):
    """The base of the others."""


class LibraryUnusable(SimulatorError, ImportError):
    """The C library is missing, or not the one that this package was written for."""


class WorkloadRefused(SimulatorError, ValueError):
    """A workload is wrong: the message has the line."""


class SetupRefused(SimulatorError, ValueError):
    """No such machine can be made: there is no such policy, tunable or cost, say."""


class ActRefused(SimulatorError, ValueError):
    """What was asked of a machine from outside cannot be done; nothing has happened."""


class RunFailed(SimulatorError, RuntimeError):
    """The run cannot go on: all processes wait for each other, say, or the trace's disk is full."""


class AuditFailed(SimulatorError, AssertionError):
    """A process is lost, doubled or in two places: a mistake in the policy or the simulator."""

# SPDX-License-Identifier: MIT
"""Defines the package's errors. The C library provides the messages: the cause and, if known, the fix."""

from __future__ import annotations


class SimulatorError(Exception):
    """The base class of all errors."""


class LibraryUnusable(SimulatorError, ImportError):
    """The C library is missing, or its version differs from this package's version."""


class WorkloadRefused(SimulatorError, ValueError):
    """A workload is wrong: the message names the line."""


class SetupRefused(SimulatorError, ValueError):
    """The machine cannot be created, for example because of an unknown policy, tunable or cost."""


class ActRefused(SimulatorError, ValueError):
    """An action from outside is impossible. The machine is unchanged."""


class RunFailed(SimulatorError, RuntimeError):
    """The run cannot continue, for example because of a deadlock or a full disk."""


class AuditFailed(SimulatorError, AssertionError):
    """A process is lost, duplicated or in two places: a bug in the policy or the simulator."""

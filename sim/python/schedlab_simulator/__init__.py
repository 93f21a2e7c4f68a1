# SPDX-License-Identifier: MIT
"""Simulates CPU schedulers under a workload, without a kernel."""

from schedlab_simulator.declarations import (
    ActRefused,
    AuditFailed,
    LibraryUnusable,
    RunFailed,
    SetupRefused,
    SimulatorError,
    WorkloadRefused,
)
from schedlab_simulator.library import Attribute, Counts, Place, Status, using
from schedlab_simulator.simulator import Simulator
from schedlab_simulator.workload import Workload, step_kind, step_type

__all__ = [
    "ActRefused",
    "Attribute",
    "AuditFailed",
    "Counts",
    "LibraryUnusable",
    "Place",
    "RunFailed",
    "SetupRefused",
    "Simulator",
    "SimulatorError",
    "Status",
    "Workload",
    "WorkloadRefused",
    "step_kind",
    "step_type",
    "using",
]

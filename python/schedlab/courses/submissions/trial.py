# SPDX-License-Identifier: MIT
"""What is asked of a submission: which policy it is to define, and under what it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from schedlab.workload.model import WorkloadFile
from schedlab.workload.text import bytes_of

CPUS_MAX, PROCESSES_MAX = 64, 1024
"""Of sim/apart/message.h."""


BEGINS_NS = (
    (0, 0),
    (98_784_000_000_000, 23 * 2**32 * 1000 - 500_000),
    (60_000_000_000, 14 * 2**32 - 500_000),
    (9_223_372_036_800_000_000, 2**63 - 500_000),
)
"""A policy's clock, a multiple of 2.4 s, and the run time of new tasks: 0, and where clocks pass 23 x 2^32 us, 14 x
2^32 ns and 2^63 ns within 0.25 s, and run times within 0.5 ms.
"""
NO_WRAPS_NS = 2_400_000_000
"""A clock or run time after which no number of 32 bits wraps for 1.8 s, and that still fits into one."""


@dataclass(frozen=True)
class Form:
    """The policy that a source is to define."""

    policy: str
    """Its name."""
    headers: tuple[str, ...]
    """Of policies/, which it may include."""

    @property
    def symbol(self) -> str:
        """Its name in C."""
        return f"policy_{self.policy.replace('-', '_')}"


@dataclass(frozen=True)
class Trial:
    """One run."""

    name: str
    workload: WorkloadFile = field(repr=False)
    cpus: int
    seed: int
    tick_ns: int
    limit_ns: int
    costs: str
    settings: Mapping[str, int]
    """Tunables."""
    policy_clock_ns: int = field(default=0, kw_only=True)
    """Added to all times that the policy sees."""
    policy_run_time_ns: int = field(default=0, kw_only=True)
    """Of each new task, as the policy sees it."""

    @cached_property
    def played(self) -> bytes:
        """The workload as machines read it."""
        return bytes_of(self.workload, self.seed, self.tick_ns, self.cpus)

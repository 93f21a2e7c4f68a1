# SPDX-License-Identifier: MIT
"""The requirements of a submission: the policy that it must define, and the runs that test it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from schedlab.workload.model import WorkloadFile
from schedlab.workload.text import encode_workload

CPUS_MAX, PROCESSES_MAX = 64, 1024
"""Must match sim/apart/message.h."""


INITIAL_TIMES_NS = (
    (0, 0),
    (98_784_000_000_000, 23 * 2**32 * 1000 - 500_000),
    (60_000_000_000, 14 * 2**32 - 500_000),
    (9_223_372_036_800_000_000, 2**63 - 500_000),
)
"""Initial clocks (multiples of 2.4 s) and run times of new tasks.

Besides 0, clocks pass 23 × 2^32 µs, 14 × 2^32 ns and 2^63 ns within 0.25 s, and run times do within
0.5 ms.
"""
UNWRAPPED_TIME_NS = 2_400_000_000
"""An initial time (ns) that fits into 32 bits and does not wrap for 1.8 s."""


@dataclass(frozen=True)
class PolicyForm:
    """The policy that a source must define."""

    policy: str
    """The policy's name."""
    headers: tuple[str, ...]
    """Headers of policies/ that it may include."""

    @property
    def symbol(self) -> str:
        """The policy's C name."""
        return f"policy_{self.policy.replace('-', '_')}"


@dataclass(frozen=True)
class Trial:
    """The parameters of one run."""

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
    """Initial run time of new tasks, as the policy sees it."""

    @cached_property
    def encoded_workload(self) -> bytes:
        """The workload in the machines' binary format."""
        return encode_workload(self.workload, self.seed, self.tick_ns, self.cpus)

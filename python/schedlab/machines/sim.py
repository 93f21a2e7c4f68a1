# SPDX-License-Identifier: MIT
"""Our simulator: the policies without a kernel, in a fraction of the time (docs/simulator.md)."""

from __future__ import annotations

import shlex

from schedlab import __version__
from schedlab.machines.base import Boot, Release
from schedlab.paths import BUILD

PROGRAM = BUILD / "sim" / "schedlab-sim"
_SLOWEST_CPU_SECONDS_PER_SECOND = 1
"""Of simulated time, at a tick of 1 ms: 256 CPUs under a policy that goes over all of them at each
tick make 2.6 million decisions a second, ten times as many as they need."""


class Simulator:
    """See Machine."""

    name = "sim"
    repeatable = True
    parts: tuple[str, ...] = ("simulator",)
    cpus_max = 256
    limit_status = 3

    def release(self) -> Release:
        return Release(str(PROGRAM), __version__, "built from sim/ and policies/")

    def command(self, boot: Boot) -> list[str]:
        return [str(boot.program), *shlex.split(boot.arguments)]

    def host_cpus(self, cpus: int) -> int:
        return 1

    def host_limit(self, cpus: int, limit_ns: int) -> float:
        return 60 + cpus * limit_ns / 1e9 / _SLOWEST_CPU_SECONDS_PER_SECOND

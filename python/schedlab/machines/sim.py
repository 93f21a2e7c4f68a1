# SPDX-License-Identifier: MIT
"""The simulator: runs policies without a kernel, in a fraction of the time (docs/simulator.md)."""

from __future__ import annotations

import shlex
from pathlib import Path

from schedlab import __version__
from schedlab.base.toolchain.build import SIMULATOR
from schedlab.errors import WrongUsage, parameter
from schedlab.machines.folder import TRACE_FILE, WORKLOAD_PLAYED
from schedlab.machines.kernel import PROGRAM
from schedlab.machines.outcome import Outcome, outcome_of, read_console
from schedlab.machines.spec import Machine, Parts, Release, RunSpec
from schedlab.workload.delays import delayed_costs, in_simulator
from schedlab.workload.palette import palette
from schedlab.workload.programs import check_known, disk_programs

LIMIT_STATUS = 3
"""Exit status after reaching the time limit."""
_SLOWEST_CPU_SECONDS_PER_SECOND = 1
"""CPU seconds per simulated second, at a tick of 1 ms.

The worst case is 256 CPUs with a policy that scans all CPUs at each tick: 2.6 million decisions per
second, ten times the necessary number.
"""


class Simulator(Machine):
    """See Machine."""

    name = "sim"
    repeatable = True
    note = shape_note = ""
    parts: tuple[str, ...] = ("simulator",)
    tools: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    cpus_max = 1024
    tick_ns = 1_000_000
    memory_mib = 0
    programs: frozenset[str] | None = frozenset()

    def check(self, run: RunSpec) -> None:
        if in_simulator(run.delays) != run.delays or run.arguments:
            raise WrongUsage(
                "the simulator supports only fork, and no boot arguments of the kernel",
                what="`delays=`",
                fix="leave it out, or run it on spike or qemu",
            )
        if run.given:
            return
        name = next(iter(run.workload.split()), "")
        if name and (name not in disk_programs() or name in palette()):
            check_known(run.workload, frozenset())
        raise WrongUsage(
            f"{parameter('machine', self.name)} runs only workload files",
            what=parameter("workload", run.workload),
            fix="choose one from `./schedlab workloads`, or run programs on spike, qemu or linux",
        )

    def arguments(self, run: RunSpec) -> str:
        """Returns arguments that repeat the run by hand in its folder."""
        given = run.given
        if not given:
            raise ValueError(f"{run.workload} is not a workload file")
        options = {
            "policy": run.policy,
            "cpus": run.cpus,
            "processes": given.processes(),
            "seed": run.seed,
            "tick": run.tick_ns,
            "limit": run.limit_ns,
            "costs": delayed_costs(run.costs.text, run.delays),
            "trace": TRACE_FILE,
        }
        if run.shape:
            options["shape"] = run.shape.text()
        if run.settings:
            options["set"] = run.settings_text
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        return shlex.join([*words, WORKLOAD_PLAYED])

    def release(self) -> Release:
        return Release(str(SIMULATOR), __version__, "built from sim/ and policies/")

    def start(self, run: RunSpec, parts: Parts, folder: Path, scratch: Path) -> list[str]:
        (scratch / PROGRAM).symlink_to(parts["simulator"])
        return [str(parts["simulator"]), *shlex.split(self.arguments(run))]

    def outcome(self, status: int, folder: Path, scratch: Path, console: Path) -> Outcome:
        return outcome_of(status, read_console(console), LIMIT_STATUS, scratch / PROGRAM)

    def host_cpus(self, cpus: int) -> int:
        return 1

    def host_limit(self, cpus: int, limit_ns: int) -> float:
        return 60 + cpus * limit_ns / 1e9 / _SLOWEST_CPU_SECONDS_PER_SECOND

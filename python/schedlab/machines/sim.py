# SPDX-License-Identifier: MIT
"""The simulator: runs policies without a kernel, many times faster (docs/simulator.md)."""

import shlex
from pathlib import Path

from schedlab import __version__
from schedlab.base.toolchain.build import SIMULATOR_PROGRAM
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines.folder import BINARY_WORKLOAD_FILE, TRACE_FILE
from schedlab.machines.kernel import PROGRAM_LINK
from schedlab.machines.outcome import SUCCESS, Outcome, interpret_exit, read_console
from schedlab.machines.published import (
    IMAGE_FILE,
    PUBLISHED_POLICY,
    is_published,
    load_run_scheduler,
    scheduler_comment,
)
from schedlab.machines.spec import BuiltParts, Machine, Release, RunSpec
from schedlab.workload.delays import delayed_costs, simulator_delays
from schedlab.workload.palette import read_palette
from schedlab.workload.programs import check_known, disk_programs

LIMIT_STATUS = 3
"""Exit status of the simulator if the time limit was reached."""
_SLOWEST_CPU_SECONDS_PER_SECOND = 1
"""Host CPU seconds that a simulated second may take, per CPU, at a tick of 1 ms.

The worst case is 256 CPUs with a policy that scans all CPUs at each tick: 2.6 million decisions per
second, ten times the necessary number.
"""


class Simulator(Machine):
    """The simulator; see Machine."""

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
        fix = "leave it out, or run it on spike or qemu"
        if simulator_delays(run.delays) != run.delays:
            raise WrongUsage("the simulator can delay only fork", what="`delays=`", fix=fix)
        if run.arguments:
            raise WrongUsage(
                "the simulator takes no boot arguments of the kernel", what="`arguments=`", fix=fix
            )
        if run.workload_or_replay:
            return
        name = next(iter(run.workload.split()), "")
        if name and (name not in disk_programs() or name in read_palette()):
            check_known(run.workload, frozenset())
        raise WrongUsage(
            f"{format_parameter('machine', self.name)} runs only workload files",
            what=format_parameter("workload", run.workload),
            fix="choose one from `./schedlab workloads`, or run programs on spike, qemu or linux",
        )

    def arguments(self, run: RunSpec) -> str:
        """Returns arguments for users to repeat the run by hand in its folder."""
        command = shlex.join(self._program_arguments(run))
        return command + (scheduler_comment(run) if is_published(run.policy) else "")

    def _program_arguments(self, run: RunSpec) -> list[str]:
        workload = run.workload_or_replay
        if not workload:
            raise ValueError(f"{run.workload} is not a workload file")
        options = {
            "policy": f"{PUBLISHED_POLICY.name}:{IMAGE_FILE}"
            if is_published(run.policy)
            else run.policy,
            "cpus": run.cpus,
            "processes": workload.processes(),
            "seed": run.seed,
            "tick": run.tick_ns,
            "limit": run.limit_ns,
            "costs": delayed_costs(run.costs.text, run.delays),
            "trace": TRACE_FILE,
        }
        if run.shape:
            options["shape"] = run.shape.text()
        if run.settings and not is_published(run.policy):
            options["set"] = run.settings_text
        arguments = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        return [*arguments, BINARY_WORKLOAD_FILE]

    def release(self) -> Release:
        return Release(str(SIMULATOR_PROGRAM), __version__, "built from sim/ and policies/")

    def prepare_command(
        self, run: RunSpec, parts: BuiltParts, folder: Path, scratch: Path
    ) -> list[str]:
        (scratch / PROGRAM_LINK).symlink_to(parts["simulator"])
        if is_published(run.policy):
            (folder / IMAGE_FILE).write_bytes(load_run_scheduler(run).image)
        return [str(parts["simulator"]), *self._program_arguments(run)]

    def batch_command(self, parts: BuiltParts) -> list[str]:
        return [str(parts["simulator"]), "--batch"]

    def batch_words(self, run: RunSpec) -> list[str] | None:
        return None if is_published(run.policy) else self._program_arguments(run)

    def batch_outcome(self, status: int) -> Outcome | None:
        # These outcomes do not depend on the console, which explains failures.
        if status not in (SUCCESS, LIMIT_STATUS):
            return None
        return interpret_exit(status, "", LIMIT_STATUS)

    def outcome(self, status: int, folder: Path, scratch: Path, console: Path) -> Outcome:
        return interpret_exit(status, read_console(console), LIMIT_STATUS, scratch / PROGRAM_LINK)

    def host_cpus(self, cpus: int) -> int:
        return 1

    def host_limit(self, cpus: int, limit_ns: int) -> float:
        return 60 + cpus * limit_ns / 1e9 / _SLOWEST_CPU_SECONDS_PER_SECOND

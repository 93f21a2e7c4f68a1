# SPDX-License-Identifier: MIT
"""Runs a submission in the schedlab kernel on its Spike driver, inside the sandbox.

A policy is kernel code there and could write any trace, so no metrics are computed from it. The
trace must show the same decisions as the simulator's trace, which the policy cannot write.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from schedlab import trace
from schedlab.base.toolchain.build import IMAGE, PARTS, build
from schedlab.base.toolchain.diagnosis import KERNEL_FLAGS
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.base.toolchain.tools import compiler
from schedlab.courses.grading.graded_run import Seen
from schedlab.courses.grading.judging import Judged
from schedlab.courses.grading.lab import Expectation, LabTest
from schedlab.courses.submissions import wasm_policy
from schedlab.courses.submissions.compiling import Compiled, NotCompiled, clang_command
from schedlab.courses.submissions.sandbox import OUT, WORK, Done, Sandbox
from schedlab.errors import MachineUnfit
from schedlab.machines.kernel import Boot
from schedlab.machines.outcome import outcome_of
from schedlab.machines.spec import RunSpec
from schedlab.machines.spike import Spike
from schedlab.paths import BUILD, ROOT
from schedlab.trace.divergence import first_divergence
from schedlab.trace.errors import TraceError
from schedlab.workload.loading import make_disk

KERNEL = BUILD / "apart" / "kernel.o"
MEMORY_MIB = 64
_TRACE = "trace.bin"
_HEADERS = ("policy.h", "registry.h")


def need_kernel() -> None:
    """Builds the parts of submissions' kernels.

    Raises MachineUnfit without schedlab's Spike driver.
    """
    build(*(os.path.relpath(place, ROOT) for place in (KERNEL, IMAGE, *PARTS.values())))
    if not Spike().release().turn:
        raise MachineUnfit(
            "the lab has tests on the schedlab kernel, which need schedlab's own "
            "driver of Spike: another Spike would let a submission open files of this"
            " host; unset SCHEDLAB_SPIKE (docs/spike.md)"
        )


def judge(test: LabTest, expected: Expectation, policy: Compiled, trusted: bool) -> Judged:
    """Gives all points if the kernel completes the workload with the same decisions as the simulator."""
    with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
        place = Path(folder)
        simulated = place / "simulated.bin"
        try:
            wasm_policy.run(replace(test, costs="kernel"), policy, simulated)
        except wasm_policy.Broken as error:
            return Judged(Fraction(0), f"in the simulator at the kernel's costs: {error}")
        try:
            done, path = _boot(test, policy, trusted, place)
        except NotCompiled as error:
            return Judged(Fraction(0), f"no kernel can be made with it:\n{error}")
        return _judged(expected, Seen(simulated), done, path)


def _judged(expected: Expectation, simulated: Seen, done: Done, path: Path) -> Judged:
    outcome = outcome_of(done.status, done.output)
    if not outcome.succeeded:
        return Judged(Fraction(0), f"on the kernel: {outcome.message}")
    try:
        trace_data = trace.read(path)
        trace.validate(trace_data)
        difference = first_divergence(trace_data, simulated.trace)
    except (OSError, TraceError) as error:
        return Judged(Fraction(0), f"the kernel's trace is none: {error}")
    if difference is None:
        return Judged(expected.points)
    return Judged(Fraction(0), difference.describe("on the kernel", "in the simulator"))


def _boot(test: LabTest, policy: Compiled, trusted: bool, place: Path) -> tuple[Done, Path]:
    """Links a kernel with the policy and boots it; returns the outcome and the trace's path.

    Raises NotCompiled if the linker rejects the policy.
    """
    out = place / "out"
    out.mkdir()
    disk = make_disk(IMAGE, test.played, PARTS["mkfs"], place)
    policy_object = place / "policy.o"
    policy_object.write_bytes(policy.kernel_object)
    table = place / "table.c"
    table.write_text(
        subprocess.run(
            ["sh", str(ROOT / "tools" / "make_policy_table.sh"), f"{policy.name}.c"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    files = {
        **{f"policies/{name}": ROOT / "policies" / name for name in _HEADERS},
        "table.c": table,
        "policy.o": policy_object,
        "kernel.o": KERNEL,
        "kernel.ld": ROOT / "kernel" / "boot" / "kernel.ld",
        "disk.img": disk,
    }
    tools = compiler()
    programs = (*tools.programs, Spike().release().path)
    sandbox = Sandbox(out, files, trusted, programs, tools.headers)
    linked = sandbox.run(
        f"{clang_command()} {KERNEL_FLAGS} -std=c17 -O2 -ffreestanding -I{WORK} -c {WORK}/table.c -o {OUT}/table.o"
        f" && {shlex.join(tools.linker)} -T {WORK}/kernel.ld --no-relax -z max-page-size=4096 --fatal-warnings"
        f" {WORK}/kernel.o {WORK}/policy.o {OUT}/table.o -o {OUT}/kernel.elf"
    )
    if linked.status:
        raise NotCompiled(linked.output)
    return sandbox.run(f"exec {shlex.join(_command(_run_of(policy, test)))}"), out / _TRACE


def _run_of(policy: Compiled, test: LabTest) -> RunSpec:
    return RunSpec(
        workload=test.name,
        policy=PolicyChoice(policy.name, ""),
        settings=tuple(test.settings.items()),
        cpus=test.cpus,
        machine=Spike(),
        seed=test.seed,
        tick_ns=test.tick_ns,
        limit_ns=test.limit_ns,
        memory_mib=MEMORY_MIB,
        file=test.workload,
    )


def _command(run: RunSpec) -> list[str]:
    """Returns the command that boots the kernel in the sandbox."""
    spike = Spike()
    elf, disk = Path(f"{OUT}/kernel.elf"), Path(f"{WORK}/disk.img")
    return spike.command(Boot(elf, disk, run.cpus, run.memory_mib, spike.arguments(run)))

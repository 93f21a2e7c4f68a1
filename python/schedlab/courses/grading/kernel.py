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
from schedlab.base.toolchain.build import BUILT_FILES, DISK_IMAGE, build
from schedlab.base.toolchain.diagnosis import KERNEL_FLAGS
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.base.toolchain.tools import require_compiler
from schedlab.courses.grading.graded_run import GradedRun
from schedlab.courses.grading.judging import Judgement
from schedlab.courses.grading.lab import Expectation, LabTest
from schedlab.courses.submissions import wasm_policy
from schedlab.courses.submissions.compiling import CompiledPolicy, CompileError, clang_command
from schedlab.courses.submissions.sandbox import OUT_PATH, WORK_PATH, Sandbox, SandboxResult
from schedlab.errors import MachineUnfit
from schedlab.machines.kernel import Boot
from schedlab.machines.outcome import interpret_exit
from schedlab.machines.spec import RunSpec
from schedlab.machines.spike import Spike
from schedlab.paths import BUILD_FOLDER, ROOT
from schedlab.trace.divergence import first_divergence
from schedlab.trace.errors import TraceError
from schedlab.workload.loading import make_disk

KERNEL_OBJECT = BUILD_FOLDER / "apart" / "kernel.o"
MEMORY_MIB = 64
_TRACE_NAME = "trace.bin"
_HEADERS = ("policy.h", "registry.h")


def need_kernel() -> None:
    """Builds the parts of submissions' kernels.

    Raises MachineUnfit without schedlab's Spike driver.
    """
    build(
        *(
            os.path.relpath(path, ROOT)
            for path in (KERNEL_OBJECT, DISK_IMAGE, *BUILT_FILES.values())
        )
    )
    if not Spike().release().turn:
        raise MachineUnfit(
            "the lab has tests on the schedlab kernel, which need schedlab's own "
            "driver of Spike: another Spike would let a submission open files of this"
            " host; unset SCHEDLAB_SPIKE (docs/spike.md)"
        )


def judge_on_kernel(
    test: LabTest, expected: Expectation, policy: CompiledPolicy, trusted: bool
) -> Judgement:
    """Gives all points if the kernel completes the workload with the same decisions as the simulator."""
    with tempfile.TemporaryDirectory(prefix="schedlab-grade-") as folder:
        folder_path = Path(folder)
        simulated = folder_path / "simulated.bin"
        try:
            wasm_policy.run(replace(test, costs="kernel"), policy, simulated)
        except wasm_policy.PolicyBroken as error:
            return Judgement(Fraction(0), f"in the simulator at the kernel's costs: {error}")
        try:
            result, path = _boot(test, policy, trusted, folder_path)
        except CompileError as error:
            return Judgement(Fraction(0), f"no kernel can be made with it:\n{error}")
        return _judge_kernel_run(expected, GradedRun(simulated), result, path)


def _judge_kernel_run(
    expected: Expectation, simulated: GradedRun, result: SandboxResult, path: Path
) -> Judgement:
    """Judges the outcome of the kernel's run against the simulated run."""
    outcome = interpret_exit(result.status, result.output)
    if not outcome.succeeded:
        return Judgement(Fraction(0), f"on the kernel: {outcome.message}")
    try:
        trace_data = trace.read(path)
        trace.validate(trace_data)
        difference = first_divergence(trace_data, simulated.trace)
    except (OSError, TraceError) as error:
        return Judgement(Fraction(0), f"the kernel's trace is none: {error}")
    if difference is None:
        return Judgement(expected.points)
    return Judgement(Fraction(0), difference.describe("on the kernel", "in the simulator"))


def _boot(
    test: LabTest, policy: CompiledPolicy, trusted: bool, folder: Path
) -> tuple[SandboxResult, Path]:
    """Links a kernel with the policy and boots it; returns the outcome and the trace's path.

    Raises CompileError if the linker rejects the policy.
    """
    out = folder / "out"
    out.mkdir()
    disk = make_disk(DISK_IMAGE, test.encoded_workload, BUILT_FILES["mkfs"], folder)
    policy_object = folder / "policy.o"
    policy_object.write_bytes(policy.kernel_object)
    table = folder / "table.c"
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
        "kernel.o": KERNEL_OBJECT,
        "kernel.ld": ROOT / "kernel" / "boot" / "kernel.ld",
        "disk.img": disk,
    }
    tools = require_compiler()
    programs = (*tools.programs, Spike().release().path)
    sandbox = Sandbox(out, files, trusted, programs, tools.headers)
    link_result = sandbox.run(
        f"{clang_command()} {KERNEL_FLAGS} -std=c17 -O2 -ffreestanding -I{WORK_PATH}"
        f" -c {WORK_PATH}/table.c -o {OUT_PATH}/table.o"
        f" && {shlex.join(tools.linker)} -T {WORK_PATH}/kernel.ld --no-relax -z max-page-size=4096 --fatal-warnings"
        f" {WORK_PATH}/kernel.o {WORK_PATH}/policy.o {OUT_PATH}/table.o -o {OUT_PATH}/kernel.elf"
    )
    if link_result.status:
        raise CompileError(link_result.output)
    return sandbox.run(
        f"exec {shlex.join(_boot_command(_run_spec(policy, test)))}"
    ), out / _TRACE_NAME


def _run_spec(policy: CompiledPolicy, test: LabTest) -> RunSpec:
    """Returns the specification of the kernel's run of a test."""
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


def _boot_command(run: RunSpec) -> list[str]:
    """Returns the command that boots the kernel in the sandbox."""
    spike = Spike()
    elf, disk = Path(f"{OUT_PATH}/kernel.elf"), Path(f"{WORK_PATH}/disk.img")
    return spike.command(Boot(elf, disk, run.cpus, run.memory_mib, spike.arguments(run)))

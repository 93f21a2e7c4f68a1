# SPDX-License-Identifier: MIT
"""Spike, the RISC-V reference simulator: the same run every time, on any host."""

from __future__ import annotations

import os
import shutil
from functools import cache

from schedlab.errors import MachineUnfit
from schedlab.machines.base import Release
from schedlab.machines.kernel import Boot, KernelMachine
from schedlab.machines.spike_install import installed_spike, spike_path
from schedlab.toolchain.tools import output

INSTRUCTION_SET = "rv64imac_zicsr_zicntr_sstc"
_NEEDED_OPTIONS = ("--isa=", "--initrd=", "--bootargs=")
_SLOWEST_INSTRUCTIONS_PER_SECOND = 25e6
"""A tenth of what it does on a host that has nothing else to do."""


@cache
def find_spike() -> Release:
    """One on the PATH serves, if it can do what is needed; else ours, fetched once."""
    need_device_tree_compiler()
    path = shutil.which("spike")
    if path:
        problem = spike_problem(path)
        if problem:
            raise MachineUnfit(
                f"{path} {problem}: update it, or take it off the PATH and schedlab fetches its own"
            )
        return Release(path, spike_version(path), "PATH")
    own = str(installed_spike())
    problem = spike_problem(own)
    if problem:
        raise MachineUnfit(f"{own} {problem}: delete it, and the next start fetches it again")
    return Release(own, spike_version(own), "schedlab's cache, from PyPI's package spike")


def need_device_tree_compiler() -> None:
    """Spike starts it to describe its board to the kernel."""
    if not shutil.which("dtc"):
        raise MachineUnfit(
            "dtc, which Spike needs, is not on the PATH: install device-tree-compiler"
        )


def spike_version(path: str) -> str:
    """What Spike calls itself, without its name."""
    first = output(path, "--help", even_failing=True).partition("\n")[0]  # its exit status is 1
    return first.replace("Spike RISC-V ISA Simulator", "").strip()


def spike_problem(path: str) -> str:
    """Why this program is not a Spike that serves; "" if it does."""
    help_text = output(path, "--help", even_failing=True)
    if "RISC-V" not in help_text:
        return "is not the RISC-V simulator Spike"
    lacking = [option.rstrip("=") for option in _NEEDED_OPTIONS if option not in help_text]
    if lacking:
        return f"is a Spike without the option {lacking[0]}"
    board = output(
        *(path, "-p1", "-m16", f"--isa={INSTRUCTION_SET}", "--dump-dts", os.devnull),
        even_failing=True,
    )
    if "/dts-v1/" not in board or "sstc" not in board:
        return f"is a Spike that does not know the instruction set {INSTRUCTION_SET}"
    return ""


class Spike(KernelMachine):
    """See Machine."""

    name = "spike"
    repeatable = True
    note = ""
    controlled = False

    def release(self) -> Release:
        return find_spike()

    def command(self, boot: Boot) -> list[str]:
        command = [self.release().path, f"-p{boot.cpus}", f"-m{boot.memory_mib}"]
        command += [f"--isa={INSTRUCTION_SET}", f"--bootargs={boot.arguments}"]
        if boot.disk:
            command.append(f"--initrd={boot.disk}")
        return [*command, str(boot.program)]

    def host_cpus(self, cpus: int) -> int:
        return 1

    def host_limit(self, cpus: int, limit_ns: int) -> float:
        return 60 + cpus * limit_ns / _SLOWEST_INSTRUCTIONS_PER_SECOND


__all__ = ["Spike", "find_spike", "spike_path"]

# SPDX-License-Identifier: MIT
"""QEMU's `virt` board: runs the kernel interactively, and with devices that Spike lacks."""

import shutil
from functools import cache

from schedlab.base.toolchain.needs import need
from schedlab.base.toolchain.tools import first_output_line, parse_version
from schedlab.errors import MachineUnfit
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.kernel import Boot, KernelMachine
from schedlab.machines.spec import Release

QEMU_PROGRAM = "qemu-system-riscv64"
OLDEST_VERSION = (7, 2)


@cache
def find_qemu() -> Release:
    """Returns the QEMU on the PATH; Debian 12 and newer have a suitable one."""
    need("qemu")
    return find_emulator(
        QEMU_PROGRAM,
        ", whose CPUs lack a timer that the kernel needs (Sstc)",
    )


def find_emulator(program: str, why_too_old: str = "") -> Release:
    """Returns a QEMU program on the PATH.

    Raises MachineUnfit if it is too old; `why_too_old` explains what does not work with it.
    """
    path = shutil.which(program) or program
    text = first_output_line(path, "--version")
    version = parse_version(text)
    number = ".".join(map(str, version))
    if not version:
        raise MachineUnfit(
            f"{path}: prints no version, only: {text or 'nothing'}; install QEMU 7.2 or newer"
        )
    if version < OLDEST_VERSION:
        raise MachineUnfit(
            f"{path}: is QEMU {number}{why_too_old}; install QEMU 7.2 or newer (Debian 12 has it)"
        )
    return Release(path, number, "PATH")


class Qemu(KernelMachine):
    """See Machine."""

    name = "qemu"
    needs = ("qemu",)
    repeatable = False
    note = ""
    controlled = True

    def release(self) -> Release:
        return find_qemu()

    def command(self, boot: Boot) -> list[str]:
        command = [self.release().path, "-M", "virt", "-cpu", "rv64"]
        command += ["-smp", str(boot.cpus), "-m", f"{boot.memory_mib}M"]
        command += ["-bios", "none", *_console_options(boot.control)]
        command += ["-global", "virtio-mmio.force-legacy=false"]
        command += ["-kernel", str(boot.program), "-append", boot.arguments]
        if boot.disk:
            disk = str(boot.disk).replace(",", ",,")
            command += ["-drive", f"file={disk},if=none,format=raw,id=disk,snapshot=on"]
            command += ["-device", "virtio-blk-device,drive=disk"]
        if boot.traced:
            command += ["-device", "virtio-serial-device"]
            command += ["-chardev", f"file,id=trace,path={TRACE_FILE}"]
            command += ["-device", "virtconsole,chardev=trace"]
        return command

    def host_cpus(self, cpus: int) -> int:
        return cpus

    def host_limit(self, cpus: int, limit_ns: int) -> float:
        return 60 + 4 * limit_ns / 1e9


def _console_options(control: int | None) -> list[str]:
    """Returns options for the console.

    Without `control`: this terminal, with QEMU's commands on Ctrl-A. With `control`: pipes.
    """
    if control is None:
        return ["-nographic"]
    command = ["-display", "none", "-serial", "stdio", "-monitor", "none"]
    command += ["-chardev", f"socket,id=control,fd={control}"]
    return [*command, "-mon", "chardev=control,mode=control"]

# SPDX-License-Identifier: MIT
"""A machine for tests of code that starts machines."""

from __future__ import annotations

from schedlab.machines import Boot, KernelMachine, Release


class ScriptMachine(KernelMachine):
    """A machine implemented by a shell script; $1 is the number of CPUs."""

    repeatable = True
    note = ""

    def __init__(self, script: str, seconds: float = 60, name: str = "script") -> None:
        self.name = name
        self.script = script
        self.seconds = seconds

    def release(self) -> Release:
        return Release("/bin/sh", "1", "test")

    def command(self, boot: Boot) -> list[str]:
        return ["/bin/sh", "-c", self.script, "machine", str(boot.cpus)]

    def host_cpus(self, cpus: int) -> int:
        return 1

    def host_limit(self, cpus: int, limit_ns: int) -> float:
        return self.seconds

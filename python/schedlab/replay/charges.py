# SPDX-License-Identifier: MIT
"""What a machine itself costs, as the simulator charges it (docs/simulator.md)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

from schedlab import costs
from schedlab.errors import WrongUsage


@dataclass(frozen=True)
class Charges:
    """Nanoseconds. What is charged within a process's time, or beside it."""

    scheduler: int = 0
    switch: int = 0
    tick: int = 0
    interrupt: int = 0
    migration: int = 0
    call: int = 0
    fork: int = 0
    exit: int = 0

    @property
    def latest(self) -> int:
        """How late an interrupt may be, because the kernel is not interrupted."""
        return self.tick + self.scheduler + self.switch


_NAMES = tuple(field.name for field in fields(Charges))


@cache
def _kernel() -> Charges:
    profile = costs.read(costs.SHIPPED)
    return Charges(**{name: cost.ns for name, cost in profile.costs.items()})


def charges(text: str) -> Charges:
    """Of `kernel`, `none`, or either and changes: `kernel,fork=20000`; as the simulator reads it."""
    values: dict[str, int] | None = None
    for place, part in enumerate(text.split(",")):
        name, _, number = part.partition("=")
        if place == 0 and part in costs.BUILT_IN:
            values = dict(vars(_kernel() if part == "kernel" else Charges()))
        elif name in _NAMES and number.isascii() and number.isdigit():
            values = dict(vars(_kernel())) if values is None else values
            values[name] = int(number)
        else:
            raise WrongUsage(
                f"costs {text}: {part!r}: expected kernel, none, or NAME=NANOSECONDS with one of"
                f" {', '.join(_NAMES)}"
            )
    return Charges(**(values or {}))

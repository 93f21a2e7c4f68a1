# SPDX-License-Identifier: MIT
"""What a machine itself costs, as the simulator charges it (docs/simulator.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

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


BUILT_IN: Mapping[str, Charges] = {
    "none": Charges(),
    "kernel": Charges(
        scheduler=296, switch=145, tick=5523, interrupt=7500, call=2700, fork=15000, exit=17300
    ),
}
"""By name, as `schedlab-sim --costs` knows them."""

_NAMES = tuple(field.name for field in fields(Charges))


def charges(text: str) -> Charges:
    """Of `kernel`, `none`, or either and changes: `kernel,fork=20000`; as the simulator reads it."""
    values = vars(BUILT_IN["kernel"]).copy()
    for place, part in enumerate(text.split(",") if text else []):
        name, _, number = part.partition("=")
        if place == 0 and part in BUILT_IN:
            values = vars(BUILT_IN[part]).copy()
        elif name in _NAMES and number.isascii() and number.isdigit():
            values[name] = int(number)
        else:
            raise WrongUsage(
                f"costs {text}: {part!r}: expected kernel, none, or NAME=NANOSECONDS with one of"
                f" {', '.join(_NAMES)}"
            )
    return Charges(**values)

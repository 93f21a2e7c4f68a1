# SPDX-License-Identifier: MIT
"""Parses and holds the costs that the simulator charges for operations (docs/simulator.md)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

from schedlab.errors import WrongUsage
from schedlab.workload import costs


@dataclass(frozen=True)
class Charges:
    """Costs in nanoseconds; schedlab.workload.costs.COSTS describes them."""

    boot: int = 0
    stagger: int = 0
    scheduler: int = 0
    crowd: int = 0
    switch: int = 0
    tick: int = 0
    wakeup: int = 0
    interrupt: int = 0
    migration: int = 0
    call: int = 0
    sleep: int = 0
    pipe: int = 0
    fork: int = 0
    fork_look: int = 0
    fork_new: int = 0
    fork_return: int = 0
    first_run: int = 0
    exit: int = 0
    reap: int = 0

    @property
    def latest(self) -> int:
        """The longest delay (ns) of an interrupt, while the kernel disables interrupts."""
        return self.tick + self.scheduler + self.switch


_NAMES = tuple(field.name for field in fields(Charges))


@cache
def _kernel() -> tuple[tuple[str, int], ...]:
    profile = costs.read(costs.SHIPPED)
    return tuple((name, cost.ns) for name, cost in profile.costs.items())


def charges_of(text: str, policy: str = "") -> Charges:
    """Parses costs as the simulator does: `kernel`, `none`, or either with changes: `kernel,fork=20000`.

    A cost may be specific to a policy: `fork.mlfq=9785`, `tick.rr:table-scan=645`. `policy` ("name"
    or "name:preset") selects the costs that apply. Later entries override earlier ones;
    `fork+=20000` adds to the cost.
    """
    values: dict[str, int] | None = None
    for place, part in enumerate(text.split(",")):
        name, _, number = part.partition("=")
        added = name.endswith("+")
        known = name[:-1] in _NAMES if added else name.partition(".")[0] in _NAMES
        if place == 0 and part in costs.BUILT_IN:
            values = dict(_kernel()) if part == "kernel" else {}
        elif known and number.isascii() and number.isdigit():
            values = dict(_kernel()) if values is None else values
            change_values = _added if added else _changed
            values = change_values(values, name.removesuffix("+"), int(number))
        else:
            raise WrongUsage(
                f"costs {text}: {part!r}: expected kernel, none, textbook, or NAME=NANOSECONDS with one of"
                f" {', '.join(_NAMES)}"
            )
    return _under(values or {}, policy)


def _changed(values: dict[str, int], name: str, value: int) -> dict[str, int]:
    """Sets a cost. A general cost overrides those of policies, and a policy's cost overrides those of its presets."""
    separator = ":" if "." in name else "."
    remaining = {
        charge: ns for charge, ns in values.items() if not charge.startswith(name + separator)
    }
    return {**remaining, name: value}


def _added(values: dict[str, int], name: str, longer: int) -> dict[str, int]:
    """Adds to a cost under all policies."""
    complete = {name: 0, **values}
    return {
        charge: ns + longer if charge.partition(".")[0] == name else ns
        for charge, ns in complete.items()
    }


def _under(values: dict[str, int], policy: str) -> Charges:
    """Returns the most specific value of each cost.

    A preset's cost precedes the policy's cost, which precedes the general cost.
    """
    of = {name: values.get(name, 0) for name in _NAMES}
    for owner in dict.fromkeys((policy.partition(":")[0], policy)):
        of.update(
            {name: values[f"{name}.{owner}"] for name in _NAMES if f"{name}.{owner}" in values}
        )
    return Charges(**of)

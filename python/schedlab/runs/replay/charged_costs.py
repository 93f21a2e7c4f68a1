# SPDX-License-Identifier: MIT
"""Parses the costs that the simulator charges for kernel operations (docs/simulator.md)."""

from dataclasses import dataclass, fields
from functools import cache

from schedlab.errors import WrongUsage
from schedlab.workload import costs


@dataclass(frozen=True)
class Charges:
    """Cost of each operation in ns; schedlab.workload.costs.COST_MEANINGS describes the operations."""

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
    arrival: int = 0
    instructions: int = 0

    @property
    def latest(self) -> int:
        """Longest delay (ns) of an interrupt, because the kernel runs with interrupts disabled."""
        return self.tick + self.scheduler + self.switch


_OPERATIONS = tuple(field.name for field in fields(Charges))


@cache
def _kernel_costs() -> tuple[tuple[str, int], ...]:
    """Returns the costs of the schedlab kernel: operation and ns."""
    profile = costs.read_profile(costs.SHIPPED_PROFILE)
    return tuple((name, cost.ns) for name, cost in profile.costs.items())


def parse_charges(text: str, policy: str = "") -> Charges:
    """Parses costs as the simulator does: `kernel`, `none`, or either with changes
    (`kernel,fork=20000`).

    A cost may be specific to a policy or a preset: `fork.mlfq=9785`, `tick.rr:table-scan=645`.
    `policy` ("name" or "name:preset") selects the costs that apply. Later entries override earlier
    ones; `fork+=20000` adds to the cost.
    """
    values: dict[str, int] | None = None
    for index, part in enumerate(text.split(",")):
        name, _, number = part.partition("=")
        is_addition = name.endswith("+")
        is_known = (
            name[:-1] in _OPERATIONS if is_addition else name.partition(".")[0] in _OPERATIONS
        )
        if index == 0 and part in costs.BUILT_IN_PROFILES:
            values = dict(_kernel_costs()) if part == "kernel" else {}
        elif is_known and number.isascii() and number.isdigit():
            values = dict(_kernel_costs()) if values is None else values
            apply_change = _add_cost if is_addition else _set_cost
            values = apply_change(values, name.removesuffix("+"), int(number))
        else:
            raise WrongUsage(
                f"costs {text}: {part!r}: expected kernel, none, textbook, or NAME=NANOSECONDS with one of"
                f" {', '.join(_OPERATIONS)}"
            )
    return _apply_to_policy(values or {}, policy)


def _set_cost(values: dict[str, int], name: str, value: int) -> dict[str, int]:
    """Sets a cost. A general cost replaces the costs of policies; a policy's, those of its presets."""
    separator = ":" if "." in name else "."
    remaining = {
        charge: ns for charge, ns in values.items() if not charge.startswith(name + separator)
    }
    return {**remaining, name: value}


def _add_cost(values: dict[str, int], name: str, added_ns: int) -> dict[str, int]:
    """Adds `added_ns` ns to a cost, for all policies."""
    general_and_policy_costs = {name: 0, **values}
    return {
        charge: ns + added_ns if charge.partition(".")[0] == name else ns
        for charge, ns in general_and_policy_costs.items()
    }


def _apply_to_policy(values: dict[str, int], policy: str) -> Charges:
    """Returns the costs that apply to a policy.

    For each operation, the cost of the preset precedes that of the policy, which precedes the
    general cost.
    """
    by_operation = {name: values.get(name, 0) for name in _OPERATIONS}
    for owner in dict.fromkeys((policy.partition(":")[0], policy)):
        by_operation.update(
            {name: values[f"{name}.{owner}"] for name in _OPERATIONS if f"{name}.{owner}" in values}
        )
    return Charges(**by_operation)

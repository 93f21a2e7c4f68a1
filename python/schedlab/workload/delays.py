# SPDX-License-Identifier: MIT
"""Slows operations down, to imitate another machine: `fork=380us`.

The schedlab kernel waits in the operation; the simulator adds the time to its cost, if it has one.
"""

from __future__ import annotations

from collections.abc import Iterable

from schedlab.base.toolchain.policies import unknown
from schedlab.units import format_time, parse_time
from schedlab.workload.costs import COSTS

Delay = tuple[str, int]
"""An operation, and its additional time in nanoseconds."""
OPERATIONS = {"fork": "until the child exists", "exec": "until the program begins"}
"""Operations that can be delayed, each a boot argument of the kernel; and the time that becomes longer."""
LONGEST_NS = 1_000_000_000


def parse_delay(text: str) -> Delay:
    """Parses a delay such as "fork=380us". Raises ValueError if it is invalid."""
    name, equals, time = text.partition("=")
    if not equals:
        raise ValueError("expected OPERATION=TIME, such as fork=380us")
    if name not in OPERATIONS:
        raise ValueError(unknown("operation", name, OPERATIONS))
    longer = parse_time(time)
    if longer > LONGEST_NS:
        raise ValueError(f"{time}: expected at most {format_time(LONGEST_NS)}")
    return name, longer


def delays_text(delays: Iterable[Delay]) -> str:
    """Returns the delays as `fork=380us`, for users and for a run's manifest; "" if there are none."""
    return ",".join(f"{name}={format_time(longer)}" for name, longer in delays)


def delays_of(text: str) -> tuple[Delay, ...]:
    """Parses a text that `delays_text` returned."""
    return tuple(parse_delay(delay) for delay in text.split(",") if delay)


def in_simulator(delays: Iterable[Delay]) -> tuple[Delay, ...]:
    """Returns the delays of operations that the simulator has: those with a cost (schedlab.workload.costs)."""
    return tuple(delay for delay in delays if delay[0] in COSTS)


def delayed_costs(costs: str, delays: Iterable[Delay]) -> str:
    """Returns costs in the simulator's format, with the delays of operations that it has."""
    return ",".join([costs, *(f"{name}+={longer}" for name, longer in in_simulator(delays))])


def boot_arguments(delays: Iterable[Delay]) -> list[str]:
    """Returns the kernel's boot arguments for the delays."""
    return [f"{name}-delay={format_time(longer)}" for name, longer in delays]

# SPDX-License-Identifier: MIT
"""Operations that take longer than they do, as on another machine: `fork=380us`.

Our kernel lets that time pass in the operation; the simulator adds it to its cost, if it has one.
"""

from __future__ import annotations

from collections.abc import Iterable

from schedlab.base.toolchain.policies import unknown
from schedlab.units import format_time, parse_time
from schedlab.workload.costs import COSTS

Delay = tuple[str, int]
"""An operation, and the nanoseconds by which it takes longer."""
OPERATIONS = {"fork": "until the child is there", "exec": "until the program begins"}
"""What can be delayed, each a boot argument of the kernel; and which time becomes longer."""
LONGEST_NS = 1_000_000_000


def parse_delay(text: str) -> Delay:
    """The delay in a text such as "fork=380us". ValueError says what is wrong."""
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
    """`fork=380us`, for people and for a run's manifest; "": none."""
    return ",".join(f"{name}={format_time(longer)}" for name, longer in delays)


def delays_of(text: str) -> tuple[Delay, ...]:
    """The delays of a text that `delays_text` made."""
    return tuple(parse_delay(delay) for delay in text.split(",") if delay)


def in_simulator(delays: Iterable[Delay]) -> tuple[Delay, ...]:
    """Returns the delays of operations that the simulator has: those with a cost (schedlab.workload.costs)."""
    return tuple(each for each in delays if each[0] in COSTS)


def delayed_costs(costs: str, delays: Iterable[Delay]) -> str:
    """Costs as the simulator reads them, with the delays added that it has."""
    return ",".join([costs, *(f"{name}+={longer}" for name, longer in in_simulator(delays))])


def boot_arguments(delays: Iterable[Delay]) -> list[str]:
    """The kernel's boot arguments for them."""
    return [f"{name}-delay={format_time(longer)}" for name, longer in delays]

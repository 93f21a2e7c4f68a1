# SPDX-License-Identifier: MIT
"""Slows down operations of a machine, to imitate another machine: `fork=380us`.

The schedlab kernel waits during the operation. The simulator adds the time to the operation's cost,
if it has a cost for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from schedlab.base.toolchain.policies import describe_unknown_name
from schedlab.units import format_time, parse_time
from schedlab.workload.costs import COST_MEANINGS

Delay = tuple[str, int]
"""An operation, and its additional time in nanoseconds."""
DELAYED_OPERATIONS = {"fork": "until the child exists", "exec": "until the program begins"}
"""Operations that can be delayed, and what then takes longer. Each is a boot argument of the kernel."""
DELAY_MAX_NS = 1_000_000_000


def parse_delay(text: str) -> Delay:
    """Parses a delay such as "fork=380us". Raises ValueError if it is invalid."""
    name, equals, time = text.partition("=")
    if not equals:
        raise ValueError("expected OPERATION=TIME, such as fork=380us")
    if name not in DELAYED_OPERATIONS:
        raise ValueError(describe_unknown_name("operation", name, DELAYED_OPERATIONS))
    delay_ns = parse_time(time)
    if delay_ns > DELAY_MAX_NS:
        raise ValueError(f"{time}: expected at most {format_time(DELAY_MAX_NS)}")
    return name, delay_ns


def delays_text(delays: Iterable[Delay]) -> str:
    """Returns the delays as text such as `fork=380us`, for users and manifests; "" if there are none."""
    return ",".join(f"{name}={format_time(delay_ns)}" for name, delay_ns in delays)


def parse_delays(text: str) -> tuple[Delay, ...]:
    """Parses the text that `delays_text` returns."""
    return tuple(parse_delay(delay) for delay in text.split(",") if delay)


def simulator_delays(delays: Iterable[Delay]) -> tuple[Delay, ...]:
    """Returns the delays of operations that have a cost in the simulator."""
    return tuple(delay for delay in delays if delay[0] in COST_MEANINGS)


def delayed_costs(costs: str, delays: Iterable[Delay]) -> str:
    """Returns `costs` in the simulator's text format, with delays added."""
    return ",".join(
        [costs, *(f"{name}+={delay_ns}" for name, delay_ns in simulator_delays(delays))]
    )


def boot_arguments(delays: Iterable[Delay]) -> list[str]:
    """Returns the kernel's boot arguments for the delays."""
    return [f"{name}-delay={format_time(delay_ns)}" for name, delay_ns in delays]

# SPDX-License-Identifier: MIT
"""Determines how a run ended, from the machine's exit status and console."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path

from schedlab.machines.broken_rule import describe_kills, explain_panic, find_broken_rule

# abi/machine_status.h
SUCCESS, FAILED, PANIC, LIMIT, STUCK, REFUSED = 0, 1, 101, 102, 103, 104
"""Exit statuses of the kernel and the simulator."""
BROKEN_RULE = 105
"""Exit status of the simulator: a hook of the policy does not end, or accesses invalid memory."""

MEASURABLE_STATUSES = frozenset({"success", "limit", "disk"})
"""Outcomes of runs whose traces are valid, even if incomplete."""
_SCHEDULER = re.compile(r"^schedlab-sim: scheduler (.*)", re.MULTILINE)
"""The simulator's message about a sched_ext scheduler."""
SCHEDULER_FAILED = "the scheduler failed: "
_PANIC_LINES = 40
_LAST_LINES = 12


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `status` is one word; `message` explains it, and is "" after a success."""

    status: str
    message: str = ""
    note: str = ""
    """The mode of the machine, if it was unknown before the run; otherwise ""."""

    @property
    def succeeded(self) -> bool:
        return self.status == "success"


def interpret_exit(
    exit_status: int, console: str, limit_status: int = LIMIT, program: Path | None = None
) -> Outcome:
    """Returns the outcome for an exit status, which is negative for a signal.

    `limit_status`: the machine's status for a time limit. `program`: the executable that addresses
    in the output belong to.
    """
    if exit_status == SUCCESS:
        return Outcome("success")
    if exit_status == PANIC:
        rule, lines = explain_panic(panic_lines(console), program)
        return Outcome("panic", f"{rule or 'the kernel panicked'}:\n{indent(lines)}")
    if exit_status == BROKEN_RULE:
        rule, lines = explain_panic(console.rstrip().splitlines()[-_PANIC_LINES:], program)
        return Outcome("broken", f"{rule or 'the machine broke'}:\n{indent(lines)}")
    if exit_status == limit_status:
        return Outcome(
            "limit",
            "the guest reached its time limit and was ended; choose a shorter workload or a higher"
            " limit",
        )
    if exit_status == STUCK:
        why = "the guest hangs: every CPU sleeps, and nothing can wake one"
        return Outcome("hung", why + describe_tail(console))
    if exit_status == REFUSED:
        why = "the kernel did not accept a change of the branch; choose another"
        return Outcome("refused", why + describe_tail(console))
    if exit_status < 0:
        name = signal.Signals(-exit_status).name
        return Outcome(
            "killed", f"the machine's process was ended by {name}" + describe_tail(console)
        )
    if exit_status == FAILED and (scheduler := _SCHEDULER.search(console)):
        return Outcome("failed", f"{SCHEDULER_FAILED}{scheduler[1]}")
    if exit_status == FAILED:
        why = (
            find_broken_rule(console.splitlines()) or "the workload failed, or could not be started"
        )
        kills = describe_kills(console)
        return Outcome("failed", "; ".join(filter(None, (kills, why))) + describe_tail(console))
    return Outcome(
        "failed", f"the machine ended with status {exit_status}" + describe_tail(console)
    )


def hung_outcome(seconds: float, console: str) -> Outcome:
    """Returns the outcome of a machine that exceeded its limit of host seconds."""
    return Outcome(
        "hung",
        f"the machine did not end within {seconds:.0f} s of the host; run less work, or fewer runs at"
        " a time" + describe_tail(console),
    )


def panic_lines(console: str) -> list[str]:
    """Returns the console's lines beginning with the kernel's panic, or the last lines without a panic."""
    lines = console.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("panic"):
            return lines[number : number + _PANIC_LINES]
    return lines[-_PANIC_LINES:]


def describe_tail(console: str, introduction: str = "its console ends") -> str:
    """Returns the last lines of a console or another output, as the end of a message."""
    lines = console.rstrip().splitlines()[-_LAST_LINES:]
    return f"; {introduction}:\n" + indent(lines) if lines else "; its console is empty"


def indent(lines: list[str]) -> str:
    """Indents lines, to separate them from schedlab's own messages."""
    return "\n".join(f"    {line}" for line in lines)


def read_console(path: Path) -> str:
    """Returns the last 1 MiB of a console log, which may contain arbitrary bytes."""
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - (1 << 20)))
        return file.read().decode(errors="replace").replace("\r", "")

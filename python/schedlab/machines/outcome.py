# SPDX-License-Identifier: MIT
"""Determines how a run ended, from the machine's exit status and console."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

from schedlab.machines.broken_rule import explained, killed_in, rule_in

# abi/machine_status.h
SUCCESS, FAILED, PANIC, LIMIT, STUCK, REFUSED = 0, 1, 101, 102, 103, 104
BROKEN_RULE = 105
"""Exit status of the simulator: a hook of the policy does not end, or accesses invalid memory."""

MEASURED = frozenset({"success", "limit", "disk"})
"""Outcomes of runs with valid, possibly incomplete traces."""
_PANIC_LINES = 40
_LAST_LINES = 12


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: `status` is one word; `message` explains it, "" after a success."""

    status: str
    message: str = ""
    note: str = ""
    """The machine's mode if it was unknown before the run; otherwise ""."""

    @property
    def succeeded(self) -> bool:
        return self.status == "success"


def outcome_of(
    exit_status: int, console: str, limit_status: int = LIMIT, program: Path | None = None
) -> Outcome:
    """Returns the outcome for an exit status, which is negative for a signal.

    `limit_status` is the machine's status for a time limit. `program` resolves addresses in its
    last output.
    """
    if exit_status == SUCCESS:
        return Outcome("success")
    if exit_status == PANIC:
        rule, lines = explained(panic_lines(console), program)
        return Outcome("panic", f"{rule or 'the kernel panicked'}:\n{indent(lines)}")
    if exit_status == BROKEN_RULE:
        rule, lines = explained(console.rstrip().splitlines()[-_PANIC_LINES:], program)
        return Outcome("broken", f"{rule or 'the machine broke'}:\n{indent(lines)}")
    if exit_status == limit_status:
        return Outcome("limit", "the guest reached its time limit and was ended")
    if exit_status == STUCK:
        what = "the guest hangs: every CPU sleeps, and nothing can wake one"
        return Outcome("hung", what + tail_of(console))
    if exit_status == REFUSED:
        what = "the kernel did not accept a change of the branch"
        return Outcome("refused", what + tail_of(console))
    if exit_status < 0:
        name = signal.Signals(-exit_status).name
        return Outcome("killed", f"the machine's process was ended by {name}" + tail_of(console))
    if exit_status == FAILED:
        what = rule_in(console.splitlines()) or "the workload failed, or could not be started"
        killed = killed_in(console)
        return Outcome("failed", "; ".join(filter(None, (killed, what))) + tail_of(console))
    return Outcome("failed", f"the machine ended with status {exit_status}" + tail_of(console))


def hung(seconds: float, console: str) -> Outcome:
    """Returns the outcome of a machine that exceeded its host limit."""
    return Outcome(
        "hung", f"the machine did not end within {seconds:.0f} s of the host" + tail_of(console)
    )


def panic_lines(console: str) -> list[str]:
    """Returns the lines from the kernel's panic; the last lines if there is no panic."""
    lines = console.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("panic"):
            return lines[number : number + _PANIC_LINES]
    return lines[-_PANIC_LINES:]


def tail_of(console: str, what: str = "its console ends") -> str:
    """Returns the last lines of a console or another output as the end of a message."""
    lines = console.rstrip().splitlines()[-_LAST_LINES:]
    return f"; {what}:\n" + indent(lines) if lines else "; its console is empty"


def indent(lines: list[str]) -> str:
    """Indents lines, to separate them from schedlab's own messages."""
    return "\n".join(f"    {line}" for line in lines)


def read_console(path: Path) -> str:
    """Returns the last 1 MiB of a console log, which may contain arbitrary bytes."""
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - (1 << 20)))
        return file.read().decode(errors="replace").replace("\r", "")

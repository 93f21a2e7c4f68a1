# SPDX-License-Identifier: MIT
"""How a run ended, read from the machine's exit status and its console."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

from schedlab.machines.broken_rule import explained, killed_in, rule_in

# abi/machine_status.h
SUCCESS, FAILED, PANIC, LIMIT, STUCK, REFUSED = 0, 1, 101, 102, 103, 104
BROKEN_RULE = 105
"""Of the simulator: a policy's function does not end, or touches what is not there."""

MEASURED = frozenset({"success", "limit", "disk"})
"""How runs end whose traces are good, if not whole."""
_PANIC_LINES = 40
_LAST_LINES = 12


@dataclass(frozen=True)
class Outcome:
    """`status` is one word for programs; `message` says more to people, "" after a success."""

    status: str
    message: str = ""
    note: str = ""
    """How the machine has run, if that was not known before; "": as its note says."""

    @property
    def succeeded(self) -> bool:
        return self.status == "success"


def outcome_of(
    exit_status: int, console: str, limit_status: int = LIMIT, program: Path | None = None
) -> Outcome:
    """`exit_status` as Python gives it: negative for a signal. `limit_status`: the machine's. `program`: that to
    which addresses in its last words belong."""
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
        what = "the kernel did not obey what the branch is to do otherwise"
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
    """The machine's own limit did not end it."""
    return Outcome(
        "hung", f"the machine did not end within {seconds:.0f} s of the host" + tail_of(console)
    )


def panic_lines(console: str) -> list[str]:
    """The kernel's last words: from its panic on; all that is left if it had none."""
    lines = console.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("panic"):
            return lines[number : number + _PANIC_LINES]
    return lines[-_PANIC_LINES:]


def tail_of(console: str, what: str = "its console ends") -> str:
    """The last lines of a console, or of other words, to be put behind a message."""
    lines = console.rstrip().splitlines()[-_LAST_LINES:]
    return f"; {what}:\n" + indent(lines) if lines else "; its console is empty"


def indent(lines: list[str]) -> str:
    """Set apart from what schedlab itself says."""
    return "\n".join(f"    {line}" for line in lines)


def read_console(path: Path) -> str:
    """The last part of a console's log; a machine may have written any bytes."""
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - (1 << 20)))
        return file.read().decode(errors="replace").replace("\r", "")

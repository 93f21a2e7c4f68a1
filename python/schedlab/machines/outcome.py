# SPDX-License-Identifier: MIT
"""Determines how a run ended, from the machine's exit status and console."""

import re
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile
from pathlib import Path

from schedlab.base.toolchain.source_lines import Place, find_places

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


_RULE = re.compile(r"policy \S+ broke a rule: .*")
_FAULT = re.compile(
    r"(?P<what>[a-z][a-z -]+) in (?:the kernel|schedlab-sim) at pc (?P<pc>0x[0-9a-f]+)"
    r"(?:.*?, address (?P<address>0x[0-9a-f]+))?"
)
_FRAME = re.compile(r"^ +(0x[0-9a-f]+)(?: (\S+))?$")
_LABEL_PREFIX = ".L"
"""Prefix of the assembler's labels, which are not functions."""
_KILL_MESSAGE = re.compile(r"ended by policy (\S+): its (\w+\(\)) returned TICK_KILL")
_FAULT_DESCRIPTIONS = {
    "load page fault": "reads address {address}, where nothing is",
    "store page fault": "writes to address {address}, where nothing is",
    "segmentation fault": "reads or writes address {address}, where nothing is",
    "division by zero": "divides by zero",
    "breakpoint": "divides by zero, or leaves an array",
    "endless loop": "does not end: there is an endless loop",
}


def find_broken_rule(lines: Iterable[str]) -> str:
    """Returns the first message in the output that a policy broke a rule, or ""."""
    return next((match[0] for line in lines if (match := _RULE.search(line))), "")


def describe_kills(console: str) -> str:
    """Returns how many processes the policy killed (TICK_KILL) as a sentence, or "" if none."""
    match = _KILL_MESSAGE.findall(console)
    if not match:
        return ""
    ended = "a process" if len(match) == 1 else f"{len(match)} processes"
    hooks = " and ".join(dict.fromkeys(hook for _, hook in match))
    return f"policy {match[0][0]} has ended {ended}: its {hooks} returned TICK_KILL"


def explain_panic(lines: Sequence[str], program: Path | None) -> tuple[str, list[str]]:
    """Returns the broken rule (or ""), and the lines with source locations after their addresses.

    `program`: the executable that the addresses belong to, or None if unknown.
    """
    fault = next((match for line in lines if (match := _FAULT.search(line))), None)
    frames = [int(match[1], 16) for line in lines if (match := _FRAME.match(line))]
    addresses = [*([int(fault["pc"], 16)] if fault else []), *frames]
    places = find_places(program, addresses) if program else {}
    rule = find_broken_rule(lines)
    if fault and not rule:
        fault_places = places.get(int(fault["pc"], 16), [])
        rule = _rule_of_fault(
            fault, fault_places, [place for a in frames for place in places.get(a, [])]
        )
    return rule, [rule for line in lines for rule in _describe_frame(line, places)]


def _rule_of_fault(
    fault: re.Match[str], fault_places: Sequence[Place], caller_places: Sequence[Place]
) -> str:
    """Returns the broken rule, or "" if the fault happened outside of a policy.

    `fault_places`: the source location of the fault, followed by the callers inlined there. `caller_places`: the
    calling functions, innermost first.
    """
    callers = dropwhile(lambda place: not place.in_policy, caller_places)
    policy_places = list(takewhile(lambda place: place.in_policy, [*fault_places, *callers]))
    if not policy_places:
        return ""
    hook = policy_places[-1]
    fault_name = fault["what"].strip()
    description = _FAULT_DESCRIPTIONS.get(fault_name, f"ends in a {fault_name}").format(
        address=fault["address"] or "unknown"
    )
    place = policy_places[0]
    helper = f" in {place.function}()," if place.function != hook.function else ""
    rule = f"{hook.function}() {description},{helper} at {place.file}:{place.line}"
    return f"policy {Path(hook.file).stem} broke a rule: {rule}"


def _describe_frame(line: str, places: dict[int, list[Place]]) -> Iterator[str]:
    """Yields a line of the call stack with its places in the source, or unchanged."""
    match = _FRAME.match(line)
    frame_places = places.get(int(match[1], 16), []) if match else []
    if not match or not frame_places:
        yield line
        return
    for place in frame_places:
        is_label = place.function.startswith(_LABEL_PREFIX) and match[2]
        corrected_place = replace(place, function=match[2].partition("+")[0]) if is_label else place
        yield f"  {match[1]} {corrected_place}"

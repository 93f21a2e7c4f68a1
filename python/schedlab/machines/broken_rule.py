# SPDX-License-Identifier: MIT
"""Explains which rule of policies/policy.h a policy broke, from the end of a machine's output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import dropwhile, takewhile
from pathlib import Path

from schedlab.base.toolchain.source_lines import Place, find_places

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

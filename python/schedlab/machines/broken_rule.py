# SPDX-License-Identifier: MIT
"""Explains which rule a policy broke, with file and line, from the last output of a machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import dropwhile, takewhile
from pathlib import Path

from schedlab.base.toolchain.source_lines import Place, places_of

_RULE = re.compile(r"policy \S+ broke a rule: .*")
_FAULT = re.compile(
    r"(?P<what>[a-z][a-z -]+) in (?:the kernel|schedlab-sim) at pc (?P<pc>0x[0-9a-f]+)"
    r"(?:.*?, address (?P<address>0x[0-9a-f]+))?"
)
_FRAME = re.compile(r"^ +(0x[0-9a-f]+)(?: (\S+))?$")
_LABEL = ".L"
"""Prefix of labels within functions."""
_KILLED = re.compile(r"ended by policy (\S+): its (\w+\(\)) returned TICK_KILL")
_DEEDS = {
    "load page fault": "reads address {address}, where nothing is",
    "store page fault": "writes to address {address}, where nothing is",
    "segmentation fault": "reads or writes address {address}, where nothing is",
    "division by zero": "divides by zero",
    "breakpoint": "divides by zero, or leaves an array",
    "endless loop": "does not end: there is an endless loop",
}


def rule_in(lines: Iterable[str]) -> str:
    """Returns the first message that a policy broke a rule, or ""."""
    return next((match[0] for line in lines if (match := _RULE.search(line))), "")


def killed_in(console: str) -> str:
    """Returns how many processes a policy ended by TICK_KILL, as a sentence, or "" if none."""
    match = _KILLED.findall(console)
    if not match:
        return ""
    ended = "a process" if len(match) == 1 else f"{len(match)} processes"
    hooks = " and ".join(dict.fromkeys(hook for _, hook in match))
    return f"policy {match[0][0]} has ended {ended}: its {hooks} returned TICK_KILL"


def explained(lines: Sequence[str], program: Path | None) -> tuple[str, list[str]]:
    """Returns the broken rule, or "", and the lines with source locations for their addresses.

    `program` is the executable of the addresses, or None if unknown.
    """
    fault = next((match for line in lines if (match := _FAULT.search(line))), None)
    frames = [int(match[1], 16) for line in lines if (match := _FRAME.match(line))]
    addresses = [*([int(fault["pc"], 16)] if fault else []), *frames]
    places = places_of(program, addresses) if program else {}
    rule = rule_in(lines)
    if fault and not rule:
        at = places.get(int(fault["pc"], 16), [])
        rule = _rule_of_fault(fault, at, [place for a in frames for place in places.get(a, [])])
    return rule, [rule for line in lines for rule in _with_places(line, places)]


def _rule_of_fault(fault: re.Match[str], at: Sequence[Place], above: Sequence[Place]) -> str:
    """Returns the broken rule, or "" if the fault is not in a policy.

    `at` is the fault's location with its inlined callers; `above` are the calling functions, the
    innermost first.
    """
    callers = dropwhile(lambda place: not place.in_policy, above)
    chain = list(takewhile(lambda place: place.in_policy, [*at, *callers]))
    if not chain:
        return ""
    hook = chain[-1]
    what = fault["what"].strip()
    deed = _DEEDS.get(what, f"ends in a {what}").format(address=fault["address"] or "unknown")
    place = chain[0]
    helper = f" in {place.function}()," if place.function != hook.function else ""
    rule = f"{hook.function}() {deed},{helper} at {place.file}:{place.line}"
    return f"policy {Path(hook.file).stem} broke a rule: {rule}"


def _with_places(line: str, places: dict[int, list[Place]]) -> Iterator[str]:
    match = _FRAME.match(line)
    located = places.get(int(match[1], 16), []) if match else []
    if not match or not located:
        yield line
        return
    for place in located:
        is_label = place.function.startswith(_LABEL) and match[2]
        named = replace(place, function=match[2].partition("+")[0]) if is_label else place
        yield f"  {match[1]} {named}"

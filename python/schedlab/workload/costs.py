# SPDX-License-Identifier: MIT
"""Reads and writes cost profiles of the simulator, and applies users' changes to them.

A profile is a JSON file (docs/simulator.md). The simulator's built-in profile is generated from
`sim/costs/kernel.json`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from schedlab.base.files.atomic import atomic_write
from schedlab.base.files.json_lines import JsonError, Node, Object, parse
from schedlab.base.files.reading import read_bytes
from schedlab.base.toolchain.policies import describe_unknown_name, is_choice
from schedlab.errors import FileRefused, WrongUsage, format_parameter
from schedlab.paths import ROOT
from schedlab.workload.values import (
    Fields,
    integer_reader,
    object_members,
    read_any_text,
    read_integer,
    value_error,
)

SUFFIX = ".json"
FORMAT = 1
NANOSECONDS_MAX = 10**12
SHIPPED_PROFILE = ROOT / "sim" / "costs" / "kernel.json"
BUILT_IN_PROFILES = ("kernel", "none", "textbook")
"""Names of the profiles that the simulator contains."""

COST_MEANINGS = {
    "boot": "time from boot until the workload begins",
    "stagger": "delay from a CPU's tick to the next CPU's tick",
    "scheduler": "a scheduling decision",
    "crowd": "addition to a decision, per 100 waiting processes",
    "switch": "addition to a decision, if another process or idle is loaded",
    "tick": "a tick of a CPU that runs a process",
    "wakeup": "each process that a timer wakes",
    "interrupt": "delay until a called CPU reacts",
    "migration": "additional computing time of a process after a migration",
    "call": "a system call, except those below",
    "sleep": "from the system call until the process sleeps",
    "pipe": "adding something to a channel, or removing it",
    "fork": "from the system call until the child exists",
    "fork_look": "the part of a fork before the kernel checks for interrupts",
    "fork_new": "addition to a fork into a process slot that was never used",
    "fork_return": "from the child's creation until its parent continues",
    "first_run": "from a new process's first run until its program begins",
    "exit": "from the system call until the process has ended",
    "reap": "reaping a child that has ended, by its parent",
    "arrival": "time of the first CPU for each process that arrives, spent by what starts it",
    "instructions": "1,000 instructions of a sched_ext scheduler's programs",
}
"""What each cost includes. The names are those of sim/costs.c."""

_CHANGE = re.compile(r"([a-z][a-z0-9_.:-]*)=(\d{1,18})")
_TEXT_CHANGE = re.compile(r"[a-z][a-z0-9_.:-]*\+?=\d{1,18}")
_PROFILE_KEYS = ("format", "description", "base", "machine", "tick_ns", "costs")
_COST_NUMBERS = ("ns", "spread_ns", "events", "low_ns", "high_ns")
_COST_KEYS = (*_COST_NUMBERS, "source")


@dataclass(frozen=True)
class Costs:
    """The costs that a run charges."""

    name: str
    """Name for users and manifests. For costs from a file, it contains the start of the file's hash."""
    text: str
    """The costs in the text format of schedlab-sim."""

    def changed(self, *changes: str) -> Costs:
        """Returns the costs with changes such as "fork=20000"."""
        added = "".join(f",{change}" for change in changes)
        return Costs(self.name + added, self.text + added)


KERNEL_COSTS = Costs("kernel", "kernel")


@dataclass(frozen=True)
class Cost:
    """One cost of a profile, and its source."""

    ns: int
    spread_ns: int = 0
    """Interquartile range (ns) of the measured values."""
    events: int = 0
    """Number of measured events; 0 if unknown."""
    source: str = ""
    low_ns: int | None = None
    """Lower end of the 95 % interval of `ns`; None if unknown."""
    high_ns: int | None = None


@dataclass(frozen=True)
class Profile:
    """The content of a cost file. Costs that it does not name are those of `base`."""

    costs: Mapping[str, Cost]
    base: str = "none"
    description: str = ""
    machine: str = ""
    tick_ns: int = 0
    """Tick length of the measured runs in ns; 0 if unknown."""

    def text(self) -> str:
        """Returns the costs in the simulator's text format.

        General costs come first, then those of policies, then those of presets, because later
        entries override earlier ones.
        """
        names = sorted(self.costs, key=lambda name: (name.count("."), name.count(":")))
        return ",".join([self.base, *(f"{name}={self.costs[name].ns}" for name in names)])

    def costs_as_dicts(self) -> dict[str, dict[str, int | str]]:
        """Returns the costs by name, as in the file."""
        return {
            name: {key: value for key, value in asdict(cost).items() if value is not None}
            for name, cost in self.costs.items()
        }

    def to_dict(self) -> dict[str, object]:
        """Returns the file's content."""
        return {
            "format": FORMAT,
            "description": self.description,
            "base": self.base,
            "machine": self.machine,
            "tick_ns": self.tick_ns,
            "costs": self.costs_as_dicts(),
        }


def parse_costs(text: str) -> Costs:
    """Parses costs such as "kernel", "kernel,fork=20000" or "profile.json,fork=20000".

    Raises WrongUsage if they are invalid.
    """
    first, *changes = (part.strip() for part in text.split(","))
    if first in BUILT_IN_PROFILES:
        base = Costs(first, first)
    elif first.endswith(SUFFIX):
        base = _read_costs_file(Path(first))
    elif _CHANGE.fullmatch(first):
        base, changes = KERNEL_COSTS, [first, *changes]
    else:
        raise WrongUsage(
            f"{first!r}: unknown costs",
            what=format_parameter("costs", text),
            fix="use kernel, none, textbook, a profile (a file whose name ends in "
            f"{SUFFIX}), or NAME=NANOSECONDS",
        )
    for change in changes:
        _check_change(text, change)
    return base.changed(*changes)


def check_costs_text(text: str) -> str:
    """Returns `text` if the simulator can read it as costs; raises ValueError otherwise.

    For texts that come from files.
    """
    base, *changes = text.split(",")
    wrong_change = next((change for change in changes if not _TEXT_CHANGE.fullmatch(change)), None)
    if base not in BUILT_IN_PROFILES or wrong_change is not None:
        raise ValueError(
            f"costs: {wrong_change or base!r}: expected NAME=NANOSECONDS after a profile's name"
        )
    return text


def _check_change(text: str, change: str) -> None:
    match = _CHANGE.fullmatch(change)
    if not match:
        raise WrongUsage(
            f"{change!r}: not a cost",
            what=format_parameter("costs", text),
            fix="write NAME=NANOSECONDS, such as fork=20000",
        )
    problem = _why_unknown(match[1])
    if problem:
        raise WrongUsage(problem, what=format_parameter("costs", text))
    if int(match[2]) > NANOSECONDS_MAX:
        raise WrongUsage(
            f"{change}: too large",
            what=format_parameter("costs", text),
            fix=f"use at most {NANOSECONDS_MAX} ns",
        )


def _why_unknown(name: str) -> str:
    """Returns why the name of a cost (or the policy after its dot) is unknown; "" if it is known."""
    cost, dot, policy = name.partition(".")
    if cost not in COST_MEANINGS:
        return describe_unknown_name("cost", cost, COST_MEANINGS)
    if dot and not is_choice(policy):
        return f"expected POLICY or POLICY:PRESET after the dot of {name}"
    return ""


def _read_costs_file(path: Path) -> Costs:
    content = _read_file(path)
    digest = hashlib.sha256(content).hexdigest()
    return Costs(f"{path.name} ({digest[:12]})", read_profile(path).text())


def _read_file(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except FileRefused as error:
        raise WrongUsage(f"costs {error}") from None


def write_profile(path: Path, profile: Profile) -> None:
    """Writes a profile. Each cost is on a separate line, because sim/make_costs_table.sh reads lines."""
    content = profile.to_dict()
    lines = [
        f"{json.dumps(name)}: {json.dumps(cost, ensure_ascii=False)}"
        for name, cost in profile.costs_as_dicts().items()
    ]
    head = [f"{json.dumps(key)}: {json.dumps(content[key])}" for key in content if key != "costs"]
    costs = '"costs": {\n        ' + ",\n        ".join(lines) + "\n    }"
    text = "{\n    " + ",\n    ".join([*head, costs]) + "\n}\n"
    with atomic_write(path) as new:
        new.write_text(text)


def read_profile(path: Path) -> Profile:
    """Reads a profile. Raises WrongUsage with the line of an error."""
    try:
        return parse_profile(parse(_read_file(path).decode()))
    except UnicodeDecodeError as error:
        raise WrongUsage(
            f"not UTF-8: {error.reason}", what=f"costs {path}", fix="save it as UTF-8"
        ) from None
    except JsonError as error:
        raise WrongUsage(f"{path}:{error.line}: {error}") from None


def parse_profile(node: Node) -> Profile:
    """Converts parsed JSON to a profile. Raises JsonError."""
    fields = Fields(node, "an object: a profile of costs", _PROFILE_KEYS, ("format", "costs"))
    if fields["format"].value != FORMAT:
        raise value_error(fields["format"], f"{FORMAT}, the only format")
    base = fields.read("base", read_any_text, "") or "none"
    if base not in BUILT_IN_PROFILES:
        raise value_error(fields["base"], " or ".join(BUILT_IN_PROFILES))
    return Profile(
        {name: _parse_cost(name, cost_node) for name, cost_node in _cost_nodes(fields["costs"])},
        base,
        fields.read("description", read_any_text, ""),
        fields.read("machine", read_any_text, ""),
        fields.read("tick_ns", _read_nanoseconds, 0),
    )


def _cost_nodes(node: Node) -> tuple[tuple[str, Node], ...]:
    entries = object_members(node, "an object: costs by their names")
    for index, (name, cost_node) in enumerate(entries):
        if any(name == before for before, _ in entries[:index]):
            raise JsonError(cost_node.line, f"{cost_node.path}: given twice; remove one of the two")
    return entries


def _parse_cost(name: str, node: Node) -> Cost:
    problem = _why_unknown(name)
    if problem:
        raise JsonError(node.line, f"{node.path}: {problem}")
    if not isinstance(node.value, Object):
        return Cost(read_integer(node, 0, NANOSECONDS_MAX, _expected_cost()))
    fields = Fields(node, _expected_cost(), _COST_KEYS, ("ns",))
    numbers = {key: _read_nanoseconds(fields[key]) for key in _COST_NUMBERS if key in fields}
    return Cost(**numbers, source=fields.read("source", read_any_text, ""))


_read_nanoseconds = integer_reader(0, NANOSECONDS_MAX)


def _expected_cost() -> str:
    return f"nanoseconds, a whole number from 0 to {NANOSECONDS_MAX}, or an object with the key ns"

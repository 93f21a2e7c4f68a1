# SPDX-License-Identifier: MIT
"""Manages cost profiles of the simulator: files, built-in profiles and changes by users.

A profile is JSON (docs/simulator.md). The simulator's built-in table is generated from
`sim/costs/kernel.json`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from schedlab.base.files.atomic import written
from schedlab.base.files.json_lines import JsonError, Node, Object, parse
from schedlab.base.files.reading import read_bytes
from schedlab.base.toolchain.policies import is_choice, unknown
from schedlab.errors import FileRefused, WrongUsage, parameter
from schedlab.paths import ROOT
from schedlab.workload.values import by_key, integer, members, wrong

SUFFIX = ".json"
FORMAT = 1
NANOSECONDS_MAX = 10**12
SHIPPED = ROOT / "sim" / "costs" / "kernel.json"
BUILT_IN = ("kernel", "none", "textbook")
"""The simulator's built-in profiles."""

COSTS = {
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
}
"""The costs by name, as in sim/costs.c, and what each one includes."""

_CHANGE = re.compile(r"([a-z][a-z0-9_.:-]*)=(\d{1,18})")
_TEXT_CHANGE = re.compile(r"[a-z][a-z0-9_.:-]*\+?=\d{1,18}")
_PROFILE_KEYS = ("format", "description", "base", "machine", "tick_ns", "costs")
_COST_KEYS = ("ns", "spread_ns", "events", "source")


@dataclass(frozen=True)
class Costs:
    """The costs of a run."""

    name: str
    """The name for users and for a run's manifest; for a file, it contains the start of the file's hash."""
    text: str
    """The costs in schedlab-sim's format."""

    def changed(self, *changes: str) -> Costs:
        """Returns the costs with changes such as "fork=20000"."""
        added = "".join(f",{change}" for change in changes)
        return Costs(self.name + added, self.text + added)


KERNEL = Costs("kernel", "kernel")


@dataclass(frozen=True)
class Cost:
    """One cost of a profile, and its source."""

    ns: int
    spread_ns: int = 0
    """Interquartile range of the measured values."""
    events: int = 0
    """The number of measured events; 0: unknown."""
    source: str = ""


@dataclass(frozen=True)
class Profile:
    """A file of costs. Other costs are those of its base."""

    costs: Mapping[str, Cost]
    base: str = "none"
    description: str = ""
    machine: str = ""
    tick_ns: int = 0
    """The tick of the measured runs; 0: unknown."""

    def text(self) -> str:
        """Returns the costs in the simulator's format.

        Later entries override earlier ones. General costs therefore come first, then those of
        policies, then those of presets.
        """
        names = sorted(self.costs, key=lambda name: (name.count("."), name.count(":")))
        return ",".join([self.base, *(f"{name}={self.costs[name].ns}" for name in names)])

    def costs_as_dicts(self) -> dict[str, dict[str, int | str]]:
        """Returns the costs by name, as in the file."""
        return {name: asdict(cost) for name, cost in self.costs.items()}

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


def choose(text: str) -> Costs:
    """Returns the costs of "kernel", "kernel,fork=20000" or "profile.json,fork=20000". Raises
    WrongUsage for invalid text.
    """
    first, *changes = (part.strip() for part in text.split(","))
    if first in BUILT_IN:
        base = Costs(first, first)
    elif first.endswith(SUFFIX):
        base = _of_file(Path(first))
    elif _CHANGE.fullmatch(first):
        base, changes = KERNEL, [first, *changes]
    else:
        raise WrongUsage(
            f"{first!r}: unknown costs",
            what=parameter("costs", text),
            fix="use kernel, none, textbook, a profile (a file whose name ends in "
            f"{SUFFIX}), or NAME=NANOSECONDS",
        )
    for change in changes:
        _check_change(text, change)
    return base.changed(*changes)


def checked_text(text: str) -> str:
    """Returns the text of Costs if it is valid, for text from a file. Raises ValueError if the
    simulator could not read it.
    """
    base, *changes = text.split(",")
    wrong_change = next((change for change in changes if not _TEXT_CHANGE.fullmatch(change)), None)
    if base not in BUILT_IN or wrong_change is not None:
        raise ValueError(
            f"costs: {wrong_change or base!r}: expected NAME=NANOSECONDS after a profile's name"
        )
    return text


def _check_change(text: str, change: str) -> None:
    match = _CHANGE.fullmatch(change)
    if not match:
        raise WrongUsage(
            f"{change!r}: not a cost",
            what=parameter("costs", text),
            fix="write NAME=NANOSECONDS, such as fork=20000",
        )
    problem = _unknown(match[1])
    if problem:
        raise WrongUsage(problem, what=parameter("costs", text))
    if int(match[2]) > NANOSECONDS_MAX:
        raise WrongUsage(
            f"{change}: too large",
            what=parameter("costs", text),
            fix=f"use at most {NANOSECONDS_MAX} ns",
        )


def _unknown(name: str) -> str:
    """Returns what is wrong with the name of a cost, or with the policy after its dot; "" if nothing is."""
    cost, dot, policy = name.partition(".")
    if cost not in COSTS:
        return unknown("cost", cost, COSTS)
    if dot and not is_choice(policy):
        return f"expected POLICY or POLICY:PRESET after the dot of {name}"
    return ""


def _of_file(path: Path) -> Costs:
    content = _content(path)
    digest = hashlib.sha256(content).hexdigest()
    return Costs(f"{path.name} ({digest[:12]})", read(path).text())


def _content(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except FileRefused as error:
        raise WrongUsage(f"costs {error}") from None


def write(path: Path, profile: Profile) -> None:
    """Writes the file atomically. Each cost has its own line, because sim/make_costs_table.sh reads lines."""
    content = profile.to_dict()
    lines = [
        f"{json.dumps(name)}: {json.dumps(cost, ensure_ascii=False)}"
        for name, cost in profile.costs_as_dicts().items()
    ]
    head = [f"{json.dumps(key)}: {json.dumps(content[key])}" for key in content if key != "costs"]
    costs = '"costs": {\n        ' + ",\n        ".join(lines) + "\n    }"
    text = "{\n    " + ",\n    ".join([*head, costs]) + "\n}\n"
    with written(path) as new:
        new.write_text(text)


def read(path: Path) -> Profile:
    """Reads a profile. Raises WrongUsage, which names the line."""
    try:
        return profile_of(parse(_content(path).decode()))
    except UnicodeDecodeError as error:
        raise WrongUsage(f"costs {path}: expected UTF-8: {error.reason}") from None
    except JsonError as error:
        raise WrongUsage(f"{path}:{error.line}: {error}") from None


def profile_of(node: Node) -> Profile:
    """Returns the profile of a JSON node. Raises JsonError."""
    fields = by_key(node, "an object: a profile of costs", _PROFILE_KEYS)
    for key in ("format", "costs"):
        if key not in fields:
            raise wrong(node, f"the key {key} in it")
    if fields["format"].value != FORMAT:
        raise wrong(fields["format"], f"{FORMAT}, the only format")
    base = _text(fields, "base") or "none"
    if base not in BUILT_IN:
        raise wrong(fields["base"], " or ".join(BUILT_IN))
    tick = fields.get("tick_ns")
    return Profile(
        {name: _cost(name, cost_node) for name, cost_node in _costs(fields["costs"])},
        base,
        _text(fields, "description"),
        _text(fields, "machine"),
        integer(tick, 0, NANOSECONDS_MAX) if tick else 0,
    )


def _costs(node: Node) -> tuple[tuple[str, Node], ...]:
    entries = members(node, "an object: costs by their names")
    for place, (name, cost_node) in enumerate(entries):
        if any(name == before for before, _ in entries[:place]):
            raise JsonError(cost_node.line, f"{cost_node.path}: given twice: expected once")
    return entries


def _cost(name: str, node: Node) -> Cost:
    problem = _unknown(name)
    if problem:
        raise JsonError(node.line, f"{node.path}: {problem}")
    if not isinstance(node.value, Object):
        return Cost(integer(node, 0, NANOSECONDS_MAX, _expected()))
    fields = by_key(node, _expected(), _COST_KEYS)
    if "ns" not in fields:
        raise wrong(node, "the key ns in it")
    numbers = {
        key: integer(fields[key], 0, NANOSECONDS_MAX)
        for key in ("ns", "spread_ns", "events")
        if key in fields
    }
    return Cost(**numbers, source=_text(fields, "source"))


def _expected() -> str:
    return f"nanoseconds, a whole number from 0 to {NANOSECONDS_MAX}, or an object with the key ns"


def _text(fields: Mapping[str, Node], key: str) -> str:
    node = fields.get(key)
    if node is None:
        return ""
    if not isinstance(node.value, str):
        raise wrong(node, "a text")
    return node.value

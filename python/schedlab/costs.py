# SPDX-License-Identifier: MIT
"""What things take in the simulator: profiles as files, and as `--costs` names them.

A profile is JSON (docs/simulator.md). What ships with the simulator is `sim/costs/kernel.json`,
from which its own table is made.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from schedlab.errors import WrongUsage
from schedlab.json_lines import JsonError, Node, Object, parse
from schedlab.paths import ROOT
from schedlab.policies import unknown
from schedlab.workload_files import by_key, members, whole, wrong

SUFFIX = ".json"
FORMAT = 1
NANOSECONDS_MAX = 10**12
SHIPPED = ROOT / "sim" / "costs" / "kernel.json"
BUILT_IN = ("kernel", "none")
"""Profiles that the simulator knows by name."""

COSTS = {
    "scheduler": "to come to a decision",
    "switch": "to load another process, or idle, beside that",
    "tick": "a tick of a CPU that runs a process",
    "interrupt": "until a called CPU hears it",
    "migration": "that a process computes longer after it was moved",
    "call": "a system call, but for those below",
    "fork": "until the child is there",
    "exit": "until the process has ended",
}
"""Names, as in `--costs`, and what is paid. The same as in sim/costs.c."""

_CHANGE = re.compile(r"([a-z][a-z0-9_.-]*)=(\d{1,18})")
_PROFILE_KEYS = ("format", "description", "base", "machine", "tick_ns", "costs")
_COST_KEYS = ("ns", "spread_ns", "events", "source")


@dataclass(frozen=True)
class Costs:
    """Those of a run."""

    name: str
    """For people, and for a run's manifest; of a file, with the beginning of its hash."""
    text: str
    """For `schedlab-sim --costs`."""


KERNEL = Costs("kernel", "kernel")


@dataclass(frozen=True)
class Cost:
    """One of a profile: what it takes, and how that is known."""

    ns: int
    spread_ns: int = 0
    """Interquartile range of what it was taken from."""
    events: int = 0
    """From how many events it was taken; 0: not said."""
    source: str = ""


@dataclass(frozen=True)
class Profile:
    """A file of costs. Those that it does not name are its base's."""

    costs: Mapping[str, Cost]
    base: str = "none"
    description: str = ""
    machine: str = ""
    tick_ns: int = 0
    """Of the runs that it was measured in; 0: not said."""

    def text(self) -> str:
        """As the simulator reads it."""
        return ",".join([self.base, *(f"{name}={cost.ns}" for name, cost in self.costs.items())])

    def to_dict(self) -> dict[str, object]:
        """The file's content."""
        costs = {
            name: {
                "ns": cost.ns,
                "spread_ns": cost.spread_ns,
                "events": cost.events,
                "source": cost.source,
            }
            for name, cost in self.costs.items()
        }
        return {
            "format": FORMAT,
            "description": self.description,
            "base": self.base,
            "machine": self.machine,
            "tick_ns": self.tick_ns,
            "costs": costs,
        }


def choose(text: str) -> Costs:
    """Of "kernel", "kernel,fork=20000" or "profile.json,fork=20000". WrongUsage says what is wrong."""
    first, *changes = (part.strip() for part in text.split(","))
    if first in BUILT_IN:
        base = Costs(first, first)
    elif first.endswith(SUFFIX):
        base = _of_file(Path(first))
    elif _CHANGE.fullmatch(first):
        base, changes = KERNEL, [first, *changes]
    else:
        raise WrongUsage(
            f"--costs {text}: {first!r}: expected kernel, none, a profile (a file whose name ends in"
            f" {SUFFIX}), or NAME=NANOSECONDS"
        )
    for change in changes:
        _check_change(text, change)
    added = "".join(f",{change}" for change in changes)
    return replace(base, name=base.name + added, text=base.text + added)


def _check_change(text: str, change: str) -> None:
    match = _CHANGE.fullmatch(change)
    if not match:
        raise WrongUsage(
            f"--costs {text}: {change!r}: expected NAME=NANOSECONDS, such as fork=20000"
        )
    if match[1] not in COSTS:
        raise WrongUsage(f"--costs {text}: {unknown('cost', match[1], COSTS)}")
    if int(match[2]) > NANOSECONDS_MAX:
        raise WrongUsage(f"--costs {text}: {change}: expected at most {NANOSECONDS_MAX} ns")


def _of_file(path: Path) -> Costs:
    content = _content(path)
    digest = hashlib.sha256(content).hexdigest()
    return Costs(f"{path.name} ({digest[:12]})", read(path).text())


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise WrongUsage(f"costs {path}: it cannot be read: {error.strerror}") from None


def read(path: Path) -> Profile:
    """WrongUsage says what is wrong in it, and where."""
    try:
        return profile_of(parse(_content(path).decode()))
    except UnicodeDecodeError as error:
        raise WrongUsage(f"costs {path}: expected UTF-8: {error.reason}") from None
    except JsonError as error:
        raise WrongUsage(f"{path}:{error.line}: {error}") from None


def profile_of(node: Node) -> Profile:
    """Raises JsonError."""
    found = by_key(node, "an object: a profile of costs", _PROFILE_KEYS)
    for key in ("format", "costs"):
        if key not in found:
            raise wrong(node, f"the key {key} in it")
    if found["format"].value != FORMAT:
        raise wrong(found["format"], f"{FORMAT}, the only format there is")
    base = _text(found, "base") or "none"
    if base not in BUILT_IN:
        raise wrong(found["base"], " or ".join(BUILT_IN))
    tick = found.get("tick_ns")
    return Profile(
        {name: _cost(name, each) for name, each in _costs(found["costs"])},
        base,
        _text(found, "description"),
        _text(found, "machine"),
        whole(tick, 0, NANOSECONDS_MAX) if tick else 0,
    )


def _costs(node: Node) -> tuple[tuple[str, Node], ...]:
    found = members(node, "an object: costs by their names")
    for place, (name, each) in enumerate(found):
        if any(name == before for before, _ in found[:place]):
            raise JsonError(each.line, f"{each.path}: it is there twice: expected one of it")
    return found


def _cost(name: str, node: Node) -> Cost:
    if name not in COSTS:
        raise JsonError(node.line, f"{node.path}: {unknown('cost', name, COSTS)}")
    if not isinstance(node.value, Object):
        return Cost(whole(node, 0, NANOSECONDS_MAX, _expected()))
    found = by_key(node, _expected(), _COST_KEYS)
    if "ns" not in found:
        raise wrong(node, "the key ns in it")
    numbers = {
        key: whole(found[key], 0, NANOSECONDS_MAX)
        for key in ("ns", "spread_ns", "events")
        if key in found
    }
    return Cost(**numbers, source=_text(found, "source"))


def _expected() -> str:
    return f"nanoseconds, a whole number from 0 to {NANOSECONDS_MAX}, or an object with the key ns"


def _text(found: Mapping[str, Node], key: str) -> str:
    node = found.get(key)
    if node is None:
        return ""
    if not isinstance(node.value, str):
        raise wrong(node, "a text")
    return node.value

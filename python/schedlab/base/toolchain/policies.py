# SPDX-License-Identifier: MIT
"""Parses policies and parameters of the command line, and checks them against the C sources."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeVar

from schedlab.base.toolchain.committed import committed_listing
from schedlab.errors import BuildFailed, RuleBroken, WrongUsage, parameter
from schedlab.paths import ROOT

_NAME = r"[a-z][a-z0-9_-]*"
Given = TypeVar("Given")
"""Type of a setting's value: a number, or the text of several values."""
_CHOICE = re.compile(rf"({_NAME})(?::({_NAME}))?")
STANDARD = "rr"
"""The default policy: number 0, which is active when a machine starts."""

_SETTING = re.compile(rf"({_NAME})=(-?\d{{1,18}})")
_POLICY_SETTING = re.compile(rf"((?:{_NAME}(?::{_NAME})?\.)?{_NAME})=(-?\d{{1,18}})")


@dataclass(frozen=True)
class PolicyChoice:
    """A policy and the preset of its tunables."""

    name: str
    preset: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.preset}" if self.preset else self.name


@dataclass(frozen=True)
class Tunable:
    """A named integer parameter of a policy."""

    name: str
    meaning: str
    minimum: int
    default: int
    maximum: int


@dataclass(frozen=True)
class Preset:
    """A named set of values for a policy's tunables.

    `tunables` is set if the preset's source has different tunables than its policy.
    """

    name: str
    meaning: str
    values: dict[str, int]
    shares_by: str = "equal"
    priorities: str = "none"
    reads: str | None = None
    tunables: dict[str, Tunable] = field(default_factory=dict)


@dataclass(frozen=True)
class Policy:
    """A policy's description in its C source.

    `shares_by` is the attribute that determines CPU shares: "tickets", "weight", "nice", "groups"
    or "equal". `order`, `levels` and `remark` are sentences for people: the order of a queue, the
    meaning of levels, and the reason of a decision, with {} for its value. They are empty if the
    policy has no levels or gives no reasons.
    """

    name: str
    meaning: str
    source: str
    number: int | None = 0
    """None for policies identified by name only."""
    shares_by: str = "equal"
    order: str = ""
    levels: str = ""
    remark: str = ""
    level_order: str = "none"
    """One of "none", "lowest first" and "highest first"."""
    remark_kind: str = "none"
    """One of "none", "level", "ticket" and "time" (nanoseconds)."""
    priorities: str = "none"
    """Effect of the attribute `priority` on the queue.

    "preempt": the lowest number preempts the running task. "wait": it runs when the running task
    blocks or ends.
    """
    boost: str = ""
    """Tunable with the ticks between boosts of all tasks; empty if there are none."""
    reads: str | None = None
    """Attributes that affect decisions (struct policy, `reads`); None if unknown."""
    cost: str = "unsaid"
    """How the cost grows with the number of tasks: "unsaid", "constant" or "logarithmic"."""
    tunables: dict[str, Tunable] = field(default_factory=dict)
    presets: dict[str, Preset] = field(default_factory=dict)

    @property
    def draws(self) -> bool:
        """True if random numbers determine the next task."""
        return self.remark_kind == "ticket"

    def shares_under(self, preset: str) -> str:
        """Returns the attribute that determines shares under the preset, or without one under the policy."""
        return self.presets[preset].shares_by if preset else self.shares_by

    def priorities_under(self, preset: str) -> str:
        """Returns the effect of priorities under the preset, or without one under the policy."""
        return self.presets[preset].priorities if preset else self.priorities

    def value(self, preset: str, tunable: str) -> int:
        """Returns the preset's value of a tunable; the default without a known preset."""
        known = self.presets.get(preset)
        return known.values[tunable] if known else self.tunables[tunable].default

    def attributes_read(
        self, preset: str, settings: Iterable[tuple[str, int]]
    ) -> frozenset[str] | None:
        """Returns the attributes that affect decisions under these values; None if unknown."""
        reads = self.presets[preset].reads if preset else self.reads
        if reads is None:
            return None
        values = {name: self.value(preset, name) for name in self.tunables_of(preset)}
        now = {f"{name}={value}" for name, value in {**values, **dict(settings)}.items()}
        words = (word.partition(":") for word in reads.split())
        return frozenset(name for name, _, condition in words if not condition or condition in now)

    def tunables_of(self, preset: str) -> dict[str, Tunable]:
        """Returns the tunables of an existing preset, or of the policy for ""."""
        return (self.presets[preset].tunables if preset else {}) or self.tunables


Catalogue = dict[str, Policy]

FAIR = Policy(
    "fair",
    "the Linux kernel's own class, on Linux alone: what it does without a policy of ours",
    "Linux, kernel/sched/fair.c (EEVDF: Stoica and Abdel-Wahab 1995)",
    number=None,
    shares_by="nice",
    reads="nice slice",
    order="The task with the earliest virtual deadline is next, of those that are owed time.",
)
"""A policy without a C file of schedlab; machines with Linux list it with the others."""


def parse_choices(text: str) -> tuple[PolicyChoice, ...]:
    """Parses choices such as "rr,lottery:thesis", without duplicates. Raises ValueError."""
    choices: dict[PolicyChoice, None] = {}
    for part in text.split(","):
        match = _CHOICE.fullmatch(part.strip())
        if not match:
            raise ValueError(
                f"'{part.strip()}' is not of the form POLICY or POLICY:PRESET; a name has "
                "a-z, 0-9, - and _, and begins with a letter"
            )
        choices[PolicyChoice(match[1], match[2] or "")] = None
    return tuple(choices)


def is_choice(text: str) -> bool:
    """Returns whether a text has the form POLICY or POLICY:PRESET."""
    return _CHOICE.fullmatch(text) is not None


def parse_setting(text: str) -> tuple[str, int]:
    """Parses a setting such as "slice=5". Raises ValueError."""
    match = _SETTING.fullmatch(text.strip())
    if not match:
        raise ValueError(f"'{text}' is not of the form NAME=VALUE with a whole number")
    return match[1], int(match[2])


def parse_policy_setting(text: str) -> tuple[str, int]:
    """Parses a setting such as "slice=5", or "rr.slice=5" for one policy. Raises ValueError."""
    match = _POLICY_SETTING.fullmatch(text.strip())
    if not match:
        raise ValueError(
            f"'{text}' is not of the form NAME=VALUE or POLICY.NAME=VALUE with a whole number"
        )
    return match[1], int(match[2])


def settings_for(
    choice: PolicyChoice, settings: Iterable[tuple[str, Given]]
) -> tuple[tuple[str, Given], ...]:
    """Returns a policy's settings; settings for this policy override general ones."""
    policy_settings: dict[str, Given] = {}
    ranks: dict[str, int] = {}
    for name, value in settings:
        whose, _, tunable = name.rpartition(".")
        rank = (
            ("", choice.name, str(choice)).index(whose)
            if whose in ("", choice.name, str(choice))
            else -1
        )
        if rank >= ranks.get(tunable, 0):
            policy_settings[tunable], ranks[tunable] = value, rank
    return tuple(policy_settings.items())


def check_owners(choices: Iterable[PolicyChoice], settings: Iterable[tuple[str, Given]]) -> None:
    """Raises WrongUsage if a setting names a policy that is not chosen."""
    known = {name for choice in choices for name in (choice.name, str(choice))}
    for name, value in settings:
        whose = name.rpartition(".")[0]
        if whose and whose not in known:
            raise WrongUsage(
                f"{whose} is not among the policies of this command",
                what=parameter("settings", {name: value}),
                fix="name it in `policy=` too",
            )


def read_catalogue() -> Catalogue:
    """Returns all built-in policies: the stored catalogue, or the built one if sources have changed."""
    return catalogue_of(committed_listing() or built_listing())


def built_listing() -> list[dict[str, Any]]:
    """Builds and runs a program that lists the policies. Raises BuildFailed or RuleBroken."""
    from schedlab.base.toolchain.build import POLICY_LIST, build
    from schedlab.base.toolchain.diagnosis import check_source

    build(str(POLICY_LIST.relative_to(POLICY_LIST.parents[1])))
    done = subprocess.run(
        [str(POLICY_LIST)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if flaw := re.fullmatch(r"policy_list: (\S+)\.c: (.*)\n", done.stderr):
        check_source(ROOT / "policies" / f"{flaw[1]}.c")
        raise RuleBroken(f"policy {flaw[1]} broke a rule: {flaw[2]}")
    if done.returncode:
        raise BuildFailed(f"{POLICY_LIST} failed:\n{done.stderr.strip()}")
    listing: list[dict[str, Any]] = json.loads(done.stdout)
    return listing


def kinds_of_policies() -> tuple[PolicyChoice, ...]:
    """Returns all policies, and the standard policy's presets, which select tasks differently.

    Presets of other policies behave like their policies.
    """
    known = read_catalogue()
    presets = (PolicyChoice(STANDARD, preset) for preset in known[STANDARD].presets)
    return (*map(PolicyChoice, known), *presets)


@cache
def known_policies() -> Catalogue:
    """Returns the catalogue, cached, for descriptions of policies that have run."""
    return read_catalogue()


def in_policy_order(names: Iterable[str]) -> list[str]:
    """Sorts policies in the order of all tables and charts: by policy, followed by its presets."""
    numbers = {name: number for number, name in enumerate(known_policies())}

    def place(name: str) -> tuple[int, str]:
        policy = name.partition(" ")[0].partition(":")[0]
        return (numbers.get(policy, len(numbers)), name)

    return sorted(dict.fromkeys(names), key=place)


def attributes_ignored(
    choice: PolicyChoice, settings: Iterable[tuple[str, int]], given: Iterable[str]
) -> list[str]:
    """Returns the given attributes that a policy ignores; none if unknown."""
    policy = FAIR if choice.name == FAIR.name else known_policies().get(choice.name)
    read = policy.attributes_read(choice.preset, settings) if policy else None
    return [] if read is None else [name for name in given if name not in read]


def first_that_shares_by(catalogue: Catalogue, attribute: str) -> PolicyChoice:
    """Returns the first policy that shares the CPU by "tickets" or "weight"."""
    return next(
        PolicyChoice(policy.name) for policy in catalogue.values() if policy.shares_by == attribute
    )


def catalogue_of(listing: list[dict[str, Any]]) -> Catalogue:
    """Converts the output of build/policy_list to a catalogue."""
    catalogue: Catalogue = {}
    for policy in listing:
        tunables = _tunables(policy["tunables"])
        presets = {
            entry["name"]: Preset(**{**entry, "tunables": _tunables(entry.get("tunables", []))})
            for entry in policy["presets"]
        }
        catalogue[policy["name"]] = Policy(**{**policy, "tunables": tunables, "presets": presets})
    return catalogue


def _tunables(entries: list[dict[str, Any]]) -> dict[str, Tunable]:
    return {entry["name"]: Tunable(**entry) for entry in entries}


def those_named(catalogue: Catalogue, names: Iterable[str]) -> list[Policy]:
    """Returns the policies of these names in their order. Raises WrongUsage for unknown names."""
    names = dict.fromkeys(names)
    for name in names:
        if name not in catalogue:
            raise WrongUsage(unknown("policy", name, catalogue))
    return [catalogue[name] for name in names]


def check_choices(
    catalogue: Catalogue, choices: Iterable[PolicyChoice], settings: dict[str, int]
) -> None:
    """Raises WrongUsage for an unknown policy, preset or tunable."""
    for choice in choices:
        policy = catalogue.get(choice.name)
        if policy is None:
            raise WrongUsage(
                unknown("policy", choice.name, catalogue), what=parameter("policy", choice)
            )
        if choice.preset and choice.preset not in policy.presets:
            what = f"preset of {policy.name}"
            raise WrongUsage(
                unknown(what, choice.preset, policy.presets), what=parameter("policy", choice)
            )
        for name, value in settings.items():
            check_setting(policy, choice, name, value)


def check_setting(policy: Policy, choice: PolicyChoice, name: str, value: int) -> None:
    """Raises WrongUsage for an unknown tunable or a value out of range."""
    tunable = policy.tunables_of(choice.preset).get(name)
    if tunable is None:
        raise WrongUsage(
            unknown_tunable(policy, choice, name), what=parameter("settings", {name: value})
        )
    if not tunable.minimum <= value <= tunable.maximum:
        raise WrongUsage(
            f"out of range: {choice} allows {tunable.minimum} to {tunable.maximum} "
            f"({tunable.meaning})",
            what=parameter("settings", {name: value}),
        )


def unknown_tunable(policy: Policy, choice: PolicyChoice, name: str) -> str:
    """Returns the message about an unknown tunable, with the presets that define it."""
    choices = (PolicyChoice(policy.name), *(PolicyChoice(policy.name, p) for p in policy.presets))
    have = [str(choice) for choice in choices if name in policy.tunables_of(choice.preset)]
    if have:
        return f"{choice} has no tunable '{name}'; {' and '.join(have)} {_has(have)}"
    return unknown(f"tunable of {choice}", name, policy.tunables_of(choice.preset))


def _has(those: list[str]) -> str:
    return "has" if len(those) == 1 else "have"


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Returns the message about an unknown name, with a suggestion or the known names."""
    names = list(known)
    close = get_close_matches(name, names, 1)
    if close:
        return f"unknown {what} '{name}'; did you mean '{close[0]}'?"
    return f"unknown {what} '{name}'; " + (
        f"choose from {', '.join(names)}" if names else "there is none"
    )

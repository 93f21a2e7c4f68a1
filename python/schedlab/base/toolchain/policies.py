# SPDX-License-Identifier: MIT
"""Policies as the command line names them, checked against what the C sources define."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeVar

from schedlab.base.toolchain.kept import kept_listing
from schedlab.errors import BuildFailed, RuleBroken, WrongUsage, parameter
from schedlab.paths import ROOT

_NAME = r"[a-z][a-z0-9_-]*"
Given = TypeVar("Given")
"""What a setting gives a tunable: a number, or the text of several."""
_CHOICE = re.compile(rf"({_NAME})(?::({_NAME}))?")
STANDARD = "rr"
"""The policy that is meant where no other is named: number 0, with which a machine starts."""

_SETTING = re.compile(rf"({_NAME})=(-?\d{{1,18}})")
_OWN_SETTING = re.compile(rf"((?:{_NAME}(?::{_NAME})?\.)?{_NAME})=(-?\d{{1,18}})")


@dataclass(frozen=True)
class PolicyChoice:
    """A policy, and the preset that gives its tunables their values."""

    name: str
    preset: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.preset}" if self.preset else self.name


@dataclass(frozen=True)
class Tunable:
    """A named integer of a policy."""

    name: str
    meaning: str
    minimum: int
    default: int
    maximum: int


@dataclass(frozen=True)
class Preset:
    """A named set of values for the tunables of a source.

    tunables: those of its source, if that is not its policy's own.
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
    """What a policy's C source says of it.

    `shares_by` names the attribute that decides shares of the CPU: "tickets", "weight", "nice", "groups", or
    "equal" if none does. `order`, `levels` and `remark` are sentences for people: in which order the tasks
    of a queue are served, what the levels are, and why a task was picked, with {} where the remark
    of the decision goes. "": the policy has no levels; it says nothing.
    """

    name: str
    meaning: str
    source: str
    number: int | None = 0
    """None: it has none, and goes by its name."""
    shares_by: str = "equal"
    order: str = ""
    levels: str = ""
    remark: str = ""
    level_order: str = "none"
    """One of "none", "lowest first" and "highest first"."""
    remark_kind: str = "none"
    """One of "none", "level", "ticket" and "time" (nanoseconds)."""
    priorities: str = "none"
    """Is it a queue by the attribute `priority`? "preempt": the lowest number takes the CPU; "wait": it is
    next when the task that runs ends or blocks."""
    boost: str = ""
    """The tunable that says after how many ticks all are lifted to the top; "": they never are."""
    reads: str | None = None
    """The attributes that decide something (struct policy, `reads`); None: it does not say."""
    cost: str = "unsaid"
    """How it grows with the number of tasks: or "constant", "logarithmic"."""
    tunables: dict[str, Tunable] = field(default_factory=dict)
    presets: dict[str, Preset] = field(default_factory=dict)

    @property
    def draws(self) -> bool:
        """Does chance decide which task runs?"""
        return self.remark_kind == "ticket"

    def shares_under(self, preset: str) -> str:
        """The attribute by which the preset shares the CPU; without one, the policy's own."""
        return self.presets[preset].shares_by if preset else self.shares_by

    def priorities_under(self, preset: str) -> str:
        """What priorities decide under the preset; without one, under the policy itself."""
        return self.presets[preset].priorities if preset else self.priorities

    def value(self, preset: str, tunable: str) -> int:
        """The preset's value of a tunable; without a preset, or with an unknown one: the default."""
        known = self.presets.get(preset)
        return known.values[tunable] if known else self.tunables[tunable].default

    def attributes_read(
        self, preset: str, settings: Iterable[tuple[str, int]]
    ) -> frozenset[str] | None:
        """Returns the attributes that decide something under these values; None: the policy does not say."""
        reads = self.presets[preset].reads if preset else self.reads
        if reads is None:
            return None
        values = {name: self.value(preset, name) for name in self.tunables_of(preset)}
        now = {f"{name}={value}" for name, value in {**values, **dict(settings)}.items()}
        words = (word.partition(":") for word in reads.split())
        return frozenset(name for name, _, condition in words if not condition or condition in now)

    def tunables_of(self, preset: str) -> dict[str, Tunable]:
        """Returns those that a preset of it has; "" is none, and a preset must be there."""
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
"""No C file of ours: a machine that runs Linux has it beside the others."""


def parse_choices(text: str) -> tuple[PolicyChoice, ...]:
    """The choices in a text such as "rr,lottery:thesis", each once."""
    choices: dict[PolicyChoice, None] = {}
    for part in text.split(","):
        match = _CHOICE.fullmatch(part.strip())
        if not match:
            raise ValueError(
                f"'{part.strip()}' is not of the form POLICY or POLICY:PRESET; a name is of a-z, 0-9,"
                " - and _, a letter first"
            )
        choices[PolicyChoice(match[1], match[2] or "")] = None
    return tuple(choices)


def is_choice(text: str) -> bool:
    """True for a text of the form POLICY or POLICY:PRESET."""
    return _CHOICE.fullmatch(text) is not None


def parse_setting(text: str) -> tuple[str, int]:
    """The name and value in a text such as "slice=5"."""
    match = _SETTING.fullmatch(text.strip())
    if not match:
        raise ValueError(f"'{text}' is not of the form NAME=VALUE with a whole number")
    return match[1], int(match[2])


def parse_own_setting(text: str) -> tuple[str, int]:
    """The same of a text such as "slice=5", or "rr.slice=5", which only that policy is given."""
    match = _OWN_SETTING.fullmatch(text.strip())
    if not match:
        raise ValueError(
            f"'{text}' is not of the form NAME=VALUE or POLICY.NAME=VALUE with a whole number"
        )
    return match[1], int(match[2])


def settings_for(
    choice: PolicyChoice, settings: Iterable[tuple[str, Given]]
) -> tuple[tuple[str, Given], ...]:
    """Returns what a policy is given of such settings: those of its own go before those of all."""
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
    """Raises WrongUsage if a setting is of a policy that is not among these."""
    known = {name for choice in choices for name in (choice.name, str(choice))}
    for name, value in settings:
        whose = name.rpartition(".")[0]
        if whose and whose not in known:
            raise WrongUsage(
                f"{whose} is none of the policies that are run",
                what=parameter("settings", {name: value}),
                fix="name it in `policy=`, too",
            )


def read_catalogue() -> Catalogue:
    """All policies that are built in: as the repository keeps them, if no source has changed since."""
    return catalogue_of(kept_listing() or built_listing())


def built_listing() -> list[dict[str, Any]]:
    """Returns what policies say of themselves, asked of a program that contains them. Raises BuildFailed."""
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
    """Returns all policies, and the presets of the standard one, which look for processes in other
    ways. Other presets take what their policies do."""
    known = read_catalogue()
    presets = (PolicyChoice(STANDARD, preset) for preset in known[STANDARD].presets)
    return (*map(PolicyChoice, known), *presets)


@cache
def known_policies() -> Catalogue:
    """The same, asked once: for what is told of policies that have run."""
    return read_catalogue()


def in_policy_order(names: Iterable[str]) -> list[str]:
    """Policies as all tables and charts have them: by policy, its presets after it."""
    numbers = {name: number for number, name in enumerate(known_policies())}

    def place(name: str) -> tuple[int, str]:
        policy = name.partition(" ")[0].partition(":")[0]
        return (numbers.get(policy, len(numbers)), name)

    return sorted(dict.fromkeys(names), key=place)


def attributes_ignored(
    choice: PolicyChoice, settings: Iterable[tuple[str, int]], given: Iterable[str]
) -> list[str]:
    """Returns those of the attributes that a policy does not read; none of a policy that does not say it."""
    policy = FAIR if choice.name == FAIR.name else known_policies().get(choice.name)
    read = policy.attributes_read(choice.preset, settings) if policy else None
    return [] if read is None else [name for name in given if name not in read]


def first_that_shares_by(catalogue: Catalogue, attribute: str) -> PolicyChoice:
    """The policy of the lowest number that shares the CPU by "tickets", or by "weight"."""
    return next(
        PolicyChoice(policy.name) for policy in catalogue.values() if policy.shares_by == attribute
    )


def catalogue_of(listing: list[dict[str, Any]]) -> Catalogue:
    """The catalogue in what build/policy_list prints."""
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
    """The policies of these names, in the order of the names, each once."""
    names = dict.fromkeys(names)
    for name in names:
        if name not in catalogue:
            raise WrongUsage(unknown("policy", name, catalogue))
    return [catalogue[name] for name in names]


def check_choices(
    catalogue: Catalogue, choices: Iterable[PolicyChoice], settings: dict[str, int]
) -> None:
    """Raises WrongUsage if a policy is not there, or does not know a tunable that is set."""
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
    """Raises WrongUsage if there is no such tunable, or it does not allow the value."""
    tunable = policy.tunables_of(choice.preset).get(name)
    if tunable is None:
        raise WrongUsage(
            unknown_tunable(policy, choice, name), what=parameter("settings", {name: value})
        )
    if not tunable.minimum <= value <= tunable.maximum:
        raise WrongUsage(
            f"{choice} allows {tunable.minimum} to {tunable.maximum} ({tunable.meaning})",
            what=parameter("settings", {name: value}),
        )


def unknown_tunable(policy: Policy, choice: PolicyChoice, name: str) -> str:
    """Says that there is none of that name, and what has one: a preset may, or the policy."""
    choices = (PolicyChoice(policy.name), *(PolicyChoice(policy.name, p) for p in policy.presets))
    have = [str(choice) for choice in choices if name in policy.tunables_of(choice.preset)]
    if have:
        return f"{choice} has no tunable '{name}'; {' and '.join(have)} {_has(have)}"
    return unknown(f"tunable of {choice}", name, policy.tunables_of(choice.preset))


def _has(those: list[str]) -> str:
    return "has" if len(those) == 1 else "have"


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Says that there is none of that name, and what there is."""
    names = list(known)
    close = get_close_matches(name, names, 1)
    if close:
        return f"no {what} is called '{name}'; did you mean '{close[0]}'?"
    return f"no {what} is called '{name}'; there {'is' if len(names) == 1 else 'are'}: " + (
        ", ".join(names) or "none"
    )

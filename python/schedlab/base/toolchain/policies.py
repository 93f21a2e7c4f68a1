# SPDX-License-Identifier: MIT
"""Parses names and settings of policies, and checks them against the policies in the C sources."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeVar

from schedlab.base.toolchain.committed import committed_policy_list
from schedlab.base.toolchain.tools import run_captured
from schedlab.errors import BuildFailed, RuleBroken, WrongUsage, format_parameter
from schedlab.paths import ROOT

_NAME = r"[a-z][a-z0-9_-]*"
SettingValue = TypeVar("SettingValue")
"""Type of a setting's value: a number, or a text that describes several numbers."""
_CHOICE = re.compile(rf"({_NAME})(?::({_NAME}))?")
_OBJECT_CHOICE = re.compile(r"(scx):([^\s,:]*(?:/[^\s,:]*|\.o))")
"""A sched_ext scheduler's BPF object, by its path."""
DEFAULT_POLICY = "rr"
"""The default policy, which is active when a machine starts."""

_SETTING = re.compile(rf"({_NAME})=(-?\d{{1,18}})")
_SETTING_PREFIX = r"(?:ops|map|section)\."
"""The beginning of the name of some settings of a sched_ext scheduler, such as `ops.timeout_ms`."""
_POLICY_SETTING = re.compile(
    rf"((?:(?!{_SETTING_PREFIX}){_NAME}(?::{_NAME})?\.)?(?:{_SETTING_PREFIX})?{_NAME})=(-?\d{{1,18}})"
)
_SETTING_PARTS = re.compile(rf"(?:((?!{_SETTING_PREFIX}).*?)\.)?((?:{_SETTING_PREFIX})?[^.]+)")


@dataclass(frozen=True)
class PolicyChoice:
    """A policy, with the preset that a user chose for its tunables; "" without a preset."""

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

    `tunables` is empty, unless the preset's own C source has different tunables than the policy.
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
    """A policy as its C source describes it.

    `shares_by`: the attribute that determines CPU shares: "tickets", "weight", "nice", "groups" or
    "equal". `order`, `levels` and `remark` are sentences for people: the order of a queue, the
    meaning of levels, and the reason for choosing a task (with {} for a number). They are empty if the policy
    has no levels or gives no reasons.
    """

    name: str
    meaning: str
    source: str
    number: int | None = 0
    """Number in the list of policies; None for policies without a C file."""
    shares_by: str = "equal"
    order: str = ""
    levels: str = ""
    remark: str = ""
    level_order: str = "none"
    """Which levels run first: "none", "lowest first" or "highest first"."""
    remark_kind: str = "none"
    """What the number in `remark` is: "none", "level", "ticket" or "time" (nanoseconds)."""
    priorities: str = "none"
    """What the attribute `priority` does.

    "preempt": a lower number preempts the running task. "wait": the lowest number runs when the
    running task blocks or ends.
    """
    boost: str = ""
    """Name of the tunable for the number of ticks between boosts of all tasks; "" without boosts."""
    reads: str | None = None
    """Names of the attributes that affect decisions (`reads` in struct policy); None if unknown."""
    cost: str = "unsaid"
    """How the time for a decision grows with the number of tasks: "unsaid", "constant" or "logarithmic"."""
    tunables: dict[str, Tunable] = field(default_factory=dict)
    presets: dict[str, Preset] = field(default_factory=dict)

    @property
    def draws(self) -> bool:
        """Returns whether the policy chooses tasks at random."""
        return self.remark_kind == "ticket"

    def shares_under(self, preset: str) -> str:
        """Returns the attribute that determines shares under a preset ("": without a preset)."""
        return self.presets[preset].shares_by if preset else self.shares_by

    def priorities_under(self, preset: str) -> str:
        """Returns what priorities do under a preset ("": without a preset); see `priorities`."""
        return self.presets[preset].priorities if preset else self.priorities

    def value(self, preset: str, tunable: str) -> int:
        """Returns the value of a tunable under a preset; its default if the preset is unknown or ""."""
        chosen_preset = self.presets.get(preset)
        return chosen_preset.values[tunable] if chosen_preset else self.tunables[tunable].default

    def attributes_read(
        self, preset: str, settings: Iterable[tuple[str, int]]
    ) -> frozenset[str] | None:
        """Returns the attributes that affect decisions with these settings; None if unknown."""
        reads = self.presets[preset].reads if preset else self.reads
        if reads is None:
            return None
        values = {name: self.value(preset, name) for name in self.tunables_of(preset)}
        active_settings = {
            f"{name}={value}" for name, value in {**values, **dict(settings)}.items()
        }
        conditions = (name_and_condition.partition(":") for name_and_condition in reads.split())
        return frozenset(
            name
            for name, _, condition in conditions
            if not condition or condition in active_settings
        )

    def tunables_of(self, preset: str) -> dict[str, Tunable]:
        """Returns the tunables under a preset ("": without a preset)."""
        return (self.presets[preset].tunables if preset else {}) or self.tunables


Catalogue = dict[str, Policy]

FAIR_POLICY = Policy(
    "fair",
    "the Linux kernel's own class, on Linux alone: what it does without a policy of ours",
    "Linux, kernel/sched/fair.c (EEVDF: Stoica and Abdel-Wahab 1995)",
    number=None,
    shares_by="nice",
    reads="nice slice",
    order="The task with the earliest virtual deadline is next, of those that are owed time.",
)
"""The scheduling class of Linux itself, which machines with Linux list among the policies."""


def parse_choices(text: str) -> tuple[PolicyChoice, ...]:
    """Parses choices such as "rr,lottery:thesis", without duplicates. Raises ValueError."""
    choices: dict[PolicyChoice, None] = {}
    for part in text.split(","):
        match = _CHOICE.fullmatch(part.strip()) or _OBJECT_CHOICE.fullmatch(part.strip())
        if not match:
            raise ValueError(
                f"'{part.strip()}' is not of the form POLICY or POLICY:PRESET; a name has "
                "a-z, 0-9, - and _, and begins with a letter"
            )
        choices[PolicyChoice(match[1], match[2] or "")] = None
    return tuple(choices)


def is_choice(text: str) -> bool:
    """Returns whether a text has the form POLICY or POLICY:PRESET."""
    return bool(_CHOICE.fullmatch(text) or _OBJECT_CHOICE.fullmatch(text))


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


def _split_owner(setting: str) -> tuple[str, str]:
    """Returns the policy that a setting names, or "", and the setting's name."""
    match = _SETTING_PARTS.fullmatch(setting)
    return (match[1] or "", match[2]) if match else ("", setting)


def settings_for(
    choice: PolicyChoice, settings: Iterable[tuple[str, SettingValue]]
) -> tuple[tuple[str, SettingValue], ...]:
    """Returns the settings that apply to one policy: its own ones override general ones."""
    policy_settings: dict[str, SettingValue] = {}
    ranks: dict[str, int] = {}
    for name, value in settings:
        owner, tunable = _split_owner(name)
        rank = (
            ("", choice.name, str(choice)).index(owner)
            if owner in ("", choice.name, str(choice))
            else -1
        )
        if rank >= ranks.get(tunable, 0):
            policy_settings[tunable], ranks[tunable] = value, rank
    return tuple(policy_settings.items())


def check_owners(
    choices: Iterable[PolicyChoice], settings: Iterable[tuple[str, SettingValue]]
) -> None:
    """Raises WrongUsage if a setting belongs to a policy that was not chosen."""
    chosen_names = {name for choice in choices for name in (choice.name, str(choice))}
    for name, value in settings:
        owner = _split_owner(name)[0]
        if owner and owner not in chosen_names:
            raise WrongUsage(
                f"{owner} is not among the policies of this command",
                what=format_parameter("settings", {name: value}),
                fix="name it in `policy=` too",
            )


def read_catalogue() -> Catalogue:
    """Returns all built-in policies.

    They come from the catalogue in the repository or, if sources have changed, from a build.
    """
    return parse_catalogue(committed_policy_list() or build_policy_list())


def build_policy_list() -> list[dict[str, Any]]:
    """Builds and runs a program that lists the policies. Raises BuildFailed or RuleBroken."""
    from schedlab.base.toolchain.build import POLICY_LIST, build
    from schedlab.base.toolchain.diagnosis import check_source

    build(str(POLICY_LIST.relative_to(POLICY_LIST.parents[1])))
    result = run_captured([str(POLICY_LIST)])
    if mistake := re.fullmatch(r"policy_list: (\S+)\.c: (.*)\n", result.stderr):
        check_source(ROOT / "policies" / f"{mistake[1]}.c")
        raise RuleBroken(f"policy {mistake[1]} broke a rule: {mistake[2]}")
    if result.returncode:
        raise BuildFailed(
            "the policies could not be listed; run `./schedlab check NAME` for each policy that"
            f" you changed:\n{result.stderr.strip()}"
        )
    listing: list[dict[str, Any]] = json.loads(result.stdout)
    return listing


def distinct_policies() -> tuple[PolicyChoice, ...]:
    """Returns all policies, and the default policy's presets, which choose tasks in different ways.

    (Presets of other policies behave like their policy.)
    """
    catalogue = read_catalogue()
    presets = (PolicyChoice(DEFAULT_POLICY, preset) for preset in catalogue[DEFAULT_POLICY].presets)
    return (*map(PolicyChoice, catalogue), *presets)


@cache
def known_policies() -> Catalogue:
    """Returns the catalogue, kept in memory, to describe policies that have run."""
    return read_catalogue()


def sort_policies(names: Iterable[str]) -> list[str]:
    """Sorts policies as all tables and charts do: by policy, and its presets after it."""
    numbers = {name: number for number, name in enumerate(known_policies())}

    def sort_key(name: str) -> tuple[int, str]:
        policy = name.partition(" ")[0].partition(":")[0]
        return (numbers.get(policy, len(numbers)), name)

    return sorted(dict.fromkeys(names), key=sort_key)


def attributes_ignored(
    choice: PolicyChoice, settings: Iterable[tuple[str, int]], given: Iterable[str]
) -> list[str]:
    """Returns which of the given attributes a policy ignores; none if that is unknown."""
    policy = FAIR_POLICY if choice.name == FAIR_POLICY.name else known_policies().get(choice.name)
    attributes_read = policy.attributes_read(choice.preset, settings) if policy else None
    return (
        [] if attributes_read is None else [name for name in given if name not in attributes_read]
    )


def find_policy_sharing_by(catalogue: Catalogue, attribute: str) -> PolicyChoice:
    """Returns the first policy that shares the CPU by this attribute ("tickets" or "weight")."""
    return next(
        PolicyChoice(policy.name) for policy in catalogue.values() if policy.shares_by == attribute
    )


def parse_catalogue(listing: list[dict[str, Any]]) -> Catalogue:
    """Converts what the program build/policy_list prints to a catalogue."""
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


def select_policies(catalogue: Catalogue, names: Iterable[str]) -> list[Policy]:
    """Returns the policies of these names in their order. Raises WrongUsage for unknown names."""
    names = dict.fromkeys(names)
    for name in names:
        if name not in catalogue:
            raise WrongUsage(describe_unknown_name("policy", name, catalogue))
    return [catalogue[name] for name in names]


def check_choices(
    catalogue: Catalogue, choices: Iterable[PolicyChoice], settings: dict[str, int]
) -> None:
    """Raises WrongUsage for an unknown policy, preset or tunable."""
    for choice in choices:
        policy = catalogue.get(choice.name)
        if policy is None:
            raise WrongUsage(
                describe_unknown_name("policy", choice.name, catalogue),
                what=format_parameter("policy", choice),
            )
        if choice.preset and choice.preset not in policy.presets:
            what = f"preset of {policy.name}"
            raise WrongUsage(
                describe_unknown_name(what, choice.preset, policy.presets),
                what=format_parameter("policy", choice),
            )
        for name, value in settings.items():
            check_setting(policy, choice, name, value)


def check_setting(policy: Policy, choice: PolicyChoice, name: str, value: int) -> None:
    """Raises WrongUsage for an unknown tunable or a value out of range."""
    tunable = policy.tunables_of(choice.preset).get(name)
    if tunable is None:
        raise WrongUsage(
            describe_unknown_tunable(policy, choice, name),
            what=format_parameter("settings", {name: value}),
        )
    if not tunable.minimum <= value <= tunable.maximum:
        raise WrongUsage(
            f"out of range: {choice} allows {tunable.minimum} to {tunable.maximum} "
            f"({tunable.meaning})",
            what=format_parameter("settings", {name: value}),
        )


def describe_unknown_tunable(policy: Policy, choice: PolicyChoice, name: str) -> str:
    """Returns the message about an unknown tunable, with the presets that define it."""
    choices = (PolicyChoice(policy.name), *(PolicyChoice(policy.name, p) for p in policy.presets))
    defining = [str(choice) for choice in choices if name in policy.tunables_of(choice.preset)]
    if defining:
        return (
            f"{choice} has no tunable '{name}'; {' and '.join(defining)} {_has_or_have(defining)}"
        )
    return describe_unknown_name(f"tunable of {choice}", name, policy.tunables_of(choice.preset))


def _has_or_have(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"


def describe_unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Returns a message about an unknown name, with a similar name or all known names."""
    names = list(known)
    similar = get_close_matches(name, names, 1)
    if similar:
        return f"unknown {kind} '{name}'; did you mean '{similar[0]}'?"
    return f"unknown {kind} '{name}'; " + (
        f"choose from {', '.join(names)}" if names else "there is none"
    )

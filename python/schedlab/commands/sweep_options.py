# SPDX-License-Identifier: MIT
"""Converts the sweep's options into the tree of values that a sweep file has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from schedlab.base.files.json_lines import Node, Object, Value
from schedlab.base.toolchain.policies import (
    PolicyChoice,
    check_owners,
    is_choice,
    parse_choices,
    settings_for,
)
from schedlab.errors import WrongUsage
from schedlab.sweep.yaml_lines import scalar_of

SIMPLE = {
    "machines": "--machine", "cpus": "--cpus", "seeds": "--seeds", "tick": "--tick",
    "costs": "--costs", "shapes": "--shape", "limit": "--limit", "memory": "--memory",
}  # fmt: skip
"""Option by key of a sweep file."""


def nodes(
    workloads: Sequence[str],
    changes: Sequence[str],
    policies: Sequence[str],
    settings: Sequence[str],
    conditions: Sequence[str],
    sample: str | None,
    simple: Mapping[str, str | None],
) -> dict[str, Node]:
    """Returns the given values by key of a sweep file. Raises WrongUsage."""
    nodes_by_name: dict[str, Node] = {}
    if workloads:
        nodes_by_name["workloads"] = _workloads(workloads, changes)
    elif changes:
        raise WrongUsage("--with: changes a workload file; name it with --workload FILE.json")
    if policies:
        nodes_by_name["policies"] = _policies(policies, settings, conditions, sample)
    elif settings or conditions or sample:
        given = "--set" if settings else "--where" if conditions else "--sample"
        raise WrongUsage(f"{given}: applies to a policy; name it with --policy NAME")
    for key, option in SIMPLE.items():
        text = simple.get(key)
        if text is not None:
            nodes_by_name[key] = (
                _list(option, text) if key in _LISTS else _node(option, scalar_of(text))
            )
    return nodes_by_name


_LISTS = ("machines", "tick", "shapes")
"""Options whose values are separated by commas. `--costs` is not one: costs contain commas."""


def _node(option: str, value: Value) -> Node:
    return Node(value, 0, option)


def _list(option: str, text: str) -> Node:
    return _node(option, tuple(_node(option, part.strip()) for part in text.split(",")))


def _workloads(workloads: Sequence[str], changes: Sequence[str]) -> Node:
    option = "--workload"
    if not changes:
        return _node(option, tuple(_node(option, text) for text in workloads))
    changed = _pairs("--with", changes)
    objects = [Object((("file", _node(option, text)), ("with", changed))) for text in workloads]
    return _node(option, tuple(_node(option, value) for value in objects))


def _policies(
    policies: Sequence[str], settings: Sequence[str], conditions: Sequence[str], sample: str | None
) -> Node:
    option = "--policy"
    names = [name.strip() for text in policies for name in text.split(",")]
    setting_choices = [_parse_setting("--set", text) for text in settings]
    twice = next(
        (name for name, count in Counter(name for name, _ in setting_choices).items() if count > 1),
        None,
    )
    if twice:
        raise WrongUsage(f"--set {twice}: given twice; give it once")
    check_owners((choice for name in names for choice in _choices(name)), setting_choices)
    more: list[tuple[str, Node]] = []
    if conditions:
        limits = tuple(_node("--where", text) for text in conditions)
        more.append(("where", _node("--where", limits)))
    if sample:
        more.append(("sample", _sample(sample)))
    entries = [
        Object((("policy", _node(option, name)), *_set(name, setting_choices), *more))
        for name in names
    ]
    return _node(option, tuple(_node(option, entry) for entry in entries))


def _set(name: str, settings: Sequence[tuple[str, str]]) -> tuple[tuple[str, Node], ...]:
    """Returns settings for all policies, or of one with `POLICY.NAME=VALUES`.

    Unknown policies are rejected later.
    """
    pairs = [pair for choice in _choices(name) for pair in settings_for(choice, settings)]
    return (("set", _values("--set", pairs)),) if pairs else ()


def _choices(name: str) -> tuple[PolicyChoice, ...]:
    return parse_choices(name) if is_choice(name) else ()


def _pairs(option: str, texts: Sequence[str]) -> Node:
    return _values(option, [_parse_setting(option, text) for text in texts])


def _parse_setting(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise WrongUsage(f"{option} {text}: expected NAME=VALUES, such as boost=0,480")
    return name.strip(), value.strip()


def _values(option: str, settings: Sequence[tuple[str, str]]) -> Node:
    members = ((name, Node(scalar_of(value), 0, f"{option} {name}")) for name, value in settings)
    return _node(option, Object(tuple(members)))


def _sample(text: str) -> Node:
    option = "--sample"
    parts = text.split(":")
    if not 2 <= len(parts) <= 3:
        raise WrongUsage(f"{option} {text}: expected METHOD:COUNT or METHOD:COUNT:SEED: sobol:64")
    values = zip(("method", "count", "seed"), parts, strict=False)
    members = tuple((key, _node(option, scalar_of(part.strip()))) for key, part in values)
    return _node(option, Object(members))

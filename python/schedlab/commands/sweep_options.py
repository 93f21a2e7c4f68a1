# SPDX-License-Identifier: MIT
"""Converts the sweep's options into the tree of values that a sweep file has."""

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

SIMPLE_OPTIONS = {
    "machines": "--machine", "cpus": "--cpus", "seeds": "--seeds", "tick": "--tick",
    "costs": "--costs", "shapes": "--shape", "limit": "--limit", "memory": "--memory",
}  # fmt: skip
"""Option by key of a sweep file."""


def nodes_of_options(
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
        nodes_by_name["workloads"] = _workloads_node(workloads, changes)
    elif changes:
        raise WrongUsage("--with: changes a workload file; name it with --workload FILE.json")
    if policies:
        nodes_by_name["policies"] = _policies_node(policies, settings, conditions, sample)
    elif settings or conditions or sample:
        given_option = "--set" if settings else "--where" if conditions else "--sample"
        raise WrongUsage(f"{given_option}: applies to a policy; name it with --policy NAME")
    for key, option in SIMPLE_OPTIONS.items():
        text = simple.get(key)
        if text is not None:
            nodes_by_name[key] = (
                _list_node(option, text)
                if key in _LIST_OPTIONS
                else _option_node(option, scalar_of(text))
            )
    return nodes_by_name


_LIST_OPTIONS = ("machines", "tick", "shapes")
"""Options whose values are separated by commas. `--costs` is not one: costs contain commas."""


def _option_node(option: str, value: Value) -> Node:
    """Returns a value as a node that errors attribute to the option."""
    return Node(value, 0, option)


def _list_node(option: str, text: str) -> Node:
    """Returns the values of an option, which commas separate, as a node."""
    return _option_node(
        option, tuple(_option_node(option, part.strip()) for part in text.split(","))
    )


def _workloads_node(workloads: Sequence[str], changes: Sequence[str]) -> Node:
    option = "--workload"
    if not changes:
        return _option_node(option, tuple(_option_node(option, text) for text in workloads))
    changed = _pairs_node("--with", changes)
    objects = [
        Object((("file", _option_node(option, text)), ("with", changed))) for text in workloads
    ]
    return _option_node(option, tuple(_option_node(option, value) for value in objects))


def _policies_node(
    policies: Sequence[str], settings: Sequence[str], conditions: Sequence[str], sample: str | None
) -> Node:
    option = "--policy"
    names = [name.strip() for text in policies for name in text.split(",")]
    setting_choices = [_parse_setting("--set", text) for text in settings]
    repeated = next(
        (name for name, count in Counter(name for name, _ in setting_choices).items() if count > 1),
        None,
    )
    if repeated:
        raise WrongUsage(f"--set {repeated}: given twice; give it once")
    check_owners((choice for name in names for choice in _parse_policies(name)), setting_choices)
    limit_members: list[tuple[str, Node]] = []
    if conditions:
        limits = tuple(_option_node("--where", text) for text in conditions)
        limit_members.append(("where", _option_node("--where", limits)))
    if sample:
        limit_members.append(("sample", _sample_node(sample)))
    entries = [
        Object(
            (
                ("policy", _option_node(option, name)),
                *_settings_member(name, setting_choices),
                *limit_members,
            )
        )
        for name in names
    ]
    return _option_node(option, tuple(_option_node(option, entry) for entry in entries))


def _settings_member(
    name: str, settings: Sequence[tuple[str, str]]
) -> tuple[tuple[str, Node], ...]:
    """Returns settings for all policies, or of one with `POLICY.NAME=VALUES`.

    Unknown policies are rejected later.
    """
    pairs = [pair for choice in _parse_policies(name) for pair in settings_for(choice, settings)]
    return (("set", _settings_node("--set", pairs)),) if pairs else ()


def _parse_policies(name: str) -> tuple[PolicyChoice, ...]:
    """Returns the policies of a name. Raises WrongUsage."""
    return parse_choices(name) if is_choice(name) else ()


def _pairs_node(option: str, texts: Sequence[str]) -> Node:
    """Returns the members `NAME=VALUE` of an option as a node."""
    return _settings_node(option, [_parse_setting(option, text) for text in texts])


def _parse_setting(option: str, text: str) -> tuple[str, str]:
    """Splits `NAME=VALUES`. Raises WrongUsage."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise WrongUsage(f"{option} {text}: expected NAME=VALUES, such as boost=0,480")
    return name.strip(), value.strip()


def _settings_node(option: str, settings: Sequence[tuple[str, str]]) -> Node:
    members = ((name, Node(scalar_of(value), 0, f"{option} {name}")) for name, value in settings)
    return _option_node(option, Object(tuple(members)))


def _sample_node(text: str) -> Node:
    """Returns the sample `METHOD:COUNT[:SEED]` as a node."""
    option = "--sample"
    words = text.split(":")
    if not 2 <= len(words) <= 3:
        raise WrongUsage(
            f"{option} {text}: expected METHOD:COUNT or METHOD:COUNT:SEED, such as sobol:64"
        )
    values = zip(("method", "count", "seed"), words, strict=False)
    members = tuple((key, _option_node(option, scalar_of(part.strip()))) for key, part in values)
    return _option_node(option, Object(members))

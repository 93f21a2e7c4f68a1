# SPDX-License-Identifier: MIT
"""`./schedlab policies`: lists policies, their presets and their tunables."""

import io
import shutil
from collections.abc import Iterable, Iterator

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from schedlab.base.toolchain.policies import (
    FAIR_POLICY,
    Policy,
    Preset,
    Tunable,
    read_catalogue,
    select_policies,
)
from schedlab.commands.options import echo_json, json_option

COLUMNS_MIN, DEFAULT_COLUMNS, COLUMNS_MAX = 40, 80, 100
SHARE_TEXTS = {
    "equal": "equal",
    "tickets": "by tickets",
    "weight": "by weight",
    "nice": "by nice value",
    "groups": "by weights of groups, and by nice values within a group",
    "currencies": "by weights of groups, and by tickets within a group",
}


def format_policies(policies: Iterable[Policy], columns: int | None = None) -> str:
    """Returns one section per policy, `columns` characters wide.

    Default: the terminal's width, up to a maximum.
    """
    width = columns or shutil.get_terminal_size((DEFAULT_COLUMNS, 24)).columns
    width = min(max(width, COLUMNS_MIN), COLUMNS_MAX)
    text = io.StringIO()
    console = Console(file=text, width=width, color_system=None, highlight=False, markup=False)
    for number, policy in enumerate(policies):
        if number:
            console.print()
        print_policy(console, policy)
    return "".join(line.rstrip() + "\n" for line in text.getvalue().splitlines())


def print_policy(console: Console, policy: Policy) -> None:
    """Prints a policy's section: description, presets and tunables."""
    facts = plain_table()
    facts.add_row(
        "" if policy.number is None else f"{policy.number}", f"{policy.name}: {policy.meaning}"
    )
    facts.add_row("", f"source: {policy.source}")
    facts.add_row("", f"shares of the CPU: {SHARE_TEXTS.get(policy.shares_by, policy.shares_by)}")
    for name, sentence in (
        ("queue", policy.order), ("levels", policy.levels), ("annotation", policy.remark)
    ):  # fmt: skip
        if sentence:
            facts.add_row("", f"{name}: {sentence}")
    console.print(facts)
    if policy.presets:
        console.print(Padding(presets_table(policy), (1, 0, 0, 3)))
    for names, tunables in tunables_by_source(policy):
        console.print(Padding(tunables_table(names, tunables), (1, 0, 0, 3)))


def plain_table(*headings: str) -> Table:
    """Returns a table without lines. Long cells are wrapped within their column."""
    table = Table(box=None, show_header=bool(headings), pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def presets_table(policy: Policy) -> Table:
    """Returns a table with a row for each preset of a policy: its name, its meaning and the tunables it changes."""
    table = plain_table("preset", "meaning; changed tunables")
    for preset in policy.presets.values():
        meaning = Text(preset.meaning)
        differences = preset_changes(policy, preset)
        if differences:
            meaning.append(f"\n{', '.join(differences)}")
        table.add_row(f"{policy.name}:{preset.name}", meaning)
    return table


def preset_changes(policy: Policy, preset: Preset) -> list[str]:
    """Returns the tunables that a preset changes, such as "slice=5", and its share attribute."""
    changed = [
        f"{name}={value}"
        for name, value in preset.values.items()
        if value != policy.tunables_of(preset.name)[name].default
    ]
    if preset.shares_by != policy.shares_by:
        changed.append(f"shares {SHARE_TEXTS.get(preset.shares_by, preset.shares_by)}")
    return changed


def tunables_by_source(policy: Policy) -> Iterator[tuple[list[str], dict[str, Tunable]]]:
    """Yields the policy's tunables, then those of presets with separate
    tunables, and the presets' names.
    """
    if policy.tunables:
        yield [], policy.tunables
    presets = [
        preset for preset in policy.presets.values() if preset.tunables not in ({}, policy.tunables)
    ]
    while presets:
        tunables = presets[0].tunables
        yield (
            [f"{policy.name}:{preset.name}" for preset in presets if preset.tunables == tunables],
            tunables,
        )
        presets = [preset for preset in presets if preset.tunables != tunables]


def tunables_table(names: list[str], tunables: dict[str, Tunable]) -> Table:
    """Returns the table of tunables: name, default, range and meaning."""
    heading = f"--set with {' or '.join(names)}" if names else "--set"
    table = plain_table(heading, "default", "range", "meaning")
    for tunable in tunables.values():
        bounds = f"{tunable.minimum} to {tunable.maximum}"
        table.add_row(f"{tunable.name}=…", str(tunable.default), bounds, Text(tunable.meaning))
    return table


@click.command()
@click.argument("names", nargs=-1, metavar="[POLICY]...")
@json_option
def policies(names: tuple[str, ...], as_json: bool) -> None:
    """List policies, with their presets and tunables."""
    from dataclasses import asdict

    from schedlab.machines.published import PUBLISHED_POLICY

    catalogue = {
        **read_catalogue(),
        FAIR_POLICY.name: FAIR_POLICY,
        PUBLISHED_POLICY.name: PUBLISHED_POLICY,
    }
    chosen = select_policies(catalogue, names) if names else list(catalogue.values())
    if as_json:
        echo_json({"policies": [asdict(policy) for policy in chosen]})
    else:
        click.echo(format_policies(chosen), nl=False)

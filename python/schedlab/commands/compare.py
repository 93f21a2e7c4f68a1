# SPDX-License-Identifier: MIT
"""`./schedlab compare`: two folders of runs."""

from __future__ import annotations

import re
from pathlib import Path

import click

from schedlab.commands.options import Parsed, echo_json, json_option
from schedlab.display.terminal import results


def _part(text: str) -> float:
    """The part that "2%", "0.5 %" or "2" is: a hundredth of the number."""
    found = re.fullmatch(r"(\d{1,2}(?:\.\d{1,6})?) ?%?", text.strip())
    if not found:
        raise ValueError("expected a percentage below 100, such as 2%")
    return float(found[1]) / 100


@click.command()
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--metric", "metrics", multiple=True, help="Only this, such as turnaround. May be repeated."
)
@click.option(
    "--matters",
    default="1%",
    show_default=True,
    type=Parsed("PERCENT", _part),
    help="The least change, of a mean, that matters: smaller ones are not called better or worse.",
)
@click.option("--all", "everything", is_flag=True, help="Show what did not change, too.")
@json_option
def compare(
    before: Path,
    after: Path,
    metrics: tuple[str, ...],
    matters: float,
    everything: bool,
    as_json: bool,
) -> None:
    """Say what changed between two folders of runs, and what is chance.

    Each folder holds one run, or many: several policies, CPUs, workloads and seeds. Setups are
    matched with what is like them on the other side; if the policy (or any other one thing) is
    another, across it. Runs with the same seed are compared pair by pair. docs/comparing.md says
    what may be concluded.
    """
    from schedlab.comparison import compare as comparison
    from schedlab.comparison.listing import listing
    from schedlab.runs.collection import read

    found = comparison.compare(read([before]), read([after]), metrics, matters)
    if as_json:
        echo_json(found.to_dict())
        return
    for part in listing(found, everything):
        results().print(part, soft_wrap=isinstance(part, str))

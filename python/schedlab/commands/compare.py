# SPDX-License-Identifier: MIT
"""`./schedlab compare`: two folders of runs."""

from __future__ import annotations

import re
from pathlib import Path

import click

from schedlab.base.display.terminal import results
from schedlab.commands.carrying_out import out_option
from schedlab.commands.gating import gated, keep_baseline, side
from schedlab.commands.options import Parsed, echo_json, json_option
from schedlab.commands.trust import Consent, trust_options
from schedlab.errors import WrongUsage


def _part(text: str) -> float:
    """The part that "2%", "0.5 %" or "2" is: a hundredth of the number."""
    found = re.fullmatch(r"(\d{1,2}(?:\.\d{1,6})?) ?%?", text.strip())
    if not found:
        raise ValueError("expected a percentage below 100, such as 2%")
    return float(found[1]) / 100


@click.command()
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", required=False, type=click.Path(exists=True, path_type=Path))
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
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="FILE.baseline",
    help="Keep what is compared of BEFORE in one small file, which can stand in its place.",
)
@click.option(
    "--instructions",
    is_flag=True,
    help="With --keep: also those of one pick and one enqueue under its policies.",
)
@click.option(
    "--gate",
    is_flag=True,
    help="Exit status 1 if anything is worse, or cannot be compared any more. Without AFTER, the runs of a"
    " baseline are carried out again, as policies and kernel are now.",
)
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --gate: a file to add the verdict to, as a comment with a picture.",
)
@out_option
@trust_options
@json_option
def compare(
    before: Path,
    after: Path | None,
    metrics: tuple[str, ...],
    matters: float,
    everything: bool,
    keep: Path | None,
    instructions: bool,
    gate: bool,
    markdown: Path | None,
    out: Path | None,
    trust: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Say what changed between two folders of runs, and what is chance.

    Each folder holds one run, or many: several policies, CPUs, workloads and seeds; or a sweep. Setups are
    matched with what is like them on the other side; if the policy (or any other one thing) is
    another, across it. Runs with the same seed are compared pair by pair. docs/comparing.md says
    what may be concluded.
    """
    consent = Consent(trust, yes)
    if instructions and not keep:
        raise WrongUsage("--instructions: they are kept in a baseline; add --keep FILE.baseline")
    if keep:
        if after or gate:
            raise WrongUsage("--keep: it keeps one side; leave out AFTER and --gate")
        keep_baseline(before, keep, instructions)
        return
    if gate:
        gated(before, after, metrics, matters, markdown, out, as_json, consent)
        return
    if markdown or out or consent.option:
        option = "--markdown" if markdown else "--out" if out else consent.option
        raise WrongUsage(f"{option}: it belongs to --gate")
    if after is None:
        raise WrongUsage("AFTER is missing: name a second folder of runs; or add --gate or --keep")
    from schedlab.analysis.comparison import compare as comparison
    from schedlab.analysis.comparison.listing import listing

    with side(before) as first, side(after) as second:
        found = comparison.compare(first.runs, second.runs, metrics, matters)
    if as_json:
        echo_json(found.to_dict())
        return
    for part in listing(found, everything):
        results().print(part, soft_wrap=isinstance(part, str))

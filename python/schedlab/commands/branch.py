# SPDX-License-Identifier: MIT
"""`./schedlab branch`: continues a saved run in several ways."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schedlab import __version__
from schedlab.base.display.terminal import print_result, result_console, say
from schedlab.commands.execution import print_planned, report_if_ended_by_signal
from schedlab.commands.options import (
    EXISTING_PATH,
    SETTING,
    Parsed,
    echo_json,
    execution_options,
    policy_option,
)
from schedlab.commands.request_options import out_option
from schedlab.errors import WrongUsage
from schedlab.paths import new_runs_folder
from schedlab.runs.branches import (
    UNCHANGED,
    AttributeChange,
    BranchChanges,
    BranchSource,
    open_branch_source,
    parse_attribute,
    parse_branch_point,
)
from schedlab.units import format_time, parse_counts

if TYPE_CHECKING:
    from schedlab.base.toolchain.policies import PolicyChoice
    from schedlab.runs.plan_execution import Finished

SEEDS = Parsed("SEEDS", lambda text: parse_counts(text, 0, 999_999))
ATTRIBUTE = Parsed("WHO:ATTRIBUTE=VALUE", parse_attribute)


@click.command()
@click.argument("run", type=EXISTING_PATH)
@click.option(
    "--at",
    required=True,
    metavar="TIME|EVENT",
    help="Branch at this time, such as 1.2s, or at this record of the trace, such "
    "as switch:100, the 100th SWITCH.",
)
@policy_option(
    "A branch for each POLICY or POLICY:PRESET, with commas. Without it the policy stays.",
    default=(),
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    type=SETTING,
    help="Set a tunable after the branch. May be repeated.",
)
@click.option(
    "--attribute",
    "attributes",
    multiple=True,
    type=ATTRIBUTE,
    help="Set an attribute of processes: 7:tickets=100 by PID, cpu:priority=0 by "
    "name of a program or group. May be repeated.",
)
@click.option(
    "--seeds",
    default=(),
    type=SEEDS,
    help="Make one branch for each of these seeds of the policy's random numbers: "
    "7, 7,8, 1-5 or 1-3,7.",
)
@out_option
@execution_options
def branch(
    run: Path,
    at: str,
    policies: tuple[PolicyChoice, ...],
    settings: tuple[tuple[str, int], ...],
    attributes: tuple[AttributeChange, ...],
    seeds: tuple[int, ...],
    out: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Continue a finished RUN in several ways from one moment, and compare them.

    RUN is a run's folder, made on --machine spike. The run is repeated up to the moment, where the machine forks.
    One branch continues unchanged: it is the run itself, byte for byte. The others continue with another policy,
    other tunables, attributes or seeds: one branch for each policy and seed, each with all of --set and
    --attribute. Every difference is therefore caused by these changes.

    Each branch is a run's folder, for `compare`, `report`, `trace` and `monitor`.
    """
    from schedlab.commands.workload_run import print_failures
    from schedlab.runs import branch_runs
    from schedlab.runs.request import check_given_once

    if not (policies or settings or attributes or seeds):
        raise WrongUsage("nothing to change; add --policy, --set, --attribute or --seeds")
    source = open_branch_source(run)
    at_ns, note = parse_branch_point(at, source.events)
    check_given_once("settings", settings)
    branches = [BranchChanges()]
    for policy, seed in product(policies or (None,), seeds or (None,)):
        branches.append(BranchChanges(policy, settings, attributes, seed))
    if note:
        say(f"schedlab: {note}")
    if dry_run:
        branch_runs.check_branches(source, at_ns, branches)
        print_planned(
            len(branches), [branch_heading(source, at_ns, branch) for branch in branches], as_json
        )
        return
    path = (out or new_runs_folder(f"branch-{source.folder.name}")).absolute()
    with report_if_ended_by_signal(lambda _: "; no results are kept"):
        finished = branch_runs.perform_branches(source, at_ns, branches, path)
    print_branches(source, at_ns, branches, finished, as_json)
    if not print_failures(finished):
        raise SystemExit(1)


def print_branches(
    source: BranchSource,
    at_ns: int,
    branches: list[BranchChanges],
    finished: list[Finished],
    as_json: bool,
) -> None:
    """Prints the tables of the branches, or JSON."""
    from schedlab.runs import branch_runs

    is_unchanged = branch_runs.equals_stored_run(source, finished[0])
    metrics_after = [branch_runs.metrics_since(run, at_ns) for run in finished]
    if as_json:
        runs = [
            {
                "folder": str(run.folder),
                "manifest": run.manifest,
                "metrics": run.metrics.to_dict() if run.metrics else None,
                "metrics_since": after.to_dict() if after else None,
            }
            for run, after in zip(finished, metrics_after, strict=True)
        ]
        result = {"at_ns": at_ns, "unchanged_is_the_run": is_unchanged}
        echo_json({"schedlab": __version__, **result, "runs": runs})
        return
    time = format_time(at_ns)
    headings = [branch_heading(source, at_ns, branch) for branch in branches]
    print_tables("The whole run", headings, [run.metrics for run in finished])
    print_tables(f"From {time} on", headings, metrics_after)
    if not any(metrics_after):
        say(f"schedlab: the measured window ended before {time}")
    if is_unchanged:
        print_result(f"{UNCHANGED} is {source.folder}, byte for byte")
    else:
        say(
            f"schedlab: {UNCHANGED} differs from {source.folder}: the rerun diverged "
            "before the branch point, because the kernel or the machine changed"
        )
    print_result(f"Kept in {finished[0].folder.parent}")


def branch_heading(source: BranchSource, at_ns: int, branch: BranchChanges) -> str:
    """Returns a branch's column heading. The unchanged branch shows its policy, too."""
    return (
        branch.title
        if branch.changes or branch.seed
        else f"{UNCHANGED} ({source.policy_at(at_ns)[0]})"
    )


def print_tables(title: str, headings: list[str], measured: list[Any]) -> None:
    """Prints the branches that have metrics, side by side."""
    from schedlab.commands.metric_tables import print_metrics

    columns = [(head, metrics) for head, metrics in zip(headings, measured, strict=True) if metrics]
    if columns:
        result_console().print(title)
    print_metrics(columns)

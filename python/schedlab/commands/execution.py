# SPDX-License-Identifier: MIT
"""Executes a plan of runs for several commands, and reports what is
finished if a signal interrupts it.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.base.display.numbers import format_count
from schedlab.base.display.terminal import print_result, say, say_progress
from schedlab.commands.options import FOLDER, echo_json
from schedlab.paths import COMMAND_NAME

if TYPE_CHECKING:
    from schedlab.machines.spec import RunSpec
    from schedlab.runs.parts import PartReplacements
    from schedlab.runs.plan import Plan
    from schedlab.runs.plan_execution import Finished, Interrupted


PLANNED_RUNS_SHOWN = 10
"""Number of planned runs that `--dry-run` lists."""

out_option = click.option(
    "--out", type=FOLDER, help="Keep all runs in this folder. [default: do not keep them]"
)


def perform(
    plan: Plan,
    keep_runs: bool = True,
    replacements: PartReplacements | None = None,
    with_metrics: bool = True,
) -> list[Finished]:
    """Executes a plan. If it is interrupted, reports the finished runs.

    `keep_runs`: the folder remains afterwards.
    """
    from schedlab.runs import perform as performing

    def describe_finished(interruption: Interrupted) -> str:
        """Returns in words how many runs are finished."""
        count = len(interruption.finished)
        finished_text = f"; {count} of {len(plan.runs)} runs were finished"
        if not keep_runs:
            return finished_text
        return f"{finished_text} and are kept" + (f"\n  in {plan.folder}" if count else "")

    with report_if_ended_by_signal(describe_finished):
        return performing.perform(plan, with_metrics=with_metrics, replacements=replacements)


def print_planned(count: int, titles_shown: Sequence[str], as_json: bool, **extra: object) -> None:
    """Prints the number of planned runs and some of their titles."""
    if as_json:
        echo_json({"runs": count, **extra, "some": list(titles_shown)})
        return
    print_result(f"{format_count(count, 'run')}{', such as' if len(titles_shown) < count else ''}:")
    for title in titles_shown:
        print_result(f"  {title}")


def print_plan(runs: Sequence[RunSpec], as_json: bool) -> None:
    """Prints the number of runs of a plan and some of their titles."""
    titles = [
        f"{run.workload_title}: {run.title}, seed {run.seed}" for run in runs[:PLANNED_RUNS_SHOWN]
    ]
    print_planned(len(runs), titles, as_json)


@contextmanager
def report_if_ended_by_signal(describe_finished: Callable[[Interrupted], str]) -> Iterator[None]:
    """If a signal ends the block, reports the finished runs and exits with the signal's status."""
    from schedlab.runs.plan_execution import Interrupted

    try:
        yield
    except Interrupted as interruption:
        say(f"schedlab: interrupted{describe_finished(interruption)}")
        raise SystemExit(128 + interruption.number) from None


@contextmanager
def run_plan(make_plan: Callable[[Path], Plan], out: Path | None) -> Iterator[list[Finished]]:
    """Gives the finished runs of a plan, in `out`.

    Without `out`, a temporary folder is removed after the block.
    """
    if out:
        plan = make_plan(out.absolute())
        plan.check()
        plan.check_new()
        yield perform(plan)
        return
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        plan = make_plan(Path(folder))
        plan.check()
        yield perform(plan, keep_runs=False)


def check_finished(runs: list[Finished], measured: bool = False) -> None:
    """Exits with status 1 if a run failed or, with `measured`, has no metrics."""
    from schedlab.runs.plan_execution import describe_failures

    for message in describe_failures(runs):
        say(message)
    if not all(run.outcome.succeeded and (run.metrics or not measured) for run in runs):
        raise SystemExit(1)


_TEXT_WIDTH = 78
_COMPARED_POLICIES_MAX = 4
"""Number of policies that the proposed comparison command names."""


def print_findings(findings: Sequence[str]) -> None:
    """Prints the report's findings without Markdown's markup."""
    for finding in findings:
        plain = re.sub(r"\\(.)|[*`]", lambda mark: mark[1] or "", finding)
        print_result(textwrap.fill(plain, _TEXT_WIDTH, initial_indent="- ", subsequent_indent="  "))


def print_next_steps(runs: Sequence[Path]) -> None:
    """Prints commands that show one of these runs, change a parameter and write
    a policy; nothing without runs.

    Writes to the stream of messages, so programs that read the results do not see it.
    """
    if not runs:
        return
    from schedlab.base.toolchain.policies import known_policies

    policies_shown = ",".join(list(known_policies())[:_COMPARED_POLICIES_MAX])
    say_progress(f"See it:         {COMMAND_NAME} monitor {shlex.quote(os.path.relpath(runs[0]))}")
    say_progress(
        f"Change it:      {COMMAND_NAME} run --policy {policies_shown} --workload mixed --cpus 2 --runs 5"
    )
    say_progress(f"Write your own: {COMMAND_NAME} new-policy my-own")

# SPDX-License-Identifier: MIT
"""`./schedlab run --workload`: what is asked for is carried out, and what came of it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from schedlab.commands.carrying_out import perform
from schedlab.commands.what_next import tell_what_next
from schedlab.display.terminal import results, say, tell

if TYPE_CHECKING:
    from schedlab.runs.asked import Request
    from schedlab.runs.carrying_out import Finished


def run_workload(request: Request, as_json: bool) -> None:
    """Runs a workload under policies, on numbers of CPUs, with seeds; prints tables of what it did."""
    instead = request.kernel_instead()
    finished = perform(request.plan(), request.machine, instead=instead)
    show(finished, as_json)
    if not all(each.outcome.succeeded for each in finished):
        raise SystemExit(1)


def show(finished: list[Finished], as_json: bool) -> None:
    """Prints the tables, or JSON; what failed, on standard error."""
    from schedlab.runs import carrying_out as runs

    if as_json:
        click.echo(runs.as_json(finished))
    else:
        show_tables(finished)
    show_failures(finished)


def show_failures(finished: list[Finished]) -> bool:
    """Says what failed. True: nothing has."""
    from schedlab.runs import carrying_out as runs

    messages = list(runs.describe(finished))
    for message in messages:
        say(message)
    return not messages


def show_tables(finished: list[Finished]) -> None:
    from schedlab.runs import carrying_out as runs

    measured = [each for each in finished if each.metrics]
    if measured:
        from schedlab.commands.metric_tables import print_figures, print_metrics
        from schedlab.runs.printed import printed

        several = len({each.run.seed for each in measured}) > 1
        labelled = [
            (runs.label(each.run, several), each.metrics) for each in measured if each.metrics
        ]
        results().print(runs.summary(measured[0].run))
        print_metrics(labelled)
        told = [
            (runs.label(each.run, several), printed(each.folder, each.run.workload))
            for each in measured
        ]
        print_figures([(heading, own) for heading, own in told if own])
    tell(f"Kept in {finished[0].folder.parent}")
    tell_what_next([each.folder for each in measured])

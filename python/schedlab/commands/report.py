# SPDX-License-Identifier: MIT
"""`./schedlab report`: tables and charts of runs."""

from __future__ import annotations

from pathlib import Path

import click

from schedlab.commands.options import echo_json, json_option
from schedlab.display.terminal import tell


@click.command()
@click.argument(
    "places",
    nargs=-1,
    required=True,
    metavar="RUN...",
    type=click.Path(exists=True, path_type=Path),
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the report.  [default: report, beside the runs]",
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    default=("html",),
    show_default=True,
    type=click.Choice(("html", "markdown", "latex")),
    help="html is for a browser, markdown for a paper's appendix, latex for a paper: tables, and figures as"
    " PDF. May be repeated.",
)
@click.option(
    "--from-traces",
    is_flag=True,
    help="Compute all metrics anew from the traces, instead of reading what each run kept.",
)
@json_option
def report(
    places: tuple[Path, ...],
    out: Path | None,
    formats: tuple[str, ...],
    from_traces: bool,
    as_json: bool,
) -> None:
    """Make tables and charts of RUNs, as pages for a browser.

    They need no network. RUN is the folder of a run, or one that holds runs, at any depth. Runs that failed are in the
    report, with how they failed.
    """
    from schedlab.report.command import report as make

    made = make(places, out, formats, from_traces)
    if as_json:
        echo_json(made)
    else:
        tell(f"{made['report']}: {made['runs']} runs, {len(made['failed'])} failed")

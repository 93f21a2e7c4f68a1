# SPDX-License-Identifier: MIT
"""`./schedlab report`: tables and charts of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from schedlab.base.display.numbers import counted
from schedlab.base.display.terminal import tell
from schedlab.commands.options import PLACE, PLACE_THERE, echo_json, json_option
from schedlab.errors import WrongUsage


@click.command()
@click.argument("places", nargs=-1, required=True, metavar="RUN...", type=PLACE_THERE)
@click.option(
    "--out", type=PLACE, help="Folder for the report.  [default: report, beside the runs]"
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
    "--pictures",
    is_flag=True,
    help="Also draw each chart as SVG and PNG, for slides and for browsers without JavaScript. markdown and"
    " --artifact do so too; a page's own buttons save a chart as it is shown.",
)
@click.option(
    "--from-traces",
    is_flag=True,
    help="Compute all metrics anew from the traces, instead of reading what each run kept.",
)
@click.option(
    "--artifact",
    type=PLACE,
    help="Also write FILE.zip, with what is needed to make the figures again: `./schedlab verify FILE.zip`"
    " does it on another machine, and proves it byte for byte.",
)
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="N|NAME",
    help="Of --artifact: this one alone, with the runs that it needs. 4 is figure 4; 'table 12'; or a name. May"
    " be repeated.",
)
@json_option
def report(
    places: tuple[Path, ...],
    out: Path | None,
    formats: tuple[str, ...],
    pictures: bool,
    from_traces: bool,
    artifact: Path | None,
    figures: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make tables and charts of RUNs, as pages for a browser.

    They need no network. RUN is the folder of a run, or one that holds runs, at any depth; or a sweep. Runs that failed
    are in the report, with how they failed.
    """
    from schedlab.report.command import report as make

    if figures and not artifact:
        raise WrongUsage(f"--figure {figures[0]}: it says what --artifact is to hold; add that")
    made = _of_a_sweep(places, out, formats, pictures, from_traces or bool(artifact))
    made = made or make(places, out, formats, from_traces, artifact, figures, pictures=pictures)
    if as_json:
        echo_json(made)
    else:
        tell(f"{made['report']}: {counted(made['runs'], 'run')}, {len(made['failed'])} failed")
        if artifact:
            tell(f"{artifact}: prove it by ./schedlab verify {artifact}")


def _of_a_sweep(
    places: tuple[Path, ...],
    out: Path | None,
    formats: tuple[str, ...],
    pictures: bool,
    of_traces: bool,
) -> dict[str, Any] | None:
    """The report of a sweep, which keeps rows of tables and no runs; None: there are none among the places."""
    from schedlab.report.command import default_place
    from schedlab.sweep import as_runs

    sweeps = [place for place in places if as_runs.is_sweep(place)]
    if not sweeps:
        return None
    if len(places) > 1:
        raise WrongUsage(f"{sweeps[0]} holds a sweep, which has a report of its own: name it alone")
    if of_traces:
        raise WrongUsage(
            f"{sweeps[0]} holds a sweep without traces: sweep with --keep-traces for --from-traces and --artifact"
        )
    from schedlab.sweep import page

    return page.write(sweeps[0], (out or default_place(places)).absolute(), formats, pictures)

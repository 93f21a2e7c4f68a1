# SPDX-License-Identifier: MIT
"""`./schedlab report`: makes tables and charts of runs."""

from pathlib import Path
from typing import Any

import click

from schedlab.base.display.numbers import format_count
from schedlab.base.display.terminal import print_result
from schedlab.commands.options import EXISTING_PATH, PATH, echo_json, json_option
from schedlab.errors import WrongUsage


@click.command()
@click.argument("places", nargs=-1, required=True, metavar="RUN...", type=EXISTING_PATH)
@click.option(
    "--out", type=PATH, help="Write the report to this folder. [default: report, next to the runs]"
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    default=("html",),
    show_default=True,
    type=click.Choice(("html", "markdown", "latex")),
    help="Write html for a browser, markdown for a paper's appendix, or latex "
    "tables and PDF figures for a paper. May be repeated.",
)
@click.option(
    "--pictures",
    is_flag=True,
    help="Also draw each chart as SVG and PNG, for slides and for browsers without"
    " JavaScript. markdown and --artifact always do.",
)
@click.option(
    "--from-traces",
    is_flag=True,
    help="Measure all runs again from their traces, instead of reading stored metrics.",
)
@click.option(
    "--artifact",
    type=PATH,
    help="Also write FILE.zip with everything needed to make the figures again. "
    "`./schedlab verify FILE.zip` checks it on another machine, byte for "
    "byte.",
)
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="N|NAME",
    help="Put only this figure into --artifact: 4 is figure 4; 'table 12'; or a "
    "name. May be repeated.",
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
    """Make web pages with tables and charts of RUNs.

    The pages need no network. RUN is the folder of a run, a folder that contains runs at any depth, or a sweep.
    Failed runs are included, with their failures."""
    from schedlab.report.command import report_runs as make

    if figures and not artifact:
        raise WrongUsage(
            f"--figure {figures[0]}: selects what --artifact contains; add --artifact FILE.zip"
        )
    result = _report_sweep(places, out, formats, pictures, from_traces or bool(artifact))
    result = result or make(places, out, formats, from_traces, artifact, figures, pictures=pictures)
    if as_json:
        echo_json(result)
    else:
        print_result(
            f"{result['report']}: {format_count(result['runs'], 'run')}, {len(result['failed'])} failed"
        )
        if artifact:
            print_result(f"{artifact}: to check it, run ./schedlab verify {artifact}")


def _report_sweep(
    places: tuple[Path, ...],
    out: Path | None,
    formats: tuple[str, ...],
    pictures: bool,
    of_traces: bool,
) -> dict[str, Any] | None:
    """Makes the report of sweeps, which have rows but no runs.

    Returns None if no place is a sweep.
    """
    from schedlab.report.command import default_report_path
    from schedlab.sweep import as_runs

    sweeps = [place for place in places if as_runs.is_sweep(place)]
    if not sweeps:
        return None
    if len(places) > 1:
        raise WrongUsage(f"{sweeps[0]}: a sweep has a separate report; name only the sweep")
    if of_traces:
        raise WrongUsage(
            f"{sweeps[0]}: a sweep without traces; repeat it with --keep-traces for "
            "--from-traces and --artifact"
        )
    from schedlab.sweep import page

    return page.write_page(
        sweeps[0], (out or default_report_path(places)).absolute(), formats, pictures
    )

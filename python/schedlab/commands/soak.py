# SPDX-License-Identifier: MIT
"""`./schedlab dev soak`: uses schedlab for a long time and detects leaks."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.base.display.numbers import host_time
from schedlab.base.display.terminal import (
    message_console,
    new_table,
    print_result,
    result_console,
    say,
)
from schedlab.commands.options import FOLDER, duration_option, echo_json, json_option
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.paths import new_runs_folder

if TYPE_CHECKING:
    from rich.table import Table

    from schedlab_tools.soak.conduct import RunningPart
    from schedlab_tools.soak.findings import Row

_MIB_FIGURES, _MIB = ("memory_bytes", "js_heap_bytes"), 1 << 20


@click.command()
@click.argument("names", nargs=-1, metavar="[LOAD]...")
@duration_option("Duration.", "1000h", "1h")
@click.option(
    "--out",
    type=FOLDER,
    help="Write samples, findings and logs to this new or empty folder. [default: one in runs/]",
)
@json_option
def soak(names: tuple[str, ...], duration_ns: int, out: Path | None, as_json: bool) -> None:
    """Run schedlab for hours and measure what grows.

    LOADs run in parallel: page (the monitor's page with two systems), sweep, serve (`linux serve` in a guest),
    storm (the schedlab kernel under forks, kills, policy switches and full disks). Without a name, all of them.
    Memory, files and processes are sampled; at the end each has its slope per hour, with a 95 % interval. Ctrl-C
    or another signal ends it early with the results so far; a second one does not wait for loads to end in order.

    The exit status is 1 if a load failed. docs/soak.md has details.
    """
    from schedlab.base.toolchain.needs import EXTRAS, install_if_packaged, need_extra

    need_extra(*EXTRAS)
    install_if_packaged("browser")
    from schedlab_tools.soak import findings
    from schedlab_tools.soak.conduct import conduct
    from schedlab_tools.soak.loads import LOADS

    unknown = [name for name in names if name not in LOADS]
    if unknown:
        raise WrongUsage(f"soak {unknown[0]}: unknown load; choose from {', '.join(LOADS)}")
    loads = [load for load in LOADS.values() if not names or load.name in names]
    path = (out or new_runs_folder("soak")).absolute()
    if path.exists() and any(path.iterdir()):
        raise WrongUsage(f"--out {path}: not empty; name a new folder")
    for load in loads:
        say(f"schedlab: soak {load.name}: {load.summary}")
    seconds = duration_ns / 1e9
    observations = conduct(loads, seconds, path, _ProgressPrinter(seconds))
    rows = findings.rows(observations, loads)
    content = findings.findings(observations, rows)
    findings.write_results(path, observations, content)
    if as_json:
        echo_json(content)
    else:
        result_console().print(_slopes_table(rows, observations.seconds))
        print_result(f"Kept in {path}")
    problems = [
        f"{name}: {text}" for name, texts in observations.problems.items() for text in texts
    ]
    problems += [
        f"{name}: {len(leftovers)} temporary files remain: {', '.join(leftovers[:5])}"
        for name, leftovers in observations.leftover_files.items()
        if leftovers
    ]
    if problems:
        raise SchedlabError("\n".join(problems))
    if observations.signal and observations.signal != signal.SIGINT:
        raise SystemExit(128 + observations.signal)


class _ProgressPrinter:
    """Prints a line after every twentieth of the time, or every five minutes."""

    def __init__(self, seconds: float) -> None:
        """Begins a soak of this many seconds."""
        self.seconds = seconds
        self.step = min(seconds / 20, 300)
        self.next = 0.0

    def __call__(self, now: float, parts: Mapping[str, RunningPart]) -> None:
        """Prints a line if it is due. `now`: seconds since the beginning."""
        if now < self.next:
            return
        self.next += self.step
        living = ", ".join(name for name, part in parts.items() if part.status is None)
        time_left = host_time(self.seconds - now)
        with suppress(OSError):  # the terminal may be closed
            message_console().print(f"{time_left} remain; running: {living or 'nothing'}")


def _slopes_table(rows: Sequence[Row], seconds: float) -> Table:
    """Returns the table of slopes per hour."""
    title = f"After {host_time(seconds)}; slopes exclude the first quarter"
    headings = (">first", ">last", ">most", ">per hour", ">95 % interval")
    table = new_table(title, "load", "part", "figure", *headings)
    for row in rows:
        unit = _MIB if row.figure in _MIB_FIGURES else 1
        name = row.figure.replace("_bytes", "_mib") if unit > 1 else row.figure
        figures = [f"{value / unit:,.6g}" for value in (row.first, row.last, row.most)]
        if row.trend:
            slopes = [value / unit for value in (row.trend.low, row.trend.high)]
            figures.append(f"{row.trend.per_hour / unit:+,.3g}")
            figures.append(f"{slopes[0]:+,.3g} to {slopes[1]:+,.3g}")
        table.add_row(row.load, row.part, name, *figures)
    return table

# SPDX-License-Identifier: MIT
"""`./schedlab trace --from-perf`: a recording of any Linux machine becomes a run of ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schedlab.commands.options import TICK, Parsed, echo_json, given
from schedlab.display.terminal import results, say, tell
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.paths import new_runs_folder
from schedlab.toolchain.policies import parse_choices

if TYPE_CHECKING:
    from schedlab.perf_traces.convert import Imported

_OF_EXPORTS = {"file_format": "--format", "workload": "--as-workload"}
_OF_RECORDINGS = {"policy": "--policy", "tick": "--tick", "root": "--root"}


def _one_policy(text: str) -> str:
    if len(parse_choices(text)) > 1:
        raise ValueError("a recording is of one policy")
    return text.strip()


def from_perf_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `trace` that are for recordings."""
    for option in (
        click.option(
            "--tick",
            default="4ms",
            show_default=True,
            type=TICK,
            help="With --from-perf: the recorded machine's; 1 s ÷ its CONFIG_HZ.",
        ),
        click.option(
            "--policy",
            default="fair",
            show_default=True,
            type=Parsed("POLICY", _one_policy),
            help="With --from-perf: what scheduled there. The file does not tell.",
        ),
        click.option(
            "--root",
            metavar="NAME|PID",
            help="With --from-perf: measure the descendants of this process, while it lives.  [default:"
            " all processes]",
        ),
        click.option(
            "--from-perf",
            "from_perf",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Instead: make a run of a recording by perf (perf.data), trace-cmd (trace.dat) or Perfetto.",
        ),
    ):
        command = option(command)
    return command


def check_usage(context: click.Context, run: Path | None, from_perf: Path | None) -> None:
    """Raises WrongUsage for options that belong to the other way of the command."""
    if from_perf is None:
        if run is None:
            raise WrongUsage("name the folder of a RUN, or a recording with --from-perf FILE")
        for option in given(context, _OF_RECORDINGS).values():
            raise WrongUsage(f"{option} is for --from-perf; a run of ours says its own")
        return
    if run is not None:
        raise WrongUsage(f"--from-perf and {run}: one thing at a time; leave one of them out")
    for option in given(context, _OF_EXPORTS).values():
        raise WrongUsage(
            f"--from-perf and {option}: make the run first, then say `./schedlab trace RUN"
            f" {option} …`"
        )


def import_recording(
    file: Path, out: Path | None, policy: str, tick: int, root: str | None, as_json: bool
) -> None:
    """Makes the run, and prints what `run` prints of one."""
    from schedlab.perf_traces.convert import convert

    made = convert(file, (out or new_runs_folder("perf")).absolute(), policy, tick, root)
    if as_json:
        echo_json(
            {
                "folder": str(made.folder),
                "manifest": made.manifest,
                "metrics": made.metrics.to_dict() if made.metrics else None,
                "notes": made.notes,
            }
        )
    else:
        _show(made)
    if not made.outcome.succeeded:
        raise SchedlabError(f"{file}: {made.outcome.message}")


def _show(made: Imported) -> None:
    from schedlab import metrics

    manifest = made.manifest
    of = " ".join(filter(None, (manifest["host"], manifest["machine_version"]))) or "Linux"
    results().print(f"{manifest['workload']} on {of} (not repeatable)")
    if made.metrics:
        for table in metrics.tables([(manifest["policy"], made.metrics)]):
            results().print(table)
    for note in made.notes:
        say(f"schedlab: {note}")
    tell(f"Kept in {made.folder}")

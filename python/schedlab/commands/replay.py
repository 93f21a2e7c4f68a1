# SPDX-License-Identifier: MIT
"""`./schedlab run --replay`: what is not said on the command line is as in the recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from schedlab.commands.options import given
from schedlab.display.terminal import say
from schedlab.errors import WrongUsage
from schedlab.files.placing import check_file
from schedlab.machines import SIMULATOR
from schedlab.runs.recording import Recording, recording, recordings
from schedlab.toolchain.policies import FAIR, read_catalogue

INSTEAD = {"workload": "--workload", "changes": "--with"}
"""Options that say what runs in another way."""
_OF_SEEDS = {"seed": "--seed", "repeats": "--runs", "decide": "--decide"}

replay_option = click.option(
    "--replay",
    type=click.Path(exists=True, path_type=Path),
    help="On sim: what the processes of a recorded run wanted, instead of a workload. RUN's folder,"
    " a trace, or a folder of runs that differ in their seeds. Policy, CPUs, tick, seed, limit and costs are the"
    " recording's if not given.",
)


def recorded(context: click.Context, options: dict[str, Any]) -> Recording | None:
    """Returns what is to be replayed, or None if nothing is. Its settings fill the options that were not
    given."""
    place: Path | None = options.pop("replay")
    if place is None:
        return None
    for option in given(context, INSTEAD).values():
        raise WrongUsage(
            f"--replay and {option}: a recording says itself what runs; leave one of them out"
        )
    said = given(context, dict.fromkeys(options, ""))
    if "machine" in said and options["machine"] != SIMULATOR:
        raise WrongUsage(
            f"--replay: only --machine {SIMULATOR} replays a recording, not {options['machine']}"
        )
    found, *others = recordings(place)
    if others:
        _check_alone(context, place, 1 + len(others))
    if found.policy.name == FAIR.name and "policies" not in said:
        raise WrongUsage(
            f"--replay {place}: it was recorded under {FAIR.name}, which is Linux's own and which the"
            " simulator does not have: say by --policy under what it is to be replayed"
        )
    standard: dict[str, Any] = {
        "machine": SIMULATOR,
        "policies": (found.policy,),
        "settings": () if "policies" in said else found.settings,
        "cpus": (found.cpus,),
        "tick": found.tick_ns,
        "seed": found.seed,
        "limit": found.limit_ns,
    }
    if "policies" not in said:
        check_policy(place, found)
    options.update({name: value for name, value in standard.items() if name not in said})
    options["workload"] = found.title
    if "policies" not in said:
        found, *others = (each.with_switches() for each in (found, *others))
    _say_notes(place, (found, *others))
    options["beside"] = tuple(others)
    return found


def _check_alone(context: click.Context, place: Path, count: int) -> None:
    """Raises WrongUsage for options that say which seeds are run: several recordings have their own."""
    for option in given(context, _OF_SEEDS).values():
        raise WrongUsage(
            f"--replay {place}: it holds {count} recordings, each of which is replayed once, with its own seed; leave"
            f" out {option}, or name one of them"
        )


def _say_notes(place: Path, found: Sequence[Recording]) -> None:
    for each in found:
        for note in each.notes:
            say(f"schedlab: {each.path.parent if len(found) > 1 else place}: {note}")


def check_policy(place: Path, found: Recording) -> None:
    """Raises WrongUsage if the recording's policy is none of ours, as on Linux: one must be chosen."""
    ours = read_catalogue()
    if found.policy.name not in ours:
        raise WrongUsage(
            f"--replay {place}: it was recorded under '{found.policy}', which schedlab does not have:"
            f" say under what to replay it with --policy, of {', '.join(ours)}"
        )


def write_workload(place: Path, file: Path) -> Recording:
    """Puts a recording's workload into a file, to be read, changed and run by hand."""
    check_file("--as-workload", file)
    found = recording(place).with_switches()
    command = (
        f"schedlab-sim --policy {found.policy} --cpus {found.cpus} --processes {found.processes()}"
        f" --seed {found.seed} --tick {found.tick_ns} --costs {found.costs.text} --trace trace.bin"
    )
    settings = ",".join(f"{name}={value}" for name, value in found.settings)
    command += f" --set {settings}" if settings else ""
    head = f"# A {found.title}.\n# {command} {file.name}\n\n"
    file.write_text(head + found.text(found.seed, found.tick_ns))
    return found

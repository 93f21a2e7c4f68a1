# SPDX-License-Identifier: MIT
"""`./schedlab run --again`: kept runs, carried out once more from what they keep, and held against it."""

from __future__ import annotations

import filecmp
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.commands.carrying_out import perform
from schedlab.commands.options import echo_json
from schedlab.display.names import visible
from schedlab.display.terminal import say, tell
from schedlab.errors import WrongUsage
from schedlab.machines import machine_named
from schedlab.machines.folder import TRACE_FILE, WORKLOAD_FILE
from schedlab.paths import new_runs_folder
from schedlab.runs import results
from schedlab.runs.again import command_of
from schedlab.runs.asked import Request
from schedlab.runs.plan import Plan

if TYPE_CHECKING:
    from schedlab.machines.run import Run
    from schedlab.runs.carrying_out import Finished

Read = Callable[[list[str]], Request]
"""Reads the options of `./schedlab run`. Raises click's UsageError."""
_NO_COMMAND = "it is a branch, a replay, or had costs or a machine that no option names"


@dataclass(frozen=True)
class Held:
    """A kept run, and what came of it now."""

    kept: Path
    again: Path
    same: bool
    """Are the traces the same, byte for byte, and did both end alike?"""
    repeatable: bool
    differences: dict[str, str]
    """What the two were made of, where that differs: `kernel`, and both values."""

    def to_dict(self) -> dict[str, object]:
        """The same for programs."""
        return {
            "folder": str(self.kept),
            "again": str(self.again),
            "same": self.same,
            "repeatable": self.repeatable,
            "differences": self.differences,
        }

    @property
    def told(self) -> str:
        """A line on one that did not come out the same."""
        if not self.repeatable:
            reason = "its machine has the host's time, and is never the same twice"
        elif self.differences:
            made_of = "; ".join(f"{what} {values}" for what, values in self.differences.items())
            reason = f"it is made of other parts: {made_of}"
        else:
            reason = "although it is made of the same parts"
        return f"schedlab: {visible(self.kept.name)} came out otherwise: {reason}"


def run_again(read: Read, place: Path, out: Path | None, as_json: bool) -> None:
    """Carries out the runs of a folder again, and says which came out the same.

    Exits with status 1 if a run of a repeatable machine did not.
    """
    kept = _runs_in(place)
    planned = {folder: run for folder in kept if (run := _run_of(read, folder))}
    if not planned:
        raise WrongUsage(f"--again {place}: none of its runs can be carried out again")
    folder = (out or new_runs_folder(f"again-{place.resolve().name[:40]}")).absolute()
    plan = Plan(folder, tuple(dict.fromkeys(planned.values())))
    plan.check()
    plan.check_new()
    finished = _perform(plan)
    held = [_hold(folder, finished[run]) for folder, run in planned.items()]
    if as_json:
        echo_json({"folder": str(plan.folder), "runs": [each.to_dict() for each in held]})
    else:
        _tell(held)
        tell(f"Kept in {plan.folder}")
    if not all(each.same for each in held if each.repeatable):
        raise SystemExit(1)


def _runs_in(place: Path) -> list[Path]:
    """Returns the folder itself if it is a run's, else the runs in it."""
    if results.is_whole(place):
        return [place]
    found = sorted(entry for entry in place.iterdir() if results.is_whole(entry))
    if not found:
        raise WrongUsage(f"--again {place}: it holds no run")
    return found


def _run_of(read: Read, folder: Path) -> Run | None:
    """Returns the run that a folder keeps, or None, and says why, if no options name it.

    It is read from the command that a report shows for it, by the command line's own rules; a workload
    file is the folder's own copy.
    """
    manifest = results.read_manifest(folder)
    file = folder / WORKLOAD_FILE
    told = {**manifest, "workload": str(file)} if file.is_file() else manifest
    words = command_of(told)
    if words is None:
        say(f"schedlab: {visible(folder.name)} is left out: {_NO_COMMAND}")
        return None
    try:
        run = read(shlex.split(words)[2:]).base()
    except click.UsageError as error:
        raise WrongUsage(f"--again {folder}: {error.format_message()}") from None
    return replace(run, workload=manifest["workload"], label=manifest.get("label", ""))


def _perform(plan: Plan) -> dict[Run, Finished]:
    """One machine after the other."""
    machines = dict.fromkeys(run.machine for run in plan.runs)
    parts = (
        replace(plan, runs=tuple(run for run in plan.runs if run.machine == machine))
        for machine in machines
    )
    return {
        each.run: each
        for part in parts
        for each in perform(part, part.runs[0].machine, with_metrics=False)
    }


def _hold(kept: Path, finished: Finished) -> Held:
    before, now = results.read_manifest(kept), finished.manifest
    alike = before["status"] == now["status"] and before.get("message") == now.get("message")
    return Held(
        kept,
        finished.folder,
        alike and _same_file(kept / TRACE_FILE, finished.folder / TRACE_FILE),
        machine_named(finished.run.machine).repeatable,
        {
            what: f"{results.shown(key, before)}, now {results.shown(key, now)}"
            for key, what in results.DECISIVE.items()
            if before.get(key) != now.get(key)
        },
    )


def _same_file(one: Path, other: Path) -> bool:
    """True if both have the same bytes, or neither is there."""
    if one.is_file() != other.is_file():
        return False
    return not one.is_file() or filecmp.cmp(one, other, shallow=False)


def _tell(held: Sequence[Held]) -> None:
    for each in held:
        if not each.same:
            say(each.told)
    count = sum(each.same for each in held)
    click.echo(f"{count} of {len(held)} runs came out the same, byte for byte.")

# SPDX-License-Identifier: MIT
"""`./schedlab runs`: lists, shows and removes kept runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from schedlab.base.display.names import visible, visible_line
from schedlab.base.display.numbers import counted
from schedlab.base.display.terminal import new_table, print_whole, say, tell
from schedlab.base.files import placing
from schedlab.commands.options import FOLDER_THERE, echo_json, json_option
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.paths import RUNS
from schedlab.runs import results


@click.group()
def runs() -> None:
    """List, show and remove kept runs."""


@runs.command("ls")
@click.argument("place", required=False, type=FOLDER_THERE)
@json_option
def list_(place: Path | None, as_json: bool) -> None:
    """List the runs in the folders of PLACE.

    PLACE is a folder of runs, or one that holds such folders.  [default: runs/]
    """
    place = place or RUNS
    entries = [place] if is_run(place) else sorted(place.iterdir()) if place.is_dir() else []
    rows: list[dict[str, Any]] = [
        {"folder": str(entry), **facts}
        for entry in entries
        if not entry.is_symlink() and (facts := facts_of(entry))["runs"]
    ]
    if as_json:
        echo_json(rows)
        return
    table = new_table("", "folder", ">runs", ">failed", ">MB")
    for row in rows:
        size = f"{row['bytes'] / 1e6:,.1f}"
        table.add_row(os.path.relpath(row["folder"]), *map(str, (row["runs"], row["failed"])), size)
    if rows:
        print_whole(table)
    else:
        tell(f"{place} holds no run")


@runs.command()
@click.argument("places", nargs=-1, required=True, metavar="PLACE...", type=FOLDER_THERE)
@json_option
def show(places: tuple[Path, ...], as_json: bool) -> None:
    """Show the metrics of kept runs side by side.

    PLACE is the folder of a run, or one that holds runs.
    """
    from schedlab.commands.metric_tables import print_metrics
    from schedlab.runs import collection

    found = collection.read(places)
    measured = [(run, run.metrics()) for run in found if run.measured.is_dir()]
    if as_json:
        metrics = {run.folder: own.to_dict() for run, own in measured}
        echo_json(
            [
                {
                    "folder": str(run.folder),
                    "manifest": dict(run.manifest),
                    "metrics": metrics.get(run.folder),
                }
                for run in found
            ]
        )
        return
    for run in found:
        setup = run.setup
        title = f"{setup.experiment} on {setup.machine}: {setup.policy_title}"
        tell(f"{title}, {counted(setup.cpus, 'CPU')}, seed {run.seed}: {run.status}; {run.folder}")
    print_metrics(
        [
            (f"{run.setup.policy_title}, {counted(run.setup.cpus, 'CPU')}, seed {run.seed}", own)
            for run, own in measured
        ]
    )


@runs.command()
@click.argument("places", nargs=-1, required=True, metavar="PLACE...", type=FOLDER_THERE)
@click.option("--yes", is_flag=True, help="Do not ask.")
def rm(places: tuple[Path, ...], yes: bool) -> None:
    """Remove kept runs.

    PLACE is the folder of a run, or a folder of runs. A run is removed only if each file in it is as
    schedlab wrote it. Everything else stays: symbolic links, changed files, reports, folders of
    sweeps. The exit status is 1 if a run stays.
    """
    found = [folder for place in places for folder in run_folders(place)]
    if not found:
        raise WrongUsage(f"{visible_line(str(places[0]))}: it holds no run; name a folder of runs")
    kept = {folder: reason for folder in found if (reason := why_kept(folder))}
    once = {folder.resolve(): folder for folder in found}
    ours = [folder for folder in once.values() if folder not in kept]
    for folder, reason in kept.items():
        say(f"schedlab: {visible_line(str(folder))} stays: {reason}")
    if ours:
        confirm(ours, yes)
        for folder in ours:
            placing.remove(folder)
        for place in sorted(set(places), key=lambda place: len(place.parts), reverse=True):
            if place.is_dir() and not place.is_symlink() and not any(place.iterdir()):
                place.rmdir()
        tell(f"{counted(len(ours), 'run')} removed")
    if kept:
        raise SchedlabError(f"{counted(len(kept), 'run')} kept")


def confirm(folders: Sequence[Path], yes: bool) -> None:
    """Raises WrongUsage unless the user agrees to remove these folders."""
    if yes:
        return
    size = sum(map(bytes_in, folders)) / 1e6
    question = f"Remove {counted(len(folders), 'run')} ({size:,.1f} MB)?"
    if not sys.stdin.isatty():
        raise WrongUsage(f"{question} There is no terminal to ask; add --yes")
    for folder in folders[:10]:
        say(visible_line(str(folder)))
    if not click.confirm(question, err=True):
        raise WrongUsage("nothing was removed, as you answered no")


def why_kept(folder: Path) -> str:
    """Returns why a folder is not removed, or "" if all of it is as schedlab wrote it."""
    try:
        results.read_manifest(folder)
        return visible(placing.strange(folder))
    except (SchedlabError, OSError) as error:
        return visible(str(error))


def run_folders(place: Path) -> Iterator[Path]:
    """Returns the folder itself if it is a run's, else the folders of runs below it, except in sweeps. Links are not
    followed."""
    if place.is_symlink():
        return
    if is_run(place):
        yield place
    elif not results.is_whole(place):
        for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                yield from run_folders(Path(entry.path))


def is_run(folder: Path) -> bool:
    """False for a sweep, which has rows of many runs."""
    return results.is_whole(folder) and not (folder / "runs").is_dir()


def facts_of(folder: Path) -> dict[str, int]:
    """Returns how many runs a folder holds, how many of them failed, and their size."""
    found = list(run_folders(folder))
    return {
        "runs": len(found),
        "failed": sum(not is_sound(each) for each in found),
        "bytes": sum(map(bytes_in, found)),
    }


def is_sound(folder: Path) -> bool:
    """True if a run succeeded, as far as its manifest can be read."""
    try:
        return results.succeeded(results.read_manifest(folder))
    except SchedlabError:
        return False


def bytes_in(folder: Path) -> int:
    """Returns the size of the files in a folder."""
    return sum(
        (Path(name) / file).lstat().st_size for name, _, files in os.walk(folder) for file in files
    )

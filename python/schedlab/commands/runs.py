# SPDX-License-Identifier: MIT
"""`./schedlab runs`: lists, shows and removes stored runs; lists and removes sweeps."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from schedlab.base.display.names import visible, visible_line
from schedlab.base.display.numbers import format_count
from schedlab.base.display.terminal import new_table, print_full_width, print_result, say
from schedlab.base.files import replacement
from schedlab.commands.options import EXISTING_FOLDER, echo_json, json_option
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.paths import RUNS_FOLDER
from schedlab.runs import results


@click.group()
def runs() -> None:
    """List, show and remove kept runs and sweeps."""


@runs.command("ls")
@click.argument("place", required=False, type=EXISTING_FOLDER)
@json_option
def list_(place: Path | None, as_json: bool) -> None:
    """List the runs and the sweeps in the folders of PLACE.

    PLACE is a folder that contains runs or sweeps, at any depth. [default: runs/]"""
    place = place or RUNS_FOLDER
    is_complete = results.is_complete(place)
    entries = [place] if is_complete else sorted(place.iterdir()) if place.is_dir() else []
    rows: list[dict[str, Any]] = [
        {"folder": str(entry), **count_stored_runs(folders)}
        for entry in entries
        if (folders := list(stored_run_folders(entry)))
    ]
    if as_json:
        echo_json(rows)
        return
    table = new_table("", "folder", ">sweeps", ">runs", ">failed", ">MB")
    for row in rows:
        counts = (f"{row[name]:,}" for name in ("sweeps", "runs", "failed"))
        table.add_row(os.path.relpath(row["folder"]), *counts, f"{row['bytes'] / 1e6:,.1f}")
    if rows:
        print_full_width(table)
    else:
        print_result(f"{place}: contains no run")


@runs.command()
@click.argument("places", nargs=-1, required=True, metavar="PLACE...", type=EXISTING_FOLDER)
@json_option
def show(places: tuple[Path, ...], as_json: bool) -> None:
    """Show the metrics of kept runs side by side.

    PLACE is the folder of a run, or a folder of runs."""
    from schedlab.commands.metric_tables import print_metrics
    from schedlab.runs import collection

    runs = collection.read_collection(places)
    measured = [(run, run.metrics()) for run in runs if run.measured.is_dir()]
    if as_json:
        metrics = {run.folder: run_metrics.to_dict() for run, run_metrics in measured}
        echo_json(
            [
                {
                    "folder": str(run.folder),
                    "manifest": dict(run.manifest),
                    "metrics": metrics.get(run.folder),
                }
                for run in runs
            ]
        )
        return
    for run in runs:
        setup = run.setup
        title = f"{setup.experiment} on {setup.machine}: {setup.policy_title}"
        print_result(
            f"{title}, {format_count(setup.cpus, 'CPU')}, seed {run.seed}: {run.status}; {run.folder}"
        )
    print_metrics(
        [
            (
                f"{run.setup.policy_title}, {format_count(run.setup.cpus, 'CPU')}, seed {run.seed}",
                run_metrics,
            )
            for run, run_metrics in measured
        ]
    )


@runs.command()
@click.argument("places", nargs=-1, required=True, metavar="PLACE...", type=EXISTING_FOLDER)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def rm(places: tuple[Path, ...], yes: bool) -> None:
    """Remove kept runs and sweeps.

    PLACE is the folder of a run or of a sweep, or a folder of them. A run is removed only if each of its files is
    as schedlab wrote it; of a sweep, its tables and traces are removed. Symbolic links, changed files and reports
    stay. The exit status is 1 if a run or a sweep stays.
    """
    folders = [folder for place in places for folder in stored_run_folders(place)]
    if not folders:
        raise WrongUsage(
            f"{visible_line(str(places[0]))}: no run and no sweep in this folder; name another"
        )
    retained = {folder: reason for folder in folders if (reason := refusal_reason(folder))}
    by_real_path = {folder.resolve(): folder for folder in folders}
    removable = [folder for folder in by_real_path.values() if folder not in retained]
    for folder, reason in retained.items():
        say(f"schedlab: {visible_line(str(folder))} is kept: {reason}")
    if removable:
        confirm(removable, yes)
        remaining = count_in_words(removable)
        for folder in removable:
            remove(folder)
        for place in sorted(set(places), key=lambda place: len(place.parts), reverse=True):
            if place.is_dir() and not place.is_symlink() and not any(place.iterdir()):
                place.rmdir()
        print_result(f"{remaining} removed")
    if retained:
        raise SchedlabError(
            f"{count_in_words(list(retained))} not removed: the lines above say why"
        )


def confirm(folders: Sequence[Path], yes: bool) -> None:
    """Raises WrongUsage unless the user agrees to remove these folders."""
    if yes:
        return
    size = sum(map(folder_bytes, folders)) / 1e6
    question = f"Remove {count_in_words(folders)} ({size:,.1f} MB)?"
    if not sys.stdin.isatty():
        raise WrongUsage(f"{question} There is no terminal to ask; add --yes")
    for folder in folders[:10]:
        say(visible_line(str(folder)))
    if not click.confirm(question, err=True):
        raise WrongUsage("nothing was removed: you answered no")


def refusal_reason(folder: Path) -> str:
    """Returns why a folder is not removed, or "" if it is removed."""
    try:
        if is_sweep(folder):
            from schedlab.sweep import dataset

            dataset.check_is_writable(folder)
            return ""
        results.read_manifest(folder)
        return visible(replacement.why_not_replaceable(folder))
    except (SchedlabError, OSError) as error:
        return visible(str(error))


def remove(folder: Path) -> None:
    """Removes a run or a sweep."""
    if is_sweep(folder):
        from schedlab.sweep import dataset

        dataset.remove_data_set(folder)
    else:
        replacement.remove(folder)


def count_in_words(folders: Sequence[Path]) -> str:
    """Returns the numbers of runs and sweeps among the folders, in words."""
    sweeps = sum(map(is_sweep, folders))
    counts = {"run": len(folders) - sweeps, "sweep": sweeps}
    return " and ".join(format_count(count, what) for what, count in counts.items() if count)


def stored_run_folders(place: Path) -> Iterator[Path]:
    """Yields the folder itself if it is a run or a sweep, else the runs and sweeps below it.

    Ignores links.
    """
    if place.is_symlink() or not place.is_dir():
        return
    if results.is_complete(place):
        yield place
        return
    for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
        yield from stored_run_folders(Path(entry.path))


def is_sweep(folder: Path) -> bool:
    """True if the folder is a sweep, which has rows of many runs."""
    return (folder / "runs").is_dir()


def count_stored_runs(folders: Sequence[Path]) -> dict[str, int]:
    """Returns the number of runs, sweeps and failed runs, and their size in bytes."""
    successes = [problem for folder in folders for problem in run_successes(folder)]
    return {
        "sweeps": sum(map(is_sweep, folders)),
        "runs": len(successes),
        "failed": successes.count(False),
        "bytes": sum(map(folder_bytes, folders)),
    }


def run_successes(folder: Path) -> list[bool]:
    """Returns for each run of a folder whether it succeeded; nothing
    for a sweep that cannot be read.
    """
    if not is_sweep(folder):
        return [run_has_succeeded(folder)]
    from schedlab.sweep import dataset

    try:
        return [status == "success" for status in dataset.read_statuses(folder).values()]
    except SchedlabError:
        return []


def run_has_succeeded(folder: Path) -> bool:
    """True if a run succeeded, judging by the readable part of its manifest."""
    try:
        return results.has_succeeded(results.read_manifest(folder))
    except SchedlabError:
        return False


def folder_bytes(folder: Path) -> int:
    """Returns the size of the files in a folder, in bytes."""
    return sum(
        (Path(name) / file).lstat().st_size for name, _, files in os.walk(folder) for file in files
    )

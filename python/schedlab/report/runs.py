# SPDX-License-Identifier: MIT
"""The pages of measurements: one page of all runs, and one per workload."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial

import polars as pl

from schedlab.base.display.markdown import code, listing, literal
from schedlab.base.display.numbers import NOTHING, counted, host_time
from schedlab.machines.folder import TRACE_FILE
from schedlab.report import player_pages, trials
from schedlab.report.model import (
    Cell,
    Column,
    Page,
    Recording,
    Row,
    Section,
    Table,
    Text,
)
from schedlab.report.wait_reasons import explanations
from schedlab.report.wording import cpus, is_repeatable, message, prose, ranges
from schedlab.report.workload_charts import workload_charts
from schedlab.report.workload_tables import (
    Workload,
    groups_table,
    metrics_table,
    processes_table,
    workloads,
)
from schedlab.runs import collection as runs
from schedlab.runs.collection import Collection, StoredRun
from schedlab.runs.repeat_commands import command_of, commands
from schedlab.studies.experiment import Experiment
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.workload.changes import workload_title

PLAYED_BYTES = 64 << 20
"""Maximum size of the traces that a report includes for playing; some 15 MB compressed."""
_CAPTION = (
    "*Took* is time of the host and independent of the scheduler. On HTML pages, a workload with"
    " a link plays the run: the first run of each configuration, then others, up to 64 MiB of"
    " traces. To play any other run, drop the `trace.bin` of its folder on `schedlab.html`. A"
    " click on a folder shows the commands that open its trace in the monitor or in Perfetto, or"
    " repeat the run. Playable runs also have a trace for Perfetto. If a web server serves these"
    " pages, a click on *Perfetto* opens the trace there; otherwise it saves the file, which"
    f" [ui.perfetto.dev]({player_pages.PERFETTO}) opens."
)
NAME = "runs"
_DRAWN = 6
"""Number of workloads whose pages have charts. Charts of studies are on the studies' pages."""


def page(collection: Collection) -> Page:
    """Returns the page of all runs: failures, workloads and the list."""
    failed = [run for run in collection if not run.succeeded]
    return Page(
        name=NAME,
        title="All runs",
        lead=_lead(collection, failed),
        sections=(
            *([_failures(failed)] if failed else []),
            Section("Workloads", (_workloads(workloads(collection)),)),
            Section("List of runs", (_list(collection),)),
        ),
    )


def workload_makers(collection: Collection) -> dict[str, Callable[[], Page]]:
    """Returns the functions that make each workload's page, by the page's name.

    A page has the results under each policy, and the commands that repeat the runs.
    """
    all_workloads = workloads(collection)
    drawn = [
        workload for workload in all_workloads if workload.first.experiment not in EXPERIMENTS
    ][:_DRAWN]
    return {
        page_name(workload): partial(_workload, collection, workload, workload in drawn)
        for workload in all_workloads
    }


def _lead(collection: Collection, failed: Sequence[StoredRun]) -> str:
    setups = collection.repeated
    count = counted(len({setup.experiment for setup in setups}), "workload")
    several = any(len(setup.runs) > 1 for setup in setups.values())
    seeds = (
        "A mean is followed by its 95 % interval over seeds. Runs of one configuration differ only in their seeds."
        if several
        else "Each configuration ran with one seed, so there are no intervals."
    )
    ending = f" {counted(len(failed), 'run')} did not succeed." if failed else ""
    return (
        f"The measurements of {counted(len(collection), 'run')} of {count}, all with the same"
        f" definitions.{ending} {seeds}"
    )


def _workloads(workloads: Sequence[Workload]) -> Table:
    """Returns a table with a row per workload, linked to its page."""
    return Table(
        name="all-workloads",
        title="All workloads",
        columns=(
            Column("workload", align="left"),
            Column("study"),
            Column("machine", align="left"),
            Column("policies"),
            Column("CPUs"),
            Column("runs"),
            Column("failed"),
        ),
        rows=tuple(_overview(workload) for workload in workloads),
        data=pl.DataFrame(
            [
                {
                    "workload": workload.title,
                    "study": study.study if (study := _study(workload)) else None,
                    "machine": workload.first.machine,
                    "policies": len(_policies(workload)),
                    "runs": sum(len(setup.runs) for setup in workload.setups),
                    "failed": sum(len(setup.failed) for setup in workload.setups),
                    "page": page_name(workload),
                }
                for workload in workloads
            ],
            schema_overrides={"study": pl.Int64},
        ),
        caption="A workload's page has its metrics, its groups, and the commands that repeat its runs.",
        is_list=True,
    )


def _overview(workload: Workload) -> Row:
    study = _study(workload)
    failed = sum(len(setup.failed) for setup in workload.setups)
    return (
        Cell(workload.title, link=f"#{page_name(workload)}"),
        Cell(str(study.study) if study else NOTHING),
        Cell(workload.first.machine),
        Cell(str(len(_policies(workload)))),
        Cell(ranges(setup.setup.cpus for setup in workload.setups)),
        Cell(f"{sum(len(setup.runs) for setup in workload.setups):,}"),
        Cell(str(failed), "failed" if failed else "muted"),
    )


def _study(workload: Workload) -> Experiment | None:
    """Returns the study's experiment with this workload, or None."""
    return EXPERIMENTS.get(workload.first.experiment)


def _policies(workload: Workload) -> set[str]:
    return {setup.setup.policy_title for setup in workload.setups}


def page_name(workload: Workload) -> str:
    return f"workload-{workload.stem}"


def _workload(collection: Collection, workload: Workload, drawn: bool) -> Page:
    why, links = explanations(workload) if drawn else ((), {})
    sections = {
        "Metrics": (metrics_table(collection, workload, links),),
        "Groups": (groups_table(collection, workload),),
        "Pictures": workload_charts(collection, workload, links) if drawn else (),
        "Why they waited": why,
        "Processes": (processes_table(collection, workload),),
        "Again": (_again(workload),),
    }
    trial = trials.of_setups(workload.setups)
    return Page(
        name=page_name(workload),
        title=workload.title,
        lead=_described(workload),
        sections=tuple(
            Section(title, blocks)
            for title, made in sections.items()
            if (blocks := tuple(block for block in made if block is not None))
        ),
        above=NAME,
        trials={trials.NAME: trial} if trial else {},
    )


def _again(workload: Workload) -> Text | None:
    """Returns the commands that repeat the runs, or None if there are none."""
    command_lines = commands(run.manifest for setup in workload.setups for run in setup.runs)
    if not command_lines:
        return None
    return Text(f"{prose('again')}\n\n{listing(chr(10).join(command_lines))}")


def _described(workload: Workload) -> str:
    """Returns a description of the workload, and where to read more."""
    setups = workload.setups
    command = code(workload_title(setups[0].runs[0].manifest))
    policies = counted(len(_policies(workload)), "policy", "policies")
    extent = counted(sum(len(setup.runs) for setup in setups), "run")
    numbers = cpus(setup.setup.cpus for setup in setups)
    known = _study(workload)
    study = f" Of study {known.study}: {literal(known.title)}." if known else ""
    return f"{command}, {policies} on {numbers}, {extent}.{study}"


def _failures(failed: Sequence[StoredRun]) -> Section:
    """Returns a section with each failed run and its message."""
    blocks = [
        Text(
            f"**{literal(_title(run))}**: {literal(run.status)}, in {code(str(run.folder))}\n\n"
            + listing(message(run)),
            "warning",
        )
        for run in failed
    ]
    return Section("What failed", tuple(blocks))


def _title(run: StoredRun) -> str:
    setup = run.setup
    return f"{setup.experiment}, {setup.policy_title}, {cpus([setup.cpus])}, seed {run.seed}"


def recordings(collection: Collection) -> dict[int, Recording]:
    """Returns recordings by the number of the run, up to PLAYED_BYTES of traces.

    The first run of each configuration has priority.
    """
    with_trace = {
        number: run for number, run in enumerate(collection) if (run.folder / TRACE_FILE).is_file()
    }
    firsts = {run.setup: number for number, run in reversed(with_trace.items())}
    chosen: dict[int, Recording] = {}
    left = PLAYED_BYTES
    for number in dict.fromkeys((*sorted(firsts.values()), *with_trace)):
        run = with_trace[number]
        trace = run.folder / TRACE_FILE
        if trace.stat().st_size <= left:
            left -= trace.stat().st_size
            title = f"{_title(run)}, recorded"
            chosen[number] = Recording(
                f"run-{number + 1}", title, run.setup.policy, trace, _more(run), run.succeeded
            )
    return chosen


def _list(collection: Collection) -> Table:
    played = recordings(collection)
    columns = ("workload", "policy", "CPUs", "seed", "machine", "status", "took", "folder")
    return Table(
        name="all-runs",
        title="All runs in reading order",
        columns=tuple(
            Column(title, align="right" if title in ("CPUs", "seed", "took") else "left")
            for title in columns
        ),
        rows=tuple(_listed(run, played.get(number)) for number, run in enumerate(collection)),
        data=pl.DataFrame(
            [
                {
                    **runs.identity(run),
                    "workload": workload_title(run.manifest),
                    "message": message(run),
                    "host_seconds": run.manifest.get("host_seconds"),
                    "folder": str(run.folder),
                }
                for run in collection
            ],
            infer_schema_length=None,
        ),
        caption=_CAPTION,
        is_list=True,
    )


def _listed(run: StoredRun, recording: Recording | None) -> Row:
    setup = run.setup
    seconds = run.manifest.get("host_seconds")
    status = Cell("success")
    if not run.succeeded:
        status = Cell(run.status, "failed", literal(message(run).partition("\n")[0]))
    return (
        Cell(setup.experiment, recording=recording),
        Cell(setup.policy_title),
        Cell(str(setup.cpus)),
        Cell(str(run.seed)),
        Cell(setup.machine if is_repeatable(run) else f"{setup.machine} (not repeatable)"),
        status,
        Cell(NOTHING if seconds is None else host_time(seconds), "muted", rank=seconds),
        Cell(run.folder.name, "muted", more=_more(run, recording)),
    )


def _more(run: StoredRun, recording: Recording | None = None) -> tuple[tuple[str, str], ...]:
    """Returns the actions that a reader can take with a run: descriptions, each with a command or the trace's path.

    If the report contains the recording, its trace for Perfetto is in the report, too.
    """
    has_recording = recording and recording.is_sound and player_pages.perfetto_of(recording)
    perfetto = has_recording or player_pages.PERFETTO
    again = command_of(run.manifest)
    lines = [("run", again)] if again else []
    if (run.folder / TRACE_FILE).is_file():
        folder = str(run.folder)
        lines += [
            ("monitor", shlex.join(("./schedlab", "monitor", folder))),
            (f"[Perfetto]({perfetto})", shlex.join(("./schedlab", "trace", folder))),
            ("trace", str(run.folder / TRACE_FILE)),
        ]
    return tuple(lines)

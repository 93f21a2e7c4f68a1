# SPDX-License-Identifier: MIT
"""The pages of measurements: one page of all runs, and one per workload."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial

import polars as pl

from schedlab.base.display.markdown import code, listing, literal
from schedlab.base.display.numbers import NO_VALUE, format_count, host_time
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
from schedlab.report.wait_reasons import explain_waits
from schedlab.report.wording import cpus_text, is_repeatable, ranges_text, read_prose, run_message
from schedlab.report.workload_charts import workload_charts
from schedlab.report.workload_tables import (
    Workload,
    find_workloads,
    groups_table,
    metrics_table,
    processes_table,
)
from schedlab.runs import collection as runs
from schedlab.runs.collection import Collection, StoredRun
from schedlab.runs.repeat_commands import repeat_command, repeat_commands
from schedlab.studies.experiment import Experiment
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.workload.changes import workload_title

PLAYABLE_BYTES_MAX = 64 << 20
"""Maximum size of the traces that a report includes for playing; some 15 MB compressed."""
_CAPTION = (
    "*Took* is time of the host and independent of the scheduler. On HTML pages, a workload with"
    " a link plays the run: the first run of each configuration, then others, up to 64 MiB of"
    " traces. To play any other run, drop the `trace.bin` of its folder on `schedlab.html`. A"
    " click on a folder shows the commands that open its trace in the monitor or in Perfetto, or"
    " repeat the run. Playable runs also have a trace for Perfetto. If a web server serves these"
    " pages, a click on *Perfetto* opens the trace there; otherwise it saves the file, which"
    f" [ui.perfetto.dev]({player_pages.PERFETTO_ADDRESS}) opens."
)
PAGE_NAME = "runs"
_DRAWN_WORKLOADS_MAX = 6
"""Number of workloads whose pages have charts. Charts of studies are on the studies' pages."""


def make_page(collection: Collection) -> Page:
    """Returns the page of all runs: failures, workloads and the list."""
    failed = [run for run in collection if not run.succeeded]
    return Page(
        name=PAGE_NAME,
        title="All runs",
        lead=_summarize(collection, failed),
        sections=(
            *([_failures_section(failed)] if failed else []),
            Section("Workloads", (_workloads_table(find_workloads(collection)),)),
            Section("List of runs", (_run_table(collection),)),
        ),
    )


def workload_makers(collection: Collection) -> dict[str, Callable[[], Page]]:
    """Returns the functions that make each workload's page, by the page's name.

    A page has the results under each policy, and the commands that repeat the runs.
    """
    all_workloads = find_workloads(collection)
    drawn_workloads = [
        workload for workload in all_workloads if workload.first.experiment not in EXPERIMENTS
    ][:_DRAWN_WORKLOADS_MAX]
    return {
        workload_page_name(workload): partial(
            _workload_page, collection, workload, workload in drawn_workloads
        )
        for workload in all_workloads
    }


def _summarize(collection: Collection, failed: Sequence[StoredRun]) -> str:
    """Returns the page's introduction: the numbers of runs, workloads and failures."""
    setups = collection.repeated
    count = format_count(len({setup.experiment for setup in setups}), "workload")
    several = any(len(setup.runs) > 1 for setup in setups.values())
    seeds = (
        "A mean is followed by its 95 % interval over seeds. Runs of one configuration differ only in their seeds."
        if several
        else "Each configuration ran with one seed, so there are no intervals."
    )
    ending = f" {format_count(len(failed), 'run')} did not succeed." if failed else ""
    return (
        f"The measurements of {format_count(len(collection), 'run')} of {count}, all with the same"
        f" definitions.{ending} {seeds}"
    )


def _workloads_table(workloads: Sequence[Workload]) -> Table:
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
        rows=tuple(_workload_row(workload) for workload in workloads),
        data=pl.DataFrame(
            [
                {
                    "workload": workload.title,
                    "study": study.study if (study := _experiment_of(workload)) else None,
                    "machine": workload.first.machine,
                    "policies": len(_policy_titles(workload)),
                    "runs": sum(len(setup.runs) for setup in workload.setups),
                    "failed": sum(len(setup.failed) for setup in workload.setups),
                    "page": workload_page_name(workload),
                }
                for workload in workloads
            ],
            schema_overrides={"study": pl.Int64},
        ),
        caption="A workload's page has its metrics, its groups, and the commands that repeat its runs.",
        is_list=True,
    )


def _workload_row(workload: Workload) -> Row:
    """Returns the row of a workload in the table of workloads."""
    study = _experiment_of(workload)
    failed = sum(len(setup.failed) for setup in workload.setups)
    return (
        Cell(workload.title, link=f"#{workload_page_name(workload)}"),
        Cell(str(study.study) if study else NO_VALUE),
        Cell(workload.first.machine),
        Cell(str(len(_policy_titles(workload)))),
        Cell(ranges_text(setup.setup.cpus for setup in workload.setups)),
        Cell(f"{sum(len(setup.runs) for setup in workload.setups):,}"),
        Cell(str(failed), "failed" if failed else "muted"),
    )


def _experiment_of(workload: Workload) -> Experiment | None:
    """Returns the study's experiment with this workload, or None."""
    return EXPERIMENTS.get(workload.first.experiment)


def _policy_titles(workload: Workload) -> set[str]:
    """Returns the titles of the policies that ran the workload."""
    return {setup.setup.policy_title for setup in workload.setups}


def workload_page_name(workload: Workload) -> str:
    """Returns the name of a workload's page."""
    return f"workload-{workload.stem}"


def _workload_page(collection: Collection, workload: Workload, has_charts: bool) -> Page:
    """Returns the page of a workload. `has_charts`: includes charts and the reasons for waits."""
    wait_blocks, links = explain_waits(workload) if has_charts else ((), {})
    sections = {
        "Metrics": (metrics_table(collection, workload, links),),
        "Groups": (groups_table(collection, workload),),
        "Pictures": workload_charts(collection, workload, links) if has_charts else (),
        "Why they waited": wait_blocks,
        "Processes": (processes_table(collection, workload),),
        "Again": (_repeat_commands(workload),),
    }
    trial = trials.trial_of_setups(workload.setups)
    return Page(
        name=workload_page_name(workload),
        title=workload.title,
        lead=_describe_workload(workload),
        sections=tuple(
            Section(title, blocks)
            for title, blocks_or_none in sections.items()
            if (blocks := tuple(block for block in blocks_or_none if block is not None))
        ),
        above=PAGE_NAME,
        trials={trials.PAGE_TRIAL: trial} if trial else {},
    )


def _repeat_commands(workload: Workload) -> Text | None:
    """Returns the commands that repeat the runs, or None if there are none."""
    command_lines = repeat_commands(run.manifest for setup in workload.setups for run in setup.runs)
    if not command_lines:
        return None
    return Text(f"{read_prose('again')}\n\n{listing(chr(10).join(command_lines))}")


def _describe_workload(workload: Workload) -> str:
    """Returns a description of the workload, and where to read more."""
    setups = workload.setups
    command = code(workload_title(setups[0].runs[0].manifest))
    policies = format_count(len(_policy_titles(workload)), "policy", "policies")
    extent = format_count(sum(len(setup.runs) for setup in setups), "run")
    numbers = cpus_text(setup.setup.cpus for setup in setups)
    experiment = _experiment_of(workload)
    study = f" Of study {experiment.study}: {literal(experiment.title)}." if experiment else ""
    return f"{command}, {policies} on {numbers}, {extent}.{study}"


def _failures_section(failed: Sequence[StoredRun]) -> Section:
    """Returns a section with each failed run and its message."""
    blocks = [
        Text(
            f"**{literal(_run_title(run))}**: {literal(run.status)}, in {code(str(run.folder))}\n\n"
            + listing(run_message(run)),
            "warning",
        )
        for run in failed
    ]
    return Section("What failed", tuple(blocks))


def _run_title(run: StoredRun) -> str:
    """Returns a run's title: workload, policy, CPUs and seed."""
    setup = run.setup
    return f"{setup.experiment}, {setup.policy_title}, {cpus_text([setup.cpus])}, seed {run.seed}"


def choose_recordings(collection: Collection) -> dict[int, Recording]:
    """Returns recordings by the number of the run, up to PLAYED_BYTES of traces.

    The first run of each configuration has priority.
    """
    with_trace = {
        number: run for number, run in enumerate(collection) if (run.folder / TRACE_FILE).is_file()
    }
    first_runs = {run.setup: number for number, run in reversed(with_trace.items())}
    recordings_by_run: dict[int, Recording] = {}
    bytes_left = PLAYABLE_BYTES_MAX
    for number in dict.fromkeys((*sorted(first_runs.values()), *with_trace)):
        run = with_trace[number]
        trace = run.folder / TRACE_FILE
        if trace.stat().st_size <= bytes_left:
            bytes_left -= trace.stat().st_size
            title = f"{_run_title(run)}, recorded"
            recordings_by_run[number] = Recording(
                f"run-{number + 1}",
                title,
                run.setup.policy,
                trace,
                _run_actions(run),
                run.succeeded,
            )
    return recordings_by_run


def _run_table(collection: Collection) -> Table:
    """Returns the table of all runs."""
    playable_runs = choose_recordings(collection)
    columns = ("workload", "policy", "CPUs", "seed", "machine", "status", "took", "folder")
    return Table(
        name="all-runs",
        title="All runs in reading order",
        columns=tuple(
            Column(title, align="right" if title in ("CPUs", "seed", "took") else "left")
            for title in columns
        ),
        rows=tuple(
            _run_row(run, playable_runs.get(number)) for number, run in enumerate(collection)
        ),
        data=pl.DataFrame(
            [
                {
                    **runs.identity(run),
                    "workload": workload_title(run.manifest),
                    "message": run_message(run),
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


def _run_row(run: StoredRun, recording: Recording | None) -> Row:
    """Returns the row of a run in the table of all runs."""
    setup = run.setup
    seconds = run.manifest.get("host_seconds")
    status = Cell("success")
    if not run.succeeded:
        status = Cell(run.status, "failed", literal(run_message(run).partition("\n")[0]))
    return (
        Cell(setup.experiment, recording=recording),
        Cell(setup.policy_title),
        Cell(str(setup.cpus)),
        Cell(str(run.seed)),
        Cell(setup.machine if is_repeatable(run) else f"{setup.machine} (not repeatable)"),
        status,
        Cell(NO_VALUE if seconds is None else host_time(seconds), "muted", rank=seconds),
        Cell(run.folder.name, "muted", more=_run_actions(run, recording)),
    )


def _run_actions(run: StoredRun, recording: Recording | None = None) -> tuple[tuple[str, str], ...]:
    """Returns the actions that a reader can take with a run: descriptions, each with a command or the trace's path.

    If the report contains the recording, its trace for Perfetto is in the report, too.
    """
    trace_address = recording and recording.is_sound and player_pages.perfetto_address(recording)
    perfetto_link = trace_address or player_pages.PERFETTO_ADDRESS
    again = repeat_command(run.manifest)
    actions = [("run", again)] if again else []
    if (run.folder / TRACE_FILE).is_file():
        folder = str(run.folder)
        actions += [
            ("monitor", shlex.join(("./schedlab", "monitor", folder))),
            (f"[Perfetto]({perfetto_link})", shlex.join(("./schedlab", "trace", folder))),
            ("trace", str(run.folder / TRACE_FILE)),
        ]
    return tuple(actions)

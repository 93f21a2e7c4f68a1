# SPDX-License-Identifier: MIT
"""The pages of measurements: one page of all runs, and one per workload."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby

import polars as pl

from schedlab.base.display.markdown import code, listing, literal
from schedlab.base.display.names import unique_slugs
from schedlab.base.display.numbers import NO_VALUE, format_count, host_time
from schedlab.machines.folder import TRACE_FILE
from schedlab.report import charts, player_pages, trials
from schedlab.report.model import (
    Cell,
    Chart,
    Column,
    Page,
    Recording,
    Row,
    Section,
    Table,
    Text,
)
from schedlab.report.wait_reasons import explain_waits
from schedlab.report.wording import (
    are_repeatable,
    cpus_text,
    is_repeatable,
    provenance_text,
    ranges_text,
    read_prose,
    repeatability_suffix,
    run_message,
)
from schedlab.report.workload_tables import (
    WaitLinks,
    Workload,
    find_workloads,
    groups_table,
    metrics_table,
    processes_table,
)
from schedlab.runs import collection as runs
from schedlab.runs.collection import Collection, ConfigurationRuns, StoredRun
from schedlab.runs.repeat_commands import repeat_command, repeat_commands
from schedlab.studies.experiment import Experiment
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.units import format_time
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


_LANE_CHARTS_MAX = 8
"""Maximum number of a workload's runs whose tasks are drawn one by one."""
_LATENCY_TRACES_MAX = 60
"""Maximum number of traces that are read for the latencies of one workload."""


def workload_charts(
    collection: Collection, workload: Workload, links: WaitLinks
) -> Iterator[Chart]:
    """Yields the charts in order of interest.

    `links`: the charts of single waits, for marks on latencies.
    """
    yield from _turnaround_charts(collection, workload)
    for metric in ("turnaround", "response", "waiting"):
        yield from _distribution_charts(collection, workload, metric)
    yield from _latency_charts(collection, workload, links)
    for drawn_setups, length_ns in _separately_drawn_setups(workload):
        for chart, stem in drawn_setups:
            yield from charts.draw_if_possible(_lane_chart, workload, chart, stem, length_ns)
        for chart, stem in drawn_setups:
            yield from charts.draw_if_possible(_lag_chart, workload, chart, stem, length_ns)


def _turnaround_charts(collection: Collection, workload: Workload) -> Iterator[Chart]:
    """Draws turnaround over the number of CPUs, if there are several."""
    rows = workload.rows_of(collection.summary)
    column = "turnaround_mean_ns"
    if rows["cpus"].n_unique() < 2 or column not in rows.columns or not rows[column].count():
        return
    yield from charts.draw_if_possible(
        charts.lines,
        f"turnaround-{workload.stem}",
        rows.with_columns(milliseconds=pl.col(column) / 1e6),
        title=f"{workload.title}: turnaround over CPUs{repeatability_suffix(workload.setups)}",
        caption=provenance_text(workload.setups, brackets=False),
        x="cpus",
        y="milliseconds",
        x_title="CPUs",
        y_title="mean turnaround (ms)",
    )


def _distribution_charts(
    collection: Collection, workload: Workload, metric: str
) -> Iterator[Chart]:
    """Draws the distribution of a time over all tasks: a curve per
    policy, a panel per number of CPUs.
    """
    rows = workload.rows_of(collection.processes)
    if rows.is_empty():
        return
    values = rows.filter(
        (pl.col("role") == "workload") & pl.col(f"{metric}_ns").is_not_null()
    ).sort("cpus", maintain_order=True)
    if values.height < 2 * len(workload.setups):
        return
    yield from charts.draw_if_possible(
        charts.ecdf,
        f"{metric}-distribution-{workload.stem}",
        values.with_columns(
            ms=pl.col(f"{metric}_ns") / 1e6,
            panel=pl.col("cpus").map_elements(
                lambda count: cpus_text([count]), return_dtype=pl.String
            ),
        ),
        title=f"{workload.title}: {metric} of all processes{repeatability_suffix(workload.setups)}",
        caption=provenance_text(workload.setups, brackets=False),
        value="ms",
        x_title=f"{metric} (ms)",
        y_title="processes (%)",
        run="seed",
        panel="panel" if values["cpus"].n_unique() > 1 else None,
    )


def _latency_charts(
    collection: Collection, workload: Workload, links: WaitLinks
) -> Iterator[Chart]:
    """Draws the distribution of wake-up latencies: a curve per
    policy, a panel per number of CPUs.
    """
    setups = [setup for setup in workload.setups if setup.succeeded]
    rows = workload.rows_of(collection.summary)
    has_too_many_runs = sum(len(setup.runs) for setup in setups) > _LATENCY_TRACES_MAX
    if (
        has_too_many_runs
        or not setups
        or "wakeups" not in rows.columns
        or not rows["wakeups"].sum()
    ):
        return
    counts = sorted({setup.setup.cpus for setup in setups})
    panels = {count: cpus_text([count]) if len(counts) > 1 else "" for count in counts}
    waits = {
        (panels[setup_key.cpus], setup_key.policy_title, shown.duration_ns): shown.chart
        for (place, column), shown in links.items()
        if column.startswith("wakeup_latency") and (setup_key := workload.setups[place].setup)
    }
    yield from charts.draw_if_possible(
        charts.latencies_in_panels,
        f"latencies-{workload.stem}",
        {
            panels[count]: {
                setup.setup.policy_title: [run.trace() for run in setup.runs]
                for setup in setups
                if setup.setup.cpus == count
            }
            for count in counts
        },
        title=f"{workload.title}: wake-up latency{repeatability_suffix(setups)}",
        caption=provenance_text(setups, brackets=False),
        waits=waits,
    )


def _separately_drawn_setups(
    workload: Workload,
) -> Iterator[tuple[list[tuple[ConfigurationRuns, str]], int | None]]:
    """Yields the configurations whose tasks are drawn, with file stems and the drawn length in ns.

    Draws up to _LANE_CHARTS_MAX policies on the first number of CPUs. Draws another number of CPUs
    only if at most _LANE_CHARTS_MAX runs are considered in all.
    """
    stems = unique_slugs(
        [f"{setup.setup.policy_title} {setup.setup.cpus}cpu" for setup in workload.setups], "setup"
    )
    considered_count = 0
    for _, members in groupby(
        zip(workload.setups, stems, strict=True), key=lambda pair: pair[0].setup.cpus
    ):
        setups = list(members)
        if considered_count and considered_count + len(setups) > _LANE_CHARTS_MAX:
            return
        drawn_setups = [pair for pair in setups[:_LANE_CHARTS_MAX] if pair[0].runs[0].succeeded]
        length_ns = charts.readable_length_ns(setup.runs[0].trace() for setup, _ in drawn_setups)
        yield drawn_setups, length_ns
        considered_count += len(setups)


def _lane_chart(
    workload: Workload, setup: ConfigurationRuns, stem: str, length_ns: int | None
) -> Chart:
    """Draws a lane for each task of the first seed's run. `stem`: a part of the file's name."""
    return charts.lanes(
        f"lanes-{workload.stem}-{stem}",
        setup.runs[0].trace(),
        title=_chart_title(workload, setup),
        caption=_chart_caption(setup),
        length_ns=length_ns,
    )


def _lag_chart(
    workload: Workload, setup: ConfigurationRuns, stem: str, length_ns: int | None
) -> Chart:
    """Draws the lag of each task of the first seed's run. `stem`: a part of the file's name."""
    return charts.lag_over_time(
        f"lag-{workload.stem}-{stem}",
        setup.runs[0].trace(),
        title=f"{_chart_title(workload, setup)}: lag",
        caption=_chart_caption(setup),
        length_ns=length_ns,
    )


def _chart_title(workload: Workload, repeated: ConfigurationRuns) -> str:
    setup = repeated.setup
    return f"{workload.title}: {setup.policy_title} on {cpus_text([setup.cpus])}{repeatability_suffix([repeated])}"


def _chart_caption(repeated: ConfigurationRuns) -> str:
    setup, seed = repeated.setup, repeated.runs[0].seed
    repeatability_note = "" if are_repeatable([repeated]) else " Not repeatable."
    return f"Machine {literal(setup.machine)}, tick {format_time(setup.tick_ns)}, seed {seed}.{repeatability_note}"

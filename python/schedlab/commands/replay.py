# SPDX-License-Identifier: MIT
"""`./schedlab replay`: replays a recording as a workload.

Values come from the recording unless options replace them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schedlab.base.display.terminal import new_table, print_full_width, print_result, say
from schedlab.base.files.replacement import check_file
from schedlab.base.toolchain.policies import FAIR, PolicyChoice, check_choices, read_catalogue
from schedlab.commands.options import (
    EXISTING_PATH,
    echo_json,
    execution_options,
    given,
)
from schedlab.commands.request_options import decide_option, out_option, request_options
from schedlab.commands.workload_run import run_workload
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.machines import SIMULATOR
from schedlab.paths import new_runs_folder
from schedlab.runs.recording import Recording, recording
from schedlab.runs.request import of_recording
from schedlab.units import format_time

if TYPE_CHECKING:
    from schedlab.metrics import Metrics
    from schedlab.report.adaptive_seeds import Budget
    from schedlab.report.what_if import Replay, WhatIf
    from schedlab.runs.plan_execution import Finished
    from schedlab.runs.request import Request


AS_RECORDED = "as recorded"


@click.command()
@click.argument("recording", type=EXISTING_PATH)
@request_options(
    machine=SIMULATOR,
    without=("changes", "kernel", "memory", "ignore_limits"),
    recorded_default=AS_RECORDED,
)
@decide_option
@click.option(
    "--what-if",
    "what_if",
    is_flag=True,
    help="Make one page instead: what happened, the worst waits explained, and the"
    " same demand under other policies. RECORDING may also be a file of perf,"
    " trace-cmd or Perfetto. [default policies: all]",
)
@out_option
@execution_options
@click.pass_context
def replay(
    context: click.Context,
    /,
    recording: Path,
    what_if: bool,
    decide: Budget | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Replay the demand of a RECORDING's processes in the simulator.

    RECORDING is the folder of a run on any machine, a trace, or a folder of runs that differ only in their seeds.
    Settings without an option are taken from the recording.
    """
    given_options = given(context, dict.fromkeys(context.params, ""))
    replay_options = {name: options[name] for name in options if name in given_options}
    if what_if:
        for option in given(context, NOT_ON_THE_PAGE).values():
            raise WrongUsage(f"--what-if and {option}: exclude each other; leave one of them out")
        run_what_if(
            recording,
            replay_options.get("policies"),
            replay_options.get("tick"),
            options["out"],
            options["unchecked"],
            as_json,
        )
    else:
        run_workload(of_recording(recording, **replay_options), as_json, decide, dry_run)


NOT_ON_THE_PAGE = {
    "settings": "--set",
    "cpus": "--cpus",
    "machine": "--machine",
    "repeats": "--runs",
    "limit": "--limit",
    "seed": "--seed",
    "costs": "--costs",
    "delays": "--delay",
    "shape": "--shape",
    "decide": "--decide",
    "dry_run": "--dry-run",
}
"""Options that `--what-if` rejects."""


def write_workload(place: Path, file: Path) -> Recording:
    """Writes a recording's workload into a file that can be read, edited and run."""
    check_file("as_workload", file)
    source = recording(place).with_switches()
    command = (
        f"schedlab-sim --policy {source.policy} --cpus {source.cpus} --processes {source.replay.processes()}"
        f" --seed {source.seed} --tick {source.tick_ns} --costs {source.costs.text} --trace trace.bin"
    )
    settings = ",".join(f"{name}={value}" for name, value in source.settings)
    command += f" --set {settings}" if settings else ""
    played = file.with_suffix(".steps").name
    made = (
        f"./schedlab workloads {file.name} --tick {format_time(source.tick_ns)} --output {played}"
    )
    head = f"# A {source.title}.\n# {made}\n# {command} {played}\n\n"
    file.write_text(head + source.replay.source)
    return source


RECORDED, REPLAYS, PAGE = "recorded", "replays", "page"
"""Subfolders of the output folder."""
_SHOWN = (
    "policy",
    "waiting, mean",
    "wake-up latency, maximum",
    "turnaround, mean",
    "finished",
    "waiting, change",
)
"""Columns of the page's table that the terminal shows."""


def run_what_if(
    recording: Path,
    policies: tuple[PolicyChoice, ...] | None,
    tick: int | None,
    out: Path | None,
    unchecked: bool,
    as_json: bool,
) -> None:
    """Imports a recording if necessary, replays it and makes the page.

    `policies`: None for all built-in policies. `tick`: the recorded machine's tick in ns; None for
    the recording's tick or the standard tick.
    """
    from schedlab.report.build import facts, write_into
    from schedlab.report.model import Report
    from schedlab.report.what_if import TITLE, page
    from schedlab.runs.collection import Collection, load_run

    check_choices(read_catalogue(), policies or (), {})
    if recording.is_dir():
        place = (out or new_runs_folder("what-if")).absolute()
        folder = recording.absolute()
        notes: list[str] = []
    else:
        place, folder, notes = _imported(recording, out, tick)
    for name in (REPLAYS, PAGE):
        if (place / name).exists():
            raise WrongUsage(f"--out {place}: already contains {name}; name another folder")
    answer = what_if_report(folder, policies, place / REPLAYS, unchecked, notes)
    replays = (load_run(folder) for replay in answer.replays for folder in replay.folders)
    runs = Collection([*answer.recorded, *replays])
    report = Report(TITLE, (page(answer),), facts(runs), answer.findings)
    written = write_into(report, place / PAGE)
    if as_json:
        summary = {"folder": str(place), "page": str(written), "findings": list(answer.findings)}
        echo_json({**summary, **answer.to_dict()})
    else:
        _show(answer, written)


def _imported(file: Path, out: Path | None, tick: int | None) -> tuple[Path, Path, list[str]]:
    """Returns the output folder, the folder of the imported run, and notes about the import."""
    from schedlab.recordings.convert import TICK_NS, convert
    from schedlab.trace.format import MAGIC

    with file.open("rb") as opened:
        if opened.read(len(MAGIC)) == MAGIC:
            raise WrongUsage(f"{file}: only a trace; name the folder of its run")
    place = (out or new_runs_folder("what-if")).absolute()
    made = convert(file, place / RECORDED, FAIR.name, tick or TICK_NS)
    if not made.outcome.succeeded:
        raise SchedlabError(f"{file}: {made.outcome.message}")
    for note in made.notes:
        say(f"schedlab: {file}: {note}")
    return place, made.folder, list(made.notes)


def what_if_report(
    folder: Path,
    policies: tuple[PolicyChoice, ...] | None,
    place: Path,
    unchecked: bool,
    notes: list[str],
) -> WhatIf:
    from schedlab import metrics
    from schedlab.analysis.explanation import WaitQuery, explain
    from schedlab.report.what_if import WhatIf
    from schedlab.runs.collection import load_run
    from schedlab.runs.recording import recordings
    from schedlab.runs.replay.accuracy import pooled
    from schedlab.runs.request import of_recording

    sources = recordings(folder)
    recorded = [load_run(source.path.parent) for source in sources]
    source, *others = sources
    ours = [PolicyChoice(name) for name in read_catalogue()]
    recorded_policy = source.policy if source.policy.name in read_catalogue() else None
    question = of_recording(folder, policies=(recorded_policy or ours[0],))
    traces = [run.trace() for run in recorded]
    limits = {
        source.seed: _limit(source, trace) for source, trace in zip(sources, traces, strict=True)
    }
    question = replace(question, out=place, unchecked=unchecked)
    chosen = [policy for policy in policies or ours if policy != recorded_policy]
    requests = [replace(question, policies=tuple(chosen), settings=())] if chosen else []
    if recorded_policy:
        requests.insert(
            0,
            replace(
                question,
                policies=(recorded_policy,),
                settings=source.settings,
                replay=source.with_switches(),
                other_recordings=tuple(run.with_switches() for run in others),
            ),
        )
    measured = pooled([metrics.load(run.measured) for run in recorded])
    replays = _replayed(requests, limits)
    nearest = replays[0] if recorded_policy else _nearest(measured, replays)
    explained = explain(traces[0], WaitQuery(), read_catalogue())
    notes += dict.fromkeys(note for source in sources for note in source.notes)
    return WhatIf(
        recorded, measured, explained, replays, nearest, recorded_policy is not None, notes
    )


def _limit(source: Recording, trace: Any) -> int:
    """Returns the maximum time of a replay, in ns.

    A replay of a whole machine ends with the recording, since some of its tasks never exit.
    """
    from schedlab.metrics import measured_window

    window = measured_window(trace)
    if window.root_pid is None:
        return int(window.end_ns)
    return max(source.limit_ns, 10 * int(window.end_ns))


def _replayed(requests: Sequence[Request], limits: Mapping[int, int]) -> list[Replay]:
    """Replays all recordings under each policy. `limits`: the maximum
    time of a replay in ns, by seed.

    Raises SchedlabError if a replay fails. Reaching the limit is not a failure.
    """
    from schedlab.commands.execution import perform
    from schedlab.report.what_if import Replay
    from schedlab.runs.collection import load_run
    from schedlab.runs.replay.accuracy import pooled

    plans = [request.plan() for request in requests]
    runs = (replace(run, limit_ns=limits[run.seed]) for plan in plans for run in plan.runs)
    joint_plan = replace(plans[0], runs=tuple(runs))
    finished_by_policy: dict[str, list[Finished]] = {}
    for finished in perform(joint_plan):
        if finished.metrics is None:
            raise SchedlabError(
                f"{finished.run.title}: {finished.outcome.message}; kept in {finished.folder}"
            )
        finished_by_policy.setdefault(load_run(finished.folder).setup.policy_title, []).append(
            finished
        )
    return [
        Replay(
            title,
            alike[0].run.policy,
            [finished.folder for finished in alike],
            pooled([finished.metrics for finished in alike if finished.metrics]),
        )
        for title, alike in finished_by_policy.items()
    ]


def _nearest(recorded: Metrics, replays: Sequence[Replay]) -> Replay:
    """Returns the replay with the least error.

    Policies that share by nice, as Linux does, are preferred.
    """
    from schedlab.runs.replay.accuracy import FIGURES, error, nearness

    def off(replay: Replay) -> float:
        groups = nearness(recorded, replay.metrics)
        return sum(error(groups, figure) or 0.0 for figure in FIGURES)

    def by_nice(replay: Replay) -> bool:
        return read_catalogue()[replay.choice.name].shares_under(replay.choice.preset) == "nice"

    return min(filter(by_nice, replays), key=off, default=None) or min(replays, key=off)


def _show(answer: WhatIf, written: Path) -> None:
    from schedlab.commands.execution import print_findings
    from schedlab.report.what_if import row_texts

    policy, *numbers = _SHOWN
    headings = (f">{heading}".replace(", ", "\n").replace("up ", "up\n") for heading in numbers)
    table = new_table("The same demand under each policy", policy, *headings)
    for row in (answer.as_recorded, *answer.rows):
        cells = row_texts(row)
        table.add_row(*(cells[heading] for heading in _SHOWN))
    print_full_width(table)
    print_findings([answer.trust, *answer.findings])
    print_result(f"Kept in {shlex.quote(str(written.parents[1]))}")
    print_result(f"Page: {written}")

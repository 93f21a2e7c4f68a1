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

from schedlab.base.display.numbers import percent
from schedlab.base.display.terminal import new_table, print_full_width, print_result, say
from schedlab.base.files.replacement import check_file
from schedlab.base.toolchain.policies import (
    FAIR_POLICY,
    PolicyChoice,
    check_choices,
    read_catalogue,
)
from schedlab.commands.options import (
    EXISTING_PATH,
    echo_json,
    execution_options,
    given_options,
)
from schedlab.commands.request_options import decide_option, out_option, request_options
from schedlab.commands.workload_run import run_workload
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.machines import SIMULATOR
from schedlab.paths import new_runs_folder
from schedlab.runs.recording import Recording, read_recording
from schedlab.runs.request import replay_request
from schedlab.units import format_time

if TYPE_CHECKING:
    from schedlab.metrics import Metrics
    from schedlab.report.adaptive_seeds import SeedBudget
    from schedlab.report.what_if import PolicyReplay, WhatIf
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
    decide: SeedBudget | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Replay the demand of a RECORDING's processes in the simulator.

    RECORDING is the folder of a run on any machine, a trace, or a folder of runs that differ only in their seeds.
    Settings without an option are taken from the recording.
    """
    set_names = given_options(context, dict.fromkeys(context.params, ""))
    replay_options = {name: options[name] for name in options if name in set_names}
    if what_if:
        for option in given_options(context, OPTIONS_WITHOUT_WHAT_IF).values():
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
        run_workload(replay_request(recording, **replay_options), as_json, decide, dry_run)


OPTIONS_WITHOUT_WHAT_IF = {
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


def write_workload(path: Path, file: Path) -> Recording:
    """Writes a recording's workload into a file that can be read, edited and run."""
    check_file("as_workload", file)
    source = read_recording(path).with_switches()
    command = (
        f"schedlab-sim --policy {source.policy} --cpus {source.cpus} --processes {source.replay.processes()}"
        f" --seed {source.seed} --tick {source.tick_ns} --costs {source.costs.text} --trace trace.bin"
    )
    settings = ",".join(f"{name}={value}" for name, value in source.settings)
    command += f" --set {settings}" if settings else ""
    steps_file = file.with_suffix(".steps").name
    made_by = f"./schedlab workloads {file.name} --tick {format_time(source.tick_ns)} --output {steps_file}"
    header = f"# A {source.title}.\n# {made_by}\n# {command} {steps_file}\n\n"
    file.write_text(header + source.replay.source)
    return source


RECORDED, REPLAYS, PAGE = "recorded", "replays", "page"
"""Subfolders of the output folder."""
_PRINTED_COLUMNS = (
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
    notes_of_import: Sequence[str] = (),
) -> None:
    """Imports a recording if necessary, replays it and makes the page.

    `policies`: None for all built-in policies. `tick`: the recorded machine's tick in ns; None for
    the recording's tick or the standard tick. `notes_of_import`: limitations of an imported recording.
    """
    from schedlab.report.build import report_facts, write_existing_report
    from schedlab.report.model import Report
    from schedlab.report.what_if import PAGE_TITLE, make_page
    from schedlab.runs.collection import Collection, load_run

    check_choices(read_catalogue(), policies or (), {})
    if recording.is_dir():
        place = (out or new_runs_folder("what-if")).absolute()
        folder = recording.absolute()
        notes = list(notes_of_import)
    else:
        place, folder, notes = _import_recording(recording, out, tick)
    for name in (REPLAYS, PAGE):
        if (place / name).exists():
            raise WrongUsage(f"--out {place}: already contains {name}; name another folder")
    answer = answer_what_if(folder, policies, place / REPLAYS, unchecked, notes)
    replays = (load_run(folder) for replay in answer.replays for folder in replay.folders)
    runs = Collection([*answer.recorded, *replays])
    report = Report(PAGE_TITLE, (make_page(answer),), report_facts(runs), answer.findings)
    written = write_existing_report(report, place / PAGE)
    if as_json:
        summary = {"folder": str(place), "page": str(written), "findings": list(answer.findings)}
        echo_json({**summary, **answer.to_dict()})
    else:
        _print_answer(answer, written)


def _import_recording(
    file: Path, out: Path | None, tick: int | None
) -> tuple[Path, Path, list[str]]:
    """Returns the output folder, the folder of the imported run, and notes about the import."""
    from schedlab.recordings.convert import TICK_NS, convert
    from schedlab.trace.format import MAGIC

    with file.open("rb") as opened:
        if opened.read(len(MAGIC)) == MAGIC:
            raise WrongUsage(f"{file}: only a trace; name the folder of its run")
    path = (out or new_runs_folder("what-if")).absolute()
    imported = convert(file, path / RECORDED, FAIR_POLICY.name, tick or TICK_NS)
    if not imported.outcome.succeeded:
        raise SchedlabError(f"{file}: {imported.outcome.message}")
    for note in imported.notes:
        say(f"schedlab: {file}: {note}")
    return path, imported.folder, list(imported.notes)


def answer_what_if(
    folder: Path,
    policies: tuple[PolicyChoice, ...] | None,
    place: Path,
    unchecked: bool,
    notes: list[str],
) -> WhatIf:
    """Replays the recording under the policies and returns the content of the page.

    `place`: the output folder.
    """
    from schedlab import metrics
    from schedlab.analysis.explanation import WaitQuery, explain
    from schedlab.report.what_if import WhatIf
    from schedlab.runs.collection import load_run
    from schedlab.runs.recording import read_recordings
    from schedlab.runs.replay.accuracy import merge_metrics
    from schedlab.runs.request import replay_request

    sources = read_recordings(folder)
    recorded = [load_run(source.path.parent) for source in sources]
    source, *others = sources
    builtin_policies = [PolicyChoice(name) for name in read_catalogue()]
    recorded_policy = source.policy if source.policy.name in read_catalogue() else None
    base_request = replay_request(folder, policies=(recorded_policy or builtin_policies[0],))
    traces = [run.trace() for run in recorded]
    limits = {
        source.seed: replay_limit_ns(source, trace)
        for source, trace in zip(sources, traces, strict=True)
    }
    base_request = replace(base_request, out=place, unchecked=unchecked)
    chosen = [policy for policy in policies or builtin_policies if policy != recorded_policy]
    requests = [replace(base_request, policies=tuple(chosen), settings=())] if chosen else []
    if recorded_policy:
        requests.insert(
            0,
            replace(
                base_request,
                policies=(recorded_policy,),
                settings=source.settings,
                replay=source.with_switches(),
                other_recordings=tuple(run.with_switches() for run in others),
            ),
        )
    measured = merge_metrics([metrics.load(run.measured) for run in recorded])
    replays = _replay_all(requests, limits)
    nearest = replays[0] if recorded_policy else _nearest(measured, replays)
    explained = explain(traces[0], WaitQuery(), read_catalogue())
    notes += dict.fromkeys(note for source in sources for note in source.notes)
    return WhatIf(
        recorded, measured, explained, replays, nearest, recorded_policy is not None, notes
    )


def replay_limit_ns(source: Recording, trace: Any) -> int:
    """Returns the maximum time of a replay, in ns.

    A replay of a whole machine ends with the recording, since some of its tasks never exit.
    """
    from schedlab.metrics import measured_window

    window = measured_window(trace)
    if window.root_pid is None:
        return int(window.end_ns)
    return max(source.limit_ns, 10 * int(window.end_ns))


def _replay_all(requests: Sequence[Request], limits: Mapping[int, int]) -> list[PolicyReplay]:
    """Replays all recordings under each policy. `limits`: the maximum
    time of a replay in ns, by seed.

    Raises SchedlabError if a replay fails. Reaching the limit is not a failure.
    """
    from schedlab.commands.execution import perform
    from schedlab.report.what_if import PolicyReplay
    from schedlab.runs.collection import load_run
    from schedlab.runs.replay.accuracy import merge_metrics

    plans = [request.plan() for request in requests]
    runs = (
        replace(run, limit_ns=limits[run.seed], ends_at_limit=True)
        for plan in plans
        for run in plan.runs
    )
    joint_plan = replace(plans[0], runs=tuple(runs))
    finished_by_policy: dict[str, list[Finished]] = {}
    for finished in perform(joint_plan):
        if finished.metrics is None:
            raise SchedlabError(
                f"the replay {finished.run.title} failed: {finished.outcome.message}; "
                f"read its console in {finished.folder}, or replay under another policy"
            )
        finished_by_policy.setdefault(load_run(finished.folder).setup.policy_title, []).append(
            finished
        )
    return [
        PolicyReplay(
            title,
            policy_runs[0].run.policy,
            [finished.folder for finished in policy_runs],
            merge_metrics([finished.metrics for finished in policy_runs if finished.metrics]),
        )
        for title, policy_runs in finished_by_policy.items()
    ]


def find_stand_in(folder: Path, place: Path, attributes: Sequence[str]) -> tuple[PolicyChoice, str]:
    """Returns the built-in policy that replays a recording of another policy best, and its error in words.

    Only policies that read these attributes of tasks are tried. `place`: a new folder for the
    replays.
    """
    from schedlab import metrics
    from schedlab.runs.collection import load_run
    from schedlab.runs.recording import read_recordings
    from schedlab.runs.replay.accuracy import (
        COMPARED_METRICS,
        compare_groups,
        merge_metrics,
        relative_error,
    )

    choices = tuple(
        PolicyChoice(name)
        for name, policy in read_catalogue().items()
        if (policy.attributes_read("", ()) or frozenset()).issuperset(attributes)
    )
    if not choices:
        raise WrongUsage(
            f"no built-in policy reads {' and '.join(attributes)}",
            what="--attribute",
            fix="leave it out",
        )
    sources = read_recordings(folder)
    base_request = replace(replay_request(folder, policies=choices), out=place)
    runs = [load_run(source.path.parent) for source in sources]
    limits = {
        source.seed: replay_limit_ns(source, run.trace())
        for source, run in zip(sources, runs, strict=True)
    }
    recorded = merge_metrics([metrics.load(run.measured) for run in runs])
    nearest = _nearest(recorded, _replay_all([base_request], limits))
    groups = compare_groups(recorded, nearest.metrics)
    errors = {figure: relative_error(groups, figure) for figure in COMPARED_METRICS}
    texts = [
        f"in {figure} by {percent(figure_error)}"
        for figure, figure_error in errors.items()
        if figure_error is not None
    ]
    return nearest.choice, " and ".join(texts) or "by an unknown amount"


def _nearest(recorded: Metrics, replays: Sequence[PolicyReplay]) -> PolicyReplay:
    """Returns the replay with the least error. With equal errors, policies that share by nice are preferred."""
    from schedlab.runs.replay.accuracy import COMPARED_METRICS, compare_groups, relative_error

    def total_error(replay: PolicyReplay) -> tuple[float, bool]:
        """Returns the error of a replay. A figure without a value counts as 100 %."""
        groups = compare_groups(recorded, replay.metrics)
        errors = [relative_error(groups, figure) for figure in COMPARED_METRICS]
        policy = read_catalogue()[replay.choice.name]
        is_by_nice = policy.shares_under(replay.choice.preset) == "nice"
        return sum(1.0 if value is None else value for value in errors), not is_by_nice

    return min(replays, key=total_error)


def _print_answer(answer: WhatIf, written: Path) -> None:
    """Prints the findings, the table of policies, and the path of the page."""
    from schedlab.commands.execution import print_findings
    from schedlab.report.what_if import row_texts

    policy, *numbers = _PRINTED_COLUMNS
    headings = (f">{heading}".replace(", ", "\n").replace("up ", "up\n") for heading in numbers)
    table = new_table("The same demand under each policy", policy, *headings)
    for row in (answer.recorded_row, *answer.rows):
        cells = row_texts(row)
        table.add_row(*(cells[heading] for heading in _PRINTED_COLUMNS))
    print_full_width(table)
    print_findings([answer.trust_text, *answer.findings])
    print_result(f"Kept in {shlex.quote(str(written.parents[1]))}")
    print_result(f"Page: {written}")

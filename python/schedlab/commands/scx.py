# SPDX-License-Identifier: MIT
"""`./schedlab scx`: describes and checks sched_ext schedulers that the simulator runs."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.base.display.names import visible_line
from schedlab.base.display.numbers import format_count
from schedlab.base.display.terminal import result_console
from schedlab.base.toolchain.policies import describe_unknown_name, settings_for
from schedlab.commands.command_help import SectionedGroup
from schedlab.commands.execution import out_option, run_plan
from schedlab.commands.options import (
    CPUS,
    LIMIT,
    POLICIES,
    POLICY_SETTING,
    echo_json,
    json_option,
    quiet_option,
)
from schedlab.errors import WrongUsage
from schedlab.machines.published import load_run_scheduler
from schedlab.paths import COMMAND_NAME, ROOT
from schedlab.sched_ext.extraction import find_object
from schedlab.sched_ext.inspection import Inspection, inspect
from schedlab.sched_ext.kernel import DEFAULT_PROFILE, PROFILES
from schedlab.sched_ext.loading import PREFIX, link
from schedlab.sched_ext.user_space import MachineFacts

if TYPE_CHECKING:
    from schedlab.analysis.scheduler_check import Finding
    from schedlab.runs.plan_execution import Finished

CANNOT_RUN_STATUS = 2
"""Exit status of `inspect` for a scheduler that cannot run."""
FINDINGS_STATUS = 1
"""Exit status of `check` if the scheduler has mistakes."""


@click.group(cls=SectionedGroup)
def scx() -> None:
    """Describe and check published sched_ext schedulers, which the simulator runs."""


@scx.command("inspect")
@click.argument("scheduler", metavar="OBJECT")
@click.option(
    "--cpus", type=click.IntRange(1, 1024), default=4, show_default=True, help="Number of CPUs."
)
@click.option(
    "--kernel",
    type=click.Choice(list(PROFILES)),
    default=DEFAULT_PROFILE,
    show_default=True,
    help="Version of Linux whose functions exist.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="VARIABLE=VALUE",
    help="Set a variable of the scheduler; may be repeated.",
)
@json_option
def inspect_object(
    scheduler: str, cpus: int, kernel: str, settings: tuple[str, ...], as_json: bool
) -> None:
    """Print what a scheduler asks of the kernel, its settings, and whether it will run.

    OBJECT is a BPF object, a program that contains one, or NAME of the installed program scx_NAME. The exit status is
    2 if the scheduler cannot run.
    """
    file = find_object(scheduler.removeprefix(PREFIX))
    loading = link(file, MachineFacts.of_equal_cpus(cpus), parse_settings(settings), kernel)
    inspection = inspect(loading, hashlib.sha256(file.content).hexdigest())
    if as_json:
        echo_json({**asdict(inspection), "can_run": inspection.can_run})
    else:
        for line in description_lines(inspection):
            result_console().print(visible_line(line), soft_wrap=True)
    if not inspection.can_run:
        sys.exit(CANNOT_RUN_STATUS)


@scx.command("check")
@click.argument("scheduler", metavar="OBJECT")
@click.option("--cpus", type=CPUS, default="1,4", show_default=True, help="Numbers of CPUs.")
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=2,
    show_default=True,
    help="Number of runs of each workload on each number of CPUs.",
)
@click.option(
    "--bound",
    "bound_ns",
    type=LIMIT,
    default="2s",
    show_default=True,
    help="Longest time that a runnable task may wait.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    type=POLICY_SETTING,
    help="Set a variable of the scheduler; may be repeated.",
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    help="Run only this file of workloads/files/hostile, such as pinned; may be repeated.",
)
@out_option
@quiet_option
@json_option
def check_object(
    scheduler: str,
    cpus: tuple[int, ...],
    seeds: int,
    bound_ns: int,
    settings: tuple[tuple[str, int], ...],
    workloads: tuple[str, ...],
    out: Path | None,
    as_json: bool,
) -> None:
    """Run hostile workloads in the simulator, and report the scheduler's mistakes.

    The workloads change CPU sets, weights and groups, fork many tasks, bind tasks to CPUs, and nest quotas. A
    finding is a task that waits longer than --bound, an error that ends the scheduler, a task without a time slice,
    a division by 0, a load from an invalid address, or a weight or quota that the scheduler reads and ignores.

    The exit status is 1 if there are findings, and 2 if OBJECT cannot run.
    """
    from schedlab.analysis.scheduler_check import HOSTILE_WORKLOADS, judge_runs, plan_check

    for name in workloads:
        if name not in HOSTILE_WORKLOADS:
            raise WrongUsage(
                describe_unknown_name("workload", name, HOSTILE_WORKLOADS), what="--workload"
            )
    (choice,) = POLICIES.convert(f"{PREFIX}{scheduler.removeprefix(PREFIX)}", None, None)
    chosen = settings_for(choice, settings)
    with run_plan(
        lambda folder: plan_check(choice, chosen, cpus, seeds, bound_ns, workloads, folder), out
    ) as finished:
        findings = judge_runs(finished)
    if as_json:
        echo_json({"runs": len(finished), "findings": [finding.to_dict() for finding in findings]})
    else:
        for line in _report_lines(findings, finished):
            result_console().print(visible_line(line), soft_wrap=True)
    if findings:
        sys.exit(FINDINGS_STATUS)


def _report_lines(findings: Sequence[Finding], finished: Sequence[Finished]) -> Iterator[str]:
    from schedlab.analysis.scheduler_check import HOSTILE_WORKLOADS, unread_attributes

    for finding in findings:
        run = finding.run
        file = HOSTILE_WORKLOADS[run.label].relative_to(ROOT)
        yield f"{finding.kind}: {finding.text}"
        yield f"    {run.label}, {format_count(run.cpus, 'CPU')}, seed {run.seed};" + (
            f" {format_count(finding.runs, 'run')} of this workload"
        )
        settings = "".join(f" --set scx.{name}={value}" for name, value in run.settings)
        yield (
            f"    Again: {COMMAND_NAME} run --machine sim --policy {shlex.quote(str(run.policy))}{settings}"
            f" --workload {file} --cpus {run.cpus} --seed {run.seed}"
        )
    first = finished[0].run
    ignored = unread_attributes(first)
    zeros = load_run_scheduler(first).zeros
    if ignored:
        yield f"It does not read {', '.join(ignored)}, so these were not checked."
    if findings and zeros:
        yield f"These settings are 0: {', '.join(zeros)}."
    yield f"{format_count(len(findings), 'finding')} in {format_count(len(finished), 'run')}."


def parse_settings(texts: Iterable[str]) -> dict[str, str]:
    """Returns settings such as `slice_max=2 ms`. Raises WrongUsage if one has another form."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise WrongUsage("expected VARIABLE=VALUE", what=f"--set {text}")
        settings[name.strip()] = value.strip()
    return settings


def description_lines(inspection: Inspection) -> list[str]:
    """Returns the lines that describe a scheduler."""
    lines = [
        f"{inspection.name}: {inspection.file}",
        f"  SHA-256 {inspection.sha256}, {inspection.instructions} instructions,"
        f" flags {inspection.flags:#x}, kernel {inspection.kernel}",
        f"  user space: {inspection.profile or 'no profile is known'}",
        *_format_part("not modelled", inspection.not_modelled),
        *_format_part(
            "callbacks",
            [f"{op}: {program}" for op, program in inspection.callbacks.items()],
        ),
        *_format_part("programs that user space runs", inspection.start_programs),
        *_format_part(
            "programs that never run here",
            [f"{program} ({section})" for program, section in inspection.other_programs.items()],
        ),
        *_format_part("kernel functions", inspection.kernel_functions),
        *_format_part("helpers", inspection.helpers),
        *_format_part("maps", [_map_line(entry) for entry in inspection.maps]),
        *_format_part(
            "settings",
            [
                f"{name} = {'…' if value is None else value}"
                for name, value in inspection.settings.items()
            ],
        ),
        *_format_part("settings that stay 0, and that no profile sets", inspection.zero_settings),
        *_format_part("notes", inspection.notes),
        *_format_part(
            "missing, but needed only if a program gets there", inspection.possibly_missing
        ),
        *_format_part("missing", inspection.missing),
    ]
    lines.append("It will run." if inspection.can_run else "It cannot run: see what is missing.")
    return lines


def _map_line(entry: dict[str, object]) -> str:
    """Returns the line that describes a map of the scheduler."""
    special = entry["special"]
    with_special = f", with {', '.join(special)}" if isinstance(special, list) and special else ""
    sizes = f"key {entry['key_bytes']} bytes, value {entry['value_bytes']} bytes"
    return f"{entry['name']}: {entry['type']}, {entry['entries']} entries, {sizes}{with_special}"


def _format_part(title: str, lines: Iterable[str]) -> list[str]:
    """Returns a heading and indented lines; nothing if there are none."""
    indented = [f"    {line}" for line in lines]
    return [f"  {title}:", *indented] if indented else []

# SPDX-License-Identifier: MIT
"""`./schedlab explore policy`: searches every sequence of operations on a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from shlex import quote

import click

from schedlab.base.display.activity import Update, working
from schedlab.base.display.terminal import print_result, say
from schedlab.base.files.atomic import written
from schedlab.base.host.addresses import need_all_addresses
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.commands.options import (
    FILE,
    SETTING,
    SOURCES,
    as_object,
    echo_json,
    for_option,
    json_option,
    quiet_option,
)
from schedlab.errors import MachineUnfit, RuleBroken
from schedlab.machines.exploration import (
    QUEUES_MOST,
    TASKS_MOST,
    Explored,
    Level,
    Limits,
    explore,
    words_of,
    workload_that_breaks,
)
from schedlab.machines.operations_workload import TICK_US


class Request:
    """What the command line asks for."""

    def __init__(
        self,
        choices: tuple[PolicyChoice | Path, ...],
        duration_ns: int,
        memory: int,
        settings: tuple[tuple[str, int], ...],
        workload: Path | None,
        as_json: bool,
        cpu_sets: bool,
        groups: bool,
        **most: int,
    ) -> None:
        self.choices = choices
        self.limits = Limits(
            seconds=duration_ns // 10**9,
            memory_mib=memory,
            cpu_sets=cpu_sets,
            groups=groups,
            **most,
        )
        self.tunables = ",".join(f"{name}={value}" for name, value in settings)
        self.workload = workload
        self.as_json = as_json


@click.command()
@click.argument("choices", metavar="POLICY[,POLICY]...|FILE.c", type=SOURCES)
@click.option(
    "--tasks",
    default=4,
    show_default=True,
    type=click.IntRange(1, TASKS_MOST),
    help="Number of tasks that may live at once.",
)
@click.option(
    "--queues",
    default=2,
    show_default=True,
    type=click.IntRange(1, QUEUES_MOST),
    help="Number of queues and CPUs.",
)
@click.option(
    "--depth",
    default=1000,
    show_default=True,
    type=click.IntRange(1, 4000),
    help="Largest number of operations in a sequence.",
)
@for_option("Duration of the search, for each policy.", "168h", "10min")
@click.option(
    "--memory",
    default=2048,
    show_default=True,
    type=click.IntRange(64, 1 << 20),
    help="Memory for states, MiB.",
)
@click.option(
    "--jobs",
    "workers",
    default=2,
    show_default=True,
    type=click.IntRange(1, 16),
    help="Number of processes that share the work.",
)
@click.option(
    "--set", "settings", multiple=True, type=SETTING, help="Set a tunable. May be repeated."
)
@click.option(
    "--cpu-sets",
    is_flag=True,
    help="Also change the CPU sets of tasks; this gives many more states.",
)
@click.option("--groups", is_flag=True, help="Also change weights and quotas of groups.")
@click.option(
    "--workload",
    "workload",
    type=FILE,
    help="If a rule is broken, search for a workload that reproduces it, and write"
    " it to this file.",
)
@quiet_option
@json_option
@as_object(Request)
def policy(request: Request) -> None:
    """Try every sequence of operations on a policy: tasks start, wake, are picked, preempted or moved, block, end,
    yield, tick, change attributes, and time passes.

    Equal states count once. The search ends when there is no new state, or at a limit. It prints the shortest
    sequence that breaks a rule (exit status 1). docs/explore.md lists what is tried.
    """
    from schedlab.machines.checked_simulator import has_sanitizers

    need_all_addresses("searches of policies")
    if not has_sanitizers():
        raise MachineUnfit(
            "AddressSanitizer's library is missing: install clang-19, lld-19, llvm-19"
            " and libclang-rt-19-dev"
        )
    broken = [error for choice in request.choices if (error := _explore(choice, request))]
    for error in broken:
        say(f"schedlab: {error}")
    if broken:
        raise SystemExit(1)


def _explore(choice: PolicyChoice | Path, request: Request) -> RuleBroken | None:
    from schedlab.machines.exploration import named, source_of

    source, name = (
        (choice, named(choice)) if isinstance(choice, Path) else (source_of(choice), str(choice))
    )
    with working(f"{name}: building") as update:

        def show(level: Level) -> None:
            _show(update, name, level)

        try:
            explored = explore(source, name, request.tunables, request.limits, show)
        except RuleBroken as error:
            played = _played(source, name, request, show) if request.workload else ""
            return RuleBroken(f"{error}{played}")
    if request.as_json:
        echo_json({"policy": name, **asdict(request.limits), **asdict(explored)})
    else:
        print_result("\n".join(_result_lines(name, request.limits, explored)))
    return None


def _played(source: Path, name: str, request: Request, show: Callable[[Level], None]) -> str:
    """Writes the workload, and returns the text about it."""
    assert request.workload
    limits = request.limits
    result = workload_that_breaks(source, words_of(source), name, request.tunables, limits, show)
    if not result:
        return "\n    no workload was found that reproduces this in a run"
    with written(request.workload) as place:
        place.write_text(result)
    words = [
        f"--policy {name}",
        *(f"--set {setting}" for setting in request.tunables.split(",") if setting),
    ]
    words += ["--machine sim --costs none --unchecked", f"--tick {TICK_US // 1000}ms"]
    words += [f"--cpus {limits.queues}", f"--workload {quote(str(request.workload))}"]
    return f"\n    to reproduce it:\n      ./schedlab run {' '.join(words)}"


def _show(update: Update, name: str, level: Level) -> None:
    update(f"{name}: {level.depth} operations, {level.states:,} states, {level.seconds:.0f} s")


def _result_lines(name: str, limits: Limits, explored: Explored) -> Iterator[str]:
    complete = explored.end == "complete"
    length = "of any length" if complete else f" of {explored.depth}"
    why = {"time": "; time is over", "memory": "; memory is full"}.get(explored.end, "")
    yield (
        f"{name}: no rule broken by any sequence of operations{length}: tasks {limits.tasks}, queues {limits.queues},"
        f" states {explored.states:,}, operations done {explored.transitions:,}, {explored.seconds:.1f} s{why}"
    )
    besides = [*(["CPU sets"] if limits.cpu_sets else []), *(["groups"] if limits.groups else [])]
    if besides:
        yield f"  {' and '.join(besides)} also changed"
    if explored.words:
        yield f"  host values that it reads: {', '.join(explored.words)}"

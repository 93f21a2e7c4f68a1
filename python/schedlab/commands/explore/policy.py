# SPDX-License-Identifier: MIT
"""`./schedlab explore policy`: searches every sequence of operations on a policy."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from shlex import quote

import click

from schedlab.base.display.activity import Update, working
from schedlab.base.display.terminal import print_result, say
from schedlab.base.files.atomic import atomic_write
from schedlab.base.host.addresses import refuse_address_limit
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.commands.options import (
    FILE,
    SETTING,
    SOURCES,
    duration_option,
    echo_json,
    json_option,
    pass_as_object,
    quiet_option,
)
from schedlab.errors import MachineUnfit, RuleBroken
from schedlab.machines.exploration import (
    QUEUES_MAX,
    TASKS_MAX,
    ExplorationResult,
    Level,
    Limits,
    explore,
    find_breaking_workload,
    find_host_fields_read,
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
        """Stores the parameters. `most`: the limits of the search, by option."""
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
    type=click.IntRange(1, TASKS_MAX),
    help="Number of tasks that may live at once.",
)
@click.option(
    "--queues",
    default=2,
    show_default=True,
    type=click.IntRange(1, QUEUES_MAX),
    help="Number of queues and CPUs.",
)
@click.option(
    "--depth",
    default=1000,
    show_default=True,
    type=click.IntRange(1, 4000),
    help="Largest number of operations in a sequence.",
)
@duration_option("Duration of the search, for each policy.", "168h", "10min")
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
@pass_as_object(Request)
def policy(request: Request) -> None:
    """Try every sequence of operations on a policy: tasks start, wake, are picked, preempted or moved, block, end,
    yield, tick, change attributes, and time passes.

    Equal states count once. The search ends when there is no new state, or at a limit. It prints the shortest
    sequence that breaks a rule (exit status 1). docs/explore.md lists what is tried.
    """
    from schedlab.machines.checked_simulator import has_sanitizers

    refuse_address_limit("searches of policies")
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
    """Explores one policy and prints the result. Returns the broken rule, or None."""
    from schedlab.machines.exploration import policy_source, read_policy_name

    source, name = (
        (choice, read_policy_name(choice))
        if isinstance(choice, Path)
        else (policy_source(choice), str(choice))
    )
    with working(f"{name}: building") as update:

        def show(level: Level) -> None:
            """Shows the progress of the search."""
            _show_progress(update, name, level)

        try:
            explored = explore(source, name, request.tunables, request.limits, show)
        except RuleBroken as error:
            reproduction = _write_example(source, name, request, show) if request.workload else ""
            return RuleBroken(f"{error}{reproduction}")
    if request.as_json:
        echo_json({"policy": name, **asdict(request.limits), **asdict(explored)})
    else:
        print_result("\n".join(_result_lines(name, request.limits, explored)))
    return None


def _write_example(source: Path, name: str, request: Request, show: Callable[[Level], None]) -> str:
    """Writes the workload, and returns the text about it."""
    assert request.workload
    limits = request.limits
    result = find_breaking_workload(
        source, find_host_fields_read(source), name, request.tunables, limits, show
    )
    if not result:
        return (
            "\n    no workload was found that reproduces this in a run; "
            f"{quote(str(request.workload))} was not written"
        )
    with atomic_write(request.workload) as place:
        place.write_text(result)
    arguments = [
        f"--policy {name}",
        *(f"--set {setting}" for setting in request.tunables.split(",") if setting),
    ]
    arguments += ["--machine sim --costs none --unchecked", f"--tick {TICK_US // 1000}ms"]
    arguments += [f"--cpus {limits.queues}", f"--workload {quote(str(request.workload))}"]
    return f"\n    to reproduce it:\n      ./schedlab run {' '.join(arguments)}"


def _show_progress(update: Update, name: str, level: Level) -> None:
    """Shows the level of the search that is being explored."""
    update(f"{name}: {level.depth} operations, {level.states:,} states, {level.seconds:.0f} s")


def _result_lines(name: str, limits: Limits, explored: ExplorationResult) -> Iterator[str]:
    """Yields the lines about the finished search: states, sequences and limits."""
    complete = explored.end == "complete"
    length = "of any length" if complete else f" of {explored.depth}"
    why = {"time": "; time is over", "memory": "; memory is full"}.get(explored.end, "")
    yield (
        f"{name}: no rule broken by any sequence of operations{length}: tasks {limits.tasks}, queues {limits.queues},"
        f" states {explored.states:,}, operations done {explored.transitions:,}, {explored.seconds:.1f} s{why}"
    )
    also_varied = [
        *(["CPU sets"] if limits.cpu_sets else []),
        *(["groups"] if limits.groups else []),
    ]
    if also_varied:
        yield f"  {' and '.join(also_varied)} also changed"
    if explored.words:
        yield f"  host values that it reads: {', '.join(explored.words)}"

# SPDX-License-Identifier: MIT
"""`./schedlab monitor`: shows a running system live in the browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from schedlab.base.toolchain.policies import DEFAULT_POLICY, FAIR_POLICY, PolicyChoice
from schedlab.commands.options import (
    EXISTING_PATH,
    MEMORY,
    SEED,
    SETTING,
    TICK,
    Number,
    Parsed,
    given_options,
    no_kvm_option,
    policy_option,
)
from schedlab.errors import WrongUsage
from schedlab.machines import SIMULATOR
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.sim import Simulator
from schedlab.runs.request import check_given_once
from schedlab.units import parse_time
from schedlab.workload.workload_files import is_workload_file

if TYPE_CHECKING:
    from schedlab.monitor.lesson import Lesson
    from schedlab.monitor.session import Session
    from schedlab.monitor.system import Setup
    from schedlab.monitor.system_factory import SetupChoices

T = TypeVar("T")

MACHINES = ("qemu", "spike", "sim", "linux", "host")
DEFAULT_WORKLOADS = ("two-hogs", "interactive")
"""Workloads that start by default, so that the page is not empty."""
SHORT_TICK_NS = 100_000_000
SLOW_SPEED = 0.1
"""Default speed of the page if ticks are short: slow enough to follow single time slices."""
PAGE_SEED_LIMIT = 1 << 53
TRACE_TIME = Parsed("TIME", parse_time)
PAGE_TRACE_BYTES_MAX = 2 << 30
"""Maximum size of a trace that the page plays, in bytes."""
_START_OPTIONS = {
    "machine": "--machine",
    "policies": "--policy",
    "cpus": "--cpus",
    "tick": "--tick",
    "seed": "--seed",
    "settings": "--set",
    "memory": "--memory",
    "workloads": "--workload",
    "ignore_limits": "--ignore-limits",
}
"""Options that define what starts. For a recorded run, the recording defines it."""


def session_options(command: Callable[..., T]) -> Callable[..., T]:
    """Adds the options that select what is monitored, for the page and the terminal alike."""
    for option in reversed(_SESSION_OPTIONS):
        command = option(command)
    return command


_SESSION_OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.argument("run", required=False, type=EXISTING_PATH),
    click.option(
        "--machine",
        default="qemu",
        show_default=True,
        type=click.Choice(MACHINES),
        help="qemu and spike run the schedlab kernel, sim is the simulator, linux is a"
        " Linux guest, host is this machine's kernel if it has sched_ext.",
    ),
    policy_option(
        "POLICY or POLICY:PRESET; several with commas run side by side, in step.  [default: "
        f"{DEFAULT_POLICY}; of host {FAIR_POLICY.name}, which changes nothing]",
        default=DEFAULT_POLICY,
    ),
    click.option(
        "--cpus",
        default=2,
        show_default=True,
        type=click.IntRange(1, Simulator.cpus_max),
        help="Number of CPUs.",
    ),
    click.option("--tick", default="10ms", show_default=True, type=TICK, help="Length of a tick."),
    click.option(
        "--seed",
        default=1,
        show_default=True,
        type=SEED,
        help="Seed of all random numbers of the run.",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        type=SETTING,
        help="Set a tunable. May be repeated.",
    ),
    click.option("--memory", type=MEMORY, help="Memory of the machine, MiB.  [default: 512]"),
    click.option(
        "--workload",
        "workloads",
        multiple=True,
        metavar="NAME|FILE",
        help="Start this workload: a name of the palette, or a workload file, which is"
        " added to it. May be repeated. [default: two-hogs and interactive; on "
        "host none]",
    ),
    click.option(
        "--speed",
        type=Number(0, 1e6),
        help="Pace of sim and of recorded runs: 1 is real time, 0 as fast as possible."
        " [default: 1; in the page 0.1 if ticks are shorter than 100 ms]",
    ),
    click.option(
        "--window",
        default=10.0,
        show_default=True,
        type=Number(0.1, 600),
        help="Number of seconds that the metrics cover.",
    ),
    click.option(
        "--ignore-limits",
        is_flag=True,
        help="On host, start even if control groups or nice values share CPU time in a"
        " way that the policy ignores.",
    ),
    click.option("--record", is_flag=True, help="Record the whole session as a run."),
    no_kvm_option,
)


@click.command()
@session_options
@click.option(
    "--listen",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Serve the page at this address. Other machines connect without encryption.",
)
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Serve the page at this port. [default: a free one]",
)
@click.option(
    "--lesson",
    metavar="NAME|FILE",
    help="Play a lesson: a machine that pauses at interesting moments, with texts "
    "and questions. docs/monitor.md lists the lessons.",
)
@click.option(
    "--at",
    "at_ns",
    type=TRACE_TIME,
    help="Open a recorded run or simulated machines at this time, such as 193ms, and pause.",
)
@click.option("--no-browser", is_flag=True, help="Only print the page's address.")
@click.pass_context
def monitor(
    context: click.Context,
    /,
    listen: str,
    port: int,
    lesson: str | None,
    at_ns: int | None,
    no_browser: bool,
    **options: Any,
) -> None:
    """Watch and control a running scheduler in the browser.

    Starts a machine and serves a live page: processes, shares, run queues, a time line of the CPUs, each
    decision, and explained waits. On the page you set the policy, tunables and attributes, and start and end
    workloads.

    RUN is the folder of a recorded run, which is played instead.

    Only programs of this machine that know the page's address can connect. Press Ctrl-C to end it.
    docs/monitor.md has details.
    """
    from schedlab.base.toolchain.build import wasm_module
    from schedlab.base.toolchain.needs import need_extra

    need_extra("monitor")
    from schedlab.monitor.conduct import PageOptions, page_front_end, run_session

    make_session = session_factory(context, options, page_lesson=lesson or "", at_ns=at_ns)
    wasm_module()  # builds the page's module now, so that the build is visible
    run_session(make_session, page_front_end(PageOptions(listen, port, not no_browser)))


@dataclass(frozen=True)
class _Request:
    """The parameters of `./schedlab monitor`, by the options' names."""

    run: Path | None
    machine: str
    policies: tuple[PolicyChoice, ...]
    cpus: int
    tick: int
    seed: int
    settings: tuple[tuple[str, int], ...]
    memory: int | None
    workloads: tuple[str, ...]
    speed: float | None
    window: float
    ignore_limits: bool
    record: bool


def session_factory(
    context: click.Context,
    options: dict[str, Any],
    page_lesson: str | None = None,
    at_ns: int | None = None,
) -> Callable[[], Session]:
    """Returns a function that makes the session within the event loop. Raises
    WrongUsage for impossible options.

    `page_lesson`: the lesson of the page ("": no lesson), or None for a terminal. A
    page plays slowly. It shows all of a recording, or opens at `at_ns`.
    """
    from schedlab.monitor.lesson import read_lesson
    from schedlab.monitor.session import SYSTEMS_MAX, Session
    from schedlab.monitor.system_factory import build_requirements, read_choices, software_facts
    from schedlab.monitor.systems.recorded import recorded_setup, recorded_window_ns

    request = _Request(**options)
    start_options = given_options(context, _START_OPTIONS)
    if request.run:
        _refuse_options(str(request.run), list(start_options.values()))
    if request.machine == "host" and "policies" not in start_options:
        # Monitoring a real machine must not change it.
        request = replace(request, policies=(PolicyChoice(FAIR_POLICY.name),))
    lesson = read_lesson(page_lesson) if page_lesson else None
    if lesson:
        _refuse_options(
            f"--lesson {page_lesson}", [*start_options.values(), *(["RUN"] if request.run else [])]
        )
        request = _with_lesson(request, lesson)
        start_options = _START_OPTIONS
    if len(request.policies) > SYSTEMS_MAX:
        option = f"--lesson {page_lesson}" if lesson else "--policy"
        raise WrongUsage(f"{option}: more than {SYSTEMS_MAX} policies; leave some out")
    files, names = _select_workloads(request, start_options)
    choices = read_choices(files)
    setups = (
        [recorded_setup(request.run)]
        if request.run
        else _make_setups(request, choices, files, names)
    )
    for setup in setups:
        choices.check(setup)
        if page_lesson is not None:
            _check_page(setup)
    if at_ns is not None:
        _check_start_time(setups[0], lesson)
    window_ns = int(request.window * 1e9)
    if (
        request.run
        and page_lesson is not None
        and not given_options(context, {"window": "--window"})
    ):
        window_ns = recorded_window_ns(setups[0], window_ns)
    software = software_facts(setups[0])
    build_requirements(setups[0])
    return lambda: Session(
        setups,
        choices,
        speed=_default_speed(request, setups[0].tick_ns, for_page=page_lesson is not None),
        window_ns=window_ns,
        record=request.record,
        page_plays=page_lesson is not None,
        begins_paused=bool(request.run or lesson),
        at_ns=at_ns,
        lesson=lesson.json_object if lesson else None,
        software=software,
    )


def _check_page(setup: Setup) -> None:
    """Raises WrongUsage if the page cannot simulate this setup
    itself: a browser has lower limits.
    """
    if setup.machine == SIMULATOR and setup.seed >= PAGE_SEED_LIMIT:
        raise WrongUsage(
            f"--seed: {setup.seed} is too large for the page, whose numbers are below "
            "2^53; choose a smaller one, or use `./schedlab top`"
        )
    if setup.source:
        trace = setup.source / TRACE_FILE
        if trace.is_file() and trace.stat().st_size > PAGE_TRACE_BYTES_MAX:
            raise WrongUsage(
                f"{trace}: larger than {PAGE_TRACE_BYTES_MAX >> 30} GiB, which a browser cannot "
                "hold; use `./schedlab top`"
            )


def _check_start_time(setup: Setup, lesson: Lesson | None) -> None:
    """Raises WrongUsage if the page cannot go to a moment of this setup."""
    if lesson:
        raise WrongUsage("--at: a lesson chooses its moments; leave out --at")
    if setup.machine not in (SIMULATOR, "recorded"):
        raise WrongUsage(
            "--at: only recorded runs and simulated machines have a moment to open; name a RUN, "
            f"or add --machine {SIMULATOR}"
        )


def _refuse_options(source: str, given_options: list[str]) -> None:
    """Raises WrongUsage if other options are given together with `source`."""
    if given_options:
        raise WrongUsage(
            f"{' and '.join(given_options)}: {source} already determines what runs; leave out "
            f"{' and '.join(given_options)}, or {source}"
        )


def _with_lesson(request: _Request, lesson: Lesson) -> _Request:
    return replace(
        request,
        machine=SIMULATOR,
        policies=lesson.policies,
        cpus=lesson.cpus,
        tick=lesson.tick_ns,
        seed=lesson.seed,
        settings=lesson.settings,
        workloads=lesson.workloads,
    )


def _default_speed(request: _Request, tick_ns: int, for_page: bool) -> float:
    """Returns the requested speed, or the default one.

    `for_page`: a page plays short ticks slowly.
    """
    if request.speed is not None:
        return request.speed
    is_played = bool(request.run) or request.machine == SIMULATOR
    return SLOW_SPEED if for_page and is_played and tick_ns < SHORT_TICK_NS else 1.0


def _select_workloads(
    request: _Request, given_options: dict[str, str]
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Returns the user's workload files, and the names of all workloads that start first."""
    if "workloads" not in given_options:
        return (), () if request.run or request.machine == "host" else DEFAULT_WORKLOADS
    files = tuple(Path(name) for name in request.workloads if is_workload_file(name))
    if files:
        from schedlab.runs.request import read_workload

        for file in filter(Path.is_file, files):
            read_workload(str(file), ())  # warns about parts of the file that have no effect
    names = tuple(Path(name).stem if is_workload_file(name) else name for name in request.workloads)
    return files, names


def _make_setups(
    request: _Request, choices: SetupChoices, files: tuple[Path, ...], names: tuple[str, ...]
) -> list[Setup]:
    from schedlab.monitor.system import Setup

    if request.machine == SIMULATOR and request.memory is not None:
        raise WrongUsage(f"--memory: --machine {SIMULATOR} has no memory size; leave it out")
    if request.ignore_limits and request.machine != "host":
        raise WrongUsage(
            "--ignore-limits: applies only to this host's own limits; leave it out, "
            "or add --machine host"
        )
    return [
        Setup(
            machine=request.machine,
            policy=policy,
            settings=check_given_once("settings", request.settings),
            cpus=request.cpus,
            tick_ns=request.tick,
            seed=request.seed,
            memory_mib=request.memory or 512,
            workloads=names,
            files=files,
            ignore_limits=request.ignore_limits,
        )
        for policy in request.policies
    ]

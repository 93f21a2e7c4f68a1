# SPDX-License-Identifier: MIT
"""Compares random tasks with deadlines: theory, schedlab's simulator, and SimSo in a separate environment."""

import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import click
from rich.table import Table

from schedlab import metrics, trace
from schedlab.analysis.schedulability import (
    PeriodicTask,
    draw_utilisations,
    find_overload,
    utilisation,
)
from schedlab.base.display.terminal import new_table
from schedlab.base.files.atomic import fetch_once
from schedlab.base.host.isolated import PYTHON
from schedlab.base.toolchain.build import SIMULATOR_PROGRAM
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.commands.options import POLICIES, POLICY_SETTING, json_option
from schedlab.errors import MachineUnfit, WrongUsage
from schedlab.paths import ROOT, find_in_caches
from schedlab.workload.binary_steps import encode_workload_text
from schedlab_tools.benchmarks.results import finish, output_of
from schedlab_tools.targets import JudgedRow

_UNIT_NS = 1000
"""All times are multiples."""
_PERIODS_NS = (3_000_000, 60_000_000)
_FIRST_NS = 100_000_000
"""When all tasks release their first jobs."""
_NEAR_NS = 2 * _UNIT_NS
_RUNNER = ROOT / "bench" / "simso" / "run.py"
_LOCK = _RUNNER.with_name("simso.lock")
_LIMIT_SECONDS = 3600

Ends = Mapping[tuple[str, int], int]
"""The completion time of each job, by task and number (starting at 0), in ns after the first releases."""


def random_set(seed: int, total: float, count: int = 5) -> tuple[PeriodicTask, ...]:
    """Returns tasks with this utilisation, and deadlines between runtime and period."""
    source = random.Random(seed)

    def units(least: int, most: int) -> int:
        """Returns a random multiple of the unit between these limits."""
        return source.randint(least // _UNIT_NS, most // _UNIT_NS) * _UNIT_NS

    tasks = []
    for number, part in enumerate(draw_utilisations(source, count, total)):
        period = units(*_PERIODS_NS)
        runtime = min(max(round(part * period / _UNIT_NS), 10) * _UNIT_NS, period)
        deadline = units(runtime, period)
        name = f"task{number}"
        tasks.append(PeriodicTask(name, runtime, deadline, period, group=name))
    return tuple(tasks)


def horizon(tasks: Sequence[PeriodicTask]) -> int:
    """Returns how long jobs are released, in nanoseconds: about a dozen of each task."""
    return 12 * max(task.period for task in tasks)


def text_of(tasks: Sequence[PeriodicTask]) -> str:
    """Returns the tasks as a workload of the simulator."""
    lines = ["program root", "  mark begin", *(f"  fork {task.name}" for task in tasks)]
    lines += ["  wait"] * len(tasks) + ["  mark end"]
    for task in tasks:
        jobs = -(-horizon(tasks) // task.period)
        period = f"0 {task.period}ns absolute"
        lines += [f"program {task.name}", f"  group {task.group}", f"  runtime {task.runtime}ns"]
        lines += [f"  deadline {task.deadline}ns", f"  period {task.period}ns"]
        lines += [f"  priority {task.priority}"]
        lines += [f"  job 0 {_FIRST_NS}ns absolute", f"  timer 0 {_FIRST_NS}ns absolute"]
        lines += [f"  loop {jobs}", f"    run {task.runtime}ns"]
        lines += [f"    job {period}", f"    timer {period}", "  end", "  job none"]
    return "\n".join(lines) + "\n"


def simulated(tasks: Sequence[PeriodicTask], options: Sequence[str]) -> trace.Trace:
    """Returns the trace of the tasks in schedlab's simulator without costs."""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        workload, events = Path(folder) / "workload", Path(folder) / "trace.bin"
        workload.write_bytes(encode_workload_text(text_of(tasks)))
        output_of([SIMULATOR_PROGRAM, "--costs", "none", *options, "--trace", events, workload])
        return trace.read(events)


def ends_in_schedlab(tasks: Sequence[PeriodicTask], recorded: trace.Trace) -> Ends:
    """Returns the completion times of jobs in schedlab's simulator."""
    period = {task.group: task.period for task in tasks}
    return {
        (group, (release - _FIRST_NS) // period[group]): done - _FIRST_NS
        for group, release, done in metrics.jobs(recorded)
        .select("group", "release_ns", "done_ns")
        .drop_nulls()
        .iter_rows()
    }


def ends_in_simso(sets: Sequence[Sequence[PeriodicTask]]) -> list[Ends]:
    """Returns the completion times of jobs in SimSo, and installs it if necessary. Raises
    MachineUnfit if this fails.
    """
    requests = [
        {"tasks": [asdict(task) for task in tasks], "until_ns": horizon(tasks)} for tasks in sets
    ]
    answers = _ask_simso(json.dumps(requests))
    return [{(name, number): ns for name, number, ns in answer} for answer in answers]


def _ask_simso(given: str) -> Any:
    """Returns SimSo's answer, parsed from JSON. Raises MachineUnfit if SimSo cannot be installed,
    fails, or exceeds the time limit.
    """
    try:
        result = subprocess.run(
            [str(environment()), str(_RUNNER)],
            input=given,
            capture_output=True,
            text=True,
            timeout=_LIMIT_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise MachineUnfit(f"SimSo takes longer than {_LIMIT_SECONDS} s") from None
    except subprocess.CalledProcessError as error:
        raise MachineUnfit(f"SimSo does not run here: {_last_line(error.stderr)}") from None
    return json.loads(result.stdout)


def _last_line(text: str | None) -> str:
    """Returns the last line of a text, or a message for an empty text."""
    lines = (text or "").strip().splitlines()
    return lines[-1].strip() if lines else "it says nothing"


def environment() -> Path:
    """Returns the Python with SimSo in the cache, which is created atomically."""
    key = hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:16]
    place = find_in_caches(f"peers/simso-{key}-{sys.version_info.major}.{sys.version_info.minor}")
    if not place.exists():
        fetch_once(place, install)
    return place / "bin" / "python"


def install(scratch: Path) -> Path:
    """Installs exactly the locked versions into a folder, and returns it: pip checks their hashes."""
    folder = scratch / "python"
    clean = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
    python = folder / "bin" / "python"
    for command in (
        [*PYTHON, "-m", "venv", str(folder)],
        [
            str(python),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            "--require-hashes",
            "-r",
            str(_LOCK),
        ],
    ):
        subprocess.run(
            command, env=clean, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        )
    return folder


@dataclass(frozen=True)
class Compared(JudgedRow):
    """The results of a set of tasks."""

    derived: ClassVar = ("agrees",)

    seed: int
    utilisation: float
    admitted: bool
    """True if the processor demand test guarantees all deadlines."""
    jobs: int
    misses: int
    behind: bool
    """True if a job ended at least two periods after its release. schedlab's servers then restart
    at that time, SimSo's do not, so nothing is compared.
    """
    compared: int
    """Jobs that were completed in both simulators."""
    apart_ns: int
    """The largest difference between completion times of a job."""

    @property
    def agrees(self) -> bool:
        """True if admitted sets missed no deadline, and both simulators agree."""
        return not (self.admitted and self.misses) and self.apart_ns <= _NEAR_NS

    @property
    def verdict(self) -> str:
        """Returns the verdict on the set of tasks."""
        return "met" if self.agrees else "not met"


def compare(seeds: Sequence[int], options: Sequence[str]) -> list[Compared]:
    """Compares a random set per seed, with a utilisation of 0.5 to 1. `options`: the policy for
    schedlab's simulator.
    """
    sets = [random_set(seed, random.Random(-seed - 1).uniform(0.5, 1)) for seed in seeds]
    return [
        _compare_set(seed, tasks, simulated(tasks, options), theirs)
        for seed, tasks, theirs in zip(seeds, sets, ends_in_simso(sets), strict=True)
    ]


def _compare_set(
    seed: int, tasks: Sequence[PeriodicTask], recorded: trace.Trace, theirs: Ends
) -> Compared:
    """Compares the completion times of one set in both simulators."""
    ours, jobs = ends_in_schedlab(tasks, recorded), metrics.jobs(recorded)
    period = {task.group: task.period for task in tasks}
    behind = any(
        response >= 2 * period[group]
        for group, response in jobs.select("group", "response_ns").drop_nulls().iter_rows()
    )
    common = set() if behind else ours.keys() & theirs.keys()
    distance_ns = max((abs(ours[job] - theirs[job]) for job in common), default=0)
    share = utilisation(tasks)
    return Compared(
        seed,
        float(share),
        share <= 1 and find_overload(tasks) is None,
        len(jobs),
        int((jobs["lateness_ns"] > 0).sum()),
        behind,
        len(common),
        distance_ns,
    )


@click.command("deadlines")
@click.option(
    "--policy",
    "policies",
    required=True,
    type=POLICIES,
    help="A policy that serves the earliest deadline first.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    type=POLICY_SETTING,
    help="A tunable's value, such as what lets it admit all tasks. May be repeated.",
)
@click.option("--sets", default=100, show_default=True, type=click.IntRange(1, 100_000))
@json_option
def deadlines(
    policies: tuple[PolicyChoice, ...],
    settings: tuple[tuple[str, int], ...],
    sets: int,
    as_json: bool,
) -> None:
    """Compare when jobs with deadlines end in schedlab's simulator and in SimSo.

    Sets of five tasks are drawn at random (UUniFast, Bini and Buttazzo 2005), the same each time. Exit status 1 if a
    job misses a deadline that theory guarantees, or if the simulators' times differ. SimSo is installed into the
    cache, for this command only.
    """
    from schedlab.base.toolchain.build import build

    if len(policies) > 1:
        raise WrongUsage("--policy: one at a time")
    build("simulator")
    options = ["--policy", str(policies[0])]
    if settings:
        options += ["--set", ",".join(f"{name}={value}" for name, value in settings)]
    results = compare(range(sets), options)
    finish(as_json, [result.to_dict() for result in results], (sets_table(results),), results)


def sets_table(results: Sequence[Compared]) -> Table:
    """Returns a table of the sets that theory admits, and of the others."""
    table = new_table("", "sets", ">number", ">jobs", ">missed", ">compared", ">apart, ns")
    for title, admitted in (("admitted by theory", True), ("not admitted", False)):
        chosen = [result for result in results if result.admitted is admitted]
        figures = (
            len(chosen),
            sum(result.jobs for result in chosen),
            sum(result.misses for result in chosen),
            sum(result.compared for result in chosen),
            max((result.apart_ns for result in chosen), default=0),
        )
        table.add_row(title, *(f"{figure:,}" for figure in figures))
    return table

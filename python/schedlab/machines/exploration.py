# SPDX-License-Identifier: MIT
"""Explores every sequence of operations of a policy (explore/) and returns the shortest that breaks a rule."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.host.parent_death import tied
from schedlab.base.toolchain.build import build
from schedlab.base.toolchain.diagnosis import check_source, policy_of
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.base.toolchain.tools import compiler
from schedlab.errors import BuildFailed, RuleBroken, SchedlabError, WrongUsage
from schedlab.machines.checked_simulator import (
    built_alone,
    failure_text,
    run_workload,
    sanitizer_environment,
    sources_of,
)
from schedlab.machines.operations_workload import TICK_US, acts_of, workload_of
from schedlab.machines.outcome import BROKEN_RULE, indent
from schedlab.paths import BUILD, ROOT
from schedlab.workload.text import bytes_of
from schedlab.workload.workload_files import read

TASKS_MOST = 8
QUEUES_MOST = 4

_HOST_FIELDS = ("run_time", "counted", "queued_since", "picked_since", "selections", "pid", "slot")
_ATTRIBUTES = (
    *("priority", "tickets", "weight", "nice", "slice", "runtime", "deadline", "period"),
    "group",
)
_OF_TIME = {"run_time_now": ("now", "run_time", "counted")}
"""Fields that functions of policy.h read."""
_FILE = re.compile(r"[\w./+-]+\.c", re.ASCII)
_BEYOND = {("placement.h", "now")}
"""Fields read only with 16 or more queues, which exceeds the explored number."""
_MISSING = re.compile(
    r"^(\S+?):\d+:\d+: error: (?:no member named '(\w+)' in|call to undeclared function '(\w+)')",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Limits:
    """Limits of a search.

    `depth` is the number of operations in a sequence, `memory_mib` the memory for states.
    `cpu_sets` and `groups` also change the allowed CPUs of tasks, and the weight and quota of
    groups if the policy uses them.
    """

    tasks: int = 4
    queues: int = 2
    depth: int = 1000
    seconds: int = 600
    memory_mib: int = 2048
    workers: int = 1
    cpu_sets: bool = False
    groups: bool = False


@dataclass(frozen=True)
class Level:
    """The number of states reached by all sequences of `depth` operations."""

    depth: int
    states: int
    seconds: float


@dataclass(frozen=True)
class Explored:
    """The result of a search that found no broken rule.

    `end` is "complete" if no sequence of any length reaches another state; otherwise the limit:
    "depth", "time" or "memory". `words` are the host's fields that the policy reads. `transitions`
    counts operations.
    """

    end: str
    depth: int
    states: int
    transitions: int
    seconds: float
    words: tuple[str, ...]


def source_of(choice: PolicyChoice) -> Path:
    """Returns the source file of a policy or of its preset."""
    sources = sources_of(choice)
    holds = re.compile(rf'\{{"{re.escape(choice.preset)}",')
    return next((source for source in sources[1:] if holds.search(source.read_text())), sources[0])


def named(source: Path) -> str:
    """Returns the name of the policy defined in a file. Raises WrongUsage."""
    if not source.is_file():
        raise WrongUsage(f"{source}: file not found; name an existing C file")
    if not _FILE.fullmatch(os.path.relpath(source.resolve(), ROOT)):
        raise WrongUsage(
            f"{source}: make cannot handle this file name; copy it to a path of "
            "letters, digits, - and _, such as mine.c"
        )
    match = re.search(r'\.name = "([^"]+)"', source.read_text(errors="replace"))
    if not match:
        raise WrongUsage(f"{source}: defines no policy; add POLICY_DEFINITION with a .name")
    return match[1]


def words_of(source: Path) -> tuple[str, ...]:
    """Returns the fields of its host that a policy reads: attributes of tasks, and times.

    It compiles the policy with a header that renames these fields, and reads the compiler's errors.
    Raises BuildFailed.
    """
    header = (ROOT / "policies" / "policy.h").read_text()
    for name in (*_HOST_FIELDS, *_ATTRIBUTES):
        header = _renamed(header, "task", name)
    header = _renamed(header, "run_queue", "now")
    for function in _OF_TIME:
        header = header.replace(f"{function}(const", f"{function}_(const")
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        changed = Path(folder) / "policy.h"
        changed.write_text(header)
        command = [
            *compiler().clang,
            "-std=c17",
            "-fsyntax-only",
            "-ferror-limit=0",
            "-Ipolicies",
            "-I.",
        ]
        done = subprocess.run(
            [*command, "-include", str(changed), str(source)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    missing = {
        member or function
        for file, member, function in _MISSING.findall(done.stderr)
        if file != str(changed) and (Path(file).name, member) not in _BEYOND
    }
    read = {word for name in missing for word in _OF_TIME.get(name, (name,))}
    return tuple(word for word in ("now", *_HOST_FIELDS, *_ATTRIBUTES) if word in read)


def explore(
    source: Path,
    policy: str,
    tunables: str = "",
    limits: Limits = Limits(),
    on_level: Callable[[Level], None] = lambda level: None,
) -> Explored:
    """Explores every sequence of operations. `policy` is "name" or "name:preset" in this source.

    Raises RuleBroken with the shortest sequence that breaks a rule.
    """
    source = source.resolve()
    if not source.is_file():
        raise WrongUsage(f"policy {source}: does not exist; list policies with ./schedlab policies")
    check_source(source)
    words = words_of(source)
    with built_alone("explore", source) as made:
        build("explorer", variables={"EXPLORED": made["FILE"], "EXPLORED_NAME": made["NAME"]})
        return run(source, words, policy, tunables, limits, on_level)


def run(
    source: Path,
    words: tuple[str, ...],
    policy: str,
    tunables: str = "",
    limits: Limits = Limits(),
    on_level: Callable[[Level], None] = lambda level: None,
) -> Explored:
    """Runs explore() with a program that is built already; `words` is the result of words_of()."""
    status, lines, complaints = _walk(source, words, policy, tunables, limits, "anytime", on_level)
    if status == BROKEN_RULE:
        raise RuleBroken(_counterexample(source, lines, complaints))
    match = _END.match(lines[-1]) if lines else None
    if status or not match:
        raise SchedlabError("the search failed: " + " ".join(complaints[-3:]))
    return Explored(match[1], int(match[2]), int(match[3]), int(match[4]), _seconds(lines), words)


def law_of_times_holds(
    source: Path, words: tuple[str, ...], policy: str, tunables: str = "", limits: Limits = Limits()
) -> bool:
    """Returns whether the policy's decisions stay the same on 200 random walks with shifted times."""
    return _walk(source, words, policy, tunables, limits, "walking", lambda level: None)[0] == 0


def workload_that_breaks(
    source: Path,
    words: tuple[str, ...],
    policy: str,
    tunables: str = "",
    limits: Limits = Limits(),
    on_level: Callable[[Level], None] = lambda level: None,
) -> str | None:
    """Returns the text of a workload file that makes the policy break a rule in the simulator, or None.

    CPUs act by themselves; the search varies only the tasks' operations. The tick is TICK_US.
    """
    status, lines, _ = _walk(source, words, policy, tunables, limits, "acting", on_level)
    if status != BROKEN_RULE:
        return None
    named = f"{policy}{' ' if tunables else ''}{tunables}"
    workload = workload_of(
        acts_of(lines), f"Under {named} on {limits.queues} CPUs a rule is broken."
    )
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        path = Path(folder) / "workload.json"
        path.write_text(workload)
        played = bytes_of(read(path), 1, TICK_US * 1000, limits.queues)
    try:
        run_workload(source, policy, tunables, played, limits.queues, TICK_US * 1000)
    except RuleBroken:
        return workload
    return None


def _walk(
    source: Path,
    words: tuple[str, ...],
    policy: str,
    tunables: str,
    limits: Limits,
    kind: str,
    on_level: Callable[[Level], None],
) -> tuple[int, list[str], list[str]]:
    """Returns the exit status, standard output and standard error."""
    besides = [*(["cpus"] if limits.cpu_sets else []), *(["groups"] if limits.groups else [])]
    read = ",".join((*words, *besides))
    command = [str(_program(source)), policy, tunables, *_numbers(limits), read, kind]
    with tempfile.TemporaryFile("w+", errors="replace") as complaints:
        with subprocess.Popen(
            [*tied(), *command],
            cwd=ROOT,
            env=sanitizer_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            errors="replace",
        ) as program:
            assert program.stdout
            lines = list(_hear(program.stdout, on_level))
        complaints.seek(0)
        complaints_text = complaints.read().splitlines()
    if program.returncode == WrongUsage.exit_status:
        raise WrongUsage(" ".join(complaints_text))
    return program.returncode, lines, complaints_text


def _folder(source: Path) -> Path:
    return BUILD / "explore" / policy_of(source)


def _program(source: Path) -> Path:
    return _folder(source) / "schedlab-explore"


_LEVEL = re.compile(r"level (\d+) states (\d+) seconds ([\d.]+)")
_END = re.compile(r"end (\w+) depth (\d+) states (\d+) transitions (\d+)")
_OPERATION = re.compile(r" *\d+\. | {5}then ")


def _renamed(header: str, struct: str, field: str) -> str:
    begin = header.index(f"struct {struct} {{")
    end = header.index("\n};", begin)
    body, count = re.subn(
        rf"^( +\w[\w *]*\b){field};", rf"\1{field}_;", header[begin:end], flags=re.MULTILINE
    )
    if count != 1:
        raise BuildFailed(f"policies/policy.h: struct {struct} has no field {field}")
    return header[:begin] + body + header[end:]


def _numbers(limits: Limits) -> Iterator[str]:
    yield from map(str, (limits.tasks, limits.queues, limits.depth, limits.seconds))
    yield from map(str, (limits.memory_mib, limits.workers))


def _hear(stdout: Iterator[str], on_level: Callable[[Level], None]) -> Iterator[str]:
    for line in stdout:
        if match := _LEVEL.match(line):
            on_level(Level(int(match[1]), int(match[2]), float(match[3])))
        yield line.rstrip("\n")


def _seconds(lines: list[str]) -> float:
    return max((float(match[3]) for line in lines if (match := _LEVEL.match(line))), default=0.0)


def _counterexample(source: Path, lines: list[str], complaints: list[str]) -> str:
    """Returns the broken rule, the operations that lead to it, and the details."""
    steps = [line for line in lines if _OPERATION.match(line)]
    headline, _, circumstances = failure_text(source, _program(source), complaints).partition("\n")
    count = sum(1 for step in steps if not step.startswith("     then"))
    shown_steps = [f"no shorter sequence of operations breaks a rule than {count}:", *steps]
    if not steps:
        return headline
    return "\n".join(filter(None, (f"{headline.rstrip(':')}:", indent(shown_steps), circumstances)))

# SPDX-License-Identifier: MIT
"""Explores every sequence of operations of a policy, with the program of explore/.

If a sequence breaks a rule, the shortest one is reported.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.host.isolated import complete_prefix
from schedlab.base.toolchain.build import build
from schedlab.base.toolchain.diagnosis import check_source, policy_of
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.base.toolchain.tools import require_compiler, run_captured
from schedlab.errors import BuildFailed, RuleBroken, SchedlabError, WrongUsage
from schedlab.machines.checked_simulator import (
    build_exclusively,
    describe_failure,
    policy_sources,
    run_workload,
    sanitizer_environment,
)
from schedlab.machines.operations_workload import TICK_US, make_workload, parse_operations
from schedlab.machines.outcome import BROKEN_RULE, indent
from schedlab.paths import BUILD_FOLDER, ROOT
from schedlab.workload.text import encode_workload
from schedlab.workload.workload_files import read_workload_file

TASKS_MAX = 8
QUEUES_MAX = 4

_HOST_FIELDS = ("run_time", "counted", "queued_since", "picked_since", "selections", "pid", "slot")
_ATTRIBUTES = (
    *("priority", "tickets", "weight", "nice", "slice", "runtime", "deadline", "period"),
    "group",
)
_FIELDS_BY_FUNCTION = {"run_time_now": ("now", "run_time", "counted")}
"""Fields that functions of policy.h read, by the name of the function."""
_FILE = re.compile(r"[\w./+-]+\.c", re.ASCII)
_UNEXPLORED_FIELDS = {("placement.h", "now")}
"""Fields that are read only with 16 or more run queues, which are never explored."""
_MISSING_MEMBER = re.compile(
    r"^(\S+?):\d+:\d+: error: (?:no member named '(\w+)' in|call to undeclared function '(\w+)')",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Limits:
    """Limits of a search.

    `depth`: operations per sequence. `memory_mib`: memory for states. `cpu_sets`: operations also
    change the allowed CPUs of tasks. `groups`: operations also change the weight and quota of
    groups, if the policy uses groups.
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
    """Progress of a search: the number of states that sequences of `depth` operations reach."""

    depth: int
    states: int
    seconds: float


@dataclass(frozen=True)
class ExplorationResult:
    """The result of a search that found no broken rule.

    `end` is "complete" if longer sequences reach no further state; otherwise the limit that was
    reached: "depth", "time" or "memory". `words`: the fields of the host that the policy reads.
    `transitions`: number of operations performed.
    """

    end: str
    depth: int
    states: int
    transitions: int
    seconds: float
    words: tuple[str, ...]


def policy_source(choice: PolicyChoice) -> Path:
    """Returns the source file of a policy or of its preset."""
    sources = policy_sources(choice)
    defines_preset = re.compile(rf'\{{"{re.escape(choice.preset)}",')
    return next(
        (source for source in sources[1:] if defines_preset.search(source.read_text())), sources[0]
    )


def read_policy_name(source: Path) -> str:
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


def find_host_fields_read(source: Path) -> tuple[str, ...]:
    """Returns the host's fields that a policy reads: attributes of tasks, and times.

    Compiles the policy with a header that gives these fields other names, and reads the
    compiler's errors. Raises BuildFailed.
    """
    header = (ROOT / "policies" / "policy.h").read_text()
    for name in (*_HOST_FIELDS, *_ATTRIBUTES):
        header = _rename_field(header, "task", name)
    header = _rename_field(header, "run_queue", "now")
    for function in _FIELDS_BY_FUNCTION:
        header = header.replace(f"{function}(const", f"{function}_(const")
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        changed_header = Path(folder) / "policy.h"
        changed_header.write_text(header)
        command = [
            *require_compiler().clang,
            "-std=c17",
            "-fsyntax-only",
            "-ferror-limit=0",
            "-Ipolicies",
            "-I.",
        ]
        result = run_captured([*command, "-include", str(changed_header), str(source)], cwd=ROOT)
    missing = {
        member or function
        for file, member, function in _MISSING_MEMBER.findall(result.stderr)
        if file != str(changed_header) and (Path(file).name, member) not in _UNEXPLORED_FIELDS
    }
    fields_read = {word for name in missing for word in _FIELDS_BY_FUNCTION.get(name, (name,))}
    return tuple(word for word in ("now", *_HOST_FIELDS, *_ATTRIBUTES) if word in fields_read)


def explore(
    source: Path,
    policy: str,
    tunables: str = "",
    limits: Limits = Limits(),
    on_level: Callable[[Level], None] = lambda level: None,
) -> ExplorationResult:
    """Explores every sequence of operations.

    `policy`: "name" or "name:preset", in this source. Raises RuleBroken with the shortest sequence
    that breaks a rule.
    """
    source = source.resolve()
    if not source.is_file():
        raise WrongUsage(f"policy {source}: does not exist; list policies with ./schedlab policies")
    check_source(source)
    host_fields = find_host_fields_read(source)
    with build_exclusively("explore", source) as variables:
        build(
            "explorer",
            variables={"EXPLORED": variables["FILE"], "EXPLORED_NAME": variables["NAME"]},
        )
        return run_exploration(source, host_fields, policy, tunables, limits, on_level)


def run_exploration(
    source: Path,
    host_fields: tuple[str, ...],
    policy: str,
    tunables: str = "",
    limits: Limits = Limits(),
    on_level: Callable[[Level], None] = lambda level: None,
) -> ExplorationResult:
    """Does the same as explore(), with a program that is built already.

    `host_fields`: the result of host_fields_read().
    """
    status, lines, error_lines = _run_search(
        source, host_fields, policy, tunables, limits, "anytime", on_level
    )
    if status == BROKEN_RULE:
        raise RuleBroken(_counterexample(source, lines, error_lines))
    match = _END.match(lines[-1]) if lines else None
    if status or not match:
        raise SchedlabError(
            "the search ended early: " + (" ".join(error_lines[-3:]) or f"exit status {status}"),
            fix="search fewer tasks, or for a shorter time",
        )
    return ExplorationResult(
        match[1], int(match[2]), int(match[3]), int(match[4]), _last_seconds(lines), host_fields
    )


def is_time_invariant(
    source: Path,
    host_fields: tuple[str, ...],
    policy: str,
    tunables: str = "",
    limits: Limits = Limits(),
) -> bool:
    """Returns whether the policy decides the same if all times are shifted, on 200 random sequences."""
    return (
        _run_search(source, host_fields, policy, tunables, limits, "walking", lambda level: None)[0]
        == 0
    )


def find_breaking_workload(
    source: Path,
    host_fields: tuple[str, ...],
    policy: str,
    tunables: str = "",
    limits: Limits = Limits(),
    on_level: Callable[[Level], None] = lambda level: None,
) -> str | None:
    """Searches a workload that makes the policy break a rule in the simulator.

    Returns the text of the workload file (whose tick is TICK_US), or None. The search varies only
    the operations of tasks; CPUs act as in the simulator.
    """
    status, lines, _ = _run_search(
        source, host_fields, policy, tunables, limits, "acting", on_level
    )
    operations = parse_operations(lines)
    if status != BROKEN_RULE or not any(operation.act == "new" for operation in operations):
        return None  # a rule can break before the first task, in a hook that creates a queue
    policy_title = f"{policy}{' ' if tunables else ''}{tunables}"
    workload = make_workload(
        operations, f"Under {policy_title} on {limits.queues} CPUs a rule is broken."
    )
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        path = Path(folder) / "workload.json"
        path.write_text(workload)
        binary_workload = encode_workload(
            read_workload_file(path), 1, TICK_US * 1000, limits.queues
        )
    try:
        run_workload(source, policy, tunables, binary_workload, limits.queues, TICK_US * 1000)
    except RuleBroken:
        return workload
    return None


def _run_search(
    source: Path,
    host_fields: tuple[str, ...],
    policy: str,
    tunables: str,
    limits: Limits,
    kind: str,
    on_level: Callable[[Level], None],
) -> tuple[int, list[str], list[str]]:
    """Runs the program of explore/; returns its exit status, standard output and standard error."""
    also_varied = [*(["cpus"] if limits.cpu_sets else []), *(["groups"] if limits.groups else [])]
    read = ",".join((*host_fields, *also_varied))
    command = [str(_program_path(source)), policy, tunables, *_limit_arguments(limits), read, kind]
    with tempfile.TemporaryFile("w+", errors="replace") as error_file:
        with subprocess.Popen(
            [*complete_prefix(), *command],
            cwd=ROOT,
            env=sanitizer_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=error_file,
            text=True,
            errors="replace",
        ) as program:
            assert program.stdout
            lines = list(_read_levels(program.stdout, on_level))
        error_file.seek(0)
        error_lines = error_file.read().splitlines()
    if program.returncode == WrongUsage.exit_status:
        raise WrongUsage(" ".join(error_lines))
    return program.returncode, lines, error_lines


def _explorer_folder(source: Path) -> Path:
    return BUILD_FOLDER / "explore" / policy_of(source)


def _program_path(source: Path) -> Path:
    return _explorer_folder(source) / "schedlab-explore"


_LEVEL = re.compile(r"level (\d+) states (\d+) seconds ([\d.]+)")
_END = re.compile(r"end (\w+) depth (\d+) states (\d+) transitions (\d+)")
_OPERATION = re.compile(r" *\d+\. | {5}then ")


def _rename_field(header: str, struct: str, field: str) -> str:
    """Returns the header with another name of a field, so that reading it does not compile."""
    begin = header.index(f"struct {struct} {{")
    end = header.index("\n};", begin)
    body, count = re.subn(
        rf"^( +\w[\w *]*\b){field};", rf"\1{field}_;", header[begin:end], flags=re.MULTILINE
    )
    if count != 1:
        raise BuildFailed(
            f"struct {struct} has no field {field}",
            what="policies/policy.h",
            fix="restore the file from the release",
        )
    return header[:begin] + body + header[end:]


def _limit_arguments(limits: Limits) -> Iterator[str]:
    """Yields the explorer's arguments for the limits, in its order."""
    yield from map(str, (limits.tasks, limits.queues, limits.depth, limits.seconds))
    yield from map(str, (limits.memory_mib, limits.workers))


def _read_levels(stdout: Iterator[str], on_level: Callable[[Level], None]) -> Iterator[str]:
    for line in stdout:
        if match := _LEVEL.match(line):
            on_level(Level(int(match[1]), int(match[2]), float(match[3])))
        yield line.rstrip("\n")


def _last_seconds(lines: list[str]) -> float:
    """Returns the duration (s) of the search at its last report; 0 without one."""
    return max((float(match[3]) for line in lines if (match := _LEVEL.match(line))), default=0.0)


def _counterexample(source: Path, lines: list[str], error_lines: list[str]) -> str:
    """Returns the broken rule, the operations that lead to it, and the details."""
    steps = [line for line in lines if _OPERATION.match(line)]
    headline, _, circumstances = describe_failure(
        source, _program_path(source), error_lines
    ).partition("\n")
    count = sum(1 for step in steps if not step.startswith("     then"))
    shown_steps = [f"no shorter sequence of operations breaks a rule than {count}:", *steps]
    if not steps:
        return headline
    return "\n".join(filter(None, (f"{headline.rstrip(':')}:", indent(shown_steps), circumstances)))

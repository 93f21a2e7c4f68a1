# SPDX-License-Identifier: MIT
"""Checks a policy in the simulator, built with sanitizers and with checks around each hook.

sim/checked/ has the C part, hooks.h the checks.
"""

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from schedlab.base.display.activity import working
from schedlab.base.host.addresses import address_limit
from schedlab.base.toolchain import diagnosis
from schedlab.base.toolchain.build import build, require_checkout
from schedlab.base.toolchain.diagnosis import check_source, policy_of
from schedlab.base.toolchain.needs import install_if_packaged
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.base.toolchain.source_lines import Place, find_places, find_symbolizer, path_from_root
from schedlab.base.toolchain.tools import find_system_compiler, run_captured
from schedlab.base.toolchain.verifier import HookCost, estimate_hook_costs
from schedlab.errors import RuleBroken, WrongUsage
from schedlab.machines.outcome import indent
from schedlab.paths import BUILD_FOLDER, COMMAND_NAME, ROOT
from schedlab.workload.binary_steps import encode_workload_text

POLICIES = ROOT / "policies"
SCENARIO_WORKLOAD, SHARING_WORKLOAD, BOUND_WORKLOAD = (
    ROOT / "sim" / "checked" / f"{name}.txt" for name in ("scenario", "sharing", "bound")
)
_CHECK_SECONDS_MAX = 120
_TICK_NS = 1_000_000
"""Tick length (ns) in sim/checked/main.c."""

_RULE = re.compile(r"^schedlab-sim: policy \S+ broke a rule: (.*)")
_WRAP_MESSAGE = re.compile(
    r"^(\S+?):(\d+):\d+: runtime error: (?:unsigned integer overflow|negation of \d+ .*'uint)",
    re.MULTILINE,
)
_CONTRADICTION_MESSAGE = re.compile(
    r"^schedlab-sim: policy .*, CPUs: \d+: (?:policy \S+ contradicts itself: )?(.*)"
)
"""Messages of the simulator about a policy outside of its hooks."""
_LOOP = re.compile(
    r"^schedlab-sim: policy \S+: endless loop in its hook (\w+)\(\) at (0x[0-9a-f]+)"
)
_FAULT = re.compile(
    r"^schedlab-sim: policy \S*: fault (\d+) in its hook (\w*)\(\) at (0x[0-9a-f]+)"
)
_UNDEFINED = re.compile(r"^(\S+?):(\d+):\d+: runtime error: (.*)")
_ADDRESS = re.compile(r"ERROR: AddressSanitizer: (\S+) on (?:unknown )?address (0x[0-9a-f]+)")
_FRAME = re.compile(r"^ +#\d+ 0x[0-9a-f]+ in (\w+) (\S+?):(\d+)")
_HOOK = re.compile(r"^in its hook (\w+)\(\)")
_FUNCTION = re.compile(r"^  (0x[0-9a-f]+)$")
_FIELD = re.compile(r"wrote to (\w+)->(\w+)")
_SANITIZER_RULE = "AddressSanitizer reports"
_ADDRESS_FAULT_MEANINGS = {
    "SEGV": "reads or writes address {address}, where nothing is",
    "use-after-poison": "reads or writes beyond its state, whose size is .task_bytes",
    "stack-buffer-overflow": "reads or writes beyond a variable on the stack",
    "stack-overflow": "calls itself without end",
    "global-buffer-overflow": "reads or writes beyond a table",
    "FPE": "divides by zero",
}


@dataclass(frozen=True)
class Passed:
    """Statistics of a check that found no broken rule."""

    setups: int
    decisions: int
    kills: int
    """Number of tasks that the policy ended by TICK_KILL."""
    longest_wait_ns: int
    """Longest uninterrupted wait (ns) of a ready task, with the policy's default tunables."""
    waiter: int
    """PID of the task with the longest wait."""
    cpus: int
    """Number of CPUs of the simulated machine where the longest wait happened."""
    never_served: int
    """Number of tasks that never ran although they were ready for at least half of a simulation."""
    depends_on_time: int
    """1 if decisions depend on the absolute time, even before any clock wraps around."""
    wraps: tuple[str, ...] = ()
    """Source lines where an unsigned number wrapped around below 0 or above its maximum."""
    verifier_costs: tuple[HookCost, ...] = ()
    """Estimated costs of the hooks for Linux's verifier, highest first; empty without a BPF compiler."""


def policy_sources(choice: PolicyChoice) -> list[Path]:
    """Returns the source files of a policy and its presets, the policy's own file first."""
    source = POLICIES / f"{choice.name}.c"
    names_policy = re.compile(rf'\.name = "{re.escape(choice.name)}"')
    studies = sorted((POLICIES / "studies").glob("*.c")) if choice.preset else []
    return [source, *(file for file in studies if names_policy.search(file.read_text()))]


_FAULT_MEANINGS: dict[int, str] = {
    signal.SIGILL: "does what C leaves undefined, such as an overflow or a wrong index",
    signal.SIGTRAP: "does what C leaves undefined, such as an overflow or a wrong index",
    signal.SIGFPE: "divides by zero",
}
"""What a fault of a policy without sanitizers means, by signal; any other is an invalid memory access."""


@cache
def has_sanitizers() -> bool:
    """Returns whether this host has clang with AddressSanitizer, and no limit on the address space."""
    require_checkout("checks of policies")
    install_if_packaged("system-compiler", "sanitizers")
    compiler = find_system_compiler()
    return bool(compiler and compiler.sanitizer_library) and address_limit() is None


def describe_missing_checks() -> str:
    """Returns a sentence about the checks that this host cannot make, or ""."""
    if has_sanitizers():
        return ""
    why = "this host has no sanitizers of clang"
    if address_limit() is not None:
        why = "`ulimit -v` leaves too little memory for the sanitizers"
    return (
        f"{why}: accesses beyond a variable, numbers that wrap, and what Linux's verifier"
        f" asks for are not checked ({COMMAND_NAME} doctor)"
    )


def check_once(source: Path) -> None:
    """Checks a source unless it passed since its last change; raises RuleBroken.

    Omits tasks bound to one CPU, because ordinary workloads need not have any.
    """
    passed_file = _build_folder(source) / "passed"
    expected_hash = _hash_of(source)
    if passed_file.is_file() and passed_file.read_text() == expected_hash:
        return
    check(source, bound=False)


def check(source: Path, bound: bool = True) -> Passed:
    """Checks a policy with the compiler, in the checked simulator, and against Linux's verifier.

    `bound`: includes tasks bound to one CPU. Raises BuildFailed, or RuleBroken with the rule, the
    hook, the source line, the task and the last decisions.
    """
    if not source.is_file():
        raise WrongUsage(
            f"policy {path_from_root(str(source))}: does not exist; list policies with "
            "./schedlab policies"
        )
    check_source(source)
    with build_exclusively(_build_kind(), source) as variables:
        _build(variables)
        passed = run_checks(source, bound=bound)
        costs = estimate_hook_costs(source) if has_sanitizers() else []
        (_build_folder(source) / "passed").write_text(_hash_of(source))
    return replace(passed, verifier_costs=tuple(costs))


def run_checks(source: Path, tunables: str = "", bound: bool = True) -> Passed:
    """Runs the checked simulator, which must be built.

    `tunables`: values to test instead of the built-in list. `bound`: includes tasks bound to one
    CPU. Raises RuleBroken.
    """
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        workloads = [
            str(_write_binary_workload(words, Path(folder)))
            for words in (SCENARIO_WORKLOAD, SHARING_WORKLOAD, *([BOUND_WORKLOAD] * bound))
        ]
        return _run_checked_simulator(
            source, [*workloads, *([""] * (not bound)), *([tunables] if tunables else [])]
        )


def _write_binary_workload(words: Path, folder: Path) -> Path:
    """Writes a workload in the machines' binary format; returns its path."""
    path = folder / words.stem
    path.write_bytes(encode_workload_text(words.read_text(), _TICK_NS, words.name))
    return path


def run_workload(
    source: Path, policy: str, tunables: str, workload: bytes, cpus: int, tick_ns: int
) -> Passed:
    """Runs one workload in the checked simulator, with no costs, so that only computing takes time.

    `workload` has the format of abi/workload_file.h. Builds the simulator first. Raises RuleBroken.
    """
    with (
        build_exclusively(_build_kind(), source) as variables,
        tempfile.NamedTemporaryFile(prefix="schedlab-") as file,
    ):
        _build(variables)
        file.write(workload)
        file.flush()
        return _run_checked_simulator(
            source, [file.name, policy, tunables, str(cpus), str(tick_ns)]
        )


@contextmanager
def build_exclusively(kind: str, source: Path) -> Iterator[dict[str, str]]:
    """Yields make's variables for building one policy from a file, in build/`kind`.

    Until the block ends, no other process can build a policy of the same name there, because it may
    have another file. Deletes what was built there from another file.
    """
    folder = BUILD_FOLDER / kind / policy_of(source)
    source_record = folder / "source"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        with working(f"another check of {folder.name} ends first"):
            fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir() and not (
            source_record.is_file() and source_record.read_text() == str(source)
        ):
            shutil.rmtree(folder)
        folder.mkdir(exist_ok=True)
        source_record.write_text(str(source))
        yield {"FILE": os.path.relpath(source, ROOT), "NAME": policy_of(source)}


def _build(policy: dict[str, str]) -> None:
    variables = {"CHECKED": policy["FILE"], "CHECKED_NAME": policy["NAME"]}
    build("checked", variables=variables if has_sanitizers() else {**variables, "SANITIZED": ""})


def _run_checked_simulator(source: Path, arguments: list[str]) -> Passed:
    program = _build_folder(source) / "schedlab-sim"
    try:
        with working(f"checking policy {source.stem}"):
            result = run_captured(
                [str(program), *arguments],
                cwd=ROOT,
                env=sanitizer_environment(),
                timeout=_CHECK_SECONDS_MAX,
            )
    except subprocess.TimeoutExpired:
        raise RuleBroken(
            f"policy {policy_of(source)}: its check did not finish within {_CHECK_SECONDS_MAX} s; look"
            " for a hook whose time grows with the number of tasks, or an endless loop"
        ) from None
    if result.returncode == WrongUsage.exit_status and "contradicts itself" not in result.stderr:
        raise RuleBroken(
            f"policy {policy_of(source)}: the simulator did not accept it; correct this:"
            f" {result.stderr.strip()}"
        )
    if result.returncode:
        raise RuleBroken(describe_failure(source, program, result.stderr.splitlines()))
    counts: dict[str, Any] = {
        name: int(value) for name, value in map(str.split, result.stdout.splitlines())
    }
    return Passed(**counts, wraps=tuple(_find_wraps(source, result.stderr)))


def _find_wraps(source: Path, output: str) -> Iterator[str]:
    file = path_from_root(str(source))
    lines = {
        int(match[2])
        for match in _WRAP_MESSAGE.finditer(output)
        if Path(match[1]).name == source.name
    }
    yield from (f"{file}:{line}" for line in sorted(lines))


def sanitizer_environment() -> dict[str, str]:
    """Returns the environment of programs compiled with sanitizers."""
    environment = {
        **os.environ,
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
        "UBSAN_OPTIONS": "print_summary=0",
    }
    if tool := find_symbolizer():
        environment["ASAN_SYMBOLIZER_PATH"] = tool
    return environment


def describe_failure(source: Path, program: Path, lines: list[str]) -> str:
    """Returns a report of the checked simulator's failure: a headline, with details below it."""
    hook = next((match[1] for line in lines if (match := _HOOK.match(line))), "")
    rule = _describe_broken_rule(source, program, lines, hook)
    details = list(_circumstances(program, lines))
    headline = (
        f"policy {policy_of(source)} broke a rule: {rule}"
        if rule
        else f"policy {policy_of(source)}: its check failed"
    )
    if not details:
        patterns = (_RULE, _CONTRADICTION_MESSAGE, _WRAP_MESSAGE)
        details = [line for line in lines if not any(pattern.match(line) for pattern in patterns)][
            -20:
        ]
    return f"{headline}:\n{indent(details)}" if details else headline


def _describe_broken_rule(source: Path, program: Path, lines: list[str], hook: str) -> str:
    """Returns the broken rule and where it was broken, or "" if the output shows none."""
    stack = [
        place
        for line in lines
        if (match := _FRAME.match(line))
        and (place := Place(match[1], path_from_root(match[2]), int(match[3]))).in_policy
    ]
    if stop_match := next(
        (m for line in lines if (m := _LOOP.match(line) or _FAULT.match(line))), None
    ):
        # Without this, the location is missing if the signal interrupted a call.
        address = int(stop_match[stop_match.re.groups], 16)
        frames = find_places(program, [address]).get(address, [])
        stack = [place for place in (*frames, *stack) if place.in_policy and place.line]
    at = f", at {stack[0].file}:{stack[0].line}" if stack else ""
    inside = f", in {stack[0].function}()" if len(set(stack)) > 1 else ""
    for line in lines:
        if match := _CONTRADICTION_MESSAGE.match(line):
            return match[1]
        if match := _RULE.match(line):
            return match[1] + _describe_writers(source, match[1])
        if _LOOP.match(line):
            return f"{hook}() does not end: there is an endless loop{inside}{at}"
        if match := _FAULT.match(line):
            meaning = _FAULT_MEANINGS.get(int(match[1]), "reads or writes memory that is not there")
            return f"{match[2]}() {meaning}{inside}{at}"
        if (match := _UNDEFINED.match(line)) and not _WRAP_MESSAGE.match(line):
            return f"{hook}(): {match[3]}, at {path_from_root(match[1])}:{match[2]}"
        if match := _ADDRESS.search(line):
            meaning = _ADDRESS_FAULT_MEANINGS.get(match[1], f"{_SANITIZER_RULE} {match[1]}").format(
                address=match[2]
            )
            return f"{hook}() {meaning}{inside}{at}"
    return ""


def _describe_writers(source: Path, rule: str) -> str:
    """Returns the source lines that write to the field named in a rule; "" if the rule names none."""
    match = _FIELD.search(rule)
    if not match:
        return ""
    assignment = re.compile(
        rf"->{match[2]}\s*(?:[-+*/|&^]?=(?!=)|\+\+|--)|(?:\+\+|--)\w+->{match[2]}\b"
    )
    file = path_from_root(str(source))
    places = [
        f"{file}:{number}"
        for number, line in enumerate(source.read_text().splitlines(), 1)
        if assignment.search(line)
    ]
    return f", at {' or '.join(places)}" if places else ""


def _circumstances(program: Path, lines: list[str]) -> Iterator[str]:
    """Yields lines that name the hook, the task and the last decisions."""
    begin = next((i for i, line in enumerate(lines) if _HOOK.match(line)), len(lines))
    for line in lines[begin:]:
        match = _FUNCTION.match(line)
        if not match:
            yield line
            continue
        for place in find_places(program, [int(match[1], 16)]).get(int(match[1], 16), [])[-1:]:
            yield f"  {place}"


def _build_folder(source: Path) -> Path:
    return BUILD_FOLDER / _build_kind() / policy_of(source)


def _build_kind() -> str:
    return "checked" if has_sanitizers() else "plainly-checked"


def _hash_of(source: Path) -> str:
    """Returns a hash of the policy, its headers and the checker."""
    tools = [Path(diagnosis.__file__).with_name(f"{name}.py") for name in ("diagnosis", "verifier")]
    files = [
        source,
        *sorted(POLICIES.glob("**/*.h")),
        *sorted((ROOT / "sim" / "checked").iterdir()),
        *tools,
    ]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()

# SPDX-License-Identifier: MIT
"""Checks a policy in the simulator with sanitizers and with checks around each hook (sim/checked/hooks.h)."""

from __future__ import annotations

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
from schedlab.base.toolchain.build import build, need_checkout
from schedlab.base.toolchain.diagnosis import check_source, policy_of
from schedlab.base.toolchain.needs import need_if_installed
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.base.toolchain.source_lines import Place, from_root, places_of, symbolizer
from schedlab.base.toolchain.tools import find_system_compiler
from schedlab.base.toolchain.verifier import HookCost, examine
from schedlab.errors import RuleBroken, WrongUsage
from schedlab.machines.outcome import indent
from schedlab.paths import BUILD, COMMAND, ROOT
from schedlab.workload.binary_steps import read_words

POLICIES = ROOT / "policies"
SCENARIO, SHARING, BOUND = (
    ROOT / "sim" / "checked" / f"{name}.txt" for name in ("scenario", "sharing", "bound")
)
_MOST_SECONDS = 120
_TICK_NS = 1_000_000
"""The tick of sim/checked/main.c."""

_RULE = re.compile(r"^schedlab-sim: policy \S+ broke a rule: (.*)")
_WRAP = re.compile(
    r"^(\S+?):(\d+):\d+: runtime error: (?:unsigned integer overflow|negation of \d+ .*'uint)",
    re.MULTILINE,
)
_FLAW = re.compile(r"^schedlab-sim: policy .*, CPUs: \d+: (?:policy \S+ contradicts itself: )?(.*)")
"""Messages of the simulator about a policy before its first hook or between hooks."""
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
_OTHERS = "AddressSanitizer reports"
_ADDRESS_DEEDS = {
    "SEGV": "reads or writes address {address}, where nothing is",
    "use-after-poison": "reads or writes beyond its state, whose size is .task_bytes",
    "stack-buffer-overflow": "reads or writes beyond a variable on the stack",
    "stack-overflow": "calls itself without end",
    "global-buffer-overflow": "reads or writes beyond a table",
    "FPE": "divides by zero",
}


@dataclass(frozen=True)
class Passed:
    """Statistics of a check without a broken rule."""

    setups: int
    decisions: int
    kills: int
    """Tasks ended by TICK_KILL."""
    longest_wait_ns: int
    """Longest uninterrupted wait of a runnable task with the policy's default parameters."""
    waiter: int
    """PID of the task with the longest wait."""
    cpus: int
    """Number of CPUs in the setup with the longest wait."""
    never_served: int
    """Tasks that were runnable for at least half of a setup and never selected."""
    depends_on_time: int
    """1 if decisions depend on the absolute time, even where no clock wraps."""
    wraps: tuple[str, ...] = ()
    """Source lines where an unsigned number wrapped below 0 or above its maximum."""
    verifier_costs: tuple[HookCost, ...] = ()
    """Verifier costs of the hooks, the highest first; empty if the compiler cannot produce BPF."""


def sources_of(choice: PolicyChoice) -> list[Path]:
    """Returns the source files of a policy and its presets, the policy's own file first."""
    source = POLICIES / f"{choice.name}.c"
    bears_name = re.compile(rf'\.name = "{re.escape(choice.name)}"')
    studies = sorted((POLICIES / "studies").glob("*.c")) if choice.preset else []
    return [source, *(file for file in studies if bears_name.search(file.read_text()))]


_FAULTS: dict[int, str] = {
    signal.SIGILL: "does what C leaves undefined, such as an overflow or a wrong index",
    signal.SIGTRAP: "does what C leaves undefined, such as an overflow or a wrong index",
    signal.SIGFPE: "divides by zero",
}
"""Faults of a policy without sanitizers, by signal; other signals are invalid memory accesses."""


@cache
def has_sanitizers() -> bool:
    """Returns whether this host has clang with AddressSanitizer, and no limit on the address space."""
    need_checkout("checks of policies")
    need_if_installed("system-compiler", "sanitizers")
    compiler = find_system_compiler()
    return bool(compiler and compiler.sanitizer_library) and address_limit() is None


def unchecked() -> str:
    """Returns a sentence about the checks skipped on this host, or ""."""
    if has_sanitizers():
        return ""
    why = "this host has no sanitizers of clang"
    if address_limit() is not None:
        why = "`ulimit -v` leaves too little memory for the sanitizers"
    return (
        f"{why}: accesses beyond a variable, numbers that wrap, and what Linux's verifier"
        f" asks for are not checked ({COMMAND} doctor)"
    )


def check_once(source: Path) -> None:
    """Checks a source unless it has passed since its last change. Raises RuleBroken.

    Tasks bound to one CPU are not included, because a run need not have any.
    """
    passed_file = _folder(source) / "passed"
    expected_hash = _hash_of(source)
    if passed_file.is_file() and passed_file.read_text() == expected_hash:
        return
    check(source, bound=False)


def check(source: Path, bound: bool = True) -> Passed:
    """Checks a policy with the compiler, in the checked simulator, and against Linux's verifier.

    `bound` includes tasks bound to one CPU. Raises BuildFailed, and RuleBroken with the rule, hook,
    file, line, task and last decisions.
    """
    if not source.is_file():
        raise WrongUsage(
            f"policy {from_root(str(source))}: does not exist; list policies with "
            "./schedlab policies"
        )
    check_source(source)
    with built_alone(_kind(), source) as variables:
        _build(variables)
        passed = run(source, bound=bound)
        costs = examine(source) if has_sanitizers() else []
        (_folder(source) / "passed").write_text(_hash_of(source))
    return replace(passed, verifier_costs=tuple(costs))


def run(source: Path, tunables: str = "", bound: bool = True) -> Passed:
    """Runs the built check. `tunables` replaces the list of tested parameters.

    `bound` includes tasks bound to one CPU. Raises RuleBroken.
    """
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        workloads = [
            str(_played(words, Path(folder))) for words in (SCENARIO, SHARING, *([BOUND] * bound))
        ]
        return _run(source, [*workloads, *([""] * (not bound)), *([tunables] if tunables else [])])


def _played(words: Path, folder: Path) -> Path:
    """Writes a workload in the machines' binary format; returns its path."""
    place = folder / words.stem
    place.write_bytes(read_words(words.read_text(), _TICK_NS, words.name))
    return place


def run_workload(
    source: Path, policy: str, tunables: str, workload: bytes, cpus: int, tick_ns: int
) -> Passed:
    """Builds the checked simulator and runs one workload, with all costs but computing set to 0.

    `workload` has the format of abi/workload_file.h. Raises RuleBroken.
    """
    with (
        built_alone(_kind(), source) as variables,
        tempfile.NamedTemporaryFile(prefix="schedlab-") as file,
    ):
        _build(variables)
        file.write(workload)
        file.flush()
        return _run(source, [file.name, policy, tunables, str(cpus), str(tick_ns)])


@contextmanager
def built_alone(kind: str, source: Path) -> Iterator[dict[str, str]]:
    """Yields make's variables for a policy's file and name, for builds in build/`kind`.

    Until the block ends, no other process builds a policy of this name there: it may be another
    file's. Deletes what was built there from another file.
    """
    folder = BUILD / kind / policy_of(source)
    made_of = folder / "source"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        with working(f"another check of {folder.name} ends first"):
            fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir() and not (made_of.is_file() and made_of.read_text() == str(source)):
            shutil.rmtree(folder)
        folder.mkdir(exist_ok=True)
        made_of.write_text(str(source))
        yield {"FILE": os.path.relpath(source, ROOT), "NAME": policy_of(source)}


def _build(policy: dict[str, str]) -> None:
    variables = {"CHECKED": policy["FILE"], "CHECKED_NAME": policy["NAME"]}
    build("checked", variables=variables if has_sanitizers() else {**variables, "SANITIZED": ""})


def _run(source: Path, arguments: list[str]) -> Passed:
    program = _folder(source) / "schedlab-sim"
    try:
        with working(f"checking policy {source.stem}"):
            done = subprocess.run(
                [str(program), *arguments],
                cwd=ROOT,
                env=sanitizer_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_MOST_SECONDS,
                check=False,
            )
    except subprocess.TimeoutExpired:
        raise RuleBroken(
            f"policy {policy_of(source)}: its check did not finish within {_MOST_SECONDS} s"
        ) from None
    if done.returncode == WrongUsage.exit_status and "contradicts itself" not in done.stderr:
        raise RuleBroken(f"policy {policy_of(source)}: its check failed: {done.stderr.strip()}")
    if done.returncode:
        raise RuleBroken(failure_text(source, program, done.stderr.splitlines()))
    counts: dict[str, Any] = {
        name: int(value) for name, value in map(str.split, done.stdout.splitlines())
    }
    return Passed(**counts, wraps=tuple(_wraps(source, done.stderr)))


def _wraps(source: Path, output: str) -> Iterator[str]:
    file = from_root(str(source))
    lines = {
        int(match[2]) for match in _WRAP.finditer(output) if Path(match[1]).name == source.name
    }
    yield from (f"{file}:{line}" for line in sorted(lines))


def sanitizer_environment() -> dict[str, str]:
    """Returns the environment of programs compiled with sanitizers."""
    environment = {
        **os.environ,
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
        "UBSAN_OPTIONS": "print_summary=0",
    }
    if tool := symbolizer():
        environment["ASAN_SYMBOLIZER_PATH"] = tool
    return environment


def failure_text(source: Path, program: Path, lines: list[str]) -> str:
    """Returns the checked simulator's output as a headline with details below it."""
    hook = next((match[1] for line in lines if (match := _HOOK.match(line))), "")
    rule = _rule(source, program, lines, hook)
    about = list(_circumstances(program, lines))
    headline = (
        f"policy {policy_of(source)} broke a rule: {rule}"
        if rule
        else f"policy {policy_of(source)}: its check failed"
    )
    if not about:
        known = (_RULE, _FLAW, _WRAP)
        about = [line for line in lines if not any(pattern.match(line) for pattern in known)][-20:]
    return f"{headline}:\n{indent(about)}" if about else headline


def _rule(source: Path, program: Path, lines: list[str], hook: str) -> str:
    stack = [
        place
        for line in lines
        if (match := _FRAME.match(line))
        and (place := Place(match[1], from_root(match[2]), int(match[3]))).in_policy
    ]
    if stopped := next(
        (m for line in lines if (m := _LOOP.match(line) or _FAULT.match(line))), None
    ):
        # The stack lacks this location if the signal interrupted a call.
        address = int(stopped[stopped.re.groups], 16)
        frames = places_of(program, [address]).get(address, [])
        stack = [place for place in (*frames, *stack) if place.in_policy and place.line]
    at = f", at {stack[0].file}:{stack[0].line}" if stack else ""
    inside = f", in {stack[0].function}()" if len(set(stack)) > 1 else ""
    for line in lines:
        if match := _FLAW.match(line):
            return match[1]
        if match := _RULE.match(line):
            return match[1] + _writers(source, match[1])
        if _LOOP.match(line):
            return f"{hook}() does not end: there is an endless loop{inside}{at}"
        if match := _FAULT.match(line):
            deed = _FAULTS.get(int(match[1]), "reads or writes memory that is not there")
            return f"{match[2]}() {deed}{inside}{at}"
        if (match := _UNDEFINED.match(line)) and not _WRAP.match(line):
            return f"{hook}(): {match[3]}, at {from_root(match[1])}:{match[2]}"
        if match := _ADDRESS.search(line):
            deed = _ADDRESS_DEEDS.get(match[1], f"{_OTHERS} {match[1]}").format(address=match[2])
            return f"{hook}() {deed}{inside}{at}"
    return ""


def _writers(source: Path, rule: str) -> str:
    """Returns the lines that write to the field named in a rule, or "" if it names none."""
    match = _FIELD.search(rule)
    if not match:
        return ""
    written = re.compile(
        rf"->{match[2]}\s*(?:[-+*/|&^]?=(?!=)|\+\+|--)|(?:\+\+|--)\w+->{match[2]}\b"
    )
    file = from_root(str(source))
    places = [
        f"{file}:{number}"
        for number, line in enumerate(source.read_text().splitlines(), 1)
        if written.search(line)
    ]
    return f", at {' or '.join(places)}" if places else ""


def _circumstances(program: Path, lines: list[str]) -> Iterator[str]:
    """Yields the hook, the task and the last decisions."""
    begin = next((i for i, line in enumerate(lines) if _HOOK.match(line)), len(lines))
    for line in lines[begin:]:
        match = _FUNCTION.match(line)
        if not match:
            yield line
            continue
        for place in places_of(program, [int(match[1], 16)]).get(int(match[1], 16), [])[-1:]:
            yield f"  {place}"


def _folder(source: Path) -> Path:
    return BUILD / _kind() / policy_of(source)


def _kind() -> str:
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

# SPDX-License-Identifier: MIT
"""A policy in the checked simulator: under sanitizers, each hook watched (sim/checked/hooks.h)."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import BuildFailed, RuleBroken, WrongUsage
from schedlab.machines.outcome import indent
from schedlab.paths import BUILD, ROOT
from schedlab.toolchain.build import build
from schedlab.toolchain.places import Place, from_root, places_of, symbolizer
from schedlab.toolchain.policies import PolicyChoice
from schedlab.toolchain.tools import compiler, output

POLICIES = ROOT / "policies"
SCENARIO = ROOT / "sim" / "checked" / "scenario.txt"
_MOST_SECONDS = 120

_RULE = re.compile(r"^schedlab-sim: policy \S+ broke a rule: (.*)")
_LOOP = re.compile(r"^schedlab-sim: policy \S+: endless loop in its hook (\w+)")
_UNDEFINED = re.compile(r"^(\S+?):(\d+):\d+: runtime error: (.*)")
_ADDRESS = re.compile(r"ERROR: AddressSanitizer: (\S+) on (?:unknown )?address (0x[0-9a-f]+)")
_FRAME = re.compile(r"^ +#\d+ 0x[0-9a-f]+ in (\w+) (\S+?):(\d+)")
_HOOK = re.compile(r"^in its hook (\w+)\(\)")
_FUNCTION = re.compile(r"^  (0x[0-9a-f]+)$")
_FIELD = re.compile(r"wrote to (\w+)->(\w+)")
_VARIABLE = re.compile(r"^[0-9a-f]+ [BbDdCS] (\w+)")
_OTHERS = "AddressSanitizer reports"
_ADDRESS_DEEDS = {
    "SEGV": "reads or writes address {address}, where nothing is",
    "use-after-poison": "reads or writes behind its state, of which it has as much as .task_bytes says",
    "stack-buffer-overflow": "reads or writes behind a variable on the stack",
    "stack-overflow": "calls itself without end",
    "global-buffer-overflow": "reads or writes behind a table",
    "FPE": "divides by zero",
}


@dataclass(frozen=True)
class Passed:
    """What a policy's source was tried in, without breaking a rule."""

    setups: int
    decisions: int
    kills: int
    """How often it ended a task by TICK_KILL."""


def sources_of(choice: PolicyChoice) -> list[Path]:
    """Returns the files that define a policy and its presets, its own first."""
    own = POLICIES / f"{choice.name}.c"
    bears_name = re.compile(rf'\.name = "{re.escape(choice.name)}"')
    studies = sorted((POLICIES / "studies").glob("*.c")) if choice.preset else []
    return [own, *(file for file in studies if bears_name.search(file.read_text()))]


def can_check() -> bool:
    """Has this host the sanitizers' library?"""
    try:
        return compiler().sanitizer_library is not None
    except BuildFailed:
        return False


def check_once(source: Path) -> None:
    """Checks a source that has not passed since it was changed last. Raises RuleBroken."""
    kept = _folder(source) / "passed"
    wanted = _hash_of(source)
    if kept.is_file() and kept.read_text() == wanted:
        return
    check(source)


def check(source: Path) -> Passed:
    """Raises RuleBroken with the rule, hook, file and line, the task and the last decisions."""
    if not source.is_file():
        raise WrongUsage(f"there is no policy {from_root(str(source))}")
    build("checked", variables={"CHECKED": os.path.relpath(source, ROOT)})
    check_variables(source, _folder(source) / "policy.o")
    passed = run(source)
    (_folder(source) / "passed").write_text(_hash_of(source))
    return passed


def run(source: Path, tunables: str = "") -> Passed:
    """Tries what was built. `tunables`: instead of all values, these. Raises RuleBroken."""
    return _run(source, [str(SCENARIO), *([tunables] if tunables else [])])


def run_workload(
    source: Path, policy: str, tunables: str, workload: str, cpus: int, tick_ns: int
) -> Passed:
    """Builds the checked simulator, and runs one workload in it, on a machine on which only computing takes time.

    `workload`: in the simulator's own form. Raises RuleBroken.
    """
    build("checked", variables={"CHECKED": os.path.relpath(source, ROOT)})
    with tempfile.NamedTemporaryFile("w", prefix="schedlab-", suffix=".txt") as file:
        file.write(workload)
        file.flush()
        return _run(source, [file.name, policy, tunables, str(cpus), str(tick_ns)])


def _run(source: Path, arguments: list[str]) -> Passed:
    program = _folder(source) / "schedlab-sim"
    try:
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
            f"policy {source.stem}: its check did not end within {_MOST_SECONDS} s"
        ) from None
    if done.returncode:
        raise RuleBroken(told(source, program, done.stderr.splitlines()))
    counts = dict(line.split() for line in done.stdout.splitlines())
    return Passed(int(counts["setups"]), int(counts["decisions"]), int(counts["kills"]))


def sanitizer_environment() -> dict[str, str]:
    """Returns the environment of a program that is compiled with sanitizers."""
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0"}
    if tool := symbolizer():
        environment["ASAN_SYMBOLIZER_PATH"] = tool
    return environment


def check_variables(source: Path, compiled: Path) -> None:
    """Raises RuleBroken if the policy keeps variables: kernel, simulator and Linux know nothing of them."""
    lines = output(compiler().symbol_lister, str(compiled)).splitlines()
    names = [
        match[1].partition(".")[2] or match[1] for line in lines if (match := _VARIABLE.match(line))
    ]
    if not names:
        return
    places = ", ".join(f"{name} at {_line_of(source, name)}" for name in names)
    raise RuleBroken(
        f"policy {source.stem} broke a rule: it keeps variables of its own: {places}. What it remembers belongs"
        " into the state of a task, a queue or the scheduler (STATE_OF)"
    )


def told(source: Path, program: Path, lines: list[str]) -> str:
    """Returns what the checked simulator said, as a headline and the circumstances below it."""
    hook = next((match[1] for line in lines if (match := _HOOK.match(line))), "")
    rule = _rule(source, lines, hook)
    about = list(_circumstances(program, lines))
    headline = (
        f"policy {source.stem} broke a rule: {rule}"
        if rule
        else f"policy {source.stem}: its check failed"
    )
    if not about:
        about = [line for line in lines if not _RULE.match(line)][-20:]
    return f"{headline}:\n{indent(about)}" if about else headline


def _rule(source: Path, lines: list[str], hook: str) -> str:
    stack = [
        place
        for line in lines
        if (match := _FRAME.match(line))
        and (place := Place(match[1], from_root(match[2]), int(match[3]))).in_policy
    ]
    at = f", at {stack[0].file}:{stack[0].line}" if stack else ""
    inside = f", in {stack[0].function}()" if len(set(stack)) > 1 else ""
    for line in lines:
        if match := _RULE.match(line):
            return match[1] + _writers(source, match[1])
        if _LOOP.match(line):
            return f"{hook}() does not end: there is an endless loop{inside}{at}"
        if match := _UNDEFINED.match(line):
            return f"{hook}(): {match[3]}, at {from_root(match[1])}:{match[2]}"
        if match := _ADDRESS.search(line):
            deed = _ADDRESS_DEEDS.get(match[1], f"{_OTHERS} {match[1]}").format(address=match[2])
            return f"{hook}() {deed}{inside}{at}"
    return ""


def _writers(source: Path, rule: str) -> str:
    """Returns the lines that write to the field that a rule is about, or "" if it is about none."""
    match = _FIELD.search(rule)
    if not match:
        return ""
    written = re.compile(
        rf"->{match[2]}\s*(?:[-+*/|&^]?=(?!=)|\+\+|--)|(?:\+\+|--)\w+->{match[2]}\b"
    )
    file = from_root(str(source))
    found = [
        f"{file}:{number}"
        for number, line in enumerate(source.read_text().splitlines(), 1)
        if written.search(line)
    ]
    return f", at {' or '.join(found)}" if found else ""


def _circumstances(program: Path, lines: list[str]) -> Iterator[str]:
    """The hook, the task, and the last decisions."""
    begin = next((i for i, line in enumerate(lines) if _HOOK.match(line)), len(lines))
    for line in lines[begin:]:
        match = _FUNCTION.match(line)
        if not match:
            yield line
            continue
        for place in places_of(program, [int(match[1], 16)]).get(int(match[1], 16), [])[-1:]:
            yield f"  {place}"


def _line_of(source: Path, name: str) -> str:
    word = re.compile(rf"\b{re.escape(name)}\b")
    lines = enumerate(source.read_text().splitlines(), 1)
    number = next((number for number, line in lines if word.search(line)), 0)
    return f"{from_root(str(source))}:{number}"


def _folder(source: Path) -> Path:
    return BUILD / "checked" / source.stem


def _hash_of(source: Path) -> str:
    """Of the policy, what it includes, and what checks it."""
    files = [source, *sorted(POLICIES.glob("*.h")), *sorted((ROOT / "sim" / "checked").iterdir())]
    whole = hashlib.sha256()
    for file in files:
        whole.update(file.name.encode() + b"\0" + file.read_bytes())
    return whole.hexdigest()

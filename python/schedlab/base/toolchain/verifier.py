# SPDX-License-Identifier: MIT
"""Predicts what Linux's verifier finds in a policy, from its BPF object and without Linux."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.toolchain.bpf_object import (
    CALL_DEPTH,
    STACK_BYTES,
    Function,
    Object,
    read_object,
)
from schedlab.base.toolchain.diagnosis import policy_of, symbol_of, with_hints
from schedlab.base.toolchain.source_lines import from_root
from schedlab.base.toolchain.tools import compiler
from schedlab.errors import BuildFailed, RuleBroken
from schedlab.paths import ROOT

_TURNS = 3
"""Assumed iterations of a loop in the estimate."""
_FLAGS = [
    *("--target=bpf", "-mcpu=v4", "-std=gnu17", "-O2", "-g", "-fno-builtin"),
    *(
        "-fms-extensions",
        "-Wno-microsoft-anon-tag",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I.",
        "-Ipolicies",
    ),
]
_HOOKS = "struct_ops/"


@dataclass(frozen=True)
class HookCost:
    """The verifier's estimated work for a hook.

    `instructions` assumes _TURNS iterations per loop, to compare hooks. `loops` are the first lines
    of the deepest nested loops, the outermost first.
    """

    hook: str
    instructions: int
    loops: tuple[str, ...]


def compiled(source: Path, output: Path) -> None:
    """Compiles a policy as a BPF program. Raises BuildFailed with the compiler's errors."""
    flags = [
        *_FLAGS,
        f'-DPOLICY_SOURCE="{from_root(str(source.resolve()))}"',
        f"-DPOLICY={symbol_of(source)}",
    ]
    done = subprocess.run(
        [*compiler().clang, *flags, "-c", "linux/policy_compile.bpf.c", "-o", str(output)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildFailed(
            f"{from_root(str(source))}: does not compile for BPF:\n{with_hints(done.stderr)}"
        )


def examine(source: Path) -> list[HookCost]:
    """Returns the hooks' costs, the highest first.

    Raises RuleBroken for programs that the verifier would reject.
    """
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        place = Path(folder) / "policy.o"
        compiled(source, place)
        program = read_object(place)
    for function in program.functions:
        _check(source, program, function)
    hooks = [function for function in program.functions if function.section.startswith(_HOOKS)]
    costs = [
        HookCost(hook.section.removeprefix(_HOOKS), *_follow(program, hook, ())) for hook in hooks
    ]
    return sorted(costs, key=lambda cost: -cost.instructions)


def _check(source: Path, program: Object, function: Function) -> None:
    problem = ""
    if line := function.unguarded_loop():
        problem = f"{function.name}() has a loop without LOOP_GUARD, at {line}"
    elif function.indirect_calls:
        problem = f"{function.name}() calls through a pointer"
    else:
        try:
            stack, frames = program.deepest(function)
        except ValueError as error:
            problem = str(error)
        else:
            if stack > STACK_BYTES:
                problem = f"{function.name}() and what it calls take {stack} bytes of stack, of {STACK_BYTES}"
            elif frames >= CALL_DEPTH:
                problem = f"{function.name}() calls {frames} deep; Linux allows {CALL_DEPTH - 1}"
    if problem:
        raise RuleBroken(f"policy {policy_of(source)} broke a rule of Linux's verifier: {problem}")


def _follow(
    program: Object, function: Function, outer: tuple[str, ...]
) -> tuple[int, tuple[str, ...]]:
    """Returns the number of followed instructions, and the deepest chain of loops; requires no recursion."""
    around = function.nesting()
    total = sum(_TURNS ** len(around.get(index, ())) for index in function.successors)
    deepest = max((chain for chain in around.values()), key=len, default=())
    deepest = (*outer, *deepest)
    for index, (section, address) in zip(function.call_places, function.calls, strict=True):
        chain = around.get(index, ())
        below, loops = _follow(program, program.function_at(section, address), (*outer, *chain))
        total += _TURNS ** len(chain) * below
        deepest = max(deepest, loops, key=len)
    return total, deepest

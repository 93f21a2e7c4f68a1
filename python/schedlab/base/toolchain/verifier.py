# SPDX-License-Identifier: MIT
"""Predicts, without Linux, what the verifier of Linux would object to in a policy's BPF object."""

from __future__ import annotations

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
from schedlab.base.toolchain.diagnosis import add_hints, policy_of, symbol_of
from schedlab.base.toolchain.source_lines import path_from_root
from schedlab.base.toolchain.tools import require_compiler, run_captured
from schedlab.errors import BuildFailed, RuleBroken
from schedlab.paths import ROOT

_LOOP_ITERATIONS = 3
"""Number of iterations that the estimate assumes for each loop."""
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
_HOOK_SECTION_PREFIX = "struct_ops/"


@dataclass(frozen=True)
class HookCost:
    """How much work a hook is for the verifier, as estimated.

    `instructions`: instructions to follow, with _LOOP_ITERATIONS iterations per loop; only for comparing
    hooks. `loops`: source lines of the deepest nested loops, outermost first.
    """

    hook: str
    instructions: int
    loops: tuple[str, ...]


def compile_for_bpf(source: Path, output: Path) -> None:
    """Compiles a policy as a BPF program. Raises BuildFailed with the compiler's errors."""
    flags = [
        *_FLAGS,
        f'-DPOLICY_SOURCE="{path_from_root(str(source.resolve()))}"',
        f"-DPOLICY={symbol_of(source)}",
    ]
    result = run_captured(
        [*require_compiler().clang, *flags, "-c", "linux/policy_compile.bpf.c", "-o", str(output)],
        cwd=ROOT,
    )
    if result.returncode:
        raise BuildFailed(
            f"{path_from_root(str(source))}: does not compile for BPF:\n{add_hints(result.stderr)}"
        )


def estimate_hook_costs(source: Path) -> list[HookCost]:
    """Returns the costs of all hooks, the highest first.

    Raises RuleBroken if the verifier would reject the policy.
    """
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        path = Path(folder) / "policy.o"
        compile_for_bpf(source, path)
        program = read_object(path)
    for function in program.functions:
        _check_rules(source, program, function)
    hooks = [
        function
        for function in program.functions
        if function.section.startswith(_HOOK_SECTION_PREFIX)
    ]
    costs = [
        HookCost(
            hook.section.removeprefix(_HOOK_SECTION_PREFIX), *_estimate_work(program, hook, ())
        )
        for hook in hooks
    ]
    return sorted(costs, key=lambda cost: -cost.instructions)


def _check_rules(source: Path, program: Object, function: Function) -> None:
    breach = ""
    if line := function.unguarded_loop():
        breach = f"{function.name}() has a loop without LOOP_GUARD, at {line}"
    elif function.indirect_calls:
        breach = f"{function.name}() calls through a pointer"
    else:
        try:
            stack, frames = program.deepest(function)
        except ValueError as error:
            breach = str(error)
        else:
            if stack > STACK_BYTES:
                breach = f"{function.name}() and what it calls take {stack} bytes of stack, of {STACK_BYTES}"
            elif frames >= CALL_DEPTH:
                breach = f"{function.name}() calls {frames} deep; Linux allows {CALL_DEPTH - 1}"
    if breach:
        raise RuleBroken(f"policy {policy_of(source)} broke a rule of Linux's verifier: {breach}")


def _estimate_work(
    program: Object, function: Function, outer: tuple[str, ...]
) -> tuple[int, tuple[str, ...]]:
    """Returns how many instructions the verifier follows in a function, and the deepest nesting of
    loops.

    There must be no recursion.
    """
    enclosing_loops = function.nesting()
    total = sum(
        _LOOP_ITERATIONS ** len(enclosing_loops.get(index, ())) for index in function.successors
    )
    deepest = max((chain for chain in enclosing_loops.values()), key=len, default=())
    deepest = (*outer, *deepest)
    for index, (section, address) in zip(function.call_places, function.calls, strict=True):
        chain = enclosing_loops.get(index, ())
        callee_work, loops = _estimate_work(
            program, program.function_at(section, address), (*outer, *chain)
        )
        total += _LOOP_ITERATIONS ** len(chain) * callee_work
        deepest = max(deepest, loops, key=len)
    return total, deepest

# SPDX-License-Identifier: MIT
"""Predicts, without Linux, what the verifier of Linux would object to in a policy's BPF object."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from schedlab.base.toolchain.diagnosis import add_hints, policy_of, symbol_of
from schedlab.base.toolchain.source_lines import path_from_root
from schedlab.base.toolchain.tools import (
    program_output,
    require_compiler,
    require_system_compiler,
    run_captured,
)
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


STACK_BYTES = 512  # of a program and all that it calls
CALL_DEPTH = 8  # frames


@dataclass
class Function:
    """A function in a BPF object: its calls, its stack and its loops."""

    name: str
    section: str
    start: int  # in the section, in bytes
    end: int
    stack: int = 0  # bytes
    calls: list[tuple[str, int]] = field(default_factory=list)  # section and address
    call_places: list[int] = field(default_factory=list)  # the instructions of these calls
    lines: dict[int, str] = field(default_factory=dict)  # file:line of each instruction
    successors: dict[int, list[int]] = field(default_factory=dict)  # of each instruction
    guards: set[int] = field(default_factory=set)  # instructions that limit a loop
    indirect_calls: int = 0
    previous: str = ""  # the instruction read last

    def unguarded_loop(self) -> str | None:
        """Returns a source line of a loop without a guard (`can_loop`), or None if all loops have one."""
        loops = _loops(self.successors.keys() - self.guards, self.successors)
        return self.lines.get(min(map(min, loops)), "an unknown line") if loops else None

    def nesting(self) -> dict[int, tuple[str, ...]]:
        """Returns, for each instruction within loops, the first lines of these loops, outermost first."""
        enclosing_loops: dict[int, tuple[str, ...]] = {}
        self._add_nesting(set(self.successors), (), enclosing_loops)
        return enclosing_loops

    def _add_nesting(
        self,
        instructions: set[int],
        outer: tuple[str, ...],
        enclosing_loops: dict[int, tuple[str, ...]],
    ) -> None:
        for loop in _loops(instructions, self.successors):
            entries = {
                target
                for index, targets in self.successors.items()
                if index not in loop
                for target in targets
                if target in loop
            }
            first = min(entries or loop)
            line = self.lines.get(first, "an unknown line")
            # Two jumps back to the same instruction are one loop.
            chain = outer if outer and outer[-1] == line else (*outer, line)
            enclosing_loops.update(dict.fromkeys(loop, chain))
            self._add_nesting(loop - {first}, chain, enclosing_loops)


@dataclass
class Object:
    """The functions, sections and relocations of a BPF object file."""

    functions: list[Function]
    sections: dict[str, str]  # name to flags
    relocations: list[tuple[str, str, str]]  # section, type, symbol

    def function_at(self, section: str, address: int) -> Function:
        """Returns the function with the instruction at an address (bytes) of a section."""
        for function in self.functions:
            if function.section == section and function.start <= address < function.end:
                return function
        raise ValueError(f"no function at {section}+{address:#x}")

    def deepest(self, function: Function, callers: tuple[str, ...] = ()) -> tuple[int, int]:
        """Returns the stack bytes and the number of frames of the deepest chain of calls.

        Raises ValueError for recursion.
        """
        if function.name in callers:
            raise ValueError("recursion: " + " > ".join((*callers, function.name)))
        callee_depths = [
            self.deepest(self.function_at(section, address), (*callers, function.name))
            for section, address in function.calls
        ]
        # The kernel rounds each frame up to a multiple of 32 bytes.
        stack = (max(function.stack, 1) + 31) // 32 * 32
        return (
            stack + max((bytes_ for bytes_, _ in callee_depths), default=0),
            1 + max((frames for _, frames in callee_depths), default=0),
        )


def _loops(instructions: set[int], successors: dict[int, list[int]]) -> list[set[int]]:
    """Returns the loops: strongly connected components of the control flow graph (Tarjan 1972)."""
    visit_numbers: dict[int, int] = {}
    lowest: dict[int, int] = {}
    path: list[int] = []
    loops: list[set[int]] = []
    for root in sorted(instructions):
        stack: list[tuple[int, list[int]]] = []
        if root not in visit_numbers:
            visit_numbers[root] = lowest[root] = len(visit_numbers)
            path.append(root)
            stack.append((root, [target for target in successors[root] if target in instructions]))
        while stack:
            node, pending = stack[-1]
            if pending:
                target = pending.pop()
                if target not in visit_numbers:
                    visit_numbers[target] = lowest[target] = len(visit_numbers)
                    path.append(target)
                    stack.append(
                        (
                            target,
                            [
                                successor
                                for successor in successors[target]
                                if successor in instructions
                            ],
                        )
                    )
                elif target in path:
                    lowest[node] = min(lowest[node], visit_numbers[target])
                continue
            stack.pop()
            if stack:
                lowest[stack[-1][0]] = min(lowest[stack[-1][0]], lowest[node])
            if lowest[node] == visit_numbers[node]:
                component = set(path[path.index(node) :])
                del path[path.index(node) :]
                if len(component) > 1 or node in successors[node]:
                    loops.append(component)
    return loops


def _output_lines(tool: str, *arguments: str) -> list[str]:
    """Returns the output lines of an LLVM tool. Raises BuildFailed if there are none."""
    program = require_system_compiler().tool(f"llvm-{tool}")
    listing = program_output(program, *arguments)
    if not listing:
        raise BuildFailed(f"{program} printed nothing about {arguments[-1]}: install llvm-19")
    return listing.splitlines()


def _read_section_flags(path: Path) -> tuple[dict[str, str], list[str]]:
    flags: dict[str, str] = {}
    names: list[str] = []
    for line in _output_lines("readelf", "-SW", str(path)):
        match = re.match(
            r"\s*\[\s*\d+\] (\S*)\s+\S+\s+[0-9a-f]{16} \S+ \S+ \S+\s+([A-Za-z]*)", line
        )
        if match:
            names.append(match[1])
            flags[match[1]] = match[2]
    return flags, names


def _read_functions(path: Path, section_names: list[str]) -> list[Function]:
    functions = []
    for line in _output_lines("readelf", "-sW", str(path)):
        columns = line.split()
        if len(columns) == 8 and columns[3] == "FUNC":
            start = int(columns[1], 16)
            size = int(columns[2], 0)
            section = section_names[int(columns[6])]
            functions.append(Function(columns[7], section, start, start + size))
    return functions


def _read_relocations(path: Path) -> list[tuple[str, str, str]]:
    relocations = []
    section = ""
    for line in _output_lines("readelf", "-rW", str(path)):
        header = re.match(r"Relocation section '\.rel(\S+)'", line)
        if header:
            section = header[1]
        entry = re.match(r"[0-9a-f]{16}\s+[0-9a-f]{16} (R_BPF_\w+)\s+[0-9a-f]+ (\S+)", line)
        if entry:
            relocations.append((section, entry[1], entry[2]))
    return relocations


def _next_instructions(index: int, instruction: str) -> list[int]:
    """Returns the indexes of the instructions that may follow one."""
    jump = re.search(r"(?:goto|gotol|may_goto) ([+-]0x[0-9a-f]+)", instruction)
    targets = [index + 1 + int(jump[1], 16)] if jump else []
    if not instruction.startswith(("goto", "exit")):
        targets.append(index + 1)
    return targets


def _add_instruction(result: Object, section: str, index: int, instruction: str) -> None:
    function = result.function_at(section, index * 8)
    for offset in re.findall(r"r10 - (0x[0-9a-f]+)", instruction):
        function.stack = max(function.stack, int(offset, 16))
    # An address on the stack is computed by a copy of r10, followed by an addition.
    address = re.match(r"(r\d+) \+= -(0x[0-9a-f]+)", instruction)
    if address and function.previous == f"{address[1]} = r10":
        function.stack = max(function.stack, int(address[2], 16))
    function.previous = instruction
    if "callx" in instruction:
        function.indirect_calls += 1
    elif match := re.match(r"call (-?0x[0-9a-f]+)", instruction):
        # Relative to the next instruction in the section. A relocation may correct it later.
        function.calls.append((section, (index + 1 + int(match[1], 16)) * 8))
        function.call_places.append(index)
    function.successors[index] = _next_instructions(index, instruction)
    if instruction.startswith("may_goto"):
        function.guards.add(index)


def read_object(path: Path) -> Object:
    """Reads a BPF object with LLVM's tools."""
    flags, names = _read_section_flags(path)
    result = Object(_read_functions(path, names), flags, _read_relocations(path))
    section = place = ""
    for line in _output_lines("objdump", "-drl", "--no-show-raw-insn", str(path)):
        if header := re.match(r"Disassembly of section (\S+):", line):
            section = header[1]
        elif code := re.match(r"\s+(\d+):\t(.*)", line):
            _add_instruction(result, section, int(code[1]), code[2].strip())
            result.function_at(section, int(code[1]) * 8).lines[int(code[1])] = place
        elif source := re.match(r"; (/?\S+\.[ch]:\d+)$", line):
            place = path_from_root(source[1])
        elif call := re.match(r"\s+([0-9a-f]{16}):\s+R_BPF_64_32\s+(\S+)", line):
            index = int(call[1], 16) // 8
            caller = result.function_at(section, index * 8)
            _, relative = caller.calls.pop()
            caller.calls.append((call[2], relative - index * 8))
    return result

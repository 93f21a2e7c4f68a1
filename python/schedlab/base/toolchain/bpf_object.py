# SPDX-License-Identifier: MIT
"""Reads the properties of a BPF object file that the kernel's verifier checks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from schedlab.base.toolchain.source_lines import from_root
from schedlab.base.toolchain.tools import output, system_compiler
from schedlab.errors import BuildFailed

STACK_BYTES = 512  # of a program and all that it calls
CALL_DEPTH = 8  # frames


@dataclass
class Function:
    """A function of the object: its calls, stack and loops."""

    name: str
    section: str
    start: int
    end: int
    stack: int = 0
    calls: list[tuple[str, int]] = field(default_factory=list)
    call_places: list[int] = field(default_factory=list)  # the instructions of these calls
    lines: dict[int, str] = field(default_factory=dict)  # file:line of each instruction
    successors: dict[int, list[int]] = field(default_factory=dict)  # of each instruction
    guards: set[int] = field(default_factory=set)
    indirect_calls: int = 0
    previous: str = ""  # the instruction read last

    def unguarded_loop(self) -> str | None:
        """Returns a line of a loop without a guard, or None if there is no such loop."""
        loops = _loops(self.successors.keys() - self.guards, self.successors)
        return self.lines.get(min(map(min, loops)), "an unknown line") if loops else None

    def nesting(self) -> dict[int, tuple[str, ...]]:
        """Returns the first lines of the loops around each instruction, the outermost first.

        Instructions outside of loops are omitted.
        """
        around: dict[int, tuple[str, ...]] = {}
        self._nest(set(self.successors), (), around)
        return around

    def _nest(
        self, inside: set[int], outer: tuple[str, ...], around: dict[int, tuple[str, ...]]
    ) -> None:
        for loop in _loops(inside, self.successors):
            entries = {
                to
                for index, targets in self.successors.items()
                if index not in loop
                for to in targets
                if to in loop
            }
            first = min(entries or loop)
            line = self.lines.get(first, "an unknown line")
            # Two back edges to the same beginning are one loop.
            chain = outer if outer and outer[-1] == line else (*outer, line)
            around.update(dict.fromkeys(loop, chain))
            self._nest(loop - {first}, chain, around)


@dataclass
class Object:
    """A BPF object file."""

    functions: list[Function]
    sections: dict[str, str]  # name to flags
    relocations: list[tuple[str, str, str]]  # section, type, symbol

    def function_at(self, section: str, address: int) -> Function:
        for function in self.functions:
            if function.section == section and function.start <= address < function.end:
                return function
        raise ValueError(f"no function at {section}+{address:#x}")

    def deepest(self, function: Function, callers: tuple[str, ...] = ()) -> tuple[int, int]:
        """Returns stack bytes and frames of the deepest call chain.

        Raises ValueError for recursion.
        """
        if function.name in callers:
            raise ValueError("recursion: " + " > ".join((*callers, function.name)))
        below = [
            self.deepest(self.function_at(section, address), (*callers, function.name))
            for section, address in function.calls
        ]
        # The kernel rounds frames up to 32 bytes.
        stack = (max(function.stack, 1) + 31) // 32 * 32
        return (
            stack + max((bytes_ for bytes_, _ in below), default=0),
            1 + max((frames for _, frames in below), default=0),
        )


def _loops(inside: set[int], successors: dict[int, list[int]]) -> list[set[int]]:
    """Returns the strongly connected components with cycles (Tarjan 1972)."""
    numbers: dict[int, int] = {}
    lowest: dict[int, int] = {}
    path: list[int] = []
    loops: list[set[int]] = []
    for root in sorted(inside):
        stack: list[tuple[int, list[int]]] = []
        if root not in numbers:
            numbers[root] = lowest[root] = len(numbers)
            path.append(root)
            stack.append((root, [to for to in successors[root] if to in inside]))
        while stack:
            node, left = stack[-1]
            if left:
                to = left.pop()
                if to not in numbers:
                    numbers[to] = lowest[to] = len(numbers)
                    path.append(to)
                    stack.append((to, [then for then in successors[to] if then in inside]))
                elif to in path:
                    lowest[node] = min(lowest[node], numbers[to])
                continue
            stack.pop()
            if stack:
                lowest[stack[-1][0]] = min(lowest[stack[-1][0]], lowest[node])
            if lowest[node] == numbers[node]:
                part = set(path[path.index(node) :])
                del path[path.index(node) :]
                if len(part) > 1 or node in successors[node]:
                    loops.append(part)
    return loops


def _lines_of(tool: str, *arguments: str) -> list[str]:
    """Returns the output of an LLVM tool. Raises BuildFailed if it is empty."""
    program = system_compiler().tool(f"llvm-{tool}")
    listing = output(program, *arguments)
    if not listing:
        raise BuildFailed(f"{program} printed nothing about {arguments[-1]}: install llvm-19")
    return listing.splitlines()


def _sections(path: Path) -> tuple[dict[str, str], list[str]]:
    flags: dict[str, str] = {}
    names: list[str] = []
    for line in _lines_of("readelf", "-SW", str(path)):
        match = re.match(
            r"\s*\[\s*\d+\] (\S*)\s+\S+\s+[0-9a-f]{16} \S+ \S+ \S+\s+([A-Za-z]*)", line
        )
        if match:
            names.append(match[1])
            flags[match[1]] = match[2]
    return flags, names


def _functions(path: Path, section_names: list[str]) -> list[Function]:
    functions = []
    for line in _lines_of("readelf", "-sW", str(path)):
        columns = line.split()
        if len(columns) == 8 and columns[3] == "FUNC":
            start = int(columns[1], 16)
            size = int(columns[2], 0)
            section = section_names[int(columns[6])]
            functions.append(Function(columns[7], section, start, start + size))
    return functions


def _relocations(path: Path) -> list[tuple[str, str, str]]:
    relocations = []
    section = ""
    for line in _lines_of("readelf", "-rW", str(path)):
        header = re.match(r"Relocation section '\.rel(\S+)'", line)
        if header:
            section = header[1]
        entry = re.match(r"[0-9a-f]{16}\s+[0-9a-f]{16} (R_BPF_\w+)\s+[0-9a-f]+ (\S+)", line)
        if entry:
            relocations.append((section, entry[1], entry[2]))
    return relocations


def _successors(index: int, instruction: str) -> list[int]:
    jump = re.search(r"(?:goto|gotol|may_goto) ([+-]0x[0-9a-f]+)", instruction)
    targets = [index + 1 + int(jump[1], 16)] if jump else []
    if not instruction.startswith(("goto", "exit")):
        targets.append(index + 1)
    return targets


def _read_instruction(result: Object, section: str, index: int, instruction: str) -> None:
    function = result.function_at(section, index * 8)
    for offset in re.findall(r"r10 - (0x[0-9a-f]+)", instruction):
        function.stack = max(function.stack, int(offset, 16))
    # An address on the stack: a copy of r10, and next the offset.
    address = re.match(r"(r\d+) \+= -(0x[0-9a-f]+)", instruction)
    if address and function.previous == f"{address[1]} = r10":
        function.stack = max(function.stack, int(address[2], 16))
    function.previous = instruction
    if "callx" in instruction:
        function.indirect_calls += 1
    elif match := re.match(r"call (-?0x[0-9a-f]+)", instruction):
        # Relative to the next instruction within the section; a relocation corrects it later.
        function.calls.append((section, (index + 1 + int(match[1], 16)) * 8))
        function.call_places.append(index)
    function.successors[index] = _successors(index, instruction)
    if instruction.startswith("may_goto"):
        function.guards.add(index)


def read_object(path: Path) -> Object:
    """Reads a BPF object with LLVM's tools."""
    flags, names = _sections(path)
    result = Object(_functions(path, names), flags, _relocations(path))
    section = place = ""
    for line in _lines_of("objdump", "-drl", "--no-show-raw-insn", str(path)):
        if header := re.match(r"Disassembly of section (\S+):", line):
            section = header[1]
        elif code := re.match(r"\s+(\d+):\t(.*)", line):
            _read_instruction(result, section, int(code[1]), code[2].strip())
            result.function_at(section, int(code[1]) * 8).lines[int(code[1])] = place
        elif source := re.match(r"; (/?\S+\.[ch]:\d+)$", line):
            place = from_root(source[1])
        elif call := re.match(r"\s+([0-9a-f]{16}):\s+R_BPF_64_32\s+(\S+)", line):
            index = int(call[1], 16) // 8
            caller = result.function_at(section, index * 8)
            _, relative = caller.calls.pop()
            caller.calls.append((call[2], relative - index * 8))
    return result

# SPDX-License-Identifier: MIT
"""What the kernel's verifier will ask of a BPF object, as far as the object file tells."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from policy_build import llvm, output_of

STACK_BYTES = 512  # of a program and all that it calls
CALL_DEPTH = 8  # frames


@dataclass
class Function:
    """A function of the object: what it calls, its stack, its loops."""

    name: str
    section: str
    start: int
    end: int
    stack: int = 0
    calls: list[tuple[str, int]] = field(default_factory=list)
    successors: dict[int, list[int]] = field(default_factory=dict)  # of each instruction
    guards: set[int] = field(default_factory=set)
    indirect_calls: int = 0
    previous: str = ""  # the instruction read last

    def has_unguarded_loop(self) -> bool:
        """Is there a way round that meets no guard?"""
        rest = {
            index: {target for target in targets if target not in self.guards}
            for index, targets in self.successors.items()
            if index not in self.guards
        }
        # What leads nowhere is on no way round; if all of it goes, nothing is.
        while ends := {index for index, targets in rest.items() if not targets & rest.keys()}:
            for index in ends:
                del rest[index]
        return bool(rest)


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
        """Stack bytes and frames of the worst chain of calls that begins in `function`."""
        if function.name in callers:
            raise ValueError("recursion: " + " > ".join((*callers, function.name)))
        below = [
            self.deepest(self.function_at(section, address), (*callers, function.name))
            for section, address in function.calls
        ]
        # The kernel counts a frame in steps of 32 bytes.
        stack = (max(function.stack, 1) + 31) // 32 * 32
        return (
            stack + max((bytes_ for bytes_, _ in below), default=0),
            1 + max((frames for _, frames in below), default=0),
        )


def _sections(path: Path) -> tuple[dict[str, str], list[str]]:
    flags: dict[str, str] = {}
    names: list[str] = []
    for line in output_of(llvm("readelf"), "-SW", str(path)):
        match = re.match(
            r"\s*\[\s*\d+\] (\S*)\s+\S+\s+[0-9a-f]{16} \S+ \S+ \S+\s+([A-Za-z]*)", line
        )
        if match:
            names.append(match[1])
            flags[match[1]] = match[2]
    return flags, names


def _functions(path: Path, section_names: list[str]) -> list[Function]:
    functions = []
    for line in output_of(llvm("readelf"), "-sW", str(path)):
        columns = line.split()
        if len(columns) == 8 and columns[3] == "FUNC":
            start = int(columns[1], 16)
            size = int(columns[2], 0)
            section = section_names[int(columns[6])]
            functions.append(Function(columns[7], section, start, start + size))
    return functions


def _relocations(path: Path) -> list[tuple[str, str, str]]:
    found = []
    section = ""
    for line in output_of(llvm("readelf"), "-rW", str(path)):
        header = re.match(r"Relocation section '\.rel(\S+)'", line)
        if header:
            section = header[1]
        entry = re.match(r"[0-9a-f]{16}\s+[0-9a-f]{16} (R_BPF_\w+)\s+[0-9a-f]+ (\S+)", line)
        if entry:
            found.append((section, entry[1], entry[2]))
    return found


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
        # Within a section relative to the next instruction; a relocation puts that right.
        function.calls.append((section, (index + 1 + int(match[1], 16)) * 8))
    function.successors[index] = _successors(index, instruction)
    if instruction.startswith("may_goto"):
        function.guards.add(index)


def read_object(path: Path) -> Object:
    """Reads a BPF object by the LLVM tools."""
    flags, names = _sections(path)
    result = Object(_functions(path, names), flags, _relocations(path))
    section = ""
    for line in output_of(llvm("objdump"), "-dr", "--no-show-raw-insn", str(path)):
        if header := re.match(r"Disassembly of section (\S+):", line):
            section = header[1]
        elif code := re.match(r"\s+(\d+):\t(.*)", line):
            _read_instruction(result, section, int(code[1]), code[2].strip())
        elif call := re.match(r"\s+([0-9a-f]{16}):\s+R_BPF_64_32\s+(\S+)", line):
            index = int(call[1], 16) // 8
            caller = result.function_at(section, index * 8)
            _, relative = caller.calls.pop()
            caller.calls.append((call[2], relative - index * 8))
    return result

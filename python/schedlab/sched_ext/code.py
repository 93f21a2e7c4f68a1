# SPDX-License-Identifier: MIT
"""The instructions of a scheduler: relocated against its data, its maps and the kernel."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from schedlab.sched_ext.btf import essential_name
from schedlab.sched_ext.btf_ext import CoreRelocation
from schedlab.sched_ext.bytes_reader import BadObject
from schedlab.sched_ext.elf import UNDEFINED, Section, Symbol
from schedlab.sched_ext.image import (
    CALL_FUNCTION,
    CALL_HELPER,
    CALL_MISSING,
    CALL_PROGRAM,
    INSTRUCTIONS_MAX,
    REGION_CODE,
    REGION_FUNCTIONS,
    REGION_VARIABLES,
    WIDE,
    Instruction,
)
from schedlab.sched_ext.kernel import Kernel, linux_name
from schedlab.sched_ext.object_file import BpfObject
from schedlab.sched_ext.relocation import Answer, Unresolved, resolve

CALL = 0x85
_LOAD, _LOAD_WIDE, _STORE, _STORE_REGISTER, _ALU32, _ALU64 = 1, 0, 2, 3, 4, 7
_SIZE_BITS = {1: 0x10, 2: 0x08, 4: 0x00, 8: 0x18}


@dataclass(frozen=True)
class Function:
    """A function of the scheduler's code."""

    name: str
    section: str
    first: int
    count: int


@dataclass(frozen=True)
class Missing:
    """Something that the kernel lacks and a program needs."""

    kind: str
    """kernel function, kernel symbol, helper, map type, field."""
    name: str
    programs: tuple[str, ...]
    """The programs that use it."""
    is_fatal: bool
    """True if the scheduler cannot run; otherwise the run ends when a program needs it."""

    def __str__(self) -> str:
        others_text = f" and {len(self.programs) - 3} more" if len(self.programs) > 3 else ""
        return f"{self.kind} {self.name}, used by {', '.join(self.programs[:3])}{others_text}"


@dataclass
class Code:
    """Relocated instructions and what is known about them."""

    instructions: list[Instruction] = field(default_factory=list)
    base: dict[int, int] = field(default_factory=dict)
    """First instruction of a section, by the section's index."""
    functions: list[Function] = field(default_factory=list)
    kernel_functions: dict[str, set[int]] = field(default_factory=dict)
    """Kernel functions that are called, with the calling instructions."""
    helpers: dict[int, set[int]] = field(default_factory=dict)
    """Helper functions that are called, with the calling instructions."""
    references: dict[int, set[int]] = field(default_factory=dict)
    """Functions that a function calls or passes, by their first instructions."""
    fields: set[str] = field(default_factory=set)
    """Fields of the kernel that the code accesses, such as `task_struct.scx.weight`."""
    local_types: set[int] = field(default_factory=set)
    """Types that the code names by number, for objects that it allocates."""
    lacks: dict[tuple[str, str], list[tuple[str, bool]]] = field(default_factory=dict)
    """What the kernel lacks, by kind and name: the programs that use it, and whether that is fatal."""

    def missing(self) -> list[Missing]:
        """Returns what the kernel lacks, with the programs that need it."""
        return [
            Missing(
                kind,
                name,
                tuple(dict.fromkeys(program for program, _ in uses)),
                any(is_fatal for _, is_fatal in uses),
            )
            for (kind, name), uses in self.lacks.items()
        ]

    def function_at(self, instruction: int) -> Function | None:
        """Returns the function that has an instruction."""
        low, high = 0, len(self.functions)
        while low < high:
            middle = (low + high) // 2
            if self.functions[middle].first <= instruction:
                low = middle + 1
            else:
                high = middle
        function = self.functions[low - 1] if low else None
        return function if function and instruction < function.first + function.count else None

    def name_at(self, instruction: int) -> str:
        function = self.function_at(instruction)
        return function.name if function else "code"

    def reachable(self, roots: Iterator[int] | list[int]) -> set[int]:
        """Returns the first instructions of all functions that run when the roots do."""
        reached: set[int] = set()
        pending = list(roots)
        while pending:
            first = pending.pop()
            if first not in reached:
                reached.add(first)
                pending += self.references.get(first, ())
        return reached


class CodeLinker:
    """Relocates an object's instructions.

    `address_of` returns the address of a symbol of the object's data or maps.
    `text` adds a text to the image.
    """

    def __init__(
        self,
        program: BpfObject,
        kernel: Kernel,
        address_of: Callable[[Symbol, int], int],
        kernel_address: Callable[[Symbol], int | None],
        text: Callable[[str], int],
    ) -> None:
        self._program = program
        self._kernel = kernel
        self._address_of = address_of
        self._kernel_address = kernel_address
        self._text = text
        self._of_kernel = program.btf.section_names(".ksyms")
        """Other undefined symbols belong to objects that this one is to be linked with."""
        self.code = Code()
        self._poisoned: set[int] = set()
        """Instructions that end the run with the name of what is missing."""

    def link(self) -> Code:
        """Returns the relocated code. Raises BadObject if the object is damaged."""
        code = self.code
        for section in self._program.code_sections:
            code.base[section.index] = len(code.instructions)
            code.instructions += map(Instruction._make, struct.iter_unpack("<BBhi", section.data))
            if len(code.instructions) > INSTRUCTIONS_MAX:
                raise BadObject(f"more than {INSTRUCTIONS_MAX} instructions")
        for section in self._program.code_sections:
            self._add_functions(section)
        relocated = set(self._relocate_symbols())
        self._relocate_core()
        self._check_calls(relocated)
        return code

    def _add_functions(self, section: Section) -> None:
        base, end = self.code.base[section.index], section.size // 8
        symbols = self._program.functions_of(section)
        position = 0
        for number, symbol in enumerate(symbols):
            first = symbol.value // 8
            following = [other.value // 8 for other in symbols[number + 1 :][:1]]
            last = min([end, *following, *([first + symbol.size // 8] if symbol.size else [])])
            if position <= first < last:
                self.code.functions.append(
                    Function(symbol.name, section.name, base + first, last - first)
                )
                position = last

    def _relocate_symbols(self) -> Iterator[int]:
        """Applies the relocations by symbols. Yields the relocated instructions."""
        for section in self._program.code_sections:
            base = self.code.base[section.index]
            for relocation in self._program.elf.relocations(section):
                if relocation.offset % 8:
                    raise BadObject(
                        f"a relocation of section {section.name} is inside an instruction"
                    )
                at = base + relocation.offset // 8
                instruction = self.code.instructions[at]
                if instruction.op == CALL:
                    self._relocate_call(at, relocation.symbol)
                elif instruction.op == WIDE:
                    self._relocate_address(at, relocation.symbol)
                else:
                    raise BadObject(f"{self.code.name_at(at)}: a relocation of an unknown kind")
                yield at

    def _relocate_call(self, at: int, symbol: Symbol) -> None:
        """Relocates a call of a kernel function, or of another function of the object."""
        op, registers, _, immediate = self.code.instructions[at]
        if symbol.section == UNDEFINED:
            name = essential_name(symbol.name)
            function_id = self._kernel.functions.get(name)
            if function_id is None:
                self._miss_function(at, symbol, name)
                return
            self.code.kernel_functions.setdefault(name, set()).add(at)
            source, value = CALL_FUNCTION, function_id
        else:
            source, value = (CALL_PROGRAM, self._target(at, symbol, immediate + 1) - at - 1)
        self.code.instructions[at] = Instruction(op, registers & 15 | source << 4, 0, value)

    def _miss_function(self, at: int, symbol: Symbol, name: str) -> None:
        if not symbol.is_weak:
            kind = "kernel function" if symbol.name in self._of_kernel else "unlinked function"
            self._add_missing(at, kind, name, is_fatal=True)
        self._poison(at, f"kernel function {name}")

    def _target(self, at: int, symbol: Symbol, instructions: int) -> int:
        """Returns the instruction that a symbol of the code plus a distance names."""
        if symbol.section not in self.code.base:
            raise BadObject(
                f"{self.code.name_at(at)}: a call of {symbol.name}, which is not a function"
            )
        target = self.code.base[symbol.section] + symbol.value // 8 + instructions
        if not 0 <= target < len(self.code.instructions):
            raise BadObject(f"{self.code.name_at(at)}: a call outside of the code")
        return target

    def _relocate_address(self, at: int, symbol: Symbol) -> None:
        immediate = self.code.instructions[at].immediate
        if symbol.section == UNDEFINED:
            value = self._address_in_kernel(at, symbol)
        elif symbol.section in self.code.base:
            target = self._target(at, symbol, immediate // 8)
            self._add_reference(at, target)
            value = REGION_CODE << 32 | target
        else:
            value = self._address_of(symbol, immediate)
        self._set_wide(at, value)

    def _address_in_kernel(self, at: int, symbol: Symbol) -> int:
        """Returns the address of a kernel symbol; 0 if the kernel lacks it."""
        address = self._kernel_address(symbol)
        if address is not None:
            return address
        name = essential_name(symbol.name)
        if name in self._kernel.functions:
            return REGION_FUNCTIONS << 32 | self._kernel.functions[name]
        if name in self._kernel.variables:
            return REGION_VARIABLES << 32 | self._kernel.variables[name]
        if not symbol.is_weak:
            kind = "kernel symbol" if symbol.name in self._of_kernel else "unlinked variable"
            self._add_missing(at, kind, name, is_fatal=True)
        return 0

    def _set_wide(self, at: int, value: int) -> None:
        if at + 1 >= len(self.code.instructions):
            raise BadObject(f"{self.code.name_at(at)}: an incomplete 64-bit immediate")
        op, registers, _, _ = self.code.instructions[at]
        low, high = _signed(value & 0xFFFFFFFF), _signed(value >> 32 & 0xFFFFFFFF)
        self.code.instructions[at] = Instruction(op, registers & 15, 0, low)
        self.code.instructions[at + 1] = Instruction(0, 0, 0, high)

    def _poison(self, at: int, name: str) -> None:
        """Replaces an instruction by a call that ends the run with the name of what is missing."""
        call = Instruction(CALL, CALL_MISSING << 4, 0, self._text(name))
        is_wide = self.code.instructions[at].op == WIDE and at + 1 < len(self.code.instructions)
        for place in (at, at + 1) if is_wide else (at,):
            self.code.instructions[place] = call
            self._poisoned.add(place)

    def _add_missing(self, at: int, kind: str, name: str, is_fatal: bool) -> None:
        self.code.lacks.setdefault((kind, name), []).append((self.code.name_at(at), is_fatal))

    def _add_reference(self, at: int, target: int) -> None:
        function, other = self.code.function_at(at), self.code.function_at(target)
        if function and other:
            self.code.references.setdefault(function.first, set()).add(other.first)

    # ---- CO-RE ----

    def _relocate_core(self) -> None:
        """Answers the questions about the kernel's types (CO-RE)."""
        if not self._program.ext:
            return
        sections = {section.name: section for section in self._program.code_sections}
        answers: dict[tuple[int, str, str], Answer | Unresolved] = {}
        for relocation in self._program.ext.core_relocations():
            section = sections.get(relocation.section)
            if not section:
                continue
            if relocation.offset % 8 or relocation.offset >= section.size:
                raise BadObject(f"a CO-RE relocation of section {section.name} lies outside of it")
            instruction = self.code.base[section.index] + relocation.offset // 8
            key = (relocation.type, relocation.access, relocation.kind)
            if key not in answers:
                answers[key] = self._resolve_relocation(relocation)
            answer = answers[key]
            if isinstance(answer, Unresolved):
                self._add_missing(instruction, "field", str(answer), is_fatal=False)
                self._poison(instruction, f"field {answer}")
                continue
            if relocation.kind == "byte_offset":
                self.code.fields.add(answer.field)
            if relocation.kind == "type_id_local":
                self.code.local_types.add(relocation.type)
            self._patch(instruction, answer)

    def _resolve_relocation(self, relocation: CoreRelocation) -> Answer | Unresolved:
        try:
            return resolve(
                self._program.btf,
                self._kernel.btf,
                relocation.type,
                relocation.access,
                relocation.kind,
            )
        except Unresolved as error:
            return error

    def _patch(self, at: int, answer: Answer) -> None:
        """Writes a relocation's value into an instruction, as libbpf does."""
        op, registers, offset, immediate = self.code.instructions[at]
        group = op & 7
        if op == WIDE:
            self._set_wide(at, answer.value)
        elif group in (_ALU32, _ALU64):
            self.code.instructions[at] = Instruction(
                op, registers, offset, _signed(answer.value & 0xFFFFFFFF)
            )
        elif group in (_LOAD, _STORE, _STORE_REGISTER):
            if answer.value > 0x7FFF:
                raise BadObject(f"{self.code.name_at(at)}: a field's offset exceeds 32767")
            if answer.load_bytes in _SIZE_BITS:
                op = op & ~0x18 | _SIZE_BITS[answer.load_bytes]
            self.code.instructions[at] = Instruction(op, registers, answer.value, immediate)
        else:
            raise BadObject(f"{self.code.name_at(at)}: a CO-RE relocation of operation {op:#x}")

    # ---- calls ----

    def _check_calls(self, relocated: set[int]) -> None:
        """Notes what the code calls. Raises BadObject for calls that no compiler makes."""
        second = -1
        for index, instruction in enumerate(self.code.instructions):
            if index == second or index in self._poisoned:
                continue
            source = instruction.registers >> 4
            if instruction.op == WIDE:
                second = index + 1
                if source:
                    raise BadObject(f"{self.code.name_at(index)}: an address without a relocation")
            elif instruction.op == CALL:
                if source == CALL_HELPER:
                    self.code.helpers.setdefault(instruction.immediate, set()).add(index)
                elif source == CALL_PROGRAM:
                    self._add_reference(index, index + 1 + instruction.immediate)
                elif source != CALL_FUNCTION or index not in relocated:
                    raise BadObject(f"{self.code.name_at(index)}: a call without a relocation")

    def poison_missing_helpers(self, roots: list[int]) -> None:
        """Replaces calls of helpers that the engine lacks; these are fatal if `roots` reach them."""
        run = self.code.reachable(roots)
        for number, places in sorted(self.code.helpers.items()):
            if number in self._kernel.helpers:
                continue
            for at in sorted(places):
                function = self.code.function_at(at)
                is_fatal = bool(function and function.first in run)
                name = linux_name("helpers", number)
                self._add_missing(at, "helper", name, is_fatal)
                self._poison(at, f"helper {name}")


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value

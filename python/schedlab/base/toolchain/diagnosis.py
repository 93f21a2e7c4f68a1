# SPDX-License-Identifier: MIT
"""Finds mistakes in a policy's source, with messages that are the same in every command."""

import re
import secrets
import shlex
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.toolchain.source_lines import path_from_root
from schedlab.base.toolchain.tools import require_compiler, run_captured
from schedlab.errors import BuildFailed, RuleBroken
from schedlab.paths import ROOT

KERNEL_FLAGS = (
    "--target=riscv64-unknown-elf -march=rv64imac_zicsr_zicntr_zifencei -mabi=lp64 -mno-relax -mcmodel=medany"
    " -fno-omit-frame-pointer"
)
"""Compiler options for the kernel, which must equal those in the Makefile."""
_POLICIES = ROOT / "policies"
_STUDIES = _POLICIES / "studies"
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_POLICY_MENTION = re.compile(r"(?<![\w-])policies/(?:studies/)?([\w-]+)\.[co]\b|\bpolicy_(\w+)")
_LINES_MAX = 60
_SIGNALLED = 128
"""Exit statuses from this number on mean that a signal ended the program."""
_COMMON_OPTIONS = f"{KERNEL_FLAGS} -ffreestanding -nostdlibinc -fno-color-diagnostics"
_C_OPTIONS = f"{_COMMON_OPTIONS} -std=c17"
# Words that C++ reserves, and C programs may use as names.
_CPP_WORDS = "class delete explicit friend mutable namespace new operator private protected public template this throw"
_CPP_WORDS += " try catch typename using virtual export"
_COMPILER_PASSES = (
    # On Linux, shared memory is in a separate address space. This pass checks its use on all hosts.
    f"{{clang}} {_C_OPTIONS} -Wall -Wextra -Wdate-time -Werror -ferror-limit=5 -fno-gnu-inline-asm -fsyntax-only"
    " '-DSHARED_MEMORY=__attribute__((address_space(1)))' {source}",
    # Headers may contain unused functions, marked POLICY_FUNCTION; a policy's own file may not.
    f"{{clang}} {_C_OPTIONS} -Wno-everything -Wunused-function -Dunused=is_checked_for_use -fsyntax-only {{source}}",
    # A C++ compiler reports numbers used as enumerations, which C accepts. Its other errors are
    # ignored.
    f"{{clang}} {_COMMON_OPTIONS} -x c++ -std=c++20 -Wno-everything -ferror-limit=100 -fsyntax-only"
    f" {' '.join(f'-D{word}={word}_' for word in _CPP_WORDS.split())} {{source}}",
    f"{{clang}} {_C_OPTIONS} -w -O2 -gline-tables-only -c {{source}} -o {{out}}"
    " && {linker} -e 0 {out} -o {out}.elf",
    # Not optimised: the optimiser would remove variables that are written but never read.
    f"{{clang}} {_C_OPTIONS} -w -O0 -c {{source}} -o {{out}} && {{linker}} -r -Map=- {{out}} -o {{out}}.map",
)

_PLACE = r"^(?P<file>\S[^:\n]*):(?P<line>\d+):\d+: "
_UNUSED = re.compile(_PLACE + r"warning: unused function '(\w+)'", re.MULTILINE)
_ENUMERATION = re.compile(
    _PLACE
    + r"error: (?:cannot initialize|assigning to)(?=.* different return type \('enum (?P<returned>\w+)'"
    r"|.* '(?:enum )?(?P<wanted>\w+)' (?:with|from) .*?'(?P<given>[^']+)')",
    re.MULTILINE,
)
_UNDEFINED = re.compile(
    r"undefined symbol: (\S+)\n>>> referenced by (?:[^\n(]+ \()?([^\n]+?:\d+)\b"
)
_MAP_ENTRY = re.compile(
    r"^(?: *[0-9a-f]+){3} +\d+ (?:(\.\S+)| {16}([A-Za-z_][\w.]*))$", re.MULTILINE
)
"""A section or a symbol in ld.lld's map of a program."""
_READ_ONLY_SECTION = re.compile(r"\.(text|s?rodata|data\.rel\.ro|debug_)")
"""Beginnings of the names of read-only sections."""
_FLOAT_HELPER = re.compile(
    r"__(?:add|sub|mul|div|neg|eq|ne|lt|le|gt|ge|unord|fix|float|extend|trunc|pow)\w*[sdt]f\w*"
)
_MAKE_MESSAGE = re.compile(r"^make(?:\[\d+\])?: .*\n?", re.MULTILINE)
_DIAGNOSTIC_COUNT = re.compile(r"^\d+ (?:error|warning)s? generated\.\n", re.MULTILINE)
_HOOK = re.compile(r"\(\*(\w+)\)\(")
_ENUM_OF_POLICIES = re.compile(r"^enum (\w+) \{", re.MULTILINE)
_HINTS = (
    (
        r"address space",
        "write SHARED_MEMORY in the pointer's type, as in `struct NAME SHARED_MEMORY *state = STATE_OF(task,"
        " struct NAME)`, or use task_t, run_queue_t and scheduler_t; Linux keeps this memory in a separate address"
        " space",
    ),
    (
        r"'[^'\n]+' file not found",
        "a policy has no C library; it may include the headers of policies/, <stdbool.h>, <stddef.h> and <stdint.h>",
    ),
    (
        r"undeclared (?:library )?function",
        "a policy calls only functions of its own file and of headers in policies/; to print something, write SAY()"
        " (policies/policy.h)",
    ),
    (
        r"BPF stack limit",
        "a policy has 512 bytes of stack, with all that it calls; keep arrays in the state of a task, a queue or the"
        " scheduler",
    ),
    (r"inline assembly", "a policy runs on several kinds of CPU; write it in C alone"),
    (
        r"incompatible function pointer types",
        "a hook has the parameters and the type that struct policy of policies/policy.h gives it",
    ),
)
"""Hints for authors of policies, by patterns of the compiler's output."""


@dataclass(frozen=True)
class Mistake:
    """A mistake in a policy. `compiles`: False for a compiler error, True for a broken rule of policy.h."""

    text: str
    compiles: bool


@dataclass(frozen=True)
class Subject:
    """A policy's source, and how to compile it.

    `name`: the file's name in messages. `symbol`: the name that the file must define. `text`: the source. `place`: the
    path of the file, and `folder` that of a folder for objects, both as `run` sees them. `clang`:
    the compiler's command. `run`: executes a shell script and returns its output.
    """

    name: str
    symbol: str
    text: str
    place: str
    folder: str
    includes: tuple[str, ...]
    clang: str
    run: Callable[[str], str]


def check_source(source: Path) -> None:
    """Compiles a policy as the simulator, the kernel and Linux would.

    Raises BuildFailed with the compiler's output, or RuleBroken if the file compiles but breaks a
    rule of policy.h.
    """
    name, text = path_from_root(str(source)), source.read_text(errors="replace")
    if _is_in_policies(source) and not _NAME.fullmatch(source.stem):
        raise RuleBroken(
            f"{name}: a policy's name has a-z, 0-9, - and _, and begins with a letter;"
            " rename the file"
        )
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        subject = Subject(
            *(name, symbol_of(source), text, str(source), folder),
            ("policies", "."),
            shlex.join(require_compiler().clang),
            _run_script,
        )
        mistake = find_mistake(subject)
    if mistake and mistake.compiles:
        raise RuleBroken(f"policy {policy_of(source)} broke a rule: {mistake.text}")
    if mistake:
        raise BuildFailed(f"{name}: does not compile:\n{mistake.text}")


def policies_mentioned_in(output: str) -> Iterator[Path]:
    """Yields the source files of the policies that a tool's output mentions."""
    names = {_c_name(name) for pair in _POLICY_MENTION.findall(output) for name in pair if name}
    for source in sorted((*_POLICIES.glob("*.c"), *_STUDIES.glob("*.c"))):
        if _c_name(source.stem) in names:
            yield source


def policy_of(source: Path) -> str:
    """Returns the name of the policy in a file.

    In policies/, this is the file's name; elsewhere, it is the name in POLICY_DEFINITION.
    """
    if _is_in_policies(source):
        return source.stem
    text = source.read_text(errors="replace") if source.is_file() else ""
    names = re.findall(r"^POLICY_DEFINITION\s+policy_(\w+)", text, re.MULTILINE)
    return source.stem if not names or _c_name(source.stem) in names else str(names[0])


def symbol_of(source: Path) -> str:
    """Returns the name of the C structure that defines the policy in a file."""
    return f"policy_{_c_name(policy_of(source))}"


def _is_in_policies(source: Path) -> bool:
    return source.resolve().parent in (_POLICIES, _STUDIES)


def _c_name(name: str) -> str:
    return name.replace("-", "_")


def find_mistake(subject: Subject) -> Mistake | None:
    """Returns the first mistake in a policy, or None."""
    tools = require_compiler()
    end_marker = f"end-{secrets.token_hex(8)}"
    flags = " ".join(f"-I{folder}" for folder in subject.includes)
    substitutions = {
        "source": f"{flags} {shlex.quote(subject.place)}",
        "out": shlex.quote(f"{subject.folder}/diagnosed.o"),
        "clang": subject.clang,
        "linker": shlex.join(tools.linker),
    }
    script = "\n".join(
        f"({command.format_map(substitutions)}) 2>&1; [ $? -lt {_SIGNALLED} ] || exit; echo {end_marker}"
        for command in _COMPILER_PASSES
    )
    output = subject.run(script).replace(subject.place, subject.name).split(f"{end_marker}\n")
    if len(output) != len(_COMPILER_PASSES) + 1:
        return None  # the compiler was ended by a limit of `run`; the next pass reports it
    errors, unused, enumerations, link_errors, symbols = output[:-1]
    if "error:" in errors:
        return Mistake(add_hints(errors), compiles=False)
    rules = (
        *_find_wrong_names(subject),
        *_find_unused_hooks(unused, subject),
        *_find_numbers_for_enumerations(enumerations, subject),
        *_find_undefined_symbols(link_errors),
        *_find_forbidden_variables(symbols, subject),
    )
    return Mistake(rules[0], compiles=True) if rules else None


def add_hints(output: str) -> str:
    """Returns the first lines of the compiler's output with hints for authors of policies."""
    hints = [f"  hint: {hint}" for pattern, hint in _HINTS if re.search(pattern, output)]
    return "\n".join([first_lines(output), *hints])


def first_lines(output: str) -> str:
    """Returns the first lines of a build's output, without repeated errors and make's own lines."""
    blocks = _DIAGNOSTIC_COUNT.split(_MAKE_MESSAGE.sub("", output))
    lines = "".join(dict.fromkeys(blocks)).strip().splitlines()
    return "\n".join(lines[:_LINES_MAX])


def _find_wrong_names(subject: Subject) -> Iterator[str]:
    definition_start = max(subject.text.rfind("POLICY_DEFINITION"), 0)
    definition = subject.text[definition_start:]
    name_match = re.search(r'^\s+\.name = "([^"\n]*)"', definition, re.MULTILINE)
    name = subject.symbol.removeprefix("policy_")
    has_only_presets = not re.search(r"^\s+\.enqueue =", definition, re.MULTILINE)
    # A source of a study is a variant of a policy, and has the policy's name.
    is_of_study = Path(subject.place).resolve().parent == _STUDIES
    names = {path.stem for path in _POLICIES.glob("*.c")} if is_of_study else {name}
    if (
        name_match
        and {name_match[1], _c_name(name_match[1])}.isdisjoint(names)
        and not has_only_presets
    ):
        line = subject.text.count("\n", 0, definition_start + name_match.start(1)) + 1
        yield (
            f'its .name is "{name_match[1]}", and it defines {subject.symbol}, at {subject.name}:{line};'
            f' write .name = "{name}"'
        )


def _find_unused_hooks(output: str, subject: Subject) -> Iterator[str]:
    header = (_POLICIES / "policy.h").read_text()
    hooks = sorted(_HOOK.findall(header.partition("struct policy {")[2]), key=len, reverse=True)
    for file, line, name in _UNUSED.findall(output):
        if file != subject.name:
            continue
        hook = next((hook for hook in hooks if name.endswith(f"_{hook}")), "")
        action = f"write .{hook} = {name} in {subject.symbol}" if hook else "call it"
        yield f"{name}() is not used, at {file}:{line}; {action}, or remove the function"


def _find_numbers_for_enumerations(output: str, subject: Subject) -> Iterator[str]:
    header = (_POLICIES / "policy.h").read_text()
    enumerations = set(_ENUM_OF_POLICIES.findall(header))
    for match in _ENUMERATION.finditer(output):
        enumeration = match["returned"] or match["wanted"]
        if enumeration not in enumerations or match["file"] != subject.name:
            continue
        members = header.partition(f"enum {enumeration} {{")[2].partition("};")[0]
        names = ", ".join(re.findall(r"^    (\w+)", members, re.MULTILINE))
        place = f"{match['file']}:{match['line']}"
        if match["returned"]:
            yield f"a hook does not return enum {enumeration}, at {place}; declare it so, and return one of {names}"
        else:
            yield f"a value of type {match['given']} is used as enum {enumeration}, at {place}; write one of {names}"


def _find_undefined_symbols(output: str) -> Iterator[str]:
    for name, place in _UNDEFINED.findall(output):
        if _FLOAT_HELPER.fullmatch(name):
            yield f"it computes with floating-point numbers, at {place}; no kernel does: count in whole numbers"
        elif name in ("memcpy", "memset", "memmove", "memcmp"):
            yield f"it copies or clears a whole structure or array, at {place}; do so by its members"
        else:
            yield f"it uses {name}, which is not of policies/, at {place}; define it in the policy's file"


def _find_forbidden_variables(output: str, subject: Subject) -> Iterator[str]:
    if "Symbol" in output and not re.search(rf" {subject.symbol}$", output, re.MULTILINE):
        yield (
            f"it defines no {subject.symbol}; its last lines are to begin with POLICY_DEFINITION {subject.symbol} = {{"
        )
    if names := variables_in(output):
        lines = subject.text.splitlines()
        places = (f"{name} at {subject.name}:{_line_number(lines, name)}" for name in names)
        yield (
            f"it has variables outside of its state: {', '.join(places)}; keep them in the state of a task, a queue or"
            " the scheduler (STATE_OF)"
        )


def variables_in(linker_map: str) -> list[str]:
    """Returns the variables in ld.lld's map of a program; local ones without their function's name."""
    names, section = [], ""
    for output_section, symbol in _MAP_ENTRY.findall(linker_map):
        section = output_section or section
        if symbol and not _READ_ONLY_SECTION.match(section):
            names.append(symbol.partition(".")[2] or symbol)
    return names


def _line_number(lines: list[str], name: str) -> int:
    """Returns the number of the first line with the name as a word; 0 without one."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    return next((number for number, line in enumerate(lines, 1) if word.search(line)), 0)


def _run_script(script: str) -> str:
    result = run_captured(["/bin/sh", "-c", script], cwd=ROOT)
    return result.stdout

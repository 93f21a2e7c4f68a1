# SPDX-License-Identifier: MIT
"""Compiles a submission to a WebAssembly module, or reports the compiler's errors."""

import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.toolchain.diagnosis import KERNEL_FLAGS, Subject, find_mistake, variables_in
from schedlab.base.toolchain.tools import require_compiler
from schedlab.courses.submissions.sandbox import OUT_PATH, TOOL_FOLDERS, WORK_PATH, Sandbox
from schedlab.courses.submissions.trial import PolicyForm
from schedlab.paths import ROOT

SOURCE_BYTES_MAX = 1 << 20
"""Maximum bytes of a submission."""
MODULE_BYTES_MAX = 4 << 20
MEMORY_BYTES = 16 << 20
"""Bytes of a policy machine's memory."""
SUBMISSION = "submission.c"
_BASIC_HEADERS = ("policy.h", "placement.h")
_ERROR_LINES_MAX = 12
_MODULE_VARIABLE = re.compile(r"policy\.o:\(\.(?:data|bss|tdata|tbss)\.([\w.]+)\)")
"""A variable in the map of the WebAssembly module; its symbols do not distinguish constants."""
_RULE_WORD = re.compile(r"(?:\\ |\S)+")
_SUBMISSION_PATH = re.compile(rf"\S*{SUBMISSION}\b")
_COMMON_FLAGS = (
    "-std=c17 -O2 -gline-tables-only -ffreestanding -Wall -Wextra -Wdate-time -Werror -fno-gnu-inline-asm"
    " -ffile-prefix-map={work}/= -I{work} -I{work}/policies"
)
_MODULE_FLAGS = (
    "--target=wasm32-unknown-unknown -fno-finite-loops -fsanitize=undefined -fno-sanitize=function"
    " -fsanitize-minimal-runtime -fno-sanitize-recover=all -fstrict-flex-arrays=3"
)
"""The compiler must not assume that a loop ends: it would call an endless one unreachable."""


class CompileError(Exception):
    """The submission cannot be compiled; the text says why."""


@dataclass(frozen=True)
class CompiledPolicy:
    """A policy as a module for schedlab.courses.submissions.wasm_policy."""

    name: str
    source: Path
    module: bytes
    kernel_object: bytes
    """The policy as an object file for the kernel (schedlab.courses.grading.grading)."""


def sources_of(form: PolicyForm) -> dict[str, Path]:
    """Returns the only files that a submission can include, by their paths in the sandbox."""
    policy_files = {
        f"policies/{name}": ROOT / "policies" / name for name in (*_BASIC_HEADERS, *form.headers)
    }
    module_files = {
        f"sim/apart/{name}": ROOT / "sim" / "apart" / name for name in ("message.h", "module.c")
    }
    return {**policy_files, **module_files}


def compile_policy(form: PolicyForm, source: Path, trusted: bool) -> CompiledPolicy:
    """Compiles a submission in a sandbox. Raises CompileError with the compiler's errors."""
    if source.stat().st_size > SOURCE_BYTES_MAX:
        raise CompileError(f"larger than {SOURCE_BYTES_MAX:,} bytes")
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        out = Path(folder)
        files = {**sources_of(form), SUBMISSION: source}
        tools = require_compiler()
        sandbox = Sandbox(out, files, trusted, tools.programs, tools.headers)
        if trusted:
            _check_includes(sandbox, files)
        if mistake := find_mistake(_submission_subject(form, source, sandbox)):
            raise CompileError(mistake.text)
        result = sandbox.run(_compile_script(form))
        if result.status:
            raise CompileError(
                _error_text(result.output, form, source)
                or f"the compiler ended with {result.status}"
            )
        names = variables_in((out / "kernel.map").read_text(errors="replace"))
        names += _MODULE_VARIABLE.findall((out / "module.map").read_text(errors="replace"))
        if names:
            raise CompileError(
                "it has variables outside of its state: "
                f"{', '.join(dict.fromkeys(names))}; keep data in the state of a task, a "
                "queue or the scheduler (STATE_OF)"
            )
        return CompiledPolicy(
            form.policy, source, _read_output(out / "policy.wasm"), _read_output(out / "kernel.o")
        )


def _submission_subject(form: PolicyForm, source: Path, sandbox: Sandbox) -> Subject:
    path = f"{WORK_PATH}/{SUBMISSION}"
    return Subject(
        source.name,
        form.symbol,
        source.read_text(errors="replace"),
        path,
        OUT_PATH,
        (WORK_PATH, f"{WORK_PATH}/policies"),
        clang_command(),
        lambda script: _SUBMISSION_PATH.sub(path, sandbox.run(script).output),
    )


def _check_includes(sandbox: Sandbox, files: Mapping[str, Path]) -> None:
    """Raises CompileError if a submission includes a file that submissions may not see.

    Outside of the sandbox, it could include the lab's solution or reveal hidden tests through
    errors.
    """
    clang = clang_command()
    flags = f"{_COMMON_FLAGS.format(work=WORK_PATH)} -w -M -MG {WORK_PATH}/{SUBMISSION}"
    result = sandbox.run(f"{clang} {_MODULE_FLAGS} {flags} && {clang} {KERNEL_FLAGS} {flags}")
    if result.status:
        raise CompileError("the preprocessor rejects it")
    allowed_files = {file.resolve() for file in files.values()}
    allowed_folders = (*map(Path, TOOL_FOLDERS), require_compiler().headers)
    for name in _included_files(result.output):
        file = (sandbox.out / name).resolve()
        if file not in allowed_files and not any(
            file.is_relative_to(folder) for folder in allowed_folders
        ):
            raise CompileError(f"it includes {name}, which submissions cannot use")


def _included_files(rules: str) -> Iterator[str]:
    for word in _RULE_WORD.findall(rules.replace("\\\n", " ")):
        name = word.replace("\\ ", " ").replace("\\#", "#").replace("$$", "$")
        if not name.endswith(".o:"):
            yield name


def _read_output(file: Path) -> bytes:
    """Returns the content of a file that the compiler wrote.

    Raises CompileError if it is missing or too large.
    """
    if file.stat().st_size > MODULE_BYTES_MAX:
        raise CompileError(
            f"the compiled policy is larger than {MODULE_BYTES_MAX:,} bytes; make its tables or its code smaller"
        )
    return file.read_bytes()


def clang_command() -> str:
    """Returns the compiler's command in the sandbox."""
    program = require_compiler()
    # the compiler would find its headers through /proc, which the sandbox lacks
    return shlex.join([*program.clang, f"-resource-dir={program.headers}"])


def _compile_script(form: PolicyForm) -> str:
    """Returns the shell script that compiles and links a submission."""
    tools = require_compiler()
    clang = clang_command()
    linker, wasm_linker = (shlex.join(words) for words in (tools.linker, tools.wasm_linker))
    flags = _COMMON_FLAGS.format(work=WORK_PATH)
    link = f"--no-entry --stack-first -z stack-size=65536 --max-memory={MEMORY_BYTES} -Map={OUT_PATH}/module.map"
    return " && ".join(
        (
            f"{clang} {_MODULE_FLAGS} {flags} -c {WORK_PATH}/{SUBMISSION} -o {OUT_PATH}/policy.o",
            f"{clang} {_MODULE_FLAGS} {flags} -DPOLICY={form.symbol} -c {WORK_PATH}/sim/apart/module.c"
            f" -o {OUT_PATH}/module.o",
            f"{wasm_linker} -m wasm32 {link} {OUT_PATH}/policy.o {OUT_PATH}/module.o -o {OUT_PATH}/policy.wasm",
            f"{clang} {KERNEL_FLAGS} {flags} -c {WORK_PATH}/{SUBMISSION} -o {OUT_PATH}/kernel.o",
            f"{linker} -r -Map={OUT_PATH}/kernel.map {OUT_PATH}/kernel.o -o {OUT_PATH}/kernel.r",
        )
    )


def _error_text(message: str, form: PolicyForm, source: Path) -> str:
    """Returns the compiler's first errors, with the submission's original file name."""
    if f"undefined symbol: {form.symbol}" in message:
        return f"it defines no {form.symbol}: its last lines are to begin with POLICY_DEFINITION {form.symbol} = {{"
    if "Stack dump:" in message:
        return "the compiler broke down on it: it may need more memory than there is"
    lines = [
        _SUBMISSION_PATH.sub(lambda _: source.name, line)
        for line in message.splitlines()
        if line.strip()
    ]
    return "\n".join(lines[:_ERROR_LINES_MAX])

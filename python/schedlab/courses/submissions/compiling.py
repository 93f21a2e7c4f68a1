# SPDX-License-Identifier: MIT
"""Compiles a submission to a WebAssembly module, or reports the compiler's errors."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.toolchain.diagnosis import KERNEL_FLAGS, Subject, find_mistake, variables_in
from schedlab.base.toolchain.tools import compiler
from schedlab.courses.submissions.sandbox import OUT, TOOLS, WORK, Sandbox
from schedlab.courses.submissions.trial import Form
from schedlab.paths import ROOT

SOURCE_MAX = 1 << 20
"""Maximum bytes of a submission."""
MODULE_MAX = 4 << 20
MEMORY = 16 << 20
"""Bytes of a policy machine's memory."""
SUBMISSION = "submission.c"
_ALWAYS = ("policy.h", "placement.h")
_LINES = 12
_MODULE_VARIABLE = re.compile(r"policy\.o:\(\.(?:data|bss|tdata|tbss)\.([\w.]+)\)")
"""A variable in the map of the WebAssembly module; its symbols do not distinguish constants."""
_WORD = re.compile(r"(?:\\ |\S)+")
_PLACE = re.compile(rf"\S*{SUBMISSION}\b")
_FLAGS = (
    "-std=c17 -O2 -gline-tables-only -ffreestanding -Wall -Wextra -Wdate-time -Werror -fno-gnu-inline-asm"
    " -ffile-prefix-map={work}/= -I{work} -I{work}/policies"
)
_MODULE = (
    "--target=wasm32-unknown-unknown -fsanitize=undefined -fno-sanitize=function"
    " -fsanitize-minimal-runtime -fno-sanitize-recover=all"
)


class NotCompiled(Exception):
    """The submission cannot be compiled; the text says why."""


@dataclass(frozen=True)
class Compiled:
    """A policy as a module for schedlab.courses.submissions.wasm_policy."""

    name: str
    source: Path
    module: bytes
    kernel_object: bytes
    """The policy as an object file for the kernel (schedlab.courses.grading.kernel)."""


def sources_of(form: Form) -> dict[str, Path]:
    """Returns the only files that a submission can include, by their paths in the sandbox."""
    policies = {f"policies/{name}": ROOT / "policies" / name for name in (*_ALWAYS, *form.headers)}
    sources = {
        f"sim/apart/{name}": ROOT / "sim" / "apart" / name for name in ("message.h", "module.c")
    }
    return {**policies, **sources}


def compile_policy(form: Form, source: Path, trusted: bool) -> Compiled:
    """Compiles a submission in a sandbox. Raises NotCompiled with the compiler's errors."""
    if source.stat().st_size > SOURCE_MAX:
        raise NotCompiled(f"larger than {SOURCE_MAX:,} bytes")
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        out = Path(folder)
        files = {**sources_of(form), SUBMISSION: source}
        tools = compiler()
        sandbox = Sandbox(out, files, trusted, tools.programs, tools.headers)
        if trusted:
            _check_includes(sandbox, files)
        if mistake := find_mistake(_subject(form, source, sandbox)):
            raise NotCompiled(mistake.text)
        done = sandbox.run(_script(form))
        if done.status:
            raise NotCompiled(
                _words(done.output, form, source) or f"the compiler ended with {done.status}"
            )
        names = variables_in((out / "kernel.map").read_text(errors="replace"))
        names += _MODULE_VARIABLE.findall((out / "module.map").read_text(errors="replace"))
        if names:
            raise NotCompiled(
                "it has variables outside of its state: "
                f"{', '.join(dict.fromkeys(names))}; keep data in the state of a task, a "
                "queue or the scheduler (STATE_OF)"
            )
        return Compiled(form.policy, source, _made(out / "policy.wasm"), _made(out / "kernel.o"))


def _subject(form: Form, source: Path, sandbox: Sandbox) -> Subject:
    """Returns the submission as the sandbox sees it."""
    place = f"{WORK}/{SUBMISSION}"
    return Subject(
        source.name,
        form.symbol,
        source.read_text(errors="replace"),
        place,
        OUT,
        (WORK, f"{WORK}/policies"),
        clang_command(),
        lambda script: _PLACE.sub(place, sandbox.run(script).output),
    )


def _check_includes(sandbox: Sandbox, files: Mapping[str, Path]) -> None:
    """Raises NotCompiled if a submission includes a file that submissions may not see.

    Outside of the sandbox, it could include the lab's solution or reveal hidden tests through
    errors.
    """
    clang = clang_command()
    flags = f"{_FLAGS.format(work=WORK)} -w -M -MG {WORK}/{SUBMISSION}"
    done = sandbox.run(f"{clang} {_MODULE} {flags} && {clang} {KERNEL_FLAGS} {flags}")
    if done.status:
        raise NotCompiled("the preprocessor rejects it")
    known = {file.resolve() for file in files.values()}
    seen = (*map(Path, TOOLS), compiler().headers)
    for name in _included(done.output):
        file = (sandbox.out / name).resolve()
        if file not in known and not any(file.is_relative_to(folder) for folder in seen):
            raise NotCompiled(f"it includes {name}, which submissions cannot use")


def _included(rules: str) -> Iterator[str]:
    """Yields the files in make rules written by the compiler."""
    for word in _WORD.findall(rules.replace("\\\n", " ")):
        name = word.replace("\\ ", " ").replace("\\#", "#").replace("$$", "$")
        if not name.endswith(".o:"):
            yield name


def _made(file: Path) -> bytes:
    if file.stat().st_size > MODULE_MAX:
        raise NotCompiled(f"the compiled policy is larger than {MODULE_MAX:,} bytes")
    return file.read_bytes()


def clang_command() -> str:
    """Returns the compiler's command in the sandbox."""
    program = compiler()
    # the compiler would find its headers through /proc, which the sandbox lacks
    return shlex.join([*program.clang, f"-resource-dir={program.headers}"])


def _script(form: Form) -> str:
    tools = compiler()
    clang = clang_command()
    linker, wasm_linker = (shlex.join(words) for words in (tools.linker, tools.wasm_linker))
    flags = _FLAGS.format(work=WORK)
    link = (
        f"--no-entry --stack-first -z stack-size=65536 --max-memory={MEMORY} -Map={OUT}/module.map"
    )
    return " && ".join(
        (
            f"{clang} {_MODULE} {flags} -c {WORK}/{SUBMISSION} -o {OUT}/policy.o",
            f"{clang} {_MODULE} {flags} -DPOLICY={form.symbol} -c {WORK}/sim/apart/module.c -o {OUT}/module.o",
            f"{wasm_linker} -m wasm32 {link} {OUT}/policy.o {OUT}/module.o -o {OUT}/policy.wasm",
            f"{clang} {KERNEL_FLAGS} {flags} -c {WORK}/{SUBMISSION} -o {OUT}/kernel.o",
            f"{linker} -r -Map={OUT}/kernel.map {OUT}/kernel.o -o {OUT}/kernel.r",
        )
    )


def _words(message: str, form: Form, source: Path) -> str:
    """Returns the compiler's first errors, with the submission's original file name."""
    if f"undefined symbol: {form.symbol}" in message:
        return f"it defines no {form.symbol}: its last lines are to begin with POLICY_DEFINITION {form.symbol} = {{"
    if "Stack dump:" in message:
        return "the compiler broke down on it: it may need more memory than there is"
    lines = [
        _PLACE.sub(lambda _: source.name, line) for line in message.splitlines() if line.strip()
    ]
    return "\n".join(lines[:_LINES])

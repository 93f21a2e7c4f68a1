# SPDX-License-Identifier: MIT
"""Every policy compiles for the host, our kernel and BPF, and keeps to what each allows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from policy_build import CLANG, POLICIES, WARNINGS, llvm, output_of, run
from schedlab.base.toolchain.bpf_object import CALL_DEPTH, STACK_BYTES, read_object
from schedlab.base.toolchain.tools import compiler
from schedlab.paths import ROOT

HOST = ["-std=c17", "-O2", "-fno-pie", "-ffreestanding", "-mgeneral-regs-only"]
KERNEL = [
    *("--target=riscv64-unknown-elf", "-march=rv64imac_zicsr_zicntr_zifencei", "-mabi=lp64"),
    *("-mcmodel=medany", "-mno-relax", "-std=c17", "-O2", "-ffreestanding", "-Ikernel"),
]
BPF = [
    *("--target=bpf", "-mcpu=v4", "-std=gnu17", "-O2", "-g", "-fno-builtin"),
    *("-fms-extensions", "-Wno-microsoft-anon-tag"),
]


# Older compilers do not know the instruction may_goto.
needs_bpf = pytest.mark.skipif(compiler().version < 19, reason="BPF needs clang 19")


def symbol(policy: Path) -> str:
    return "policy_" + policy.stem.replace("-", "_")


def compile_file(flags: list[str], source: Path, output: Path) -> subprocess.CompletedProcess[str]:
    command = [CLANG, *flags, *WARNINGS, "-I.", "-c", str(source), "-o", str(output)]
    return run(*command)


def compile_bpf(policy: Path, output: Path) -> subprocess.CompletedProcess[str]:
    flags = [*BPF, f'-DPOLICY_SOURCE="{policy}"', f"-DPOLICY={symbol(policy)}"]
    return compile_file(flags, ROOT / "linux/policy_compile.bpf.c", output)


def symbols(path: Path) -> dict[str, str]:
    """Names of an object's symbols, and the letters that nm gives them."""
    return {line.split()[-1]: line.split()[-2] for line in output_of(llvm("nm"), str(path))}


def check_symbols(policy: Path, path: Path) -> None:
    found = symbols(path)
    public = [name for name, letter in found.items() if letter.isupper() and letter not in "UN"]
    assert public == [symbol(policy)], "a policy file gives one thing, its policy"
    assert not [name for name, letter in found.items() if letter in "Uu"], "calls or reads others'"
    assert not [name for name, letter in found.items() if letter in "BbDdSsCc"], "keeps variables"


@pytest.fixture(params=POLICIES, ids=lambda path: path.stem)
def policy(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.mark.parametrize("flags", [HOST, KERNEL], ids=["host", "kernel"])
def test_hosts(policy: Path, flags: list[str], tmp_path: Path) -> None:
    output = tmp_path / "policy.o"
    result = compile_file(flags, policy, output)
    assert result.returncode == 0, result.stderr
    check_symbols(policy, output)


def test_source(policy: Path) -> None:
    text = re.sub(r"/\*.*?\*/|//[^\n]*|\"[^\"\n]*\"", " ", policy.read_text(), flags=re.DOTALL)
    forbidden = (
        r"\b(float|double|__int128|_Atomic|volatile|asm|alloca|static\s+(?!const\b)\w+ \w+ *[=;])"
    )
    assert not re.search(forbidden, text)


@needs_bpf
def test_bpf(policy: Path, tmp_path: Path) -> None:
    output = tmp_path / "policy.o"
    result = compile_bpf(policy, output)
    assert result.returncode == 0, result.stderr
    check_bpf(output)


def check_bpf(output: Path) -> None:
    program = read_object(output)
    assert len([f for f in program.functions if f.section.startswith("struct_ops/")]) == 13
    for function in program.functions:
        assert function.indirect_calls == 0, f"{function.name} calls through a pointer"
        assert not function.unguarded_loop(), f"{function.name} has a loop without LOOP_GUARD"
        stack, frames = program.deepest(function)
        assert stack <= STACK_BYTES, (
            f"{function.name} and what it calls take {stack} bytes of stack"
        )
        # The adapter needs a frame of its own above the program's.
        assert frames < CALL_DEPTH, f"{function.name} calls {frames} deep"
    writable = [name for name, flags in program.sections.items() if "W" in flags]
    assert not writable, "writable data"
    for section, kind, name in program.relocations:
        if not section.startswith((".BTF", ".debug")):
            in_code = "X" in program.sections[section]
            direct_call = kind == "R_BPF_64_32"
            constant = kind == "R_BPF_64_64" and name.startswith((".rodata", ".L"))
            assert in_code, f"{section}: the address of {name} is data"
            assert direct_call or constant, f"{section}: the address of {name} is data"


BAD = {
    "loop": (
        """uint64_t n = task->run_time;
        while (n % 7 != 3)
            n = n * 5 + queue->now;
        return (enum tick_verdict)n;""",
        "without LOOP_GUARD",
    ),
    "stack": (
        """volatile char big[400];
        for (int i = 0; i < 400 && LOOP_GUARD; i++)
            big[i] = 1;
        return (enum tick_verdict)(big[task->slot % 400] + deep(queue, task));""",
        "bytes of stack",
    ),
    "pointer": (
        """enum tick_verdict (*table[2])(run_queue_t *, task_t *) = {deep, deeper};
        return table[task->slot & 1](queue, task);""",
        "is data|through a pointer",
    ),
    "recursion": ("return recurse(queue, task);", "recursion"),
}

BAD_SOURCE = """
#include "policies/policy.h"
POLICY_FUNCTION enum tick_verdict deep(run_queue_t *queue, task_t *task)
{
    volatile char more[200];
    for (int i = 0; i < 200 && LOOP_GUARD; i++)
        more[i] = (char)queue->now;
    return (enum tick_verdict)more[task->slot % 200];
}
POLICY_FUNCTION enum tick_verdict deeper(run_queue_t *queue, task_t *task)
{
    return (enum tick_verdict)(task->slot + deep(queue, task));
}
POLICY_FUNCTION enum tick_verdict recurse(run_queue_t *queue, task_t *task)
{
    return task->next ? (enum tick_verdict)(1 + recurse(queue, task->next) * 3) : deep(queue, task);
}
POLICY_FUNCTION void enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    (void)queue, (void)task, (void)reason;
}
POLICY_FUNCTION void dequeue(run_queue_t *queue, task_t *task) { (void)queue, (void)task; }
POLICY_FUNCTION task_t *pick(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu;
    return (task_t *)queue->state;
}
POLICY_FUNCTION enum tick_verdict tick(run_queue_t *queue, task_t *task) { BODY }
POLICY_FUNCTION uint64_t time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler;
    return task->slot;
}
POLICY_DEFINITION policy_bad = {
    .name = "bad", .enqueue = enqueue, .dequeue = dequeue, .pick = pick, .tick = tick,
    .time_slice = time_slice,
};
"""


@needs_bpf
@pytest.mark.parametrize("name", BAD)
def test_bad_policies_are_found(name: str, tmp_path: Path) -> None:
    body, complaint = BAD[name]
    source = tmp_path / "bad.c"
    source.write_text(BAD_SOURCE.replace("BODY", body))
    result = compile_bpf(source, tmp_path / "bad.o")
    assert result.returncode == 0, result.stderr
    with pytest.raises((AssertionError, ValueError), match=complaint):
        check_bpf(tmp_path / "bad.o")

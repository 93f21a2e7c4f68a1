# SPDX-License-Identifier: MIT
"""Tests that every policy compiles for the kernel and for BPF, and respects the limits of each."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from policy_build import CLANG, POLICIES, WARNINGS, llvm, output_of, run
from schedlab.base.toolchain.verifier import compile_for_bpf, estimate_hook_costs, read_object

KERNEL = [
    *("--target=riscv64-unknown-elf", "-march=rv64imac_zicsr_zicntr_zifencei", "-mabi=lp64"),
    *("-mcmodel=medany", "-mno-relax", "-std=c17", "-O2", "-ffreestanding", "-Ikernel"),
]


def symbol(policy: Path) -> str:
    return "policy_" + policy.stem.replace("-", "_")


def compile_file(flags: list[str], source: Path, output: Path) -> subprocess.CompletedProcess[str]:
    command = [*CLANG, *flags, *WARNINGS, "-I.", "-c", str(source), "-o", str(output)]
    return run(*command)


def symbols(path: Path) -> dict[str, str]:
    """Returns the names of an object's symbols, and nm's letters for them."""
    return {line.split()[-1]: line.split()[-2] for line in output_of(llvm("nm"), str(path))}


def check_symbols(policy: Path, path: Path) -> None:
    symbol_table = symbols(path)
    public = [
        name for name, letter in symbol_table.items() if letter.isupper() and letter not in "UN"
    ]
    assert public == [symbol(policy)], "a policy file gives one thing, its policy"
    assert not [name for name, letter in symbol_table.items() if letter in "Uu"], (
        "calls or reads others'"
    )
    assert not [name for name, letter in symbol_table.items() if letter in "BbDdSsCc"], (
        "has variables outside of its state"
    )


@pytest.fixture(params=POLICIES, ids=lambda path: path.stem)
def policy(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_kernel(policy: Path, tmp_path: Path) -> None:
    output = tmp_path / "policy.o"
    result = compile_file(KERNEL, policy, output)
    assert result.returncode == 0, result.stderr
    check_symbols(policy, output)


def test_source(policy: Path) -> None:
    text = re.sub(r"/\*.*?\*/|//[^\n]*|\"[^\"\n]*\"", " ", policy.read_text(), flags=re.DOTALL)
    forbidden = (
        r"\b(float|double|__int128|_Atomic|volatile|asm|alloca|static\s+(?!const\b)\w+ \w+ *[=;])"
    )
    assert not re.search(forbidden, text)


def test_bpf(policy: Path, tmp_path: Path) -> None:
    """Linux's verifier would refuse writable data and addresses in data; no policy has them."""
    assert len(estimate_hook_costs(policy)) == 13
    output = tmp_path / "policy.o"
    compile_for_bpf(policy, output)
    program = read_object(output)
    writable = [name for name, flags in program.sections.items() if "W" in flags]
    assert not writable, "writable data"
    for section, kind, name in program.relocations:
        if not section.startswith((".BTF", ".debug")):
            in_code = "X" in program.sections[section]
            direct_call = kind == "R_BPF_64_32"
            constant = kind == "R_BPF_64_64" and name.startswith((".rodata", ".L"))
            assert in_code, f"{section}: the address of {name} is data"
            assert direct_call or constant, f"{section}: the address of {name} is data"

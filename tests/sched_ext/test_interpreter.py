# SPDX-License-Identifier: MIT
"""Tests the BPF interpreter: against native code on random C functions, and on single programs."""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path

import pytest

from schedlab.base.toolchain.tools import require_compiler
from simulator_command import built

FUNCTIONS = 60
INPUTS = 100
TYPES = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
FIELDS = ("a", "b", "c", "d", "e", "f", "g", "h")
CONSTANTS = (0, 1, 3, 7, 255, 65535, 2**31 - 1, -1, -7, -(2**31), 2**40 + 5)
INPUT_BYTES = 48

PROLOGUE = """
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned u32;
typedef unsigned long long u64;
typedef signed char s8; typedef short s16; typedef int s32; typedef long long s64;
struct input { u64 d; s64 h; u64 sum; u32 c; s32 g; u32 bits; u16 b; s16 f; u8 a; s8 e; };
#define APART static __attribute__((noinline))
APART u64 divide_unsigned(u64 a, u64 b) { return b ? a / b + a % b : 7; }
APART s64 divide_signed(s64 a, s64 b) { return b && b != -1 ? a / b - a % b : 9; }
APART s32 divide_short(s32 a, s32 b) { return b && b != -1 ? a % b ^ a / b : 5; }
"""

NATIVE_MAIN = """
#include <stdio.h>
int main(void)
{
    struct input input;
    while (fread(&input, sizeof(input), 1, stdin) == 1)
        printf("%016llx\\n", test(&input));
}
"""


def expression(draw: random.Random, depth: int) -> str:
    """Returns a random C expression of the fields that has no undefined behaviour."""
    if depth == 0:
        return draw.choice([*FIELDS, f"({draw.choice(CONSTANTS)}LL)"])
    left, right = expression(draw, depth - 1), expression(draw, depth - 1)
    type_, other = draw.choice(TYPES), draw.choice(TYPES)
    operator = draw.choice("+-*&|^")
    comparison = draw.choice(("<", ">", "<=", ">=", "==", "!="))
    width = draw.choice((16, 32, 64))
    return draw.choice(
        (
            f"((s64)((u64)({left}) {operator} (u64)({right})))",
            f"((s64)((u32)({left}) {operator} (u32)({right})))",
            f"(({type_})({left}) ^ ({other})({right}))",
            f"divide_unsigned((u64)({left}), (u64)({right}))",
            f"divide_signed((s64)({left}), (s64)({right}))",
            f"divide_short((s32)({left}), (s32)({right}))",
            f"((u64)({left}) << ((u32)({right}) & 63))",
            f"((u32)({left}) << ((u32)({right}) & 31))",
            f"((u64)({left}) >> ((u32)({right}) & 63))",
            f"((s64)({left}) >> ((u32)({right}) & 63))",
            f"((s32)({left}) >> ((u32)({right}) & 31))",
            f"(({type_})({left}) {comparison} ({type_})({right}) ? ({left}) : ({right}))",
            f"(({type_})({left}))",
            f"__builtin_bswap{width}((u64)({left}))",
        )
    )


def function(draw: random.Random, number: int) -> str:
    """Returns a function that computes an expression and uses each atomic operation."""
    read = " ".join(
        f"{type_} {name} = input->{name};" for type_, name in zip(TYPES, "abcdefgh", strict=True)
    )
    return (
        f"APART u64 f{number}(struct input *input) {{ {read}\n"
        f"u64 r = (u64)({expression(draw, 3)});\n"
        "__sync_fetch_and_add(&input->sum, r); r ^= __sync_fetch_and_xor(&input->sum, r + 3);\n"
        "__sync_fetch_and_or(&input->bits, (u32)r); r += __sync_fetch_and_and(&input->bits, ~1u);\n"
        "r += __sync_lock_test_and_set(&input->sum, r * 3);\n"
        "r += __sync_val_compare_and_swap(&input->bits, (u32)r, 17u); return r; }\n"
    )


def program(draw: random.Random) -> str:
    calls = "".join(f"r = r * 31 + f{i}(input);\n" for i in range(FUNCTIONS))
    return (
        PROLOGUE
        + "".join(function(draw, i) for i in range(FUNCTIONS))
        + f"u64 test(struct input *input) {{ u64 r = 1;\n{calls} return r; }}\n"
    )


def inputs(draw: random.Random) -> bytes:
    """Returns random structures with many bytes of 0 and 255."""
    return bytes(
        draw.choice((0, 255, draw.randrange(256), draw.randrange(256)))
        for _ in range(INPUTS * INPUT_BYTES)
    )


def sections(elf: bytes) -> list[tuple[str, int, int, int, int, bytes]]:
    """Returns name, type, link, info, entry size and bytes of each section of a 64-bit ELF file."""
    start, size, count, names_at = (
        struct.unpack_from("<Q", elf, 40)[0],
        *struct.unpack_from("<HHH", elf, 58),
    )
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, start + i * size) for i in range(count)]
    names = elf[headers[names_at][4] :]
    return [
        (
            names[h[0] :].split(b"\0")[0].decode(),
            h[1],
            h[6],
            h[7],
            h[9],
            elf[h[4] : h[4] + h[5]] if h[1] != 8 else b"",
        )
        for h in headers
    ]


def code_of(elf: bytes, name: str) -> tuple[bytes, int]:
    """Returns the code of .text with its calls resolved, and the first instruction of a symbol."""
    parts = sections(elf)
    code = bytearray(next(part[5] for part in parts if part[0] == ".text"))
    table = next(part for part in parts if part[1] == 2)
    names = parts[table[2]][5]
    symbols = [
        (names[s[0] :].split(b"\0")[0].decode(), s[4])
        for s in struct.iter_unpack("<IBBHQQ", table[5])
    ]
    for offset, info in (
        struct.unpack_from("<QQ", part[5], index)
        for part in parts
        if part[0] == ".rel.text"
        for index in range(0, len(part[5]), 16)
    ):
        target = symbols[info >> 32][1] // 8
        opcode, _, _, addend = struct.unpack_from("<BBhi", code, offset)
        if opcode == 0x18:  # the address of a function, in the region of code
            struct.pack_into("<i", code, offset + 4, target + addend // 8)
            struct.pack_into("<i", code, offset + 12, 5)
        else:
            struct.pack_into("<i", code, offset + 4, target + addend + 1 - offset // 8 - 1)
    return bytes(code), next(value for symbol, value in symbols if symbol == name) // 8


def compile_bpf(source: Path, folder: Path, version: str) -> tuple[Path, int]:
    """Compiles C to BPF. Returns a file with the code, and the first instruction of test()."""
    compiled = folder / f"{version}.o"
    command = (*require_compiler().clang, "--target=bpfel", f"-mcpu={version}", "-O2", "-w")
    subprocess.run([*command, "-c", str(source), "-o", str(compiled)], check=True)
    code, entry = code_of(compiled.read_bytes(), "test")
    path = folder / f"{version}.code"
    path.write_bytes(code)
    return path, entry


def run_code(code: Path, entry: int, given: bytes) -> subprocess.CompletedProcess[bytes]:
    program_path = built("sched-ext-tests/run_code")
    words = [str(program_path), str(code), str(entry), str(INPUT_BYTES)]
    return subprocess.run(words, input=given, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize("seed", [1, 2])
def test_interpreter_agrees_with_native_code(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    text = program(draw)
    given = inputs(draw)
    source = tmp_path / "program.c"
    source.write_text(text)
    native_source = tmp_path / "native.c"
    native_source.write_text(text + NATIVE_MAIN)
    native = tmp_path / "native"
    subprocess.run(
        [*require_compiler().host, "-O1", "-fwrapv", "-w", str(native_source), "-o", str(native)],
        check=True,
    )
    expected = subprocess.run([native], input=given, capture_output=True, check=True).stdout
    assert len(set(expected.split())) == INPUTS
    code, entry = compile_bpf(source, tmp_path, "v4")
    result = run_code(code, entry, given)
    assert result.stderr.decode() == ""
    assert result.stdout == expected


CASES = {
    "callback": (
        "static long (*loop)(u32, void *, void *, u64) = (void *)181;\n"
        "static long add(u64 i, u64 *sum) { *sum += i; return i == 6; }\n"
        "u64 test(struct input *input) { input->sum = 0; u64 n = loop(10, add, &input->sum, 0);\n"
        "return n * 100 + input->sum; }",
        "00000000000002d1",  # 7 calls; 0 + ... + 6 = 21
    ),
    "bad load": ("u64 test(void *at) { return *(volatile u64 *)(9ULL << 40) + 4; }", "4"),
    "signed loads": (
        "u64 test(struct input *input) { *(volatile s8 *)&input->e = -3;\n"
        "*(volatile s16 *)&input->f = -30; *(volatile s32 *)&input->g = -300;\n"
        "return *(volatile s8 *)&input->e + *(volatile s16 *)&input->f +\n"
        "(u64)*(volatile s32 *)&input->g; }",
        "fffffffffffffeb3",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_program_returns(tmp_path: Path, case: str) -> None:
    text, expected = CASES[case]
    source = tmp_path / "program.c"
    source.write_text(PROLOGUE + text)
    code, entry = compile_bpf(source, tmp_path, "v4")
    result = run_code(code, entry, bytes(INPUT_BYTES))
    assert result.stdout.decode().strip() == expected.rjust(16, "0")


TRAPS = {
    "bad store": (
        "u64 test(void *at) { *(volatile u32 *)0x7000000001ULL = 1; return 0; }",
        "store",
    ),
    "store below a region": (
        "u64 test(char *at) { *(volatile u32 *)(at - 4) = 1; return 0; }",
        "store to invalid address",
    ),
    "store across the end": (
        "u64 test(char *at) { *(volatile u32 *)(at + 4094) = 1; return 0; }",
        "store to invalid address",
    ),
    "endless loop": (
        "u64 test(struct input *input) { for (;;) (*(volatile u64 *)&input->sum)++; }",
        "endless loop",
    ),
    "endless recursion": (
        "APART u64 deep(struct input *i) { i->sum++; return deep(i) + i->sum; }\n"
        "u64 test(struct input *input) { return deep(input); }",
        "nested calls",
    ),
    "unknown helper": (
        "static long (*helper)(void) = (void *)200;\nu64 test(void *at) { return helper(); }",
        "helper 200",
    ),
    "call of data": (
        "u64 test(struct input *input) { return ((u64(*)(void))input)(); }",
        "call of invalid address",
    ),
}


@pytest.mark.parametrize("case", TRAPS)
def test_program_traps(tmp_path: Path, case: str) -> None:
    """A trap names the instruction, and the reason."""
    text, reason = TRAPS[case]
    source = tmp_path / "program.c"
    source.write_text(PROLOGUE + text)
    code, entry = compile_bpf(source, tmp_path, "v4")
    result = run_code(code, entry, bytes(INPUT_BYTES))
    place, message = result.stdout.decode().split(": ", 1)
    assert result.returncode == 1
    assert reason in message
    assert 0 <= int(place) < code.stat().st_size // 8
    assert result.stderr.decode() == ""


@pytest.mark.parametrize("seed", range(3))
def test_random_code_never_leaves_the_machine(tmp_path: Path, seed: int) -> None:
    """Random instructions end with a result or a trap, and sanitizers find nothing."""
    draw = random.Random(seed)
    opcodes = [i for i in range(256) if i & 7 in (1, 2, 3, 4, 7) or i in (0x05, 0x18, 0x85, 0x95)]
    for _ in range(40):
        code = b"".join(
            struct.pack(
                "<BBhi",
                draw.choice(opcodes),
                draw.randrange(256),
                draw.choice((0, 1, 8, 16, draw.randrange(-9, 9))),
                draw.choice((0, 1, 16, 32, 64, draw.randrange(-(2**31), 2**31))),
            )
            for _ in range(30)
        )
        path = tmp_path / "random.code"
        path.write_bytes(code)
        result = run_code(path, 0, bytes(INPUT_BYTES))
        assert result.returncode in (0, 1)
        assert result.stderr.decode() == ""

# SPDX-License-Identifier: MIT
"""Tests steps as text, and the resulting workload files; random draws made in bulk."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from schedlab.paths import ROOT
from schedlab.workload import workload_files
from schedlab.workload.binary_steps import WordsRefused, checksum, encode_workload_text
from schedlab.workload.format import HEADER, MAGIC, PROGRAM, STEP, VERSION
from schedlab.workload.text import RandomNumbers, encode_workload, format_workload

TICK_NS = 10_000_000
FILES = sorted((ROOT / "workloads" / "files").rglob("*.json"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected a program"),
        ("run 1ms\n", "test:1: run: expected `program NAME` before"),
        ("program a\n\n walk 1ms\n", "test:3: walk: expected program, channel, run"),
        ("program a\n run\n", "test:2: expected a time"),
        ("program a\n timer 8 1ms\n", "test:2: 8: expected a number from 0 to 7"),
        ("program a\n timer 0 1\n", "test:2: 1: expected a time"),
        ("program a\n timer 0 1ms late\n", "late: expected the end of the line, or absolute"),
        ("program a\n timer\n", "test:2: expected a number from 0 to 7, or a timer"),
        ("program a\n timer beat\n", "test:2: expected a time"),
        ("program a\n meet c\n", "test:2: expected a number from 1 to"),
        ("program a\n run 1ms\n kill b\n", "test:3: b: expected the name of a program"),
        ("program a\n take c holding m\n", "holding: expected the end of the line, or releasing"),
        ("program a\n take c releasing\n", "test:2: expected a channel's name"),
        ("program a\n run 1h\n", "test:2: 1h: expected a time"),
        ("program a\n run 99999999999s\n", "test:2: 99999999999s: expected a time"),
        (f"program a\n run {10**30}ns\n", "expected a time"),
        ("program a\n run 1ms 2ms\n", "test:2: 2ms: expected the end of the line"),
        ("program a\n run until 1ms x y\n", "expected the end of the line"),
        ("program a\nprogram a\n", "test:2: a: expected another name"),
        ("program a\n loop 3\n run 1ms\n", "test:2: expected an `end` for the loop"),
        ("program a\n loop 3\n run 1ms\nprogram b\n", "test:2: expected an `end` for the loop"),
        ("program a\n end\n", "test:2: end: expected a loop"),
        ("program a\n loop 2\n end\n", "test:3: end: expected a step within"),
        ("program a\n" + " loop\n" * 9, "test:10: loop: expected at most 8 nested loops"),
        ("program a\n setgroup 1 size 2\n", "size: expected parent, or weight, or quota"),
        ("program a\n setgroup 1 quota 9\n", "9: expected a time"),
        ("program a\n mark middle\n", "middle: expected begin, or end, or note"),
        ("program a\n job none 1ms\n", "1ms: expected the end of the line"),
        ("program a\n group longer-than-8\n", "expected a name of at most 8"),
        ("program a\n loop 0\n", "0: expected a number from 1 to 4294967295"),
        ("program a\n mark note 18446744073709551616\n", "expected a number"),
        ("channel c -1\n", "-1: expected a number from 0 to 4294967295"),
        ("channel c\n", "test:1: channel: expected `channel NAME N`"),
        (f"program {'a' * 32}\n", "expected a program's name, of at most 31"),
    ],
)
def test_errors_name_their_line(text: str, words: str) -> None:
    with pytest.raises(WordsRefused) as caught:
        encode_workload_text(text, 1_000_000, "test")
    assert words in str(caught.value)


def test_file_matches_the_header() -> None:
    text = "channel c 7\nprogram a # one\n\tloop 3\r\n  run 2ticks\n end\n cpus 0-1 b\nprogram b\n"
    file = encode_workload_text(text, TICK_NS)
    header = np.frombuffer(file, HEADER, 1)[0]
    assert (header["magic"], header["version"]) == (MAGIC.encode(), VERSION)
    assert (header["bytes"], header["tick_ns"], header["reserved"]) == (len(file), TICK_NS, 0)
    at = HEADER.itemsize
    programs = np.frombuffer(file, PROGRAM, header["program_count"], at)
    assert programs[["first", "count"]].tolist() == [(0, 4), (4, 1)]
    at += programs.nbytes
    steps = np.frombuffer(file, STEP, header["step_count"], at)
    assert steps["value"].tolist() == [2 * TICK_NS, 3, 0, 0, 0]
    at += steps.nbytes
    assert file[at:] == b"\7" + bytes(7) + b"\4" + bytes(3) + b"a\0b\x000-1\0"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_workload_and_its_words_are_the_same_file(path: Path) -> None:
    file = workload_files.read_workload_file(path)
    assert encode_workload(file, 3, TICK_NS) == encode_workload_text(
        format_workload(file, 3, TICK_NS), TICK_NS
    )


@pytest.mark.parametrize("size", [0, 1, 255, 65_535, 65_537, 200_000])
def test_the_checksum_is_fnv_1a(size: int) -> None:
    content = np.random.default_rng(size).bytes(size)
    naive = reduce(
        lambda total, byte: (total ^ byte) * 0x100000001B3 % 2**64, content, 0xCBF29CE484222325
    )
    assert checksum(content) == naive


def test_many_numbers_are_those_of_one_by_one() -> None:
    one, many = RandomNumbers(2**64 - 5), RandomNumbers(2**64 - 5)
    assert many.take(1000).tolist() == [one.next() for _ in range(1000)]
    assert many.next() == one.next()


@pytest.mark.parametrize(
    "drawn",
    [
        {"from": 100, "to": "2ticks", "step": "10ns"},
        {"from": "1tick", "to": "3ticks", "step": "1tick"},
        {"below": 5000},
        {"distribution": "exponential", "mean": 500},
        {"distribution": "uniform", "mean": "1tick"},
        {"distribution": "lognormal", "mean": 500, "sigma": 2},
        {"distribution": "pareto", "mean": 500, "shape": 1.5},
        {"distribution": "hyperexponential", "means": [10, 1000], "weights": [9, 1]},
        {"distribution": "values", "values": [10, 1000]},
        {"distribution": "constant", "mean": 70},
    ],
    ids=str,
)
def test_rounds_that_are_drawn_at_once_are_those_of_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn: dict[str, object]
) -> None:
    path = tmp_path / "draws.json"
    phase = {
        "loop": 50,
        "run": drawn,
        "yield": "",
        "sleep": drawn,
        "timer": {"ref": "unique", "period": 9},
    }
    tasks = {"a": {"loop": 2, "instance": 2, "phases": {"one": phase, "two": {"run": drawn}}}}
    path.write_text(json.dumps({"tasks": tasks}))
    file = workload_files.read_workload_file(path)
    at_once = encode_workload(file, 5, TICK_NS), format_workload(file, 5, TICK_NS)
    monkeypatch.setattr("schedlab.workload.text._UNROLLED_ROUNDS_MAX", 10**9)
    assert at_once == (encode_workload(file, 5, TICK_NS), format_workload(file, 5, TICK_NS))

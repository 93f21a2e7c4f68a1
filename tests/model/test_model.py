# SPDX-License-Identifier: MIT
"""Tests the model's C code alone: under sanitizers, fuzzed, as WebAssembly; and against malicious
traces.

tests/monitor/test_monitor_model.py compares its figures with schedlab.metrics and with slow
recomputations.
"""

from __future__ import annotations

import json
import random
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from playwright._impl._driver import compute_driver_executable

from conftest import ROOT
from schedlab.base.toolchain.build import build
from schedlab.monitor.model import Model
from schedlab.paths import BUILD_FOLDER
from schedlab.trace import AttributeKind, Header, Kind, ProcessState
from schedlab.trace.format import RECORD
from schedlab.trace.writer import TraceWriter
from trace_simulator import Script, load, simulate, write


def built(program: str) -> Path:
    build(f"build/{program}")
    return BUILD_FOLDER / program


def test_it_makes_do_with_little_memory() -> None:
    result = subprocess.run(
        [built("model-tests/model_test")], capture_output=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr.decode()


def test_any_input_gives_a_picture(tmp_path: Path) -> None:
    """Uses the same inputs each time; `make model-fuzz` runs for longer."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    source = random.Random(1)
    for number in range(10):
        (corpus / f"{number}").write_bytes(source.randbytes(3000))
    options = ("-runs=100", "-seed=1", "-len_control=0", "-max_len=3000")
    result = subprocess.run(
        [built("model-fuzz/fuzz_model"), *options, f"-artifact_prefix={tmp_path}/", corpus],
        capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr.decode()[-3000:]


def as_json(value: object) -> Any:
    return json.loads(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY))


@pytest.mark.browser
@pytest.mark.parametrize("policy", ["mlfq", "lottery"])
def test_webassembly_agrees(policy: str, tmp_path: Path) -> None:
    """Runs in the browser's engine; the page's message reader decodes the output to JSON."""
    script = Script(cpus=3, steps=400, initial_tasks=4, queues=True)
    records = list(simulate(random.Random(5), script))
    trace = load(records, script)
    write(tmp_path / "trace.bin", records, script)
    reader = ROOT / "python/schedlab/monitor/page/session/model_message.js"
    node, _ = compute_driver_executable()
    result = subprocess.run(
        [node, ROOT / "tests/model/play_trace.mjs", reader, built("model/model.wasm"),
         tmp_path / "trace.bin", policy, "6"],
        capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    model = Model(trace.header, policy, "equal")
    packed = np.frombuffer((tmp_path / "trace.bin").read_bytes()[64:], RECORD)
    fed = 0
    for part in range(6):
        until = len(packed) * (part + 1) // 6
        model.feed(packed[fed:until])
        fed = until
        assert answers[part] == as_json(model.frame())
    assert answers[6] == as_json(model.history())
    assert answers[7] == as_json(model.explain(1))


HEADER = Header(1, 1_000_000, 1_000_000_000, 1)


def fed(records: Sequence[tuple[int, ...] | None], policy: str = "rr") -> Model:
    """Returns a model that received the records of a TraceWriter."""
    model = Model(HEADER, policy, "equal")
    rows = [
        (time, number, process, kind, cpu, first, second)
        for number, (time, process, kind, cpu, first, second) in enumerate(filter(None, records))
    ]
    model.feed(np.array(rows, RECORD))
    return model


def test_a_tunable_that_its_policy_does_not_allow_is_passed_over() -> None:
    """The model would have divided by a level width of 0."""
    writer = TraceWriter(1, 1_000_000, 1_000_000_000)
    writer.add_text(0, 0, Kind.POLICY, "priority:study1")
    writer.add_text(0, 0, Kind.TUNABLE, "level_width", second=0)
    writer.add(1, 0, Kind.FORK, 0, 1)
    model = fed([*writer.in_order()])
    assert model.frame()["processes"]["pid"].tolist() == [1]


def test_a_process_that_never_waited_is_explained_with_one_queue_for_all() -> None:
    writer = TraceWriter(1, 1_000_000, 1_000_000_000)
    writer.add_text(0, 0, Kind.FOUND, "early", process=3, first=ProcessState.BLOCKED)
    writer.add(9, 0, Kind.FORK, 0, 4)
    explanation = fed([*writer.in_order()], "rr:table-scan").explain(3)
    assert (explanation["waits"], explanation["total_ns"], explanation["beside_idle_ns"]) == (
        [],
        0,
        0,
    )


def test_numbers_that_no_record_has_are_passed_over() -> None:
    wild = [(1 << 63, 0, 1, Kind.FORK, 0, 1, 0), (5, 1, 1 << 31, Kind.FORK, 0, 2, 0),
            (5, 2, 0, Kind.SWITCH, 900, 1, 0), (5, 3, 0, 999, 0, 1, 0),
            (5, 4, 1, Kind.FOUND, 0, 77, 1 << 40), (5, 5, 0, Kind.FORK, 0, 7, 0),
            (6, 6, 7, Kind.ATTRIBUTE, 0, AttributeKind.PRIORITY, 1 << 63)]  # fmt: skip
    model = Model(HEADER, "priority", "equal")
    model.feed(np.array(wild, RECORD))
    frame = model.frame()
    assert frame["processes"]["pid"].tolist() == [7]
    assert frame["now_ns"] == 6


def test_names_are_printed_visibly() -> None:
    """Names are escaped as by schedlab.base.display.names: broken UTF-8, and characters that
    change the writing direction or move cursors.
    """
    from schedlab.base.display.names import visible_line

    for name in (
        b"\x1b[31m\xff\n\t",
        "\u202eabc\u2028\ufeff".encode(),
        b"\xf0\x9f\x98",
        b"\xe2\x82\xac\xed\xa0\x80",
    ):
        padded = name.ljust(24, b"\0")
        rows = [(0, 0, 0, Kind.FORK, 0, 1, 0)]
        for number in range(2):
            second, first = struct.unpack("<QI", padded[12 * number : 12 * number + 12])
            rows.append((1, number, 1, Kind.TEXT if number else Kind.EXEC, 0, first, second))
        model = Model(HEADER, "rr", "equal")
        model.feed(np.array(rows, RECORD))
        shown = visible_line(name.decode("utf-8", "replace"))
        assert model.frame()["processes"]["name"] == [shown]


@pytest.mark.parametrize(
    ("words", "first", "second", "shown"),
    [
        (
            "waits for {} ns beside {}, {}",
            0xFFFF_FFFD,
            2**40,
            f"waits for {2**40} ns beside -3, {{}} · 7",
        ),
        ("{}", 1, 2**64 - 1, "-1 · 7"),
        ("nothing {", 1, 2, "nothing { · 7"),
    ],
)
def test_a_remark_is_a_mark_in_words(words: str, first: int, second: int, shown: str) -> None:
    writer = TraceWriter(1, 1_000_000, 1_000_000_000)
    writer.add(1, 0, Kind.FORK, 0, 7)
    writer.add_text(2, 0, Kind.SAID, words, process=7, first=first, second=second)
    writer.add(3, 0, Kind.MARK, 7, 4, 0)
    marks = fed([*writer.in_order()]).frame()["marks"]
    assert [(mark["kind"], mark["text"]) for mark in marks if mark["kind"] == "remark"] == [
        ("remark", shown)
    ]

# SPDX-License-Identifier: MIT
"""Tests untrusted workload files: the simulator reads them or reports the error, and never reads
out of bounds.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from schedlab.workload.binary_steps import checksum, encode_workload_text
from schedlab.workload.format import HEADER, PROGRAM
from schedlab_simulator import SetupRefused, Simulator, Workload, WorkloadRefused
from simulator_command import built, write_workload

TEXT = "channel c 1\nprogram a\n fork b\n loop 3\n run 1ms\n end\n cpus 0-1\n policy rr\nprogram b\n take c\n"
GOOD = encode_workload_text(TEXT)
HUGE = 2**32 - 1


def sealed(file: bytes, **fields: int) -> bytes:
    """Returns the file with these header fields, and a matching size and checksum."""
    header = np.frombuffer(file, HEADER, 1).copy()
    contents = file[HEADER.itemsize :]
    for name, value in {"bytes": len(file), "checksum": checksum(contents), **fields}.items():
        header[name] = value
    return bytes(header.tobytes() + contents)


def with_programs(change: Callable[[np.ndarray], None]) -> bytes:
    programs = np.frombuffer(GOOD, PROGRAM, 2, HEADER.itemsize).copy()
    change(programs)
    rest = GOOD[HEADER.itemsize + programs.nbytes :]
    return sealed(GOOD[: HEADER.itemsize] + programs.tobytes() + rest)


def set_field(name: str, index: int, value: int) -> Callable[[np.ndarray], None]:
    def change(programs: np.ndarray) -> None:
        programs[name][index] = value

    return change


WRONG = {
    "nothing": (b"", "it is no workload file: `./schedlab workloads` makes one"),
    "words": (TEXT.encode(), "it is no workload file"),
    "another kind": (b"X" + GOOD[1:], "it is no workload file"),
    "another version": (sealed(GOOD, version=1), "it is of another version"),
    "a longer header": (sealed(GOOD, header_bytes=72), "it is of another version"),
    "too long": (GOOD + b"\0", "its size is wrong"),
    "another tick": (sealed(GOOD, tick_ns=7_000_000), "compiled for a tick of 7000000 ns"),
    "a flipped bit": (GOOD[:-3] + b"!" + GOOD[-2:], "its checksum is wrong"),
    "no program": (sealed(GOOD[:64], **dict.fromkeys(
        ("program_count", "step_count", "channel_count", "text_count", "text_bytes"), 0)), "no program"),
    "no end": (sealed(GOOD[:-1] + b"x"), "its last text is not terminated"),
    "steps of another": (with_programs(set_field("first", 1, 0)), "a program's steps"),
    "steps behind the end": (with_programs(set_field("count", 1, HUGE)), "a program's steps"),
    "steps of nobody": (with_programs(set_field("count", 1, 1)), "steps belong to no program"),
    "a name behind the end": (with_programs(set_field("name", 1, HUGE)), "a program's name"),
    "two of one name": (with_programs(set_field("name", 1, 0)), "a program's name"),
    "half a name": (with_programs(set_field("name", 0, 1)), "a program's name"),
    **{
        f"a huge {name}": (sealed(GOOD, **{name: HUGE}), "its size is wrong")
        for name in ("program_count", "step_count", "channel_count", "text_count", "text_bytes")
    },
}  # fmt: skip


@pytest.mark.parametrize(("file", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_refused_with_the_cause(file: bytes, words: str) -> None:
    with pytest.raises((WorkloadRefused, SetupRefused)) as caught:
        Simulator(Workload.of_file(file, 1_000_000, "given")).close()
    assert words in str(caught.value)


def test_a_file_that_is_cut_off_is_refused_wherever_it_is() -> None:
    for length in range(len(GOOD)):
        with pytest.raises(WorkloadRefused):
            Workload.of_file(GOOD[:length])


def test_a_file_that_is_changed_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    """The simulator runs under sanitizers, and the checksum is correct."""
    draw = random.Random(1)
    program = str(built("sim-safe/schedlab-sim"))
    seen = set()
    for _ in range(40):
        changed = bytearray(GOOD)
        for _ in range(draw.choice((1, 1, 3))):
            changed[draw.randrange(40, len(GOOD))] = draw.choice((0, 1, 127, 255))
        path = tmp_path / "given"
        path.write_bytes(sealed(bytes(changed), tick_ns=1_000_000))
        words = [program, "--no-trace", "--limit", "5000000", "--cpus", "2", str(path)]
        result = subprocess.run(
            words, capture_output=True, text=True, errors="replace", check=False
        )
        assert result.returncode in (0, 1, 2, 3), result.stderr
        assert "Sanitizer" not in result.stderr and "runtime error" not in result.stderr
        assert result.returncode != 2 or result.stderr.startswith("schedlab-sim: ")
        seen.add(result.returncode)
    assert 2 in seen


def test_the_command_reads_standard_input_too(tmp_path: Path) -> None:
    path = write_workload(tmp_path, "program a\n run 2ms\n")
    words = [str(built("sim/schedlab-sim")), "--no-trace", "--costs", "none", "-"]
    with path.open("rb") as file:
        result = subprocess.run(words, stdin=file, capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert "time_ns 2000000\n" in result.stdout

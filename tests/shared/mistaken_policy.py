# SPDX-License-Identifier: MIT
"""The policy with mistakes, tests/mistakes/mistaken.c, and the programs that contain it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from schedlab.base.toolchain.build import build
from schedlab.metrics import compute
from schedlab.paths import BUILD_FOLDER, ROOT
from schedlab.trace import Kind, read, validate

SOURCE = ROOT / "tests" / "mistakes" / "mistaken.c"
KERNEL = BUILD_FOLDER / "mistaken" / "kernel.elf"
CHECKED = BUILD_FOLDER / "checked" / "mistaken" / "schedlab-sim"
PLAIN = BUILD_FOLDER / "mistaken" / "schedlab-sim"


@cache
def mistakes() -> dict[str, int]:
    """Returns the numbers of the mistakes, by name."""
    names = re.findall(r"\bMISTAKE_([A-Z_]+),", SOURCE.read_text().partition("enum mistake {")[2])
    return {name.lower(): number for number, name in enumerate(names)}


def line_of(text: str) -> int:
    """Returns the number of the only line of the policy that contains a text."""
    (number,) = (n for n, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line)
    return number


def check_remark(path: Path) -> None:
    """Checks that the trace has the policy's annotation of each process that it kills."""
    trace = read(path)
    validate(trace)
    (annotation,) = compute(trace).said.rows()
    words, times, last_ns, last = annotation
    assert words == "has had {} ticks, which is {} too many: the end"
    assert last == f"has had {2**40} ticks, which is -3 too many: the end"
    assert times == len(trace.rows(Kind.SAID)) > 0
    rows = trace.rows(Kind.SAID)
    assert last_ns == trace.at("time_ns", rows)[-1] > 20_000_000
    killed = trace.rows(Kind.EXIT)
    killed = killed[trace.at("first", killed) == 0xFFFF_FFFF]
    assert set(trace.at("process", killed)) <= set(trace.at("process", rows))


def built(*programs: Path) -> None:
    """Builds these of the three programs."""
    for program in programs:
        if program == CHECKED:
            build("checked", variables={"CHECKED": str(SOURCE.relative_to(ROOT))})
        else:
            build(str(program.relative_to(ROOT)))

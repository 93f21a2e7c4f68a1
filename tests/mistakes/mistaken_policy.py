# SPDX-License-Identifier: MIT
"""The policy that makes mistakes, tests/mistakes/mistaken.c, and what it is built into."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from schedlab.paths import BUILD, ROOT
from schedlab.toolchain.build import build

SOURCE = ROOT / "tests" / "mistakes" / "mistaken.c"
KERNEL = BUILD / "mistaken" / "kernel.elf"
CHECKED = BUILD / "checked" / "mistaken" / "schedlab-sim"
PLAIN = BUILD / "mistaken" / "schedlab-sim"


@cache
def mistakes() -> dict[str, int]:
    """Returns the numbers of the mistakes, by name."""
    names = re.findall(r"\bMISTAKE_([A-Z_]+),", SOURCE.read_text().partition("enum mistake {")[2])
    return {name.lower(): number for number, name in enumerate(names)}


def line_of(text: str) -> int:
    """Returns the number of the one line of the policy that contains a text."""
    (number,) = (n for n, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line)
    return number


def built(*programs: Path) -> None:
    """Builds these of the three."""
    for program in programs:
        if program == CHECKED:
            build("checked", variables={"CHECKED": str(SOURCE.relative_to(ROOT))})
        else:
            build(str(program.relative_to(ROOT)))

# SPDX-License-Identifier: MIT
"""What benchmarks of Linux print, as figures: by name, with the unit in the name.

    figures("sysbench cpu --threads=8 run", console)["events_per_second"]

A benchmark tells what it got done, which no trace of the scheduler holds; whatever the trace does
hold is taken from there. Text around an output, such as that of a console, does no harm.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from schedlab.base.outputs import hackbench, stress_ng, sysbench
from schedlab.base.outputs.errors import OutputError

Figures = dict[str, float]

READERS: dict[str, Callable[[str], Figures]] = {
    "sysbench": sysbench.figures,
    "hackbench": hackbench.figures,
    "stress-ng": stress_ng.figures,
}
"""Readers by the program's name."""


def figures(command: str, text: str) -> Figures:
    """What a command's output tells; nothing, if it is of no program known here.

    Raises OutputError if the program did not get so far as to say it.
    """
    try:
        words = shlex.split(command)
    except ValueError:  # a quote without its other one, as in the name of a file
        return {}
    read = READERS.get(words[0].rpartition("/")[2]) if words else None
    return read(text.replace("\r", "")) if read else {}


__all__ = ["READERS", "Figures", "OutputError", "figures"]

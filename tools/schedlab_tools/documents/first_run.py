# SPDX-License-Identifier: MIT
"""The beginning of what the README's first run of a workload prints."""

from __future__ import annotations

import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory

from schedlab_tools.documents.running import told_by

WORDS = ("run", "--workload", "mixed", "--cpus", "1-2")
PART = f"./schedlab {' '.join(WORDS)}"
_LATENCY = "wake-up latency"


def block() -> str:
    """Returns its table down to the wake-up latencies, as a block of Markdown.

    Raises SchedlabError if the run fails.
    """
    with TemporaryDirectory(prefix="schedlab-") as folder:
        told = told_by("schedlab", *WORDS, "--out", str(Path(folder) / "runs"), COLUMNS="80")
    lines = [line.rstrip() for line in told.splitlines()]
    begin = next(number for number, line in enumerate(lines) if "metric" in line)
    latency = next(number for number, line in enumerate(lines) if _LATENCY in line)
    end = lines.index("", latency)
    return "\n\n" + textwrap.indent("\n".join(lines[begin:end]), " " * 4) + "\n\n"

# SPDX-License-Identifier: MIT
"""The beginning of what the README's first run of a workload prints."""

from __future__ import annotations

import os
import subprocess
import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory

from schedlab.errors import SchedlabError
from schedlab.host.interpreter import module_command
from schedlab.paths import ROOT

WORDS = ("run", "--workload", "mixed", "--cpus", "1-2")
PART = f"./schedlab {' '.join(WORDS)}"
_LATENCY = "wake-up latency"


def block() -> str:
    """Returns its table down to the wake-up latencies, as a block of Markdown.

    Raises SchedlabError if the run fails.
    """
    with TemporaryDirectory(prefix="schedlab-") as folder:
        done = subprocess.run(
            [*module_command("schedlab", *WORDS), "--out", str(Path(folder) / "runs")],
            check=False,
            env={**os.environ, "COLUMNS": "80"},
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise SchedlabError(f"{PART} failed: {done.stderr.strip()}")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    begin = next(number for number, line in enumerate(lines) if "metric" in line)
    latency = next(number for number, line in enumerate(lines) if _LATENCY in line)
    end = lines.index("", latency)
    return "\n\n" + textwrap.indent("\n".join(lines[begin:end]), " " * 4) + "\n\n"

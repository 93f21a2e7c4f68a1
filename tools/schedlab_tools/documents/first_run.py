# SPDX-License-Identifier: MIT
"""Generates the excerpt of a comparison in the README."""

import re
import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory

from schedlab_tools.documents.marked_parts import printed_output

COMMAND_WORDS = (
    *("run", "--machine", "sim", "--workload", "docs/typist.json", "--policy", "rr,mlfq"),
    *("--cpus", "1", "--tick", "10ms"),
)
PART = "first run"
SHOWN_GROUPS = ("waiting", "wake-up latency", "context switches")
"""Groups of rows in the excerpt."""


def block() -> str:
    """Returns the head of the table and some groups of its rows, as a block of Markdown.

    Raises SchedlabError if the run fails.
    """
    with TemporaryDirectory(prefix="schedlab-") as folder:
        printed = printed_output(
            "schedlab", *COMMAND_WORDS, "--out", str(Path(folder) / "runs"), COLUMNS="80"
        )
    text = "\n".join(line.rstrip() for line in printed.splitlines())
    head = next(match for match in re.findall(r".*\n *─+", text) if "metric" in match)
    groups = [group for group in text.split("\n\n") if group.strip().startswith(SHOWN_GROUPS)]
    excerpt = textwrap.dedent("\n".join((head, "\n\n".join(groups))))
    return f"\n\n{textwrap.indent(excerpt, ' ' * 4)}\n\n"

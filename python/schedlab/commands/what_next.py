# SPDX-License-Identifier: MIT
"""What a run ends with on the terminal: what was found, and three commands that lead on."""

from __future__ import annotations

import os
import re
import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path

from schedlab.base.display.terminal import say_progress, tell

_WIDTH = 78
_COMPARED = 4
"""Policies that the second command sets side by side."""


def tell_findings(findings: Sequence[str]) -> None:
    """Prints what a report says first, without the marks of Markdown."""
    for each in findings:
        plain = re.sub(r"\\(.)|[*`]", lambda mark: mark[1] or "", each)
        tell(textwrap.fill(plain, _WIDTH, initial_indent="- ", subsequent_indent="  "))


def tell_what_next(runs: Sequence[Path]) -> None:
    """Says how to see one of these runs, to change something, and to write a policy; nothing if there are none.

    It goes where messages go: programs that read what is printed do not meet it.
    """
    if not runs:
        return
    from schedlab.base.toolchain.policies import known_policies

    some = ",".join(list(known_policies())[:_COMPARED])
    say_progress(f"See it:         ./schedlab monitor {shlex.quote(os.path.relpath(runs[0]))}")
    say_progress(
        f"Change it:      ./schedlab run --policy {some} --workload mixed --cpus 2 --runs 5"
    )
    say_progress("Write your own: ./schedlab new-policy my-own")

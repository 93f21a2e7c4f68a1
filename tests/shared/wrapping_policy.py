# SPDX-License-Identifier: MIT
"""The solution of the lab about shares as a policy in one file, and a variant whose pass
wraps below 0.
"""

from __future__ import annotations

import re
from pathlib import Path

from schedlab.paths import ROOT

_BEGINS = """    if ((reason == ENQUEUE_NEW || reason == ENQUEUE_WOKEN) && task_state->pass < state->pass)
        task_state->pass = state->pass;
"""
_WRAPS = """    uint64_t least = state->pass - queue->scheduler->tick_ns * ONE;
    if ((reason == ENQUEUE_NEW || reason == ENQUEUE_WOKEN) && task_state->pass < least)
        task_state->pass = least;
"""


def passes(source: Path, wraps: bool) -> Path:
    """Writes the policy to a file named after its structure, and returns the file.

    wraps: subtracts a tick from the pass of an arriving task, which is 0 at the start.
    """
    text = (ROOT / "labs" / "shares" / "solution.c").read_text()
    assert _BEGINS in text
    text = re.sub(r'#include "(\w+\.h)"', r'#include "policies/\1"', text)
    text = text.replace("policy_passes", f"policy_{source.stem}")
    text = text.replace('.name = "passes"', f'.name = "{source.stem}"')
    source.write_text(text.replace(_BEGINS, _WRAPS) if wraps else text)
    return source

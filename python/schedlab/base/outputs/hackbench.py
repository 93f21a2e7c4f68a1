# SPDX-License-Identifier: MIT
"""The report of hackbench (rt-tests)."""

from __future__ import annotations

from schedlab.base.outputs.errors import number_after


def figures(text: str) -> dict[str, float]:
    """`elapsed_s`: until all messages were passed; `tasks` that passed them."""
    return {
        "elapsed_s": number_after("hackbench", text, "time", r"Time: ([\d.]+)$"),
        "tasks": number_after("hackbench", text, "number of tasks", r"Running in .*== (\d+) tasks"),
    }

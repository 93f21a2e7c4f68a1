# SPDX-License-Identifier: MIT
"""Makes submissions for tests: the round-robin lab's solution with changes in one of its hooks."""

from __future__ import annotations

from pathlib import Path

from conftest import ROOT

SOLUTION = ROOT / "labs" / "round-robin" / "solution.c"
LAB = """{
    "title": "Small", "policy": "turns", "headers": ["task_list.h"],
    "tests": {"small": {
        "workload": {"tasks": {"a": {"loop": 1, "run": "4ticks"}, "b": {"loop": 1, "run": "2ticks"}}},
        "expect": [{"law": "ends", "points": 1}, {"order": "solution", "points": 8}]
    }}
}
"""
"""The smallest lab that shows a difference."""


def small_lab(folder: Path) -> Path:
    """Makes a lab of one test, whose solution is round-robin, and returns its folder."""
    folder.mkdir()
    (folder / "lab.json").write_text(LAB)
    (folder / "solution.c").write_text(SOLUTION.read_text())
    return folder


def solution_with(old: str, new: str, before: str = "") -> str:
    """Returns the solution with one text replaced, and with code before all functions."""
    text = SOLUTION.read_text()
    assert old in text
    changed = text.replace(old, new, 1)
    return changed.replace("POLICY_FUNCTION", f"{before}\nPOLICY_FUNCTION", 1)


PICK = "    return task_list_take_first_on(&STATE_OF(queue, struct turns_queue)->line, cpu);\n"
"""The complete body of pick()."""


def picking(body: str, before: str = "") -> str:
    """Returns the solution with code inserted at the start of pick()."""
    return solution_with(PICK, f"{body}\n{PICK}", before)

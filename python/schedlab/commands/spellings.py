# SPDX-License-Identifier: MIT
"""Command lines of the release before: each still works, and names its new spelling."""

from __future__ import annotations

from collections.abc import Sequence

from schedlab.base.display.terminal import say

RENAMED = {
    "bench": "dev bench",
    "docs": "dev docs",
    "lint": "dev lint",
    "soak": "dev soak",
    "run study": "reproduce",
    **{f"run study-{number}": f"reproduce study-{number}" for number in range(1, 7)},
    "run --quick": "reproduce --quick",
    "run --full": "reproduce --full",
    "run --replay": "replay",
    "run --what-if": "replay --what-if",
    "run --again": "verify",
    "trace --from-perf": "import",
    "branch --seed": "branch --seeds",
    "explore --workers": "explore --jobs",
    "score --set": "score --workload-set",
    "sweep --workers": "sweep --jobs",
}
"""Old spelling: new spelling. The second word stands anywhere behind the first; its value stays."""

_FLAGS = ("--dry-run", "--ignore-limits", "--json", "--no-kvm", "--quiet", "--unchecked")
"""Options of these commands without a value: a word that follows is no value of theirs."""


def modernize(words: Sequence[str]) -> list[str]:
    """Returns a command line in the new spelling, and prints a line if it was in an old one."""
    command, *others = words or [""]
    if command in RENAMED:
        return _changed(command, [], others)
    for place, word in enumerate(others):
        name, _, value = word.partition("=")
        before = others[place - 1] if place else ""
        takes_value = before.startswith("--") and "=" not in before and before not in _FLAGS
        is_value = takes_value and not word.startswith("--")
        if f"{command} {name}" in RENAMED and not is_value:
            own = [value] if value else []
            return _changed(f"{command} {name}", others[:place], own + others[place + 1 :])
    return list(words)


def _changed(old: str, before: list[str], after: list[str]) -> list[str]:
    new = RENAMED[old]
    command, *more = new.split()
    say(f"schedlab: `{old}` is `./schedlab {new}` now; the old spelling goes with the next release")
    return [command, *before, *more, *after]

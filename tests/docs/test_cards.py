# SPDX-License-Identifier: MIT
"""Tests the tables of docs/score.md: they list all policies, and the facts of their cards."""

from __future__ import annotations

import re

from schedlab.base.toolchain.policies import known_policies
from schedlab.courses.scoring.workload_sets import read_set
from schedlab_tools.documents import cards
from schedlab_tools.documents.marked_parts import marked

SET = read_set()
LEVEL = SET.levels[cards.LEVEL]


def test_policies_have_rows_and_objectives_columns() -> None:
    """If this fails, run `./schedlab dev docs cards`."""
    worth = marked(cards.DOCUMENT.read_text(), cards.PART)
    names = [objective.name for objective in SET.objectives_of(LEVEL)]
    assert f"| {' | '.join(names)} | score |" in worth
    assert sorted(re.findall(r"^\| `(\w+)`", worth, re.MULTILINE)) == sorted(known_policies())
    spread = marked(cards.DOCUMENT.read_text(), cards.SPREAD)
    assert re.findall(r"^\| ([\w-]+) \| `", spread, re.MULTILINE) == names
    assert "64 CPUs" in spread

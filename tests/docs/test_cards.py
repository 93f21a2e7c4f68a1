# SPDX-License-Identifier: MIT
"""The tables of docs/score.md: all policies are in them, and what they say of cards."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from schedlab.base.toolchain.policies import known_policies
from schedlab.courses.scoring.card import Measured, card
from schedlab.courses.scoring.sets import read_set
from schedlab_tools.documents import cards
from schedlab_tools.documents.marked import marked

SET = read_set()
LEVEL = SET.levels[cards.LEVEL]


def test_each_policy_has_a_row_and_each_objective_a_column() -> None:
    """Else: ./schedlab dev docs cards."""
    worth = marked(cards.DOCUMENT.read_text(), cards.PART)
    names = [each.name for each in SET.objectives_of(LEVEL)]
    assert f"| {' | '.join(names)} | score |" in worth
    assert sorted(re.findall(r"^\| `(\w+)`", worth, re.MULTILINE)) == sorted(known_policies())
    spread = marked(cards.DOCUMENT.read_text(), cards.SPREAD)
    assert re.findall(r"^\| ([\w-]+) \| `", spread, re.MULTILINE) == names
    assert "64 CPUs" in spread


def made_up() -> cards.Cards:
    """Of one objective: one policy surely twice as good, one worse by chance."""
    own = SET.objectives_of(LEVEL)[:1]
    logs = {"rr": (1.0, 1.0, 1.0), "twice": (0.51, 0.5, 0.49), "chance": (1.0, 3.0, 0.5)}
    values = {name: {own[0].name: np.log(np.array(each))} for name, each in logs.items()}
    few, found = replace(SET, objectives=own), Measured(values, {})
    return {name: card(few, LEVEL, found, name) for name in logs}


def test_what_is_chance_is_marked() -> None:
    found = made_up()
    told = {name: cards._factor(own.figures[0].better) for name, own in found.items()}
    assert told == {"rr": "≈ 1.00", "twice": "2.00", "chance": "≈ 0.87"}
    assert cards._factor(None) == "–"


def test_a_range_has_its_ends_and_how_many_differ() -> None:
    found = made_up()
    assert cards._range(found, 0) == "`chance` 0.87 – `twice` 2.00 (1)"

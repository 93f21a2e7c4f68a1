# SPDX-License-Identifier: MIT
"""Tests docs/gallery: a page per policy, with results of the sweep and the policy's current
code."""

from __future__ import annotations

import re

import pytest

from committed_policies import policies_in_progress
from schedlab.base.toolchain.policies import known_policies
from schedlab_tools.documents.gallery import pages, trials
from schedlab_tools.documents.gallery.study_presets import study_presets
from schedlab_tools.documents.marked_parts import marked

SENTENCES = 3

BUILT_IN = [policy for policy in trials.policies() if policy not in policies_in_progress()]


@pytest.mark.parametrize("policy", BUILT_IN)
def test_policies_have_pages(policy: str) -> None:
    """If this fails, write a page like the others, then run `./schedlab dev docs gallery`."""
    text = pages.page_of(policy).read_text()
    idea = text.split("\n\n")[1]
    assert len(re.findall(r"\.(?:\s|$)", idea)) == SENTENCES, idea
    assert "**When to use it.**" in text
    for side in ("good", "fails"):
        marked_text = marked(text, side)
        named = re.findall(r"\((\w+-\w+\.svg)\)", marked_text)
        assert (
            named == [f"{policy}-{side}.svg"]
            or "nothing" in marked_text
            or "no contest" in marked_text
        )
        assert all((pages.FOLDER / name).is_file() for name in named)


def test_the_list_has_all_policies() -> None:
    rows = marked(pages.INDEX.read_text(), "policies").strip().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == BUILT_IN


def test_study_presets_have_pages() -> None:
    """If this fails, add it to studies/N/presets.yaml and run `./schedlab dev docs
    study-presets`."""
    named = {
        f"{policy.name}:{preset.name}": re.search(r"study (\d)", preset.meaning)
        for policy in known_policies().values()
        for preset in policy.presets.values()
    }
    expected = {policy: int(study[1]) for policy, study in named.items() if study}
    pages_of = {preset.policy: preset.study.number for preset in study_presets()}
    assert len(expected) == 15
    assert expected.items() <= pages_of.items()
    assert set(pages_of.values()) == {1, 2, 3, 4, 5}

# SPDX-License-Identifier: MIT
"""The studies' texts: their sections, paragraphs and numbers, for tests that compare them with our data."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

from schedlab.paths import ROOT

STUDIES = Path(os.environ.get("SCHEDLAB_STUDIES") or ROOT.parent / "shared" / "studies")
"""Where the studies' texts are, on machines that have them."""


# The texts.


@cache
def study_text(number: int) -> str:
    """The text of a study; the test is skipped where it is not there."""
    paths = list(STUDIES.glob(f"{number}-*.txt"))
    if not paths:
        pytest.skip(f"{STUDIES} does not hold study {number}")
    return paths[0].read_text(encoding="utf-8")


@cache
def baselines() -> str:
    """What was measured with the studies' programs."""
    path = STUDIES.parent / "baselines.md"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path.read_text(encoding="utf-8")


@cache
def sections(study: int) -> dict[str, str]:
    """A study's text by the numbers of its sections, without the sections within them."""
    heading = re.compile(r"^(?:#+ )?(\d(?:\.\d+)*) [A-Z*/][^\n]*$", re.MULTILINE)
    text = study_text(study)
    found = list(heading.finditer(text))
    ends = [each.start() for each in found[1:]] + [len(text)]
    return {each[1]: text[each.start() : end] for each, end in zip(found, ends, strict=True)}


def section(study: int, number: str) -> str:
    return sections(study)[number]


def paragraphs(text: str) -> list[str]:
    """Lines between empty ones, as one line. The items of a list are paragraphs of their own.

    One that goes on in lower case is joined: there the page ended.
    """
    blocks = re.split(r"\n\s*\n(?![a-z])|\n(?=- |\d+\. |\| |• )", text)
    return [re.sub(r"\s+", " ", block) for block in blocks]


def numbers(text: str) -> set[str]:
    """As printed, except commas between thousands."""
    joined = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    return set(re.findall(r"(?<![\d.])\d+(?:\.\d+)?", joined))

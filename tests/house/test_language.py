# SPDX-License-Identifier: MIT
"""Tests that the English of the project becomes plainer: budgets per directory that only fall.

After a change that lowers a number, write the new budgets with SCHEDLAB_GOLDEN=write ./schedlab dev
lint.
"""

from __future__ import annotations

import csv
import math
import os
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import wording
from conftest import ROOT
from test_style import check, tracked_files

BUDGETS = Path(__file__).with_name("language") / "budgets.csv"
NAMES = {"Python": "(vague names)", "C": "(vague names: C)", "C++": "(vague names: C++)",
         "JavaScript": "(vague names: JavaScript)"}  # fmt: skip
"""Budget rows for vague names per 1,000 definitions; other rows are phrases per 1,000 words."""
RATE_MAX = 2.5
"""Phrases per 1,000 words allowed in a directory without a budget."""
SENTENCE_MAX, SENTENCE_AIM = 30, 25
OVER_AIM_MAX = 0.08
"""Share of a document's sentences that may be longer than the aim."""
SMALL = 1000
"""Number of words below which a directory has no budget, because a single phrase would decide."""


def directory_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts[:-1]
    return "/".join(parts[: 3 if parts[:2] == ("python", "schedlab") else 1]) or "."


def measured_rates() -> dict[str, float]:
    words: dict[str, int] = defaultdict(int)
    hits: dict[str, int] = defaultdict(int)
    phrases = wording.read_phrases()
    for path in tracked_files():
        text = wording.prose(path)
        directory = directory_of(path)
        words[directory] += len(text.split())
        hits[directory] += sum(len(phrase.pattern.findall(text)) for phrase in phrases)
    rates = {name: 1000 * hits[name] / count for name, count in words.items() if count >= SMALL}
    for language, row in NAMES.items():
        vague, total = wording.vague_names(tracked_files(), language)
        rates[row] = 1000 * vague.total() / total
    return rates


def test_definitions_are_recognised() -> None:
    c = """
    #define LIMIT(found) 3
    struct told { int *kept; enum kind { BEGUN, LAST }; };
    static uint64_t each(const struct task *own, int there[2]) { return a * wanted; } /* int held; */
    """
    names = {"found", "told", "kept", "BEGUN", "each", "own", "there"}
    js = """
    const { own: state, told } = frame; // const held = 1;
    class Kept {
        #whole = 0;
        begun(asked, { said = 2 }) {
            return asked.map((each) => each + 1);
        }
    }
    """
    js_names = {"told", "Kept", "whole", "begun", "asked", "said", "each"}
    for file, text, expected in ((".c", c, names), (".js", js, js_names)):
        ((_, definitions),) = (entry for entry in wording.LANGUAGES.values() if file in entry[0])
        assert wording.read_vague_words() & {name.lower() for name in definitions(text)} == {
            name.lower() for name in expected
        }


def test_budgets_only_fall() -> None:
    with BUDGETS.open(newline="") as file:
        budgets = {row["directory"]: float(row["per_1000"]) for row in csv.DictReader(file)}
    rates = measured_rates()
    if os.environ.get("SCHEDLAB_GOLDEN") == "write":
        lower = {name: min(budgets.get(name, rate), rate) for name, rate in rates.items()}
        with BUDGETS.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("directory", "per_1000"))
            rounded = {name: math.ceil(round(10 * rate, 6)) / 10 for name, rate in lower.items()}
            writer.writerows(sorted(rounded.items()))
        return
    over = {
        name: f"{rate:.2f}, budget {budgets.get(name, RATE_MAX)}"
        for name, rate in rates.items()
        if rate > budgets.get(name, RATE_MAX)
    }
    assert over == {}, "rewrite the sentences or names; tests/house/language lists what to write"


def test_spelling() -> None:
    """If a word is right, add it to `ignore-words-list` of `[tool.codespell]` in pyproject.toml."""
    files = [str(path.relative_to(ROOT)) for path in tracked_files()]
    check(sys.executable, "-m", "codespell_lib", *files)


def test_documents_are_in_british_english() -> None:
    words = dict(line.split() for line in wording.lines("british.txt"))
    american = re.compile(rf"\b(?:{'|'.join(words)})\w*", re.IGNORECASE)
    found = {
        str(path.relative_to(ROOT)): sorted(set(names))
        for path in tracked_files()
        if path.suffix == ".md" and (names := american.findall(wording.prose(path)))
    }
    assert found == {}, words


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_sentences_are_short(document: Path) -> None:
    lengths = {
        sentence: len(sentence.split()) for sentence in wording.sentences(wording.prose(document))
    }
    too_long = [sentence for sentence, length in lengths.items() if length > SENTENCE_MAX]
    assert too_long == []
    over_aim = sum(length > SENTENCE_AIM for length in lengths.values())
    assert over_aim <= max(1, OVER_AIM_MAX * len(lengths))

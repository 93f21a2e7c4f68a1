# SPDX-License-Identifier: MIT
"""Files of the repository that are made of others are of those that are there now."""

from __future__ import annotations

import pytest

from schedlab.documents.gallery import pages, trials
from schedlab.documents.marked import marked
from schedlab.page.build import BYTES_MAX, FILE, hash_in, hash_of, sources
from schedlab.studies import document
from schedlab.toolchain import kept


def test_the_page_that_stands_alone() -> None:
    """Else: ./schedlab page, and commit page/schedlab.html."""
    page = FILE.read_text()
    assert hash_in(page) == hash_of(sources())
    assert kept.hash_in(page) == kept.sources_hash()
    assert len(page.encode()) <= BYTES_MAX


def test_the_document_of_the_studies() -> None:
    """Else: ./schedlab docs studies, and look at what it changes."""
    assert document.DOCUMENT.read_text(encoding="utf-8") == document.text()


@pytest.mark.parametrize("policy", trials.policies())
def test_the_code_in_the_gallery(policy: str) -> None:
    """Else: ./schedlab docs gallery-code."""
    page = pages.page_of(policy).read_text()
    assert marked(page, "code") == pages.code(page, policy)

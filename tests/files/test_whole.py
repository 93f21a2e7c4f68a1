# SPDX-License-Identifier: MIT
"""Tests that files are written completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.base.files.atomic import file_hash, written


def test_file_is_replaced_only_when_complete(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("before")
    with written(place) as new:
        new.write_text("after")
        assert place.read_text() == "before"
    assert place.read_text() == "after"
    assert list(tmp_path.iterdir()) == [place]


def test_unfinished_file_leaves_nothing(tmp_path: Path) -> None:
    place = tmp_path / "file"

    def half() -> None:
        with written(place) as new:
            new.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        half()
    assert not list(tmp_path.iterdir())


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"abc")
    assert file_hash(place).startswith("ba7816bf")

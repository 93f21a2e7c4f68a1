# SPDX-License-Identifier: MIT
"""Tests that files are written completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.base.files.atomic import atomic_write, file_hash


def test_file_is_replaced_only_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    with atomic_write(path) as new:
        new.write_text("after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


def test_unfinished_file_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def half() -> None:
        with atomic_write(path) as new:
            new.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        half()
    assert not list(tmp_path.iterdir())


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert file_hash(path).startswith("ba7816bf")

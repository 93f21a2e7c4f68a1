# SPDX-License-Identifier: MIT
"""`./schedlab test` and `dev lint`: what is built before pytest starts, and what it is told."""

from __future__ import annotations

import os

import pytest
from click.testing import CliRunner

from schedlab.base.toolchain import build
from schedlab.commands.cli import cli

EVERYTHING = ("all", "host-tests", build.SIMULATOR_LIBRARY)


class Started(BaseException):
    """Instead of pytest."""


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What is built; pytest is not started."""
    targets: list[tuple[str, ...]] = []

    def no_start(program: str, words: list[str]) -> None:
        raise Started(" ".join(words[words.index("pytest") :]))

    monkeypatch.setattr(os, "execv", no_start)
    monkeypatch.setattr(os, "chdir", lambda place: None)
    monkeypatch.setattr(build, "build", lambda *names: targets.append(names))
    return targets


def started(*words: str) -> str:
    with pytest.raises(Started) as told:
        CliRunner().invoke(cli, words, catch_exceptions=False)
    return str(told.value)


@pytest.mark.parametrize("more", [(), ("-n", "1"), ("--long",), ("--fuzz-cases", "50")])
def test_all_tests_have_everything_built_and_leave_the_form_of_files_to_lint(
    built: list[tuple[str, ...]], more: tuple[str, ...]
) -> None:
    words = started("test", *more)
    assert built == [EVERYTHING]
    assert "--ignore tests/house" in words
    assert words.endswith(" ".join(more))


@pytest.mark.parametrize(
    "more",
    [
        ("tests/trace",),
        ("tests/host/test_host_programs.py::test_host_program[format_test]", "-n", "1"),
        ("-k", "trace"),
        ("-m", "spike"),
        ("--fast",),
        ("--lf",),
    ],
)
def test_some_build_what_they_need_themselves(
    built: list[tuple[str, ...]], more: tuple[str, ...]
) -> None:
    assert started("test", *more).endswith(" ".join(more))
    assert built == []


def test_fast_ones_run_in_one_process(built: list[tuple[str, ...]]) -> None:
    assert "-n 0" in started("test", "--fast")


def test_lint_builds_nothing(built: list[tuple[str, ...]]) -> None:
    assert "tests/house" in started("dev", "lint", "-q")
    assert built == []

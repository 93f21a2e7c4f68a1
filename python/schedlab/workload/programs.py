# SPDX-License-Identifier: MIT
"""Lists the programs on the schedlab kernel's disk, and their options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import zip_longest

from schedlab.errors import WrongUsage, format_parameter
from schedlab.paths import ROOT
from schedlab.workload.palette import read_palette

_WORKLOADS = "workloads/*.c"
_DISK_SOURCES = (
    *("user/programs/*.c", _WORKLOADS, "bench/guest/*.c"),
    *("tests/guest/*.c", "tests/guest/raw/*.c", "tests/scenario/scenario.c"),
)
"""Sources of the programs on the disk, as in the Makefile."""
_PLAY_PROGRAM = "play"
"""The program that executes workload files; users do not start it themselves."""
_COMMENT = re.compile(r"^/\*(?! SPDX)(.+?)\*/$", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r"\{'(\w)',\s*\"([^\"]*)\",\s*&\w+,\s*([^,]+?),\s*([^}]+?)\}")
"""A row in a program's table of options: letter, meaning, variable, minimum and maximum."""
_SUITE_HEADER = '"workloads/api/suite.h"'
"""Header of programs that consist of several tests."""
_NUMBER = re.compile(r"[0-9]{1,18}")


@cache
def disk_programs() -> frozenset[str]:
    """Returns the names of all programs on the schedlab kernel's disk."""
    return frozenset(path.stem for pattern in _DISK_SOURCES for path in ROOT.glob(pattern))


def workload_programs() -> dict[str, str]:
    """Returns the workload programs by name, with the first sentence of each one's description."""
    sources = sorted(ROOT.glob(_WORKLOADS))
    return {
        path.stem: _first_sentence(path.read_text())
        for path in sources
        if path.stem != _PLAY_PROGRAM
    }


def check_known(workload: str, programs: frozenset[str]) -> None:
    """Raises WrongUsage if a command's program is unknown.

    `workload` must not be blank. A program given by its path is not checked.
    """
    name, *options = workload.split()
    if name in programs or "/" in name:
        check_options(name, options)
        return
    palette_entries = read_palette()
    if name in palette_entries and options:
        raise WrongUsage(
            f"{name} is a workload file on this machine and takes no options",
            what=format_parameter("workload", workload),
            fix="leave them out, or change its values with `changes=`",
        )
    similar = get_close_matches(name, {*programs, *palette_entries}, 1)
    suggestion = f"; did you mean {similar[0]!r}?" if similar else "."
    raise WrongUsage(
        f"unknown workload {name!r}{suggestion} `./schedlab workloads` lists all",
        what="`workload=`",
    )


def check_options(name: str, words: Sequence[str]) -> None:
    """Raises WrongUsage for an unknown option of a workload program, or an invalid number.

    The first word may be the name of a test, which the program itself checks. Programs that are no
    workloads check all words themselves.
    """
    options = read_options(name)
    if not options or "--help" in words:
        return
    if words and not words[0].startswith("-") and "workload_choose(" in _source_with_options(name):
        words = words[1:]
    for option, number in zip_longest(words[::2], words[1::2]):
        problem = _why_wrong(options.get(option), number)
        if problem:
            described_options = ", ".join(
                f"{option} ({option_name.meaning})" for option, option_name in options.items()
            )
            raise WrongUsage(
                f"{name} {option}: {problem}. It has {described_options}", what="`workload=`"
            )


def _why_wrong(option: Option | None, number: str | None) -> str:
    """Returns what is wrong with an option or its number; "" if nothing is."""
    if option is None:
        return "there is no such option"
    if number is None or not _NUMBER.fullmatch(number):
        return "it needs a number"
    least, most = option.least, option.most
    if (least is not None and int(number) < least) or (most is not None and int(number) > most):
        return (
            f"{number} is out of its range, which is {least} to {'more' if most is None else most}"
        )
    return ""


@dataclass(frozen=True)
class Option:
    """An option of a program, which takes a number.

    `least`, `most`: its range; None if the source has a named constant there.
    """

    meaning: str
    least: int | None
    most: int | None


_SEED = Option("seed of the random numbers", 0, 2**63 - 1)


@cache
def read_options(name: str) -> dict[str, Option]:
    """Returns the options of a workload program by letter, from its source; {} for other programs."""
    text = _source_with_options(name)
    options = {
        f"-{letter}": Option(meaning, _read_bound(least), _read_bound(most))
        for letter, meaning, least, most in _OPTION.findall(text)
    }
    return {**options, "-s": _SEED} if "workload_init(" in text else {}


@cache
def _source_with_options(name: str) -> str:
    """Returns the source of a workload program if it contains its options; "" otherwise."""
    source = ROOT / "workloads" / f"{name}.c"
    if name == _PLAY_PROGRAM or not source.is_file():
        return ""
    text = source.read_text()
    return text + (ROOT / "workloads/api/suite.c").read_text() if _SUITE_HEADER in text else text


def _read_bound(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _first_sentence(source: str) -> str:
    match = _COMMENT.search(source)
    text = " ".join(match[1].replace("\n *", " ").split()) if match else ""
    return re.split(r"(?<=[.:])\s", text, maxsplit=1)[0].rstrip(".:")

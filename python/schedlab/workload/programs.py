# SPDX-License-Identifier: MIT
"""Lists the programs on the schedlab kernel's disk, and describes the workloads among them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import zip_longest

from schedlab.errors import WrongUsage, parameter
from schedlab.paths import ROOT
from schedlab.workload.palette import palette

_WORKLOADS = "workloads/*.c"
_DISK = (
    *("user/programs/*.c", _WORKLOADS, "bench/guest/*.c"),
    *("tests/guest/*.c", "tests/guest/raw/*.c", "tests/scenario/scenario.c"),
)
"""As in the Makefile."""
_PLAYER = "play"
"""The program that plays workload files; users do not start it."""
_COMMENT = re.compile(r"^/\*(?! SPDX)(.+?)\*/$", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r"\{'(\w)',\s*\"([^\"]*)\",\s*&\w+,\s*([^,]+?),\s*([^}]+?)\}")
"""A row of a program's option table: letter, meaning, variable, least and most."""
_SUITE = '"workloads/api/suite.h"'
"""Included by programs that have the options of a suite."""
_NUMBER = re.compile(r"[0-9]{1,18}")


@cache
def disk_programs() -> frozenset[str]:
    """Returns the names of all programs on the schedlab kernel's disk."""
    return frozenset(path.stem for pattern in _DISK for path in ROOT.glob(pattern))


def workload_programs() -> dict[str, str]:
    """Returns the workload programs by name, with the first sentence of each one's description."""
    sources = sorted(ROOT.glob(_WORKLOADS))
    return {
        path.stem: _first_sentence(path.read_text()) for path in sources if path.stem != _PLAYER
    }


def check_known(workload: str, programs: frozenset[str]) -> None:
    """Raises WrongUsage if the program of a command is unknown. `workload` must not be blank; a path is not checked."""
    name, *options = workload.split()
    if name in programs or "/" in name:
        check_options(name, options)
        return
    ready = palette()
    if name in ready and options:
        raise WrongUsage(
            f"{name} is a workload file on this machine and takes no options",
            what=parameter("workload", workload),
            fix="leave them out, or change its values with `changes=`",
        )
    close = get_close_matches(name, {*programs, *ready}, 1)
    suggestion = f"; did you mean {close[0]!r}?" if close else "."
    raise WrongUsage(
        f"unknown workload {name!r}{suggestion} `./schedlab workloads` lists all",
        what="`workload=`",
    )


def check_options(name: str, words: Sequence[str]) -> None:
    """Raises WrongUsage for an unknown option of a workload program, or an invalid number.

    Programs check the name of a test, their possible first word, themselves. Other programs check
    all their words.
    """
    known = options_of(name)
    if not known or "--help" in words:
        return
    if words and not words[0].startswith("-") and "workload_choose(" in _source(name):
        words = words[1:]
    for option, number in zip_longest(words[::2], words[1::2]):
        why = _wrong(known.get(option), number)
        if why:
            known_options = ", ".join(
                f"{option} ({option_name.meaning})" for option, option_name in known.items()
            )
            raise WrongUsage(f"{name} {option}: {why}. It has {known_options}", what="`workload=`")


def _wrong(option: Option | None, number: str | None) -> str:
    """Returns what is wrong with an option and its number, or ""."""
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
    """An option of a program, which takes a number. `least`, `most`: None if the source uses a named constant."""

    meaning: str
    least: int | None
    most: int | None


_SEED = Option("seed of the random numbers", 0, 2**63 - 1)


@cache
def options_of(name: str) -> dict[str, Option]:
    """Returns the options of a workload program from its source; {} for other programs."""
    text = _source(name)
    options = {
        f"-{letter}": Option(meaning, _bound(least), _bound(most))
        for letter, meaning, least, most in _OPTION.findall(text)
    }
    return {**options, "-s": _SEED} if "workload_init(" in text else {}


@cache
def _source(name: str) -> str:
    """Returns the source of a workload program that defines its options; "" for other programs."""
    source = ROOT / "workloads" / f"{name}.c"
    if name == _PLAYER or not source.is_file():
        return ""
    text = source.read_text()
    return text + (ROOT / "workloads/api/suite.c").read_text() if _SUITE in text else text


def _bound(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _first_sentence(source: str) -> str:
    match = _COMMENT.search(source)
    text = " ".join(match[1].replace("\n *", " ").split()) if match else ""
    return re.split(r"(?<=[.:])\s", text, maxsplit=1)[0].rstrip(".:")

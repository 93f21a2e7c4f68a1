# SPDX-License-Identifier: MIT
"""The programs on our kernel's disk, and what those among them do that are workloads."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache

from schedlab.errors import WrongUsage
from schedlab.paths import ROOT
from schedlab.workload.palette import palette

_WORKLOADS = "workloads/*.c"
_DISK = (
    *("user/programs/*.c", _WORKLOADS, "bench/guest/*.c"),
    *("tests/guest/*.c", "tests/guest/raw/*.c", "tests/scenario/scenario.c"),
)
"""As in the Makefile."""
_PLAYER = "play"
"""The program that carries out workload files: no user starts it."""
_COMMENT = re.compile(r"^/\*(?! SPDX)(.+?)\*/$", re.MULTILINE | re.DOTALL)


@cache
def disk_programs() -> frozenset[str]:
    """Returns the names of all programs that our kernel finds."""
    return frozenset(path.stem for pattern in _DISK for path in ROOT.glob(pattern))


def workload_programs() -> dict[str, str]:
    """Returns the workloads among them, by name, with the first sentence of what each says of itself."""
    sources = sorted(ROOT.glob(_WORKLOADS))
    return {
        path.stem: _first_sentence(path.read_text()) for path in sources if path.stem != _PLAYER
    }


def check_known(workload: str, programs: frozenset[str]) -> None:
    """Raises WrongUsage if the program of a command, which is not blank, is none of these. A path is not
    looked into."""
    name, *options = workload.split()
    if name in programs or "/" in name:
        return
    ready = palette()
    if name in ready and options:
        raise WrongUsage(
            f"--workload {workload!r}: {name} is a workload file here, which has no options. Leave them"
            " out, or change its values with --with"
        )
    close = get_close_matches(name, {*programs, *ready}, 1)
    meant = f"; did you mean {close[0]!r}?" if close else "."
    raise WrongUsage(
        f"--workload: no workload is called {name!r}{meant} `./schedlab workloads` lists them"
    )


def _first_sentence(source: str) -> str:
    found = _COMMENT.search(source)
    text = " ".join(found[1].replace("\n *", " ").split()) if found else ""
    return re.split(r"(?<=[.:])\s", text, maxsplit=1)[0].rstrip(".:")

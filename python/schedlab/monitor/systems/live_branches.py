# SPDX-License-Identifier: MIT
"""Branches a live machine by repeating it with schedlab's Spike driver.

The driver boots the machine again with all recorded console input, and forks the machine at the
branch point (docs/spike.md).
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from schedlab.base.host.supervision import supervise_async
from schedlab.errors import SchedlabError
from schedlab.machines import Boot, Branching, KernelMachine
from schedlab.machines.folder import CONSOLE, TYPED
from schedlab.machines.outcome import Outcome, outcome_of, read_console, tail_of

LENGTH_NS = 5_000_000_000
"""Length of a branch (ns). The branch ends automatically."""
_END = r"@@ 1000000 end\x0a"
"""The command that ends a branch."""
_LINE_END = r"\x0a"
_SECONDS = 120.0
"""Host seconds after which the rerun is considered hung."""


def typed_until(text: str, at_ns: int) -> str:
    """Returns the console input before a moment, up to the end of a command, and a later `end` command."""
    typed: list[str] = []
    for line in text.splitlines():
        if int(line.partition(" ")[0]) >= at_ns and (not typed or typed[-1].endswith(_LINE_END)):
            break
        typed.append(line)
    return "".join(f"{line}\n" for line in [*typed, f"{at_ns + LENGTH_NS} {_END}"])


async def run_again(
    machine: KernelMachine, boot: Boot, typed: Path, at_ns: int, files: Mapping[Path, str]
) -> list[Outcome]:
    """Boots a machine again with the same input, and branches it at a moment.

    `files` maps each branch's folder to the commands that its kernel receives at that moment.
    Raises SchedlabError if the machine did not reach the moment.
    """
    assert isinstance(machine, Branching)
    with tempfile.TemporaryDirectory(prefix="schedlab-") as name:
        place = Path(name)
        again = place / TYPED
        again.write_text(typed_until(typed.read_text(), at_ns))
        command = machine.command(replace(boot, typed=again, keeps_typed=False))
        command = machine.branched(command, at_ns, files, len(files))
        status = await supervise_async(command, place, place / CONSOLE, _SECONDS)
        if status != 0:
            why = tail_of(read_console(place / CONSOLE))
            raise SchedlabError(f"the repeated machine did not reach this moment{why}")
    ended = {folder: machine.branch_status(folder) for folder in files}
    return [
        Outcome("hung", "it did not end by itself")
        if status is None
        else outcome_of(status, read_console(folder / CONSOLE))
        for folder, status in ended.items()
    ]

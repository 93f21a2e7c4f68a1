# SPDX-License-Identifier: MIT
"""Makes branches of a live machine by repeating the machine with schedlab's Spike driver.

The driver boots the machine again, with all recorded console input at the recorded times. At the
branch point, it forks the machine into the branches (docs/spike.md).
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from schedlab.base.host.supervision import supervise_async
from schedlab.errors import SchedlabError
from schedlab.machines import Boot, Branching, KernelMachine
from schedlab.machines.folder import CONSOLE_FILE, TYPED_FILE
from schedlab.machines.outcome import Outcome, describe_tail, interpret_exit, read_console

BRANCH_LENGTH_NS = 5_000_000_000
"""Length (ns) of a branch, which then ends automatically."""
_END_COMMAND = r"@@ 1000000 end\x0a"
"""The command that ends a branch."""
_LINE_END = r"\x0a"
_TIMEOUT_S = 120.0
"""Host seconds after which the repetition is considered hung."""


def input_until(text: str, at_ns: int) -> str:
    """Returns the console input before a time (ns), cut after a whole command, plus a later `end`."""
    input_lines: list[str] = []
    for line in text.splitlines():
        if int(line.partition(" ")[0]) >= at_ns and (
            not input_lines or input_lines[-1].endswith(_LINE_END)
        ):
            break
        input_lines.append(line)
    return "".join(
        f"{line}\n" for line in [*input_lines, f"{at_ns + BRANCH_LENGTH_NS} {_END_COMMAND}"]
    )


async def run_again(
    machine: KernelMachine, boot: Boot, typed: Path, at_ns: int, files: Mapping[Path, str]
) -> list[Outcome]:
    """Boots a machine again with the same input, and runs its branches from `at_ns` on.

    `files` maps each branch's folder to the commands that its kernel receives at `at_ns`. Raises
    SchedlabError if the machine did not reach that time.
    """
    assert isinstance(machine, Branching)
    with tempfile.TemporaryDirectory(prefix="schedlab-") as name:
        path = Path(name)
        repeated_input = path / TYPED_FILE
        repeated_input.write_text(input_until(typed.read_text(), at_ns))
        command = machine.command(replace(boot, typed=repeated_input, keeps_typed=False))
        command = machine.branched(command, at_ns, files, len(files))
        status = await supervise_async(command, path, path / CONSOLE_FILE, _TIMEOUT_S)
        if status != 0:
            why = describe_tail(read_console(path / CONSOLE_FILE))
            raise SchedlabError(
                f"the repeated machine did not reach this moment; choose an earlier one{why}"
            )
    statuses = {folder: machine.branch_status(folder) for folder in files}
    return [
        Outcome("hung", "it did not end by itself")
        if status is None
        else interpret_exit(status, read_console(folder / CONSOLE_FILE))
        for folder, status in statuses.items()
    ]

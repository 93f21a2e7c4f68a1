# SPDX-License-Identifier: MIT
"""Compiles the palette's workloads to files for the program `play`, at each start of a machine.

50 files take 0.2 s.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from schedlab.base.toolchain.policies import describe_unknown_name
from schedlab.errors import WrongUsage
from schedlab.monitor.system import Refused, Setup
from schedlab.workload.model import WorkloadFile
from schedlab.workload.palette import read_palette
from schedlab.workload.text import encode_workload
from schedlab.workload.workload_files import read_workload_file


@dataclass
class CompiledPalette:
    """The workload files that could be compiled, and the reasons why others could not."""

    files: dict[str, Path] = field(default_factory=dict)
    """Compiled files by workload name."""
    problems: dict[str, str] = field(default_factory=dict)
    """Error messages by workload name."""

    def file(self, name: str) -> Path:
        """Returns a workload's compiled file. Raises Refused, with the reason, if there is none."""
        if name in self.files:
            return self.files[name]
        raise Refused(
            self.problems.get(name) or describe_unknown_name("workload", name, self.files)
        )


def compile_palette(
    setup: Setup, folder: Path, tick_ns: int, check: Callable[[str, WorkloadFile], None]
) -> CompiledPalette:
    """Compiles the workloads into `folder`.

    `check` raises WrongUsage if the machine has no room for a workload. Raises WrongUsage if a
    requested workload, or a workload file of the user, cannot be compiled.
    """
    folder.mkdir(exist_ok=True)
    compiled = CompiledPalette()
    for number, entry in enumerate(read_palette(setup.files).values()):
        # numbered, because a workload's name may not be valid as a file name
        file = folder / f"workload-{number}"
        try:
            workload = read_workload_file(entry.file)
            check(entry.name, workload)
            file.write_bytes(encode_workload(workload, setup.seed, tick_ns))
            compiled.files[entry.name] = file
        except WrongUsage as error:
            if entry.kind == "own" or entry.name in setup.workloads:
                raise
            compiled.problems[entry.name] = str(error)
    return compiled

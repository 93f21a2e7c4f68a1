# SPDX-License-Identifier: MIT
"""Translates addresses of a program to source lines."""

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.toolchain.tools import find_system_compiler, run_captured
from schedlab.paths import ROOT

_HOST_FOLDERS = ("kernel/", "sim/", "explore/", "policies/support/")
"""Folders with functions of hosts, not of policies."""


@dataclass(frozen=True)
class Place:
    """A line in a source file, and its function; the file is relative to the repository."""

    function: str
    file: str
    line: int

    @property
    def in_policy(self) -> bool:
        """True if the line is in the source of a policy, or in a header that policies include."""
        return self.file.endswith((".c", ".h")) and not self.file.startswith((*_HOST_FOLDERS, "/"))

    def __str__(self) -> str:
        return f"{self.function}() {self.file}:{self.line}"


_NEIGHBOUR_BYTES = 32
"""If an instruction has no line (such as a loop's jump), up to this many bytes around it are searched."""


def find_places(program: Path, addresses: Iterable[int]) -> dict[int, list[Place]]:
    """Returns the source lines of addresses, each with its inlined callers; {} without llvm-
    symbolizer.

    An instruction without a line gets the nearest line of its function.
    """
    by_address = _symbolize(program, addresses)
    for address, places in by_address.items():
        if places and not places[0].line:
            offsets = sorted(range(-_NEIGHBOUR_BYTES, _NEIGHBOUR_BYTES), key=abs)
            neighbours = _symbolize(program, [address + step for step in offsets]).values()
            same_function = (
                inlined
                for inlined in neighbours
                if inlined and inlined[0].function == places[0].function
            )
            by_address[address] = next(
                (inlined for inlined in same_function if inlined[0].line), places
            )
    return by_address


def _symbolize(program: Path, addresses: Iterable[int]) -> dict[int, list[Place]]:
    """Returns the places of each address, innermost first; {} without a symbolizer."""
    tool = find_symbolizer()
    arguments = [hex(address) for address in addresses]
    if not tool or not arguments:
        return {}
    result = run_captured([tool, f"--obj={program}", "--output-style=JSON", *arguments])
    try:
        symbols = json.loads(result.stdout)
    except ValueError:
        return {}
    if not isinstance(symbols, list):
        return {}  # llvm-symbolizer reports an invalid program like this
    return {
        int(entry["Address"], 16): [
            Place(symbol["FunctionName"], path_from_root(symbol["FileName"]), symbol["Line"])
            for symbol in entry.get("Symbol", ())
            if symbol["FileName"]
        ]
        for entry in symbols
    }


def path_from_root(file: str) -> str:
    """Returns a path relative to the repository, or unchanged if it is elsewhere."""
    return os.path.normpath(file).removeprefix(f"{ROOT}/")


def find_symbolizer() -> str | None:
    """Returns the path of llvm-symbolizer, or None."""
    compiler = find_system_compiler()
    return shutil.which(compiler.tool("llvm-symbolizer") if compiler else "llvm-symbolizer")

# SPDX-License-Identifier: MIT
"""Translates addresses of a program to source lines."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.toolchain.tools import find_system_compiler
from schedlab.paths import ROOT

_HOSTS = ("kernel/", "sim/", "explore/", "policies/support/")
"""Folders with functions that are not a policy's."""


@dataclass(frozen=True)
class Place:
    """A source line; the file is relative to the root."""

    function: str
    file: str
    line: int

    @property
    def in_policy(self) -> bool:
        return self.file.endswith((".c", ".h")) and not self.file.startswith((*_HOSTS, "/"))

    def __str__(self) -> str:
        return f"{self.function}() {self.file}:{self.line}"


_NEIGHBOURS = 32
"""Bytes searched around an instruction without a line, such as the jump of a loop."""


def places_of(program: Path, addresses: Iterable[int]) -> dict[int, list[Place]]:
    """Returns the locations of addresses with their inlined callers; {} without a symbolizer.

    An instruction without a line gets the nearest line of its function.
    """
    by_address = _symbolized(program, addresses)
    for address, places in by_address.items():
        if places and not places[0].line:
            near = sorted(range(-_NEIGHBOURS, _NEIGHBOURS), key=abs)
            others = _symbolized(program, [address + step for step in near]).values()
            inside = (
                inlined
                for inlined in others
                if inlined and inlined[0].function == places[0].function
            )
            by_address[address] = next((inlined for inlined in inside if inlined[0].line), places)
    return by_address


def _symbolized(program: Path, addresses: Iterable[int]) -> dict[int, list[Place]]:
    tool = symbolizer()
    words = [hex(address) for address in addresses]
    if not tool or not words:
        return {}
    done = subprocess.run(
        [tool, f"--obj={program}", "--output-style=JSON", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        symbols = json.loads(done.stdout)
    except ValueError:
        return {}
    if not isinstance(symbols, list):
        return {}  # the error for an invalid program
    return {
        int(entry["Address"], 16): [
            Place(symbol["FunctionName"], from_root(symbol["FileName"]), symbol["Line"])
            for symbol in entry.get("Symbol", ())
            if symbol["FileName"]
        ]
        for entry in symbols
    }


def from_root(file: str) -> str:
    """Returns a path relative to the root, or unchanged if it is elsewhere."""
    return os.path.normpath(file).removeprefix(f"{ROOT}/")


def symbolizer() -> str | None:
    """Returns the path of llvm-symbolizer, or None."""
    compiler = find_system_compiler()
    return shutil.which(compiler.tool("llvm-symbolizer") if compiler else "llvm-symbolizer")

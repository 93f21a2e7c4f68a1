# SPDX-License-Identifier: MIT
"""Tests that the C files of a component have no cyclic calls."""

from __future__ import annotations

import re
import subprocess
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from conftest import ROOT
from schedlab.base.toolchain.build import build
from schedlab.machines.linux.parts import build_linux

PARTS = {
    "model": (partial(build, "build/model/libschedlab-model.so"), "build/model/model/{}.o"),
    "linux/loader": (
        partial(build_linux, "build/linux/schedlab-linux"),
        "build/linux/objects/linux/loader/{}.o",
    ),
}
"""A directory of sources: its build target, and the path of each source's object."""


def symbols(file: Path) -> tuple[set[str], set[str]]:
    """Returns the symbols that an object exports, and the symbols that it needs."""
    lines = subprocess.run(["nm", file], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r" [TDBRC] (\S+)", lines)), set(re.findall(r" U (\S+)", lines))


@pytest.mark.parametrize("folder", ["model", pytest.param("linux/loader", marks=pytest.mark.linux)])
def test_no_file_needs_one_that_needs_it(folder: str) -> None:
    make, place = PARTS[folder]
    make()
    files = {
        source.stem: symbols(ROOT / place.format(source.stem))
        for source in (ROOT / folder).glob("*.c")
    }
    assert len(files) > 10
    owners = {symbol: name for name, (has, _) in files.items() for symbol in has}
    graph = {
        name: {owners[symbol] for symbol in needs if symbol in owners} - {name}
        for name, (_, needs) in files.items()
    }
    assert sum(map(len, graph.values())) > 10
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the files

# SPDX-License-Identifier: MIT
"""Reads the shape of a Linux machine from /sys."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from schedlab.base.toolchain.build import build
from schedlab.errors import WrongUsage
from schedlab.paths import BUILD_FOLDER
from schedlab.workload.shapes.model import CPUS_MAX, Model, Shape, number_groups

SYS = Path("/sys")
ASSUMED_MODEL = Model((600,), (0, 5_000, 50_000))
"""Assumed values of what /sys does not contain."""
GUESS_NOTE = "what the simulator's model takes is a guess: no file of /sys has it"
OFFLINE_NOTE = "some CPUs are offline: the others are numbered from 0 without gaps"
_PROGRAM = "sys_shape"
_PRODUCT = "devices/virtual/dmi/id/product_name"


def read_sys_shape(folder: Path) -> tuple[Shape, list[str]]:
    """Returns the shape of this machine's online CPUs, numbered without gaps, and notes about
    assumptions.

    `folder`: /sys, or a copy of its devices/system/cpu and devices/system/node. Raises WrongUsage
    if it does not list the CPUs.
    """
    build(f"build/{_PROGRAM}")
    result = subprocess.run(
        [BUILD_FOLDER / _PROGRAM, folder], stdout=subprocess.PIPE, text=True, check=False
    )
    if result.returncode:
        raise WrongUsage(
            f"{folder}: lists no CPUs, or more than {CPUS_MAX}; name Linux's /sys or a"
            " copy of it, with devices/system/cpu/online"
        )
    lines = [line.partition(" ") for line in result.stdout.splitlines()]
    lines_by_word = {
        word: [rest for line_word, _, rest in lines if line_word == word]
        for word in ("cpu", "kind", "distances", "gap")
    }
    shape = replace(
        _parse_shape(lines_by_word), description=f"{_read_product(folder)}, by its /sys"
    )
    cpus = [int(line.split()[0]) for line in lines_by_word["cpu"]]
    offline = [OFFLINE_NOTE] if cpus != list(range(len(cpus))) else []
    guessed = replace(shape, model=_guess_model(shape))
    return guessed, [*offline, *lines_by_word["gap"], *([GUESS_NOTE] if guessed != shape else [])]


def _parse_shape(lines_by_word: dict[str, list[str]]) -> Shape:
    """Converts the output of the program sys_shape, whose numbers may have gaps, to a shape."""
    _, cores, caches, nodes, kinds = zip(
        *(map(int, line.split()) for line in lines_by_word["cpu"]), strict=True
    )
    used_nodes = list(dict.fromkeys(nodes))
    rows = [tuple(map(int, line.split())) for line in lines_by_word["distances"]]
    return Shape(
        number_groups(cores),
        number_groups(caches),
        number_groups(nodes),
        number_groups(kinds),
        tuple(
            tuple(map(int, lines_by_word["kind"][kind].split())) for kind in dict.fromkeys(kinds)
        ),
        tuple(tuple(rows[one][other] for other in used_nodes) for one in used_nodes),
    )


def _guess_model(shape: Shape) -> Model:
    """Returns the assumed values, without values that this machine cannot need."""
    has_threads = len(set(shape.core)) < shape.cpus
    core, cache, node = ASSUMED_MODEL.cold_ns
    return Model(
        ASSUMED_MODEL.busy_siblings if has_threads else (),
        (
            core if has_threads else 0,
            cache if len(set(shape.core)) > 1 else 0,
            node if len(set(shape.cache)) > 1 else 0,
        ),
    )


def _read_product(folder: Path) -> str:
    """Returns the product name from the machine's firmware."""
    try:
        with (folder / _PRODUCT).open(errors="replace") as file:
            return file.readline(80).strip() or "a machine"
    except OSError:
        return "a machine"

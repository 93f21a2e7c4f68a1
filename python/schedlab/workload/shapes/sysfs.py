# SPDX-License-Identifier: MIT
"""Reads the shape of a Linux machine from /sys."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from schedlab.base.toolchain.build import build
from schedlab.errors import WrongUsage
from schedlab.paths import BUILD
from schedlab.workload.shapes.model import CPUS_MAX, Model, Shape, in_order

SYS = Path("/sys")
GUESS = Model((600,), (0, 5_000, 50_000))
"""Assumed values of the simulator's model, which /sys does not contain."""
GUESSED = "what the simulator's model takes is a guess: no file of /sys has it"
OFFLINE = "some CPUs are offline: the others are numbered from 0 without gaps"
_PROGRAM = "sys_shape"
_PRODUCT = "devices/virtual/dmi/id/product_name"


def shape_of_sys(folder: Path) -> tuple[Shape, list[str]]:
    """Returns the shape of the online CPUs, renumbered without gaps, and a list of assumptions.

    `folder`: /sys, or a copy of its devices/system/cpu and devices/system/node. Raises WrongUsage
    if it does not list the CPUs.
    """
    build(f"build/{_PROGRAM}")
    done = subprocess.run(
        [BUILD / _PROGRAM, folder], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise WrongUsage(
            f"{folder}: lists no CPUs, or more than {CPUS_MAX}; name Linux's /sys or a"
            " copy of it, with devices/system/cpu/online"
        )
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    lines_by_word = {
        word: [rest for line_word, _, rest in lines if line_word == word]
        for word in ("cpu", "kind", "distances", "gap")
    }
    shape = replace(_shape(lines_by_word), description=f"{_product(folder)}, by its /sys")
    cpus = [int(line.split()[0]) for line in lines_by_word["cpu"]]
    offline = [OFFLINE] if cpus != list(range(len(cpus))) else []
    guessed = replace(shape, model=_guess(shape))
    return guessed, [*offline, *lines_by_word["gap"], *([GUESSED] if guessed != shape else [])]


def _shape(lines_by_word: dict[str, list[str]]) -> Shape:
    """Returns the shape from the program's output, whose numbers may have gaps."""
    _, cores, caches, nodes, kinds = zip(
        *(map(int, line.split()) for line in lines_by_word["cpu"]), strict=True
    )
    used = list(dict.fromkeys(nodes))
    rows = [tuple(map(int, line.split())) for line in lines_by_word["distances"]]
    return Shape(
        in_order(cores),
        in_order(caches),
        in_order(nodes),
        in_order(kinds),
        tuple(
            tuple(map(int, lines_by_word["kind"][kind].split())) for kind in dict.fromkeys(kinds)
        ),
        tuple(tuple(rows[one][other] for other in used) for one in used),
    )


def _guess(shape: Shape) -> Model:
    """Returns the assumed model, restricted to what can happen on the machine."""
    threads = len(set(shape.core)) < shape.cpus
    core, cache, node = GUESS.cold_ns
    return Model(
        GUESS.busy_siblings if threads else (),
        (
            core if threads else 0,
            cache if len(set(shape.core)) > 1 else 0,
            node if len(set(shape.cache)) > 1 else 0,
        ),
    )


def _product(folder: Path) -> str:
    """Returns the product name from the machine's firmware."""
    try:
        with (folder / _PRODUCT).open(errors="replace") as file:
            return file.readline(80).strip() or "a machine"
    except OSError:
        return "a machine"

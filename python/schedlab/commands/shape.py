# SPDX-License-Identifier: MIT
"""`./schedlab shape`: lists machine shapes, and detects the shape of this machine."""

from __future__ import annotations

from pathlib import Path

import click

from schedlab.base.display.terminal import print_result, results, say
from schedlab.base.files.atomic import written
from schedlab.commands.options import FILE, SHAPE, echo_json, json_option
from schedlab.errors import WrongUsage
from schedlab.workload.shapes.model import CAPACITY_FULL, Shape
from schedlab.workload.shapes.reading import read, ready
from schedlab.workload.shapes.sysfs import SYS, shape_of_sys
from schedlab.workload.shapes.writing import file_text


@click.command()
@click.argument("shape", required=False, type=SHAPE)
@click.option(
    "--sys",
    "folder",
    is_flag=False,
    flag_value=str(SYS),
    metavar="[FOLDER]",
    help="Write the shape of the machine with this /sys, or a copy of it. [without a value: this machine]",
)
@click.option("-o", "--out", type=FILE, help="Write the shape to this file.")
@json_option
def shape(shape: Shape | None, folder: str | None, out: Path | None, as_json: bool) -> None:
    """List the named machine shapes; or check and describe SHAPE, a file or a name; or make such a file of a
    machine.

    `./schedlab run --shape SHAPE` runs on a machine of that shape (docs/shapes.md).
    """
    if (shape and folder) or (out and not folder):
        raise WrongUsage("shape: expected SHAPE, or --sys FOLDER with -o FILE")
    if folder:
        _make(Path(folder), out)
        return
    texts = [shape] if shape else [read(path) for path in ready().values()]
    if as_json:
        echo_json([_as_dict(text) for text in texts])
        return
    for text in texts:
        results().print(f"{text.name}: {_words(text)}\n    {text.description}", soft_wrap=True)


def _make(folder: Path, out: Path | None) -> None:
    """Prints or writes the shape of this machine, and always reports assumptions."""
    made, notes = shape_of_sys(folder)
    for note in notes:
        say(f"schedlab: {folder}: {note}")
    text = file_text(made)
    if out is None:
        click.echo(text, nl=False)
        return
    with written(out) as new:
        new.write_text(text)
    print_result(f"Wrote {out}: {_words(made)}")


def _words(shape: Shape) -> str:
    """Returns the numbers of a shape's parts, in words."""
    threads = len(shape.core) // len(set(shape.core))
    words = [f"{shape.cpus} CPUs"]
    if len(set(shape.core)) < shape.cpus:
        words.append(f"{len(set(shape.core))} cores of up to {max(threads, 2)} CPUs")
    words += [
        f"{len(set(numbers))} {what}"
        for numbers, what in ((shape.cache, "caches"), (shape.node, "nodes"))
        if len(set(numbers)) > 1
    ]
    if shape.kinds != ((CAPACITY_FULL,),):
        words.append("capacities " + ", ".join(str(levels[0]) for levels in shape.kinds))
    return ", ".join(words)


def _as_dict(shape: Shape) -> dict[str, object]:
    return {
        "name": shape.name,
        "description": shape.description,
        "cpus": shape.cpus,
        "core": list(shape.core),
        "cache": list(shape.cache),
        "node": list(shape.node),
        "kind": list(shape.kind),
        "kinds": [list(levels) for levels in shape.kinds],
        "distances": [list(row) for row in shape.distances],
        "model": {
            "busy_siblings_thousandths": list(shape.model.busy_siblings),
            "cold_ns": list(shape.model.cold_ns),
            "levels": shape.model.levels,
        },
        "text": shape.text(),
    }

# SPDX-License-Identifier: MIT
"""`./schedlab shape`: lists machine shapes, and detects the shape of this machine."""

from pathlib import Path

import click

from schedlab.base.display.terminal import print_result, result_console, say
from schedlab.base.files.atomic import atomic_write
from schedlab.commands.options import FILE, SHAPE, echo_json, json_option
from schedlab.errors import WrongUsage
from schedlab.workload.shapes.model import CAPACITY_FULL, Shape
from schedlab.workload.shapes.reading import builtin_shapes, read_shape
from schedlab.workload.shapes.sysfs import SYS, read_sys_shape
from schedlab.workload.shapes.writing import format_shape_file


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
        _output_sys_shape(Path(folder), out)
        return
    texts = [shape] if shape else [read_shape(path) for path in builtin_shapes().values()]
    if as_json:
        echo_json([_as_dict(text) for text in texts])
        return
    for text in texts:
        result_console().print(
            f"{text.name}: {_describe(text)}\n    {text.description}", soft_wrap=True
        )


def _output_sys_shape(folder: Path, out: Path | None) -> None:
    """Prints or writes the shape of this machine, and always reports assumptions."""
    machine_shape, notes = read_sys_shape(folder)
    for note in notes:
        say(f"schedlab: {folder}: {note}")
    text = format_shape_file(machine_shape)
    if out is None:
        click.echo(text, nl=False)
        return
    with atomic_write(out) as new:
        new.write_text(text)
    print_result(f"Wrote {out}: {_describe(machine_shape)}")


def _describe(shape: Shape) -> str:
    threads = len(shape.core) // len(set(shape.core))
    texts = [f"{shape.cpus} CPUs"]
    if len(set(shape.core)) < shape.cpus:
        texts.append(f"{len(set(shape.core))} cores of up to {max(threads, 2)} CPUs")
    texts += [
        f"{len(set(numbers))} {what}"
        for numbers, what in ((shape.cache, "caches"), (shape.node, "nodes"))
        if len(set(numbers)) > 1
    ]
    if shape.kinds != ((CAPACITY_FULL,),):
        texts.append("capacities " + ", ".join(str(levels[0]) for levels in shape.kinds))
    return ", ".join(texts)


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

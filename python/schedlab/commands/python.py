# SPDX-License-Identifier: MIT
"""`./schedlab python`: runs the user's Python with schedlab's libraries."""

import ast
import code
import json
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

import click

from schedlab.base.display.activity import begin_display
from schedlab.commands.options import EXISTING_FILE
from schedlab.errors import WrongUsage


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("file", required=False, type=EXISTING_FILE)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def python(file: Path | None, arguments: tuple[str, ...]) -> None:
    """Run a Python FILE or a notebook with schedlab and its libraries.

    `import schedlab` works in it, and so do polars, altair and duckdb. The cells of a notebook (.ipynb) run in
    order, and their results are printed. Without FILE, starts an interactive Python. docs/tables.md has examples.
    """
    begin_display()
    if file is None:
        code.interact(local={})
        return
    sys.argv = [str(file), *arguments]
    sys.path.insert(0, str(file.absolute().parent))
    try:
        if file.suffix == ".ipynb":
            _run_cells(file)
        else:
            runpy.run_path(str(file), run_name="__main__")
    except Exception:
        traceback.print_exc()
        raise SystemExit(1) from None


def _run_cells(file: Path) -> None:
    """Runs the cells of a notebook.

    Raises WrongUsage for other files, and any exception of a cell.
    """
    try:
        cells = json.loads(file.read_text("utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError):
        raise WrongUsage(
            f"{file}: not a Jupyter notebook of format 4; save it in that format"
        ) from None
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, source in enumerate(sources, 1):
        _run_cell(source, f"{file}, cell {number}", names)


def _run_cell(source: str, place: str, names: dict[str, Any]) -> None:
    """Runs a cell. If its last statement is an expression, prints the value, as notebooks do."""
    tree = ast.parse(source, place)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, place, "exec"), names)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), place, "eval"), names)
        if value is not None:
            print(value)

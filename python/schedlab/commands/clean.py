# SPDX-License-Identifier: MIT
"""`./schedlab clean`: shows what the cache holds and removes parts of it."""

from __future__ import annotations

import click

from schedlab.base.display.names import visible
from schedlab.base.display.numbers import size
from schedlab.base.display.terminal import new_table, print_result, results
from schedlab.commands.options import echo_json, json_option
from schedlab.errors import WrongUsage


@click.command()
@click.argument("names", nargs=-1, metavar="[PART]...")
@click.option("--all", "everything", is_flag=True, help="Remove all parts.")
@json_option
def clean(names: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Remove PARTs of schedlab's cache; without any, list them and remove nothing.

    Files of others and the Python in use are kept. Runs and reports are not in the cache.
    """
    from schedlab.base.toolchain.cache import PARTS, entries, remove
    from schedlab.base.toolchain.policies import unknown
    from schedlab.paths import cache_folder

    if names and everything:
        raise WrongUsage(f"--all and {names[0]}: contradict each other; leave one of them out")
    for name in names:
        if name not in PARTS:
            raise WrongUsage(unknown("part", name, PARTS))
    entries_by_part = {name: entries(name) for name in PARTS}
    chosen = list(PARTS) if everything else list(names)
    freed = sum(entry.bytes for name in chosen for entry in entries_by_part[name])
    for entry in (entry for name in chosen for entry in entries_by_part[name]):
        try:
            remove(entry)
        except OSError as error:
            raise WrongUsage(f"{entry.path} cannot be removed: {error.strerror}") from None
    if as_json:
        sizes = {
            name: sum(entry.bytes for entry in part_entries)
            for name, part_entries in entries_by_part.items()
        }
        echo_json({"cache": str(cache_folder()), "bytes": sizes, "removed": chosen})
        return
    if chosen:
        print_result(f"{size(freed)} freed in {cache_folder()}")
    else:
        _show(
            {
                name: sum(entry.bytes for entry in part_entries)
                for name, part_entries in entries_by_part.items()
            }
        )


def _show(sizes: dict[str, int]) -> None:
    """Lists the sizes of the cache's parts, and of other files in the cache."""
    from schedlab.base.toolchain.cache import PARTS, strangers
    from schedlab.paths import SHARED, cache_folder, shared_cache

    table = new_table(str(cache_folder()), "part", "what", "size", "recreated by", fold=True)
    for name, part in PARTS.items():
        table.add_row(name, part.about, size(sizes[name]), part.again)
    results().print(table)
    for name in strangers():
        print_result(f"{visible(name)}: does not belong to schedlab; not removed")
    shared = shared_cache()
    if shared:
        print_result(f"{shared} is shared ({SHARED}): its content is neither listed nor removed")
    print_result("Remove some: ./schedlab clean PART...; all: ./schedlab clean --all")

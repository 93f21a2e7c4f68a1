# SPDX-License-Identifier: MIT
"""`./schedlab clean`: shows what the cache holds and removes parts of it."""

import click

from schedlab.base.display.names import visible
from schedlab.base.display.numbers import format_size
from schedlab.base.display.terminal import new_table, print_result, result_console
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
    from schedlab.base.toolchain.cache import CACHE_PARTS, entries, remove
    from schedlab.base.toolchain.policies import describe_unknown_name
    from schedlab.paths import cache_folder

    if names and everything:
        raise WrongUsage(f"--all and {names[0]}: contradict each other; leave one of them out")
    for name in names:
        if name not in CACHE_PARTS:
            raise WrongUsage(describe_unknown_name("part", name, CACHE_PARTS))
    entries_by_part = {name: entries(name) for name in CACHE_PARTS}
    chosen_parts = list(CACHE_PARTS) if everything else list(names)
    freed = sum(entry.bytes for name in chosen_parts for entry in entries_by_part[name])
    for entry in (entry for name in chosen_parts for entry in entries_by_part[name]):
        try:
            remove(entry)
        except OSError as error:
            raise WrongUsage(
                f"cannot be removed: {error.strerror}",
                what=str(entry.path),
                fix="end the commands that use it, check its permissions, and repeat this command",
            ) from None
    if as_json:
        sizes = {
            name: sum(entry.bytes for entry in part_entries)
            for name, part_entries in entries_by_part.items()
        }
        echo_json({"cache": str(cache_folder()), "bytes": sizes, "removed": chosen_parts})
        return
    if chosen_parts:
        print_result(f"{format_size(freed)} freed in {cache_folder()}")
    else:
        _print_sizes(
            {
                name: sum(entry.bytes for entry in part_entries)
                for name, part_entries in entries_by_part.items()
            }
        )


def _print_sizes(sizes: dict[str, int]) -> None:
    """Lists the sizes of the cache's parts, and of other files in the cache."""
    from schedlab.base.toolchain.cache import CACHE_PARTS, unknown_files
    from schedlab.paths import SHARED_CACHE_VARIABLE, cache_folder, shared_cache

    table = new_table(str(cache_folder()), "part", "what", "size", "recreated by", fold=True)
    for name, part in CACHE_PARTS.items():
        table.add_row(name, part.about, format_size(sizes[name]), part.again)
    result_console().print(table)
    for name in unknown_files():
        print_result(f"{visible(name)}: does not belong to schedlab; not removed")
    shared = shared_cache()
    if shared:
        print_result(
            f"{shared} is shared ({SHARED_CACHE_VARIABLE}): its content is neither listed nor removed"
        )
    print_result("Remove some: ./schedlab clean PART...; all: ./schedlab clean --all")

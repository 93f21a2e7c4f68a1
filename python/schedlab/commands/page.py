# SPDX-License-Identifier: MIT
"""`./schedlab page`: builds the standalone page, the playground, and policies for the page."""

from pathlib import Path

import click

from schedlab.errors import WrongUsage


@click.command()
@click.option(
    "--policy",
    metavar="NAME",
    help="Compile policies/NAME.c to NAME.wasm instead; drop the file on the page to use it.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Build the playground in this folder; with --policy, write the policy to this file. [default: NAME.wasm]",
)
@click.option("--serve", is_flag=True, help="Build the playground, and open it in a browser.")
@click.option(
    "--port",
    type=int,
    default=0,
    metavar="PORT",
    help="Serve at this port. [default: any free one]",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option(
    "--lab",
    "labs",
    multiple=True,
    metavar="FOLDER",
    help="Put this lab into the playground, instead of the built-in labs; repeatable.",
)
def page(
    policy: str | None,
    out: Path | None,
    serve: bool,
    port: int,
    no_browser: bool,
    labs: tuple[str, ...],
) -> None:
    """Build the standalone page: page/schedlab.html.

    It is the monitor's page with the simulator in it. Opened as a file, it needs no server and no installation
    (docs/page.md). With --serve or --out: the playground, a folder of files: there, a browser edits, compiles and
    runs policies (docs/playground.md).
    """
    from schedlab.base.toolchain.needs import need_extra

    need_extra("monitor")
    need_extra("pictures")
    from schedlab.monitor.standalone.build import make_page, write_policy_module

    if policy and serve:
        raise WrongUsage("--policy: does not work with --serve; leave one of them out")
    if labs and (policy or not (out or serve)):
        advice = "leave out --policy or --lab" if policy else "add --out DIR or --serve"
        raise WrongUsage(f"--lab: only the playground has labs; {advice}")
    if policy:
        click.echo(write_policy_module(policy, out or Path(f"{policy}.wasm")))
    elif out or serve:
        _playground(out, serve, port, not no_browser, labs)
    else:
        click.echo(make_page())


def _playground(
    out: Path | None, serves: bool, port: int, browser: bool, labs: tuple[str, ...]
) -> None:
    """Writes the playground to a folder, or serves it."""
    from schedlab.courses.grading.lab import built_in_labs
    from schedlab.courses.grading.page_data import page_data
    from schedlab.monitor.standalone.playground import make_playground
    from schedlab.monitor.standalone.serving import serve
    from schedlab.paths import BUILD_FOLDER

    folder = make_playground(out or BUILD_FOLDER / "playground", page_data(labs or built_in_labs()))
    if serves:
        serve(folder, port, browser)
    else:
        click.echo(folder)

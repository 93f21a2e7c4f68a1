# SPDX-License-Identifier: MIT
"""`./schedlab dev docs`: generates the pictures, tables and pages of the documentation."""

import sys
from pathlib import Path

import click

from schedlab.commands.options import FOLDER
from schedlab.errors import WrongUsage


@click.command()
@click.argument("names", nargs=-1, metavar="[PART]...")
@click.option("--list", "only_list", is_flag=True, help="List the parts and make none.")
@click.option(
    "--site",
    type=FOLDER,
    help="Write the documents as a web site to this folder, and make no part.",
)
def docs(names: tuple[str, ...], only_list: bool, site: Path | None) -> None:
    """Generate pictures, tables and pages of the documents, or a site from them.

    Makes all parts, or the named ones. Look at the changes before you commit them. The site has search, and needs
    neither a server nor a network: open its index.html.
    """
    if site:
        if names or only_list:
            raise WrongUsage(
                "--site: builds only the site; leave out --site or "
                + ("--list" if only_list else names[0])
            )
        write_site(site)
        return
    from schedlab.base.toolchain.needs import EXTRAS, install_if_packaged, need_extra
    from schedlab.base.toolchain.policies import describe_unknown_name

    need_extra(*EXTRAS)
    install_if_packaged("browser")
    from schedlab_tools.documents.make import make, parts

    all_parts = parts()
    for name in names:
        if name not in all_parts:
            raise WrongUsage(describe_unknown_name("part", name, all_parts))
    if only_list:
        for name in names or all_parts:
            click.echo(f"{name:12}  {all_parts[name].about}")
        return
    for file, changed in make(names or tuple(all_parts)):
        click.echo(f"{file}: {'updated' if changed else 'unchanged'}")


def write_site(folder: Path) -> None:
    """Builds the documentation site. Raises WrongUsage if the folder has files other than an earlier site."""
    if sys.version_info < (3, 11):
        raise WrongUsage("--site: Sphinx needs Python 3.11 or newer; set SCHEDLAB_PYTHON to one")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "objects.inv").exists():
        raise WrongUsage(f"--site {folder}: contains other files; name a new or empty folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongUsage(
            f"--site {folder}: cannot be made ({error.strerror}); name another folder"
        ) from None
    from schedlab.base.display.activity import working
    from schedlab.base.toolchain.needs import need_extra

    need_extra("test")
    from schedlab_tools.documents.site import build

    with working("building the site"):
        page_count = build(folder)
    click.echo(f"{folder / 'index.html'}: {page_count} pages")

# SPDX-License-Identifier: MIT
"""`./schedlab workloads`: what there is to run."""

from __future__ import annotations

import click

from schedlab.commands.options import echo_json, json_option


@click.command()
@json_option
def workloads(as_json: bool) -> None:
    """List the workloads that are there by name.

    A program runs on our kernel and on Linux, and has options (docs/workloads.md). A workload file runs on
    every machine, and `run --with` changes its values (docs/workload-files.md).
    """
    from schedlab.workload.palette import palette
    from schedlab.workload.programs import workload_programs

    programs = workload_programs()
    files = {name: entry.title for name, entry in palette().items()}
    if as_json:
        echo_json({"programs": programs, "files": files})
        return
    width = max(map(len, (*programs, *files)))
    for title, named in (("Programs", programs), ("Workload files", files)):
        click.echo(f"{title}\n")
        for name, meaning in named.items():
            click.echo(f"  {name:{width}}  {meaning}")
        click.echo("")
    click.echo("Run one: ./schedlab run --workload NAME")

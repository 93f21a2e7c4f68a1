# SPDX-License-Identifier: MIT
"""`./schedlab policies`: what there is to choose from."""

from __future__ import annotations

import click

from schedlab.base.toolchain.policies import FAIR, read_catalogue, those_named
from schedlab.commands.options import echo_json, json_option


@click.command()
@click.argument("names", nargs=-1, metavar="[POLICY]...")
@json_option
def policies(names: tuple[str, ...], as_json: bool) -> None:
    """List policies, with their presets and tunables."""
    from dataclasses import asdict

    from schedlab.commands.policy_listing import listing
    from schedlab.machines.linux.published import PUBLISHED

    catalogue = {**read_catalogue(), FAIR.name: FAIR, PUBLISHED.name: PUBLISHED}
    wanted = those_named(catalogue, names) if names else list(catalogue.values())
    if as_json:
        echo_json({"policies": [asdict(policy) for policy in wanted]})
    else:
        click.echo(listing(wanted), nl=False)

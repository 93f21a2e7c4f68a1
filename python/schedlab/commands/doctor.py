# SPDX-License-Identifier: MIT
"""`./schedlab doctor`: what schedlab stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from schedlab.base.display.terminal import new_table, results, say
from schedlab.commands.options import echo_json, json_option

if TYPE_CHECKING:
    from rich.table import Table

    from schedlab.commands.examination import Finding


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """List what schedlab stands on, and what to do about what is missing.

    Installs nothing. Exit status 1 if something is missing or unfit.
    """
    from schedlab.commands.examination import as_dict, examine

    findings = examine()
    if as_json:
        echo_json(as_dict(findings))
    else:
        results().print(doctor_table(findings))
        for finding in findings:
            if finding.advice:
                say(f"{finding.name}: {finding.advice}")
    if not all(finding.healthy for finding in findings):
        raise SystemExit(1)


def doctor_table(findings: list[Finding]) -> Table:
    table = new_table("", "what", "for", "state", "version", "where from", fold=True)
    for finding in findings:
        origin = f"{finding.path}\n{finding.origin}".strip()
        table.add_row(finding.name, finding.purpose, finding.status, finding.version, origin)
    return table

# SPDX-License-Identifier: MIT
"""docs/studies.md, from its template beside the studies and from what their folders hold.
`./schedlab dev docs studies` writes it anew.
"""

from __future__ import annotations

import textwrap

import jinja2

from schedlab.paths import ROOT, STUDIES
from schedlab.studies import select
from schedlab.studies.ideal import CPUS, LOTTERY_GROUPS, ideal_group_shares, unmeetable
from schedlab.studies.pack import studies

DOCUMENT = ROOT / "docs" / "studies.md"
TEMPLATE = "studies.md"
_WIDTH = 118


def text() -> str:
    """What the document is to say."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(STUDIES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # Markdown: there is nothing to escape
    templates.filters["item"] = _item
    return templates.get_template(TEMPLATE).render(studies=studies(), ideal_shares=_ideal_shares())


def _item(said: str) -> str:
    """One of a list, its lines as long as all others."""
    return textwrap.fill(
        said,
        _WIDTH,
        initial_indent="- ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _ideal_shares() -> list[str]:
    """Rows of study 1's tables, where ideals are not what it expects on each number of CPUs."""
    expected = {(each.place, each.row): each.text for each in select(kind="expectation")}
    return [
        " | ".join(
            (
                f"{table}, {group.row}",
                expected[f"table {table}", group.row],
                *(f"{100 * ideal_group_shares(table, cpus)[group.row]:.1f}" for cpus in CPUS),
            )
        )
        for table in LOTTERY_GROUPS
        if any(unmeetable(table, cpus) for cpus in CPUS)
        for group in LOTTERY_GROUPS[table]
    ]

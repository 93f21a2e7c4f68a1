# SPDX-License-Identifier: MIT
"""Lists the generated parts of the documents."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from schedlab.base.toolchain.committed import CATALOGUE, catalogue_text
from schedlab.base.toolchain.policies import built_listing
from schedlab.paths import ROOT, STUDIES
from schedlab.studies import select
from schedlab.studies.ideal_times import CPUS, LOTTERY_GROUPS, ideal_group_shares, unmeetable
from schedlab.studies.study import studies
from schedlab_tools.documents import (
    api_list,
    cards,
    costs,
    first_run,
    lessons,
    readme_animation,
    screens,
    table_list,
    trace_definitions,
)
from schedlab_tools.documents.command_output import printed_output
from schedlab_tools.documents.gallery import pages as gallery
from schedlab_tools.documents.gallery import study_presets, trials
from schedlab_tools.documents.marked_parts import with_marked, write

HELP = ROOT / "python" / "schedlab" / "commands" / "help.txt"
DOCUMENT = ROOT / "docs" / "studies.md"
TEMPLATE = "studies.md"
_WIDTH = 118


def text() -> str:
    """Returns the text of the document about studies."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(STUDIES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # Markdown needs no escaping
    templates.filters["item"] = _item
    return templates.get_template(TEMPLATE).render(studies=studies(), ideal_shares=_ideal_shares())


def _item(text: str) -> str:
    """Formats a list item, wrapped like the rest of the document."""
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent="- ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _ideal_shares() -> list[str]:
    """Returns rows of study 1's tables where ideals differ from its expectations."""
    expected = {(figure.place, figure.row): figure.text for figure in select(kind="expectation")}
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


DOCS = ROOT / "docs"
STAIRS = DOCS / "stairs.svg"


@dataclass(frozen=True)
class Part:
    """Files that are generated together. `make` writes them."""

    about: str
    files: tuple[Path, ...]
    make: Callable[[], None]


def parts() -> dict[str, Part]:
    """Returns all parts, by name."""
    readme = ROOT / "README.md"
    tables = DOCS / "tables.md"
    return {
        "studies": Part(
            "what is compared with the studies, from their folders",
            (DOCUMENT,),
            lambda: write(DOCUMENT, text()),
        ),
        "api": Part(
            "the reference of the Python API, from its docstrings",
            (api_list.DOCUMENT,),
            lambda: write(api_list.DOCUMENT, api_list.text()),
        ),
        "help": Part(
            "what `./schedlab --help` prints before anything is installed",
            (HELP,),
            lambda: write(HELP, help_text()),
        ),
        "policies": Part(
            "what the policies say of themselves, for hosts without a compiler",
            (CATALOGUE,),
            lambda: write(CATALOGUE, catalogue_text(built_listing())),
        ),
        "trace-format": Part(
            "the definitions of the trace in Python and JavaScript, from abi/",
            tuple(trace_definitions.FILES),
            trace_definitions.make,
        ),
        "stairs": Part(
            "the moving picture of the README",
            (STAIRS,),
            lambda: write(STAIRS, readme_animation.picture()),
        ),
        "run": Part(
            "the comparison that the README shows",
            (readme,),
            lambda: write(
                readme, with_marked(readme.read_text("utf-8"), first_run.PART, first_run.block())
            ),
        ),
        "costs": Part(
            "what decisions cost, measured on Spike",
            (costs.DOCUMENT, costs.PICTURE),
            lambda: _written_by_test("tests/policies/test_cost.py"),
        ),
        "tables": Part(
            "the tables of traces, and their columns",
            (tables,),
            lambda: write(
                tables, with_marked(tables.read_text("utf-8"), table_list.PART, table_list.block())
            ),
        ),
        "tuning": Part(
            "the sweeps of the tutorial",
            (DOCS / "tuning.md", DOCS / "tuning-frontier.svg"),
            lambda: _written_by_test("tests/docs/test_tuning.py"),
        ),
        "cards": Part(
            "what each policy is worth by the latest set of workloads",
            (cards.DOCUMENT,),
            lambda: write(cards.DOCUMENT, cards.text()),
        ),
        "gallery": Part(
            "a page for each policy, with its best and its worst side, from a sweep",
            gallery.files(),
            gallery.make,
        ),
        "gallery-code": Part(
            "the policies' code on those pages alone",
            tuple(map(gallery.page_of, trials.policies())),
            gallery.make_code,
        ),
        "study-presets": Part(
            "a page for each preset of a study: its rule, our code, and where they differ",
            study_presets.files(),
            study_presets.make,
        ),
        "lessons": Part(
            "what the five studies teach: ten findings, from runs in the simulator",
            lessons.files(),
            lessons.make,
        ),
        "screens": Part(
            "the monitor and a report in a browser",
            (*screens.SCREENS, *screens.REPORTS, screens.MADE),
            screens.make,
        ),
    }


def help_text() -> str:
    """Returns the help of the command line."""
    return printed_output("schedlab", "--help", COLUMNS="100")


def make(names: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Generates parts, and yields the name of each file and whether it has changed.

    Raises SchedlabError if a part fails.
    """
    known = parts()
    for name in names:
        before = {file: _content(file) for file in known[name].files}
        known[name].make()
        for file, content in before.items():
            yield str(file.relative_to(ROOT)), _content(file) != content


def _content(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""


def _written_by_test(test: str) -> None:
    """Runs a test that normally compares the page with its measurements, in the mode that writes the page."""
    printed_output("pytest", "-q", "--long", test, SCHEDLAB_GOLDEN="write")

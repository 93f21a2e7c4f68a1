# SPDX-License-Identifier: MIT
"""Lists the generated parts of the documents."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from schedlab.analysis.tables import TABLE_DESCRIPTIONS, Column
from schedlab.base.toolchain.committed import CATALOGUE, catalogue_text
from schedlab.base.toolchain.policies import build_policy_list
from schedlab.paths import ROOT
from schedlab.studies import select
from schedlab.studies.ideal_times import CPUS, ideal_group_shares, unmeetable_expectations
from schedlab.studies.lottery_tests import TESTS_BY_TABLE
from schedlab.studies.study import find_studies
from schedlab_tools.documents import (
    api_list,
    cards,
    costs,
    first_run,
    lessons,
    linux_agreement,
    questions,
    readme_animation,
    screens,
    scx_agreement,
    trace_definitions,
)
from schedlab_tools.documents.gallery import pages as gallery
from schedlab_tools.documents.gallery import study_presets, trials
from schedlab_tools.documents.marked_parts import (
    markdown_templates,
    printed_output,
    with_marked,
    write,
)

HELP = ROOT / "python" / "schedlab" / "commands" / "help.txt"
DOCUMENT = ROOT / "docs" / "studies.md"
TEMPLATE = "studies.md"


def text() -> str:
    """Returns the text of the document about studies."""
    return (
        markdown_templates()
        .get_template(TEMPLATE)
        .render(studies=find_studies(), ideal_shares=_ideal_shares())
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
        for table, test in TESTS_BY_TABLE.items()
        if any(unmeetable_expectations(table, cpus) for cpus in CPUS)
        for group in test.groups
    ]


DOCS = ROOT / "docs"
STAIRS_PICTURE = DOCS / "stairs.svg"


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
            lambda: write(CATALOGUE, catalogue_text(build_policy_list())),
        ),
        "trace-format": Part(
            "the definitions of the trace in Python and JavaScript, from abi/",
            tuple(trace_definitions.FILES),
            trace_definitions.make,
        ),
        "stairs": Part(
            "the moving picture of the README",
            (STAIRS_PICTURE,),
            lambda: write(STAIRS_PICTURE, readme_animation.picture()),
        ),
        "run": Part(
            "the comparison that the README shows",
            (readme,),
            lambda: write(
                readme, with_marked(readme.read_text("utf-8"), first_run.PART, first_run.block())
            ),
        ),
        "costs": Part(
            "what decisions cost, from bench/budgets.csv",
            (costs.DOCUMENT, costs.PICTURE),
            costs.make,
        ),
        "tables": Part(
            "the tables of traces, and their columns",
            (tables,),
            lambda: write(
                tables, with_marked(tables.read_text("utf-8"), TABLES_PART, tables_block())
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
        "linux-agreement": Part(
            "how far results about Linux may be trusted, from bench/linux-agreement",
            (linux_agreement.DOCUMENT,),
            lambda: write(linux_agreement.DOCUMENT, linux_agreement.text()),
        ),
        "questions": Part(
            "the gallery's pages of questions, from bench/questions",
            questions.files(),
            questions.make,
        ),
        "scx-agreement": Part(
            "how far sched_ext in the simulator agrees with Linux, from bench/scx-agreement",
            (scx_agreement.DOCUMENT,),
            lambda: write(
                scx_agreement.DOCUMENT,
                with_marked(
                    scx_agreement.DOCUMENT.read_text("utf-8"),
                    scx_agreement.PART,
                    scx_agreement.block(),
                ),
            ),
        ),
        "lessons": Part(
            "what the five studies teach: ten findings, from runs in the simulator",
            lessons.files(),
            lessons.make,
        ),
        "screens": Part(
            "the monitor and a report in a browser",
            (*screens.SCREENS, *screens.REPORTS, screens.HASHES_FILE),
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
    all_parts = parts()
    for name in names:
        old_contents = {file: _content(file) for file in all_parts[name].files}
        all_parts[name].make()
        for file, content in old_contents.items():
            yield str(file.relative_to(ROOT)), _content(file) != content


def _content(file: Path) -> bytes:
    """Returns the content of a file; empty if it does not exist."""
    return file.read_bytes() if file.exists() else b""


def _written_by_test(test: str) -> None:
    """Runs a test that normally compares the page with its measurements, in the mode that writes the page."""
    printed_output("pytest", "-q", "--long", test, SCHEDLAB_GOLDEN="write")


TABLES_PART = "tables"
"""The marked part that `tables_block` returns."""


def tables_block() -> str:
    """Returns the part: the columns that several tables share, followed by a section for each table."""
    uses = Counter(column for table in TABLE_DESCRIPTIONS.values() for column in table.columns)
    shared = {column for column, count in uses.items() if count > 1}
    sections = [
        "\n".join(["### Shared columns", "", *_column_rows(filter(shared.__contains__, uses))])
    ]
    for table in TABLE_DESCRIPTIONS.values():
        common = ", ".join(f"`{column.name}`" for column in table.columns if column in shared)
        lines = [f"### {table.name}", "", f"A row: {table.row}. Shared columns: {common}."]
        special = [column for column in table.columns if column not in shared]
        if special:
            lines += ["", *_column_rows(special)]
        sections.append("\n".join(lines))
    return "\n\n" + "\n\n".join(sections) + "\n\n"


def _column_rows(columns: Iterable[Column]) -> list[str]:
    rows = [f"| `{column.name}` | {column.type_} | {column.meaning} |" for column in columns]
    return ["| column | type | meaning |", "|---|---|---|", *rows]

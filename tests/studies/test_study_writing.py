# SPDX-License-Identifier: MIT
"""How the studies' pages are put together: texts, tables and charts of measured and published figures."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from kept_runs import keep_run
from page_contents import cells_of, tables_of
from schedlab.report.model import Chart, Table, Text
from schedlab.report.studies import pages
from schedlab.report.studies.queries import Queries
from schedlab.report.studies.writing import Curve, MeasuredCell, Quantity, Writer, known
from schedlab.report.study_tables import Comparison, Measured
from schedlab.runs.collection import read
from schedlab.studies.figures import Figure
from schedlab.studies.pack import Study, studies

PUBLISHED = """\
place,row,column,kind,quantity,unit,value,cpus,policy,source
table 1,rr,turnaround,measurement,turnaround,ticks,40,1,rr,study
table 1,lottery,turnaround,measurement,turnaround,ticks,30,1,lottery,study
"""
CONTRADICTIONS = """\
- name: too-fast
  sort: conclusion
  statements: [{place: table 1, says: the lottery is faster}, {place: section 2, says: it is not}]
  reason: Both cannot be.
  checked: Text again.
"""
POLICIES = ("rr", "lottery")
FAILED = {"status": "panic", "message": "oh"}


@pytest.fixture
def q(tmp_path: Path) -> Queries:
    """A study of two processes, of which round-robin ran and the lottery failed."""
    folder = tmp_path / "studies" / "9"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text("citation: A. Nonymous, *On two processes*\n")
    (folder / "published.csv").write_text(PUBLISHED)
    (folder / "contradictions.yaml").write_text(CONTRADICTIONS)
    for policy, ticks, more in (("rr", 44, {}), ("lottery", 22, FAILED)):
        summary = [{"turnaround_mean_ns": ticks * 1_000_000}]
        keep_run(tmp_path / "runs", "s9-two", policy, 1, tables={"summary": summary}, **more)
    return Queries(Study(folder), read([tmp_path / "runs"]))


@pytest.fixture
def page(q: Queries) -> Writer:
    page = Writer(q.study, "Study 9: two processes")
    page.section("Results")
    return page


def turnaround(q: Queries, policy: str) -> Measured:
    return q.ticks("s9-two", policy, "turnaround_mean_ns")


def texts(page: Writer) -> list[str]:
    return [each.markdown for each in page.page().blocks() if isinstance(each, Text)]


def test_neighbouring_texts_are_one_block(page: Writer) -> None:
    page.lead("A lead")
    page.lead(", and more.")
    page.text("""
    A paragraph
    of two lines.""")
    page.more("Its end")
    page.more("; and more.")
    page.item("an item")
    page.more("of two parts")
    page.item("another")
    page.text("")
    page.text("A note.", "note")
    page.subsection("Below")
    page.text("Text.")
    made = page.page()
    assert (made.name, made.title, made.lead) == (
        "study-9",
        "Study 9: two processes",
        "A lead, and more.",
    )
    assert [each.title for each in made.sections] == ["Results"]
    assert [each.title for each in made.sections[0].sections] == ["Below"]
    plain = "A paragraph\nof two lines. Its end; and more.\n\n- an item of two parts\n- another"
    assert texts(page) == [plain, "A note.", "Text."]


def test_a_text_without_its_numbers_says_why(page: Writer, q: Queries) -> None:
    page.text("Here:")
    with page.known(page.more):
        page.more(f"rr took {turnaround(q, 'rr'):.1f} ticks,")
        page.more(f"the lottery {turnaround(q, 'lottery'):.1f}.")
    with page.known():
        page.text(f"It took {turnaround(q, 'rr'):.1f} ticks.")
    assert texts(page) == [
        "Here: *The runs do not show this: failed (1 of 1).*\n\nIt took 44.0 ticks."
    ]
    assert known(lambda: f"{turnaround(q, 'cfs'):.1f}") == "*The runs do not show this: not run.*"


def test_contradictions_are_told_once(page: Writer) -> None:
    page.doubts("table 7")
    page.doubts("table 1", "section 2")
    page.doubts_named("too-fast")
    page.other_doubts()
    (told,) = texts(page)
    assert told.count("Both cannot be.") == 1


def test_tables_have_both_figures(page: Writer, q: Queries) -> None:
    page.compared(
        "study-9-table-1",
        "Turnaround, ticks",
        ["policy"],
        POLICIES,
        {
            "turnaround": lambda policy: Comparison(
                q.figure("table 1", policy, "turnaround"), turnaround(q, policy)
            ),
            "nothing": lambda policy: None,
        },
    )
    page.measured(
        "study-9-both",
        "Both",
        ["policy", "CPUs"],
        {(policy, 1): policy for policy in POLICIES},
        [
            Quantity("ticks", partial(turnaround, q), digits=2),
            Quantity("ideal", lambda policy: 20, "at best", muted=True),
        ],
        digits=0,
    )
    page.statements(
        "study-9-claims",
        "What it says",
        ["says", "there", "here"],
        [
            (
                "turnaround",
                q.figure("table 1", "rr", "turnaround"),
                MeasuredCell(turnaround(q, "rr"), 2),
            ),
            ("turnaround", None, turnaround(q, "lottery")),
        ],
        shared=1,
    )
    tables: dict[str, Table] = tables_of(page.page())
    cells = cells_of(tables["study-9-table-1"])
    assert cells["rr", "turnaround", "study"].text == "40"
    assert cells["rr", "turnaround", "here"].text == "44.0"
    assert cells["lottery", "turnaround", "here"].tone == "failed"
    cells = cells_of(tables["study-9-both"], labels=2)
    assert cells["rr", "1", "", "ticks"].text == "44.00"
    assert (
        cells["rr", "1", "at best", "ideal"].text,
        cells["rr", "1", "at best", "ideal"].tone,
    ) == (
        "20",
        "muted",
    )
    assert tables["study-9-both"].data["missing"].to_list() == [None, None, "failed (1 of 1)", None]
    claims = tables["study-9-claims"]
    assert [[cell.text for cell in row] for row in claims.rows] == [
        ["turnaround", "40", "44.00"],
        ["", "–", "failed (1 of 1)"],
    ]
    assert claims.data["here"].to_list() == [44, None]


def test_charts_have_both_figures(page: Writer, q: Queries) -> None:
    def published(policy: str, count: int) -> Figure | None:
        return q.figure("table 1", policy, "turnaround")

    def here(policy: str, count: int) -> Measured:
        return turnaround(q, policy)

    curves = {
        policy: Curve(partial(here, policy), partial(published, policy))
        for policy in (*POLICIES, "cfs")
    }
    page.curves("a", "Drawn", [1, 2], "CPUs", "ticks", curves, caption="", ideal=lambda n: 20 / n)
    page.dotted("b", "Dots", "ticks", {"rr": (turnaround(q, "rr"), 40.0)}, caption="")
    page.dotted("c", "No dots", "ticks", {"cfs": (turnaround(q, "cfs"), 40.0)}, caption="")
    page.curves("d", "No curve", [1], "CPUs", "ticks", {"cfs": curves["cfs"]}, caption="")
    made = page.page()
    lines, dots = (each for each in made.blocks() if isinstance(each, Chart))
    drawn = {
        kind: sorted(rows.select("series", "x", "mean").rows())
        for (kind,), rows in lines.data.group_by("kind")
    }
    assert ("rr", 1, 44.0) in drawn["measured"]
    assert drawn["published"] == [("lottery", n, 30) for n in (1, 2)] + [
        ("rr", n, 40) for n in (1, 2)
    ]
    assert [row[1:] for row in drawn["ideal"]] == [(1, 20), (2, 10)]
    assert sorted(dots.data["mean"]) == [40, 44]
    assert made.picture == "a"


def test_a_study_that_was_not_run_has_no_page(tmp_path: Path) -> None:
    keep_run(tmp_path, "s4-mixed-2", "rr")
    for study in studies():
        assert find_spec(f"schedlab.report.studies.page_{study.number}"), study.number
        assert (pages.page_of(study, read([tmp_path])) is None) == (study.number != 4)

# SPDX-License-Identifier: MIT
"""Studies as folders: a new one needs no Python but its queries, and a wrong one is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from jinja2 import meta, nodes

from kept_runs import keep_run
from page_contents import cells_of, tables_of, texts_of
from schedlab.errors import FileRefused
from schedlab.report.model import Chart, Page
from schedlab.report.studies import pages, queries
from schedlab.report.study_tables import Measured
from schedlab.runs.collection import read
from schedlab.studies.pack import Study, studies

STUDY = "citation: A. Nonymous, *On two processes*\n"
PUBLISHED = """\
place,row,column,kind,quantity,unit,value,cpus,policy,source
table 1,rr,turnaround,measurement,turnaround,ticks,40,1,rr,study
table 1,lottery,turnaround,measurement,turnaround,ticks,30,1,lottery,study
"""
CONTRADICTIONS = """\
- name: too-fast
  sort: conclusion
  statements:
    - {place: table 1, says: the lottery is faster, numbers: [30, 40]}
    - {place: section 2, says: it is not, words: [slower]}
  reason: Both cannot be.
  checked: Text again.
"""
TABLES = """\
study-6-table-1:
  title: Turnaround, ticks
  caption: "{{ how('s6-two') }}"
  labels: [policy]
  rows: {each: {policy: "['rr', 'lottery']"}, labels: ["{{ policy }}"]}
  parts:
    turnaround:
      study: figure('table 1', policy, 'turnaround')
      here: turnaround(policy)
      notes: {study: "{% if policy == 'rr' %}{{ notes.baseline(policy) }}{% endif %}"}
study-6-both:
  title: Both
  labels: [policy]
  rows: {each: {policy: "['rr', 'lottery']"}, where: "ran('s6-two', policy)", labels: ["{{ policy }}"]}
  columns:
    - {title: ticks, cell: turnaround(policy), digits: "2"}
study-6-lines:
  chart: lines
  title: Both, drawn
  x: {each: {count: "[1, 2]"}, is: count, title: CPUs}
  y title: ticks
  series:
    each: {policy: "['rr', 'lottery']"}
    name: "{{ policy }}"
    here: turnaround(policy, count)
    study: figure('table 1', policy, 'turnaround')
  ideal: 20 / count
study-6-picture: {chart: shares, title: Shares, trace: "first_trace('s6-two', 'rr', 1)"}
study-6-claims:
  title: What it says
  columns: [says, here]
  statements:
    - {says: the lottery is faster by, here: {is: "ratio(turnaround('rr'), turnaround('lottery'))", digits: 2}}
"""
NOTES = """\
{% macro baseline(policy) %}
Its baseline is {% for each in schedulers_of(policy) %}{{ each }}{{ loop | between }}{% endfor %}.
{% endmacro %}
"""
PAGE = """\
---
title: Study 6: two processes
---
There, {{ figure('table 1', 'lottery', 'turnaround') }} ticks.
{% call known() %}
Here, {{ turnaround('lottery') | to(1) }} ticks.
{% endcall %}

# Results
{{ show('study-6-table-1') }}

{% call known() %}
{% if holds('lottery_is_faster') %}
The lottery is faster.
{% else %}
Round-robin is as fast, {{ turnaround('rr') | to(1) }}.
{% endif %}
{% endcall %}


{{ doubts('table 1') }}

## More
{{ show('study-6-both') }}
{{ show('study-6-lines') }}
{{ show('study-6-picture') }}
{{ show('study-6-claims') }}
{{ other_doubts() }}
"""


class TwoQueries(queries.Queries):
    """All the Python of the sixth study."""

    def turnaround(self, policy: str, count: int = 0) -> Measured:
        return self.ticks("s6-two", policy, "turnaround_mean_ns", count)

    def schedulers_of(self, policy: str) -> list[str]:
        return [policy, "its scan", "no other"]

    def lottery_is_faster(self) -> bool:
        rr, lottery = (self.turnaround(each).mean for each in ("rr", "lottery"))
        return rr is not None and lottery is not None and lottery < rr


@pytest.fixture
def sixth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    folder = tmp_path / "studies" / "6"
    folder.mkdir(parents=True)
    for name, text in (
        ("study.yaml", STUDY),
        ("published.csv", PUBLISHED),
        ("contradictions.yaml", CONTRADICTIONS),
        ("tables.yaml", TABLES),
        ("notes.md", NOTES),
        ("page.md", PAGE),
    ):
        (folder / name).write_text(text)
    monkeypatch.setattr(pages, "_queries_of", lambda number: TwoQueries)
    (study,) = studies(tmp_path / "studies")
    return study


def keep(place: Path, policy: str, ticks: float, **more: str) -> None:
    summary = [{"turnaround_mean_ns": ticks * 1_000_000}]
    keep_run(place, "s6-two", policy, 1, tables={"summary": summary}, **more)


def made(study: Study, place: Path) -> Page:
    page = pages.page_of(study, read([place]))
    assert page is not None
    return page


def test_a_sixth_study_has_a_page(sixth: Study, tmp_path: Path) -> None:
    place = tmp_path / "runs"
    keep(place, "rr", 44)
    keep(place, "lottery", 22)
    page = made(sixth, place)
    assert (page.name, page.title) == ("study-6", "Study 6: two processes")
    assert " ".join(page.lead.split()) == "There, 30 ticks. Here, 22.0 ticks."
    assert [each.title for each in page.sections] == ["Results"]
    assert [each.title for each in page.sections[0].sections] == ["More"]
    tables = tables_of(page)
    cells = cells_of(tables["study-6-table-1"])
    assert cells["rr", "turnaround", "study"].text == "40"
    assert cells["rr", "turnaround", "study"].why == "Its baseline is rr, its scan and no other."
    assert cells["lottery", "turnaround", "here"].text == "22.0"
    assert cells_of(tables["study-6-both"])["rr", "", "ticks"].text == "44.00"
    claim = cells_of(tables["study-6-claims"])["the lottery is faster by", "", "here"]
    assert claim.text == "2.00"
    (chart,) = (each for each in page.blocks() if isinstance(each, Chart))
    drawn = {
        kind: sorted(rows.select("series", "x", "mean").rows())
        for (kind,), rows in chart.data.group_by("kind")
    }
    assert drawn["measured"] == [("lottery", 1, 22), ("rr", 1, 44)]
    assert drawn["published"] == [("lottery", n, 30) for n in (1, 2)] + [
        ("rr", n, 40) for n in (1, 2)
    ]
    assert [row[1:] for row in drawn["ideal"]] == [(1, 20), (2, 10)]
    told = texts_of(page)
    assert "The lottery is faster." in told
    assert told.count("Both cannot be.") == 1


def test_sentences_follow_the_runs(sixth: Study, tmp_path: Path) -> None:
    """The predicate decides; what is missing is named where the sentence would stand."""
    keep(tmp_path / "slow", "rr", 22)
    keep(tmp_path / "slow", "lottery", 44)
    assert "Round-robin is as fast, 22.0." in texts_of(made(sixth, tmp_path / "slow"))
    keep(tmp_path / "half", "rr", 22, status="panic", message="oh")
    told = texts_of(made(sixth, tmp_path / "half"))
    assert "*What was measured does not tell this (turnaround lottery: not run).*" in told
    assert "(turnaround rr: failed (1 of 1))" in told
    assert list(cells_of(tables_of(made(sixth, tmp_path / "half"))["study-6-both"])) == [
        ("rr", "", "ticks")
    ]


def test_a_study_that_was_not_run_has_no_page(sixth: Study, tmp_path: Path) -> None:
    keep_run(tmp_path, "s4-mixed-2", "rr")
    assert pages.page_of(sixth, read([tmp_path])) is None


def test_a_study_needs_no_page_tables_or_contradictions(sixth: Study, tmp_path: Path) -> None:
    for name in ("page.md", "tables.yaml", "contradictions.yaml"):
        (sixth.folder / name).unlink()
    keep(tmp_path / "runs", "rr", 44)
    assert pages.page_of(sixth, read([tmp_path / "runs"])) is None
    assert (sixth.tables, sixth.contradictions) == ({}, ())


WRONG_PAGES = {
    "no front matter": r"page\.md: expected '---'",
    "---\ntitle: a\n---\n\nlead\n\n# One\n{{ unheard_of() }}": r"page\.md, line 8: 'unheard_of'",
    "---\ntitle: a\n---\nlead\n# One\n{% if %}": r"page\.md, line 6: ",
    "---\ntitle: a\n---\nlead\n# One\n\n{{ turnaround('wrr') }}": r"line 7: turnaround wrr may be missing",
    "---\ntitle: a\n---\nlead\n{{ doubts('table 1') }}\n# One\n": "a lead without tables",
    "---\ntitle: a\n---\n# One\n{% if holds('turnaround', 'rr') %}{% endif %}": "no predicate",
    "---\ntitle: a\n---\nlead\n# One\n{{ show('nothing') }}": "line 6: .*nothing",
    "---\ntitle: a\n---\nlead\n# One\n{{ turnaround(1, 2, 3) }}": "line 6: turnaround 1 2 3: too many",
}


@pytest.mark.parametrize("text", WRONG_PAGES)
def test_a_wrong_page_is_refused(sixth: Study, tmp_path: Path, text: str) -> None:
    """With its name, its line, and what is wrong."""
    sixth.page.write_text(text)
    keep(tmp_path / "runs", "rr", 44)
    with pytest.raises(FileRefused, match=WRONG_PAGES[text]):
        pages.page_of(sixth, read([tmp_path / "runs"]))


def test_a_wrong_note_is_refused(sixth: Study, tmp_path: Path) -> None:
    """With the name of its file."""
    sixth.notes.write_text("{% macro baseline(policy) %}")
    keep(tmp_path / "runs", "rr", 44)
    with pytest.raises(FileRefused, match=r"notes\.md, line 1: "):
        pages.page_of(sixth, read([tmp_path / "runs"]))


WRONG_TABLES = {
    "study-6-table-1: {title: a, labels: [b], parts: {}}": "study-6-table-1: .*rows",
    "study-6-table-1: {title: '{{', labels: [b], parts: {}, rows: []}": "study-6-table-1: ",
    "study-6-table-1: {title: a, labels: [b], columns: [], rows: {each: {a: unheard_of}}}": "unheard_of",
    "- a": "expected names of tables",
    "study-6-table-1: {like: itself}": "study-6-table-1: ",
    "study-6-table-1: {chart: pie, title: a, trace: \"'a trace'\"}": "study-6-table-1: .*pie",
    "study-6-table-1: {chart: lines, title: a}": "study-6-table-1: .*x",
}


@pytest.mark.parametrize("text", WRONG_TABLES)
def test_a_wrong_table_is_refused(sixth: Study, tmp_path: Path, text: str) -> None:
    (sixth.folder / "tables.yaml").write_text(text)
    keep(tmp_path / "runs", "rr", 44)
    with pytest.raises(FileRefused, match=rf"tables\.yaml: .*{WRONG_TABLES[text]}"):
        pages.page_of(sixth, read([tmp_path / "runs"]))


PAGES = [each for each in studies() if each.page.exists()]


def texts_with_slots(study: Study) -> list[str]:
    return [each.read_text() for each in (study.page, study.notes) if each.exists()]


@pytest.mark.parametrize("study", PAGES, ids=lambda study: str(study.number))
def test_pages_ask_for_what_there_is(study: Study) -> None:
    """In sentences, too, that the runs of no test lead to."""
    writer = pages._Writer(pages._queries_of(study.number)(study, read([])))
    for text in texts_with_slots(study):
        tree = writer.language.parse(text)
        stored = {each.name for each in tree.find_all(nodes.Name) if each.ctx in ("store", "param")}
        stored |= {each.name for each in tree.find_all(nodes.Macro)}
        assert meta.find_undeclared_variables(tree) - stored <= set(writer.names)
        shown = {
            (call.node.name, call.args[0].value)
            for call in tree.find_all(nodes.Call)
            if isinstance(call.node, nodes.Name)
            and call.node.name in ("holds", "show", "each")
            and isinstance(call.args[0], nodes.Const)
        }
        assert {name for _, name in shown} <= set(writer.queries_by_name) | set(study.tables)
    named = writer.language.parse(study.page.read_text()).find_all(nodes.Const)
    assert set(study.tables) <= {each.value for each in named}, "a table that no page shows"


@pytest.mark.parametrize("study", PAGES, ids=lambda study: str(study.number))
def test_each_reason_has_a_note(study: Study) -> None:
    """Queries that say why name a macro of notes.md."""
    queries = pages._queries_of(study.number)
    reasons = {
        reason
        for name in dir(queries)
        if name.startswith("why_")
        for reason in get_args(get_type_hints(getattr(queries, name))["return"])
        if reason
    }
    macros = pages._Writer(queries(study, read([]))).language.parse(
        study.notes.read_text() if study.notes.exists() else ""
    )
    assert reasons <= {each.name for each in macros.find_all(nodes.Macro)}


@pytest.mark.parametrize("study", PAGES, ids=lambda study: str(study.number))
def test_thresholds_are_in_predicates(study: Study) -> None:
    """A page compares no numbers itself: a result is judged by what has a name."""
    for text in texts_with_slots(study):
        asked = re.findall(r"\{%-? (?:el)?if (.*?)-?%\}", text)
        assert [each for each in asked if re.search(r"[<>]|[=!]=", each)] == []

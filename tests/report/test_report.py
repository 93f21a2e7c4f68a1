# SPDX-License-Identifier: MIT
"""Tests reports: a model as HTML and Markdown, and `./schedlab report` of real runs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from conftest import Command
from report_samples import (
    HOSTILE,
    REAL_RUNS,
    Parsed,
    copy_run,
    report_of_small_runs,
    sample_report,
    small_runs,
    table,
)
from schedlab.analysis.comparison.formatting import estimate_in_column
from schedlab.analysis.comparison.statistics import estimate
from schedlab.base.display import markdown
from schedlab.base.files.replacement import LIST_NAME
from schedlab.errors import WrongUsage
from schedlab.metrics import load_table
from schedlab.metrics.registry import POSITIVE
from schedlab.report import build, files, html, markup
from schedlab.report.files import REPORT_FILE, report_folder
from schedlab.report.model import Cell, Table
from schedlab.runs import collection as runs
from schedlab.runs.collection import Collection

ELEMENTS = {
    *("html", "head", "meta", "title", "link", "script", "body", "header", "nav", "main", "footer"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "div", "section", "details"),
    *("summary", "figure", "figcaption", "table", "thead", "tbody", "tr", "th", "td", "dl", "dt"),
    *("dd", "a", "span", "small", "sup", "b", "strong", "em", "code", "pre", "noscript", "img"),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the sample in both forms."""
    folder = tmp_path_factory.mktemp("written")
    build.write_formats(sample_report(), folder, ("html", "markdown"))
    return folder


@pytest.fixture(scope="module")
def page(written: Path) -> Parsed:
    return Parsed((written / "second.html").read_text())


# --- HTML


def test_report_is_a_folder_with_files_for_tables_and_charts(
    written: Path,
) -> None:
    names = {path.name for path in written.iterdir()}
    assert names == {
        *("index.html", "second.html", *html.STYLES, "report.js", "vega.js"),
        *("traces.js", html.HAND_OVER_SCRIPT),
        *("report.json", "report.md", "files"),
    }
    file_names = {path.name for path in (written / "files").iterdir()}
    charts = {f"{name}.{kind}" for name in ("line", "column", "facets") for kind in ("svg", "png")}
    data = {
        f"{name}.{kind}"
        for name in ("line", "column", "facets", "shares")
        for kind in ("csv", "parquet")
    }
    assert file_names == charts | data
    assert pl.read_parquet(written / "files" / "shares.parquet").equals(table().data)
    assert pl.read_csv(written / "files" / "shares.csv").equals(table().data)
    assert "<svg" in (written / "files" / "line.svg").read_text()
    assert (written / "files" / "line.png").read_bytes().startswith(b"\x89PNG")


def test_pictures_are_drawn_on_request(tmp_path: Path) -> None:
    """Without pictures, a page describes charts in words for browsers without scripts."""
    build.write_formats(sample_report(), tmp_path, ("html",))
    assert {path.suffix for path in (tmp_path / "files").iterdir()} == {".csv", ".parquet"}
    page = (tmp_path / "second.html").read_text()
    noscript = re.search("<noscript>.*?</noscript>", page)
    assert noscript and "Falls." in noscript[0] and "--pictures" in noscript[0]
    assert "files/line.svg" not in page
    build.write_formats(sample_report(), tmp_path, ("html",), pictures=True)
    assert (tmp_path / "files" / "line.png").is_file()
    assert (
        '<noscript><img src="files/line.svg" alt="Falls.' in (tmp_path / "second.html").read_text()
    )


def test_every_address_leads_to_something(written: Path) -> None:
    for name in ("index.html", "second.html"):
        parsed = Parsed((written / name).read_text())
        addresses = [e.get("href") or e.get("src") for _, e in parsed.elements]
        for address in filter(None, addresses):
            if address in ("data:,", "https://example.org/x.png"):
                continue
            file, _, place = address.partition("#")
            target = written / (file or name)
            assert target.is_file(), address
            if place:
                ids = [e.get("id") for _, e in Parsed(target.read_text()).elements]
                assert ids.count(place) == 1, address


def test_hostile_names_are_text_everywhere(page: Parsed) -> None:
    assert {name for name, _ in page.elements} <= ELEMENTS
    for _, attributes in page.elements:
        assert not any(name.startswith("on") for name in attributes)
        assert not attributes.get("href", "").startswith("javascript:")
        assert attributes.get("src", "files/").startswith(("files/", "report.js", "vega.js"))
    shown = " ".join(HOSTILE.split())
    # The title of page and report, heading, contents, cells, group of columns, a chart, a fact.
    assert page.text.count(shown) >= 8
    assert page.all("div", role="img")[0]["aria-label"] == f"Falls. {HOSTILE}"


def test_hostile_markdown_is_text_and_markup_of_ours_is_markup(page: Parsed) -> None:
    assert "<b>not bold</b>" in page.text
    assert "<b>code</b>" in page.text
    assert len(page.all("em")) == 1, "one note, of two cells"
    assert not any(image["src"].startswith("http") for image in page.all("img"))


def test_a_charts_data_cannot_end_its_script(page: Parsed) -> None:
    specification = json.loads(page.scripts[-2])
    (rows,) = specification["datasets"].values()
    assert [row["policy"] for row in rows] == [HOSTILE, "rr", HOSTILE, "rr"]
    assert all("<" not in script for script in page.scripts)


# --- Markdown


def test_document_agrees(written: Path) -> None:
    text = (written / "report.md").read_text()
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    parsed = Parsed(parser.render(text))
    assert {name for name, _ in parsed.elements} <= ELEMENTS | {"blockquote", "hr"}
    assert all(set(link) in ({"id"}, {"href"}) for link in parsed.all("a"))
    assert not any(
        link["href"].startswith("javascript") for link in parsed.all("a") if "href" in link
    )
    assert [image["src"] for image in parsed.all("img")] == [
        "files/facets.svg",
        "files/line.svg",
        "files/column.svg",
    ]
    assert parsed.text.count(HOSTILE) >= 8
    assert "<b>code</b>" in parsed.text


def test_the_documents_links_lead_somewhere(written: Path) -> None:
    text = (written / "report.md").read_text()
    for target in re.findall(r"\]\(#([^)]+)\)", text):
        assert f'<a id="{target}"></a>' in text, target
    for target in re.findall(r"\]\((files/[^)]+)\)", text):
        assert (written / target).is_file(), target


# --- texts of other authors


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1))
def test_any_text_is_shown_as_it_is(text: str) -> None:
    line = " ".join(text.split())
    for made in (markdown.literal(text), markdown.code(text)):
        parsed = Parsed(markup.to_html(f"x {made} x"))
        assert parsed.text == " ".join(f"x {line} x".split())
        assert {name for name, _ in parsed.elements} <= {"p", "code"}


@given(st.text(st.sampled_from("`~<b>\\ \n&|*"), max_size=30))
def test_a_listing_is_shown_as_it_is(text: str) -> None:
    for made in (markdown.listing(text), markup.without_html(markdown.listing(text))):
        parsed = Parsed(markup.to_html(made))
        assert "".join(parsed.texts).strip() == text.strip()
        assert {name for name, _ in parsed.elements} <= {"pre", "code"}


# --- the directory


def test_folder_appears_at_once_and_replaces_only_a_report(tmp_path: Path) -> None:
    place = tmp_path / "out"
    with report_folder(place) as folder:
        (folder / REPORT_FILE).write_text("{}")
        (folder / "old").touch()
        assert not place.exists()
    with pytest.raises(RuntimeError), report_folder(place):
        raise RuntimeError("half-way")
    assert (place / "old").exists()
    with report_folder(place) as folder:
        (folder / REPORT_FILE).write_text("{}")
    assert {path.name for path in place.iterdir()} == {REPORT_FILE, LIST_NAME}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_no_report_is_refused_before_any_work(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out"
    if kind == "file":
        path.touch()
    else:
        path.mkdir()
        (path / "thesis.tex").touch()
    with pytest.raises(WrongUsage, match=r"out=.*name"):
        build.write_report(Collection(()), path)


# --- real runs


@pytest.fixture(scope="module")
def runs_folder() -> Path:
    return small_runs()


of_real_runs = pytest.mark.xdist_group(REAL_RUNS)


def row_of(table: Table, *begin: str) -> Sequence[Cell]:
    """Returns the row that begins with these texts."""
    (row,) = (row for row in table.rows if tuple(cell.text for cell in row[: len(begin)]) == begin)
    return row


def tables_of(collection: Collection) -> dict[str, Table]:
    report = build.make_report(collection)
    files.check_names(report)
    blocks = (block for page in report.pages for block in page.blocks())
    return {block.name: block for block in blocks if isinstance(block, Table)}


@of_real_runs
@pytest.mark.spike
def test_a_report_of_real_runs(runs_folder: Path) -> None:
    out, done = report_of_small_runs()
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made == {
        "report": str(out / "index.html"),
        "runs": 9,
        "failed": [str(runs_folder / "hopeless" / "rr-1cpu-seed1")],
    }
    contents = json.loads((out / REPORT_FILE).read_text())
    assert contents["pages"][0]["name"] == "index"
    index = Parsed((out / "index.html").read_text())
    assert "1 run failed." in index.text
    assert "no-such-program" in index.text
    page = Parsed((out / "runs.html").read_text())
    assert "init: /no-such-program: no such file or directory" in page.text
    assert list(out.parent.iterdir()) == [out], "nothing unfinished is left beside it"


@of_real_runs
@pytest.mark.spike
def test_means_are_those_of_the_runs_with_their_interval(runs_folder: Path) -> None:
    collection = runs.read_collection([runs_folder])
    metrics_table = tables_of(collection)["metrics-mixed-n-6-g-10-spike-1ms"]
    titles = [(column.group, column.title.replace("\xa0", " ")) for column in metrics_table.columns]
    cell = row_of(metrics_table, "rr", "2")[titles.index(("turnaround", "mean, ms"))]
    values = [
        run.metrics().summary["turnaround_mean_ns"][0] / 1e6
        for run in collection
        if run.succeeded and run.setup.policy == "rr" and run.setup.cpus == 2
    ]
    assert len(values) == 2
    assert cell.text == estimate_in_column(estimate(values, POSITIVE), decimals=0)
    _, low, high = map(float, re.findall(r"[\d.]+", cell.text))
    assert low < min(values) and max(values) < high, "Student's interval of two is wide"
    assert "seeds 1–2" in metrics_table.caption and "tick 1ms" in metrics_table.caption
    assert "only in their seeds" in metrics_table.caption


@of_real_runs
@pytest.mark.spike
def test_a_setup_with_a_failed_run_has_no_mean(runs_folder: Path, tmp_path: Path) -> None:
    good = runs_folder / "mixed" / "rr-1cpu-seed1"
    one = copy_run(good, tmp_path / "runs" / "one")
    two = copy_run(
        good, tmp_path / "runs" / "two", seed=2, status="panic", message=f"panic: {HOSTILE}"
    )
    collection = runs.read_collection([one, two])
    tables = tables_of(collection)
    row = row_of(tables["metrics-mixed-n-6-g-10-spike-1ms"], "rr", "1")
    assert row[2].text == "panic" and row[2].tone == "failed"
    assert "1 of 2 runs failed. Seed 2" in row[2].why
    assert all(cell.text == "–" and cell.tone == "failed" for cell in row[3:-1])
    (failed,) = (row for row in tables["all-runs"].rows if row[5].text != "success")
    assert failed[5].text == "panic"
    assert row_of(tables["what-was-run"], "mixed -n 6 -g 10")[-1] == Cell("1", "failed")
    build.write_report(collection, tmp_path / "out")
    parsed = Parsed((tmp_path / "out" / "runs.html").read_text())
    assert HOSTILE in parsed.text
    assert {name for name, _ in parsed.elements} <= ELEMENTS


@of_real_runs
@pytest.mark.spike
def test_unrepeatable_results_are_marked(runs_folder: Path, tmp_path: Path) -> None:
    copy_run(
        runs_folder / "mixed" / "rr-1cpu-seed1", tmp_path / "one", machine="linux", repeatable=False
    )
    collection = runs.read_collection([tmp_path])
    tables = tables_of(collection)
    for name in ("metrics", "groups"):
        assert "(not repeatable)" in tables[f"{name}-mixed-n-6-g-10-linux-1ms"].title
    assert "linux (not repeatable)" in [cell.text for cell in tables["all-runs"].rows[0]]


@of_real_runs
@pytest.mark.spike
def test_metrics_are_recomputed_from_traces(
    schedlab: Command, runs_folder: Path, tmp_path: Path
) -> None:
    run = copy_run(runs_folder / "mixed" / "rr-1cpu-seed1", tmp_path / "runs" / "one")
    cut = copy_run(runs_folder / "mixed" / "rr-1cpu-seed1", tmp_path / "runs" / "two", seed=2)
    (run / "metrics" / "tables.json").unlink()
    (cut / "trace.bin").write_bytes(b"no trace")
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    out = tmp_path / "out"
    result = schedlab("report", str(tmp_path / "runs"), "--out", str(out), "--from-traces")
    assert result.returncode == 0, result.stderr
    after = [path for path in tmp_path.rglob("*") if path.is_file() and out not in path.parents]
    assert sorted(after) == before, "the runs stay as they were"
    data = pl.read_parquet(out / "files" / "metrics-mixed-n-6-g-10-spike-1ms.parquet")
    statuses = dict(data.select("seed", "status").iter_rows())
    assert statuses == {1: "success", 2: "unmeasured"}
    stored_metrics = load_table(runs_folder / "mixed" / "rr-1cpu-seed1/metrics", "summary")
    known = data.filter(pl.col("seed") == 1)["turnaround_mean_ns"]
    assert known.to_list() == stored_metrics["turnaround_mean_ns"].to_list()


def test_wrong_usage(schedlab: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments, words in (
        ((), "Missing argument"),
        (("/nowhere",), "/nowhere"),
        ((str(tmp_path / "empty"),), "contains no run"),
        ((str(tmp_path / "empty"), "--format", "docx"), "docx"),
    ):
        result = schedlab("report", *arguments)
        assert result.returncode == 2, result.stderr
        assert words in result.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]

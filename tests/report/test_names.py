# SPDX-License-Identifier: MIT
"""Tests hostile names in every command: no command fails, and no terminal, page, chart or
spreadsheet interprets them.
"""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from hostile_names import NAMES, UNSAFE, call, hostile_run
from kept_runs import keep_figures
from report_samples import REAL_RUNS, home
from schedlab.analysis.comparison.compare import compare
from schedlab.analysis.gate.verdict import judge_comparison
from schedlab.analysis.gate.verdict import verdict_markdown as gate_comment
from schedlab.base.display import markdown, terminal
from schedlab.base.display.names import (
    is_visible,
    json_in_script,
    json_text,
    map_texts,
    visible,
    visible_line,
    write_csv,
)
from schedlab.base.toolchain.committed import PAGE
from schedlab.base.toolchain.tools import find_browser
from schedlab.runs.collection import read_collection
from schedlab.runs.parts import build_parts
from test_report_browser import opened
from warm_starts import warm_starts

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# one browser serves this file and the tests of reports
pytestmark = pytest.mark.xdist_group(REAL_RUNS)


# --- each kind of output


@pytest.mark.parametrize(
    "text", [*NAMES, *map(chr, range(256)), "\u2028", "\ufeff", "\ud800", "\\u0007"]
)
def test_texts_that_are_taken_for_visible_are_visible(text: str) -> None:
    for content in ({"name": [text]}, {text: 1}):
        assert map_texts(content) == content or not is_visible(content)
    assert is_visible({"boot_arguments": 'run="mixed -n 2"', "wörter": ["a\tb", 1.5, None]})


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_what_is_shown_is_seen(name: str) -> None:
    shown = visible_line(name)
    assert not UNSAFE.search(shown)
    assert "\n" not in shown
    assert "\t" not in shown
    if not UNSAFE.search(name):
        assert visible(name) == name
    json.dumps(shown).encode()


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_json_means_the_same_and_has_nothing_to_obey(name: str) -> None:
    for made in (json_text({name: [name]}, indent=2), json_in_script({name: [name]})):
        assert not UNSAFE.search(made)
        assert json.loads(made) == {name: [name]}
    assert not set("<>&") & set(json_in_script([name]))


MARK = "\u00a7"
"""Begins and ends a name, so that every part of it is recognizable."""


def in_markdown(text: str) -> Iterator[Token]:
    """Returns all parts of a Markdown text, as GitHub reads it."""
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    for token in parser.parse(text):
        yield from token.children or [token]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_markdown_shows_the_text(name: str) -> None:
    marked = f"{MARK}{name}{MARK}"
    lines = [f"- {make(marked)}" for make in (markdown.literal, markdown.code)]
    cell = f"| {markdown.code_cell(marked)} | {markdown.literal(marked)} |"
    table = ["| a | b |", "|---|---|", cell]
    text = "\n".join([*lines, "", markdown.listing(marked, "text"), "", *table, "", "end"])
    assert not UNSAFE.search(text)
    kinds = Counter(token.type for token in in_markdown(text))
    assert kinds["td_open"] == kinds["list_item_open"] == kinds["code_inline"] == 2
    assert kinds["fence"] == 1
    assert not kinds.keys() & {"html_inline", "html_block", "link_open", "image", "heading_open"}
    assert not {"em_open", "strong_open", "hardbreak"} & kinds.keys()
    shown = [token for token in in_markdown(text) if MARK in token.content]
    assert all(token.content.count(MARK) == 2 for token in shown if token.type != "text")


def test_a_gates_comment_has_names_as_code(tmp_path: Path) -> None:
    """Mentions and addresses in names are not links either: GitHub ignores both in code."""
    texts = (f"{MARK}{''.join(NAMES)}{MARK}", f"{MARK}{''.join(reversed(NAMES))}{MARK}")
    for side, text, seed in product(("before", "after"), texts, range(1, 7)):
        fails = side == "after" and text == texts[1]
        keep_figures(
            tmp_path / side / str(texts.index(text)),
            seed=seed,
            status="failed" if fails else "success",
            manifest={"workload": text, "message": text, "host": f"{side}{text}"},
            reported_values=[(text, 1)],
            turnaround_mean_ns=1e6 * seed * (2 if side == "after" else 1),
        )
    before, after = (read_collection([tmp_path / side]) for side in ("before", "after"))
    comment = gate_comment(judge_comparison(compare(before, after), {texts[0]: {"8": 1}}, {}))
    assert not UNSAFE.search(comment)
    parts = [*in_markdown(comment)]
    assert {token.type for token in parts if MARK in token.content} == {"fence", "code_inline"}
    assert [token.type for token in parts].count("heading_open") == 1
    html = "".join(token.content for token in parts if token.type.startswith("html"))
    assert "".join(html.split()) == "<details><summary>Figures</summary></details>"
    rows = [token.type for token in parts].count("tr_open")
    assert [token.type for token in parts].count("td_open") == 5 * (rows - 1) > 0
    assert comment.count("\n- ") == [token.type for token in parts].count("list_item_open") >= 8


def test_a_spreadsheet_computes_nothing(tmp_path: Path) -> None:
    numbers = ["-5", "+1.5", "-", "1e-9", "-2e+3", ""]
    frame = pl.DataFrame({"name": [*NAMES, *numbers], "value": range(len(NAMES) + len(numbers))})
    write_csv(frame, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        read = [row["name"] for row in csv.DictReader(file)]
    for name, cell in zip(NAMES, read, strict=False):
        assert cell in (name, f"'{name}")
        assert cell[:1] not in ("=", "@", "\t", "\r"), cell
        assert cell[:1] not in ("+", "-") or cell == "-", cell
    assert read[len(NAMES) :] == numbers


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_terminal_is_given_the_text(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = terminal.new_table(name)
    table.add_column(name)
    table.add_row(name)
    terminal.result_console().print(table)
    terminal.print_result(name)
    terminal.say(name)
    out, err = capsys.readouterr()
    assert not UNSAFE.search(out + err)
    if name.startswith("[") or ":smile:" in name:
        assert out.count(name) == 4
        assert name in err


# --- every command


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs with distinct hostile names, in directories with further hostile names."""
    place = tmp_path_factory.mktemp("hostile")
    workloads = (
        "a b",
        "a-b",
        *(name for name in NAMES if name and "/" not in name and "\0" not in name),
    )
    for number, name in enumerate(workloads[:5]):
        folder = f"{number} {name}".encode()[:200].decode(errors="ignore")
        policy = ("rr", "lottery", name)[number % 3]
        hostile_run(place / folder, name, number + 1, policy=policy)
    hostile_text = "".join(NAMES).replace("\0", "").replace("/", "")
    hostile_run(
        place / "all",
        hostile_text,
        99,
        label=hostile_text[:200],
        message=hostile_text,
        status="failure",
    )
    return place


@pytest.fixture(scope="module")
def report(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "out"
    call("report", hostile, "--out", out, "--format", "html", "--format", "markdown")
    return out


PLAYED = 2
"""Number of played runs: each has a distinct hostile name."""


def pages(report: Path) -> list[Path]:
    """Returns the pages made from runs; the page that plays them is the same in all reports."""
    return sorted(path for path in report.glob("*.html") if path.name != PAGE.name)


def test_a_report_is_made_of_files_that_can_be_read(report: Path) -> None:
    assert len(list((report / "files").glob("*.svg"))) > 8
    check_files(report)


def check_files(report: Path) -> None:
    """Checks that every file of a report is readable and has no active content."""
    for path in (report / "files").glob("*.svg"):
        ET.parse(path)
    for path in (*pages(report), *report.glob("play/*.html"), *report.glob("*.md")):
        text = path.read_text()
        assert not UNSAFE.search(text), path
        if path.suffix == ".html":
            assert "<img" not in text.replace('<img src="files/', "")
    for path in (report / "files").glob("*.csv"):
        with path.open(newline="") as file:
            for row in csv.reader(file):
                assert not [cell for cell in row if cell[:1] in ("=", "@")]


@pytest.mark.skipif(
    not find_browser(), reason="NO BROWSER: pages with hostile names are NOT TESTED"
)
def test_browser_draws_report_without_console_output(browser: Browser, report: Path) -> None:
    for file in pages(report):
        with opened(browser, file) as page:
            assert page.evaluate("typeof attack") == "undefined"
            assert page.evaluate("document.querySelectorAll('a[href^=javascript]').length") == 0
            figures = page.locator("figure.chart").count()
            assert page.locator("figure.chart canvas, figure.chart svg").count() >= figures


@pytest.mark.skipif(not find_browser(), reason="NO BROWSER: runs with hostile names are NOT PLAYED")
def test_browser_plays_runs_without_console_output(browser: Browser, report: Path) -> None:
    for file in sorted(report.glob("play/*.html"))[:PLAYED]:
        with opened(browser, file, allowed="blob:") as page:
            page.frame_locator("iframe").locator("h2 >> text=recorded").wait_for()
            with page.expect_download() as saved:
                page.locator("#save").click()
            assert saved.value.path().read_bytes().startswith(b"SCHEDLAB")
            for frame in page.frames:
                assert frame.evaluate("typeof attack") == "undefined"


def test_runs_are_compared(hostile: Path) -> None:
    places = sorted(path for path in hostile.iterdir() if path.name != "all")
    call("compare", places[0], places[1])
    json.loads(call("compare", places[2], places[3], "--json").stdout)


@pytest.mark.parametrize("kind", ["csv", "parquet", "perfetto"])
def test_traces_are_exported(hostile: Path, kind: str, tmp_path: Path) -> None:
    for run in sorted(hostile.iterdir())[:3]:
        out = tmp_path / f"{run.name[:2].strip()}.{kind}"
        call("trace", run, "--format", kind, "--out", out)
        if kind == "csv":
            rows = list(csv.DictReader(out.open(newline="")))
            assert not [row for row in rows if row["text"][:1] in ("=", "@", "\t")]
        if kind == "perfetto":
            assert not UNSAFE.search(_perfetto_names(out))


def _perfetto_names(file: Path) -> str:
    from perfetto.protos.perfetto.trace import (  # type: ignore[import-untyped]
        perfetto_trace_pb2 as protobuf,
    )

    read = protobuf.Trace()
    read.ParseFromString(file.read_bytes())
    return "".join(
        name
        for packet in read.packet
        for process in packet.process_tree.processes
        for name in process.cmdline
    )


def test_a_page_of_what_if_can_be_read(hostile: Path, tmp_path: Path) -> None:
    build_parts(["simulator"])
    run, place = sorted(hostile.iterdir())[3], tmp_path / "out"
    done = warm_starts.run(
        ("replay", "--what-if", str(run), "--policy", "mlfq", "--out", str(place)),
        None,
        {"PATH": "/usr/local/bin:/usr/bin:/bin"} | home(),
        300,
    )
    assert done.returncode == 0, done.stderr
    assert not UNSAFE.search(done.stdout + done.stderr)
    check_files(place / "page")


def test_a_recording_is_a_workload_and_is_replayed(hostile: Path, tmp_path: Path) -> None:
    run = min(hostile.iterdir())
    call("trace", run, "--as-workload", tmp_path / "w.json")
    build_parts(["simulator"])
    # A separate process: a browser's library may have a running event loop in this one.
    words = ("replay", str(run), "--out", str(tmp_path / "again"), "--json")
    done = warm_starts.run(words, None, {"PATH": "/usr/local/bin:/usr/bin:/bin"} | home(), 300)
    assert done.returncode == 0, done.stderr
    assert not UNSAFE.search(done.stdout + done.stderr)
    json.loads(done.stdout)

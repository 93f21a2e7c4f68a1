# SPDX-License-Identifier: MIT
"""Sample reports for tests: one of every model element, with hostile names."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from schedlab.report.model import Cell, Chart, Column, Page, Report, Section, Table, Text
from warm_starts import warm_starts

REAL_RUNS = "browser"
"""The group of tests (pytest.mark.xdist_group) run by one process; it is the browser tests'
group, because some of these tests need a browser.
"""
HOSTILE = "</script><img src=x onerror=attack()>&lt;b&gt;[x](javascript:attack())|`*_"
"""Exploits missing escapes in HTML, in JSON within HTML, and in Markdown."""

DATA = pl.DataFrame(
    {"policy": [HOSTILE, "rr", HOSTILE, "rr"], "cpus": [1, 1, 2, 2], "ms": [9.5, 8.25, 5.0, 4.5]}
)


def line_chart(name: str = "line", title: str = HOSTILE) -> Chart:
    """A chart with one view."""
    drawn = (
        alt.Chart(DATA, width=400, height=160)
        .mark_line(point=True)
        .encode(x="cpus:O", y="ms:Q", color="policy:N", tooltip=["policy", "ms"])
    )
    return Chart(name, title, drawn, DATA, f"Seen: {HOSTILE}", f"Falls. {HOSTILE}")


def column_chart(name: str = "column") -> Chart:
    """Two views, one below the other."""
    view = alt.Chart(DATA, width=400, height=80).mark_bar().encode(x="ms:Q", y="policy:N")
    return Chart(name, "Two `views`", alt.vconcat(view, view), DATA, "Bars.", "Two rows of bars.")


def facet_chart(name: str = "facets") -> Chart:
    """Views side by side, wider than a telephone's screen."""
    view = alt.Chart(DATA, width=300, height=80).mark_bar().encode(x="ms:Q", y="policy:N")
    drawn = view.facet(column="cpus:O")
    return Chart(name, "Side by side", drawn, DATA, "Bars.", "Two columns of bars.")


def table(name: str = "shares", title: str = "Shares") -> Table:
    """Grouped headings, every tone, intervals, and notes, including a repeated one."""
    why = f"The study's program *spins*: {HOSTILE}"
    return Table(
        name,
        title,
        (
            Column("policy", align="left"),
            Column("CPUs"),
            Column("published", "share, %"),
            Column("measured", "share, %"),
            Column("ideal", HOSTILE),
            Column("measured", HOSTILE),
        ),
        (
            (
                Cell("rr"),
                Cell("1"),
                Cell("50.0", why=why),
                Cell("49.8 [48.1, 51.5]", "good"),
                Cell("50.0", "muted"),
                Cell("7.00 [5.00, 9.00]", "bad", why=why),
            ),
            (
                Cell(HOSTILE),
                Cell("2"),
                Cell("–", why="Not printed; see [the line](#line)."),
                Cell("panic", "failed", "2 of 5 runs: seed 4: kernel/process/table.c:77"),
                Cell("50.0", "muted"),
                Cell("–", "failed"),
            ),
        ),
        DATA,
        caption=f"Machine spike, tick 1ms, seeds 1–5. {HOSTILE}",
        sections=(1,),
    )


def sample_report() -> Report:
    """Two pages that link to each other, with all kinds of blocks."""
    first = Page(
        "index",
        "What was found",
        "The second page holds [the table](#shares); all of it: [here](#second).",
        (Section("How to read it", (Text("- *mean* and `interval`\n- **sign**"), facet_chart())),),
    )
    second = Page(
        "second",
        f"Second {HOSTILE}",
        f"A lead: {HOSTILE}",
        (
            Section(
                "Twice",
                (Text(f"Raw: {HOSTILE}\n\n<b>not bold</b>, `<b>code</b>`"), table(), line_chart()),
                (Section("Twice", (Text("A run failed.", "warning"), column_chart())),),
            ),
            Section(HOSTILE, (Text("![picture](https://example.org/x.png)", "note"),)),
        ),
    )
    return Report(f"Report {HOSTILE}", (first, second), {"host": HOSTILE, "commit": "abc"})


@cache
def small_runs() -> Path:
    """Returns runs of the real machine: two policies, two numbers of CPUs, two seeds; and a failing
    run.

    They take a second or two of the guest, once for all tests of the group `REAL_RUNS`. Tests must
    not change them.
    """
    folder = Path(tempfile.mkdtemp(prefix="schedlab-"))
    atexit.register(shutil.rmtree, folder)
    everybody = ("--policy", "rr,lottery:thesis", "--cpus", "1,2", "--runs", "2")
    run_kept(folder / "mixed", "--workload", "mixed -n 6 -g 10", *everybody)
    run_kept(folder / "hopeless", "--workload", "/no-such-program", "--cpus", "1", status=1)
    return folder


@cache
def report_of_small_runs() -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Returns the report's directory, and the output of `./schedlab report`."""
    folder = Path(tempfile.mkdtemp(prefix="schedlab-"))
    atexit.register(shutil.rmtree, folder)
    return folder / "out", command(
        "report", str(small_runs()), "--out", str(folder / "out"), "--json"
    )


def run_kept(out: Path, *arguments: str, status: int = 0) -> None:
    """Runs `./schedlab run`, which must end with this status."""
    result = command("run", "--out", str(out), *arguments)
    assert result.returncode == status, result.stderr


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `./schedlab ...`."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"} | home()
    return warm_starts.run(arguments, None, environment, 300)


def home() -> dict[str, str]:
    """Returns the home directory's variables, so that cached files are found."""
    return {name: os.environ[name] for name in ("HOME", "XDG_CACHE_HOME") if name in os.environ}


def copy_run(run: Path, to: Path, **changes: Any) -> Path:
    """Copies a run and changes its manifest."""
    shutil.copytree(run, to)
    manifest = json.loads((to / "manifest.json").read_text())
    (to / "manifest.json").write_text(json.dumps({**manifest, **changes}))
    return to


class Parsed(HTMLParser):
    """A page: its elements in order, the text except scripts, and the scripts' text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._in_script = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        (self.scripts if self._in_script else self.texts).append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        """Returns elements with this tag and these attributes; `id_` means `id`."""
        required_attributes = {name.rstrip("_"): value for name, value in attributes.items()}
        return [
            element_attributes
            for name, element_attributes in self.elements
            if name == tag
            and all(
                element_attributes.get(key) == value for key, value in required_attributes.items()
            )
        ]

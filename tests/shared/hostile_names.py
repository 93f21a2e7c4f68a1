# SPDX-License-Identifier: MIT
"""Names that attack careless output, and runs that use them everywhere."""

from __future__ import annotations

import random
import re
from itertools import cycle
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from schedlab.commands.cli import cli
from schedlab.machines.folder import CONSOLE_FILE, TRACE_FILE
from schedlab.metrics import compute
from schedlab.runs import results
from schedlab.trace.format import Kind, MarkKind
from trace_simulator import Script, Simulator, load, write

NAMES = (
    "\x01",  # not a valid XML character
    "\x00\x08\x0b\x0c\x1f\x7f",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b2J\x9d8;;x\x9c",  # the same as a single character each
    "back\b\b\b\bspace",
    "line\nfeed",
    "carriage\rreturn",
    "tab\tseparated",
    "next\x85line",
    "separated\u2028by\u2029lines",
    "right\u202eto\u2066left\u2069",
    "\ufeffmark\ufffe\uffff",
    "\U0001f600\U0010ffff",
    "e\u0301\u200b\u200d",
    "[red]markup[/red]",
    "[/]",
    "[link=file:///etc/passwd]link[/link]",
    ":smile: {x} {{7*7}} ${x} %s %n",
    "</script><script>attack()</script>",
    "<img src=x onerror=attack()>",
    "<!--<script>",
    "&lt;b&gt;&amp;&#0;",
    "[x](javascript:attack())",
    "![x](http://elsewhere.example/x)",
    "| a | b |\n|---|",
    "`code` ``` ~~~",
    "*a* _b_ **c** # d",
    "line\n```\n# heading\n- @team https://elsewhere.example\n<img src=x onerror=attack()>",
    "bar\\|<img src=x>`|``` www.elsewhere.example #1 a@b.example",
    "=1+1",
    '=HYPERLINK("http://elsewhere.example")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "'\"\\",
    "\\u2028\\x00\\",
    "__proto__",
    "constructor",
    "toString",
    "valueOf",
    "__defineGetter__",
    "NaN",
    "null",
    "../../etc/passwd",
    "/",
    ".",
    "..",
    "",
    " ",
    "-",
    "--help",
    "con",
    "a b",
    "a-b",
    "a_b",
    "A B",
    "n" * 230,
    "\u00fc" * 115,
)
UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff\ufffe"
    r"\uffff]"
)
"""Characters that must not reach a terminal, page or chart."""
TEXT_MAX = 240
"""Maximum bytes of a text in a trace: twelve in each of its records."""


def call(*words: str | Path) -> Result:
    """Runs a command that succeeds, and whose output has no terminal control sequences."""
    result = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert not UNSAFE.search(result.output), ascii(UNSAFE.search(result.output))
    return result


class _Hostile(Simulator):
    """All texts in its traces have such names."""

    def run(self) -> list[Any]:
        self.names = cycle(name for name in NAMES if name and "\0" not in name)
        return super().run()

    def emit(self, cpu: int, kind: Kind, process: int, first: int = 0, second: int = 0) -> None:
        """Groups and reported values have names of eight bytes."""
        if kind == Kind.MARK and first in (MarkKind.GROUP, MarkKind.NAME):
            second = int.from_bytes(next(self.names).encode()[:8], "little")
        super().emit(cpu, kind, process, first, second)

    def text(self, cpu: int, kind: Kind, process: int, text: str) -> None:
        if kind != Kind.POLICY:
            text = next(self.names).encode()[:TEXT_MAX].decode(errors="ignore")
        super().text(cpu, kind, process, text)


def hostile_run(folder: Path, name: str, seed: int = 1, **manifest: Any) -> None:
    """Returns the directory of a run of a workload with that name, as written by `./schedlab
    run`.
    """
    script = Script(cpus=2, steps=900)
    records = _Hostile(random.Random(seed), script).run()
    (folder / results.METRICS_FOLDER).mkdir(parents=True)
    write(folder / TRACE_FILE, records, script)
    compute(load(records, script)).write(folder / results.METRICS_FOLDER)
    results.write_json(
        folder / results.MANIFEST_FILE,
        {
            "schedlab": "0.1.0",
            "commit": name,
            "changed": False,
            "label": "",
            "workload": name,
            "policy": "rr",
            "tunables": {},
            "cpus": 2,
            "seed": seed,
            "tick_ns": 1_000_000,
            "limit_ns": 60_000_000_000,
            "memory_mib": 512,
            "machine": "linux",
            "machine_version": name,
            "repeatable": True,
            "host": name,
            "started": "2026-11-22T10:00:00+00:00",
            "status": "success",
            "message": "",
            **manifest,
        },
    )
    (folder / CONSOLE_FILE).write_text(name, errors="replace")

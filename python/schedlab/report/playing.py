# SPDX-License-Identifier: MIT
"""Beside a report's pages, the monitor's page that stands alone, and runs that it plays at a click.

A page that was opened as a file may read no other file. So each run has a page of its own that
carries its trace, with that page in a frame, and hands the trace over when it is asked for it.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from jinja2 import Template
from markupsafe import Markup

from schedlab import trace as traces
from schedlab.base.display.names import json_in_script
from schedlab.base.toolchain.kept import PAGE
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.report.markup import to_inline_html
from schedlab.report.model import Recording, Report, Table, Trial

FOLDER = "play"
PERFETTO = "https://ui.perfetto.dev"
_TEMPLATES = Path(__file__).parent / "templates"
_COMPRESSION = 6
"""The level of gzip. Level 9 takes six times the time for one percent less."""
_PACE = 0.1
"""Seconds of a trial's machine in a second of its reader: ten ticks."""


def place_of(recording: Recording) -> str:
    """Returns the address of the page that plays it, as seen from the report's pages."""
    return f"{FOLDER}/{recording.name}.html"


def perfetto_of(recording: Recording) -> str:
    """Returns the address of its trace for ui.perfetto.dev, which reads what gzip has packed."""
    return f"{FOLDER}/{recording.name}.perfetto-trace.gz"


def address_of(trial: Trial) -> str:
    """Returns the address of the page with this setup, as seen from the report's pages: as `page/link.js` has it."""
    parts = [("policy", policy) for policy in trial.policies]
    parts += [("cpus", str(trial.cpus)), ("seed", str(trial.seed)), ("pace", str(_PACE))]
    parts += [("workload", trial.workload)] if trial.workload else []
    parts += [("text", trial.text)] if trial.text else []
    return f"{PAGE.name}#{urlencode(parts)}"


def write(report: Report, folder: Path) -> None:
    """Writes into a report's folder what plays its recordings and trials; nothing if it has none."""
    recordings = list(_recordings(report))
    if not recordings and not any(page.trials for page in report.pages):
        return
    try:
        shutil.copyfile(PAGE, folder / PAGE.name)
    except OSError as error:
        raise WrongUsage(
            f"{PAGE}: {error.strerror}; reports need it to play runs: create it with "
            "./schedlab page"
        ) from None
    if recordings:
        (folder / FOLDER).mkdir()
    script = (_TEMPLATES / "play.js").read_text()
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = Template((_TEMPLATES / "play.html").read_text(), autoescape=True, trim_blocks=True)
    for recording in recordings:
        if recording.is_sound:
            _write_for_perfetto(recording.trace, folder / perfetto_of(recording))
        packed = gzip.compress(recording.trace.read_bytes(), _COMPRESSION, mtime=0)
        content = {
            "title": recording.title,
            "policy": recording.policy,
            "trace": base64.b64encode(packed).decode(),
        }
        (folder / place_of(recording)).write_text(
            template.render(
                title=recording.title,
                name=recording.name,
                for_perfetto=recording.is_sound and Path(perfetto_of(recording)).name,
                more=[(Markup(to_inline_html(what)), words) for what, words in recording.more],
                page=PAGE.name,
                told=json_in_script(content),
                script=script,
                allowed=allowed,
            )
        )


def _write_for_perfetto(trace: Path, file: Path) -> None:
    """Writes nothing of a trace that was damaged after its run."""
    plain = file.with_suffix("")
    try:
        traces.export(traces.read(trace), plain, "perfetto")
    except SchedlabError:
        return
    file.write_bytes(gzip.compress(plain.read_bytes(), _COMPRESSION, mtime=0))
    plain.unlink()


def _recordings(report: Report) -> Iterator[Recording]:
    for page in report.pages:
        for block in page.blocks():
            if isinstance(block, Table):
                yield from (cell.recording for row in block.rows for cell in row if cell.recording)

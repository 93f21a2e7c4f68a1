# SPDX-License-Identifier: MIT
"""Adds the standalone page to a report, and a player page for each run.

A page that was opened as a file may not read other files. So each run has a page that contains its
trace. The run's page shows the standalone page in a frame, and passes the trace to the frame on
request.
"""

import base64
import gzip
import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from jinja2 import StrictUndefined, Template
from markupsafe import Markup

from schedlab import trace as traces
from schedlab.base.display.names import json_in_script
from schedlab.base.toolchain.committed import PAGE
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.report.markup import to_inline_html
from schedlab.report.model import Recording, Report, Table, Trial

PLAYER_FOLDER = "play"
PERFETTO_ADDRESS = "https://ui.perfetto.dev"
_TEMPLATES = Path(__file__).parent / "templates"
_COMPRESSION_LEVEL = 6
"""The level of gzip. Level 9 takes six times as long and saves one percent."""
_TRIAL_SPEED = 0.1
"""Speed of a trial: simulated seconds per second of real time, so that ten ticks take a second."""


def player_address(recording: Recording) -> str:
    """Returns the address of the page that plays a recording, as seen from the report's pages."""
    return f"{PLAYER_FOLDER}/{recording.name}.html"


def perfetto_address(recording: Recording) -> str:
    """Returns the address of the gzipped trace for ui.perfetto.dev."""
    return f"{PLAYER_FOLDER}/{recording.name}.perfetto-trace.gz"


def trial_address(trial: Trial) -> str:
    """Returns the address of a trial, as seen from the report's pages,
    in the form of `page/link.js`.
    """
    parameters = [("policy", policy) for policy in trial.policies]
    parameters += [("cpus", str(trial.cpus)), ("tick", f"{trial.tick_ns / 1e6:g}")]
    parameters += [("seed", str(trial.seed)), ("pace", str(_TRIAL_SPEED))]
    parameters += [("workload", trial.workload)] if trial.workload else []
    parameters += [("text", trial.text)] if trial.text else []
    return f"{PAGE.name}#{urlencode(parameters)}"


def write_player_pages(report: Report, folder: Path) -> None:
    """Writes the players of recordings and the page for trials;
    nothing if the report has neither.
    """
    recordings = list(_linked_recordings(report))
    if not recordings and not any(page.trials for page in report.pages):
        return
    try:
        shutil.copyfile(PAGE, folder / PAGE.name)
    except OSError as error:
        raise WrongUsage(
            f"{PAGE}: {error.strerror}, and reports need it to play runs; build it with `./schedlab page`"
        ) from None
    if recordings:
        (folder / PLAYER_FOLDER).mkdir()
    script = (_TEMPLATES / "play.js").read_text()
    script_hash = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = Template(
        (_TEMPLATES / "play.html").read_text(),
        autoescape=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    for recording in recordings:
        if recording.is_sound:
            _write_for_perfetto(recording.trace, folder / perfetto_address(recording))
        packed = gzip.compress(recording.trace.read_bytes(), _COMPRESSION_LEVEL, mtime=0)
        content = {
            "title": recording.title,
            "policy": recording.policy,
            "trace": base64.b64encode(packed).decode(),
        }
        (folder / player_address(recording)).write_text(
            template.render(
                title=recording.title,
                name=recording.name,
                for_perfetto=recording.is_sound and Path(perfetto_address(recording)).name,
                more=[(Markup(to_inline_html(what)), words) for what, words in recording.more],
                page=PAGE.name,
                told=json_in_script(content),
                script=script,
                script_hash=script_hash,
            )
        )


def _write_for_perfetto(trace: Path, file: Path) -> None:
    """Converts a trace for Perfetto. Writes nothing if the trace was damaged after its run."""
    plain = file.with_suffix("")
    try:
        traces.export(traces.read(trace), plain, "perfetto")
    except SchedlabError:
        return
    file.write_bytes(gzip.compress(plain.read_bytes(), _COMPRESSION_LEVEL, mtime=0))
    plain.unlink()


def _linked_recordings(report: Report) -> Iterator[Recording]:
    for page in report.pages:
        for block in page.blocks():
            if isinstance(block, Table):
                yield from (cell.recording for row in block.rows for cell in row if cell.recording)

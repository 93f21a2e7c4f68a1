# SPDX-License-Identifier: MIT
"""Tools for language models that ask about recordings of Linux machines. Each answer is a short text."""

import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from schedlab.analysis.explanation import WaitQuery
from schedlab.analysis.explanation import explain as explain_waits
from schedlab.analysis.tables import Run, open_run
from schedlab.base.display.numbers import duration, percent
from schedlab.base.files import replacement
from schedlab.base.toolchain.policies import known_policies, parse_choices
from schedlab.commands.replay import answer_what_if
from schedlab.errors import WrongUsage
from schedlab.machines.folder import TRACE_FILE
from schedlab.recordings.convert import MACHINE, POLICY, TICK_NS, convert

ANSWER_MAX = 5000
"""Characters of an answer, which are fewer than 2,000 tokens."""
_RUNS = "runs"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TASKS_SHOWN, _DELAYERS_SHOWN, _SHARES_SHOWN, _WORST_MAX, _POLICIES_MAX = 12, 8, 6, 5, 4


@dataclass(frozen=True)
class RecordingTools:
    """The tools. All raise SchedlabError with a reason. They read and write in `folder` only."""

    folder: Path

    def list_recordings(self) -> str:
        """Recordings in the folder: files to import, and imported ones to ask about."""
        imported = [f"{path.parent.name}: imported" for path in self._imported()]
        files = [
            f"{path.name}: a file for import_recording"
            for path in sorted(self.folder.iterdir())
            if path.is_file() and path.suffix != ".c" and not path.name.startswith(".")
        ]
        return _answer(
            [*imported, *files] or ["none: put a perf.data or trace.txt into the folder"]
        )

    def import_recording(self, file: str, anonymize: bool = False) -> str:
        """Import a recording (perf, trace-cmd, ftrace, Perfetto) of the folder by its file name.

        Returns the name for the other tools, and a summary. `anonymize` replaces names of programs.
        """
        path = self.folder / file
        if not _NAME.fullmatch(file) or path.is_symlink() or not path.is_file():
            raise WrongUsage(
                f"{file[:64]!r}: not a file of the folder; choose a name from list_recordings"
            )
        name = path.stem.replace(".", "-")
        place = self.folder / _RUNS / name
        replacement.check_folder("run", place)
        place.parent.mkdir(exist_ok=True)
        made = convert(path, place, POLICY, TICK_NS, anonymous=anonymize)
        return _answer([f"imported as {name}", *made.notes, *_summary_lines(open_run(place))])

    def show_recording(self, recording: str) -> str:
        """What happened in an imported recording, and which tasks waited most for a CPU."""
        return _answer(_summary_lines(self._opened(recording)))

    def explain_recording(self, recording: str, task: str = "", worst: int = 1) -> str:
        """Why tasks waited: who delayed them, and the longest waits in parts.

        `task`: name, group or PID; empty for all. `worst`: number of longest waits, 0 to 5.
        """
        if not 0 <= worst <= _WORST_MAX:
            raise WrongUsage(f"worst: out of range; choose 0 to {_WORST_MAX}")
        query = WaitQuery(task=task or None, worst=worst)
        answer = explain_waits(self._opened(recording).trace, query, known_policies())
        lines = [f"{answer.waits} waits, {duration(answer.waited_ns)} in all"]
        delays = answer.delays.sort("duration_ns", descending=True).head(_DELAYERS_SHOWN)
        lines += [
            f"{row['waiting']} waited {duration(row['duration_ns'])} for {row['because_of']}"
            for row in delays.iter_rows(named=True)
        ]
        for explained in answer.longest:
            wait = explained.wait
            lines.append(
                f"{explained.name}, {wait.kind}, at {duration(wait.begin_ns)}:"
                f" {duration(wait.duration_ns)}"
            )
            lines += [
                f"  {duration(share.duration_ns)}: {share.words}"
                for share in explained.shares[:_SHARES_SHOWN]
            ]
        return _answer(lines)

    def what_if(self, recording: str, policies: str) -> str:
        """What the same demand would have waited under other policies, by replays in the simulator.

        `policies`: up to 4 names with commas (list_policies lists all). First line: how accurate such a replay is.
        """
        try:
            choices = parse_choices(policies)
        except ValueError as error:
            raise WrongUsage(f"policies: {error}") from None
        if not 1 <= len(choices) <= _POLICIES_MAX:
            raise WrongUsage(f"policies: name 1 to {_POLICIES_MAX}")
        run = self._opened(recording)
        with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
            answer = answer_what_if(run.folder, choices, Path(scratch) / "replays", False, [])
            lines = [answer.trust_text]
            for row in answer.rows:
                line = f"{row['policy']}: mean waiting {_duration_text(row['waiting_mean_ns'])}"
                if row["change"] is not None and row["policy"] != answer.reference.policy:
                    direction = "more" if row["change"] > 0 else "less"
                    line += f", {percent(abs(row['change']))} {direction} than {answer.reference.policy}"
                    line += "" if row["is_told"] else ", not significant"
                lines.append(line)
        return _answer(lines)

    def tools(self) -> tuple[Callable[..., str], ...]:
        """Returns the functions that an assistant can call."""
        return (
            self.list_recordings,
            self.import_recording,
            self.show_recording,
            self.explain_recording,
            self.what_if,
        )

    def _imported(self) -> list[Path]:
        """Returns the traces of the imported recordings."""
        return sorted((self.folder / _RUNS).glob(f"*/{TRACE_FILE}"))

    def _opened(self, recording: str) -> Run:
        """Opens an imported recording. Raises WrongUsage if there is none of this name."""
        folders = {path.parent.name: path.parent for path in self._imported()}
        if recording not in folders:
            advice = (
                f"choose from: {', '.join(folders)}" if folders else "use import_recording first"
            )
            raise WrongUsage(f"recording {recording[:64]!r}: does not exist; {advice}")
        run = open_run(folders[recording])
        if run.manifest["machine"] != MACHINE:
            raise WrongUsage(f"{recording}: a run of schedlab, not a recording; use explain_waits")
        return run


def _summary_lines(run: Run) -> list[str]:
    """Returns what happened, and the tasks that waited longest."""
    summary = run.metrics.summary.row(0, named=True)
    length_ns = summary["end_ns"] - summary["begin_ns"]
    processes = run.metrics.processes.filter(pl.col("waiting_ns") > 0)
    processes = processes.sort("waiting_ns", descending=True)
    lines = [
        f"{run.manifest['workload']}: {duration(length_ns)} on {run.manifest['cpus']} CPUs,"
        f" {summary['processes']} tasks, {summary['context_switches']} switches",
        f"wake-up latency: median {_duration_text(summary['wakeup_latency_median_ns'])}, 99th percentile"
        f" {_duration_text(summary['wakeup_latency_p99_ns'])}",
    ]
    for row in processes.head(_TASKS_SHOWN).iter_rows(named=True):
        lines.append(
            f"{row['name']} ({row['pid']}): waited {duration(row['waiting_ns'])}, longest"
            f" {_duration_text(row['longest_wait_ns'])}, ran {duration(row['running_ns'])}"
        )
    return lines


def _duration_text(nanoseconds: float | None) -> str:
    return "unknown" if nanoseconds is None else duration(nanoseconds)


def _answer(lines: Iterable[str]) -> str:
    """Joins lines. Leaves out the last lines, or the end of a line, beyond ANSWER_MAX."""
    all_lines, length, shown = list(lines), 0, []
    for line in all_lines:
        length += len(line) + 1
        if length > ANSWER_MAX - 80:
            break
        shown.append(line)
    hidden_count = len(all_lines) - len(shown)
    if hidden_count:
        shown.append(f"… {hidden_count} more lines are left out: ask about one task")
    return "\n".join(shown)

# SPDX-License-Identifier: MIT
"""Tests the tools for language models that ask about recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from perf_recordings import unpacked
from schedlab.commands.recording_tools import ANSWER_MAX, RecordingTools
from schedlab.errors import SchedlabError
from schedlab.machines.folder import TRACE_FILE


@pytest.fixture
def tools(tmp_path: Path) -> RecordingTools:
    unpacked("perf-7.3.txt", tmp_path)
    return RecordingTools(tmp_path)


def test_a_recording_is_imported_and_explained(tools: RecordingTools) -> None:
    assert tools.list_recordings() == "perf-7.3.txt: a file for import_recording"
    summary = tools.import_recording("perf-7.3.txt")
    assert "imported as perf-7-3" in summary
    assert "99th percentile 3.38 ms" in summary
    assert "hog ==> two (144): waited 70.6 ms, longest 42.5 ms" in summary
    assert "perf-7-3: imported" in tools.list_recordings()
    assert "wake-up latency" in tools.show_recording("perf-7-3")
    answer = tools.explain_recording("perf-7-3", "hog ==> two", worst=1)
    assert "42.5 ms" in answer
    assert "19.0 ms: load 141 ran on CPU 0" in answer
    assert "sleeper waited" not in answer


def test_what_if_begins_with_its_accuracy(tools: RecordingTools) -> None:
    tools.import_recording("perf-7.3.txt")
    accuracy, *policies = tools.what_if("perf-7-3", "eevdf,mlfq").splitlines()
    assert "its replay differs in turnaround by" in accuracy
    assert {line.partition(":")[0] for line in policies} == {"eevdf", "mlfq"}


def test_answers_are_short(tmp_path: Path) -> None:
    """300 threads with long names, each of which waits for another one."""
    lines = []
    for thread in range(1000, 1300):
        name, time = "n" * 11 + str(thread), thread / 1000
        lines.append(
            f" {thread} [000] {time:.9f}: sched:sched_waking:"
            f" comm={name} pid={thread} prio=120 target_cpu=000\n"
            f" {thread - 1} [000] {time + 0.0009:.9f}: sched:sched_switch:"
            f" prev_comm={'n' * 11}{thread - 1} prev_pid={thread - 1} prev_prio=120 prev_state=S"
            f" ==> next_comm={name} next_pid={thread} next_prio=120\n"
        )
    (tmp_path / "many.txt").write_text("".join(lines))
    for number in range(300):
        (tmp_path / f"{'x' * 60}-{number}.txt").touch()
    tools = RecordingTools(tmp_path)
    answers = [
        tools.list_recordings(),
        tools.import_recording("many.txt"),
        tools.explain_recording("many", worst=5),
    ]
    assert max(map(len, answers)) <= ANSWER_MAX
    assert "more lines are left out" in answers[0]


@pytest.mark.parametrize("file", ["../secret.txt", "/etc/passwd", "absent.txt", "link.txt", ""])
def test_only_files_of_the_folder_are_read(file: str, tools: RecordingTools) -> None:
    (tools.folder / "link.txt").symlink_to("/etc/passwd")
    with pytest.raises(SchedlabError, match="not a file of the folder"):
        tools.import_recording(file)


def test_other_runs_and_unknown_recordings_are_refused(tools: RecordingTools) -> None:
    with pytest.raises(SchedlabError, match="does not exist; use import_recording first"):
        tools.show_recording("perf-7-3")
    tools.import_recording("perf-7.3.txt")
    with pytest.raises(SchedlabError, match=r"'\.\.': does not exist; choose from: perf-7-3"):
        tools.show_recording("..")
    manifest = tools.folder / "runs" / "perf-7-3" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"linux-recording"', '"sim"'))
    assert (manifest.parent / TRACE_FILE).exists()
    with pytest.raises(SchedlabError, match="a run of schedlab"):
        tools.show_recording("perf-7-3")

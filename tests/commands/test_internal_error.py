# SPDX-License-Identifier: MIT
"""Tests unexpected errors: one line, status 1, and a log with all details for a bug report."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from schedlab import __version__
from schedlab.commands import cli
from schedlab.errors import describe_os_error


def ended(capsys: pytest.CaptureFixture[str]) -> str:
    """Returns the only line that main() prints to standard error."""
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("schedlab: internal error")
    return line


def log_of(line: str) -> Path:
    """Returns the log file that a line names."""
    match = re.search(r"report it with (/.*\.log)$", line)
    assert match, line
    return Path(match[1])


def fails(error: BaseException) -> object:
    """Returns a replacement for the command line that raises an error."""

    def command(**_: object) -> None:
        raise error

    return command


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Cache folder, which does not exist yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.argv", ["schedlab", "report", "a\nb"])
    # main() takes the CPU time of the process, here that of all tests, for the silence so far.
    monkeypatch.setattr("time.process_time", lambda: 0.0)
    return tmp_path / "cache"


def test_unexpected_error_is_one_line_and_a_log(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "cli", fails(KeyError("one\ntwo")))
    line = ended(capsys)
    log = log_of(line)
    assert cache in log.parents
    assert "KeyError: 'one\\ntwo'" in line
    text = log.read_text(encoding="utf-8")
    for part in (__version__, r"['schedlab', 'report', 'a\nb']", "Traceback", "in command"):
        assert part in text


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_place_that_cannot_be_written_is_named_with_the_cure(number: int) -> None:
    message, status = describe_os_error(OSError(number, os.strerror(number), "/some/place"))
    assert status == 2
    assert "'/some/place'" in message
    assert "XDG_CACHE_HOME" in message


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    """Returns the only line that main() prints for an error that the user can fix."""
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "internal error" not in line
    return line


def test_too_few_addresses_are_reported_before_a_library_aborts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "cli", fails(KeyError()))
    monkeypatch.setattr("resource.getrlimit", lambda _: (400_000 << 10, -1))
    line = refused(capsys)
    assert "ulimit -v: 390 MiB" in line
    monkeypatch.setattr("resource.getrlimit", lambda _: (1 << 50, -1))
    ended(capsys)


def test_deleted_working_directory_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert "working directory" in refused(capsys)

# SPDX-License-Identifier: MIT
"""Tests unexpected errors: one line, status 1, and a log with all details for a bug report."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from pathlib import Path

import polars as pl
import pytest

from schedlab import __version__
from schedlab.commands import cli
from schedlab.errors import WrongUsage, describe_os_error
from schedlab.machines import checked_simulator
from schedlab.report import drawing, html


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


@pytest.mark.parametrize("home", ["a file", "unknown"])
def test_without_a_cache_the_log_goes_to_the_temporary_folder(
    cache: Path,
    home: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if home == "a file":
        cache.write_text("")
    else:
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(Path, "home", fails(RuntimeError("no home")))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cli, "cli", fails(ValueError("x" * 10_000)))
    line = ended(capsys)
    assert len(line) < 1_000
    log = log_of(line)
    assert log.parent == tmp_path
    assert "x" * 10_000 in log.read_text()


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


def test_a_panic_of_a_library_is_one_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    panic = pl.exceptions.PanicException("index out of bounds")
    assert not isinstance(panic, Exception)
    monkeypatch.setattr(cli, "cli", fails(panic))
    assert "PanicException: index out of bounds" in log_of(ended(capsys)).read_text()


def test_sanitizers_are_skipped_if_they_would_abort(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (32 << 30, -1))
    monkeypatch.setattr("sys.argv", ["schedlab", "explore", "policy", "rr"])
    assert "ulimit -v: searches of policies do not work" in refused(capsys)
    checked_simulator.has_sanitizers.cache_clear()
    assert (
        "`ulimit -v` leaves too little memory for the sanitizers"
        in checked_simulator.describe_missing_checks()
    )
    checked_simulator.has_sanitizers.cache_clear()


def test_charts_are_skipped_if_the_library_would_abort(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (32 << 30, -1))
    with pytest.raises(WrongUsage, match="ulimit -v: charts do not work"):
        drawing.render_svg({"$schema": "https://vega.github.io/schema/vega-lite/v6.4.0.json"})
    with pytest.raises(WrongUsage, match="ulimit -v: charts do not work"):
        html.bundle_script("none", "of this name is kept")

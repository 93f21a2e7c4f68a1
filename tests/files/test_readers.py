# SPDX-License-Identifier: MIT
"""Tests that each input gives a result, or one line with status 2.

Inputs are changed files, and the files in tests/hostile/, which are named by what they show. The
cases are the same each time; docs/contributing.md says how to try other and more cases.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

import monitor_readers
from readers import READERS, Reader
from schedlab.errors import SchedlabError
from schedlab.paths import BUILD_FOLDER, ROOT

HOSTILE = ROOT / "tests" / "hostile"
CRASHES = BUILD_FOLDER / "fuzz" / "readers"


def need(reader: Reader) -> None:
    """Skips the test if the reader's tool is missing."""
    if reader.tool and not shutil.which(reader.tool):
        pytest.skip(f"{reader.tool} is not here: what it reads is NOT TESTED")


def flaw_of(reader: Reader, folder: Path, content: bytes) -> BaseException | None:
    """Returns the error that a file must not cause, or None if the reader behaves well."""
    file = folder / reader.file
    file.write_bytes(content)
    try:
        reader.read(folder, file)
    except SchedlabError as error:
        well = error.exit_status == 2 and "\n" not in str(error)
        return None if well else error
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a library's panic is not an Exception
        return error
    finally:
        shutil.rmtree(folder / "imported", ignore_errors=True)
    return None


def named(reader: Reader) -> str:
    return reader.name


@pytest.mark.parametrize("reader", READERS, ids=named)
def test_a_changed_file_is_read_or_refused(
    reader: Reader, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    need(reader)
    reader.make(tmp_path)
    seed, cases = (pytestconfig.getoption(f"--fuzz-{name}") for name in ("seed", "cases"))
    content = (tmp_path / reader.file).read_bytes()
    reader.read(tmp_path, tmp_path / reader.file)
    shutil.rmtree(tmp_path / "imported", ignore_errors=True)
    for number in range(cases):
        source = random.Random(f"{reader.name} {seed} {number}")
        changed = source.choice(reader.mutators)(source, content)
        flaw = flaw_of(reader, tmp_path, changed)
        if flaw:
            CRASHES.mkdir(parents=True, exist_ok=True)
            failing_file = CRASHES / f"{reader.name}-{seed}-{number}{Path(reader.file).suffix}"
            failing_file.write_bytes(changed)
            raise AssertionError(f"{failing_file}: neither a result nor a refusal") from flaw


CASES = sorted(path for path in HOSTILE.glob("*/*"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_what_once_was_wrong_is_read_or_refused(case: Path, tmp_path: Path) -> None:
    (reader,) = (candidate for candidate in READERS if candidate.name == case.parent.name)
    need(reader)
    reader.make(tmp_path)
    flaw = flaw_of(reader, tmp_path, case.read_bytes())
    if flaw:
        raise AssertionError("neither a result nor a refusal") from flaw


def test_messages_are_obeyed_as_they_are_written(tmp_path: Path) -> None:
    """Unchanged messages are accepted, so changed messages reach the code that handles them."""
    monitor_readers.lines(tmp_path)
    assert monitor_readers.ask(tmp_path, tmp_path / "messages") == []

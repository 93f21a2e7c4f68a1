# SPDX-License-Identifier: MIT
"""The doctor's advice is what this host's own archive of packages has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conftest import Programs
from schedlab.commands import examination as doctor
from schedlab.recordings.reader import PERF

INSTALL = "sudo apt-get install --no-install-recommends "


@pytest.fixture(autouse=True)
def bare(program: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has nothing but apt, which knows no package."""
    archive_of(program, monkeypatch, "nothing")
    monkeypatch.setattr(doctor, "PERF", replace(PERF, elsewhere=""))


def archive_of(program: Programs, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    known = " | ".join(names)
    virtual = "N: purely virtual"  # what apt says of a name that others provide, with status 0
    case = f'case $3 in {known}) echo "Package: $3" ;; chromium) echo {virtual!r} >&2 ;; *) exit 100 ;; esac'
    path = program("apt-cache", f'[ "$2" = show ] || exit 1\n{case}')
    monkeypatch.setenv("PATH", str(path.parent))


def advice() -> dict[str, str]:
    findings = [doctor.browser(), *doctor.recorders()]
    assert {finding.status for finding in findings} == {"absent"}
    return {finding.name: finding.advice for finding in findings}


@pytest.mark.parametrize(
    ("names", "browser", "perf"),
    [
        (
            ("chromium", "chromium-headless-shell", "linux-perf"),
            "chromium-headless-shell",
            "linux-perf",
        ),
        (("chromium", "linux-perf", "linux-tools-generic"), "chromium", "linux-perf"),
        (("chromium", "linux-tools-generic"), "chromium", "linux-tools-generic"),
    ],
)
def test_the_first_package_that_the_archive_has_is_named(
    names: tuple[str, ...],
    browser: str,
    perf: str,
    program: Programs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    archive_of(program, monkeypatch, *names)
    said = advice()
    assert said["chromium-headless-shell"] == f"{INSTALL}{browser}; `./schedlab test` does it"
    assert said["perf"] == f"{INSTALL}{perf}"


def test_no_package_is_named_that_the_archive_lacks() -> None:
    said = advice()
    assert not any(INSTALL in each for each in said.values()), said
    assert (
        "google-chrome on the PATH; tests of pages are skipped" in said["chromium-headless-shell"]
    )
    assert "put a perf that runs on the PATH" in said["perf"]
    assert "put a trace-cmd that runs on the PATH" in said["trace-cmd"]


def test_without_apt_no_package_is_named(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path_factory.mktemp("empty")))
    assert not any(INSTALL in each for each in advice().values())

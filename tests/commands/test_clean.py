# SPDX-License-Identifier: MIT
"""Tests `./schedlab clean`: it removes only files that schedlab made, and only those it names."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from conftest import Command
from schedlab.base.toolchain.cache import CACHE_PARTS

KEY, SHORT = "0123456789abcdef" * 4, "0123456789abcdef"
OURS = {
    "python": (f"python/{KEY}-3.11/bin/python", f"python/{SHORT}-3.12/bin/python"),
    "spike": (
        "spike/0.0.5.dev20-0123456789ab/lib/libriscv.so",
        "spike/spike-driver-0123456789ab-22.1.8",
        "gnu/libstdc++-12/usr/include/c++/12/string",
    ),
    "zig": ("zig/o/libc.so",),
    "linux": (
        f"linux/trees/{SHORT}/kernel/usr",
        f"linux/trees/{SHORT}.removed-123/kernel/usr",
        f"linux/images/{SHORT}01234567.cpio",
        "linux/packages.lock.json",
    ),
    "sched_ext": (f"sched_ext/{SHORT}.image",),
    "charts": (f"vega-{SHORT}.js", f"charts-{SHORT}.js"),
    "peers": (f"peers/gem_5-{SHORT}-3.11/bin/python",),
    "logs": ("errors/schedlab-error-a_1b.log", "install.log", "durations.json"),
}
OTHERS = (
    *("thesis.txt", "python/thesis/chapter-1.tex", "linux/trees/thesis", "linux/images/x.cpio"),
    *("spike/lock", "linux/lock", "install.lock", "python.lock", "dask/mine", "errors/notes.log"),
    *(f"charts-{SHORT}.js.bak", f"python/{KEY}-3.11.new/x", f"python/{KEY[:-1]}/x"),
)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    path = tmp_path / "schedlab"
    for name in (*(entry_name for names in OURS.values() for entry_name in names), *OTHERS):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("x" * 5000)
    (path / f"python/{KEY}").symlink_to(f"{KEY}-3.11")
    (path / f"linux/trees/{SHORT[::-1]}").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.txt").write_text("chapter 1")
    return path


def files(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}


def cleaned(schedlab: Command, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return schedlab("clean", *arguments, environment={"XDG_CACHE_HOME": str(cache.parent)})


def test_without_a_part_it_lists_and_removes_nothing(schedlab: Command, cache: Path) -> None:
    before = files(cache)
    done = cleaned(schedlab, cache)
    assert done.returncode == 0, done.stderr
    assert files(cache) == before
    for name in CACHE_PARTS:
        assert name in done.stdout
    assert "thesis.txt: does not belong to schedlab; not removed" in done.stdout
    assert "spike/lock:" not in done.stdout
    sizes = json.loads(cleaned(schedlab, cache, "--json").stdout)["bytes"]
    assert sizes.keys() == OURS.keys() and all(size >= 5000 for size in sizes.values())


def test_a_part_goes_and_nothing_else(schedlab: Command, cache: Path) -> None:
    before = files(cache)
    for part in OURS:
        assert cleaned(schedlab, cache, part).returncode == 0
        after = files(cache)
        assert before - after - {f"python/{KEY}/bin/python"} == set(OURS[part])
        before = after


def test_all_parts_go_and_what_is_not_ours_stays(schedlab: Command, cache: Path) -> None:
    assert cleaned(schedlab, cache, "--all").returncode == 0
    assert files(cache) == set(OTHERS)
    assert (cache.parent / "elsewhere" / "thesis.txt").read_text() == "chapter 1"


def test_an_environment_in_use_stays(schedlab: Command, cache: Path) -> None:
    program = cache / f"python/{KEY}-3.11/bin/python"
    program.unlink()
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as running:
        try:
            cleaned(schedlab, cache, "--all")
            assert os.path.lexists(program)
        finally:
            running.kill()
    cleaned(schedlab, cache, "--all")
    assert not os.path.lexists(program)
